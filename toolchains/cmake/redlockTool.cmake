# SPDX-License-Identifier: MIT
#
# redlock_tool: the program `redlock` (src/tool). It uses the public API and the sentences of the map of keys, and is
# linked as C: it needs no C++ runtime.
file(GLOB redlock_tool_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/tool/*.cpp"
  "${PROJECT_SOURCE_DIR}/src/tool/*/*.cpp")
add_executable(redlock_tool ${redlock_tool_sources})
redlock_library_options(redlock_tool)
redlock_tls_options(redlock_tool)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # functions stay small enough for short branches and offsets
  target_compile_options(redlock_tool PRIVATE
    "$<$<CONFIG:MinSizeRel>:-fno-inline-functions-called-once;-finline-small-functions>")
endif()
target_include_directories(redlock_tool PRIVATE "${PROJECT_SOURCE_DIR}/src" "${REDLOCK_GENERATED_DIR}")
target_link_libraries(redlock_tool PRIVATE redlock_site redlock rt -pthread)  # rt: timer_create, before glibc 2.34
target_link_options(redlock_tool PRIVATE LINKER:--gc-sections LINKER:--as-needed)
if(REDLOCK_LTO)
  target_link_options(redlock_tool PRIVATE -flto=auto -flto-partition=one)  # it is small
endif()
set_target_properties(redlock_tool PROPERTIES OUTPUT_NAME redlock LINKER_LANGUAGE C)

# Installed below another prefix than the system's, the program finds its library beside itself: no ldconfig is needed,
# and the prefix may be moved. Packages, which are made for /usr, want no such path.
if(BUILD_SHARED_LIBS AND NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  file(RELATIVE_PATH redlock_from_bin "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBDIR}")
  set_property(TARGET redlock_tool PROPERTY INSTALL_RPATH "$ORIGIN/${redlock_from_bin}")
endif()
