#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# What do the tests not see that nobody thought of? N bugs of one token each are drawn from the lock, the masters, the
# client and the scripts (random_mutants.py), and shown to the simulator, and then to the unit tests, the scenarios and
# the tests that compare the double and its scripts with a real server. Each that escapes is a hole in the tests, or
# changes nothing that anybody could see: a person has to judge. Some do not compile, and show nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
if [[ $# -ne 2 || ! $1 =~ ^[1-9][0-9]*$ || ! $2 =~ ^[0-9]+$ ]]; then
  echo 'usage: test/sim/random_mutants.sh N SEED' >&2
  exit 2
fi
build=build/random_mutants
mkdir -p "$build/mutants"
python3 test/sim/random_mutants.py "$1" "$2" . >"$build/mutants/random.txt"
exec test/sim/mutants.sh --build "$build" --mutants "$build/mutants" \
  --tests '^(unit_|scenario_|spec_|integration_(redis_double_conformance|fence_scripts|guard_scripts)$)'
