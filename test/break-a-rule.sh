#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Whoever doubts a rule can watch what it is for. The rule is taken out of a copy of the library, as a mutant of
# test/sim. The simulator looks for a run in which two clients hold one resource, and tells the run in some lines. Then
# the same run with the rule in place. At the end the proof tells its own run without the rule, and that the same steps
# are impossible with it (test/nightly/proof; needs z3 and cvc5). The first time takes minutes, to build the simulator.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Left out: rules without a mutant, and those whose mutants show no two holders in thousands of seeds: "a vote of an
# earlier round counts", "an extend counts a key that is not its own". Without "extend after expiry" one client believes
# again, and no two hold. The proof tells a run for each.
# The rule's name in the proof | the mutant | the worlds, where they are not the default | a seed that shows it
rules='
SET without NX                                | set-without-nx                             |  | 9
two quorums need not meet                     | quorum-of-half                             |  | 56
guard time too short                          | guard-time-half                            |  | 423
valid from the decision                       | validity-from-the-decision                 |  | 325
a key may expire early                        | no-drift                                   |  | 349
a delete before the end                       | lost-early-deletes-at-once                 |  | 5
a delete without compare                      | release-without-compare                    |  | 1
nothing is compared                           | scripts-compare-no-state                   |  | 77
the record alone is compared                  | scripts-compare-the-seal-alone             |  | 494
an extend shortens                            | extend-shortens-the-expiry                 | --clocks | 1
whatever is found is sealed                   | guard-seal-any                             |  | 122
a visit seals any state                       | visit-of-another-state-believed            |  | 1259
plain commands always                         | plain-commands-to-a-master-with-replicas   |  | 494
a plain command on an untracked connection    | plain-commands-without-tracking            |  | 360
'

usage() {
  cat <<'TEXT'
usage: test/break-a-rule.sh [--build DIR] [--seeds N] RULE
       test/break-a-rule.sh            the rules, a sentence each
  RULE         a rule, or the beginning of its name
  --build DIR  where the copy and its build are (build/break-a-rule)
  --seeds N    so many seeds at most (20000)
Exit: 0 two clients held one resource, and none with the rule in place; 1 not; 2 usage.
TEXT
}

build=build/break-a-rule seeds=20000 rule=
while [[ $# -gt 0 ]]; do
  case $1 in
    --build) build=$2; shift ;;
    --seeds) seeds=$2; shift ;;
    --help | -h) usage; exit 0 ;;
    -*) usage >&2; exit 2 ;;
    *) rule=$1 ;;
  esac
  shift
done

sentence_of() {
  python3 test/nightly/proof/prove.py rules | awk -v rule="$1" 'index($0, rule "  ") == 1 { print substr($0, 47) }'
}

if [[ -z $rule ]]; then
  while IFS='|' read -r name _; do
    read -r name <<<"$name"
    if [[ -n $name ]]; then printf '%-45s %s\n' "$name" "$(sentence_of "$name")"; fi
  done <<<"$rules"
  exit 0
fi
line=$(grep -m1 "^$rule" <<<"$rules") || { usage >&2; exit 2; }
IFS='|' read -r rule mutant worlds seed <<<"$line"
read -r rule <<<"$rule"; read -r mutant <<<"$mutant"; read -r worlds <<<"$worlds"; read -r seed <<<"$seed"

# ---- a simulator of a copy of the sources --------------------------------------------------------------------------

mkdir -p "$build"
build=$(cd "$build" && pwd)
tree=$build/tree
# Builds what stands here, with the mutant or without. Files that are the same keep their times: they are compiled once.
build_simulator() { # [MUTANT]
  rm -rf "$build/new"
  mkdir -p "$build/new" "$tree"
  tar --exclude=./build --exclude=./.git -cf - . | tar -C "$build/new" -xf -
  if [[ $# -gt 0 ]]; then python3 test/sim/mutants.py apply "$1" "$build/new" >/dev/null; fi
  (cd "$build/new" && find . -type f) | while IFS= read -r file; do
    if ! cmp -s "$build/new/$file" "$tree/$file"; then
      mkdir -p "$tree/${file%/*}"
      cp "$build/new/$file" "$tree/$file"
    fi
  done
  cmake -S "$tree" -B "$build/build" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DREDLOCK_BUILD_TESTS=ON \
    -DREDLOCK_BUILD_TOOL=OFF -DREDLOCK_CCACHE=ON >"$build/log" 2>&1 &&
    cmake --build "$build/build" --target redlock_sim -j "$(nproc)" >>"$build/log" 2>&1 ||
    { tail -n 20 "$build/log" >&2; exit 1; }
}
sim() { "$build/build/test/redlock_sim" "$@" ${worlds:+"$worlds"} 2>&1 || true; }

# ---- a seed --------------------------------------------------------------------------------------------------------

# Another seed may show another fault of the same mutant: a key that stays, a lock that is lost early.
both=' (c0 and c[1-9]|c1 and c[02-9]|c2 and c[013-9]|c3 and c[0-24-9])[0-9]* hold r[0-9] at the same time'
build_simulator "$mutant"
last=$((seed + seeds))
until sim --seed "$seed" | grep -qE "$both"; do
  seed=$(sim --first-seed $((seed + 1)) --seeds $((last - seed)) --no-progress |
    sed -nE 's/^VIOLATION in seed ([0-9]+) .*/\1/p')
  if [[ -z $seed || $seed -ge $last ]]; then
    echo "$rule: no run to two holders in $seeds seeds" >&2
    exit 1
  fi
done

# ---- what happens --------------------------------------------------------------------------------------------------

# The last lines about who asks, gets and gives back, and about what becomes of machines and masters.
echo "The rule: $(sentence_of "$rule")"
echo "Without it (mutant $mutant, seed $seed; seconds, client or master):"
sim --seed "$seed" --trace | awk -v both="$both" '
  / FAULT / || / is back$/ || / is well again$/ || / (acquires|ACQUIRED|LOST|RELEASED) / || $0 ~ both {
    sub(/^ +/, ""); lines[++n] = $0
    if ($0 ~ both) exit
  }
  END { for (i = n > 14 ? n - 13 : 1; i <= n; ++i) print "  " lines[i] }'
build_simulator
echo "The same seed with the rule:"
sim --seed "$seed" | sed -n '$s/^/  /p' | tee "$build/whole"
grep -q ': clean$' "$build/whole"
echo
python3 test/nightly/proof/prove.py break "$rule"
