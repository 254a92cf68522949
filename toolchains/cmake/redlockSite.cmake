# SPDX-License-Identifier: MIT
#
# redlock_site: what only a maintenance program calls (redlock/site.h). It is static even where libredlock is shared,
# and libredlock does not carry it. libredlock.so hides the rooms, so the archive brings copies of their objects.
# libredlock.a holds the same objects: the linker takes each from the archive that it searches first, and none twice.
# The functions of redlock.h come from libredlock alone: they make the configurations that this library reads.
set(redlock_of_c_api "/c_api/(configure|describe|errors|load)\\.cpp")
add_library(redlock_site STATIC
  "${PROJECT_SOURCE_DIR}/src/site/ask.cpp"
  "${PROJECT_SOURCE_DIR}/src/site/facts.cpp"
  "${PROJECT_SOURCE_DIR}/src/site/left.cpp"
  "${PROJECT_SOURCE_DIR}/src/site/reconfigure.cpp"
  "${PROJECT_SOURCE_DIR}/src/site/setting.cpp"
  "${PROJECT_SOURCE_DIR}/src/site/site_clients.cpp"
  $<TARGET_OBJECTS:redlock_reconfiguration>
  $<TARGET_OBJECTS:redlock_core>
  $<FILTER:$<TARGET_OBJECTS:redlock_config>,EXCLUDE,${redlock_of_c_api}>
  $<TARGET_OBJECTS:redlock_uv>)
add_library(redlock::site ALIAS redlock_site)
redlock_library_options(redlock_site)
redlock_tls_options(redlock_site)
target_include_directories(redlock_site PRIVATE
  "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/src" "${REDLOCK_GENERATED_DIR}")
target_link_libraries(redlock_site PUBLIC redlock PRIVATE redlock::libuv redlock::cjson -pthread)
set_target_properties(redlock_site PROPERTIES EXPORT_NAME site LINKER_LANGUAGE C)
if(REDLOCK_LTO AND BUILD_SHARED_LIBS)
  # Whoever links this archive may have another compiler, which cannot read what ours remembers for the shared library.
  add_custom_command(TARGET redlock_site POST_BUILD VERBATIM COMMAND "${CMAKE_OBJCOPY}"
    --wildcard "--remove-section=.gnu.lto_*" "--remove-section=.gnu.debuglto_*" "--strip-symbol=__gnu_lto_*"
    $<TARGET_FILE:redlock_site>)
endif()
if(NOT REDLOCK_INSTALL)
  set_target_properties(redlock_site redlock_reconfiguration PROPERTIES EXCLUDE_FROM_ALL ON)
endif()
