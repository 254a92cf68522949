#!/bin/sh
# SPDX-License-Identifier: MIT
#
# shell_gateway.sh: a gateway that is a shell script. Each of its jobs is a program that knows of no lock, and talks to
# the device under `redlock run`:
#
#     shell_gateway.sh REDLOCK JOBS THINK_MS JOB [ARG]...
#
# REDLOCK is the program, or "redlock". Tries JOB, with its arguments, JOBS times, with pauses of THINK_MS; with 0 it
# goes on until SIGTERM. Prints what it did as one JSON line. The masters are in $REDLOCK_CONFIG.
set -u
redlock=$1 jobs=$2 think_s=$(($3 / 1000)).$(printf %03d $(($3 % 1000)))
shift 3

good=0 tries=0 waits='' ending=''
trap 'ending=yes' TERM INT

while [ -z "$ending" ] && { [ "$jobs" -eq 0 ] || [ "$tries" -lt "$jobs" ]; }; do
  sleep "$think_s"
  tries=$((tries + 1)) asked_ms=$(date +%s%3N)
  export asked_ms
  # The job says how long it has waited.
  # shellcheck disable=SC2016 # the inner shell expands it
  if wait_ms=$("$redlock" run -w 10 shared-device -- \
    sh -c 'echo $(($(date +%s%3N) - asked_ms)); exec "$@" >/dev/null' sh "$@"); then
    good=$((good + 1)) waits=$waits${waits:+,}$wait_ms
  fi
done
printf '{"jobs":%d,"failed":%d,"waits_ms":[%s]}\n' "$good" $((tries - good)) "$waits"
