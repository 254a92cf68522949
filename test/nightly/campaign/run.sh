#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Weather: real servers and clients in network namespaces of their own, and everything that happens to them; judged
# afterwards (README.md). Everything ends with this script, however it ends. Where this machine has no such namespaces,
# or we are not root, no cable is cut.
# Exit status: 0, 1 where something is wrong, 77 where a program is missing.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

usage() {
  cat <<'TEXT'
usage: test/nightly/campaign/run.sh SECONDS [--seed N] [--keep DIR] [--build DIR] [--server FOLDER] [--threads N]
                            [--tls FOLDER | --tls-half FOLDER] [--sites LIST] [--no-cables]
  SECONDS          of weather; what comes before and after takes about 10 seconds more
  --seed N         another course of events; what the clients make of it is up to the machine
  --keep DIR       histories and logs, in a new folder; else they are kept only where something is wrong
  --build DIR      with campaign_worker, redlock and libredlock_wall_clock.so: build/dev if none is named
  --server FOLDER  holds a redis-server or a valkey-server; else REDLOCK_REDIS_SERVER, or redis-server in PATH
  --threads N      I/O threads of each server
  --tls FOLDER     clients speak TLS, with the certificates that test/support/tls_folder.sh has made there
  --tls-half FOLDER  the same with every second master, the first among them
  --sites LIST     of five,three,one,moving,ruled
  --no-cables      no namespaces, no root: what happens to servers, clocks and clients alone
TEXT
}

skip() {
  printf 'SKIP: %s\n' "$*"
  exit 77
}

# The server's program in a folder.
program_in() {
  local name
  for name in redis-server valkey-server; do
    [[ ! -x $1/$name ]] || { readlink -f "$1/$name" && return; }
  done
  echo "$1 holds neither a redis-server nor a valkey-server" >&2
  exit 2
}

seconds='' seed=1 keep='' build=$here/../../../build/dev threads=1 tls='' sites=five,three,one,moving,ruled cables=yes
server=${REDLOCK_REDIS_SERVER:-redis-server} options=()
while (($# > 0)); do
  case $1 in
    --seed) seed=${2:?} && shift ;;
    --keep) keep=${2:?} && shift ;;
    --build) build=${2:?} && shift ;;
    --server) server=$(program_in "${2:?}") || exit 2; shift ;;
    --threads) threads=${2:?} && shift ;;
    --tls) tls=$(cd "${2:?}" && pwd) && shift ;;
    --tls-half) tls=$(cd "${2:?}" && pwd) && options+=(--half) && shift ;;
    --sites) sites=${2:?} && shift ;;
    --no-cables) cables=no ;;
    --help) usage && exit 0 ;;
    -*) usage >&2 && exit 2 ;;
    *) seconds=$1 ;;
  esac
  shift
done
[[ -n $seconds ]] || { usage >&2 && exit 2; }
build=$(cd "$build" && pwd)
for file in redlock test/campaign_worker test/libredlock_wall_clock.so; do
  [[ -x $build/$file ]] || { echo "$build/$file is not built" >&2 && exit 2; }
done

for tool in setpriv python3 "$server"; do
  command -v "$tool" >/dev/null || skip "there is no $tool"
done
# shellcheck disable=SC2016 # the inner shell expands it
isolated=(setpriv --pdeathsig KILL unshare --mount --net --pid --fork --kill-child --mount-proc
  sh -c 'mount -t tmpfs tmpfs /run && exec "$@"' -)
if [[ $cables == yes ]] && ! "${isolated[@]}" sh -c 'command -v tc && ip link add name switch type bridge &&
    ip netns add a && ip link add name left type veth peer name right netns a' >/dev/null 2>&1; then
  echo "not root, or no namespaces, bridges or mounts here: weather without cables"
  cables=no
fi
if [[ $cables == no ]]; then isolated=(setpriv --pdeathsig TERM) options+=(--no-cables); fi

if [[ -n $keep ]]; then
  mkdir -p "$keep"
  folder=$(cd "$keep" && pwd)
else
  folder=$(mktemp -d "${TMPDIR:-/tmp}/redlock-weather.XXXXXX")
  trap 'rm -rf "$folder"' EXIT
fi
status=0
"${isolated[@]}" \
  python3 -B "$here/weather.py" "$seconds" --folder "$folder" --build "$build" --seed "$seed" --server "$server" \
  --threads "$threads" --tls "$tls" --sites "$sites" "${options[@]}" || status=1
python3 -B "$here/checker.py" "$folder/histories" || status=1
python3 -B "$here/proof_run.py" "$folder" || status=1
if [[ $status -ne 0 || -n $keep ]]; then
  trap - EXIT
  printf 'histories and logs: %s\n' "$folder"
fi
exit "$status"
