#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# What test/run.sh makes of a stage whose packages cannot be had, and of one whose build fails. A copy of run.sh and of
# what it calls runs with stand-ins for cmake, apt-get, dpkg and the compilers, with CI set. apt-get fails as often as
# the file `failures` says, and each time that it is asked for lists; cmake fails, with the very status that means
# "cannot be had", for the preset in `broken`.
set -euo pipefail
source_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$(mktemp -d "${TMPDIR:-/tmp}/redlock-stages.XXXXXX")
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/bin" "$folder/tree"
(cd "$source_folder" && cp --parents -t "$folder/tree" test/{run,systems}.sh test/CMakeLists.txt \
  test/integration/interop/{packages.sh,package.json,package-lock.json} test/nightly/machine/fetch.sh \
  toolchains/{packages,dependencies,sysroot}.sh toolchains/arm-linux-musleabihf.cmake)

stand_in() {
  { echo '#!/bin/bash'; cat; } >"$folder/bin/$1"
  chmod +x "$folder/bin/$1"
}
stand_in sudo <<<'exec "$@"'
stand_in dpkg <<'TEXT'
if [[ $1 == -x ]]; then
  mkdir -p "$3"/usr/{bin,lib/{any/cmake/cJSON,arm-linux-musleabihf}}
  touch "$3/usr/bin/arm-linux-musleabihf-gcc" "$3/usr/lib/arm-linux-musleabihf/musl-gcc.specs"
else
  echo amd64
fi
TEXT
stand_in dpkg-query <<TEXT
! grep -qx "\${!#}" "$folder/missing" && echo "installed all"
TEXT
stand_in apt-cache <<<'echo "  Depends: linux-image-6.1-armmp"'
stand_in apt-get <<TEXT
[[ " \$* " != *" update "* ]] || exit 100
echo "\$*" >>"$folder/asked"
left=\$(<"$folder/failures")
[[ \$left -eq 0 ]] || { echo \$((left - 1)) >"$folder/failures"; exit 100; }
TEXT
stand_in npm <<TEXT
echo "npm \$*" >>"$folder/asked"
exit 1
TEXT
: >"$folder/failed"
stand_in cmake <<TEXT
[[ "\$*" != *" --preset \$(<"$folder/broken")" ]] || { echo "error: it does not compile"; exit 77; }
if [[ "\$*" == *" --preset dev" && -s "$folder/failed" ]]; then
  mkdir -p build/dev/Testing/Temporary
  cp "$folder/failed" build/dev/Testing/Temporary/LastTestsFailed.log
  cp "$folder/output" build/dev/Testing/Temporary/LastTest.log
  echo "71% tests passed, 2 tests failed out of 7"
  echo "The following tests FAILED:"
  sed 's/\(.*\):\(.*\)/\t\1 - \2 (Failed)/' "$folder/failed"
  echo "Errors while running CTest"
  exit 8
fi
echo "100% tests passed, 0 tests failed out of 7"
TEXT

# run FAILURES BROKEN [OPTION]: with so many failures of apt-get, and a preset whose build fails.
: >"$folder/missing"
run() {
  echo "$1" >"$folder/failures"
  echo "$2" >"$folder/broken"
  rm -rf "$folder/asked" "$folder/tree/build"
  status=0
  PATH=$folder/bin:$PATH CI=1 REDLOCK_FETCH_PAUSE=0 "$folder/tree/test/run.sh" "${3:---cross}" \
    >"$folder/said" 2>&1 || status=$?
}
expect() {  # WHAT: a condition that holds
  if ! eval "$1"; then
    echo "not so: $1; the exit status is $status, and this was said:"
    cat "$folder/said"
    exit 1
  fi
}
says() { sed -n '/^==== summary/,$p' "$folder/said" | grep -qE "$1"; }
asked() { grep -c "$1" "$folder/asked"; }

# Nothing for ARM can be had: three tries of each stage, and the run has not failed.
run 1000 none
for stage in armhf machine-arm musl aarch64; do
  expect 'says "^$stage +[0-9]+:[0-9]{2}  SKIPPED: .*cannot be had, tries: 3: download"'
done
expect 'says "^stages skipped: 4. A release rests on no skipped stage"'
expect '[[ $status -eq 0 && $(asked liblua5.1-0-dev) -eq 12 ]]'

# The third try succeeds, with no list but those of earlier. What is there is not asked for again.
run 2 none
expect 'says "^armhf .*passed, 7 tests" && says "^aarch64 .*passed, 7 tests"'
expect '[[ $(asked liblua5.1-0-dev) -eq 4 ]]'

# What one stage or a few tests need is done without; what all of them need is not.
printf '%s\n' universal-ctags libmbedtls-dev >"$folder/missing"
run 1000 none --tls
expect 'says "^dev .*passed, 7 tests" && says "^tls-asan .*SKIPPED: cannot be had, all of: libmbedtls-dev"'
expect 'says "^stages skipped: 3. " && says "^without these packages, .*: universal-ctags libmbedtls-dev$"'
expect '[[ $status -eq 0 ]]'
echo redis-server >>"$folder/missing"
run 1000 none --tls
expect '[[ $status -eq 1 ]] && ! says "^dev "'
: >"$folder/missing"

# A solver that cannot be had is a stage that is skipped, not a test that ctest counts as passed.
printf '%s\n' z3 mmdebstrap >"$folder/missing"
run 1000 none --all
expect 'says "^proof +[0-9]+:[0-9]{2}  SKIPPED: .*cannot be had, tries: 3: apt_install z3"'
expect 'says "^bare +[0-9]+:[0-9]{2}  SKIPPED: .*cannot be had, tries: 3: apt_install mmdebstrap"'
expect 'says "^debian13 +[0-9]+:[0-9]{2}  SKIPPED: (cannot be had, tries: 3: apt_install mmdebstrap|this needs root)"'
: >"$folder/missing"

# A build that fails is no package that is missing, whatever its status.
for preset in aarch64 armhf dev; do
  run 0 "$preset"
  expect 'says "^$preset .*FAILED before its tests: error: it does not compile"'
  expect '[[ $status -eq 1 ]]'
done

# A test with servers that fails beside others runs once more, alone. One that only computes does not, nor one that
# looks for two holders, nor any behind a report of a sanitizer or an assert.
stand_in ctest <<TEXT
[[ "\$*" == "--preset dev --rerun-failed" && \$CTEST_PARALLEL_LEVEL == 1 ]] || exit 1
echo "\$(<"$folder/alone")% tests passed, 1 tests failed out of 2"
[[ \$(<"$folder/alone") == 100 ]]
TEXT
echo '/here/test/integration/test_roles.cpp:7: Failure' >"$folder/output"
printf '%s\n' 3:integration_guard 9:python_aio >"$folder/failed"
echo 100 >"$folder/alone"
run 0 none --no-install
expect 'says "^dev .*  passed, 7 tests; not beside others, but alone: integration_guard python_aio$"'
expect '[[ $status -eq 0 ]] && says "^100% tests passed, 0 tests failed out of [0-9]+$"'
echo 50 >"$folder/alone"
run 0 none --no-install
expect 'says "^dev .*  FAILED, 2 of 7 tests: integration_guard python_aio$" && [[ $status -eq 1 ]]'
echo 100 >"$folder/alone"
for other in unit_client integration_tool_kill integration_weather integration_weather_checker; do
  printf '%s\n' 3:integration_guard "4:$other" >"$folder/failed"
  run 0 none --no-install
  expect 'says "^dev .*  FAILED, 2 of 7 tests: integration_guard $other$" && [[ $status -eq 1 ]]'
done
printf '%s\n' 3:integration_guard 4:integration_tool >"$folder/failed"
for said in '==7==ERROR: AddressSanitizer: heap-use-after-free' '/here/port/uv/names.cpp:9: next != 0' \
  'x.cpp:9:5: runtime error: signed integer overflow'; do
  echo "$said" >"$folder/output"
  run 0 none --no-install
  expect 'says "^dev .*  FAILED, 2 of 7 tests: " && [[ $status -eq 1 ]]'
done
: >"$folder/failed"

# What the stages call says so, too, each after three tries over some minutes.
stand_in sleep <<<"echo \"sleep \$*\" >>'$folder/asked'"
cd "$folder/tree"
echo 1000 >"$folder/failures"
rm -rf build
for call in "test/nightly/machine/fetch.sh $folder/guest armhf" "toolchains/dependencies.sh arm-linux-musleabihf" \
  "toolchains/sysroot.sh arm64" "test/integration/interop/packages.sh $folder/npm"; do
  rm -f "$folder/asked"
  status=0
  # shellcheck disable=SC2086
  PATH=$folder/bin:$PATH $call >"$folder/said" 2>&1 || status=$?
  expect '[[ $status -eq 77 && $(asked "download\|^npm ci") -eq 3 && $(asked "^sleep 100$") -eq 2 ]]'
done
echo "skipped and failed stages are told apart"
