#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# break.sh: a site as README.md beside it says: three masters and two gateways, each a network namespace with a folder
# /etc and a disk of its own, and cables to one switch. The site is broken by the book, and mended by the commands of
# README.md, which the script reads there (<!-- act: NAME -->). Exit status 0: each act ended as the guide says.
#
# Needs root, redis-server with its user `redis`, and the program `redlock`. Everything lives in namespaces of this
# script's own, and ends with it, however it ends. Exit status 77: this machine cannot play a site.
#
# What is not as on a real site: `systemctl` starts redis-server by the command of Debian's unit, `ssh` enters another
# machine's namespaces, `chronyc` is the shim that steps a master's wall clock, and locks live for 3 s at most, so that
# a guard time takes 3 s and not 30.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
redlock=redlock work='' shim=''

usage() {
  cat <<END
usage: examples/site/break.sh [--redlock PROGRAM]
  --redlock PROGRAM   instead of the program redlock in PATH
END
}

skip() {
  printf 'SKIP: %s\n' "$*"
  exit 77
}
fail() {
  printf 'break.sh: %s\n' "$*" >&2
  exit 1
}

while (($# > 0)); do
  case $1 in
    --redlock) redlock=${2:?--redlock needs a value} && shift 2 ;;
    --inside) work=$2 && shift 2 ;;
    --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
done

# All that follows runs in namespaces of processes, mounts and networks that end with this script.
if [[ -z $work ]]; then
  for tool in unshare nsenter setpriv ip redis-server redis-cli "$redlock"; do
    command -v "$tool" >/dev/null || skip "there is no $tool"
  done
  id redis >/dev/null 2>&1 || skip "there is no user redis, as the Debian package makes one"
  [[ -d /var/lib/redis && -d /var/backups ]] || skip "there is no /var/lib/redis or no /var/backups, as Debian has"
  ((EUID == 0)) || skip "this needs root"
  isolated=(setpriv --pdeathsig KILL unshare --mount --net --uts --pid --fork --kill-child --mount-proc)
  "${isolated[@]}" sh -c 'ip link add name switch type bridge && ip link add name left type veth peer name right &&
    mount -t tmpfs tmpfs /mnt' 2>/dev/null || skip "no namespaces, bridges or mounts here"
  work=$(mktemp -d /tmp/redlock-site.XXXXXX)
  trap 'rmdir "$work"' EXIT
  "${isolated[@]}" "$0" --inside "$work" --redlock "$(readlink -f "$(command -v "$redlock")")"
  exit
fi

# ---- machines -------------------------------------------------------------------------------------------------------

declare -A machine=() # name → the process that keeps its namespaces
declare -A address=([pump]=10.0.0.11 [gate]=10.0.0.12 [roof]=10.0.0.13 [gw-01]=10.0.0.21 [gw-02]=10.0.0.22)
masters=(pump gate roof)

# What systemd does with redis-server, by the command of Debian's unit. The user redis may write to its folder only.
systemctl() {
  local state=$WORK/$HOSTNAME i
  case "$*" in
    *redis-server*) ;;
    *) return 0 ;;
  esac
  if [[ -e $state/pid && $1 != start ]]; then
    kill "$(<"$state/pid")" 2>/dev/null || true
    while kill -0 "$(<"$state/pid")" 2>/dev/null; do sleep 0.02; done
  fi
  [[ $1 != stop ]] || return 0
  : >"$state/log" # what the last server said is not what this one says
  (
    cd / && exec setsid setpriv --reuid redis --regid redis --init-groups env ${SHIM:+LD_PRELOAD="$SHIM"} \
      REDLOCK_WALL_CLOCK="$state/step" redis-server /etc/redis/redis.conf --supervised no --daemonize no \
      >>"$state/log" 2>&1 </dev/null
  ) &
  echo $! >"$state/pid"
  for ((i = 0; i < 3000; ++i)); do
    ! grep -q 'Ready to accept connections' "$state/log" || return 0
    kill -0 "$(<"$state/pid")" 2>/dev/null || break
    sleep 0.02
  done
  printf 'redis-server does not start:\n' >&2
  tail -n 3 "$state/log" >&2
  return 1
}

ssh() { nsenter -t "$(<"$WORK/at-$1")" -m -n -u bash -c "${*:2}"; }

# A time service that has found its mistake.
chronyc() {
  [[ $* != makestep ]] || dd if=/dev/zero of="$WORK/$HOSTNAME/step" bs=8 count=1 conv=notrunc status=none
}

# A machine with a fresh installation: nothing of the site in /etc, and an empty disk of 4 MB.
build_machine() { # name
  set -e
  hostname "$1"
  mount -t tmpfs tmpfs /etc
  ln -s "$WORK"/etc/* /etc/
  rm -f /etc/{redis,redlock,chrony,systemd}
  mkdir -p /etc/{redis,redlock,chrony,systemd/system}
  chown redis:redis /etc/redis
  mkdir -p "$WORK/$1"
  head -c 8 /dev/zero >"$WORK/$1/step"
  mount -t tmpfs -o "size=4m,mode=750,uid=$(id -u redis),gid=$(id -g redis)" tmpfs /var/lib/redis
  mount -t tmpfs tmpfs /var/backups
  ip link set lo up
  exec sleep infinity
}

start_machine() { # name
  local i other name=$1 port=port-$1
  unshare --mount --net --uts bash -c 'build_machine "$@"' - "$name" &
  machine[$name]=$!
  disown $!
  echo "${machine[$name]}" >"$work/at-${address[$name]}"
  for ((i = 0; i < 3000; ++i)); do
    [[ $(readlink "/proc/${machine[$name]}/exe") != */sleep ]] || break
    kill -0 "${machine[$name]}" 2>/dev/null || fail "no machine $name"
    sleep 0.01
  done
  ip link add name "$port" type veth peer name eth0 netns "${machine[$name]}"
  ip link set "$port" master switch up
  nsenter -t "${machine[$name]}" -n sh -c "ip address add ${address[$name]}/24 dev eth0 && ip link set eth0 up"
  # A real machine announces its hardware address when it comes up.
  for other in "${!machine[@]}"; do nsenter -t "${machine[$other]}" -n ip neighbour flush to "${address[$name]}"; done
}

# Whatever runs there ends at once, and nothing but its disk remains, which nobody uses again.
scrap_machine() { # name
  power_off "$1"
  ip link del "port-$1"
  kill -KILL "${machine[$1]}"
  unset "machine[$1]"
}

on() { # machine, commands of a shell
  nsenter -t "${machine[$1]}" -m -n -u bash -c "cd '$WORK/site' && $2"
}

# shellcheck disable=SC2016 # the machine expands it
power_off() { # on a busy machine the port stays taken for a while
  on "$1" 'pid=$(<$WORK/$HOSTNAME/pid); kill -KILL $pid; while kill -0 $pid 2>/dev/null; do sleep 0.02; done'
}
power_on() { on "$1" 'systemctl start redis-server'; }
unplug() { ip link set "port-$1" down; }
plug() { ip link set "port-$1" up; }

# ---- acts -----------------------------------------------------------------------------------------------------------

said='' status=0 holder='' token=0 resource=plant1/rs485-a
everywhere='held by gw-01 on 3/3, ends in [0-3]\.[0-9]( - [0-3]\.[0-9])? s' # and no key for much longer

act() { printf '\n==== %s (%s s)\n' "$*" $SECONDS; }
happens() { printf '%s\n' "-- $*"; }

# The commands that README.md has behind <!-- act: NAME -->.
guide() { # name of the act
  local commands
  commands=$(awk -v open="<!-- act: $1 -->" '
    $0 == open { wanted = 1; next }
    wanted && /^```sh$/ { inside = 1; wanted = 0; next }
    inside && /^```$/ { exit }
    inside { print }' "$here/README.md")
  [[ -n $commands ]] || fail "the guide has no commands for the act $1"
  printf '%s\n' "$commands"
}

# Runs commands on a machine, and shows them. Sets `said` and `status` to what came of them.
types() { # machine, commands
  sed "s/^/$1# /" <<<"$2"
  status=0
  said=$(on "$1" "$2" 2>&1) || status=$?
  [[ -z $said ]] || sed 's/^/    /' <<<"$said"
}
types_guide() { types "$1" "$(guide "$2")"; }

says() {
  grep -qE -- "$1" <<<"$said" || fail "this does not say: $1"
}
ends_with() { [[ $status == "$1" ]] || fail "exit status $status, and not $1"; }

# Until the commands say so, or for two minutes.
await() { # machine, commands, pattern
  local until=$((SECONDS + 120))
  while ((SECONDS < until)); do
    said=$(on "$1" "$2" 2>&1) || true
    ! grep -qE -- "$3" <<<"$said" || return 0
    sleep 0.2
  done
  printf '%s\n' "$said"
  fail "$2 never says: $3"
}

# gw-01 holds the lock of the bus, and writes down its token.
hold() {
  rm -f "$work/token" "$work/holder"
  nsenter -t "${machine[gw-01]}" -m -n -u redlock run -w 60 --fencing "$resource" -- sh -c \
    "echo \$REDLOCK_FENCING_TOKEN >$work/token.new; mv $work/token.new $work/token; exec sleep infinity" \
    >"$work/holder" 2>&1 &
  holder=$!
  local i
  for ((i = 0; i < 3000; ++i)); do
    if [[ -s $work/token ]]; then
      token=$(<"$work/token")
      await gw-02 "redlock status $resource" "$everywhere" # a master that was late gets the key with the next renewal
      happens "gw-01 holds $resource on all masters, with token $token"
      return
    fi
    kill -0 $holder 2>/dev/null || break
    sleep 0.02
  done
  cat "$work/holder"
  fail "gw-01 gets no lock"
}

let_go() {
  kill -TERM $holder # redlock run passes it on to its command
  wait $holder || true
}

# gw-02 is refused because gw-01 has the lock, and not for want of an answer, which a busy machine may cause.
still_holds() {
  local until=$((SECONDS + 60))
  status=0
  while ((status != 75)); do
    ((SECONDS < until)) || fail "gw-02 is not told who holds the lock: $said"
    kill -0 $holder 2>/dev/null || fail "gw-01 has lost its lock: $(<"$work/holder")"
    status=0
    said=$(on gw-02 "redlock run -n $resource -- true" 2>&1) || status=$?
    ((status != 0)) || fail "gw-02 has the lock, too"
  done
  happens "gw-01 still holds $resource, and gw-02 is refused"
}

has_lost() {
  local ended=0
  wait $holder || ended=$?
  [[ $ended == 79 ]] || fail "the holder ended with $ended, and not by the loss of its lock: $(<"$work/holder")"
  happens "gw-01 has lost its lock; its command was ended before: $(tail -n 1 "$work/holder")"
}

# The lock that was held throughout is on every master, which all vote again.
is_mended() {
  on gw-02 'redlock status --wait 120' >/dev/null || fail "not all masters vote"
  await gw-02 "redlock status $resource" "$everywhere"
  sed 's/^/    /' <<<"$said"
  still_holds
}

a_new_site() {
  act "A new site"
  local name
  for name in "${masters[@]}" gw-01 gw-02; do start_machine "$name"; done
  for name in "${masters[@]}"; do
    types_guide "$name" master
    ends_with 0
  done
  for name in gw-01 gw-02; do
    types_guide "$name" gateway
    ends_with 0
    on "$name" "sed -i 's|^{|{ $short,|' /etc/redlock/redlock.json"
  done
  types_guide gw-02 'new site'
  says 'fail +guard +pump, gate, roof: not watched yet'
  says 'fit for locks'
  ends_with 0
  hold
}

a_master_reboots() {
  act "A master reboots"
  # Redis replays what a script wrote as the default user, who must be allowed to.
  on pump "redis-cli --user operator eval \"redis.call('SET','a',1) redis.call('HSET','b',1,1)\" 0" >/dev/null
  power_off pump
  happens "pump is off"
  still_holds
  power_on pump
  [[ $(on pump 'redis-cli --user operator exists a b') == 2 ]] || fail "the append-only file is not replayed"
  happens "pump is up again, with its append-only file"
  types_guide gw-02 restarted
  says 'pump +10.0.0.11:6379 .* (the guard watches.*; .* s to go|new: the guard has not begun; )'
  is_mended
}

masters_are_upgraded() {
  act "All masters are upgraded, one behind the other"
  types_guide gw-02 upgrade
  ends_with 0
  types gw-02 "$(guide upgrade | sed 's/10.0.0.11/10.0.0.12/')"
  ends_with 0
  types gw-02 "$(guide upgrade | sed 's/10.0.0.11/10.0.0.13/')"
  ends_with 0
  says "$resource: $everywhere"
  still_holds
}

hardware_is_replaced() {
  act "A master's hardware is replaced"
  scrap_machine pump
  happens "the old pump is switched off; a new machine takes its name and address, with an empty disk"
  start_machine pump
  types_guide pump master
  ends_with 0
  is_mended
}

hardware_of_others() {
  act "A master's hardware is replaced by that of another site"
  scrap_machine roof
  start_machine roof
  unplug roof
  types_guide roof master
  on roof "printf '{ \"timing\": { \"max_ttl_ms\": 1000 }, \"defaults\": { \"ttl_ms\": 1000 },
    \"username\": \"gateway\", \"password\": \"change-me\", \"masters\": [\"redis://127.0.0.1\"] }' \
    >/etc/redlock/other.json
    chmod 600 /etc/redlock/other.json && redlock commission --yes -q -C /etc/redlock/other.json"
  plug roof
  happens "the new roof has served another site, and comes into this one"
  await gw-02 'redlock status' 'roof.*belongs to clients of 1 master'
  types gw-02 'redlock doctor | grep ^fail'
  says 'record +roof: of another configuration: 1 master\(s\), max_ttl_ms 1000'
  types_guide roof others
  ends_with 0
  is_mended
}

cables_are_cut() {
  act "A cable is cut, and another one"
  unplug gate
  happens "the cable of gate is cut"
  still_holds
  unplug roof
  happens "the cable of roof is cut, too"
  has_lost
  types gw-02 "redlock run -w 1 $resource -- true"
  ends_with 69
  plug gate
  plug roof
  happens "both cables are mended: no server was restarted, so none is watched"
  hold
  is_mended
}

disk_is_full() {
  act "A master's disk is full"
  on gate 'cat /dev/zero >/var/lib/redis/core 2>/dev/null || true
    head -c 8192 /dev/zero | redis-cli --user operator -x setex another-tenant 60 >/dev/null'
  await gw-02 'redlock status' 'gate +10.0.0.12:6379 .* refuses writes: it cannot persist them'
  types gw-02 'redlock doctor | grep -A1 "reach *gate"'
  says 'free its disk'
  types_guide gate disk
  says '^aof_last_write_status:err'
  still_holds
  types gate 'rm /var/lib/redis/core'
  is_mended
}

clock_is_stepped() {
  act "A master's wall clock is stepped by an hour"
  [[ -n $shim ]] || {
    happens "left out: there is no C compiler here, or no source of the shim"
    return 0
  }
  printf '\x00\xa4\x93\xd6\x00\x00\x00\x00' | # 3,600,000,000 µs
    dd of="$work/roof/step" bs=8 count=1 conv=notrunc status=none
  await gw-02 'redlock status' 'roof.*watches'
  types gw-02 'redlock doctor | grep -A1 "clock *roof"'
  says '^warn +clock +roof: (1 h 0 min|59 min 59 s) ahead of this machine'
  still_holds
  types_guide roof clock
  await gw-02 'redlock doctor -v' '^ok +clock +roof'
  happens "a key that roof has got by the wrong clock may stay for an hour; the release deletes it"
  let_go
  hold
  is_mended
}

a_backup_is_made() {
  act "A backup is made"
  types_guide pump backup
  ends_with 0
  types gw-02 "redlock status --wait 9 $resource"
  ends_with 0
  still_holds
}

# Two of them at least have one: a lock's masters.
token_counters() {
  local name counter all=''
  for name in "${masters[@]}"; do
    counter=$(on "$name" "redis-cli --user operator hget redlock::fence $resource")
    all+="$name: $counter; "
  done
  [[ $all =~ [0-9].*\;.*[0-9].*\; ]] || fail "too few counters of tokens: $all"
  printf '%s\n' "$all"
}

power_is_cut() {
  act "The power of the site is cut"
  local name before=$token counters
  counters=$(token_counters)
  for name in "${masters[@]}"; do power_off "$name"; done
  happens "all masters are off"
  has_lost
  for name in "${masters[@]}"; do power_on "$name"; done
  [[ $counters == "$(token_counters)" ]] || fail "the append-only files lack counters:" "$counters" "$(token_counters)"
  happens "all masters are up again, with the counters of the tokens"
  types gw-02 "redlock run -n $resource -- true"
  ends_with 76
  hold
  ((token > before)) || fail "the token $token is not above $before"
  is_mended
}

export WORK=$work REDISCLI_AUTH=change-me-too SHIM=''
export -f systemctl chronyc ssh build_machine
short='"timing": { "max_ttl_ms": 3000, "node_timeout_ms": 500 }, "defaults": { "ttl_ms": 3000 }'
mount -t tmpfs -o mode=755 tmpfs "$work"
mkdir "$work"/{etc,bin}
cp -r "$here" "$work/site"
mount --bind /etc "$work/etc"
ln -s "$redlock" "$work/bin/redlock"
PATH=$work/bin:$PATH
if command -v cc >/dev/null && [[ -f $here/../../test/support/wall_clock.c ]]; then
  shim=$work/wall_clock.so
  cc -shared -fPIC -O1 -o "$shim" "$here/../../test/support/wall_clock.c"
  SHIM=$shim
fi
ip link add name switch type bridge
ip link set switch up

a_new_site
a_master_reboots
masters_are_upgraded
hardware_is_replaced
hardware_of_others
disk_is_full
clock_is_stepped
a_backup_is_made
cables_are_cut
power_is_cut
printf '\nAll acts ended as the guide says, after %s s.\n' $SECONDS
