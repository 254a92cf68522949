#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# usage: test/nightly/machine/arm_ends.sh ARM_BUILD_FOLDER KERNEL_FOLDER [TRIALS [SEED]]
# What ends when, of redlock(1), on a 32-bit ARM machine with a kernel of its own: integration_tool_ends, with its
# masters, in a guest. Prints the trials and the overlaps of each cell. Exit status: 0, 1 where something is wrong, 77
# where no guest can run here.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(cd "$1" && pwd) kernel=$2
if ! command -v qemu-system-arm >/dev/null || [[ ! -e $kernel/redis ]]; then
  echo "SKIP: qemu-system-arm is not installed, or test/nightly/machine/fetch.sh $kernel armhf was not run"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$here/initramfs.sh" "$kernel" "$folder/initramfs" "$build/redlock" "$build/test/redlock_tool_witness" \
  "$build/test/integration_tool_ends" "$kernel/redis/redis-server"
timeout 540 qemu-system-arm -M virt,highmem=off -cpu cortex-a15 -smp 2 -m 1024 -accel tcg -display none -nodefaults \
  -no-reboot -kernel "$kernel/vmlinuz" -initrd "$folder/initramfs" -serial "file:$folder/console" -append \
  "console=ttyAMA0 quiet panic=-1 build=$build REDLOCK_TRIALS=${3:-34} REDLOCK_SEED=${4:-$RANDOM}" ||
  echo "the guest did not end"
cat "$folder/console"
grep -q '^ended: 0' "$folder/console"
