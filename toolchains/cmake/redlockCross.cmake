# SPDX-License-Identifier: MIT
#
# What the toolchain files of this folder share. They say which compiler, where its libraries are, and how its programs
# run here; nothing about optimisation or the CPU, which belongs to the project that builds.
#   REDLOCK_SYSROOT   a folder that is the target's root; without it the libraries are Debian's, side by side with ours
#                     (dpkg --add-architecture)

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
  if(ARGN MATCHES ":([a-z0-9]+)")
    set(architecture "dpkg --add-architecture ${CMAKE_MATCH_1} && ")
  endif()
  list(JOIN ARGN " " missing)
  message(FATAL_ERROR "This cross build misses packages. On Debian, as root:\n"
    "  ${architecture}apt-get update && apt-get install --no-install-recommends ${missing}\n")
endfunction()

# Stops where a package is missing that our tests need, since without it the build would go well and most tests would
# fail in the emulator without a hint. packages.sh has the list; here stands by which program or file each is
# recognised. Where the libraries come from elsewhere (CMAKE_PREFIX_PATH, REDLOCK_SYSROOT), nothing is looked for.
function(redlock_need_packages triplet emulator)
  redlock_builds_tests(tests)
  if(NOT tests OR REDLOCK_SYSROOT OR CMAKE_PREFIX_PATH)
    return()
  endif()
  set(architecture_arm-linux-gnueabihf armhf)
  set(architecture_aarch64-linux-gnu arm64)
  set(command "cross_packages $0 $1")
  if(REDLOCK_TLS AND NOT REDLOCK_TLS STREQUAL "off")
    string(APPEND command " && tls_packages $0")
  endif()
  execute_process(COMMAND bash -c "source toolchains/packages.sh && ${command}"
      ${architecture_${triplet}} ${triplet}
    WORKING_DIRECTORY "${redlock_top}" OUTPUT_VARIABLE packages OUTPUT_STRIP_TRAILING_WHITESPACE)
  string(REPLACE "\n" " " packages "${packages}")
  separate_arguments(packages)
  set(program_gcc-${triplet} ${triplet}-gcc)
  set(program_g++-${triplet} ${triplet}-g++)
  set(program_qemu-user ${emulator})
  set(file_libuv1-dev pkgconfig/libuv.pc)
  set(file_libcjson-dev pkgconfig/libcjson.pc)
  set(file_libmbedtls-dev libmbedtls.so)
  set(file_libssl-dev pkgconfig/openssl.pc)
  set(file_libstdc++6 libstdc++.so.6)
  set(file_libgtest-dev libgtest.a)
  set(file_libgmock-dev libgmock.a)
  set(missing "")
  foreach(package IN LISTS packages)
    string(REGEX REPLACE ":.*" "" name "${package}")
    unset(redlock_found CACHE)
    if(DEFINED program_${name})
      find_program(redlock_found "${program_${name}}")
    elseif(DEFINED file_${name})
      find_file(redlock_found "${file_${name}}" PATHS "/usr/lib/${triplet}" NO_DEFAULT_PATH)
    else()
      message(FATAL_ERROR "redlockCross.cmake: by what is the package ${package} of packages.sh recognised?")
    endif()
    if(NOT redlock_found)
      list(APPEND missing ${package})
    endif()
  endforeach()
  unset(redlock_found CACHE)
  if(missing)
    redlock_stop_for_packages(${missing})
  endif()
endfunction()

# redlock_cross(<triplet> <processor> <qemu program> [<option of qemu>...])
macro(redlock_cross triplet processor emulator)
  set(CMAKE_SYSTEM_NAME Linux)
  set(CMAKE_SYSTEM_PROCESSOR ${processor})
  set(CMAKE_C_COMPILER ${triplet}-gcc)
  set(CMAKE_CXX_COMPILER ${triplet}-g++)
  set(CMAKE_LIBRARY_ARCHITECTURE ${triplet})
  set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)

  set(REDLOCK_SYSROOT "" CACHE PATH "The target's root folder; empty: Debian's libraries side by side")
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
  redlock_need_packages(${triplet} ${emulator})
endmacro()

macro(redlock_look_only_in_root)
  set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
  set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
  set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
  set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
endmacro()
