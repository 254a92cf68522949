#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# What do the tests reach? Builds the preset `coverage`, runs the tests that need no server, and prints with gcovr the
# lines and branches of each file. src/lock, src/resp, src/master and the claims are to be reached entirely: what is
# missing is printed, and this fails. The others are shown for information, since much of them is reached by integration
# tests, which do not run here.
#
# Counted are the library's own objects, and the unit tests' for what stands in headers. Not counted is the branch of a
# `switch` for a value that its enum does not have: that each enumerator has a case is the compiler's to see (-Wswitch),
# and that each case is reached is a line. Between GCOVR_EXCL_BR_START and _STOP
# a comment says why a branch is not reached.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() { echo "usage: test/coverage.sh [BUILD-DIRECTORY]     (build/coverage)"; }

build=build/coverage
case ${1:-} in
  --help | -h) usage; exit 0 ;;
  -*) usage >&2; exit 2 ;;
  ?*) build=$1 ;;
esac
if [[ $# -gt 1 ]]; then usage >&2; exit 2; fi
source toolchains/packages.sh
install_missing no gcovr || exit 1

cmake --preset coverage -B "$build"
cmake --build "$build" --target unit_tests scenario_run redlock_sim
find "$build" -name '*.gcda' -delete
ctest --test-dir "$build" -L '^(unit|scenario|sim)$' --output-on-failure

tests='(scenario_run|redlock_sim(ulated)?|redlock_test_support|(sim|fuzz|integration|bench)_[a-z_]*)'
report() {
  gcovr --root . --object-directory "$build" --exclude-branches-by-pattern '^\s*switch \(.*' \
    --exclude-directories ".*/$tests\\.dir" \
    "$@" "$build"
}
echo "For information:"
report --filter 'src/(base|client|config|c_api|run|site)/' --filter port/
report --branches --filter 'src/(base|client|config|c_api|run|site)/' --filter port/
# The last line names what is missing, for whoever sees no more than that.
entirely() {
  local table status=0
  table=$(report --filter 'src/(lock/|resp/|master/|client/claims)' "$@") || status=$?
  echo "$table"
  [[ $status -ne 0 ]] || return 0
  awk '/^src\// && $4 !~ /^(100|--)%$/ { missing = missing " " $1 " line " $5 ";" }
    END { print "error: not reached:" missing }' <<<"$table"
  return 1
}
echo "To be reached entirely:"
entirely --fail-under-line 100
entirely --branches --fail-under-branch 100
