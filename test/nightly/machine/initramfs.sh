#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# usage: test/nightly/machine/initramfs.sh KERNEL_FOLDER OUT PROGRAM...
# Writes the guest's file system to OUT: busybox, the programs and the libraries that they need, the modules of
# fetch.sh, and `init`. It is not compressed, since the guest would spend a second on unpacking it. Where fetch.sh has
# brought a busybox, the guest is a 32-bit ARM machine; its libraries are those of toolchains/sysroot.sh, if that has
# run, and else this machine's own.
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
  libraries=(qemu-arm -L "$sysroot/" "$sysroot/lib/ld-linux-armhf.so.3" --library-path "$root/redis" --list)
fi

add_libraries() {
  local library
  while read -r library; do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$sysroot$library" "$root$library" 2>/dev/null || cp -L "$library" "$root$library"
  done < <("${libraries[@]}" "$1" | grep -oE '/[^ ]+' | grep -v "^$root/" || true)
}
if [[ -e $kernel/busybox ]]; then
  cp "$kernel/busybox" "$root/bin/"  # a static one
  cp -r "$kernel/redis" "$root/"
else
  set -- "$(command -v busybox)" "$@"
fi
for program in "$@"; do
  cp "$program" "$root/bin/"
  add_libraries "$program"
done
for module in $(cat "$kernel/modules.txt"); do cp "$kernel/$module" "$root/modules/"; done
cp "$kernel/modules.txt" "$root/modules/"
install -m 755 "$here/init" "$root/init"
(cd "$root" && find . | busybox cpio -o -H newc) >"$out" 2>/dev/null
