#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# count.sh WHAT PROGRAM INFLIGHT [LIMIT] [OPTION...]: what one cycle of PROGRAM costs with so many under way; fails when
# it is more than LIMIT (- for none). WHAT is instructions (in user space, counted by callgrind), replies (instructions
# where each reply wakes the program, as most processes meet them), syscalls (counted by strace), bytes (both ways,
# counted by the masters) or heap (calls, counted by the library HEAP_COUNT). The masters are those of MASTER_PORTS (and
# MASTER_PIDS, for instructions); the OPTIONs go to PROGRAM.
#
# It is the slope between two runs of different length, so that start-up, connections and the end cancel. Instructions
# are those of the function run() and below, without the program's own statistics.
set -euo pipefail

what=$1 program=$2 inflight=$3 limit=${4:--}
options=("${@:5}")
few=$((inflight == 1 ? 300 : 40 * inflight))
many=$((inflight == 1 ? 1300 : 200 * inflight))
folder=$(mktemp -d "${TMPDIR:-/tmp}/redlock-count.XXXXXX")
trap 'rm -rf "$folder"' EXIT

need() {
  command -v "$1" >/dev/null || { echo "$1 is missing: apt-get install --no-install-recommends $1" >&2; exit 1; }
}

# The program must have done all its cycles, or there is nothing to divide by.
checked() {
  local cycles=$1
  shift
  result=$("$@" --ports "$MASTER_PORTS" --mode throughput --inflight "$inflight" --warmup 20 --count "$cycles" \
    --node-timeout-ms 9000 --max-seconds "$seconds" "${options[@]}")
  [[ $result == *"\"ok\":$cycles,\"fail\":0,"* ]] || { echo "not all cycles succeeded: $result" >&2; exit 1; }
}

# Each reply that comes alone costs a read of its own, so the count would depend on how fast the masters answer. On one
# processor, where the program runs only when no master wants to, all replies to one command are there when it wakes.
instructions() {
  local cpu pid pids
  cpu=$(taskset -cp $$ | sed -E 's/.*: ([0-9]+).*/\1/')
  IFS=, read -ra pids <<<"$MASTER_PIDS"
  for pid in "${pids[@]}"; do taskset -acp "$cpu" "$pid" >/dev/null; done
  checked "$1" taskset -c "$cpu" "${behind[@]}" \
    valgrind --quiet --tool=callgrind --toggle-collect=run --callgrind-out-file="$folder/callgrind" "$program"
  awk '/^totals:/ { print $2 }' "$folder/callgrind"
}

# On its own processor, and never before a reply comes: hardly two replies are there when the program wakes.
replies() {
  checked "$1" valgrind --quiet --tool=callgrind --toggle-collect=run --callgrind-out-file="$folder/callgrind" \
    "$program"
  awk '/^totals:/ { print $2 }' "$folder/callgrind"
}

syscalls() {
  checked "$1" strace -f -c -o "$folder/strace" "$program"
  awk '$1 ~ /^[0-9.]+$/ && $NF != "total" { calls += $4 } END { print calls }' "$folder/strace"
}

# INFO's own bytes are the same each time, and cancel.
net_bytes() {
  local port line sum=0 ports
  IFS=, read -ra ports <<<"$MASTER_PORTS"
  for port in "${ports[@]}"; do
    exec 3<>"/dev/tcp/127.0.0.1/$port"
    printf 'INFO stats\r\n' >&3
    while read -r line <&3; do
      case $line in
        total_net_input_bytes:*) line=${line#*:} sum=$((sum + ${line%$'\r'})) ;;
        total_net_output_bytes:*) line=${line#*:} sum=$((sum + ${line%$'\r'})) && break ;;
      esac
    done
    exec 3>&-
  done
  echo "$sum"
}

bytes() {
  local before
  before=$(net_bytes)
  checked "$1" "$program"
  echo $(($(net_bytes) - before))
}

# The program says how many it saw while it did its cycles; -1: nobody counted.
heap() {
  checked "$1" env LD_PRELOAD="$HEAP_COUNT" "$program"
  sed -E 's/.*"heap_calls":(-?[0-9]+).*/\1/' <<<"$result"
}

case $what in
  bytes) ;;
  heap) [[ -f ${HEAP_COUNT:-} ]] || { echo "HEAP_COUNT is not libredlock_heap_count.so" >&2; exit 2; } ;;
  instructions | replies) need valgrind ;;
  syscalls) need strace ;;
  *) echo "count.sh: instructions, replies, syscalls, bytes or heap, not $what" >&2; exit 2 ;;
esac

# A machine under load may still let some replies come alone, break a connection, and leave nothing to a program that
# only runs when nobody else wants to. A count that fails, or is above the limit, is taken again, up to four times more,
# by a program that gets a little all the same. The least is what the library needs.
low='' high=''
tries=$([[ $limit != - ]] && echo 5 || echo 1)
behind=(chrt --idle 0) seconds=60
for ((try = 1; try <= tries; ++try)); do
  [[ $try -eq 1 ]] || behind=(nice -n 19) seconds=300
  if ! { low=$($what "$few") && high=$($what "$many") && [[ $low =~ ^[0-9]+$ && $high =~ ^[0-9]+$ ]]; }; then
    echo "count.sh: nothing counted: '$low' '$high'" >&2
    continue
  fi
  if awk -v low="$low" -v high="$high" -v cycles=$((many - few)) -v limit="$limit" -v what="$what" \
    -v inflight="$inflight" 'BEGIN {
    cost = (high - low) / cycles
    printf "%s per cycle, %d under way: %.*f", what, inflight, cost < 100 && cost != int(cost) ? 2 : 0, cost
    if (limit != "-") printf " (limit %s)", limit
    printf "\n"
    exit cost < 0 || (cost == 0 && what != "heap") || (limit != "-" && cost > limit)
  }'; then exit 0; fi
done
exit 1
