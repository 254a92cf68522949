#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# owner.sh: two gateways and a witness, each a machine in namespaces of its own. Both gateways have ser2net at one
# RS-485 line, under `redlock-service`, and one of them owns the line. The commands are those of README.md beside this
# file (<!-- owner: NAME -->). The script cuts power and cables, kills and freezes, and hands over. A line that is
# simulated (bus.py) writes down who sends a request, and when. Beside that, on machines of their own, the same cuts
# with keepalived in the place of redlock. Exit status 0: with redlock no cut made two owners.
#
# Needs root, redis-server, ser2net, libmodbus5, python3, iproute2, the program `redlock`, and for its part keepalived.
# Exit status 77: this machine cannot play it. systemd is a script here that starts what the drop-in says.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
redlock=redlock ttl=2400 work='' part='' only='' record=''

usage() {
  cat <<END
usage: examples/site/owner.sh [--redlock PROGRAM] [--ttl MS] [--cuts]
  --redlock PROGRAM   instead of the program redlock in PATH
  --ttl MS            of the lock, and max_ttl_ms of the site (default $ttl, the shortest)
  --cuts              only what takes a ttl: power, cable, freeze
  --record FOLDER     keep there who sent when, and what was done: examples/pictures/owner.py draws it
END
}
skip() {
  printf 'SKIP: %s\n' "$*"
  exit 77
}
fail() {
  printf 'owner.sh: %s\n' "$*" >&2
  for log in "$work"/gw-*.log; do [[ ! -e $log ]] || tail -n 15 "$log" >&2; done
  exit 1
}

while (($# > 0)); do
  case $1 in
    --redlock) redlock=${2:?} && shift 2 ;;
    --ttl) ttl=${2:?} && shift 2 ;;
    --cuts) only=cuts && shift ;;
    --record) mkdir -p "${2:?}" && record=$(readlink -f "$2") && shift 2 ;;
    --inside) work=$2 part=$3 && shift 3 ;;
    --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
done

if [[ -z $work ]]; then
  for tool in unshare nsenter setpriv ip bridge redis-server redis-cli ser2net python3 "$redlock"; do
    command -v "$tool" >/dev/null || skip "there is no $tool"
  done
  python3 -c 'import ctypes; ctypes.CDLL("libmodbus.so.5")' 2>/dev/null || skip "there is no libmodbus.so.5"
  [[ -f /lib/systemd/system/ser2net.service ]] || skip "there is no unit of ser2net, as the Debian package has"
  ((EUID == 0)) || skip "this needs root"
  isolated=(setpriv --pdeathsig KILL unshare --mount --net --uts --pid --fork --kill-child --mount-proc)
  "${isolated[@]}" sh -c 'ip link add name switch type bridge && mount -t tmpfs tmpfs /mnt' 2>/dev/null ||
    skip "no namespaces, bridges or mounts here"
  work=$(mktemp -d /tmp/redlock-owner.XXXXXX)
  trap 'rm -r "$work"' EXIT
  play() { # with
    exec "${isolated[@]}" "$0" --inside "$work" "$1" --ttl "$ttl" ${only:+--cuts} ${record:+--record "$record"} \
      --redlock "$(readlink -f "$(command -v "$redlock")")"
  }
  play keepalived >"$work/keepalived" 2>&1 &
  status=0
  (play redlock) || status=$?
  wait $! || status=$?
  cat "$work/keepalived"
  ((status == 0)) || exit $status
  printf '\nWith redlock nobody used the line beside its owner. %s s.\n' $SECONDS
  exit
fi

# ---- machines -------------------------------------------------------------------------------------------------------

declare -A machine=() # name → the first process of its PID namespace
declare -A address=([gw-1]=10.0.0.21 [gw-2]=10.0.0.22 [witness]=10.0.0.13)

# Programs that each machine finds first in its PATH.
write_programs() {
  mkdir "$work/bin"
  ln -s "$redlock" "$work/bin/redlock"
  ln -s "$here/../../src/tool/service/redlock-service" "$work/bin/redlock-service"
  cat >"$work/bin/systemctl" <<'END'
#!/bin/bash
# What systemd does with ser2net.service, its drop-in, and Restart=always.
[[ $1 != --no-block ]] || shift
loop() {
  line=$(sed -n 's/^ExecStart=//p' /etc/systemd/system/ser2net.service.d/zzzz-redlock.conf | tail -n 1)
  while :; do
    mkdir -p /run/redlock/ser2net.service
    CONFFILE=/etc/ser2net.yaml bash -c "exec $line" &
    echo $! >/run/main
    wait
    sleep 1
  done
}
case $1 in
  cat) exec cat "/lib/systemd/system/$3" ;;
  show)
    line=$(sed -n 's/^ExecStart=\(.\)/\1/p' /etc/systemd/system/ser2net.service.d/zzzz-redlock.conf)
    echo "ExecStart={ path=${line%% *} ; argv[]=$line ; ignore_errors=no ; pid=0 }"
    ;;
  stop | restart)
    if [[ -e /run/loop ]]; then
      kill -KILL "$(</run/loop)" 2>/dev/null
      kill -TERM "$(</run/main)" 2>/dev/null
      while kill -0 "$(</run/main)" 2>/dev/null; do sleep 0.02; done
    fi
    [[ $1 != stop ]] || rm -rf /run/redlock/ser2net.service
    ;;&
  start | restart)
    loop >>"@work@/$HOSTNAME.log" 2>&1 </dev/null &
    echo $! >/run/loop
    disown
    ;;
esac
END
  cat >"$work/bin/owner" <<'END'
#!/bin/bash
# What keepalived calls: owner start | stop.
[[ $1 == start ]] || exec pkill -x ser2net
exec setsid ser2net -n -c /etc/ser2net.yaml >/dev/null 2>&1 </dev/null
END
  chmod 755 "$work"/bin/{systemctl,owner}
}

build_machine() { # name
  set -e
  hostname "$1"
  mkdir -p /run/lock
  mount -t tmpfs tmpfs /run
  mount -t tmpfs tmpfs /etc
  ln -s "$WORK"/etc/* /etc/
  rm -f /etc/{redlock,systemd,ser2net.yaml,keepalived}
  mkdir -p /etc/{redlock,systemd/system,keepalived} /run/lock
  ip link set lo up
  [[ ! -e $WORK/tty-$1 ]] || cat >/etc/ser2net.yaml <<END
connection: &bus
  accepter: tcp,127.0.0.1,2000
  connector: serialdev,$(readlink "$WORK/tty-$1"),19200n81,local
  options:
    kickolduser: true
END
  cat >/etc/redlock/redlock.json <<END
{ "client_name": "$1", "masters": ["redis://10.0.0.21", "redis://10.0.0.22", "redis://10.0.0.13"],
  "timing": { "max_ttl_ms": $TTL }, "defaults": { "ttl_ms": $TTL } }
END
  : >/run/built
  while :; do sleep infinity; done # and not exec: a shell reaps what has lost its parent
}

power_on() { # name
  local i root name=$1 port=port-$1
  setpriv --pdeathsig KILL unshare --mount --net --uts --pid --fork --kill-child --mount-proc \
    bash -c 'build_machine "$@"' - "$name" 2>"$work/$name.boot" & # it complains when it is killed
  disown $!
  local parent=$!
  for ((i = 0; i < 1000; ++i)); do
    machine[$name]=$(<"/proc/$parent/task/$parent/children") 2>/dev/null || fail "no machine $name"
    machine[$name]=${machine[$name]% }
    root=/proc/${machine[$name]}/root
    [[ -z ${machine[$name]} || ! -e $root/run/built ]] || break
    sleep 0.01
  done
  ip link add name "$port" type veth peer name eth0 netns "${machine[$name]}"
  ip link set "$port" master switch up
  on "$name" "ip address add ${address[$name]}/24 dev eth0 && ip link set eth0 up"
  for i in "${!machine[@]}"; do on "$i" "ip neighbour flush dev eth0"; done 2>/dev/null
  master_on "$name"
}

on() { # machine, commands of a shell
  nsenter -t "${machine[$1]}" -m -n -u -p --root=/proc/"${machine[$1]}"/root bash -c "$2"
}
master_on() { # machine: a master that has forgotten everything
  on "$1" "redis-server --save '' --protected-mode no --daemonize yes --logfile /dev/null --dir /run >/dev/null"
}
master_off() { on "$1" 'redis-cli shutdown nosave' >/dev/null 2>&1 || true; }
power_off() {
  kill -KILL "${machine[$1]}"
  ip link del "port-$1" 2>/dev/null || true
  unset "machine[$1]"
}
poller() { on "$1" "setsid python3 $here/bus.py poll 2000 >/dev/null 2>&1 </dev/null &"; }

# ---- the line -------------------------------------------------------------------------------------------------------

event() { printf '%s %s\n' "$2" "$1" >>"$work/events"; } # what, when
now() { awk '{ print $1 }' /proc/uptime; }

# The owners one after the other since an instant, and when the last of them began.
owners() { # since, until
  awk -v since="$1" -v until="${2:-1e9}" '$1 >= since && $1 <= until && $2 != last { printf "%s ", last = $2 }' \
    "$work/line.log"
}
first_of() { # gateway, since
  awk -v since="$2" -v who="$1" '$1 >= since && $2 == who { print $1; exit }' "$work/line.log"
}
next_owner() { # since
  local i
  for ((i = 0; i < 600; ++i)); do
    [[ -z $(owners "$1") ]] || break
    sleep 0.05
  done
  owners "$1" | cut -d ' ' -f 1
}
await_owner() { # gateway, since, seconds at most
  local i
  for ((i = 0; i < $3 * 20; ++i)); do
    [[ -z $(first_of "$1" "$2") ]] || return 0
    sleep 0.05
  done
  fail "gw-$1 does not take the line over within $3 s"
}
# How long nobody used the line, from the cut on; and nobody used it beside the new owner.
sequence='' # of owners, as it must be with redlock
settle() { # what, new owner, since
  local began order
  event "$1" "$3"
  await_owner "$2" "$3" $((ttl * 3 / 1000 + 15))
  began=$(first_of "$2" "$3")
  sleep 0.5
  order=$(owners "$3")
  [[ $order == "$2 " || $order == "$((3 - $2)) $2 " ]] || fail "$1: these owned the line one after the other: $order"
  [[ $sequence == *"$2 " ]] || sequence+="$2 "
  printf '%-44s gw-%s after %5.2f s\n' "$1" "$2" "$(awk "BEGIN { print $began - $3 }")"
}
stays() { # what, owner, since
  event "$1" "$3"
  sleep 1.2
  [[ $(owners "$3") == "$2 " ]] || fail "$1: these owned the line one after the other: $(owners "$3")"
  printf '%-44s gw-%s stays\n' "$1" "$2"
}
nobody() { # what, owner before, since
  local i last
  event "$1" "$3"
  for ((i = 0; i < 400; ++i)); do
    last=$(tail -n 1 "$work/line.log")
    last=${last% *}
    [[ $(awk "BEGIN { print ($(now) - $last > 1) }") != 1 ]] || break
    sleep 0.05
  done
  [[ $i -lt 400 && $(owners "$3") == "$2 " ]] || fail "$1: these owned the line: $(owners "$3")"
  printf '%-44s nobody after %4.2f s\n' "$1" "$(awk "BEGIN { print $last - $3 }")"
}
stands_by() { # gateway: its redlock runs, and has had time to ask
  local i
  for ((i = 0; i < 600; ++i)); do
    ! on "gw-$1" 'pgrep -x redlock' >/dev/null || break
    sleep 0.05
  done
  sleep 0.3
}

# ---- redlock --------------------------------------------------------------------------------------------------------

# The commands that README.md has behind <!-- owner: NAME -->.
guide() { # name
  local commands
  commands=$(awk -v open="<!-- owner: $1 -->" '
    $0 == open { wanted = 1; next }
    wanted && /^```sh$/ { inside = 1; wanted = 0; next }
    inside && /^```$/ { exit }
    inside { print }' "$here/README.md")
  [[ -n $commands ]] || fail "the guide has no commands for: $1"
  printf '%s\n' "$commands"
}
services() { # gateway
  local names=([1]=preferred [2]=other)
  on "gw-$1" "$(guide "${names[$1]}")" >/dev/null
  poller "gw-$1"
}
hand_over() { # to gateway
  local at
  stands_by "$1"
  at=$(now)
  on "gw-$((3 - $1))" "$(guide 'hand over')" >/dev/null
  settle "handed over" "$1" "$at"
}
voting() { # all masters vote: the guard has watched who was away
  on witness 'redlock status --wait 60' >/dev/null || fail "not all masters vote"
}
# All masters have the lock's key by the same renewal: the key of a master that was away may be an old one, and end.
everywhere() {
  local i status ends='"on":3,.*"ends_min_ms":([0-9]+),"ends_max_ms":([0-9]+)'
  for ((i = 0; i < 600; ++i)); do
    status=$(on witness 'redlock status --json plant1/rs485-a' 2>&1) || true # 75: held
    [[ ! $status =~ $ends ]] || ((BASH_REMATCH[2] - BASH_REMATCH[1] > 200)) || return 0
    sleep 0.1
  done
  fail "not all masters have the key"
}
masters_fail() { # two of three, while gw-1 owns the line; and one comes back
  local at owner
  voting
  everywhere
  at=$(now)
  master_off witness
  master_off gw-2
  nobody "two of three masters fail" 1 "$at"
  at=$(now)
  master_on witness
  owner=$(next_owner "$at")
  settle "one of them is back" "$owner" "$at"
}

with_redlock() {
  local at begin
  printf '\nredlock, ttl %s ms\n' "$ttl"
  on witness 'redlock commission --yes -q' >/dev/null
  voting
  begin=$(now) at=$begin sequence='1 '
  services 1
  await_owner 1 "$at" 20
  services 2
  stands_by 2
  if [[ -z $only ]]; then
    at=$(now)
    on gw-1 'pkill -KILL -x ser2net'
    settle "the service is killed" 2 "$at"
    hand_over 1
    at=$(now)
    bridge link set dev port-gw-1 isolated on && bridge link set dev port-gw-2 isolated on
    stays "the cable between the two is cut" 1 "$at"
    bridge link set dev port-gw-1 isolated off && bridge link set dev port-gw-2 isolated off
    everywhere
    at=$(now)
    master_off witness
    stays "the witness fails" 1 "$at"
    master_on witness
    everywhere
  fi
  stands_by 2
  at=$(now)
  ip link set port-gw-1 down
  settle "the cable of the owner is cut" 2 "$at"
  ip link set port-gw-1 up
  everywhere
  stands_by 1
  at=$(now)
  on gw-2 'kill -STOP -1'
  settle "the owner freezes" 1 "$at"
  at=$(now)
  on gw-2 'kill -CONT -1'
  stays "it thaws" 1 "$at"
  everywhere
  stands_by 2
  at=$(now)
  power_off gw-1
  settle "the power of the owner is cut" 2 "$at"
  power_on gw-1
  services 1
  if [[ -z $only ]]; then
    hand_over 1
    masters_fail
  fi
  [[ $(owners "$begin") == "$sequence" ]] || fail "owners: $(owners "$begin"), and the cuts were for: $sequence"
}

# ---- keepalived -----------------------------------------------------------------------------------------------------

vrrp() { # gateway
  on "gw-$1" "cat >/etc/keepalived/keepalived.conf <<END
global_defs {
  script_user root
  enable_script_security
}
vrrp_instance bus {
  state BACKUP
  interface eth0
  virtual_router_id 51
  priority $((100 - $1))
  advert_int 1
  nopreempt
  virtual_ipaddress {
    10.0.0.100/24
  }
  notify_master \"$work/bin/owner start\"
  notify_backup \"$work/bin/owner stop\"
  notify_fault \"$work/bin/owner stop\"
}
END
    setsid keepalived --dont-fork --log-console -p /run/k.pid -r /run/v.pid >>$work/keepalived.log 2>&1 </dev/null &"
  poller "gw-$1"
}
# Told, and not judged.
compare() { # what, new owner, since
  event "$1" "$3"
  await_owner "$2" "$3" 30
  printf '%-44s gw-%s after %5.2f s\n' "$1" "$2" "$(awk "BEGIN { print $(first_of "$2" "$3") - $3 }")"
}
changes=0
turns() { # what, since
  event "$1" "$2"
  changes=$(($(owners "$2" | wc -w) - 1))
  printf '%-44s %s changes of who sends, in 1 s\n' "$1" "$changes"
}

with_keepalived() {
  local at
  command -v keepalived >/dev/null || { echo "keepalived is not here: nothing beside it" && return; }
  printf '\nkeepalived, advert_int 1\n'
  at=$(now)
  vrrp 1
  await_owner 1 "$at" 20
  vrrp 2
  sleep 1.2
  at=$(now)
  ip link set port-gw-1 down
  compare "the cable of the owner is cut" 2 "$at"
  ip link set port-gw-1 up
  sleep 1.2
  at=$(now)
  on gw-2 'kill -STOP -1'
  compare "the owner freezes" 1 "$at"
  at=$(now)
  on gw-2 'kill -CONT -1'
  sleep 1
  turns "it thaws" "$at"
  at=$(now)
  power_off gw-1
  compare "the power of the owner is cut" 2 "$at"
  power_on gw-1
  vrrp 1
  sleep 1.2
  at=$(now)
  bridge link set dev port-gw-1 isolated on && bridge link set dev port-gw-2 isolated on
  await_owner 1 "$at" 30
  at=$(now)
  sleep 1
  turns "the cable between the two is cut" "$at"
  ((changes > 0)) || fail "keepalived has made no two owners: the guide says that it does"
}

export WORK=$work TTL=$ttl
export -f build_machine
mount -t tmpfs -o mode=755 tmpfs "$work"
mkdir "$work/etc"
mount --bind /etc "$work/etc"
: >"$work/events"
write_programs
export PATH=$work/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
sed -i "s|@work@|$work|" "$work/bin/systemctl"
ip link add name switch type bridge
ip link set switch up
python3 "$here/bus.py" line "$work/line.log" "$work/tty-gw-1" "$work/tty-gw-2" &
for name in witness gw-1 gw-2; do power_on "$name"; done

"with_$part"
[[ -z $record ]] || for log in line.log events; do cp "$work/$log" "$record/$part.$log"; done
