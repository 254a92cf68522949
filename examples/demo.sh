#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# demo.sh: several gateways share one device, in six acts: without the lock, with it, with a gateway that freezes
# between its check and its write, the same with a device that checks fencing tokens, while masters fail, and as shell
# scripts under `redlock run`. Installs what is missing, builds, starts its own redis-servers, shows who held the device
# when, and takes everything down again. Exit status 0: the gateways collided without the lock and never with it, and
# the late write of the frozen gateway collided unless the device checked its token: then it was refused. A late write
# that this machine's load has caused is reported and no failure.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build/demo
masters=5 gateways=4 seconds=6 jobs=0 style=loop install=yes programs='' redlock='' picture='' panels=()
columns=88       # of the timelines, which are 12 wider than that
think_ms=60      # a gateway's mean pause between two jobs
freeze_after=0.3 # seconds from the kill of one master to the freeze of another
frozen_ttl_ms=400 # of the locks in the acts in which gateway 1 freezes; it is thawed some time after that

usage() {
  cat <<END
usage: examples/demo.sh [options]
  --gateways N     gateways that share the device, 2 .. 16 (default $gateways)
  --masters N      private redis-servers, 1 .. 15 (default $masters); fewer than 3 survive no failure
  --seconds N      length of each act, 2 .. 600 (default $seconds)
  --style STYLE    how the gateways are written: loop (gateway.c, the default) or blocking (blocking_gateway.c)
  --jobs N         end each act when every gateway has tried N jobs, instead of after --seconds
  --no-install     install nothing: list what is missing, and fail
  --programs DIR   use the programs in DIR (device, timeline, and the gateway), and build nothing; they are run by
                   \$REDLOCK_EMULATOR if that is set
  --redlock FILE   with --programs: the program redlock; without it there is no sixth act
  --picture FILE   draw the timelines as an SVG, too
  --help
END
}

say() { printf '%s\n' "$*"; }
fail() {
  printf 'demo: %s\n' "$*" >&2
  exit 1
}

number() { # option value min max
  if ! [[ $2 =~ ^[0-9]{1,6}$ ]] || ((10#$2 < $3 || 10#$2 > $4)); then fail "$1: '$2' is not in $3..$4"; fi
  echo $((10#$2))
}

parse() {
  while (($# > 0)); do
    case $1 in
      --help) usage && exit 0 ;;
      --no-install) install=no && shift && continue ;;
      --gateways | --masters | --seconds | --jobs | --style | --programs | --redlock | --picture)
        (($# > 1)) || fail "$1 needs a value"
        ;;
      *) usage >&2 && exit 2 ;;
    esac
    case $1 in
      --gateways) gateways=$(number "$1" "$2" 2 16) ;;
      --masters) masters=$(number "$1" "$2" 1 15) ;;
      --seconds) seconds=$(number "$1" "$2" 2 600) ;;
      --jobs) jobs=$(number "$1" "$2" 1 100000) ;;
      --style) style=$2 ;;
      --programs) programs=$2 ;;
      --redlock) redlock=$2 ;;
      --picture) picture=$2 ;;
    esac
    shift 2
  done
  case $style in
    loop) gateway=gateway ;;
    blocking) gateway=blocking_gateway ;;
    *) fail "--style: '$style' is neither loop nor blocking" ;;
  esac
}

# ---- Taking down --------------------------------------------------------------------------------------------------

declare -A running=() # pid → what it is; only what we started and what has not ended
run=                  # directory of this run

take_down() {
  local status=$? pid
  trap - EXIT
  trap '' INT TERM HUP
  for pid in "${!running[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done # KILL also ends what is frozen
  wait 2>/dev/null || true
  if ((status == 1)) && [[ -n $run ]]; then
    rm -rf "$build/failed" && mv "$run" "$build/failed"
    say "demo: logs are in $build/failed" >&2
  elif [[ -n $run ]]; then
    rm -rf "$run"
  fi
}
trap take_down EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

tied=() # what starts a process that ends with us, even when we are killed
if command -v setpriv >/dev/null; then tied=(setpriv --pdeathsig KILL); fi
read -ra emulator <<<"${REDLOCK_EMULATOR:-}" || true

# ---- Installing and building ---------------------------------------------------------------------------------------

# shellcheck source=toolchains/packages.sh
source "$root/toolchains/packages.sh"
packages=(redis-server)
build_packages=(build-essential cmake pkg-config libuv1-dev libcjson-dev)

build_programs() {
  local log=$build/build.log
  [[ -z $programs ]] || return 0
  say "Building into $build (about a minute the first time)"
  if ! cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DREDLOCK_BUILD_EXAMPLES=ON >"$log" 2>&1 ||
    ! cmake --build "$build" -j "$(nproc)" \
      --target example_device --target "example_$gateway" --target example_timeline --target redlock_tool \
      >>"$log" 2>&1; then
    tail -n 30 "$log" >&2
    fail "the build failed; all of its output is in $log"
  fi
  programs=$build/examples redlock=$build/redlock
}

# ---- Masters ------------------------------------------------------------------------------------------------------

master_pids=() urls=

# Start master $1 on a free port: one that is taken is noticed by the server itself, in its log.
start_master() {
  local dir=$run/master-$1 port pid try
  mkdir "$dir"
  for ((try = 0; try < 50; ++try)); do
    port=$((20000 + RANDOM % 12000))
    : >"$dir/redis.log"
    "${tied[@]}" redis-server --port "$port" --bind 127.0.0.1 --save '' --appendonly no --dir "$dir" \
      --logfile "$dir/redis.log" --daemonize no >/dev/null 2>&1 &
    pid=$!
    disown "$pid" # so that the shell does not report its violent end
    running[$pid]="master $1"
    while kill -0 "$pid" 2>/dev/null; do
      if grep -q 'Ready to accept connections' "$dir/redis.log"; then
        master_pids[$1]=$pid
        urls+=${urls:+,}redis://127.0.0.1:$port
        return 0
      fi
      sleep 0.02
    done
    unset "running[$pid]"
  done
  fail "redis-server does not start; its last words: $(tail -n 3 "$dir/redis.log")"
}

# As many failures as a quorum survives, at most two: the last master is killed, the one before it frozen.
fail_masters() {
  local spare=$(((masters - 1) / 2))
  kill -KILL "${master_pids[masters]}"
  kill -USR1 "$device"
  unset "running[${master_pids[masters]}]"
  ((spare >= 2)) || return 0
  sleep "$freeze_after"
  kill -STOP "${master_pids[masters - 1]}"
  kill -USR2 "$device"
}

# Shell scripts: each job is a program that knows of no lock, under `redlock run`. The master that was frozen goes on.
# The act ends with the jobs: on a slow machine a script needs long for one.
act_of_scripts() { # directory, title
  local jobs=$((jobs > 0 ? jobs : 2 * seconds))
  ((masters < 5)) || kill -CONT "${master_pids[masters - 1]}"
  export REDLOCK_CONFIG=$run/redlock.json
  printf '{"masters": ["%s"]}\n' "${urls//,/\", \"}" >"$REDLOCK_CONFIG"
  act "$1" "$2" scripts
}

# ---- One act ------------------------------------------------------------------------------------------------------

color=()
tty=no
if [[ -t 1 ]]; then
  tty=yes
  width=$(stty size <&1 2>/dev/null | cut -d ' ' -f 2)
  if ((${width:-0} >= 40 && width < columns + 12)); then columns=$((width - 12)); fi
fi
if [[ $tty == yes && -z ${NO_COLOR:-} && ${TERM:-dumb} != dumb ]]; then color=(--color); fi

problems=() rows=() stalls=() locked_collisions=0 frozen_collisions=0 frozen_refused=0
device='' gateway_pids=()

elapsed_ms() { echo $(((${EPOCHREALTIME/[.,]/} - act_began_us) / 1000)); }

count() { # intact ruined collisions refused, so far
  awk '{ ++n[$1 == "end" ? $5 : $1] }
    END { printf "%d %d %d %d\n", n["intact"], n["ruined"], n["collision"], n["refused"] }' "$log"
}

# What the programs are told to do differently in an act of this kind.
options_of() { # kind
  device_options=() gateway_options=(--lock) frozen_options=()
  case $1 in
    unlocked | scripts) gateway_options=(--no-lock) ;;
    frozen | fenced)
      gateway_options=(--fencing --ttl-ms "$frozen_ttl_ms")
      frozen_options=(--freeze-every 3)
      ;;
  esac
  [[ $1 != fenced ]] || device_options=(--check-tokens)
}

start_act() { # directory, kind
  local i address='' special words
  mkdir "$1"
  log=$1/device.log
  options_of "$2"
  "${tied[@]}" "${emulator[@]}" "$programs/device" --log "$log" "${device_options[@]}" \
    >"$1/device.out" 2>"$1/device.err" &
  device=$!
  running[$device]=device
  for ((i = 0; i < 250; ++i)); do
    if [[ -s $1/device.out ]] && read -r address <"$1/device.out"; then break; fi
    sleep 0.02
  done
  [[ -n $address ]] || fail "the device does not start: $(cat "$1/device.err")"
  act_began_us=${EPOCHREALTIME/[.,]/}
  gateway_pids=() frozen_us=0 thaws=0
  for ((i = 1; i <= gateways; ++i)); do
    special=()
    if ((i == 1)); then special=("${frozen_options[@]}"); fi
    words=("${emulator[@]}" "$programs/$gateway" --id "$i" --device "$address" "${gateway_options[@]}"
      --log "$1/gateway-$i.log")
    if [[ $2 == scripts ]]; then
      words=(sh "$root/examples/shared_device/shell_gateway.sh" "$redlock" "$jobs" "$think_ms"
        "${words[@]}" --jobs 1 --think-ms 0)
    else
      words+=(--masters "$urls" "${special[@]}" --commission --jobs "$jobs" --think-ms "$think_ms")
    fi
    "${tied[@]}" "${words[@]}" >"$1/gateway-$i.json" 2>"$1/gateway-$i.err" &
    gateway_pids[i]=$!
    running[$!]="gateway $i"
  done
}

gateways_left() {
  local pid left=0
  for pid in "${gateway_pids[@]}"; do
    if kill -0 "$pid" 2>/dev/null; then left=$((left + 1)); fi
  done
  echo "$left"
}

# Has gateway 1 stopped itself? Then it is thawed when its lock is long over, in the middle of somebody else's job if
# there is one in time.
mind_frozen() {
  local state='' now_us=${EPOCHREALTIME/[.,]/}
  state=$(awk '{ sub(/.*\) /, ""); print $1 }' "/proc/${gateway_pids[1]}/stat" 2>/dev/null) || true
  if [[ $state != T ]]; then
    frozen_us=0
  elif ((frozen_us == 0)); then
    frozen_us=$now_us
    kill -USR1 "$device"
  elif ((now_us - frozen_us > 1000 * (frozen_ttl_ms + 50))) &&
    { [[ $(grep -E '^(begin|end)' "$log" | tail -n 1) == begin* ]] ||
      ((now_us - frozen_us > 5000 * frozen_ttl_ms)); }; then
    kill -USR2 "$device"
    kill -CONT "${gateway_pids[1]}"
    frozen_us=0 thaws=$((thaws + 1))
  fi
}

# Until the act's time is over (or, with --jobs, until all gateways have ended).
watch_act() { # title, kind
  local intact ruined collisions refused ms percent shown=-1 faults=no pause=0.1
  [[ $2 != failing ]] || faults=yes # half-way
  if ((${#frozen_options[@]} > 0)); then pause=0.01; fi
  while :; do
    ms=$(elapsed_ms)
    read -r intact ruined collisions refused < <(count)
    percent=$((jobs > 0 ? 100 * (intact + ruined) / (gateways * jobs) : ms / (10 * seconds)))
    if [[ $tty == yes ]]; then
      printf '\r  %-27s %5.1f s   %5d jobs done   %5d collisions ' "$1" "${ms}e-3" "$intact" "$collisions"
    elif ((percent / 25 > shown && shown < 4)); then
      printf '  %-27s %5.1f s   %5d jobs done   %5d collisions\n' "$1" "${ms}e-3" "$intact" "$collisions"
      shown=$((percent / 25))
    fi
    if [[ $faults == yes ]] && ((percent >= 50)); then
      fail_masters
      faults=no
    fi
    if ((${#frozen_options[@]} > 0)); then mind_frozen; fi
    if ((jobs == 0 ? percent >= 100 : $(gateways_left) == 0 || ms > 600000)); then break; fi
    sleep "$pause"
  done
  if [[ $tty == yes ]]; then echo; fi
  if [[ $faults == yes ]]; then problems+=("$1: it was over before a master could fail; give it more jobs"); fi
}

# Ask the gateways and then the device to end, and collect how they did.
end_act() { # directory, title
  local i pid patience=100 status
  act_ms=$(elapsed_ms)
  for pid in "${gateway_pids[@]}"; do kill -TERM "$pid" 2>/dev/null || true; done
  while (($(gateways_left) > 0 && patience-- > 0)); do
    # It may freeze again in its last job. Only what is stopped: a sanitizer that looks for leaks stops its process,
    # too.
    if grep -qs '^State:[[:space:]]*T' "/proc/${gateway_pids[1]}/status"; then kill -CONT "${gateway_pids[1]}"; fi
    sleep 0.1
  done
  for ((i = 1; i <= gateways; ++i)); do
    pid=${gateway_pids[i]}
    status=0
    if kill -0 "$pid" 2>/dev/null; then
      kill -KILL "$pid"
      problems+=("$2: gateway $i did not end within 10 s of SIGTERM")
    fi
    { wait "$pid" || status=$?; } 2>/dev/null
    unset "running[$pid]"
    ((status == 0)) || problems+=("$2: gateway $i ended with status $status: $(tail -n 1 "$1/gateway-$i.err")")
  done
  kill -TERM "$device" 2>/dev/null || true
  status=0
  { wait "$device" || status=$?; } 2>/dev/null
  unset "running[$device]"
  ((status == 0)) || problems+=("$2: the device ended with status $status")
}

percentile() { # of the numbers on stdin, sorted; by nearest rank
  awk -v p="$1" '{ v[NR] = $1 } END { r = int((NR * p + 99) / 100); printf "%.0f\n", NR ? v[r < 1 ? 1 : r] : 0 }'
}

# Why did frames collide? Two holders are the lock's fault, and a sender without a check is the gateway's. A stall is
# the machine's: somebody was stopped between the check and the write for longer than NEED_MS of job.h allows.
explain() { # directory, title, kind
  local why
  sort -s -n -k 2,2 "$1"/gateway-*.log "$log" >"$1/all.log"
  why=$(awk -v need_ms=150 -v arrive_ms=50 -f "$root/examples/shared_device/judge.awk" "$1/all.log")
  read -r _ two_holders _ stalled _ unexplained <<<"$why"
  ((two_holders == 0 && unexplained == 0)) || problems+=("$2: $why")
  if [[ $3 != frozen ]] && ((stalled > 0)); then stalls+=("$2: ${why#*$'\n'}"); fi
}

row() { printf '  %-27s %9s %7s %11s %8s %9s %9s %7s' "$@"; }

judge_act() { # directory, title, kind
  local intact ruined collisions refused i p50 p99 rate
  read -r intact ruined collisions refused < <(count)
  sed -n 's/.*"waits_ms":\[\([^]]*\)\].*/\1/p' "$1"/gateway-*.json | tr ',' '\n' | sed '/^$/d' | sort -n >"$1/waits"
  p50=$(percentile 50 <"$1/waits")
  p99=$(percentile 99 <"$1/waits")
  rate=$(awk -v n="$intact" -v ms="$act_ms" 'BEGIN { printf "%.1f", (ms > 0 ? n * 1000 / ms : 0) }')
  rows+=("$(row "$2" "$intact" "$ruined" "$collisions" "$refused" "$p50 ms" "$p99 ms" "$rate")")
  if [[ $3 == unlocked || $3 == frozen ]]; then
    ((collisions > 0)) || problems+=("$2: no collisions, so this run shows nothing; try more --gateways or --seconds")
  fi
  if [[ $3 != unlocked ]]; then explain "$@"; fi
  if [[ $3 != unlocked && $3 != frozen ]]; then
    ((collisions == stalled)) || problems+=("$2: $collisions collisions, $ruined jobs ruined WITH the lock")
    locked_collisions=$((locked_collisions + collisions))
  fi
  case $3 in
    unlocked) return ;;
    frozen) frozen_collisions=$collisions ;;
    fenced)
      frozen_refused=$refused
      ((refused > 0)) || problems+=("$2: no late write was refused")
      ;;
  esac
  ((${#frozen_options[@]} == 0 || thaws > 0)) ||
    problems+=("$2: gateway 1 did not freeze and wake; try more --seconds or --jobs")
  for ((i = 1 + (${#frozen_options[@]} > 0); i <= gateways; ++i)); do # one that freezes may get nothing done
    grep -q '"jobs":[1-9]' "$1/gateway-$i.json" ||
      problems+=("$2: gateway $i did no job: $(tail -n 1 "$1/gateway-$i.err")")
  done
  [[ $3 != failing ]] ||
    awk '$1 == "mark" { mark = 1; n = 0 } $1 == "begin" { ++n } END { exit mark && n == 0 }' "$log" ||
    problems+=("$2: no job was begun after the masters had failed")
}

act() { # directory, title, kind: unlocked, locked, frozen, fenced, failing or scripts; what the marks are
  start_act "$1" "$3"
  watch_act "$2" "$3"
  end_act "$1" "$2"
  judge_act "$1" "$2" "$3"
  echo
  "${emulator[@]}" "$programs/timeline" --gateways "$gateways" --columns "$columns" --ms $((columns * 10)) \
    "${color[@]}" "$log" ||
    problems+=("$2: the timeline cannot be drawn")
  panels+=("$log" "$2${4:+: $4}")
  [[ -z ${4:-} ]] || say "            $4"
  echo
}

# ---- The play -----------------------------------------------------------------------------------------------------

main() {
  local i frozen_marks='1: gateway 1 freezes between its check and its write, 2: it wakes, and writes' failing_marks
  parse "$@"
  if [[ -z $programs ]]; then packages+=("${build_packages[@]}"); fi
  install_missing "$install" "${packages[@]}" || fail "the packages it needs are not there"
  command -v redis-server >/dev/null || fail "there is no redis-server"
  mkdir -p "$build"
  failing_marks="1: master $masters is killed$( ((masters < 5)) || say ", 2: master $((masters - 1)) is frozen")"
  build_programs
  run=$(mktemp -d "$build/run.XXXXXX")
  for ((i = 1; i <= masters; ++i)); do start_master "$i"; done
  say "$gateways gateways, one device, $masters redis-servers; a job is a command of 4 frames"
  say "Timelines: # held the device   ! frames of two gateways collided   x refused   . did not; a column is 10 ms"
  echo
  act "$run/act-1" "1 without the lock" unlocked
  act "$run/act-2" "2 with the lock" locked
  act "$run/act-3" "3 with it, one freezes" frozen "$frozen_marks"
  act "$run/act-4" "4 the same, tokens checked" fenced "$frozen_marks"
  if ((masters >= 3)); then
    act "$run/act-5" "5 with it, masters failing" failing "$failing_marks"
  else
    say "  No fifth act: the quorum of $masters is $((masters / 2 + 1)), so no master may fail. Try --masters 5."
    echo
  fi
  [[ -z $redlock ]] || act_of_scripts "$run/act-6" "6 shell scripts"
  if [[ -n $picture ]]; then
    "${emulator[@]}" "$programs/timeline" --svg --gateways "$gateways" --ms $((columns * 10)) \
      "${panels[@]}" >"$picture" ||
      problems+=("the picture cannot be drawn")
  fi
  row act 'jobs done' ruined collisions refused 'wait p50' 'wait p99' jobs/s
  printf '\n'
  printf '%s\n' "${rows[@]}" ''
  if ((${#problems[@]} > 0)); then
    printf 'demo: FAILED: %s\n' "${problems[@]}" >&2
    exit 1
  fi
  if ((${#stalls[@]} > 0)); then
    say "Stalls: this machine stopped a gateway or the device for too long between a check and its frame. The lock" \
      "had one holder at a time; what is written late collides all the same, unless the device checks tokens."
    printf '  %s\n' "${stalls[@]}"
  fi
  say "Two holders: 0. Collisions with the lock: $locked_collisions. With a gateway that freezes past its validity," \
    "then writes: $frozen_collisions; 0 when the device checks tokens: it refused $frozen_refused of its frames."
}

main "$@"
