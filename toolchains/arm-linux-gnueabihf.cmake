# SPDX-License-Identifier: MIT
# 32-bit ARM with hard float and glibc, as on most gateways of the last ten years: Debian's armhf.
include("${CMAKE_CURRENT_LIST_DIR}/cmake/redlockCross.cmake")
redlock_cross(arm-linux-gnueabihf armhf armv7l qemu-arm)
