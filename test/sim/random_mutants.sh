#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# What do the tests not see that nobody thought of? N bugs of one token each are drawn from the library, its scripts,
# the tool and the Python module (random_mutants.py), and shown to the simulator, and then to the tests of the room that
# the bug is in. Each that escapes is a hole in the tests, or changes nothing that anybody could see: a person has to
# judge. Some do not compile, and show nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
if [[ $# -lt 2 || ! $1 =~ ^[1-9][0-9]*$ || ! $2 =~ ^[0-9]+$ ]]; then
  echo 'usage: test/sim/random_mutants.sh N SEED [ROOM...]     core, config, run, site, tool, python; all of them' >&2
  exit 2
fi
build=build/random_mutants status=0
rm -rf "$build/mutants"
mkdir -p "$build/mutants"
python3 test/sim/random_mutants.py "$1" "$2" . "$build/mutants" "${@:3}" >"$build/rooms"
while read -r room tests; do
  echo "$room:"
  seeds=4000
  if [[ $room =~ ^(config|tool|python)$ ]]; then seeds=1; fi  # the simulator has none of these
  test/sim/mutants.sh --seeds "$seeds" --build "$build" --mutants "$build/mutants/$room" \
    --tests "$tests" </dev/null || status=$?
done <"$build/rooms"
exit "$status"
