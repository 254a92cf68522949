#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# demo.sh: some gateways read one device on one RS-485 line, without the lock and with it. Prints what they counted, and
# what the wire saw. Exit status 1: with the lock a wrong value was taken for right, two sent in one frame, or nothing
# was read; or without it nobody interrupted anybody, and the run shows nothing. Time-outs are no failure: on a busy
# machine the wire itself comes too late.
set -euo pipefail

programs=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/build/examples
gateways=4 seconds=5 gateway=()
usage() {
  cat <<END
usage: examples/modbus/demo.sh [options] CONFIG.json | URL...
  --gateways N     1 .. 16 (default $gateways)
  --seconds N      with and without the lock each (default $seconds)
  --python         gateways are guarded.py: Python and pymodbus; --async: the same with asyncio
  --programs DIR   where modbus_wire and modbus_gateway are (default build/examples); run by \$REDLOCK_EMULATOR if set
END
}
while (($# > 1)) && [[ $1 == --* ]]; do
  case $1 in
    --python | --async)
      gateway=("${REDLOCK_PYTHON:-python3}" -B "$(dirname "${BASH_SOURCE[0]}")/guarded.py")
      [[ $1 == --python ]] || gateway+=(--async)
      shift
      continue
      ;;
    --gateways) gateways=$2 ;;
    --seconds) seconds=$2 ;;
    --programs) programs=$2 ;;
    *) usage >&2 && exit 2 ;;
  esac
  shift 2
done
if (($# == 0)) || [[ $1 == --* ]]; then usage >&2 && exit 2; fi

read -ra emulator <<<"${REDLOCK_EMULATOR:-}" || true
command=("${emulator[@]}" "$programs/modbus_gateway")
if ((${#gateway[@]} > 0)); then command=("${gateway[@]}"); fi
out=$(mktemp -d)
take_down() {
  local pid
  for pid in $(jobs -p); do kill -KILL "$pid" 2>/dev/null || true; done
  rm -rf "$out"
}
trap take_down EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

sum() { # field, of the JSON lines in the files
  local field=$1
  shift
  sed -n "s/.*\"$field\":\([0-9]*\).*/\1/p" "$@" | awk '{ n += $1 } END { print n + 0 }'
}

row() { printf '%-12s %10s %11s %10s %13s %12s %12s\n' "$@"; }

run() { # title, options of the gateways
  local title=$1 wire pid tty ttys=() pids=()
  shift
  : >"$out/wire"
  "${emulator[@]}" "$programs/modbus_wire" "$gateways" >"$out/wire" &
  wire=$!
  while (($(wc -l <"$out/wire") < gateways)); do
    kill -0 "$wire" 2>/dev/null || exit 1
    sleep 0.02
  done
  mapfile -t ttys <"$out/wire"
  for tty in "${ttys[@]}"; do
    "${command[@]}" "${@:1:options}" --seconds "$seconds" "$tty" "${@:options+1}" \
      >"$out/gateway-${#pids[@]}" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid"; done
  kill -TERM "$wire"
  wait "$wire"
  wrong=$(sum wrong "$out"/gateway-*)
  two_senders=$(sum two_senders "$out/wire")
  good=$(sum good "$out"/gateway-*)
  row "$title" "$good" "$(sum crc_errors "$out"/gateway-*)" "$(sum time_outs "$out"/gateway-*)" "$wrong" \
    "$two_senders" "$(sum stalls "$out/wire")"
}

row '' 'good reads' 'CRC errors' time-outs 'wrong values' 'two senders' 'wire stalls'
problems=()
options=1 run 'no lock' --no-lock "$@"
((two_senders > 0)) || problems+=('without the lock nobody interrupted anybody: this run shows nothing')
options=0 run lock "$@"
((wrong == 0)) || problems+=("$wrong wrong values with the lock")
((two_senders == 0)) || problems+=("$two_senders frames of two senders with the lock")
((good > 0)) || problems+=('nothing was read with the lock')
if ((${#problems[@]} > 0)); then
  printf 'demo: FAILED: %s\n' "${problems[@]}" >&2
  exit 1
fi
