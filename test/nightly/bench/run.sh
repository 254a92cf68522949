#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Builds the library as it is measured (-O2) and as it ships (-Os), then measures it beside the limit and beside hiredis
# on libuv, in turn, on redis-servers of its own. Everything is written below build/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

usage() {
  cat <<'TEXT'
usage: test/nightly/bench/run.sh [--rounds R] [--quick] [--no-install] [PHASE...]
  PHASE        latency throughput growth handover turns counts profile fencing guard picture; all of them when none is
               named. picture: build/bench/bench.svg, latency and throughput
  --rounds R   each program so often, in turn (5)
  --quick      a tenth of the cycles: to see that it works
TEXT
}

install=yes arguments=() packages=(build-essential cmake ninja-build pkg-config libuv1-dev libcjson-dev redis-server
  python3 libhiredis-dev valgrind strace)
for argument in "$@"; do
  case $argument in
    --no-install) install=no ;;
    --help | -h) usage; exit 0 ;;
    *) arguments+=("$argument") ;;
  esac
done
source toolchains/packages.sh
install_missing "$install" "${packages[@]}" || exit 1

for preset in bench release; do
  cmake --preset $preset >/dev/null
  cmake --build --preset $preset --target cycle_bench with_masters raw_limit redlock_heap_count >/dev/null
done
cmake --build --preset bench --target hiredis_uv >/dev/null || echo "hiredis is not there: without its rows" >&2

exec python3 test/nightly/bench/bench.py "${arguments[@]}"
