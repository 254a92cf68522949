#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Do the tests see? Each mutant in mutants/ is one deliberate bug. mutants.py writes the bug into a scratch copy, only
# the files that change are built again, and the simulator runs from seed 1 on until it finds the bug. A bug that no
# seed finds is a hole in the simulated world. Before that the copy itself must be clean, or nothing would be shown.
# The copy has TLS by OpenSSL, because some mutants are about it.
# There are as many copies, each with its own build, as jobs: each takes the next mutant that no other has taken.
#
# A bug that no simulation can see names the test of ctest that must see the bug (mutants/README.md).
# A mutant that no longer applies, does not compile or changes no instruction counts as one that escapes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
  cat <<'TEXT'
usage: test/sim/mutants.sh [--seeds N] [--jobs J] [--build DIR] [--mutants DIR] [--tests REGEX]
                           [--part I/N] [NAME...]
  NAME           only these mutants
  --seeds N      at most so many seeds for each (4000)
  --jobs J       so many at one time (2)
  --build DIR    where everything is written (build/mutants)
  --mutants DIR  the mutants (test/sim/mutants)
  --tests REGEX  tests of ctest that are asked where no seed finds a bug and the mutant names no test (none)
  --part I/N     of these an Nth, another one for each I from 0 to N-1
Exit: 0 all are caught, 1 one is not, 2 usage.
TEXT
}

seeds=4000 jobs=2 build=build/mutants mutants=test/sim/mutants tests='' part='' names=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --seeds | --jobs | --build | --mutants | --tests | --part)
      if [[ $# -lt 2 ]]; then usage >&2; exit 2; fi
      printf -v "${1#--}" %s "$2"
      shift
      ;;
    --help | -h) usage; exit 0 ;;
    -*) usage >&2; exit 2 ;;
    *) names+=("$1") ;;
  esac
  shift
done
if [[ ! $seeds =~ ^[1-9][0-9]*$ || ! $jobs =~ ^[1-9][0-9]*$ || ! $part =~ ^([0-9]+/[1-9][0-9]*)?$ ]]; then
  usage >&2
  exit 2
fi

mutants=("$PWD/test/sim/mutants.py" --mutants "$(cd "$mutants" && pwd)")
list=$(python3 "${mutants[@]}" list)
declare -A level_of=()
while read -r name level; do level_of[$name]=$level; done <<<"$list"
if [[ ${#names[@]} -eq 0 ]]; then mapfile -t names < <(cut -d' ' -f1 <<<"$list"); fi
if [[ -n $part ]]; then
  mapfile -t names < <(printf '%s\n' "${names[@]}" | awk "NR % ${part#*/} == ${part%/*}")
  [[ ${#names[@]} -gt 0 ]] || { echo "part $part has no mutant" >&2; exit 2; }
fi
for name in "${names[@]}"; do
  if [[ ! -v level_of[$name] ]]; then echo "there is no mutant $name" >&2; exit 2; fi
done

run_limit=1200  # seconds of one run: a bug that makes the library turn in circles ends here
mkdir -p "$build"
build=$(cd "$build" && pwd)
origin=$build/origin logs=$build/logs results=$build/results taken=$build/taken
rm -rf "$origin" "$logs" "$results" "$taken"
mkdir -p "$origin" "$logs" "$results" "$taken"
# What was restored after a mutant, or is the same in another copy, is not compiled again: there only the preprocessor's
# output is equal.
export CCACHE_DIR=$build/ccache CCACHE_BASEDIR=$build
unset CCACHE_DEPEND

# ---- the copy: a file whose content differs is written anew, so that its time tells the build -----------------------

make_same() {
  local from=$1 to=$2 file
  shift 2
  for file in "$@"; do
    if cmp -s "$from/$file" "$to/$file"; then continue; fi
    mkdir -p "$to/$(dirname "$file")"
    cp "$from/$file" "$to/$file"
  done
}

use_copy() { copy=$build/copy-$1 tree=$build/copy-$1/tree objects=$build/copy-$1/objects; }

make_copy() {
  local file
  use_copy "$1"
  if [[ -e $copy/mutated ]]; then rm -rf "$copy"; fi  # a run was interrupted: its objects may be newer than the files
  mkdir -p "$tree"
  make_same "$origin" "$tree" "${all_files[@]}"
  while read -r file; do
    if [[ ! -e $origin/$file ]]; then rm "$tree/$file"; fi
  done < <(cd "$tree" && find . -type f)
  cmake -S "$tree" -B "$objects" -G Ninja -DCMAKE_BUILD_TYPE=MinSizeRel -DREDLOCK_ASSERTS=ON -DREDLOCK_LTO=OFF \
    -DREDLOCK_BUILD_TESTS=ON -DREDLOCK_INSTALL=OFF -DREDLOCK_CCACHE=ON -DREDLOCK_TLS=openssl >"$copy/configure.log"
  build_target redlock_sim >"$copy/build.log" || { tail -n 30 "$copy/build.log"; exit 1; }
  cp "$objects/test/redlock_sim" "$copy/origin_sim"
}

target_of() {
  case $1 in
    '') echo redlock_sim ;;
    scenario_*) echo scenario_run ;;
    redlock_sim_*) echo redlock_sim ;;
    *) echo "$1" ;;
  esac
}

build_target() { cmake --build "$objects" --target "$1" --parallel "${2:-$jobs}"; }

# A bug is caught by the first test that fails: the rest of the program shows nothing more.
run_ctest() {
  (cd "$objects" && GTEST_FAIL_FAST=1 ctest -R "^$1\$" --no-tests=error --output-on-failure --timeout 300)
}

# ---- one mutant -----------------------------------------------------------------------------------------------------

tell() {  # NAME caught|ESCAPED|BROKEN TEXT
  echo "$2" >"$results/$1"
  printf '%-46s %-8s %s\n' "$1" "$2" "$3"
}

simulate() {
  local name=$1 log=$logs/$1.log status=0 line
  timeout "$run_limit" "$objects/test/redlock_sim" --seeds "$seeds" --no-progress >"$log" 2>&1 || status=$?
  line=$(grep -m1 '^VIOLATION in seed' "$log" | sed -E 's/^VIOLATION in (seed [0-9]+)[^:]*: /\1: /' || true)
  if [[ $status -eq 1 && -n $line ]]; then
    tell "$name" caught "${line:0:150}"
  elif [[ $status -eq 0 && -n $tests ]]; then
    ask_tests "$name"
  elif [[ $status -eq 0 ]]; then
    tell "$name" ESCAPED "$seeds seeds are clean"
  else
    tell "$name" BROKEN "exit $status, see $log"
  fi
}

# The scenarios have one program for all.
build_tests() {
  local targets
  mapfile -t targets < <(cd "$objects" && ctest -N -R "$tests" | sed -nE 's/^ *Test +#[0-9]+: //p' |
    sed 's/^scenario_.*/scenario_run/; s/^redlock_sim_.*/redlock_sim/; s/^python_.*/python_tests/' | sort -u)
  cmake --build "$objects" --target "${targets[@]}" --parallel "$jobs"
}

run_tests() { (cd "$objects" && ctest -R "$tests" --no-tests=error --stop-on-failure --timeout 300); }

ask_tests() {
  local name=$1 log=$logs/$1.log
  if ! build_tests >"$log" 2>&1; then
    tell "$name" BROKEN "does not compile, see $log"
  elif run_tests >>"$log" 2>&1; then
    tell "$name" ESCAPED "no seed finds it, and the tests pass"
  else
    tell "$name" caught \
      "$(sed -nE 's/.*: ([a-z_]+) \.+ *\**(Failed|Exception|Timeout|Subprocess).*/\1/p' "$log" | head -n 1)"
  fi
}

ask_level() {
  local name=$1 level=$2 log=$logs/$1.log line
  if run_ctest "$level" >"$log" 2>&1; then
    tell "$name" ESCAPED "$level passes"
  else
    line=$(sed -nE -e '\#^.*/(test/[a-z_/]+[.]cpp:[0-9]+): Failure$# { s##\1#p; q }' \
      -e '/^VIOLATION in (seed [0-9]+)[^:]*(: .*)$/ { s//\1\2/p; q }' "$log")
    line=$level${line:+: $line}
    tell "$name" caught "${line:0:150}"
  fi
}

prove() {
  local name=$1 level=${level_of[$1]} target touched
  target=$(target_of "$level")
  if [[ -n $level && -z ${level_is_sound[$level]:-} ]]; then
    tell "$name" BROKEN "$level is not there, or fails without any mutant, see $build/levels.log"
    return
  fi
  touch "$copy/mutated"
  if ! python3 "${mutants[@]}" apply "$name" "$tree" >"$logs/$name.touched" 2>"$logs/$name.log"; then
    tell "$name" BROKEN "$(tail -n 1 "$logs/$name.log")"
  elif ! build_target "$target" 1 >"$logs/$name.log" 2>&1; then  # beside the other copies
    tell "$name" BROKEN "does not compile, see $logs/$name.log"
  elif [[ -n $level ]]; then
    ask_level "$name" "$level"
  elif cmp -s "$objects/test/redlock_sim" "$copy/origin_sim"; then
    if [[ -n $tests ]]; then
      ask_tests "$name"
    else
      tell "$name" BROKEN "the bug changes no instruction"
    fi
  else
    simulate "$name"
  fi
  mapfile -t touched <"$logs/$name.touched"
  make_same "$origin" "$tree" "${touched[@]}"
  rm "$copy/mutated"
}

prove_what_is_left() {
  local name
  use_copy "$1"
  for name in "${names[@]}"; do
    if mkdir "$taken/$name" 2>/dev/null; then prove "$name"; fi
  done
}

# ---- all ------------------------------------------------------------------------------------------------------------

begin=$SECONDS
cp -r CMakeLists.txt include src port toolchains test examples "$origin"
mapfile -t all_files < <(cd "$origin" && find . -type f)
for ((i = jobs; i > 0; i--)); do make_copy "$i"; done
if ! "$copy/origin_sim" --seeds "$seeds" --jobs "$jobs" --no-progress; then
  echo "the unchanged library is not clean: mutants show nothing" >&2
  exit 1
fi
if [[ -n $tests ]] && ! { build_tests && run_tests; } >"$build/tests.log" 2>&1; then
  echo "the tests fail for the unchanged library: mutants show nothing; see $build/tests.log" >&2
  exit 1
fi
# The tests that mutants name, each of which must pass: built in one go, and run side by side.
declare -A level_is_sound=()
mapfile -t levels < <(for name in "${names[@]}"; do echo "${level_of[$name]}"; done | sort -u | sed '/^$/d')
if [[ ${#levels[@]} -gt 0 ]]; then
  mapfile -t targets < <(for level in "${levels[@]}"; do target_of "$level"; done | sort -u)
  cmake --build "$objects" --target "${targets[@]}" --parallel "$jobs" -- -k 0 >"$build/levels.log" 2>&1 || true
  pattern="^($(IFS='|' && echo "${levels[*]}"))\$"
  (cd "$objects" && ctest -R "$pattern" --timeout 300 --parallel "$jobs") >>"$build/levels.log" 2>&1 || true
  while read -r level; do level_is_sound[$level]=yes; done < <(sed -nE \
    's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: ([a-z_]+) \.+ +Passed .*/\1/p' "$build/levels.log")
fi

for ((i = 1; i <= jobs; i++)); do prove_what_is_left "$i" & done
wait

# The last line names what is not caught: a summary of many stages shows this line alone.
mapfile -t left < <(for name in "${names[@]}"; do
  if [[ $(cat "$results/$name" 2>/dev/null) != caught ]]; then echo "$name"; fi
done)
printf 'caught %d of %d in %d s%s\n' $((${#names[@]} - ${#left[@]})) "${#names[@]}" $((SECONDS - begin)) \
  "${left[*]:+, not caught: ${left[*]}}"
[[ ${#left[@]} -eq 0 ]]
