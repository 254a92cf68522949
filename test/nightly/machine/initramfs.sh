#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# usage: test/nightly/machine/initramfs.sh KERNEL_FOLDER OUT PROGRAM...
# Writes the guest's file system to OUT: busybox, the programs and the libraries that they need, the modules of
# fetch.sh, and the first process. It is not compressed, since the guest would spend a second on unpacking it. Where
# fetch.sh has brought a busybox, the guest is a 32-bit ARM machine; its libraries are those of toolchains/sysroot.sh,
# if that has run, and else this machine's own.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
kernel=$1 out=$2
shift 2
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/{bin,dev,proc,sys,tmp,modules}

libraries=(ldd) sysroot=
if [[ -e $kernel/busybox ]]; then
  sysroot=$here/../../../build/sysroot/armhf
  [[ -e $sysroot/packages ]] || sysroot=
  libraries=(qemu-arm -L "$sysroot/" "$sysroot/lib/ld-linux-armhf.so.3" --list)
fi

add_libraries() {
  local library
  while read -r library; do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$sysroot$library" "$root$library" 2>/dev/null || cp -L "$library" "$root$library"
  done < <("${libraries[@]}" "$1" | grep -oE '/[^ ]+' || true)
}
if [[ -e $kernel/busybox ]]; then
  cp "$kernel/busybox" "$root/bin/"  # a static one
else
  set -- "$(command -v busybox)" "$@"
fi
for program in "$@"; do
  cp "$program" "$root/bin/"
  add_libraries "$program"
done
for module in $(cat "$kernel/modules.txt"); do cp "$kernel/$module" "$root/modules/"; done
cp "$kernel/modules.txt" "$root/modules/"
# Devices, a network card, and the program that does what its own serial line says. The kernel hands over its command
# line's `line=` as a variable.
cat >"$root/init" <<'TEXT'
#!/bin/busybox sh
/bin/busybox mount -t devtmpfs devtmpfs /dev
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
while read -r module; do /bin/busybox insmod "/modules/$module"; done </modules/modules.txt
/bin/busybox ip link set lo up
/bin/busybox ip link set eth0 up
/bin/busybox ip address add 10.0.2.15/24 dev eth0
/bin/busybox ip route add default via 10.0.2.2
exec /bin/machine_guest serve "/dev/$line"
TEXT
chmod 755 "$root/init"
(cd "$root" && find . | busybox cpio -o -H newc) >"$out" 2>/dev/null
