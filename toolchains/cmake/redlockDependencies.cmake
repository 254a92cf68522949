# SPDX-License-Identifier: MIT
#
# libuv and cJSON as redlock::libuv and redlock::cjson, and the TLS library as redlock::tls, whichever way the system
# offers them: a target of the parent project, a CMake package (their target names differ from version to version),
# pkg-config, or just a header and a library. Installed next to redlockConfig.cmake too, which needs it where the
# library is static.

function(redlock_wrap_dependency wrapper)
  add_library(${wrapper} INTERFACE IMPORTED GLOBAL)
  set_property(TARGET ${wrapper} PROPERTY INTERFACE_LINK_LIBRARIES "${ARGN}")
endfunction()

# Looks for one of the target names; stores the first that exists, or "".
function(redlock_first_target result)
  foreach(candidate IN LISTS ARGN)
    if(TARGET ${candidate})
      set(${result} ${candidate} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${result} "" PARENT_SCOPE)
endfunction()

# redlock_find_dependency(<wrapper> PACKAGE <CMake package> MODULE <pkg-config module> VERSION <floor>
#                         HEADER <header> LIBRARIES <names> TARGETS <names>)
function(redlock_find_dependency wrapper)
  cmake_parse_arguments(arg "" "PACKAGE;MODULE;VERSION;HEADER" "LIBRARIES;TARGETS" ${ARGN})
  if(TARGET ${wrapper})
    return()
  endif()

  redlock_first_target(target ${arg_TARGETS})
  if(NOT target)
    find_package(${arg_PACKAGE} CONFIG QUIET)
    redlock_first_target(target ${arg_TARGETS})
    if(target AND ${arg_PACKAGE}_VERSION AND ${arg_PACKAGE}_VERSION VERSION_LESS ${arg_VERSION})
      message(FATAL_ERROR "redlock needs ${arg_PACKAGE} >= ${arg_VERSION}; found ${${arg_PACKAGE}_VERSION}")
    endif()
  endif()
  if(target)
    redlock_wrap_dependency(${wrapper} ${target})
    return()
  endif()

  string(MAKE_C_IDENTIFIER "REDLOCK_${arg_MODULE}" prefix)
  find_package(PkgConfig QUIET)
  if(PKG_CONFIG_FOUND)
    pkg_check_modules(${prefix} QUIET IMPORTED_TARGET GLOBAL "${arg_MODULE}>=${arg_VERSION}")
    if(TARGET PkgConfig::${prefix})
      redlock_wrap_dependency(${wrapper} PkgConfig::${prefix})
      return()
    endif()
  endif()

  find_path(${prefix}_INCLUDE_DIR ${arg_HEADER})
  find_library(${prefix}_LIBRARY NAMES ${arg_LIBRARIES})
  mark_as_advanced(${prefix}_INCLUDE_DIR ${prefix}_LIBRARY)
  if(NOT ${prefix}_INCLUDE_DIR OR NOT ${prefix}_LIBRARY)
    message(FATAL_ERROR "redlock needs ${arg_PACKAGE} >= ${arg_VERSION}: found neither a CMake package, nor the "
      "pkg-config module ${arg_MODULE}, nor ${arg_HEADER} with its library")
  endif()
  redlock_wrap_dependency(${wrapper} "${${prefix}_LIBRARY}" ${CMAKE_DL_LIBS})
  set_property(TARGET ${wrapper} PROPERTY INTERFACE_INCLUDE_DIRECTORIES "${${prefix}_INCLUDE_DIR}")
endfunction()

function(redlock_find_libuv)
  redlock_find_dependency(redlock::libuv PACKAGE libuv MODULE libuv VERSION 1.40
    HEADER uv.h LIBRARIES uv uv_a libuv TARGETS libuv::uv uv libuv::uv_a uv_a)
endfunction()

function(redlock_find_cjson)
  redlock_find_dependency(redlock::cjson PACKAGE cJSON MODULE libcjson VERSION 1.7.14
    HEADER cjson/cJSON.h LIBRARIES cjson libcjson TARGETS cjson cjson-static)
endfunction()

# engine: mbedtls or openssl. 2.28 of mbedTLS has neither a CMake package nor a pkg-config module; 3.6 has both.
function(redlock_find_tls engine)
  if(TARGET redlock::tls)
    return()
  endif()
  if(engine STREQUAL "openssl")
    redlock_first_target(target OpenSSL::SSL)
    if(NOT target)
      find_package(OpenSSL 1.1.1 REQUIRED)  # CMake brings the module, which knows static libraries too
    endif()
    redlock_wrap_dependency(redlock::tls OpenSSL::SSL OpenSSL::Crypto)
    return()
  endif()
  find_path(REDLOCK_MBEDTLS_INCLUDE_DIR mbedtls/ssl.h)
  set(header "${REDLOCK_MBEDTLS_INCLUDE_DIR}/mbedtls/build_info.h")  # 2.28 has none
  if(EXISTS "${header}")
    file(STRINGS "${header}" major REGEX "^#define MBEDTLS_VERSION_MAJOR")
    if(NOT major MATCHES " 3$")
      message(FATAL_ERROR "REDLOCK_TLS=mbedtls works with mbedTLS 2.28 and 3.6, and ${header} is of another version: "
        "install one of these, or say REDLOCK_TLS=openssl")
    endif()
  endif()
  set(libraries "")
  foreach(part IN ITEMS mbedtls mbedx509 mbedcrypto)
    find_library(REDLOCK_${part}_LIBRARY NAMES ${part})
    mark_as_advanced(REDLOCK_${part}_LIBRARY)
    if(NOT REDLOCK_${part}_LIBRARY OR NOT REDLOCK_MBEDTLS_INCLUDE_DIR)
      message(FATAL_ERROR "REDLOCK_TLS=mbedtls needs mbedTLS 2.28 or 3.6: mbedtls/ssl.h or lib${part} is missing")
    endif()
    list(APPEND libraries "${REDLOCK_${part}_LIBRARY}")
  endforeach()
  mark_as_advanced(REDLOCK_MBEDTLS_INCLUDE_DIR)
  redlock_wrap_dependency(redlock::tls "${libraries}")
  set_property(TARGET redlock::tls PROPERTY INTERFACE_INCLUDE_DIRECTORIES "${REDLOCK_MBEDTLS_INCLUDE_DIR}")
endfunction()
