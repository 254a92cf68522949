#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# README's blocks for each reader, pasted in an empty Debian of this machine's release, or of REDLOCK_SUITE: bare.sh
# FOLDER, which keeps the empty root for the next run. Told are the seconds to each reader's first lock, and to an
# archive for a gateway on ARM. The lines that bring packages have this machine's network, sources of packages, proxy
# and name servers. All else has no network but a loopback of its own. Exit 77: the packages cannot be had, or nothing
# can be tried here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source toolchains/packages.sh
folder=$(mkdir -p "$1" && cd "$1" && pwd)
root=$folder/root
tree=/srv/redlock  # in the root: the project

fail() {
  printf '%s\n' "$@" >&2
  exit 1
}
skip() {
  echo "$*"
  exit 77
}

# in_root FILE [COMMAND...]: the lines of FILE in the folder of the project, begun by COMMAND.
in_root() {
  "${@:2}" chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
    bash -euo pipefail -c "cd $tree && . '$1'" </dev/null 2>&1
}

# A package that Debian does not have is the page's fault, and another failure is the network's.
fetch() {
  local said
  ! said=$(in_root "$1" nsenter --net=/proc/self/fd/9) || return 0
  ! grep -qE 'Unable to locate package|has no installation candidate' <<<"$said" || fail "$said"
  printf '%s\n' "$said" | tail -n 3
  return 1
}

# paste READER LINE: pastes what stands on standard input, which must say LINE.
paste() {
  local said fetches=$root$tree/fetches pasted=$root$tree/pasted
  cat >"$pasted"
  while [[ $(head -n 1 "$pasted") =~ ^(apt-get|toolchains/sysroot.sh) ]]; do
    head -n 1 "$pasted" >"$fetches"
    sed -i 1d "$pasted"
    three_tries fetch $tree/fetches || exit
  done
  said=$(in_root $tree/pasted) || fail "what is for $1 fails:" "$said"
  grep -qxF "$2" <<<"$said" || fail "what is for $1 does not say '$2':" "$said"
  echo "$1: $((SECONDS - began)) s"
}

# block PAGE PATTERN KIND: the first block of this kind behind the line with PATTERN.
block() {
  awk -v pattern="$2" -v kind="\`\`\`$3" '
    $0 ~ pattern { behind = 1 }
    inside && /^```/ { exit }
    inside { print }
    behind && $0 == kind { inside = 1 }' "$1"
}

fresh_root() {
  mkdir -p "$root"
  mount -t tmpfs -o mode=755 tmpfs "$root"
  tar -C "$root" -xf "$folder/root.tar"
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  cp -L /etc/resolv.conf "$root/etc"
  printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
  chmod +x "$root/usr/sbin/policy-rc.d"
  tar -C "$root/srv" -xf "$folder"/redlock-*.tar.gz
  mv "$root"/srv/redlock-* "$root$tree"
  ip link set lo up
}

first_locks() {
  block README.md 'example: first' sh | paste shell 'the bus is ours'
  echo 'redlock status plant1/rs485-a' | paste operator 'plant1/rs485-a: free'
  block README.md 'example: bus' c >"$root$tree/bus.c"
  block README.md 'example: bus' json >"$root$tree/bus.json"
  block README.md 'example: bus' sh | paste C 'the bus is ours for at least 300 ms'
  block README.md '^In Python' python >"$root$tree/bus.py"
  { block src/python/README.md '^## Install' sh; echo python3 bus.py; } |
    paste Python 'the bus is ours for at least 0.3 s'
}

arm_gateway() { block toolchains/README.md 'example: arm' sh | paste ARM 'usr/bin/redlock'; }

if [[ $# -gt 1 ]]; then
  fresh_root
  began=$SECONDS
  "$2"
  exit
fi
[[ $(id -u) -eq 0 ]] || skip "this needs root"
command -v mmdebstrap >/dev/null || skip "there is no mmdebstrap"
spaces=(unshare --mount --net --pid --fork --kill-child --mount-proc)
"${spaces[@]}" true 2>/dev/null || skip "no namespaces here"
suite=${REDLOCK_SUITE:-$(debian_suite)}
[[ -s $folder/root.tar ]] || three_tries debian_root "$suite" "$folder/root.tar" --format=tar || exit
rm -f "$folder"/redlock-*
toolchains/packaging/archive.sh "$folder" >/dev/null
exec 9</proc/self/ns/net
for part in first_locks arm_gateway; do "${spaces[@]}" "test/compile/${BASH_SOURCE[0]##*/}" "$folder" "$part"; done
