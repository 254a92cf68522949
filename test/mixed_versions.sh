#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# mixed_versions.sh: gateways of an older version beside those of this one, on real masters: turns, tokens, --any,
# --urgent, an upgrade of the masters, and changes of masters by either version's tool. It prints what each side saw.
# Exit status 0: what CHANGELOG.md says of mixed versions is so.
#
# Needs root, redis-server and four minutes. No test runs it: it wants a build of an older commit.
set -euo pipefail

usage() { echo 'usage: test/mixed_versions.sh OLD_BUILD NEW_BUILD   # folders with redlock and libredlock.so'; }
[[ $# == 2 || ${1:-} == --inside ]] || { usage >&2 && exit 2; }
if [[ $1 != --inside ]]; then
  work=$(mktemp -d /tmp/redlock-mixed.XXXXXX)
  trap 'rm -r "$work"' EXIT
  unshare --net --pid --fork --kill-child --mount-proc "$0" --inside "$work" "$(readlink -f "$1")" "$(readlink -f "$2")"
  exit
fi
work=$2 failed=0
declare -A build=([old]=$3 [new]=$4) pid=() server=()
ip link set lo up
cd "$work"

redlock() { # old or new, arguments
  local side=$1
  shift
  LD_LIBRARY_PATH=${build[$side]} "${build[$side]}/redlock" "$@"
}
expect() { # sentence, what is so, pattern
  if [[ $2 =~ ^($3)$ ]]; then echo "  ok    $1: $2"; else
    echo "  FAIL  $1: $2, expected $3"
    failed=1
  fi
}
now_ms() { echo $(($(date +%s%N) / 1000000)); }
until_it() { # seconds, command...
  local end=$(($(now_ms) + $1 * 1000))
  shift
  until "$@" >/dev/null 2>&1; do
    (($(now_ms) < end)) || return 1
    sleep 0.05
  done
}

start_master() { # number
  redis-server --port "700$1" --bind 127.0.0.1 --save '' --appendonly no --dir "$work" --maxmemory-policy noeviction \
    >/dev/null &
  server[$1]=$!
  until_it 20 redis-cli -p "700$1" ping
}
end_masters() {
  for one in "${!server[@]}"; do
    kill "${server[$one]}"
    wait "${server[$one]}" || :
    unset "server[$one]"
  done
}
write_config() { # file, client_name, max_ttl_ms, masters
  local list=''
  for one in $4; do list+="${list:+, }\"redis://127.0.0.1:700$one\""; done
  cat >"$1.part" <<END
{ "client_name": "$2", "masters": [ $list ], "defaults": { "ttl_ms": $3 },
  "timing": { "max_ttl_ms": $3, "node_timeout_ms": 500, "suspect_close_ms": 2000 } }
END
  mv "$1.part" "$1"
}
write_configs() { # max_ttl_ms, masters
  for side in old new; do write_config "$side.json" "$side" "$1" "$2"; done
}
begin_site() { # max_ttl_ms, masters, further masters
  end_masters
  for one in $2 ${3:-}; do start_master "$one"; done
  write_configs "$1" "$2"
  redlock new commission -q --yes -C new.json >/dev/null
}
# Holds a lock, once `NAME.held` is there, and leaves its exit status in `NAME.status`.
hold() { # side, name of the run, options and resources...
  local side=$1 name=$2
  shift 2
  rm -f "$name.held" "$name.status"
  (
    status=0
    redlock "$side" run -C "$side.json" "$@" -- sh -c "touch $name.held; exec sleep 1000" 2>"$name.err" || status=$?
    echo $status >"$name.status"
  ) &
  pid[$name]=$!
}
keeper_of() { pgrep -P "${pid[$1]}"; }
let_go() { # names of runs
  for name; do
    if [[ ! -e $name.status ]]; then kill "$(keeper_of "$name")"; fi
    wait "${pid[$name]}" || :
  done
}

# ---- turns ----------------------------------------------------------------------------------------------------------

cat >job <<'END'
echo "begin $1 ${REDLOCK_FENCING_TOKEN:-0}" >>"$2"
sleep 0.01
echo "end $1 ${REDLOCK_FENCING_TOKEN:-0}" >>"$2"
END
# Prints how often two held it, how often a token was not greater than the one before, and each side's turns.
judge_turns() { # file
  awk '
    $1 == "begin" { if (inside) ++overlaps; inside = 1; who = $2; if ($3 != 0 && $3 <= token) ++disorder; token = $3 }
    $1 == "end" { if (!inside || $2 != who) ++overlaps; inside = 0; ++turns[$2] }
    END { print overlaps + 0, disorder + 0, turns["old"] + 0, turns["new"] + 0 }' "$1"
}
take_turns() { # file, turns, options...
  local file=$1 turns=$2
  shift 2
  rm -f "$file"
  local both=()
  for side in old new; do
    (
      for ((i = 0; i < turns; i++)); do
        redlock "$side" run -q -C "$side.json" "$@" bus -- sh job "$side" "$file" || echo "failed $side $?" >>"$file"
      done
      echo "done $side" >>"$file"
    ) &
    both+=($!)
  done
  wait "${both[@]}"
}

echo 'Turns of one lock:'
begin_site 3000 '1 2 3'
take_turns plain 60
expect 'two holders, disorder, turns of old, of new' "$(judge_turns plain)" '0 0 60 60'
expect 'failed runs' "$(grep -c failed plain || :)" 0
# Of the side that was slower, turns that it had while the other one still took part.
first=$(grep -m1 ^done plain | cut -d' ' -f2)
slower=$(sed "/^done $first/q" plain | grep -c "^end $([[ $first == old ]] && echo new || echo old)" || :)
expect "turns of the other one when $first had its 60" "$slower" '[2-6][0-9]'
take_turns tokens 60 --fencing
expect 'with tokens: two holders, disorder, turns of each' "$(judge_turns tokens)" '0 0 60 60'

echo 'One of three, by three of each:'
any=()
for side in old new; do
  for i in 1 2 3; do
    (for ((j = 0; j < 15; j++)); do
      redlock "$side" run -q -C "$side.json" --any a b c -- sh -c "sh job $side any.\$REDLOCK_RESOURCE"
    done) &
    any+=($!)
  done
done
wait "${any[@]}"
for one in a b c; do
  expect "$one: two holders, disorder" "$(judge_turns any.$one | cut -d' ' -f1,2)" '0 0'
done
expect 'turns' "$(cat any.? | grep -c ^end)" 90

echo 'Waiting and urgent:'
for pair in 'old new' 'new old'; do
  read -r holder waiter <<<"$pair"
  hold "$holder" first bus
  until_it 20 test -e first.held
  hold "$waiter" second bus
  sleep 1
  begun=$(now_ms)
  kill "$(keeper_of first)"
  until_it 20 test -e second.held
  expect "$holder gives to $waiter, ms" "$(($(now_ms) - begun))" '[0-9]{1,3}'
  expect "$waiter is seen by $holder" \
    "$(redlock "$holder" status -C "$holder.json" bus | grep -o 'held by .* on 3/3')" \
    "held by $waiter on 3/3"
  let_go first second
done
for pair in 'old new' 'new old'; do
  read -r plain urgent <<<"$pair"
  wins=0
  for i in 1 2 3 4 5; do
    hold new first bus
    until_it 20 test -e first.held
    hold "$plain" second bus
    sleep 0.7
    hold "$urgent" third --urgent bus
    sleep 0.7
    kill "$(keeper_of first)"
    until_it 20 sh -c '[ -e second.held ] || [ -e third.held ]'
    [[ ! -e third.held || -e second.held ]] || wins=$((wins + 1))
    let_go first second third
  done
  expect "urgent $urgent before $plain, of 5" "$wins" '[3-5]'
done

# ---- masters restart ------------------------------------------------------------------------------------------------

echo 'Twelve restarts of masters, with status --wait between them:'
begin_site 6000 '1 2 3'
hold old x of-old
hold new y of-new
until_it 20 test -e x.held -a -e y.held
begun=$(now_ms) refused=0
for i in 1 2 3 1 2 3 1 2 3 1 2 3; do
  redlock new status -q --wait 60 -C new.json of-old of-new >/dev/null || refused=$((refused + 1))
  kill "${server[$i]}"
  wait "${server[$i]}" || :
  start_master "$i"
done
redlock new status -q --wait 60 -C new.json of-old of-new >/dev/null || refused=$((refused + 1))
expect 'seconds' $((($(now_ms) - begun) / 1000)) '[0-9]+'
expect 'times that it did not end with 0' $refused 0
expect 'locks lost' "$(cat x.err y.err)" ''
let_go x y

# ---- changes of masters ---------------------------------------------------------------------------------------------

# What ended: its status; or whether it holds, or waits.
how() { # name of a run
  if [[ -e $1.status ]]; then cat "$1.status"; elif [[ -e $1.held ]]; then echo holds; else echo waits; fi
}
change() { # tool, name, old max_ttl_ms and masters, the new ones, before or behind, statuses of old and of new waiters
  begin_site "$3" "$4" "$(tr ' ' '\n' <<<"$6" | grep -vxF "$(tr ' ' '\n' <<<"$4")" | tr '\n' ' ' || :)"
  cp new.json from.json
  write_config to.json new "$5" "$6"
  hold new other bus
  until_it 20 test -e other.held
  for side in old new; do
    hold "$side" "holder-$side" "of-$side"
    hold "$side" "waiter-$side" bus
  done
  until_it 20 test -e holder-old.held -a -e holder-new.held
  [[ $7 != before ]] || write_configs "$5" "$6"
  begun=$(now_ms)
  status=0
  redlock "$1" reconfigure -q --yes from.json to.json >change.out 2>&1 || status=$?
  [[ $7 == before ]] || write_configs "$5" "$6"
  echo " by $1, $2, file there $7, $(($(now_ms) - begun)) ms"
  expect reconfigure "$status" 0
  for side in old new; do
    until_it 30 test -e "holder-$side.status"
    expect "holder of $side" "$(how "holder-$side")" 79
  done
  until_it 15 test -e waiter-old.status || :
  until_it 15 sh -c '[ -e waiter-new.status ] || [ -e waiter-new.held ]' || :
  expect 'waiter of old' "$(how waiter-old): $(tail -n 1 waiter-old.err)" "($8): .*"
  expect 'waiter of new' "$(how waiter-new): $(tail -n 1 waiter-new.err)" "($9): .*"
  let_go other waiter-old waiter-new
  for side in old new; do
    status=0
    redlock "$side" run -q -w 20 -C "$side.json" bus -- true || status=$?
    expect "$side with the new file" "$status" 0
  done
}
echo 'Changes of masters:'
change new more 3000 '1 2 3' 3000 '1 2 3 4 5' behind 78 80
change new more 3000 '1 2 3' 3000 '1 2 3 4 5' before 78 holds
change new fewer 3000 '1 2 3 4 5' 3000 '1 2 3' behind '80|78' 80
change new others 3000 '1 2 3' 3000 '4 5 6' before 80 holds
change new max_ttl_ms 3000 '1 2 3' 4000 '1 2 3' behind 78 80
change old more 3000 '1 2 3' 3000 '1 2 3 4 5' behind 78 78
change old fewer 3000 '1 2 3 4 5' 3000 '1 2 3' behind '80|78' '80|78'
change old others 3000 '1 2 3' 3000 '4 5 6' behind 80 80
change old max_ttl_ms 3000 '1 2 3' 4000 '1 2 3' behind 78 78
exit $failed
