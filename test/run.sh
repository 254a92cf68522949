#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Sets up, builds and tests, stage by stage, and says at the end what each one gave. A stage that fails does not stop
# the others. A stage is skipped if its packages cannot be fetched, in three tries over some minutes, or if this machine
# cannot run it. Everything is written below build/ and a folder for sockets and the like in /tmp that is removed again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<'TEXT'
usage: test/run.sh [--all] [--cross] [--tls] [--system] [--no-install | --packages]
       test/run.sh --room NAME [--no-install]
  (nothing)      native build, warnings of known compilers are errors, and all tests: eight minutes on two cores
  --all          all tests with ASan + UBSan, the models and the proof, README's blocks in an empty Debian, other lock
                 libraries on the same keys, all tests on Debian 13, a guest that is suspended, stopped and cut off,
                 clang, TSan, the release builds, what a cycle costs (counted), 32-bit ARM under qemu with a short
                 selection of tests, and in turns from commit to commit 64-bit ARM and the fuzzers, coverage and half of
                 the mutants, or both TLS libraries: about 70 minutes
  --cross        also 32- and 64-bit ARM with all tests, and static musl; its time comes on top
  --tls          also all tests with OpenSSL and with mbedTLS, then the integration tests on servers that speak TLS, and
                 with ASan and UBSan all tests with OpenSSL, and those about TLS with mbedTLS: more than 25 minutes.
                 --all runs those about TLS, with sanitizers too, and a third of the integration tests
  --system       also what another release of Debian may change: its Valkey, both TLS libraries, the packages
  --room NAME    only what one room of src/, or port/, needs, built natively, and its tests: about a minute.
                 NAME is one of ROOMS
  --no-install   do not install missing packages: print them and fail
  --packages     install them, and do no more
The ARM compilers and qemu are installed. The libraries for ARM are unpacked below build/sysroot, and none is installed.
On another release of Debian: test/systems.sh.
TEXT
}

# The rooms and their tests stand in test/CMakeLists.txt.
rooms=$(sed -nE 's/^set\(redlock_rooms (.*)\)$/\1/p' test/CMakeLists.txt)
all=no cross=no tls=no system=no install=yes packages_only=no room=
while [[ $# -gt 0 ]]; do
  case $1 in
    --all) all=yes ;;
    --cross) cross=yes ;;
    --tls) tls=yes ;;
    --system) system=yes ;;
    --no-install) install=no ;;
    --packages) packages_only=yes ;;
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
  libgmock-dev liblua5.1-0-dev python3 busybox iproute2 nftables)
# These only some stages or some tests need, which are skipped without them.
wanted=()
if [[ -z $room ]]; then wanted+=(libmodbus-dev universal-ctags abigail-tools systemd); fi
if [[ $all == yes ]]; then
  wanted+=(clang libclang-rt-dev ccache gcovr valgrind strace doxygen keepalived ser2net)
  wanted+=(mypy python3-pymodbus python3-serial-asyncio python3-setuptools python3-venv python3-wheel)
fi
of_tls='libssl-dev libmbedtls-dev openssl'
# shellcheck disable=SC2206
if [[ $all == yes || $tls == yes || $system == yes ]]; then wanted+=($of_tls); fi
if [[ $all == yes || $cross == yes || $system == yes ]]; then wanted+=(debhelper lintian); fi
if [[ $system == yes ]]; then wanted+=(valkey-server); fi
source toolchains/packages.sh
took='eight minutes'
if [[ $all == yes ]]; then took='70 minutes'; fi
if [[ -n $room ]]; then took='a minute'; fi
if [[ $packages_only == no ]]; then
  echo "==== takes about $took on two idle cores, and the time to install missing packages"
fi
{ install_missing "$install" "${packages[@]}" && install_wanted "$install" "${wanted[@]}"; } || exit 1
if [[ $packages_only == yes ]]; then exit; fi

# Most of the tests' time is waiting for servers, so more of them run than there are cores. In its depend mode ccache
# asks the compiler what a file includes, instead of running the preprocessor before it.
jobs=$(nproc)
export CMAKE_BUILD_PARALLEL_LEVEL=$jobs CTEST_PARALLEL_LEVEL=$((3 * jobs)) CTEST_OUTPUT_ON_FAILURE=1
export CCACHE_DIR=$PWD/build/ccache CCACHE_DEPEND=1 CCACHE_SLOPPINESS=pch_defines,time_macros
if [[ $all == yes ]]; then export REDLOCK_MANY=1; fi  # 200 runs of a counter instead of 40
mkdir -p build/log
TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/redlock-test.XXXXXX")
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT

# ---- stages: run_stage NAME COMMAND... ------------------------------------------------------------------------------

# These say by 77 that their packages cannot be had. For a build or a test that fails each of them returns 1.
fetching='^((bare|system|cross|musl|interop|proof|machine|machine_arm)_stage|needs)$'

names=() results=() times=() commands=()
tests_total=0 tests_failed=0 broken=0 skipped=0

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
  tests_total=$((tests_total + total))
  if [[ $status -ne 0 ]]; then tests_failed=$((tests_failed + failed)); fi

  if [[ $status -eq 0 ]]; then
    result="passed, $total tests"
    if [[ $failed -gt 0 ]]; then result+="; not beside others, but alone: $(failed_tests "$log")"; fi
  elif [[ $status -eq 77 && $1 =~ $fetching ]]; then
    result="SKIPPED: $(tail -n 1 "$log" | cut -c 1-200)"
    skipped=$((skipped + 1))
  elif [[ $failed -gt 0 ]]; then
    result="FAILED, $failed of $total tests: $(failed_tests "$log")"
    broken=$((broken + 1))
  else
    result="FAILED before its tests: $(first_error "$log")"
    broken=$((broken + 1)) tests_total=$((tests_total + 1)) tests_failed=$((tests_failed + 1))
  fi
  names+=("$name") results+=("$result") times+=($((SECONDS - begin))) commands+=("$(again "$@")")
}

# needs 'PACKAGE...' COMMAND...
needs() {
  # shellcheck disable=SC2086
  install_missing no $1 || { echo "cannot be had, all of: $1"; return 77; }
  "${@:2}" || return 1
}

# workflow PRESET: a test whose servers are slow beside five other tests runs once more, alone, if it fails, and the
# summary names it, because it waits for a time where it could await an event. There is no second try for a test that
# looks for two holders, nor behind a report of a sanitizer or an assert: what is seen once is a fault.
exclusion='owner|own_pause|roles|server_clock|stray(s|_order)|tool_(ends|kill)|wall_clock|weather.*'
workflow() {
  local logs=build/$1/Testing/Temporary
  rm -f "$logs"/Last*.log
  cmake --workflow --preset "$1" && return
  [[ -s $logs/LastTestsFailed.log && -s $logs/LastTest.log ]] || return 1
  if grep -qvE '^[0-9]+:(integration|python)_' "$logs/LastTestsFailed.log" ||
    grep -qE ":integration_($exclusion)\$" "$logs/LastTestsFailed.log" ||
    grep -qE 'Sanitizer: |runtime error: |/(src|port)/[^ ]*\.[ch]pp:[0-9]+: ' "$logs/LastTest.log"; then
    return 1
  fi
  printf '\n==== once more, one by one\n'
  # Not in the words that run_stage counts.
  CTEST_PARALLEL_LEVEL=1 ctest --preset "$1" --rerun-failed 2>&1 | sed 's/ failed out of / failed alone, out of /'
}

# What to type to see a stage again.
again() {
  case $1 in
    workflow) echo "cmake --workflow --preset $2" ;;
    needs) again "${@:3}" ;;
    cross_stage) echo "cmake --workflow --preset $2" ;;
    bare_stage) echo "test/compile/bare.sh build/bare" ;;
    system_stage) echo "test/systems.sh build/systems/$2 $2" ;;
    valkey_stage) echo "test/servers.sh build/valkey" ;;
    interop_stage) echo "cmake --workflow --preset interop" ;;
    proof_stage) echo "ctest --preset proof" ;;
    machine_stage) echo "cmake --workflow --preset machine" ;;
    machine_arm_stage) echo "cmake --workflow --preset machine-arm" ;;
    musl_stage) echo "cmake --workflow --preset musl" ;;
    fuzz_stage) echo "cmake --workflow --preset fuzz, or fuzz-mbedtls" ;;
    tls_stage | tls_all_stage) echo "test/run.sh --tls" ;;
    tls_tsan_stage) echo "test/run.sh --all" ;;
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
  if [[ $skipped -gt 0 ]]; then printf '\nstages skipped: %d. A release rests on no skipped stage.\n' "$skipped"; fi
  if [[ ${#without[@]} -gt 0 ]]; then
    printf '\nwithout these packages, and the tests that need them: %s\n' "${without[*]}"
  fi
  # The last line is in ctest's words, all stages together; a stage that did not come to its tests counts as one.
  printf '\n%d%% tests passed, %d tests failed out of %d\n' \
    $((tests_total > 0 ? (tests_total - tests_failed) * 100 / tests_total : 0)) "$tests_failed" "$tests_total"
}

# cross_stage PRESET ARCH TRIPLET: the same tests on another processor, under qemu.
cross_stage() {
  # shellcheck disable=SC2046
  { install_missing "$install" $(cross_packages "$3") && toolchains/sysroot.sh "$2"; } || return 77
  cmake --workflow --preset "$1" || return 1
}

# A static build with musl, and libuv and cJSON built with it from Debian's sources.
musl_stage() {
  # shellcheck disable=SC2046
  { install_missing "$install" $(cross_packages arm-linux-gnueabihf) patch xz-utils &&
    toolchains/sysroot.sh armhf; } || return 77
  toolchains/dependencies.sh arm-linux-musleabihf || return
  cmake --workflow --preset musl || return 1
}

# Other lock libraries on the same keys. Node.js is often here from elsewhere, and then its npm is, too.
interop_stage() {
  local packages=(python3-redis)
  command -v npm >/dev/null || packages+=(nodejs npm)
  install_missing "$install" "${packages[@]}" || return 77
  test/integration/interop/packages.sh build/interop || return
  cmake --workflow --preset interop || return 1
}

# README's blocks in an empty Debian.
bare_stage() {
  install_missing "$install" mmdebstrap || return 77
  test/compile/bare.sh build/bare
}

# The default tests on another release of Debian. Its summary is not in the words that run_stage counts.
system_stage() {
  test/systems.sh "build/systems/$1" "$1" 2>&1 | sed -u '/^==== summary/,$ s/ failed out of / failed, out of /'
}

# The integration tests on the system's other server.
valkey_stage() {
  mkdir -p build/valkey && ln -sf "$(command -v valkey-server)" build/valkey && test/servers.sh build/valkey
}

# Models and two solvers, about the protocol. Without these tools the tests would be skipped, which ctest counts as
# passed.
proof_stage() {
  { install_missing "$install" spin z3 cvc5 && type spin z3 cvc5 >/dev/null; } || return 77
  cmake --preset dev >/dev/null && ctest --preset proof || return 1
}

# Clients in a guest that is suspended, stopped and cut off.
machine_stage() {
  if [[ $(uname -m) != x86_64 ]]; then
    echo "the guest is an x86_64 machine, and this one is not"
    return 77
  fi
  install_missing "$install" qemu-system-x86 || return 77
  test/nightly/machine/fetch.sh build/machine || return
  cmake --workflow --preset machine || return 1
}

# The same on a 32-bit ARM machine, behind the stage that builds for it. Who is outside of the guest is built natively.
machine_arm_stage() {
  # shellcheck disable=SC2046
  { install_missing "$install" qemu-system-arm $(cross_packages arm-linux-gnueabihf) &&
    toolchains/sysroot.sh armhf; } || return 77
  test/nightly/machine/fetch.sh build/machine-arm armhf || return
  cmake --preset dev >/dev/null || return 1
  cmake --build --preset machine || return 1
  cmake --workflow --preset machine-arm || return 1
}

# over_tls PRESET LIBRARY TESTS: integration tests of PRESET, on the library of another preset and on servers that speak
# TLS. A program loads the library that LD_LIBRARY_PATH names, so nothing is built again. What is long without TLS is
# not repeated as often here.
over_tls() {
  env -u REDLOCK_MANY REDLOCK_TEST_TLS="$TMPDIR/tls" LD_LIBRARY_PATH="$PWD/build/$2" \
    ctest --preset "$1" -R "^integration_($3)\$"
}

# What is about TLS with both libraries; and of the integration tests that dev has built a third with OpenSSL, and fewer
# with mbedTLS. Left out are those that are about sockets or servers by themselves, or link libredlock_site. Both wait
# for most of their time, so they run side by side.
tls_third='call_table|fence_scripts|hpp|log|name_lookup|own_pause|polled_mode|strays|thread_create'
tls_third+='|visits|waiting'
tls_few='call_table|fence_scripts|hpp|log|name_lookup|own_pause|polled_mode|strays|waiting'
tls_stage() {
  local few status=0
  cmake --workflow --preset tls-openssl-short && cmake --workflow --preset tls-mbedtls-short &&
    test/support/tls_folder.sh "$TMPDIR/tls" || return
  over_tls dev tls-mbedtls "$tls_few" >"$TMPDIR/few" 2>&1 &
  few=$!
  over_tls dev tls-openssl "$tls_third" || status=$?
  wait "$few" || status=$?
  cat "$TMPDIR/few"
  return "$status"
}

# Clients with a thread of their own, with TSan on servers that speak TLS. The programs are those that the stage tsan
# has built, and that stage has run the tests about TLS with OpenSSL.
tls_threads='thread_mode'
tls_tsan_stage() {
  local mbedtls status=0
  cmake --preset tsan-mbedtls >/dev/null && cmake --build --preset tsan-mbedtls &&
    test/support/tls_folder.sh "$TMPDIR/tls" || return
  over_tls tsan tsan-mbedtls "$tls_threads" >"$TMPDIR/mbedtls" 2>&1 &
  mbedtls=$!
  over_tls tsan tsan "$tls_threads" || status=$?
  wait "$mbedtls" || status=$?
  cat "$TMPDIR/mbedtls"
  ctest --preset tsan-mbedtls || status=$?
  return "$status"
}

# The second run is the fuzzer that crosses the engine, with the other engine.
fuzz_stage() {
  local preset status=0
  for preset in fuzz fuzz-mbedtls; do
    CTEST_PARALLEL_LEVEL="$jobs" cmake --workflow --preset "$preset" || status=$?
  done
  return "$status"
}

# All tests with LIBRARY on plain servers, and the integration tests on servers that speak TLS.
tls_all_stage() {
  REDLOCK_MANY=1 cmake --workflow --preset "$1" && test/support/tls_folder.sh "$TMPDIR/tls" &&
    over_tls "$1" "$1" "$tls_third|guard|guard_scripts|roles|thread_mode"
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

run_stage dev workflow dev
# The tests about TLS with OpenSSL are among those that need ASan and UBSan anyway: one build serves all of them.
if [[ $all == yes || $tls == yes ]]; then run_stage asan needs libssl-dev workflow asan-openssl; fi
if [[ $all == yes ]]; then
  # What seldom shows more than the other stages takes turns, so that all of them end well within 80 minutes: three
  # commits in a row show everything but the mutants, of which each third commit shows a half. A clone without the
  # history always shows the same.
  commits=$(git rev-list --count HEAD 2>/dev/null || echo 0)
  turn=$((commits % 3)) mutants_part=$((commits / 3 % 2))/2
  run_stage proof proof_stage
  run_stage bare bare_stage
  run_stage interop interop_stage
  run_stage debian13 system_stage trixie
  run_stage machine machine_stage
  run_stage clang needs clang cmake --workflow --preset clang
  run_stage tsan needs "$of_tls" workflow tsan
  run_stage release cmake --workflow --preset release
  run_stage static cmake --workflow --preset static
  run_stage bench needs 'valgrind strace' cmake --workflow --preset bench
  if [[ $cross == no ]]; then
    run_stage armhf cross_stage armhf-short armhf arm-linux-gnueabihf
    run_stage machine-arm machine_arm_stage
  fi
  case $turn in
    0)
      if [[ $cross == no ]]; then run_stage aarch64 cross_stage aarch64-short arm64 aarch64-linux-gnu; fi
      run_stage fuzz needs "clang libclang-rt-dev $of_tls" fuzz_stage
      ;;
    1)
      run_stage coverage needs gcovr test/coverage.sh
      run_stage mutants needs "universal-ctags $of_tls" test/sim/mutants.sh --jobs "$jobs" --part "$mutants_part"
      ;;
    2)
      run_stage tls needs "$of_tls" tls_stage
      run_stage tls-tsan needs "$of_tls" tls_tsan_stage
      ;;
  esac
  run_stage rule needs 'universal-ctags z3 cvc5' test/break-a-rule.sh 'SET without NX'
fi
if [[ $system == yes ]]; then
  run_stage tls needs "$of_tls" tls_stage
  run_stage packages needs 'debhelper lintian' cmake --workflow --preset release
  run_stage valkey needs valkey-server valkey_stage
fi
if [[ $cross == yes ]]; then
  run_stage armhf cross_stage armhf armhf arm-linux-gnueabihf
  run_stage machine-arm machine_arm_stage
  run_stage aarch64 cross_stage aarch64 arm64 aarch64-linux-gnu
  run_stage musl musl_stage
fi
if [[ $tls == yes ]]; then
  run_stage tls-openssl needs "$of_tls" tls_all_stage tls-openssl
  run_stage tls-mbedtls needs "$of_tls" tls_all_stage tls-mbedtls
fi
if [[ $tls == yes || $all == yes && $turn -eq 2 ]]; then
  run_stage tls-asan needs libmbedtls-dev cmake --workflow --preset asan-mbedtls
fi

summary
[[ $broken -eq 0 && $tests_total -gt 0 ]]
