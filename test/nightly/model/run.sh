#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Searches the models completely, then again with each rule weakened that a flag weakens. Fails unless the true models
# hold, each weakened one is violated, and what the models are about (a renewal, an undone change) does happen in them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

usage() {
  cat <<'TEXT'
usage: test/nightly/model/run.sh [--long | --trace FLAG | --world SECONDS MODEL -DFLAG...]
  (nothing)      small worlds and every flag: about 75 seconds on two cores
  --long         also more clients, values and time: within 20 minutes
  --trace FLAG   the shortest story of how the rule weakened by FLAG goes wrong
  --world        searches one world for at most SECONDS: is it violated, and how many states were reached?
Exit status: 0 as wanted, 1 not, 2 usage, 77 no spin or no gcc here.
TEXT
}

size=short trace= limit= memory_mb=2000  # of each search; two run at a time
case ${1:-} in
  '') ;;
  --long) size=long ;;
  --trace) [[ $# -eq 2 ]] || { usage >&2; exit 2; }; trace=$2 ;;
  --world) [[ $# -ge 3 ]] || { usage >&2; exit 2; }; size=world limit=$2 memory_mb=6000; shift 2 ;;
  --help | -h) usage; exit 0 ;;
  *) usage >&2; exit 2 ;;
esac

for tool in spin gcc; do
  command -v "$tool" >/dev/null || { echo "model: $tool is not installed"; exit 77; }
done

work=$(mktemp -d "${TMPDIR:-/tmp}/redlock-model.XXXXXX")
trap 'rm -rf "$work"' EXIT

guard_flags=(NO_DRIFT NO_QUARANTINE_ID OWN_TTL SEAL_AT_CONNECT QUARANTINE_NOT_COMPARED WATCH_ANY_STATE
  RECORD_ALONE IDENTITY_REMEMBERED PLAIN_ALWAYS PLAIN_UNTRACKED BACKLOG_NOT_ASKED READING_NEVER_LAPSES
  ADMISSION_SURVIVES_PUSH LOOK_NOT_HEEDED LOOK_NOT_DATED)
guard_holes=(WEAK FAST_CYCLE)
move_flags=(ONE_STEP NO_WAIT SHORT_WAIT ENTER_OVER_MARKS BLOCKING_SET LATE_SEEN ID_OF_CHANGE SHORTCUT
  NO_SECOND_LOOK NO_THIRD_LOOK NEW_ALONE LOOKS_ONCE TWIN_SAYS_NEW ENTERED_AFRESH BROKEN_MARKS)
move_holes=(BOTH_RUN OLD_KEPT_ALONE OTHER_OLD)
move_never=(TWIN_ID_OF_LOOK)
cell_flags=(NO_FENCE NO_LOOK_BACK WRONG_COPY_FIRST MARK_FIRST SEQUENCE_ONCE NOT_MARKED MARK_BUFFERED)
cell_happens=(CAN_SEE_RENEWAL CAN_FAIL_RENEWAL)
move_happens=(CAN_MOVE CAN_UNDO CAN_RETURN)
guard_happens=(CAN_ADMIT CAN_BE_PLAIN CAN_LOOK)

# The smallest sets, as masks of masters, in which a weakened rule of moving goes wrong.
one_to_one='-DSET1=1 -DSET2=2' same_one='-DSET1=1 -DSET2=1'
move_world() {
  case $1 in
    ONE_STEP | NO_WAIT | ENTER_OVER_MARKS | ID_OF_CHANGE | CAN_UNDO) echo "$one_to_one" ;;
    BLOCKING_SET) echo '-DSET1=3 -DSET2=4 -DSET3=8' ;;
    LATE_SEEN) echo '-DSET1=1 -DSET2=14' ;;
    SHORT_WAIT) echo "$one_to_one -DCALLS=1 -DREVERTS=1 -DLONG=1" ;;
    SHORTCUT | NO_SECOND_LOOK | NO_THIRD_LOOK | NEW_ALONE | BOTH_RUN | OLD_KEPT_ALONE)
      echo "$one_to_one -DCALLS=1 -DREVERTS=1"
      ;;
    LOOKS_ONCE) echo "$one_to_one -DREVERTS=1" ;;
    BROKEN_MARKS | CAN_RETURN) echo "$one_to_one -DCALLS=1 -DREVERTS=2" ;;
    TWIN_SAYS_NEW | ENTERED_AFRESH) echo "$same_one -DCALLS=1 -DREVERTS=2" ;;
    OTHER_OLD) echo "$one_to_one -DSET3=4 -DCALLS=1 -DREVERTS=1" ;;
    TWIN_ID_OF_LOOK) echo "-DCAN_MOVE -DCALLS=1" ;;
    CAN_MOVE) echo "-DCALLS=1" ;;
  esac
}

# ---- one search ---------------------------------------------------------------------------------------------------

# Breadth first, so that a story is the shortest one. The depths are below 200; -m only has to be above. For a weakened
# rule the compiler takes longer than the search.
search() {
  local dir=$1 want=$2 model=$3 bits=$4 build=-O0 begin=${EPOCHREALTIME/./} end
  shift 4
  if [[ $want == holds ]]; then build=-O2; fi
  if [[ $bits -ge 24 ]]; then build+=' -DCOLLAPSE'; fi
  mkdir "$dir"
  cp "$model.pml" "$dir"
  cd "$dir"
  {
    spin -a "$@" "$model.pml"
    # shellcheck disable=SC2086
    gcc $build -w -DSAFETY -DBFS -DNOREDUCE -DMEMLIM="$memory_mb" -o pan pan.c
    # After SIGINT pan tells how far it came.
    ${limit:+timeout -s INT "$limit"} ./pan -E -m10000 -w"$bits"
  } >out 2>&1 || true
  end=${EPOCHREALTIME/./}
  echo $(((end - begin) / 100000)) >tenths
}

# What became of it, in a few words. CAN_... asserts that something does not happen: no other assertion begins so.
verdict() {
  local out=$1/out broken
  broken=$(grep -m1 'assertion violated' "$out" || true)
  case $broken in
    *'violated  !('*) echo 'happens' ;;
    *lost_before*) echo 'violated: held, or renewed, after a check has failed' ;;
    *first*second*) echo 'violated: words of two publications' ;;
    *renewed_before*) echo 'violated: the renewal is not seen' ;;
    *_lock*) echo 'violated: a lock of the old set and one of the new' ;;
    *age*) echo 'violated: a grant while the forgotten lock is held' ;;
    ?*) echo "violated: $broken" ;;
    *)
      if ! grep -q 'errors: 0$' "$out" || grep -qE 'max search depth too small|Search not completed' "$out"; then
        echo "not completed: $(grep -m1 -iE 'error|out of memory|depth too small' "$out" || tail -n 1 "$out")"
      else
        echo holds
      fi
      ;;
  esac
}

# ---- all of them --------------------------------------------------------------------------------------------------

names=() wanted=()

# add WANTED MODEL BITS FLAGS...: begins the search as soon as fewer than two are running.
add() {
  local want=$1 model=$2
  while [[ $(jobs -rp | wc -l) -ge 2 ]]; do wait -n || true; done
  (search "$work/${#names[@]}" "$@") &
  shift 3
  names+=("$model $(sed -e 's/-D//g' <<<"$*" | xargs)") wanted+=("$want")
}

tell() {
  local model=guard weak=
  case " ${cell_flags[*]} ${cell_happens[*]} " in *" $1 "*) model=cell ;; esac
  case " ${move_flags[*]} ${move_holes[*]} ${move_happens[*]} " in *" $1 "*) model=move weak=$(move_world "$1") ;; esac
  grep -qE "(ifn?def |defined\()$1\>" "$model.pml" || { echo "no such flag: $1" >&2; exit 2; }
  # shellcheck disable=SC2086
  (search "$work/0" violated "$model" 20 $weak "-D$1")
  # shellcheck disable=SC2086
  (cd "$work/0" && spin -t -T $weak "-D$1" "$model.pml" | sed -E '/^(spin|#processes)/,$d; s/^ +//' | cat -n)
  verdict "$work/0"
}

if [[ -n $trace ]]; then
  tell "$trace"
  exit 0
fi

if [[ $size == world ]]; then
  search "$work/0" holds "$1" 25 "${@:2}"
  echo "$(verdict "$work/0")$(sed -nE 's/^ *([0-9.e+]+) states, stored.*/, \1 states/p' "$work/0/out")"
  exit 0
fi

add holds guard 20 -DNC=1
add holds guard 20 -DNC=1 -DSEAL_WITHOUT_IDENTITY
add holds guard 22 -DNC=2
add holds move 20 -DSET1=1 -DSET2=2
add holds move 20 -DSET1=3 -DSET2=6
add holds move 22 -DSET1=1 -DSET2=14
add holds move 20 -DSET1=1 -DSET2=2 -DREVERTS=3 -DCALLS=1
add holds move 20 -DSET1=1 -DSET2=2 -DREVERTS=3 -DCALLS=1 -DLONG=1
add holds move 20 -DSET1=1 -DSET2=1 -DREVERTS=3 -DCALLS=1 -DLONG=1
add holds move 20 -DSET1=3 -DSET2=6 -DREVERTS=2 -DCALLS=1
add holds move 20 -DSET1=1 -DSET2=2 -DREVERTS=1
add holds cell 20
if [[ $size == long ]]; then
  add holds guard 25 -DNC=2 -DLOOKS
  add holds move 22 -DSET1=7 -DSET2=11
  add holds move 22 -DSET1=3 -DSET2=4 -DSET3=8
  add holds move 25 -DSET1=7 -DSET2=8 -DREVERTS=3 -DCALLS=1
  add holds move 25 -DSET1=7 -DSET2=11 -DREVERTS=1 -DCALLS=1
  add holds move 22 -DSET1=1 -DSET2=14 -DREVERTS=1 -DCALLS=1
  add holds move 22 -DSET1=1 -DSET2=14 -DREVERTS=1 -DCALLS=1 -DABSENT_ID
  add holds move 25 -DSET1=7 -DSET2=7 -DREVERTS=2 -DCALLS=1
  add holds move 25 -DSET1=7 -DSET2=7 -DREVERTS=2 -DCALLS=1 -DLONG=1
  add holds move 25 -DSET1=1 -DSET2=2 -DSET3=4 -DREVERTS=2 -DCALLS=1
  add holds move 25 -DSET1=1 -DSET2=2 -DREVERTS=3
  add holds move 25 -DSET1=1 -DSET2=2 -DREVERTS=2 -DLONG=1
  add holds move 25 -DSET1=1 -DSET2=3 -DREVERTS=1
  add holds move 25 -DSET1=3 -DSET2=2 -DREVERTS=1
  add holds move 25 -DSET1=3 -DSET2=6 -DREVERTS=1
  add holds move 22 -DSET1=1 -DSET2=1 -DREVERTS=2 -DLONG=1
fi
# shellcheck disable=SC2086
add_flags() {
  local want=$1 model=$2 weak=$3 flag
  shift 3
  for flag; do
    if [[ $model == move ]]; then weak=$(move_world "$flag"); fi
    add "$want" "$model" 18 $weak "-D$flag"
  done
}
add_flags violated guard '' "${guard_flags[@]}"
add_flags violated move '' "${move_flags[@]}"
add_flags violated cell '' "${cell_flags[@]}"
add_flags 'never happens' move '' "${move_never[@]}"
add_flags 'named hole' guard '' "${guard_holes[@]}"
add_flags 'named hole' move '' "${move_holes[@]}"
add_flags happens guard '' "${guard_happens[@]}"
add_flags happens move '' "${move_happens[@]}"
add_flags happens cell '' "${cell_happens[@]}"
wait

failed=0
printf '%-58s %10s %6s %8s  %-13s %s\n' model states depth seconds wanted result
for i in "${!names[@]}"; do
  out=$work/$i/out result=$(verdict "$work/$i") tenths=$(cat "$work/$i/tenths") mark=
  states=$(sed -nE 's/^ *([0-9.e+]+) states, stored.*/\1/p' "$out")
  depth=$(sed -nE 's/.*depth reached ([0-9]+).*/\1/p' "$out")
  case ${wanted[i]}:$result in
    holds:holds | 'never happens':holds | happens:happens | violated:violated* | 'named hole':violated*) ;;
    *) mark='  <-- NOT AS WANTED' failed=$((failed + 1)) ;;
  esac
  printf '%-58s %10.0f %6s %6d.%d  %-13s %s%s\n' "${names[i]}" "${states:-0}" "${depth:--}" $((tenths / 10)) \
    $((tenths % 10)) "${wanted[i]}" "$result" "$mark"
done
echo "$((${#names[@]} - failed)) of ${#names[@]} searches gave what is wanted"
[[ $failed -eq 0 ]]
