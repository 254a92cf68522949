#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# usage: test/nightly/machine/fetch.sh FOLDER [armhf]
# Puts Debian's kernel for virtual machines into FOLDER, or the one for 32-bit ARM with a busybox for it, with the
# modules that a network card needs, in the order in which they are loaded. apt compares the packages with the sums of
# the signed package lists. They are unpacked and not installed: this machine stays as it is. Exit 77: the packages
# cannot be had.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../../toolchains/packages.sh"
mkdir -p "$1"
cd "$1"
[[ ! -s vmlinuz || ! -s modules.txt || (-n ${2:-} && ! -e busybox) ]] || exit 0

case ${2:-} in
  '') architecture=amd64 kernel=linux-image-cloud-amd64 also=() ;;
  armhf)
    architecture=armhf kernel=linux-image-armmp also=(busybox-static)
    ;;
  *) echo "there is no guest for $2" >&2; exit 2 ;;
esac

download() {
  local package suite
  suite=$(debian_suite)
  own_lists "$PWD/apt" "$architecture" "$suite" "$suite-security"
  package=$(apt-cache "${own_options[@]}" depends "$kernel" | sed -n 's/^ *Depends: \(linux-image-[^ ]*\)$/\1/p')
  if [[ -z $package ]]; then
    echo "apt knows no $kernel"
    return 1
  fi
  rm -rf unpacked ./*.ko ./*.deb
  apt-get "${own_options[@]}" download "$package" ${also[@]+"${also[@]}"}
}
three_tries download || exit
for package in ./*.deb; do dpkg -x "$package" unpacked; done
[[ ! -e unpacked/bin/busybox ]] || cp unpacked/bin/busybox .

# A module behind those that it needs.
add_module() {
  local file needed
  file=$(find unpacked/lib/modules -name "$1.ko")
  for needed in $(strings -a "$file" | sed -n 's/^depends=//p' | tr ',' ' '); do add_module "$needed"; done
  if ! grep -qx "$1.ko" modules.new; then
    cp "$file" .
    echo "$1.ko" >>modules.new
  fi
}
: >modules.new
add_module virtio_pci
add_module virtio_net
cp unpacked/boot/vmlinuz-* vmlinuz
mv modules.new modules.txt
rm -rf unpacked apt ./*.deb
