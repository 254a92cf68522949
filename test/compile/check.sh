#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# One check of what a customer compiles: check.sh CHECK [ARGUMENT]. Told by the environment: SOURCE, BUILD and WORK
# folders, CC, CXX and their FLAGS and LINK_FLAGS, CMAKE, SHARED, READELF, AR; in a cross build also EMULATOR and
# TOOLCHAIN. Exit 77: there is nothing to check.
set -euo pipefail
umask 022  # the library refuses a configuration that others can write
: "${LINK_FLAGS:=}" "${TLS_LIBS:=}" "${EMULATOR:=}" "${TOOLCHAIN:=}" "${READELF:=readelf}" "${AR:=ar}"

fail() {
  printf '%s\n' "$@" >&2
  exit 1
}

# The compilers to try: the one of this build, and gcc and clang where they are.
compilers() {
  local language=$1 name
  if [[ $language == c ]]; then set -- "$CC" gcc clang; else set -- "$CXX" g++ clang++; fi
  for name in "$@"; do command -v "$name" || true; done | xargs -r -n1 readlink -f | sort -u
}

# A known compiler's warnings are errors; a newer one's are printed.
strict() {
  local id=GNU major known werror=' -Werror'
  [[ $("$1" --version) != *clang* ]] || id=Clang
  major=$("$1" -dumpversion)
  read -ra known < <(sed -nE "s/^set\(redlock_known_$id (.*)\)$/\1/p" "$SOURCE/toolchains/cmake/redlockWerror.cmake")
  [[ ${major%%.*} -ge ${known[0]} && ${major%%.*} -le ${known[1]} ]] || werror=
  echo "-Wall -Wextra$werror"
}

# The header alone, and what it offers to be written in the user's code.
program() {
  printf '#include <%s>\ntypedef int some_code;\n' "$1"
  [[ $1 != redlock/redlock.h ]] || cat <<'TEXT'
int use(redlock_t *rl, redlock_lock_t *lock);
int use(redlock_t *rl, redlock_lock_t *lock) {
  redlock_acquire_opts_t opts = REDLOCK_ACQUIRE_OPTS_INIT;
  redlock_resource_t resource = redlock_resource("bus-1");
  opts.ttl_ms = 1000;
  return redlock_acquire_async(rl, &resource, 1, &opts, lock);
}
TEXT
}

check_headers() {
  local header name language standard compiler count=0
  for header in "$SOURCE"/include/redlock/*.h "$SOURCE"/include/redlock/*.hpp; do
    [[ -e $header ]] || continue
    name=redlock/${header##*/}
    [[ $name != *.hpp || -z ${NO_CXX_LIBRARY:-} ]] || continue  # for programs that have the C++ library
    for standard in c99 c11 c++11 c++20; do
      language=${standard%%[0-9]*}
      [[ $name == *.h || $language == c++ ]] || continue
      for compiler in $(compilers "$language"); do
        program "$name" | "$compiler" -x "$language" -std="$standard" -pedantic $(strict "$compiler") -Wconversion \
          -Wshadow -I"$SOURCE/include" -fsyntax-only - || fail "$name does not compile alone: $compiler -std=$standard"
        count=$((count + 1))
      done
    done
    ! program "$name" | "$CC" -x c++ -I"$SOURCE/include" -M - | grep -E '/(uv|cJSON)\.h' ||
      fail "$name includes a header of libuv or cJSON"
  done
  echo "$count compilations"
}

# The table in layout.c holds for each compiler that is here, and for each width of time_t that it offers.
check_layout() {
  local compiler bytes option seen=()
  for compiler in "$CC" gcc clang arm-linux-gnueabihf-gcc aarch64-linux-gnu-gcc arm-linux-musleabihf-gcc; do
    compiler=$(command -v "$compiler") || continue
    [[ " ${seen[*]} " != *" ${compiler##*/}: "* ]] || continue
    seen+=("${compiler##*/}:")
    for bytes in 4 8; do
      for option in '' -D_TIME_BITS=64; do
        printf '#include <time.h>\nchar width[sizeof(time_t) == %d ? 1 : -1];\n' "$bytes" |
          "$compiler" -x c -D_FILE_OFFSET_BITS=64 $option -fsyntax-only - 2>/dev/null || continue
        "$compiler" -std=c11 $(strict "$compiler") -I"$SOURCE/include" -DTIME_T_BYTES="$bytes" \
          -D_FILE_OFFSET_BITS=64 $option -fsyntax-only "$SOURCE/test/compile/layout.c" ||
          fail "$compiler: not the layout of layout.c"
        seen+=("$((8 * bytes))-bit time_t")
        break
      done
    done
  done
  echo "${seen[*]}"
}

# A program over redlock.hpp asks for functions of the C API and a few of the C library: no C++ runtime, no heap, also
# where exceptions and RTTI are switched off.
check_raii() {
  local compiler standard others object=$WORK/raii.o count=0
  for compiler in $(compilers c++); do
    for standard in c++11 c++17 c++20; do
      "$compiler" -x c++ -std="$standard" -O1 -fno-exceptions -fno-rtti -fno-stack-protector $(strict "$compiler") \
        -I"$SOURCE/include" -c -o "$object" - <<'TEXT' || fail "redlock.hpp does not compile: $compiler -std=$standard"
#include <redlock/redlock.hpp>
bool more_work(int);
int job(redlock_t *rl);
int job(redlock_t *rl) {
  redlock::lock bus;
  const int err = redlock::acquire(rl, "bus", redlock::options().ttl(std::chrono::seconds(5)).wait_forever(), bus);
  if (err != 0) return err;
  redlock::lock mine(static_cast<redlock::lock &&>(bus));
  while (mine.valid_for(std::chrono::milliseconds(300))) {
    if (mine.validity() < std::chrono::seconds(1)) return mine.extend(std::chrono::seconds(5));
  }
  return mine.release();
}
int any(redlock_t *rl, const redlock_resource_t *names);
int any(redlock_t *rl, const redlock_resource_t *names) {
  redlock::lock printer;
  uint32_t which = 0;
  const int err = redlock::acquire_any(rl, names, 2, redlock::options(), printer, which);
  return err != 0 ? err : static_cast<int>(which);
}
TEXT
      others=$(nm --undefined-only "$object" | awk '{ print $2 }' |
        grep -vE '^(redlock_[a-z_]+|_GLOBAL_OFFSET_TABLE_|mem(cpy|set)|sem_[a-z]+|getrandom|clock_gettime)$' || true)
      [[ -z $others ]] || fail "a program over redlock.hpp needs more than C ($compiler -std=$standard):" \
        "$others"
      count=$((count + 1))
    done
  done
  echo "$count compilations, which ask for:" $(nm --undefined-only "$object" | awk '{ print $2 }')
}

# Writes the code blocks of the README that follow <!-- example: NAME --> to WORK/readme/NAME.EXT.
extract_examples() {
  awk -v folder="$WORK/readme" '
    /^<!-- example: .* -->$/ { name = $3; wanted = 1; next }
    wanted && /^```/ { file = folder "/" name "." substr($0, 4); wanted = 0; inside = 1; next }
    inside && /^```/ { close(file); inside = 0; next }
    inside { print > file }' "$SOURCE/README.md"
}

# Somebody else's listener may have a port, and never answer.
redis-cli() { timeout 2 redis-cli "$@"; }

# Redis-servers on free ports: port -> process. They end with the script. `masters` are the URLs of the last ones.
declare -A servers=()
masters=()

# False: the server ended by itself, as it does when the port is taken. server_options stand before the port.
server_options=(--save '' --appendonly no)
start_server() {
  local i
  mkdir -p "$WORK/servers/$1"
  redis-server "${server_options[@]}" --port "$1" --bind 127.0.0.1 --dir "$WORK/servers/$1" >/dev/null &
  servers[$1]=$!
  for ((i = 0; i < 100; ++i)); do
    ! redis-cli -p "$1" info server 2>/dev/null | grep -q "process_id:$!" || return 0
    kill -0 $! 2>/dev/null || break
    sleep 0.05
  done
  stop_server "$1"
  return 1
}

stop_server() {
  kill "${servers[$1]}" 2>/dev/null || true
  wait "${servers[$1]}" 2>/dev/null || true
  unset "servers[$1]"
}

stop_servers() {
  local port
  for port in "${!servers[@]}"; do stop_server "$port"; done
}

start_masters() {
  local port
  trap stop_servers EXIT
  masters=()
  while [[ ${#masters[@]} -lt $1 ]]; do
    port=$((20000 + RANDOM % 10000))
    ! start_server "$port" || masters+=("redis://127.0.0.1:$port")
  done
}

# The same master again, without what it knew.
restart_master() {
  local port=${masters[$1]##*:}
  stop_server "$port"
  start_server "$port"
}

build_bus() {
  rm -rf "$WORK/readme" "$WORK/servers"
  mkdir -p "$WORK/readme/site"
  extract_examples
  # shellcheck disable=SC2046,SC2086
  "$CC" $FLAGS $(strict "$CC") -I"$SOURCE/include" "$WORK/readme/bus.c" -o "$WORK/readme/bus" "$1" \
    -Wl,-rpath,"${1%/*}" $LINK_FLAGS $(pkg-config --cflags --libs libuv libcjson) $TLS_LIBS ||
    fail "the README's program does not build"
}

# The README's program with these masters in its bus.json, and EXTRA in it. Sets said to what it printed.
said='' status=0
bus() {
  local extra=$1 list
  shift
  list=$(printf '"%s", ' "${masters[@]}")
  sed -e "s|\"masters\": .*|\"masters\": [${list%, }]$extra|" "$WORK/readme/bus.json" >"$WORK/readme/site/bus.json"
  status=0
  # shellcheck disable=SC2086
  said=$(cd "$WORK/readme/site" && timeout 60 $EMULATOR ../bus "$@" 2>&1) || status=$?
  printf -- '---- ./bus %s: exit %s\n%s\n' "$*" "$status" "$said"
}
sealed_masters() {
  local master sealed=0
  for master in "${masters[@]}"; do
    [[ -z $(redis-cli -p "${master##*:}" hget redlock::meta seal) ]] || sealed=$((sealed + 1))
  done
  echo "$sealed"
}
says() { grep -qE "$1" <<<"$said" || fail "not said: $1" "$said"; }
is_silent_about() { ! grep -qE "$1" <<<"$said" || fail "it says: $1"; }
holds() {
  says '^the bus is ours'
  [[ $status -eq 0 ]] || fail "the README's program has a lock, and exits with $status"
}
has_no_lock() {
  is_silent_about '^the bus is ours'
  [[ $status -eq 1 ]] || fail "the README's program has no lock, and exits with $status"
}

check_readme() {
  build_bus "$1"
  local watched='[123] of 3 masters (is|are) new and watched: [0-9.]+ m?s to go'
  local short=', "timing": {"max_ttl_ms": 1500}, "defaults": {"ttl_ms": 1000}'

  # On fresh servers the program waits for the guard, says so, and has its lock; run again it does not wait.
  start_masters 3
  bus "$short"
  says "$watched"
  holds
  bus "$short"
  is_silent_about watched
  holds

  # On servers of another configuration it does not wait.
  bus ', "timing": {"max_ttl_ms": 2500}, "defaults": {"ttl_ms": 1000}'
  says 'belongs to clients of another configuration: its max_ttl_ms is 1500, ours is 2500; make the files alike'
  has_no_lock

  # Without a server it says which address, and why.
  stop_servers
  bus ', "defaults": {"wait_ms": 300}'
  says "${masters[0]##*/}.*refused"
  has_no_lock

  # An operator's word makes the wait of 30 s needless.
  start_masters 3
  local begun=$SECONDS
  bus '' --new-site
  holds
  [[ $((SECONDS - begun)) -lt 20 ]] || fail "the operator's word has no effect"

  # The program itself gives no such word: masters that restart empty are watched, however often it runs. A program ends
  # when it is done with its lock, and two masters were enough for that. So it may have to run again for the third.
  local i
  for ((i = 0; i < 20 && $(sealed_masters) < 3; ++i)); do bus '' --new-site; done
  [[ $(sealed_masters) -eq 3 ]] || fail "not all masters are admitted"
  restart_master 0
  for i in 1 2 3; do
    bus ''
    holds
  done
  restart_master 1
  bus ', "timing": {"guard_wait_ms": 1500}'
  says '^not acquired: 2 of 3 masters are new and watched'
  has_no_lock
}

check_first_hour() {
  rm -rf "$WORK/readme"
  mkdir -p "$WORK/readme"
  extract_examples
  SOURCE=$SOURCE WORK=$WORK "$SOURCE/test/compile/first_hour.sh" "$WORK/readme"
}

# The recipes of examples/README.md as they stand, but for the device, the file of configuration and the times of cron.
recipe() {
  awk -v open="<!-- recipe: $1 -->" '
    $0 == open { wanted = 1; next }
    wanted && /^```/ { wanted = 0; inside = 1; next }
    inside && /^```/ { exit }
    inside { print }' "$SOURCE/examples/README.md" |
    sed "s|/dev/ttyS1|$WORK/recipes/line|; s|/etc/redlock/redlock.json|$WORK/recipes/redlock.json|"
}

# A pty in the place of the serial port, with a device that answers each request of 8 bytes.
serial_device() {
  python3 -u -c '
import os, pty, sys, tty
device, port = pty.openpty()
tty.setraw(port)
os.symlink(os.ttyname(port), sys.argv[1])
while request := os.read(device, 8):
    os.write(device, bytes.fromhex("11030201f4b850"))' "$WORK/recipes/line" &
  servers[device]=$!
  local i
  for ((i = 0; i < 100; ++i)); do [[ ! -e $WORK/recipes/line ]] || return 0; sleep 0.05; done
  fail "no pty"
}

# libmodbus is not everywhere: this one reads 500 from each register.
modbus_stub() {
  cat >"$1/modbus.h" <<'TEXT'
#include <stdint.h>
typedef int modbus_t;
static modbus_t a_line;
#define modbus_new_rtu(path, baud, parity, bits, stop) (&a_line)
#define modbus_set_slave(line, slave) 0
#define modbus_connect(line) 0
#define modbus_flush(line) (void)(line)
#define modbus_read_registers(line, at, count, to) (*(to) = 500, count)
#define modbus_strerror(number) "error"
#define modbus_close(line) (void)(line)
#define modbus_free(line) (void)(line)
TEXT
}

check_recipes() {
  local folder=$WORK/recipes first i
  rm -rf "$folder" "$WORK/servers"
  mkdir -p "$folder"
  start_masters 1
  serial_device
  printf '{"masters": ["%s"]}' "${masters[0]}" >"$folder/redlock.json"
  local -x REDLOCK_CONFIG=$folder/redlock.json PATH=$BUILD:$folder:$PATH
  redlock commission --yes >/dev/null

  recipe serial.sh >"$folder/serial.sh"
  said=$(sh "$folder/serial.sh") || fail "serial.sh fails"
  says '^ 11 03 02 01 f4 b8 50$'

  # Two gateways, of which one is late: the job is done once.
  printf '#!/bin/sh\necho done >>%s/jobs\n' "$folder" >"$folder/send-report"
  chmod +x "$folder/send-report"
  recipe cron | sed 's/.* root //; s/--at-least 30/--at-least 2/' >"$folder/cron"
  sh "$folder/cron" & first=$!
  for ((i = 0; i < 200; ++i)); do [[ ! -e $folder/jobs ]] || break; sleep 0.05; done
  sh "$folder/cron" || fail "cron: the second gateway fails"
  wait "$first" || fail "cron: the first gateway fails"
  [[ $(<"$folder/jobs") == done ]] || fail "cron: not one job" "$(<"$folder/jobs")"

  # The leader's gateway is killed: its program is gone when the other one starts.
  printf '#!/bin/sh\n[ ! -e /proc/"$(cat leader)" ] || touch two\necho $$ >>leaders; echo $$ >leader\nexec sleep 60\n' \
    >"$folder/serve"
  chmod +x "$folder/serve"
  (cd "$folder" && echo none >leader && recipe leader | sed 's/^/exec /' >lead && exec sh lead) & servers[leader]=$!
  for ((i = 0; i < 100; ++i)); do [[ ! -e $folder/leaders ]] || break; sleep 0.05; done
  (cd "$folder" && exec sh lead) & servers[next]=$!
  sleep 0.5
  kill -KILL "${servers[leader]}"
  for ((i = 0; i < 200 && $(wc -l <"$folder/leaders") < 2; ++i)); do sleep 0.05; done
  [[ $(wc -l <"$folder/leaders") -eq 2 && ! -e $folder/two ]] || fail "leader: none, or two at a time"
  stop_server next
  unset "servers[leader]"

  modbus_stub "$folder"
  recipe modbus.c >"$folder/meter.c"
  # shellcheck disable=SC2046,SC2086
  "$CC" $FLAGS $(strict "$CC") -I"$folder" -I"$SOURCE/include" "$folder/meter.c" -o "$folder/meter" "$1" \
    -Wl,-rpath,"${1%/*}" $LINK_FLAGS $(pkg-config --cflags --libs libuv libcjson) $TLS_LIBS ||
    fail "modbus.c does not build"
  said=$(timeout 60 "$folder/meter") || fail "modbus.c fails" "$said"
  says '^500$'
  ! pkg-config libmodbus ||
    "$CC" $(pkg-config --cflags libmodbus) $(strict "$CC") -I"$SOURCE/include" -fsyntax-only \
      "$folder/meter.c" ||
    fail "modbus.c does not fit libmodbus"
}

# A site of examples/site: three masters, the user of the gateways, and their configuration. Only the addresses and the
# folders are this test's. integration_guide takes the files as they are, where it can.
check_guide() {
  local site=$SOURCE/examples/site master port
  build_bus "$1"
  grep -v '^dir ' "$site/redis.conf" >"$WORK/redis.conf"
  server_options=("$WORK/redis.conf" --aclfile "$site/users.acl")
  local -x REDISCLI_AUTH=change-me-too
  redis-cli() { timeout 2 redis-cli --user operator "$@"; }
  start_masters 3
  install -m 640 "$site/redlock.json" "$WORK/readme/bus.json"
  for master in 1 2 3; do
    port=${masters[master - 1]##*:}
    sed -i "s|redis://10.0.0.1$master:6379|redis://127.0.0.1:$port|" "$WORK/readme/bus.json"
  done
  said=$(cd "$WORK/readme" && $EMULATOR ./bus --new-site 2>&1) || fail "no lock on the guide's site: $said"
  says '^the bus is ours'
  for port in "${!servers[@]}"; do
    [[ -z $(redis-cli -p "$port" acl log) ]] || fail "a permission is missing: $(redis-cli -p "$port" acl log)"
    [[ $(redis-cli -p "$port" config get maxmemory-policy) == *noeviction* ]] || fail "keys may be evicted"
    [[ $(env -u REDISCLI_AUTH redis-cli -p "$port" ping 2>&1) == NOAUTH* ]] || fail "the default user is let in"
  done
  check_services "$site"
}

# The block of the guide behind <!-- tls: NAME -->. Only the master's address, folders and port are this test's.
tls_block() {
  awk -v open="<!-- tls: $1 -->" '
    $0 == open { wanted = 1; next }
    wanted && /^```/ { wanted = 0; inside = 1; next }
    inside && /^```/ { exit }
    inside { print }' "$SOURCE/examples/site/README.md" |
    sed "s/10\.0\.0\.11/127.0.0.1/; s|/etc/redis/|$folder/|; s/^tls-port .*/tls-port ${port:-0}/"
}

# False: the server ended by itself, as it does when the port is taken.
start_tls_server() {
  port=$((20000 + RANDOM % 10000))
  tls_block redis.conf >"$folder/redis.conf"
  redis-server "$folder/redis.conf" --save '' --bind 127.0.0.1 --dir "$folder" >"$folder/redis.log" &
  servers[$port]=$!
  local i
  for ((i = 0; i < 200; ++i)); do
    [[ $(as_gateway ping 2>/dev/null) != PONG ]] || return 0
    kill -0 "${servers[$port]}" 2>/dev/null || break
    sleep 0.05
  done
  stop_server "$port"
  return 1
}

# One command makes all certificates anew, for the same keys and names and for 90 days, and the master takes its own
# without a restart.
check_renewal() {
  local before after
  before=$(cd "$folder" && sh -e pin.sh)
  served() { openssl s_client -connect "127.0.0.1:$port" </dev/null 2>/dev/null | openssl x509 -noout -serial; }
  [[ $(served) == $(openssl x509 -in "$folder/lock-a.pem" -noout -serial) ]] || fail "the master shows another"
  (cd "$folder" && sh -e renew.sh) >"$folder/renew.log" 2>&1 || fail "$(cat "$folder/renew.log")"
  after=$(cd "$folder" && sh -e pin.sh)
  [[ $before == "$after" ]] || fail "the renewal has changed the key"
  for name in lock-a gw-17; do
    openssl verify -CAfile "$folder/ca.pem" "$folder/$name.pem" >/dev/null
    openssl x509 -in "$folder/$name.pem" -noout -checkend $((89 * 86400)) >/dev/null || fail "$name ends too early"
    ! openssl x509 -in "$folder/$name.pem" -noout -checkend $((91 * 86400)) >/dev/null || fail "$name ends too late"
  done
  openssl verify -CAfile "$folder/ca.pem" -verify_ip 127.0.0.1 "$folder/lock-a.pem" >/dev/null
  [[ $(served) != $(openssl x509 -in "$folder/lock-a.pem" -noout -serial) ]] || fail "nothing was renewed"
  as_gateway config set tls-cert-file "$folder/lock-a.pem" | grep -qx OK
  [[ $(served) == $(openssl x509 -in "$folder/lock-a.pem" -noout -serial) ]] || fail "the master shows the old one"
  [[ $(as_gateway ping) == PONG ]] || fail "the gateway is not let in with its new certificate"
}

# The guide's certificates are for the master's address alone, and let in a gateway that has one, and nobody else.
check_guide_tls() {
  command -v openssl >/dev/null || { echo "openssl is not here"; exit 77; }
  ! redis-server - --port 0 --tls-port 0 --no-such-directive <<<'' | grep -q tls-port ||
    { echo "this redis-server has no TLS"; exit 77; }
  local folder=$WORK/certificates port='' name try pin
  rm -rf "$folder"
  mkdir -p "$folder"
  for name in authority master gateway pin renew; do tls_block $name >"$folder/$name.sh"; done
  for name in authority master gateway; do
    (cd "$folder" && sh -e $name.sh) >"$folder/$name.log" 2>&1 || fail "$(cat "$folder/$name.log")"
  done
  openssl verify -CAfile "$folder/ca.pem" -verify_ip 127.0.0.1 "$folder/lock-a.pem" >/dev/null
  ! openssl verify -CAfile "$folder/ca.pem" -verify_ip 127.0.0.2 "$folder/lock-a.pem" >/dev/null 2>&1

  as_gateway() {
    redis-cli --tls -p "$port" --cacert "$folder/ca.pem" --cert "$folder/gw-17.pem" --key "$folder/gw-17.key" "$@"
  }
  trap stop_servers EXIT
  for ((try = 0; try < 20; ++try)); do ! start_tls_server || break; done
  [[ $(as_gateway ping) == PONG ]] || fail "the gateway is not let in" "$(cat "$folder/redis.log")"
  [[ $(redis-cli --tls -p "$port" --cacert "$folder/ca.pem" ping 2>&1) != PONG ]] || fail "everybody is let in"
  check_renewal

  # The program takes a lock there: by the authority, by the master's key alone, and not by another key.
  [[ $TLS != off && -x $BUILD/redlock ]] || return 0
  umask 077
  pin=$(cd "$folder" && sh -e pin.sh)
  tls_block redlock.json | sed -e "s|\"masters\": .*|\"masters\": [ \"rediss://127.0.0.1:$port\" ],|" \
    -e "s|/etc/redlock/|$folder/|" >"$folder/redlock.json"
  sed "s|\"ca_file\": .*|\"pin\": \"sha256:$pin\",|" "$folder/redlock.json" >"$folder/pinned.json"
  sed "s|sha256:.|sha256:$(((0x${pin:0:1} + 1) % 10))|" "$folder/pinned.json" >"$folder/foreign.json"
  for name in redlock pinned; do
    $EMULATOR "$BUILD/redlock" commission --yes -C "$folder/$name.json"
    $EMULATOR "$BUILD/redlock" run -w 60 -C "$folder/$name.json" plant1/bus -- true || fail "no lock: $name.json"
  done
  status=0
  said=$($EMULATOR "$BUILD/redlock" run -w 1 -C "$folder/foreign.json" plant1/bus -- true 2>&1) || status=$?
  says 'its key is none of tls.pin'
  [[ $status -eq 78 ]] || fail "exit code $status for a wrong pin"
}

# The files for systemd and chrony, where these can judge them.
check_services() {
  local unit=/lib/systemd/system/redis-server.service
  if command -v systemd-analyze >/dev/null && [[ -f $unit ]]; then
    mkdir -p "$WORK/${unit##*/}.d"
    cp "$unit" "$WORK"
    cp "$1/locks.conf" "$WORK/${unit##*/}.d"
    said=$(systemd-analyze verify --man=no "$WORK/${unit##*/}" 2>&1) || fail "systemd does not take locks.conf: $said"
    is_silent_about locks.conf
  fi
  command -v chronyd >/dev/null || return 0
  chronyd -p -f "$1/chrony.conf" >/dev/null || fail "chronyd does not take chrony.conf"
}

# Configures in WORK/NAME and sets `commands` to what the build would run: commands_of NAME OPTION...
commands_of() {
  rm -rf "${WORK:?}/$1"
  "$CMAKE" -S "$SOURCE" -B "$WORK/$1" -G Ninja "${@:2}" >"$WORK/$1.log" 2>&1 || fail "$(cat "$WORK/$1.log")"
  commands=$("$CMAKE" --build "$WORK/$1" -- -t commands)
}

# Every source is compiled as what ships: small, hardened, without asserts, and nothing else is built.
ships() {
  local sources others flag
  sources=$(grep -E " -c $SOURCE/[^ ]*" <<<"$commands")
  others=$(grep -vE " -c $SOURCE/(src|port)/" <<<"$sources" || true)
  [[ -z $others ]] || fail "not of the library, but built by default:" "$others"
  for flag in -Os -DNDEBUG -fstack-protector-strong -D_FORTIFY_SOURCE=2 "$@"; do
    others=$(grep -vF -e " $flag " <<<"$sources" || true)
    [[ -z $others ]] || fail "compiled without $flag:" "$others"
  done
  ! grep -F -e -DREDLOCK_ASSERTS <<<"$sources" || fail "asserts are on"
  [[ $(grep -cE -e '-Wl,-z,relro,-z,now .*-o (redlock|libredlock\.so)' <<<"$commands") -eq 2 ]] ||
    fail "library and program are not linked with full RELRO"
  echo "$(wc -l <<<"$sources") sources"
}

# Without options the build makes what ships. A build type, or an optimisation, keeps all flags as they are given.
check_default() {
  local compilers=(-DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX")
  commands_of default "${compilers[@]}" -DCMAKE_C_FLAGS= -DCMAKE_CXX_FLAGS=
  ships
  "$CMAKE" -S "$SOURCE" -B "$WORK/default" >/dev/null
  [[ $("$CMAKE" --build "$WORK/default" -- -t commands) == "$commands" ]] || fail "configured again, it differs"
  commands_of default "${compilers[@]}" -DCMAKE_BUILD_TYPE=RelWithDebInfo
  ! grep -E -e '-Os|stack-protector|relro' <<<"$commands" || fail "flags beside those of the build type"
  commands_of default "${compilers[@]}" -DCMAKE_CXX_FLAGS=-O3
  ! grep -E -e '-Os|stack-protector|relro' <<<"$commands" || fail "flags beside those that were given"
}

# A preset's warnings are errors on a known compiler, and warnings on a newer one.
check_werror() {
  local compiler wanted newer=$WORK/newer
  ! grep Werror "$SOURCE/CMakePresets.json" | grep -v '"REDLOCK_WERROR": "ON"' || fail "a preset knows no compiler"
  printf '#!/bin/sh\nexec %s -U__GNUC__ -D__GNUC__=99 "$@"\n' "$CXX" >"$newer"
  chmod +x "$newer"
  for compiler in "$CXX" "$newer"; do
    (cd "$SOURCE" && commands_of werror --preset dev -DCMAKE_CXX_COMPILER="$compiler" -DREDLOCK_BUILD_TESTS=OFF \
      -DREDLOCK_BUILD_EXAMPLES=OFF)
    commands=$("$CMAKE" --build "$WORK/werror" -- -t commands | grep -E " -c $SOURCE/.*\.cpp$")
    ! grep -vF -e ' -Wshadow ' <<<"$commands" || fail "compiled without warnings"
    ! grep -F modmap <<<"$commands" || fail "searched for C++ modules"
    wanted=0
    if [[ $compiler == "$CXX" && $(strict "$CXX") == *-Werror ]]; then wanted=$(wc -l <<<"$commands"); fi
    [[ $(grep -cF -e ' -Werror ' <<<"$commands") -eq $wanted ]] || fail "$compiler: not $wanted -Werror" "$commands"
  done
}

# The presets of what ships for ARM need the cross compiler, libuv and cJSON, and make what a plain build makes here.
check_presets() {
  local triplet name tried=''
  for name in armhf-release:arm-linux-gnueabihf aarch64-release:aarch64-linux-gnu; do
    triplet=${name#*:}
    { command -v "$triplet-g++" && ls {"$SOURCE"/build/sysroot/*,}/usr/lib/"$triplet"/libuv.so | grep .; } \
      >/dev/null 2>&1 || continue
    (cd "$SOURCE" && commands_of presets --preset "${name%:*}")
    commands=$("$CMAKE" --build "$WORK/presets" -- -t commands)
    grep -q "$triplet-g++ " <<<"$commands" || fail "${name%:*} does not take $triplet-g++"
    if [[ $triplet == aarch64* ]]; then ships -mbranch-protection=standard; else ships; fi
    tried+=" ${name%:*}"
  done
  [[ -n $tried ]] || { echo "no cross compiler is here"; exit 77; }
}

# A whole gateway program takes a lock on a new site of real servers, which a file names or its arguments: also where no
# C++ program can be built (musl).
check_gateway() {
  rm -rf "$WORK/gateway"
  mkdir -p "$WORK/gateway" "$WORK/readme"
  local name
  for name in FILE URL; do
    # shellcheck disable=SC2046,SC2086
    "$CC" $FLAGS -DMASTERS_BY_$name -I"$SOURCE/include" "$SOURCE/test/size/gateway.c" -o "$WORK/gateway/by_$name" "$1" \
      -Wl,-rpath,"${1%/*}" -Wl,--gc-sections $LINK_FLAGS $(pkg-config --cflags --libs libuv libcjson) $TLS_LIBS
  done
  start_masters 3
  printf '{ "client_name": "gw", "masters": ["%s", "%s", "%s"] }\n' "${masters[@]}" >"$WORK/gateway/gateway.json"
  timeout 60 $EMULATOR "$WORK/gateway/by_FILE" bus-1 "$WORK/gateway/gateway.json" || fail "the gateway failed: exit $?"
  timeout 60 $EMULATOR "$WORK/gateway/by_URL" bus-1 "${masters[@]}" || fail "the gateway without a file failed: exit $?"
}

# redlock.abi lists the symbols of the last release and the types they speak of. What differs from it has to be named in
# CHANGELOG.md, in the section that is not released, in an item that begins with **ABI**. Numbers of errors are kept by
# unit/test_errors.
dump_abi() {
  abidw --no-corpus-path --no-show-locs --no-comp-dir-path --no-elf-needed --headers-dir "$SOURCE/include/redlock" \
    --drop-private-types --drop-undefined-syms --exported-interfaces-only --out-file "$2" "$1"
}

# A program that was linked with the last release asks for each of its symbols in the file of this name.
abi_symbols() { sed -nE "s/.*<elf-symbol name='([^']+)' version='([^']+)'.*/\1@\2/p" "$1" | sort; }
abi_soname() { sed -nE "s/^<abi-corpus .* soname='([^']+)'.*/\1/p" "$1"; }

check_abi() {
  command -v abidw abidiff >/dev/null || { echo "abidw is not here (abigail-tools)"; exit 77; }
  local removed changes status=0 names name announced missing=() formats
  dump_abi "$1" "$WORK/redlock.abi"
  formats=$(sed -nE "s/^<abi-corpus version='([0-9]+).*/\1/p" "$SOURCE/test/compile/redlock.abi" "$WORK/redlock.abi")
  [[ $(sort -u <<<"$formats" | wc -l) -eq 1 ]] || { echo "redlock.abi, and what abidw writes:" $formats; exit 77; }
  removed=$(comm -23 <(abi_symbols "$SOURCE/test/compile/redlock.abi") <(abi_symbols "$WORK/redlock.abi") | xargs)
  name=$(abi_soname "$WORK/redlock.abi")
  [[ -z $removed || $name != "$(abi_soname "$SOURCE/test/compile/redlock.abi")" ]] ||
    fail "removed since the last release, so the file needs another name than $name: $removed"
  changes=$(abidiff --leaf-changes-only --harmless --no-show-locs "$SOURCE/test/compile/redlock.abi" \
    "$WORK/redlock.abi") || status=$?
  [[ $((status & 3)) -eq 0 ]] || fail "abidiff failed:" "$changes"
  names=$(sed -nE "s/^ *\[[ACD]\] .*[ *](redlock_[a-z0-9_]+)\(.*/\1/p
    s/^ *'(struct|enum|union) (redlock_[a-z0-9_]+)[ '].*changed:.*/\2/p" <<<"$changes" | sort -u)
  announced=$(awk '/^## / { here = /not released/ } /^(- |$)/ { item = /^- \*\*ABI\*\*/ } here && item' \
    "$SOURCE/CHANGELOG.md")
  for name in $names; do
    grep -qE "\<${name/%_s/_[st]}\>" <<<"$announced" || missing+=("$name")
  done
  [[ ${#missing[@]} -eq 0 ]] || fail "$changes" "" "The ABI is not that of test/compile/redlock.abi." \
    "Name in CHANGELOG.md, in an item of the section that is not released, which begins with **ABI**: ${missing[*]}"
  echo "differs from the last release, as announced: $(xargs <<<"${names:-in nothing}")"
}

# For a release, when its changes have been announced: cmake --build --preset dev --target refresh_abi
check_refresh_abi() { dump_abi "$1" "$SOURCE/test/compile/redlock.abi"; }

# What is shipped for systemd, procd and cron starts the programs of this BIN: names_its_program BIN FILE...
names_its_program() {
  local found
  found=$(grep -hoE '[^ =]*bin/redlock(-service)?( |$)' "${@:2}" | tr -d ' ' | sort | uniq -c | xargs)
  [[ $found == "3 $1/redlock 2 $1/redlock-service" ]] || fail "not started from $1:" "$found"
}

check_unit() { # FILE
  command -v systemd-analyze >/dev/null || { echo "systemd-analyze is not here: it judges no unit" && return; }
  said=$(systemd-analyze verify --man=no "$1" 2>&1) || true # of the units of this machine, too
  is_silent_about redlock
}

# Installs into WORK/prefix, for the checks below too, and looks at what is there.
check_package() {
  local prefix=$WORK/prefix document unexpected unit
  rm -rf "$prefix" "$WORK/runtime"
  "$CMAKE" --install "$BUILD" --prefix "$prefix" >/dev/null
  unexpected=$(cd "$prefix" && find . -mindepth 1 -maxdepth 1 ! -name include ! -name 'lib*' ! -name bin ! -name share)
  [[ -z $unexpected ]] || fail "installed outside include, lib, bin and share:" "$unexpected"
  ! grep -rnE "$SOURCE|$BUILD|$prefix|/usr/" "$prefix" --include='*.cmake' || fail "absolute paths in the CMake files"
  if command -v python3 >/dev/null; then
    [[ -s $prefix/share/man/man3/redlock_acquire_async.3 ]] || fail "not installed: redlock_acquire_async(3)"
  fi
  for document in LICENSE CHANGELOG.md examples/uv_app.c examples/shared_device/gateway.c; do
    [[ -s $(echo "$prefix"/share/doc/*)/$document ]] || fail "not installed: $document"
  done
  # The program finds its library beside itself, wherever both are moved to.
  if [[ -x $prefix/bin/redlock ]]; then
    rm -rf "$WORK/moved"
    cp -a "$prefix" "$WORK/moved"
    env -u LD_LIBRARY_PATH $EMULATOR "$WORK/moved/bin/redlock" version || fail "the installed program does not start"
    names_its_program "$prefix/bin" "$prefix"/lib/systemd/system/* "$prefix"/share/doc/*/examples/redlock.*
    for unit in redlock@.service redlock-metrics.service redlock-metrics.timer; do
      check_unit "$prefix/lib/systemd/system/$unit"
    done
  fi
  [[ $SHARED == ON ]] || return 0
  unexpected=$(PKG_CONFIG_PATH=$(echo "$prefix"/lib*/pkgconfig "$prefix"/lib*/*/pkgconfig | tr ' ' :) \
    pkg-config --cflags redlock | tr ' ' '\n' | grep -vxE "|-I$prefix/include" || true)
  [[ -z $unexpected ]] || fail "pkg-config gives more than our headers need:" "$unexpected"
  "$CMAKE" --install "$BUILD" --prefix "$WORK/runtime" --component redlock-runtime >/dev/null
  unexpected=$(find "$WORK/runtime" ! -type d ! -name 'libredlock.so.*')
  [[ -z $unexpected ]] || fail "not for a gateway, but in the runtime component:" "$unexpected"
}

build_consumer() {
  local build=$WORK/$1 compiler=(-DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX")
  [[ -z $TOOLCHAIN ]] || compiler=(-DCMAKE_TOOLCHAIN_FILE="$TOOLCHAIN" -DCMAKE_FIND_ROOT_PATH="$WORK/prefix")
  rm -rf "$build"
  "$CMAKE" -S "$SOURCE/test/compile/consumer" -B "$build" "${compiler[@]}" "${@:2}" >"$WORK/$1.log" 2>&1 ||
    fail "$(cat "$WORK/$1.log")"
  "$CMAKE" --build "$build" >>"$WORK/$1.log" 2>&1 || fail "$(cat "$WORK/$1.log")"
  run_consumer "$build/consumer"
  run_consumer "$build/maintenance"
}

run_consumer() {
  $EMULATOR "$1" || fail "the consumer failed: exit $?"
  ! "$READELF" -d "$1" | grep -E 'NEEDED.*(libstdc|libc\+\+|libgcc)' ||
    fail "a C program was linked with the C++ runtime"
}

check_find_package() { build_consumer find_package -DCMAKE_PREFIX_PATH="$WORK/prefix"; }

check_fetch_content() { build_consumer fetch_content -DREDLOCK_FROM="$SOURCE" -DBUILD_SHARED_LIBS="$SHARED"; }

check_pkg_config() {
  local pc static=() flags program module
  pc=$(find "$WORK/prefix" -name redlock.pc)
  [[ $SHARED == ON ]] || static=(--static)
  [[ $(PKG_CONFIG_PATH=${pc%/*} pkg-config --variable=tls redlock) == "$TLS" ]] || fail "redlock.pc: which TLS?"
  for program in main:redlock maintenance:redlock-site; do
    module=${program#*:}
    flags=$(PKG_CONFIG_PATH=${pc%/*} pkg-config "${static[@]}" --cflags --libs "$module")
    # shellcheck disable=SC2086
    "$CC" "$SOURCE/test/compile/consumer/${program%:*}.c" -DEXPECTED=REDLOCK_E_CONFIG -o "$WORK/pkg_config" \
      $LINK_FLAGS $flags
    run_consumer "$WORK/pkg_config"
  done
}

# redlock_site beside the library of this build, and beside a static library of the same objects, in each order of the
# two: every symbol is found, and none twice. check_site SITE LIBRARY OBJECT...
check_site() {
  local site=$1 library=$2 archive=$WORK/site/libredlock.a set program=$WORK/site/maintenance
  rm -rf "$WORK/site"
  mkdir -p "$WORK/site"
  "$AR" rcs "$archive" "${@:3}"
  link_maintenance() { # EXPECTED LIBRARY...
    # shellcheck disable=SC2046,SC2086
    "$CC" $FLAGS -I"$SOURCE/include" -DEXPECTED="$1" "$SOURCE/test/compile/consumer/maintenance.c" -o "$program" \
      "${@:2}" -fno-lto -Wl,-rpath,"${library%/*}" $LINK_FLAGS $(pkg-config --cflags --libs libuv libcjson) \
      $TLS_LIBS -pthread ||
      fail "does not link: ${*:2}"
    $EMULATOR "$program" || fail "failed with: ${*:2}"
  }
  for set in "$site $library" "$library $site $library" "$site $archive" "$archive $site $archive"; do
    # shellcheck disable=SC2086
    link_maintenance REDLOCK_E_CONFIG $set
  done
  # The library of another version, or with another TLS, may have other configurations.
  printf 'const char *__wrap_redlock_version_string(void) { return "0.3.0+other"; }\n' >"$WORK/site/other.c"
  link_maintenance REDLOCK_E_NOTSUP "$WORK/site/other.c" "$site" "$library" -Wl,--wrap=redlock_version_string
}

# These start servers and write files of one name, at the same time.
case $1 in
  readme | first_hour | guide | guide_tls | gateway)
    WORK=$WORK/$1
    mkdir -p "$WORK"
    ;;
esac
"check_$1" "${@:2}"
