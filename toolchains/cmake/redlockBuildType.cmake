# SPDX-License-Identifier: MIT
#
# A plain `cmake -S . -B build` makes what ships: small and hardened, as the preset release. Whoever names a build type
# or an optimisation keeps all flags, and so does a project that includes us.
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES AND
    NOT "${CMAKE_C_FLAGS} ${CMAKE_CXX_FLAGS}" MATCHES "-O")
  set(CMAKE_BUILD_TYPE MinSizeRel CACHE STRING "Debug, MinSizeRel, Release or RelWithDebInfo" FORCE)
  set(redlock_hardening "-fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2")
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    string(APPEND redlock_hardening " -mbranch-protection=standard")
  endif()
  foreach(flags IN ITEMS CMAKE_C_FLAGS CMAKE_CXX_FLAGS)
    string(APPEND ${flags} " ${redlock_hardening}")
    set(${flags} "${${flags}}" CACHE STRING "Flags for all build types" FORCE)
  endforeach()
  foreach(flags IN ITEMS CMAKE_EXE_LINKER_FLAGS CMAKE_SHARED_LINKER_FLAGS)
    string(APPEND ${flags} " -Wl,-z,relro,-z,now")
    set(${flags} "${${flags}}" CACHE STRING "Flags for the linker" FORCE)
  endforeach()
endif()
