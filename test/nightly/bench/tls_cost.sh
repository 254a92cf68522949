#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# tls_cost.sh PROGRAM [OPTION...]: runs tls_cost, of this build or of a cross build, under qemu, which counts the
# instructions of the client's side: the longest step of each handshake and all steps together, then those of the
# slowest read or write and of 100 commands and replies together. The OPTIONs go to qemu.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}") program=$1
shift
folder=$(mktemp -d "${TMPDIR:-/tmp}/redlock-tls-cost.XXXXXX")
trap 'rm -rf "$folder"' EXIT

cc -O2 -fPIC -shared "$here/qemu_count.c" -o "$folder/qemu_count.so"
case $(LC_ALL=C readelf -h "$program" | sed -n 's/^ *Machine: *//p') in
  ARM) emulator=(qemu-arm -cpu cortex-a7) ;;
  AArch64) emulator=(qemu-aarch64 -cpu cortex-a53) ;;
  *) emulator=("qemu-$(uname -m)") ;;
esac
"${emulator[@]}" "$@" -plugin "$folder/qemu_count.so" "$program"
