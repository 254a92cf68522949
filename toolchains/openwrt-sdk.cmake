# SPDX-License-Identifier: MIT
#
# For building against an unpacked OpenWrt SDK by hand; packages are built from packaging/openwrt. The SDK's folder is
# told by OPENWRT_SDK, or staging_dir by STAGING_DIR as OpenWrt's own scripts have it (variable or environment).
if(NOT STAGING_DIR)
  set(STAGING_DIR "$ENV{STAGING_DIR}")
endif()
if(NOT STAGING_DIR AND OPENWRT_SDK)
  set(STAGING_DIR "${OPENWRT_SDK}/staging_dir")
elseif(NOT STAGING_DIR)
  set(STAGING_DIR "$ENV{OPENWRT_SDK}/staging_dir")
endif()
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES STAGING_DIR OPENWRT_SDK)
include("${CMAKE_CURRENT_LIST_DIR}/cmake/redlockCross.cmake")

file(GLOB compilers "${STAGING_DIR}/toolchain-*/bin/*-openwrt-linux-gcc"
  "${STAGING_DIR}/toolchain-*/bin/*-openwrt-linux-musl*-gcc")
list(LENGTH compilers found)
if(found EQUAL 0)
  message(FATAL_ERROR "No OpenWrt compiler in ${STAGING_DIR}/toolchain-*/bin: set OPENWRT_SDK to the unpacked SDK")
endif()
list(GET compilers 0 CMAKE_C_COMPILER)
string(REGEX REPLACE "gcc$" "g++" CMAKE_CXX_COMPILER "${CMAKE_C_COMPILER}")
get_filename_component(processor "${CMAKE_C_COMPILER}" NAME)
string(REGEX REPLACE "-.*" "" processor "${processor}")
set(ENV{STAGING_DIR} "${STAGING_DIR}")  # the compiler asks for it

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${processor})
file(GLOB roots "${STAGING_DIR}/target-*")
set(CMAKE_FIND_ROOT_PATH ${roots})
redlock_look_only_in_root()
list(GET roots 0 root)
set(ENV{PKG_CONFIG_LIBDIR} "${root}/usr/lib/pkgconfig")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${root}")
