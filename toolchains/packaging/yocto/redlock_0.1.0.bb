# SPDX-License-Identifier: MIT
#
# Yocto, kirkstone and later. libuv is in oe-core, cjson in meta-oe. REDLOCK_URI is where your copy of the source lives.
SUMMARY = "Redis distributed locks (Redlock) for embedded Linux"
LICENSE = "MIT"
LIC_FILES_CHKSUM = "file://LICENSE;md5=77d44837ae1f8bb91b9fd1b324fc1f03"

REDLOCK_URI ?= "git://git.example.org/redlock.git;protocol=https;branch=main"
SRC_URI = "${REDLOCK_URI}"
SRCREV ?= "${AUTOREV}"
PV = "0.1.0+git${SRCPV}"
S = "${WORKDIR}/git"

DEPENDS = "libuv cjson"
inherit cmake pkgconfig

EXTRA_OECMAKE = "-DCMAKE_BUILD_TYPE=MinSizeRel -DBUILD_SHARED_LIBS=ON"
BBCLASSEXTEND = "native nativesdk"
