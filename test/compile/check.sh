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
        program "$name" | "$compiler" -x "$language" -std="$standard" -pedantic -Wall -Wextra -Wconversion -Wshadow \
          -Werror -I"$SOURCE/include" -fsyntax-only - || fail "$name does not compile alone: $compiler -std=$standard"
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
        "$compiler" -std=c11 -Wall -Wextra -Werror -I"$SOURCE/include" -DTIME_T_BYTES="$bytes" -D_FILE_OFFSET_BITS=64 \
          $option -fsyntax-only "$SOURCE/test/compile/layout.c" || fail "$compiler: not the layout of layout.c"
        seen+=("$((8 * bytes))-bit time_t")
        break
      done
    done
  done
  echo "${seen[*]}"
}

# A program over redlock.hpp asks for functions of the C API and for nothing else: no C++ runtime, no heap, also where
# exceptions and RTTI are switched off.
check_raii() {
  local compiler standard others object=$WORK/raii.o count=0
  for compiler in $(compilers c++); do
    for standard in c++11 c++17 c++20; do
      "$compiler" -x c++ -std="$standard" -O1 -fno-exceptions -fno-rtti -fno-stack-protector -Wall -Wextra -Werror \
        -I"$SOURCE/include" -c -o "$object" - <<'TEXT' || fail "redlock.hpp does not compile: $compiler -std=$standard"
#include <redlock/redlock.hpp>
bool more_work(int);
int job(redlock_t *rl);
int job(redlock_t *rl) {
  redlock::lock bus;
  const int err = redlock::acquire(rl, "bus", redlock::options().ttl(std::chrono::seconds(5)).wait_forever(), bus);
  if (err != 0) return err;
  redlock::lock mine(static_cast<redlock::lock &&>(bus));
  for (int i = 0; mine.valid_for(std::chrono::milliseconds(300)); ++i) {
    if (mine.validity() < std::chrono::seconds(1)) return mine.extend(std::chrono::seconds(5));
  }
  return mine.release();
}
TEXT
      others=$(nm --undefined-only "$object" | awk '{ print $2 }' |
        grep -vE '^(redlock_[a-z_]+|_GLOBAL_OFFSET_TABLE_|mem(cpy|set))$' || true)
      [[ -z $others ]] || fail "a program over redlock.hpp needs more than the C API ($compiler -std=$standard):" \
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
  "$CC" $FLAGS -Wall -Wextra -Werror -I"$SOURCE/include" "$WORK/readme/bus.c" -o "$WORK/readme/bus" "$1" \
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
  says 'belongs to clients of another configuration: 3 masters, max_ttl 1500; ours: 3 masters, 2500'
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

# A site of examples/site: three masters, the user of the gateways, and their configuration. Only the addresses and the
# folders are this test's. integration_guide takes the files as they are, where it can.
check_guide() {
  local site=$SOURCE/examples/site master port
  build_bus "$1"
  grep -v '^dir ' "$site/redis.conf" >"$WORK/redis.conf"
  server_options=("$WORK/redis.conf" --aclfile "$site/users.acl")
  local -x REDISCLI_AUTH=change-me-too
  redis-cli() { command redis-cli --user operator "$@"; }
  start_masters 3
  cp "$site/redlock.json" "$WORK/readme/bus.json"
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

# The guide's certificates are for the master's address alone, and let in a gateway that has one, and nobody else.
check_guide_tls() {
  command -v openssl >/dev/null || { echo "openssl is not here"; exit 77; }
  ! redis-server - --port 0 --tls-port 0 --no-such-directive <<<'' | grep -q tls-port ||
    { echo "this redis-server has no TLS"; exit 77; }
  local folder=$WORK/certificates port='' name try pin
  rm -rf "$folder"
  mkdir -p "$folder"
  for name in authority master gateway pin; do tls_block $name >"$folder/$name.sh"; done
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
  as_gateway config set tls-cert-file "$folder/lock-a.pem" | grep -qx OK

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
    said=$(systemd-analyze verify "$WORK/${unit##*/}" 2>&1) || fail "systemd does not take locks.conf: $said"
    is_silent_about locks.conf
  fi
  command -v chronyd >/dev/null || return 0
  chronyd -p -f "$1/chrony.conf" >/dev/null || fail "chronyd does not take chrony.conf"
}

# Without options the build makes the library, and neither tests nor examples.
check_default() {
  rm -rf "$WORK/default"
  "$CMAKE" -S "$SOURCE" -B "$WORK/default" -G Ninja -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" >/dev/null
  local sources others
  sources=$("$CMAKE" --build "$WORK/default" -- -t commands | grep -oE " -c $SOURCE/[^ ]*")
  others=$(grep -vE " $SOURCE/(src|port)/" <<<"$sources" || true)
  [[ -z $others ]] || fail "not of the library, but built by default:" "$others"
  echo "$(wc -l <<<"$sources") sources"
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
# CHANGELOG.md, in an item of "Unreleased" that begins with **ABI**. Numbers of errors are kept by unit/test_errors.
dump_abi() {
  abidw --no-corpus-path --no-show-locs --no-comp-dir-path --no-elf-needed --headers-dir "$SOURCE/include/redlock" \
    --drop-private-types --drop-undefined-syms --exported-interfaces-only --out-file "$2" "$1"
}

check_abi() {
  command -v abidw abidiff >/dev/null || { echo "abidw is not here (abigail-tools)"; exit 77; }
  local changes status=0 names name announced missing=()
  dump_abi "$1" "$WORK/redlock.abi"
  changes=$(abidiff --leaf-changes-only --harmless --no-show-locs "$SOURCE/test/compile/redlock.abi" \
    "$WORK/redlock.abi") || status=$?
  [[ $((status & 3)) -eq 0 ]] || fail "abidiff failed:" "$changes"
  names=$(sed -nE "s/^ *\[[ACD]\] .*[ *](redlock_[a-z0-9_]+)\(.*/\1/p
    s/^ *'(struct|enum|union) (redlock_[a-z0-9_]+)[ '].*changed:.*/\2/p" <<<"$changes" | sort -u)
  announced=$(awk '/^## / { here = /^## Unreleased/ } /^(- |$)/ { item = /^- \*\*ABI\*\*/ } here && item' \
    "$SOURCE/CHANGELOG.md")
  for name in $names; do
    grep -qE "\<${name/%_s/_[st]}\>" <<<"$announced" || missing+=("$name")
  done
  [[ ${#missing[@]} -eq 0 ]] || fail "$changes" "" "The ABI is not that of test/compile/redlock.abi." \
    "Name in CHANGELOG.md, in an item of \"Unreleased\" that begins with **ABI**: ${missing[*]}"
  echo "differs from the last release, as announced: $(xargs <<<"${names:-in nothing}")"
}

# For a release, when its changes have been announced: cmake --build --preset dev --target refresh_abi
check_refresh_abi() { dump_abi "$1" "$SOURCE/test/compile/redlock.abi"; }

# Installs into WORK/prefix, for the checks below too, and looks at what is there.
check_package() {
  local prefix=$WORK/prefix document unexpected
  rm -rf "$prefix" "$WORK/runtime"
  "$CMAKE" --install "$BUILD" --prefix "$prefix" >/dev/null
  unexpected=$(cd "$prefix" && find . -mindepth 1 -maxdepth 1 ! -name include ! -name 'lib*' ! -name bin ! -name share)
  [[ -z $unexpected ]] || fail "installed outside include, lib, bin and share:" "$unexpected"
  ! grep -rnE "$SOURCE|$BUILD|$prefix|/usr/" "$prefix" --include='*.cmake' || fail "absolute paths in the CMake files"
  for document in LICENSE CHANGELOG.md examples/uv_app.c examples/shared_device/gateway.c; do
    [[ -s $(echo "$prefix"/share/doc/*)/$document ]] || fail "not installed: $document"
  done
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

check_add_subdirectory() {
  build_consumer add_subdirectory -DREDLOCK_FROM="$SOURCE" -DBUILD_SHARED_LIBS="$SHARED"
}

check_fetch_content() {
  build_consumer fetch_content -DREDLOCK_FETCH="$SOURCE" -DBUILD_SHARED_LIBS="$SHARED"
}

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
      $LINK_FLAGS $flags -Wl,-rpath,"${pc%/*}/.."
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
  printf 'const char *__wrap_redlock_version_string(void) { return "0.2.0+other"; }\n' >"$WORK/site/other.c"
  link_maintenance REDLOCK_E_NOTSUP "$WORK/site/other.c" "$site" "$library" -Wl,--wrap=redlock_version_string
}

# These start servers and write files of one name, at the same time.
case $1 in
  readme | guide | guide_tls | gateway)
    WORK=$WORK/$1
    mkdir -p "$WORK"
    ;;
esac
"check_$1" "${@:2}"
