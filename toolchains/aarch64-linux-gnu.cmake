# SPDX-License-Identifier: MIT
# 64-bit ARM with glibc: Debian's arm64.
include("${CMAKE_CURRENT_LIST_DIR}/cmake/redlockCross.cmake")
# The hardened code signs its return addresses. qemu computes the architecture's own signature in software, which makes
# a program twenty times slower; a simpler signature is checked just as well.
redlock_cross(aarch64-linux-gnu arm64 aarch64 qemu-aarch64 -cpu max,pauth-impdef=on)
