#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# usage: test/sim/replay_test.sh REDLOCK_SIM
# An assert that traps ends a run with the line that replays the seed: in the worlds in which the assert failed. Here
# somebody else sends the signal of the trap.
set -euo pipefail
said=$(mktemp "${TMPDIR:-/tmp}/redlock-replay.XXXXXX")
trap 'rm -f "$said"' EXIT
for worlds in '' ' --no-swarm' ' --clocks' ' --moves' ' --clocks --proof'; do
  # shellcheck disable=SC2086
  "$1" --seeds 1000000 --no-progress $worlds >"$said" &
  simulator=$!
  until job=$(pgrep -P "$simulator"); do :; done
  kill -ABRT "$job"
  status=0
  wait "$simulator" || status=$?
  if [[ $status -ne 1 ]] || ! grep -qE "^replay: redlock_sim --seed [0-9]+$worlds --trace$" "$said"; then
    echo "with '$worlds' the exit status is $status, and this was said:"
    cat "$said"
    exit 1
  fi
done
