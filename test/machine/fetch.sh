#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# usage: test/machine/fetch.sh FOLDER
# Puts Debian's kernel for virtual machines into FOLDER, with the modules that a network card needs, in the order in
# which they are loaded. The package is unpacked and not installed: this machine's boot files stay as they are.
set -euo pipefail
mkdir -p "$1"
cd "$1"
[[ ! -s vmlinuz || ! -s modules.txt ]] || exit 0

package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/^ *Depends: \(linux-image-[^ ]*\)$/\1/p')
if [[ -z $package ]]; then
  echo "apt knows no linux-image-cloud-amd64"
  exit 1
fi
rm -rf unpacked ./*.ko ./*.deb
apt-get -q -o APT::Sandbox::User=root download "$package"
dpkg -x "$package"_*.deb unpacked

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
