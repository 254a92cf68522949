#!/bin/sh
# SPDX-License-Identifier: MIT
#
# printers.sh: three gateways share two printers. Each job goes to whichever printer is free. A printer that is broken
# is left out: its line in the gateway's list begins with #.
#
#     printers.sh [REDLOCK]
#
# REDLOCK is the program, or "redlock". The masters are in $REDLOCK_CONFIG.
set -eu
redlock=${1-redlock}
cd "$(mktemp -d)"
trap 'rm -r "$PWD"' EXIT
printf 'printer-1\nprinter-2\n' >printers

# gateway NUMBER: prints three jobs.
gateway() {
  for job in 1 2 3; do
    # shellcheck disable=SC2016,SC2046 # the inner shell expands its words; each name is a word
    "$redlock" run -w 30 --any $(grep -v '^#' printers) -- \
      sh -c 'echo "gateway $1, job $2: $REDLOCK_RESOURCE"; sleep 0.1' sh "$1" "$job"
  done
}

gateway 1 & gateway 2 & gateway 3 &
wait
printf '#printer-1\nprinter-2\n' >printers
gateway 4
