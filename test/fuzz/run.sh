#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Builds the fuzzers (libFuzzer, ASan + UBSan, asserts on) and runs each for a time, two at once. What a fuzzer finds
# new on its way it keeps in build/fuzz/test/NAME.found and begins with it next time; an input that breaks something
# lies in build/fuzz/test/NAME.broken. Mend the bug and add that input to test/fuzz/corpus/NAME.tar.gz (--add), which
# every build replays.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
  cat <<'TEXT'
usage: [REDLOCK_TLS=LIBRARY] test/fuzz/run.sh SECONDS [NAME...]
       test/fuzz/run.sh --add NAME FILE...   adds inputs to NAME's corpus
  LIBRARY   openssl (the default), mbedtls, or off, which leaves out the fuzzer tls
  SECONDS   for each fuzzer; 3600 for an hour
  NAME      reader, session, api, config, liars, tls; default: all of them
TEXT
}

if [[ ${1:-} == --add && $# -ge 3 && -f test/fuzz/corpus/$2.tar.gz ]]; then
  archive=test/fuzz/corpus/$2.tar.gz
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  tar -C "$folder" -xzf "$archive"
  cp -- "${@:3}" "$folder"
  tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$folder" -cf - . | gzip -n9 >"$archive"
  exit
fi
if [[ $# -lt 1 || ! $1 =~ ^[1-9][0-9]*$ ]]; then usage >&2; exit 2; fi
seconds=$1 tls=${REDLOCK_TLS:-openssl}
shift
if [[ $# -eq 0 ]]; then
  for source in test/fuzz/fuzz_*.cpp; do
    name=$(basename "$source" .cpp)
    [[ $name == fuzz_tls && $tls == off ]] || set -- "$@" "${name#fuzz_}"
  done
fi
for name in "$@"; do
  if [[ ! -f test/fuzz/fuzz_$name.cpp ]]; then echo "no fuzzer is called $name" >&2; usage >&2; exit 2; fi
done

export CCACHE_DIR=$PWD/build/ccache
cmake --preset fuzz -DREDLOCK_TLS="$tls" >/dev/null
cmake --build --preset fuzz --target "${@/#/fuzz_}"

one() {
  local name=$1 here=build/fuzz/test log=build/fuzz/test/$1.log
  mkdir -p "$here/$name.found" "$here/$name.broken"
  if "$here/fuzz_$name" -max_total_time="$seconds" -max_len=4096 -len_control=0 -timeout=20 -print_final_stats=1 \
    -artifact_prefix="$here/$name.broken/" "$here/$name.found" "$here/corpus/$name" >"$log" 2>&1; then
    printf '%-8s ok, %s inputs\n' "$name" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")"
  else
    printf '%-8s BROKEN: %s\n%-8s   log: %s\n' "$name" \
      "$(grep -am1 -E '^not so|runtime error|ERROR|SUMMARY' "$log" || tail -n 1 "$log")" '' "$log"
    return 1
  fi
}

failed=0 running=0
for name in "$@"; do
  if [[ $running -eq 2 ]]; then
    wait -n || failed=1
    running=$((running - 1))
  fi
  one "$name" &
  running=$((running + 1))
done
while [[ $running -gt 0 ]]; do
  wait -n || failed=1
  running=$((running - 1))
done
exit $failed
