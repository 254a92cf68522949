# SPDX-License-Identifier: MIT
#
# 32-bit ARM with hard float and musl, for static programs on small gateways. The compilers are a toolchain of that name
# where there is one. Debian has one for C (musl-dev, which sysroot.sh brings). For C++ there is
# debian/arm-linux-musleabihf-g++, which can build the library, since it needs no C++ runtime, but not the C++ programs
# among the tests.
#   REDLOCK_DEPENDENCIES   where libuv and cJSON for musl are installed: toolchains/dependencies.sh builds them
include("${CMAKE_CURRENT_LIST_DIR}/cmake/redlockCross.cmake")

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR armv7l)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-arm)
if(EXISTS "${redlock_top}/build/sysroot/armhf/packages")
  list(APPEND CMAKE_CROSSCOMPILING_EMULATOR -L "${redlock_top}/build/sysroot/armhf")  # musl's loader
endif()

# A build without these would stop too, but without the remedy: CMake names a compiler or a library that it cannot find.
find_program(REDLOCK_MUSL_CC arm-linux-musleabihf-gcc PATHS "${redlock_top}/build/sysroot/armhf/usr/bin")
mark_as_advanced(REDLOCK_MUSL_CC)
if(NOT REDLOCK_MUSL_CC)
  message(FATAL_ERROR "This cross build misses musl's compiler. On Debian:\n  toolchains/sysroot.sh armhf\n")
endif()
set(CMAKE_C_COMPILER "${REDLOCK_MUSL_CC}")
redlock_builds_tests(redlock_musl_tests)
if(redlock_musl_tests)
  find_program(REDLOCK_QEMU qemu-arm)
  mark_as_advanced(REDLOCK_QEMU)
  if(NOT REDLOCK_QEMU)
    redlock_stop_for_packages(qemu-user)
  endif()
endif()

find_program(REDLOCK_MUSL_CXX arm-linux-musleabihf-g++ PATHS "${CMAKE_CURRENT_LIST_DIR}/debian" REQUIRED)
mark_as_advanced(REDLOCK_MUSL_CXX)
set(CMAKE_CXX_COMPILER "${REDLOCK_MUSL_CXX}")
if(REDLOCK_MUSL_CXX MATCHES "/debian/")
  set(REDLOCK_NO_CXX_RUNTIME ON)
endif()
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static")
# Only archives are ever linked, and neither compiler can link a C++ program.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)

set(REDLOCK_DEPENDENCIES "${redlock_top}/build/dependencies/arm-linux-musleabihf" CACHE PATH
  "Where libuv and cJSON are installed")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES REDLOCK_DEPENDENCIES)
if(redlock_musl_tests AND NOT EXISTS "${REDLOCK_DEPENDENCIES}/complete")
  message(FATAL_ERROR "libuv and cJSON for musl are not in ${REDLOCK_DEPENDENCIES}. Build them:\n"
    "  toolchains/dependencies.sh arm-linux-musleabihf\n")
endif()
list(APPEND CMAKE_FIND_ROOT_PATH "${REDLOCK_DEPENDENCIES}")
redlock_look_only_in_root()
set(ENV{PKG_CONFIG_LIBDIR} "${REDLOCK_DEPENDENCIES}/lib/pkgconfig")
