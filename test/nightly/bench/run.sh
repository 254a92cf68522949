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
  PHASE        latency throughput rtt degraded growth handover turns counts profile fencing guard tls picture; all of
               them when none is named. picture: build/bench/bench.svg, latency and throughput
  --rounds R   each program so often, in turn (5)
  --quick      a tenth of the cycles: to see that it works
TEXT
}

install=yes arguments=() packages=(build-essential cmake ninja-build pkg-config libuv1-dev libcjson-dev redis-server
  python3 libhiredis-dev valgrind strace libssl-dev libmbedtls-dev openssl)
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
  cmake --build --preset $preset --target cycle_bench with_masters raw_limit delay_proxy redlock_heap_count >/dev/null
done
cmake --build --preset bench --target hiredis_uv >/dev/null || echo "hiredis is not there: without its rows" >&2

# Phases are words without a dash: with none of them, or with tls among them, TLS is measured.
phases=" $(printf '%s\n' "${arguments[@]}" | grep -E '^[a-z]+$' | tr '\n' ' ')"
if [[ $phases == " " || $phases == *" tls "* ]]; then
  for engine in openssl mbedtls; do
    cmake --preset bench -B build/bench-$engine -DREDLOCK_TLS=$engine >/dev/null
    cmake --build build/bench-$engine --target cycle_bench raw_limit_tls >/dev/null
  done
  export REDLOCK_TEST_TLS=$PWD/build/bench/tls
  test/support/tls_folder.sh "$REDLOCK_TEST_TLS" >/dev/null 2>&1
fi
exec python3 test/nightly/bench/bench.py "${arguments[@]}"
