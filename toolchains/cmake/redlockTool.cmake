# SPDX-License-Identifier: MIT
#
# redlock_tool: the program `redlock` (src/tool). It uses the public API alone, and is linked as C: it needs no C++
# runtime.
file(GLOB redlock_tool_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/tool/*.cpp")
add_executable(redlock_tool ${redlock_tool_sources})
redlock_library_options(redlock_tool)
redlock_tls_options(redlock_tool)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # functions stay small enough for short branches and offsets
  target_compile_options(redlock_tool PRIVATE $<$<CONFIG:MinSizeRel>:-fno-inline-functions-called-once>)
endif()
target_include_directories(redlock_tool PRIVATE "${PROJECT_SOURCE_DIR}/src")
target_link_libraries(redlock_tool PRIVATE redlock_site redlock rt -pthread)  # rt: timer_create, before glibc 2.34
target_link_options(redlock_tool PRIVATE LINKER:--gc-sections LINKER:--as-needed)
if(REDLOCK_LTO)
  target_link_options(redlock_tool PRIVATE -flto=auto -flto-partition=one)  # it is small
endif()
set_target_properties(redlock_tool PROPERTIES OUTPUT_NAME redlock LINKER_LANGUAGE C)
