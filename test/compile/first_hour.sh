#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# README's first block, and the one that builds bus.c, pasted as they stand: first_hour.sh BLOCKS, a folder with
# first.sh, bus.sh, bus.c and bus.json. SOURCE and WORK are folders. The first line installs packages. It is compared
# with what the Debian packages need, without python3: a build that finds none has no man pages of section 3. The rest
# runs in a fresh tree, with namespaces of its own, an empty /usr/local and an /etc that is forgotten. Exit 77: this
# machine allows no namespaces.
set -euo pipefail

fail() {
  printf '%s\n' "$@" >&2
  exit 1
}

paste() { # SCRIPT LINE
  local said
  said=$(bash -euo pipefail "$1" 2>&1) || fail "${1##*/} fails:" "$said"
  grep -qxF "$2" <<<"$said" || fail "${1##*/} does not say '$2':" "$said"
}

inside() {
  local folder
  for folder in upper work; do mkdir -p "$WORK/own/$folder"; done
  mount -t overlay overlay -o "lowerdir=/etc,upperdir=$WORK/own/upper,workdir=$WORK/own/work" /etc
  for folder in /usr/local /run /var/cache/ldconfig; do mount -t tmpfs tmpfs "$folder"; done
  ip link set lo up
  ! command -v ccache >/dev/null || export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
  cd "$WORK"/redlock-*/
  tail -n +2 "$1/first.sh" >"$WORK/pasted.sh"
  paste "$WORK/pasted.sh" 'the bus is ours'
  "$SOURCE/test/size/check.sh" hardened /usr/local/lib/libredlock.so /usr/local/bin/redlock
  cp "$1/bus.c" "$1/bus.json" .
  paste "$1/bus.sh" 'the bus is ours for at least 300 ms'
}

if [[ $1 == --inside ]]; then
  mount -t tmpfs tmpfs "$WORK/own"
  inside "$2"
  exit
fi
packages=$(sed -n '1s/.* install -y //p' "$1/first.sh")
needed=$(sed -n '/nocheck/d;/^Build-Depends/,/^Standards/s/^\(Build-Depends:\)\? *\([a-z][a-z0-9.-]*\).*/\2/p' \
  "$SOURCE/toolchains/packaging/debian/control" | grep -vE '^(debhelper-compat|libssl-dev|python3)$')
[[ $needed == *cmake*libuv1-dev* ]] || fail "not what the Debian packages need: $needed"
for package in g++ make redis-server $needed; do
  [[ " $packages " == *" $package "* ]] || fail "README's first line does not install $package"
done
rm -rf "$WORK"/own "$WORK"/redlock-*
mkdir -p "$WORK/own"
tar -C "$WORK" -xf "$("$SOURCE/toolchains/packaging/archive.sh" "$WORK")"
rm "$WORK"/redlock-*.tar.gz
spaces=(unshare --mount --net --pid --fork --kill-child --mount-proc)
[[ $(id -u) -eq 0 ]] || spaces+=(--map-root-user)
"${spaces[@]}" true 2>/dev/null || { echo "no namespaces here"; exit 77; }
"${spaces[@]}" "$0" --inside "$1"
