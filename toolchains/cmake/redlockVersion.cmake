# SPDX-License-Identifier: MIT
#
# A version names one source. A build of the commit that has the tag vX.Y.Z is "X.Y.Z"; a build of another commit, or of
# changed files, is "X.Y.Z-dev.COMMIT". So the program's check of its library tells two builds of one number apart. An
# archive has no git: the file .commit, which archive.sh writes, says there what git says here. <build>/generated/
# commit_text.hpp has the ending. In a tree with git each build asks, not only CMake: what was configured as the tag is
# not the tag any more when a file is changed. Another answer writes that file anew, and compiles the few files that
# include it.

if(CMAKE_SCRIPT_MODE_FILE)
  cmake_minimum_required(VERSION 3.18...3.31)
endif()

# Writes HEADER where its text changes. Where git does not answer, nobody says which commit this is.
function(redlock_ask_commit bash source header)
  execute_process(COMMAND "${bash}" "${source}/toolchains/packaging/commit.sh"
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
  if(failed)
    set(commit "-dev")
  endif()
  redlock_write_commit_text("${commit}" "${header}")
endfunction()

function(redlock_write_commit_text commit header)
  file(CONFIGURE OUTPUT "${header}" @ONLY CONTENT
    "#define REDLOCK_COMMIT \"@commit@\"  // written by redlockVersion.cmake\n")
endfunction()

function(redlock_write_commit)
  set(header "${REDLOCK_GENERATED_DIR}/commit_text.hpp")
  if(EXISTS "${PROJECT_SOURCE_DIR}/.commit")
    file(READ "${PROJECT_SOURCE_DIR}/.commit" commit)
    string(STRIP "${commit}" commit)
    redlock_write_commit_text("${commit}" "${header}")
  elseif(EXISTS "${PROJECT_SOURCE_DIR}/.git")
    find_program(REDLOCK_BASH_PROGRAM bash)
    mark_as_advanced(REDLOCK_BASH_PROGRAM)
    redlock_ask_commit("${REDLOCK_BASH_PROGRAM}" "${PROJECT_SOURCE_DIR}" "${header}")
    add_custom_target(redlock_commit VERBATIM COMMENT "Ask git which commit this is" BYPRODUCTS "${header}"
      COMMAND "${CMAKE_COMMAND}" "-Dbash=${REDLOCK_BASH_PROGRAM}" "-Dsource=${PROJECT_SOURCE_DIR}"
      "-Dheader=${header}" -P "${CMAKE_CURRENT_FUNCTION_LIST_FILE}")
  else()
    redlock_write_commit_text("-dev" "${header}")
  endif()
endfunction()

if(CMAKE_SCRIPT_MODE_FILE)
  redlock_ask_commit("${bash}" "${source}" "${header}")
endif()
