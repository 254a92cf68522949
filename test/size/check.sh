#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# One check of what was built: check.sh CHECK FILE... Prints what is wrong and exits 1, or one line about what is right.
set -euo pipefail
: "${NM:=nm}" "${READELF:=readelf}" "${OBJDUMP:=objdump}" "${CC:=cc}"

fail() {
  printf '%s\n' "$@" >&2
  exit 1
}

# refuse WHAT LINES: fails with the lines if there are any.
refuse() {
  [[ -z $2 ]] || fail "$1:" "$2"
}

undefined() { "$NM" --undefined-only "$@" | awk 'NF == 2 && $1 ~ /^[UwWvV]$/ { print $1, $2 }' | sort -u; }
defined() { "$NM" --defined-only --extern-only "$@" | awk 'NF == 3 { print $3 }' | sort -u; }

# The shared library needs libc, libuv and cJSON, the TLS library that the build asks for, and nothing else.
check_needed() {
  local libraries tls=
  case $2 in
    openssl) tls='|libssl|libcrypto' ;;
    mbedtls) tls='|libmbedtls|libmbedx509|libmbedcrypto' ;;
  esac
  libraries=$("$READELF" -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
  refuse "libraries needed that should not be" \
    "$(grep -vE '^(libc|libc\.musl-[a-z0-9_]+|libuv|libcjson|ld-linux[a-z0-9_-]*'"$tls"')\.so(\.[0-9]+)*$' \
      <<<"$libraries" || true)"
  echo "needs:" $libraries
}

# No symbol of the C++ runtime is asked for; the weak one that every shared object has is nobody's need.
check_runtime() {
  local symbols
  symbols=$("$NM" -D --undefined-only "$1" | awk '{ print $1, $2 }')
  refuse "symbols of the C++ runtime" \
    "$(grep -E ' (_Z|__cxa_|__gxx_)' <<<"$symbols" | grep -vE '^w __cxa_finalize(@|$)' || true)"
  echo "asks for $(wc -l <<<"$symbols") symbols, none of the C++ runtime"
}
check_runtime_checked_std() { check_runtime "$@"; }

# The core is a pure machine: apart from itself it may refer to what a compiler makes of memory and arithmetic, so to no
# socket, no clock, no heap, no file, no thread. A build with asserts writes to stderr where one has failed.
check_pure() {
  local allowed='^(mem(cpy|move|set|cmp|chr)|__mem(cpy|move|set)_chk|strlen|__stack_chk_(fail|guard)'
  allowed+='|_GLOBAL_OFFSET_TABLE_|__aeabi_[a-z0-9_]+|__aarch64_(cas|swp|ldadd|ldclr|ldeor|ldset)[0-9]+_[a-z_]+'
  allowed+='|__(u?div|u?mod|u?divmod|mul|popcount|clz|ctz|bswap|ashl|ashr|lshr)[a-z]+[0-9])$'
  local others
  [[ $(defined "$@") != *fail_assert* ]] || allowed="^(write|${allowed#'^('}"
  others=$(comm -23 <(undefined "$@" | cut -d' ' -f2 | sort -u) <(defined "$@"))
  refuse "the core refers to" "$(grep -vE "$allowed" <<<"$others" || true)"
  echo "the core's $# objects refer to:" $others
}

# What ships is hardened: relocations are read-only before the first line runs, the stack is guarded, and on 64-bit ARM
# return addresses are signed. check_hardened LIBRARY [PROGRAM]: FORTIFY shows in a program only. The library calls
# nothing that FORTIFY would guard.
check_hardened() {
  shows() { grep -qE "$1" <<<"$("${@:2}")"; }
  shows GNU_RELRO "$READELF" -lW "$1" || fail "$1 has no RELRO segment"
  shows 'BIND_NOW|FLAGS.*\<NOW\>' "$READELF" -dW "$1" || fail "$1 binds functions when they are called"
  shows __stack_chk_ "$READELF" --dyn-syms -W "$1" || fail "$1 has no guard on its stack"
  if shows AArch64 "$READELF" -h "$1"; then
    shows '\<(paciasp|hint[[:space:]]+#0x19)\>' "$OBJDUMP" -d "$1" || fail "$1 signs no return address"
  fi
  [[ -z ${2:-} ]] || shows '__[a-z]+_chk\>' "$READELF" --dyn-syms -W "$2" ||
    fail "$2 was built without FORTIFY"
  echo "${1##*/} is hardened"
}

# Nothing can be thrown through the library, so nobody needs to unwind it.
check_unwind() {
  local object tables=''
  for object in "$@"; do
    if "$READELF" -SW "$object" | grep -qE '\.(eh_frame|ARM\.ex(idx|tab))'; then tables+="$object"$'\n'; fi
  done
  refuse "objects with unwind tables" "$tables"
  echo "$# objects without unwind tables"
}

# What the shared library shows is exactly what redlock.h declares.
check_exported() {
  local declared shown
  declared=$(printf '#include <redlock/redlock.h>\n' | "$CC" -E -P -I"$2" -x c - | tr '\n' ' ' | tr ';' '\n' |
    sed -nE '/visibility\("default"\)/ s/.*[ *](redlock_[a-z0-9_]+) *\(.*/\1/p' | sort)
  shown=$("$NM" -D --defined-only "$1" | awk '$2 != "A" { print $3 }' | sort)
  [[ -n $declared ]] || fail "no declarations found in redlock.h"
  refuse "exported without the version node" "$(grep -v '@@REDLOCK_0$' <<<"$shown" || true)"
  refuse "declared (<) or exported (>) alone" \
    "$(diff <(echo "$declared") <(sed 's/@@.*//' <<<"$shown") | grep '^[<>]' || true)"
  echo "$(wc -l <<<"$declared") functions declared and exported"
}

# What only a maintenance program needs is in redlock_site alone: its steps, its calls, and its scripts.
check_gateway_only() {
  refuse "of redlock_site, in ${1##*/}" \
    "$(strings -a "$1" | grep -E "redlock_reconfigure|Reconfiguration|'moving '" || true)"
  [[ $(strings -a "$2" | grep -cE 'redlock_reconfigure|Reconfiguration|moving') -gt 3 ]] ||
    fail "not in ${2##*/} either?"
  echo "nothing of redlock_site"
}

# redlock_site shows the functions of site.h and none of redlock.h, and what it holds can be read by any linker.
check_site_names() {
  local names
  check_names "$1"
  names=$("$NM" --defined-only --extern-only "$1" 2>/dev/null |
    sed -nE 's/^[0-9a-f]+ [TW] (redlock_[a-z_]+)$/\1/p' | sort | xargs)
  names=${names/ redlock_site_tls/}  # only where it is built with TLS
  local ask="redlock_site_addresses redlock_site_ask redlock_site_ask_at"
  [[ $names == "redlock_reconfigure $ask redlock_site_facts redlock_site_left redlock_site_setting" ]] ||
    fail "functions of the C API in redlock_site: $names"
  refuse "what only one compiler can read" "$("$READELF" -SW "$1" 2>/dev/null | grep -F .gnu.lto_ | head -n3)"
}

# In the archive every strong symbol carries our name.
check_names() {
  local names
  names=$("$NM" --defined-only --extern-only --demangle "$1" | sed -nE 's/^[0-9a-f]+ [TDBRGSCA] //p' | sort -u)
  refuse "symbols outside redlock" \
    "$(grep -vE '^(redlock_|(vtable|typeinfo|guard variable).* for redlock::|redlock::)' <<<"$names" || true)"
  echo "$(wc -l <<<"$names") symbols, all ours"
}

"check_$1" "${@:2}"
