#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Sets up, builds and tests, stage by stage, and says at the end what each one gave. A stage that fails does not stop
# the others. Everything is written below build/ and a folder for sockets and the like in /tmp that is removed again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<'TEXT'
usage: test/run.sh [--all] [--cross] [--tls] [--no-install]
       test/run.sh --room NAME [--no-install]
  (nothing)      native build with warnings as errors, and ASan + UBSan; all tests: about 10 minutes on two cores
  --all          also other lock libraries on the same keys, a guest that is suspended, stopped and cut off, clang,
                 TSan, the release builds, what a cycle costs (counted), TLS, 32- and 64-bit ARM under qemu with a
                 short selection of tests, coverage, the fuzzers and the mutants: about 50 minutes
  --cross        also 32- and 64-bit ARM with all tests, and static musl; its time is not part of those 50 minutes
  --tls          also all tests with OpenSSL and with mbedTLS, and then the integration tests on servers that speak
                 TLS: about 25 minutes. --all runs those about TLS, and a third of the integration tests
  --room NAME    only what one room of src/, or port/, needs, built natively, and its tests: about a minute.
                 NAME is one of ROOMS
  --no-install   do not install missing packages: print them and fail
TEXT
}

# The rooms and their tests stand in test/CMakeLists.txt.
rooms=$(sed -nE 's/^set\(redlock_rooms (.*)\)$/\1/p' test/CMakeLists.txt)
all=no cross=no tls=no install=yes room=
while [[ $# -gt 0 ]]; do
  case $1 in
    --all) all=yes ;;
    --cross) cross=yes ;;
    --tls) tls=yes ;;
    --no-install) install=no ;;
    --room)
      room=${2:-}
      if [[ -z $room || " $rooms " != *" $room "* ]]; then
        echo "--room wants one of: $rooms" >&2
        exit 2
      fi
      shift
      ;;
    --help | -h) usage | sed "s/ROOMS/$rooms/"; exit 0 ;;
    *) usage | sed "s/ROOMS/$rooms/" >&2; exit 2 ;;
  esac
  shift
done

packages=(build-essential cmake ninja-build pkg-config libuv1-dev libcjson-dev redis-server libgtest-dev
  libgmock-dev python3 busybox iproute2 nftables)
if [[ -z $room ]]; then packages+=(libbenchmark-dev libmodbus-dev spin universal-ctags abigail-tools); fi
if [[ $all == yes ]]; then packages+=(clang libclang-rt-dev ccache gcovr valgrind strace doxygen); fi
if [[ $all == yes || $tls == yes ]]; then packages+=(libssl-dev libmbedtls-dev openssl); fi
if [[ $all == yes || $cross == yes ]]; then packages+=(debhelper lintian); fi
source toolchains/packages.sh
install_missing "$install" "${packages[@]}" || exit 1

# Half of the tests' time is waiting for servers, so more of them run than there are cores. In its depend mode ccache
# asks the compiler what a file includes, instead of running the preprocessor before it.
jobs=$(nproc)
export CMAKE_BUILD_PARALLEL_LEVEL=$jobs CTEST_PARALLEL_LEVEL=$((2 * jobs)) CTEST_OUTPUT_ON_FAILURE=1
export CCACHE_DIR=$PWD/build/ccache CCACHE_DEPEND=1 CCACHE_SLOPPINESS=pch_defines,time_macros
if [[ $all == yes ]]; then export REDLOCK_MANY=1; fi  # 200 runs of a counter instead of 40
mkdir -p build/log
TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/redlock-test.XXXXXX")
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT

# ---- stages: run_stage NAME COMMAND...; status 77 of the command means that this machine cannot run it --------------

names=() results=() times=() commands=()
tests_total=0 tests_failed=0 broken=0

run_stage() {
  local name=$1 log=build/log/$1.log begin=$SECONDS status result total=0 failed=0
  shift
  printf '\n==== %s: %s\n' "$name" "$*"
  set +e
  "$@" 2>&1 | tee "$log"
  status=${PIPESTATUS[0]}
  set -e

  # ctest counts what ran; several runs of one stage add up.
  while read -r failed_here total_here; do
    failed=$((failed + failed_here)) total=$((total + total_here))
  done < <(sed -nE 's/^[0-9]+% tests passed, ([0-9]+) tests? failed out of ([0-9]+)$/\1 \2/p' "$log")
  tests_total=$((tests_total + total)) tests_failed=$((tests_failed + failed))

  if [[ $status -eq 0 ]]; then
    result="passed, $total tests"
  elif [[ $status -eq 77 && -z ${CI:-} ]]; then
    result="skipped: $(tail -n 1 "$log")"
  elif [[ $failed -gt 0 ]]; then
    result="FAILED, $failed of $total tests: $(failed_tests "$log")"
    broken=$((broken + 1))
  else
    result="FAILED before its tests: $(first_error "$log")"
    broken=$((broken + 1)) tests_total=$((tests_total + 1)) tests_failed=$((tests_failed + 1))
  fi
  names+=("$name") results+=("$result") times+=($((SECONDS - begin))) commands+=("$(again "$@")")
}

# What to type to see a stage again.
again() {
  case $1 in
    cross_stage) echo "cmake --workflow --preset $2" ;;
    interop_stage) echo "cmake --workflow --preset interop" ;;
    machine_stage) echo "cmake --workflow --preset machine" ;;
    machine_arm_stage) echo "cmake --workflow --preset machine-arm" ;;
    musl_stage) echo "cmake --workflow --preset musl" ;;
    tls_stage | tls_all_stage) echo "test/run.sh --tls" ;;
    room_stage) echo "test/run.sh --room $2" ;;
    *) echo "$*" ;;
  esac
}

failed_tests() {
  sed -n '/^The following tests FAILED:/,/^Errors while/ s/^[[:space:]]*[0-9]* - \([^ ]*\) (.*/\1/p' "$1" | xargs
}

first_error() {
  local line
  line=$(grep -m1 -E 'error:|CMake Error|undefined reference' "$1" || tail -n 1 "$1")
  echo "${line:0:200}"
}

summary() {
  local i
  printf '\n==== summary\n'
  for i in "${!names[@]}"; do
    printf '%-11s %3d:%02d  %s\n' "${names[i]}" $((times[i] / 60)) $((times[i] % 60)) "${results[i]}"
    if [[ ${results[i]} == FAILED* ]]; then
      printf '%19s again: %s\n%19s log:   build/log/%s.log\n' '' "${commands[i]}" '' "${names[i]}"
    fi
  done
  # The last line is in ctest's words, all stages together; a stage that did not come to its tests counts as one.
  printf '\n%d%% tests passed, %d tests failed out of %d\n' \
    $((tests_total > 0 ? (tests_total - tests_failed) * 100 / tests_total : 0)) "$tests_failed" "$tests_total"
}

# cross_stage PRESET ARCH TRIPLET: the same tests on another processor, under qemu. 77 where it cannot be built for.
cross_stage() {
  # shellcheck disable=SC2046
  if ! install_missing "$install" $(cross_packages "$2" "$3") || ! command -v "$3-g++"; then
    echo "the packages of a cross build for $2 cannot be installed here"
    return 77
  fi
  cmake --workflow --preset "$1"
}

# A static build with musl, and libuv and cJSON built with it from Debian's sources.
musl_stage() {
  # shellcheck disable=SC2046
  if ! install_missing "$install" $(musl_packages) patch xz-utils ||
    ! toolchains/dependencies.sh arm-linux-musleabihf; then
    echo "musl for armhf, or the sources of libuv and cJSON, cannot be had here"
    return 77
  fi
  cmake --workflow --preset musl
}

# Other lock libraries on the same keys. Node.js is often here from elsewhere, and then its npm is, too.
interop_stage() {
  local packages=(python3-redis)
  command -v npm >/dev/null || packages+=(nodejs npm)
  if ! install_missing "$install" "${packages[@]}" || ! test/integration/interop/packages.sh build/interop; then
    echo "python3-redis, npm, or the packages of npm's registry cannot be had here"
    return 77
  fi
  cmake --workflow --preset interop
}

# Clients in a guest that is suspended, stopped and cut off.
machine_stage() {
  if [[ $(uname -m) != x86_64 ]] || ! install_missing "$install" qemu-system-x86 ||
    ! test/machine/fetch.sh build/machine; then
    echo "qemu-system-x86, or Debian's kernel for virtual machines, cannot be had here"
    return 77
  fi
  cmake --workflow --preset machine
}

# The same on a 32-bit ARM machine, behind the stage that builds for it. Who is outside of the guest is built natively.
machine_arm_stage() {
  # shellcheck disable=SC2046
  if ! install_missing "$install" qemu-system-arm $(cross_packages armhf arm-linux-gnueabihf) ||
    ! test/machine/fetch.sh build/machine-arm armhf; then
    echo "qemu-system-arm, or Debian's kernel for 32-bit ARM, cannot be had here"
    return 77
  fi
  cmake --preset dev >/dev/null && cmake --build --preset machine && cmake --workflow --preset machine-arm
}

# over_tls PRESET LIBRARY TESTS: integration tests of PRESET, on the library of another preset and on servers that speak
# TLS. A program loads the library that LD_LIBRARY_PATH names, so nothing is built again. What is long without TLS is
# not repeated as often here.
over_tls() {
  env -u REDLOCK_MANY REDLOCK_TEST_TLS="$TMPDIR/tls" LD_LIBRARY_PATH="$PWD/build/$2" \
    ctest --preset "$1" -R "^integration_($3)\$"
}

# What is about TLS with both libraries; and of the integration tests that dev has built a third with OpenSSL, and ten
# with mbedTLS. Left out are those that are about sockets or servers by themselves, or link libredlock_site. Both wait
# for most of their time, so they run side by side.
tls_third='call_table|fence_scripts|foreign_keys|hpp|lock_contention|log|name_lookup|polled_mode|report|several'
tls_third+='|stray_order|strays|thread_create|visits|waiting'
tls_ten='call_table|fence_scripts|hpp|log|name_lookup|polled_mode|report|several|strays|waiting'
tls_stage() {
  local ten status=0
  cmake --workflow --preset tls-openssl-short && cmake --workflow --preset tls-mbedtls-short &&
    test/support/tls_folder.sh "$TMPDIR/tls" || return
  over_tls dev tls-mbedtls "$tls_ten" >"$TMPDIR/ten" 2>&1 &
  ten=$!
  over_tls dev tls-openssl "$tls_third" || status=$?
  wait "$ten" || status=$?
  cat "$TMPDIR/ten"
  return "$status"
}

# All tests with LIBRARY on plain servers, and the integration tests on servers that speak TLS.
tls_all_stage() {
  REDLOCK_MANY=1 cmake --workflow --preset "$1" && test/support/tls_folder.sh "$TMPDIR/tls" &&
    over_tls "$1" "$1" "$tls_third|campaign|guard|guard_scripts|roles|thread_mode"
}

# The tests of one room. The whole dev preset is configured, so that its build folder serves every room.
room_stage() {
  cmake --preset dev >/dev/null && cmake --build --preset dev --target "room_$1" &&
    ctest --preset dev -L "^room_$1\$"
}

if [[ -n $room ]]; then
  run_stage "$room" room_stage "$room"
  summary
  [[ $broken -eq 0 && $tests_total -gt 0 ]]
  exit
fi

run_stage dev cmake --workflow --preset dev
run_stage asan cmake --workflow --preset asan
if [[ $all == yes ]]; then
  run_stage interop interop_stage
  run_stage machine machine_stage
  run_stage clang cmake --workflow --preset clang
  run_stage tsan cmake --workflow --preset tsan
  run_stage release cmake --workflow --preset release
  run_stage static cmake --workflow --preset static
  run_stage bench cmake --workflow --preset bench
  run_stage tls tls_stage
  if [[ $cross == no ]]; then
    run_stage armhf cross_stage armhf-short armhf arm-linux-gnueabihf
    run_stage machine-arm machine_arm_stage
    run_stage aarch64 cross_stage aarch64-short arm64 aarch64-linux-gnu
  fi
  run_stage coverage test/coverage.sh
  run_stage fuzz env CTEST_PARALLEL_LEVEL="$jobs" cmake --workflow --preset fuzz
  run_stage mutants test/sim/mutants.sh --jobs "$jobs"
fi
if [[ $cross == yes ]]; then
  run_stage armhf cross_stage armhf armhf arm-linux-gnueabihf
  run_stage machine-arm machine_arm_stage
  run_stage aarch64 cross_stage aarch64 arm64 aarch64-linux-gnu
  run_stage musl musl_stage
fi
if [[ $tls == yes ]]; then
  run_stage tls-openssl tls_all_stage tls-openssl
  run_stage tls-mbedtls tls_all_stage tls-mbedtls
fi

summary
[[ $broken -eq 0 && $tests_total -gt 0 ]]
