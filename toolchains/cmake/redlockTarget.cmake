# SPDX-License-Identifier: MIT
#
# What every library target of ours is compiled with: C++20 without the C++ runtime, symbols hidden, sections that a
# linker can drop. Optimisation, hardening, -march and -Werror belong to whoever builds; but for one: the shared library
# is optimised as a whole where that is possible, because a lock's way leads through every room.
include(CheckIPOSupported)

# REDLOCK_LTO: each object holds both forms. libredlock.so is linked from what the compiler remembers, while tests and
# whoever links a static library see plain objects. Only GCC can do that; a static library is for a compiler not known
# here, which may not read them.
function(redlock_lto_option)
  set(default OFF)
  if(BUILD_SHARED_LIBS AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
    check_ipo_supported(RESULT default OUTPUT why LANGUAGES CXX)
  endif()
  option(REDLOCK_LTO "Optimise libredlock as a whole when it is linked (GCC)" ${default})
endfunction()

function(redlock_library_options target)
  target_compile_features(${target} PRIVATE cxx_std_20)
  set_target_properties(${target} PROPERTIES
    CXX_EXTENSIONS ON
    CXX_VISIBILITY_PRESET hidden
    C_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)
  if(NOT DEFINED CMAKE_POSITION_INDEPENDENT_CODE)
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  endif()
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions>
    $<$<COMPILE_LANGUAGE:CXX>:-fno-rtti>
    $<$<COMPILE_LANGUAGE:CXX>:-fno-threadsafe-statics>
    -ffunction-sections
    -fdata-sections
    # Nothing unwinds through the library; on small ARM the tables would be a tenth of its size.
    $<$<NOT:$<CONFIG:Debug>>:-fno-unwind-tables>
    $<$<NOT:$<CONFIG:Debug>>:-fno-asynchronous-unwind-tables>)
  # What is moved out of a loop, addressed from an anchor, or moved for a pipeline takes a register, and 32-bit ARM has
  # few. A struct of 64 bytes may become variables. Each of these makes the library smaller there, measured with GCC 12.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(small -fno-move-loop-invariants -fno-tree-loop-im -fno-section-anchors -fno-schedule-insns2 -fno-tree-ter
      -fno-forward-propagate -fno-caller-saves -fno-tree-tail-merge -fno-if-conversion -fno-optimize-sibling-calls
      -fno-expensive-optimizations -fno-inline-small-functions --param=sra-max-scalarization-size-Osize=64)
    target_compile_options(${target} PRIVATE "$<$<CONFIG:MinSizeRel>:${small}>")
  endif()
  if(REDLOCK_LTO)
    target_compile_options(${target} PRIVATE -flto=auto -ffat-lto-objects)
  endif()
  target_compile_definitions(${target} PRIVATE $<$<BOOL:${REDLOCK_ASSERTS}>:REDLOCK_ASSERTS>)
  if(TARGET redlock_commit)
    add_dependencies(${target} redlock_commit)
  endif()
endfunction()

# The targets whose code differs with TLS: the port, the configuration and the C API. The core never knows.
function(redlock_tls_options target)
  if(NOT REDLOCK_TLS STREQUAL "off")
    target_compile_definitions(${target} PRIVATE REDLOCK_TLS "REDLOCK_TLS_ENGINE=\"${REDLOCK_TLS}\"")
    target_link_libraries(${target} PRIVATE redlock::tls)
  endif()
endfunction()

# An object library of our own sources, for the library and for the tests that look inside.
function(redlock_room target)
  add_library(${target} OBJECT ${ARGN})
  redlock_library_options(${target})
  target_include_directories(${target} PUBLIC
    "${PROJECT_SOURCE_DIR}/include"
    "${PROJECT_SOURCE_DIR}/src"
    "${PROJECT_SOURCE_DIR}"
    "${REDLOCK_GENERATED_DIR}")
  if(REDLOCK_LTO)
    target_link_options(${target} INTERFACE -fno-lto)
  endif()
endfunction()
