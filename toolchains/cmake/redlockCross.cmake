# SPDX-License-Identifier: MIT
#
# What the toolchain files of this folder share. They say which compiler, where its libraries are, and how its programs
# run here; nothing about optimisation or the CPU, which belongs to the project that builds.
#   REDLOCK_SYSROOT   a folder that is the target's root; without it the libraries are Debian's, side by side with ours
#                     (dpkg --add-architecture)

# redlock_cross(<triplet> <processor> <qemu program>)
macro(redlock_cross triplet processor emulator)
  set(CMAKE_SYSTEM_NAME Linux)
  set(CMAKE_SYSTEM_PROCESSOR ${processor})
  set(CMAKE_C_COMPILER ${triplet}-gcc)
  set(CMAKE_CXX_COMPILER ${triplet}-g++)
  set(CMAKE_LIBRARY_ARCHITECTURE ${triplet})
  set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)

  set(REDLOCK_SYSROOT "" CACHE PATH "The target's root folder; empty: Debian's libraries side by side")
  set(CMAKE_CROSSCOMPILING_EMULATOR ${emulator})
  list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES REDLOCK_SYSROOT)
  if(REDLOCK_SYSROOT)
    set(CMAKE_SYSROOT "${REDLOCK_SYSROOT}")
    redlock_look_only_in_root()
    list(APPEND CMAKE_CROSSCOMPILING_EMULATOR -L "${REDLOCK_SYSROOT}")
    set(ENV{PKG_CONFIG_SYSROOT_DIR} "${REDLOCK_SYSROOT}")
  endif()

  # pkg-config would find the libraries of the machine that builds.
  set(redlock_usr "${REDLOCK_SYSROOT}/usr")
  set(ENV{PKG_CONFIG_LIBDIR}
    "${redlock_usr}/lib/${triplet}/pkgconfig:${redlock_usr}/lib/pkgconfig:${redlock_usr}/share/pkgconfig")
endmacro()

macro(redlock_look_only_in_root)
  set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
  set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
  set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
  set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
endmacro()
