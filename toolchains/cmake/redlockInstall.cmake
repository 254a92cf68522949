# SPDX-License-Identifier: MIT
#
# Five components: redlock-runtime is what a gateway needs, redlock-tool is the program `redlock`, redlock-python is the
# module libredlock, redlock-dev is what firmware is built with, redlock-doc what a person reads. The CMake files hold
# no absolute path: a prefix may be moved and a sysroot be prepended; the .pc files name their prefix once.
include(CMakePackageConfigHelpers)
set(redlock_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/redlock")

install(TARGETS redlock EXPORT redlockTargets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT redlock-runtime NAMELINK_COMPONENT redlock-dev
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT redlock-dev)
install(TARGETS redlock_site EXPORT redlockSiteTargets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT redlock-dev)
if(REDLOCK_BUILD_TOOL)
  set(redlock_tool_dir "${PROJECT_SOURCE_DIR}/src/tool")
  install(TARGETS redlock_tool RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT redlock-tool)
  install(PROGRAMS "${redlock_tool_dir}/service/redlock-service" DESTINATION "${CMAKE_INSTALL_BINDIR}"
    COMPONENT redlock-tool)
  install(FILES "${redlock_tool_dir}/man/redlock.1" "${redlock_tool_dir}/man/redlock-service.1"
    DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT redlock-tool)
  install(FILES "${redlock_tool_dir}/man/redlock.json.5" DESTINATION "${CMAKE_INSTALL_MANDIR}/man5"
    COMPONENT redlock-tool)
  install(FILES "${redlock_tool_dir}/completion/redlock"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" COMPONENT redlock-tool)
  # systemd, procd and cron are given the program with its path: none of them looks into every prefix, and the prefix is
  # known for certain only when installing (cmake --install --prefix).
  foreach(name IN ITEMS redlock@.service redlock-metrics.service redlock-metrics.timer redlock.init redlock.cron)
    set(made "${PROJECT_BINARY_DIR}/generated/service/${name}")
    install(CODE "get_filename_component(redlock_bindir \"\${CMAKE_INSTALL_PREFIX}\" ABSOLUTE)
    get_filename_component(redlock_bindir \"${CMAKE_INSTALL_BINDIR}\" ABSOLUTE BASE_DIR \"\${redlock_bindir}\")
    configure_file(\"${redlock_tool_dir}/service/${name}.in\" \"${made}\" @ONLY)" COMPONENT redlock-tool)
    set(destination "${CMAKE_INSTALL_DOCDIR}/examples")
    if(name MATCHES "(service|timer)$")
      set(destination lib/systemd/system)
    endif()
    install(FILES "${made}" DESTINATION "${destination}" COMPONENT redlock-tool)
  endforeach()
  install(FILES "${redlock_tool_dir}/service/redlock.config" DESTINATION "${CMAKE_INSTALL_DOCDIR}/examples"
    COMPONENT redlock-tool)
endif()
find_program(REDLOCK_PYTHON_PROGRAM python3 HINTS /usr/bin)
mark_as_advanced(REDLOCK_PYTHON_PROGRAM)
if(REDLOCK_BUILD_PYTHON)
  # Where the interpreter looks below a prefix: a distribution has a folder of its own for its packages.
  if(NOT REDLOCK_PYTHON_DIR)
    execute_process(COMMAND "${REDLOCK_PYTHON_PROGRAM}" -c "import sys; print('%d.%d' % sys.version_info[:2], end='')"
      OUTPUT_VARIABLE version RESULT_VARIABLE failed)
    if(failed)
      message(FATAL_ERROR "redlock: no python3 here: install it, or say where the module belongs: REDLOCK_PYTHON_DIR, "
        "e.g. lib/python3.11/site-packages")
    endif()
    set(REDLOCK_PYTHON_DIR "lib/python${version}/site-packages")
    if(EXISTS /etc/debian_version AND CMAKE_INSTALL_PREFIX STREQUAL "/usr")
      set(REDLOCK_PYTHON_DIR lib/python3/dist-packages)
    elseif(EXISTS /etc/debian_version)
      set(REDLOCK_PYTHON_DIR "lib/python${version}/dist-packages")
    endif()
  endif()
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/src/python/libredlock" DESTINATION "${REDLOCK_PYTHON_DIR}"
    COMPONENT redlock-python FILES_MATCHING PATTERN "*.py" PATTERN py.typed PATTERN __pycache__ EXCLUDE)
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/redlock" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  COMPONENT redlock-dev FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
# The man pages of redlock.h are made from it. Where no python3 is, a build has none: nothing else needs one.
if(REDLOCK_PYTHON_PROGRAM)
  set(redlock_man3_dir "${PROJECT_BINARY_DIR}/generated/man3")
  set(redlock_man3 "${PROJECT_SOURCE_DIR}/toolchains/man3.py")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    "${redlock_man3}" "${PROJECT_SOURCE_DIR}/include/redlock/redlock.h")
  execute_process(COMMAND "${REDLOCK_PYTHON_PROGRAM}" -B "${redlock_man3}" "${redlock_man3_dir}" RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "redlock: the man pages of section 3 cannot be made")
  endif()
  install(DIRECTORY "${redlock_man3_dir}/" DESTINATION "${CMAKE_INSTALL_MANDIR}/man3" COMPONENT redlock-dev)
endif()
foreach(targets IN ITEMS redlockTargets redlockSiteTargets)
  install(EXPORT ${targets} NAMESPACE redlock:: DESTINATION "${redlock_package_dir}" COMPONENT redlock-dev)
endforeach()

install(FILES
  "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/CHANGELOG.md" "${PROJECT_SOURCE_DIR}/include/API.md"
  DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT redlock-doc)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/examples" DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT redlock-doc
  PATTERN CMakeLists.txt EXCLUDE)

configure_package_config_file("${PROJECT_SOURCE_DIR}/toolchains/cmake/redlockConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/redlockConfig.cmake" INSTALL_DESTINATION "${redlock_package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/redlockConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/redlockConfig.cmake"
  "${PROJECT_BINARY_DIR}/redlockConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/toolchains/cmake/redlockDependencies.cmake"
  DESTINATION "${redlock_package_dir}" COMPONENT redlock-dev)

# The prefix is known for certain only when installing (cmake --install --prefix). What is linked by a .pc file finds
# the library in any prefix: the loader looks in /usr by itself.
foreach(dir includedir libdir)
  string(TOUPPER "CMAKE_INSTALL_${dir}" variable)
  if(IS_ABSOLUTE "${${variable}}")
    set(redlock_pc_${dir} "${${variable}}")
  else()
    set(redlock_pc_${dir} "\${prefix}/${${variable}}")
  endif()
endforeach()
set(redlock_pc_prefix "@CMAKE_INSTALL_PREFIX@")
set(redlock_pc_rpath "@redlock_pc_rpath@")

# pkg-config shows the include folders of private requirements too. A shared library has found what it needs, and its
# headers include nothing of it.
set(redlock_pc_private "")
set(redlock_pc_tls_module "")
set(redlock_pc_tls_libraries "")
if(REDLOCK_TLS STREQUAL "openssl")
  set(redlock_pc_tls_module " openssl >= 1.1.1")
elseif(REDLOCK_TLS STREQUAL "mbedtls")
  set(redlock_pc_tls_libraries " -lmbedtls -lmbedx509 -lmbedcrypto")  # 2.28 has no module
endif()
set(redlock_pc_searched /usr)
if(BUILD_SHARED_LIBS)
  # For a libredlock.a that a distribution puts beside the shared library.
  set(redlock_pc_private "Libs.private: -luv -lcjson${redlock_pc_tls_libraries} -pthread")
  if(REDLOCK_TLS STREQUAL "openssl")
    string(APPEND redlock_pc_private " -lssl -lcrypto")
  endif()
else()
  set(redlock_pc_searched "\${CMAKE_INSTALL_PREFIX}")  # nothing is looked for when the program starts
  string(CONCAT redlock_pc_private "Requires.private: libuv >= 1.40 libcjson >= 1.7.14${redlock_pc_tls_module}\n"
    "Libs.private:${redlock_pc_tls_libraries} -pthread")
endif()
foreach(module IN ITEMS redlock redlock-site)
  set(made "${PROJECT_BINARY_DIR}/${module}.pc")
  configure_file("${PROJECT_SOURCE_DIR}/toolchains/cmake/${module}.pc.in" "${made}.in" @ONLY)
  install(CODE "set(redlock_pc_rpath \"\")
    if(NOT CMAKE_INSTALL_PREFIX STREQUAL \"${redlock_pc_searched}\")
      set(redlock_pc_rpath \" -Wl,-rpath,\\\${libdir}\")
    endif()
    configure_file(\"${made}.in\" \"${made}\" @ONLY)" COMPONENT redlock-dev)
  install(FILES "${made}" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT redlock-dev)
endforeach()
