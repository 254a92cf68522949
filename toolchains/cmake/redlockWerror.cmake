# SPDX-License-Identifier: MIT
#
# REDLOCK_WERROR, which the presets set: warnings are errors, but only of the compilers that the tests were built with.
# A newer compiler warns of more, which must not end a build. test/compile reads the oldest and the newest version here.
option(REDLOCK_WERROR "Make the warnings of known compilers errors" OFF)
set(redlock_known_GNU 12 14)
set(redlock_known_Clang 14 14)
foreach(language IN ITEMS C CXX)
  string(REGEX MATCH "^[0-9]+" major "${CMAKE_${language}_COMPILER_VERSION}")
  set(known ${redlock_known_${CMAKE_${language}_COMPILER_ID}} 1 0)
  list(GET known 0 oldest)
  list(GET known 1 newest)
  if(REDLOCK_WERROR AND major GREATER_EQUAL oldest AND major LESS_EQUAL newest)
    string(APPEND CMAKE_${language}_FLAGS " -Werror")
  endif()
endforeach()
