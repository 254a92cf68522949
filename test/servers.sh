#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Runs the integration tests against other servers than the one in PATH, one folder after the other, and prints a table.
# A case that fails is named. A program that ends before its cases are told (a crash, a time-out) counts as one more
# failure, by its ctest name.
set -euo pipefail
begun_in=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<'TEXT'
usage: test/servers.sh [-R REGEX] [-b BUILD] FOLDER...
       test/servers.sh --fetch FOLDER [NAME-VERSION...]
  FOLDER         holds a redis-server, a valkey-server or a redict-server
  -R REGEX       only the integration tests whose ctest name matches, e.g. -R 'scripts|conformance|strays'
  -b BUILD       a build folder with the tests: build/dev if none is named; servers.sh builds what it lacks
  --fetch        builds the servers that we try from Debian's source packages, each into FOLDER/NAME-VERSION
TEXT
}

if [[ ${1:-} == --fetch && $# -ge 2 ]]; then
  shift
  [[ $1 == /* ]] || set -- "$begun_in/$1" "${@:2}"
  exec test/support/fetch_servers.sh "$@"
fi

build=build/dev regex=.
while getopts R:b:h option; do
  case $option in
    R) regex=$OPTARG ;;
    b) build=$OPTARG ;;
    h) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
done
shift $((OPTIND - 1))
[[ $# -gt 0 ]] || { usage >&2; exit 2; }

# The server's program in a folder, or nothing.
program_in() {
  local name
  for name in redis-server valkey-server redict-server; do
    if [[ -x $1/$name ]]; then
      echo "$(cd "$1" && pwd)/$name"
      return
    fi
  done
}

# "Redis server v=7.0.15 sha=... " becomes "redis 7.0.15".
version_of() { "$1" --version | sed -E 's/^([A-Za-z]+) server v=([^ ]+).*/\1 \2/' | tr '[:upper:]' '[:lower:]'; }

# Cases of a log of `ctest --verbose` that have ended so. A case that failed is named twice, the second time in the
# program's summary, without its time.
cases() { sed -nE "s/^[0-9]+: \[ +$1 +\] ([^ ,]+)(, where .*)? \([0-9]+ ms\)\r?$/\1/p" "$2"; }

# Programs that ctest counts as failed, and that name no case that failed.
broken_programs() {
  local number name
  sed -nE '/^The following tests FAILED:/,$ s/^[[:space:]]*([0-9]+) - ([^ ]+) \(.*/\1 \2/p' "$1" |
    while read -r number name; do grep -qE "^$number: \[  FAILED  \]" "$1" || echo "$name"; done
}

# How a server, by its log, answers what integration_server_facts asks: NAME yes, NO, or an answer that differs.
facts() {
  sed -nE 's/^[0-9]+: answer of ([A-Za-z]+): (.*)/\1 \2/p
    s/^[0-9]+: \[       OK \] ServerFacts\.([A-Za-z]+) .*/\1 yes/p
    s/^[0-9]+: \[  FAILED  \] ServerFacts\.([A-Za-z]+) .*ms\).*/\1 NO/p' "$1" | sort -u -k 1,1 -s
}

servers=()
for folder in "$@"; do
  [[ $folder == /* ]] || folder=$begun_in/$folder
  server=$(program_in "$folder")
  [[ -n $server ]] || { echo "$folder holds none of redis-server, valkey-server and redict-server" >&2; exit 2; }
  servers+=("$server")
done
cmake --build "$build" --target integration_tests
mkdir -p build/log

rows=() failed_at_all=0
for server in "${servers[@]}"; do
  version=$(version_of "$server")
  log=build/log/servers-${version// /-}.log
  printf '==== %s: %s, log: %s\n' "$version" "$server" "$log"
  REDLOCK_REDIS_SERVER=$server ctest --test-dir "$build" -L '^integration$' -R "$regex" -j 4 --verbose \
    >"$log" 2>&1 || true
  grep -qE '^[0-9]+% tests passed' "$log" || { echo "ctest ran nothing: $(tail -n 1 "$log")" >&2; exit 1; }
  facts "$log"
  passed=$(cases OK "$log" | wc -l)
  mapfile -t failures < <({ cases FAILED "$log"; broken_programs "$log"; } | sort)
  failed_at_all=$((failed_at_all + ${#failures[@]}))
  rows+=("$(printf '%-16s %7d %7d  %s' "$version" "$passed" ${#failures[@]} "${failures[*]}")")
done

printf '\n%-16s %7s %7s  %s\n' server passed failed 'names of failures'
printf '%s\n' "${rows[@]}"
[[ $failed_at_all -eq 0 ]]
