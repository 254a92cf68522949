# SPDX-License-Identifier: MIT
#
# What every library target of ours is compiled with: C++20 without the C++ runtime, symbols hidden, sections that a
# linker can drop. Optimisation, hardening, -march and -Werror belong to whoever builds.

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
  target_compile_definitions(${target} PRIVATE $<$<BOOL:${REDLOCK_ASSERTS}>:REDLOCK_ASSERTS>)
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
endfunction()
