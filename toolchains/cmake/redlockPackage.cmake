# SPDX-License-Identifier: MIT
#
# Debian packages from the two components: cpack in a build folder that was configured with -DCMAKE_INSTALL_PREFIX=/usr,
# native or cross: libredlock0 and libredlock-dev, of the target's architecture.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME redlock)
set(CPACK_PACKAGE_VENDOR redlock)
set(CPACK_PACKAGE_CONTACT "redlock maintainers <redlock@example.org>" CACHE STRING "Maintainer of the packages")
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_SET_DESTDIR ON)  # the .pc files hold the prefix, which is not the staging folder's
set(CPACK_COMPONENTS_ALL redlock-runtime redlock-dev)
set(CPACK_STRIP_FILES ON)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_HOMEPAGE "https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/")
if(CMAKE_LIBRARY_ARCHITECTURE STREQUAL "arm-linux-gnueabihf")
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE armhf)
elseif(CMAKE_LIBRARY_ARCHITECTURE STREQUAL "aarch64-linux-gnu")
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
endif()

set(CPACK_DEBIAN_REDLOCK-RUNTIME_PACKAGE_NAME libredlock0)
set(CPACK_DEBIAN_REDLOCK-RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_REDLOCK-RUNTIME_DESCRIPTION "Redis distributed locks (Redlock) for embedded Linux")
set(CPACK_DEBIAN_REDLOCK-RUNTIME_PACKAGE_DEPENDS "libc6, libuv1 (>= 1.40), libcjson1 (>= 1.7.14)")
set(CPACK_DEBIAN_REDLOCK-DEV_PACKAGE_NAME libredlock-dev)
set(CPACK_DEBIAN_REDLOCK-DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_REDLOCK-DEV_DESCRIPTION "Redis distributed locks (Redlock): headers, package files, redlock_site")
set(CPACK_DEBIAN_REDLOCK-DEV_PACKAGE_DEPENDS "libredlock0 (= ${PROJECT_VERSION}), libuv1-dev, libcjson-dev")
include(CPack)
