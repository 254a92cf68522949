# SPDX-License-Identifier: MIT
#
# What the toolchain files of this folder share. They say which compiler, where its libraries are, and how its programs
# run here; nothing about optimisation or the CPU, which belongs to the project that builds.
#   REDLOCK_SYSROOT   a folder that is the target's root: what toolchains/sysroot.sh makes, if that has run. Empty: the
#                     libraries are Debian's, side by side with ours (dpkg --add-architecture)

get_filename_component(redlock_top "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)

# Is this our own project, with its tests? Another project that uses a toolchain file of ours does not need what they
# need.
macro(redlock_builds_tests result)
  set(${result} OFF)
  if(REDLOCK_BUILD_TESTS AND CMAKE_SOURCE_DIR STREQUAL redlock_top)
    set(${result} ON)
  endif()
endmacro()

function(redlock_stop_for_packages)
  list(JOIN ARGN " " missing)
  message(FATAL_ERROR "This cross build misses packages. On Debian, as root:\n"
    "  apt-get update && apt-get install --no-install-recommends ${missing}\n")
endfunction()

# Stops where a program or a library is missing that our tests need, since without it the build would go well and most
# tests would fail in the emulator without a hint.
function(redlock_need triplet emulator architecture)
  redlock_builds_tests(tests)
  if(NOT tests)
    return()
  endif()
  set(missing "")
  foreach(program_package IN ITEMS ${triplet}-gcc=gcc-${triplet} ${triplet}-g++=g++-${triplet} ${emulator}=qemu-user)
    string(REPLACE "=" ";" program_package "${program_package}")
    list(GET program_package 0 program)
    list(GET program_package 1 package)
    unset(redlock_found CACHE)
    find_program(redlock_found "${program}")
    if(NOT redlock_found)
      list(APPEND missing ${package})
    endif()
  endforeach()
  unset(redlock_found CACHE)
  if(missing)
    redlock_stop_for_packages(${missing})
  endif()
  if(NOT CMAKE_PREFIX_PATH AND NOT EXISTS "${REDLOCK_SYSROOT}/usr/lib/${triplet}/libuv.so")
    message(FATAL_ERROR "This cross build misses the target's libraries. On Debian:\n"
      "  toolchains/sysroot.sh ${architecture}\n")
  endif()
endfunction()

# redlock_cross(<triplet> <Debian's architecture> <processor> <qemu program> [<option of qemu>...])
macro(redlock_cross triplet architecture processor emulator)
  set(CMAKE_SYSTEM_NAME Linux)
  set(CMAKE_SYSTEM_PROCESSOR ${processor})
  set(CMAKE_C_COMPILER ${triplet}-gcc)
  set(CMAKE_CXX_COMPILER ${triplet}-g++)
  set(CMAKE_LIBRARY_ARCHITECTURE ${triplet})
  set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)

  set(redlock_sysroot "${redlock_top}/build/sysroot/${architecture}")
  if(NOT EXISTS "${redlock_sysroot}/packages")
    set(redlock_sysroot "")
  endif()
  set(REDLOCK_SYSROOT "${redlock_sysroot}" CACHE PATH
    "The target's root folder; empty: Debian's libraries side by side")
  set(CMAKE_CROSSCOMPILING_EMULATOR ${emulator} ${ARGN})
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
  redlock_need(${triplet} ${emulator} ${architecture})
endmacro()

macro(redlock_look_only_in_root)
  set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
  set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
  set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
  set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
endmacro()
