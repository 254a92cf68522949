#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# usage: test/systems.sh FOLDER SUITE [COMMAND...]         for example: test/systems.sh build/systems/trixie trixie
# Runs COMMAND, or ./test/run.sh, as root in a clone of this commit on another release of Debian. The release is a root
# below FOLDER, which is made by mmdebstrap, and stays for the next run with its packages and what ccache has compiled.
# The command has mounts, processes and a network of its own, so nothing of it is left. Packages come from the mirrors
# of this machine's apt. Exit 77: the packages cannot be had, or nothing can be tried here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [[ $# -lt 2 ]]; then
  sed -nE '/^# usage/,/^set/ s/^# //p' "test/${BASH_SOURCE[0]##*/}" >&2
  exit 2
fi
source toolchains/packages.sh
folder=$(mkdir -p "$1" && cd "$1" && pwd)
suite=$2
root=$folder/root
shift 2

skip() {
  echo "$*"
  exit 77
}

# A root whose file system is that of the kernel too: a program below chroot alone cannot make namespaces.
enter() {
  mount --rbind "$root" "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount --rbind /sys "$root/sys"
  mount -t tmpfs tmpfs "$root/tmp"
  mount --bind "$folder/ccache" "$root/srv/redlock/build/ccache"
  ip link set lo up
  cd "$root"
  mkdir -p before
  pivot_root . before
  exec chroot . /usr/bin/env -i HOME=/root LANG=C.UTF-8 TERM="${TERM:-dumb}" USER=root \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
    bash -c 'umount -l /before && cd /srv/redlock && exec "$@"' bash "$@" </dev/null
}

if [[ ${REDLOCK_INSIDE:-} == yes ]]; then enter "$@"; fi
[[ $(id -u) -eq 0 ]] || skip "this needs root"
spaces=(unshare --mount --pid --fork --kill-child)
"${spaces[@]}" --net true 2>/dev/null || skip "no namespaces here"
install_missing yes mmdebstrap || exit
[[ -d $root ]] || three_tries debian_root "$suite" "$root" --format=directory --include=ccache,git || exit

# As Debian's installer writes it: a name of this machine has an address of each kind.
printf '%s\n' '127.0.0.1 localhost' '127.0.1.1 redlock' '::1 localhost ip6-localhost ip6-loopback' \
  'ff02::1 ip6-allnodes' 'ff02::2 ip6-allrouters' >"$root/etc/hosts"
cp -L /etc/resolv.conf "$root/etc"
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"  # no service starts by itself
chmod +x "$root/usr/sbin/policy-rc.d"
rm -rf "$root/srv/redlock"
git clone --quiet --no-local . "$root/srv/redlock"
mkdir -p "$folder/ccache" "$root/srv/redlock/build/ccache"

[[ $# -gt 0 ]] || set -- ./test/run.sh
packages=(./test/run.sh --packages)
if [[ $1 == */run.sh ]]; then packages=("$@" --packages); fi
export REDLOCK_INSIDE=yes
inside=("$PWD/test/systems.sh" "$folder" "$suite")
"${spaces[@]}" "${inside[@]}" "${packages[@]}" || skip "packages of $suite cannot be had"

status=0 blocks=
"${spaces[@]}" --net "${inside[@]}" "$@" 2>&1 | tee "$folder/log" || status=${PIPESTATUS[0]}
if [[ " $* " == *" --system "* ]]; then
  if REDLOCK_SUITE=$suite test/compile/bare.sh "$folder/bare"; then blocks=", README's blocks"; else status=1; fi
fi

tests=$(sed -nE 's/^[0-9]+% tests passed, ([0-9]+).* out of ([0-9]+)$/\2 tests, \1 failed/p' "$folder/log")
skipped=$(sed -nE 's/^([a-z-]+) +[0-9]+:[0-9]+  SKIPPED: (.*)/; skipped: \1 (\2)/p' "$folder/log" | tr -d '\n')
printf '\n| system | g++ | CMake | libuv | cJSON | redis | valkey | OpenSSL | mbedTLS | Python | result |\n'
printf '| %s ' "$suite"
for each in g++ cmake libuv1-dev libcjson-dev redis-server valkey-server libssl-dev libmbedtls-dev python3; do
  version=$(dpkg-query --admindir="$root/var/lib/dpkg" -W -f '${Version}' "$each" 2>/dev/null) || version=-
  printf '| %s ' "$(sed -E 's/^[0-9]+://; s/(.)[-+~].*/\1/' <<<"$version")"
done
printf '| %s%s%s |\n' "$(tail -n 1 <<<"${tests:-status $status}")" "$blocks" "$skipped"
exit "$status"
