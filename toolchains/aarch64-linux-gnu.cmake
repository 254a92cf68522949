# SPDX-License-Identifier: MIT
# 64-bit ARM with glibc: Debian's arm64.
include("${CMAKE_CURRENT_LIST_DIR}/cmake/redlockCross.cmake")
redlock_cross(aarch64-linux-gnu aarch64 qemu-aarch64)
