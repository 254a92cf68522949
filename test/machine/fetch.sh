#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# usage: test/machine/fetch.sh FOLDER [armhf]
# Puts Debian's kernel for virtual machines into FOLDER, or the one for 32-bit ARM with a busybox for it, with the
# modules that a network card needs, in the order in which they are loaded. apt compares the packages with the sums of
# the signed package lists. They are unpacked and not installed: this machine's boot files stay as they are.
set -euo pipefail
mkdir -p "$1"
cd "$1"
[[ ! -s vmlinuz || ! -s modules.txt ]] || exit 0

case ${2:-} in
  '') kernel=linux-image-cloud-amd64 also=() ;;
  armhf) kernel=linux-image-armmp:armhf also=(busybox-static:armhf) ;;
  *) echo "there is no guest for $2" >&2; exit 2 ;;
esac

download() {
  local package
  package=$(apt-cache depends "$kernel" | sed -n 's/^ *Depends: \(linux-image-[^ ]*\)$/\1/p')
  if [[ -z $package ]]; then
    echo "apt knows no $kernel"
    return 1
  fi
  rm -rf unpacked ./*.ko ./*.deb
  apt-get -q -o APT::Sandbox::User=root download "$package" ${also[@]+"${also[@]}"}
}
# Lists of yesterday may name a kernel that the mirror has no more.
download || { apt-get -q update && download; }
for package in ./*.deb; do dpkg -x "$package" unpacked; done
if [[ -e unpacked/bin/busybox ]]; then cp unpacked/bin/busybox .; fi

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
rm -r unpacked ./*.deb
