# SPDX-License-Identifier: MIT
#
# A version names one source. A build of the commit that has the tag vX.Y.Z is "X.Y.Z"; a build of another commit, or of
# changed files, is "X.Y.Z-dev.COMMIT". So the program's check of its library tells two builds of one number apart. An
# archive has no git: the file .commit, which archive.sh writes, says there what git says here. <build>/generated/
# commit_text.hpp has the ending. A new commit writes that file anew, and compiles the few files that include it.

function(redlock_write_commit)
  set(commit "-dev")  # nobody says which commit this is
  if(EXISTS "${PROJECT_SOURCE_DIR}/.commit")
    file(READ "${PROJECT_SOURCE_DIR}/.commit" commit)
    string(STRIP "${commit}" commit)
  elseif(EXISTS "${PROJECT_SOURCE_DIR}/.git")
    find_program(REDLOCK_BASH_PROGRAM bash)
    mark_as_advanced(REDLOCK_BASH_PROGRAM)
    execute_process(COMMAND "${REDLOCK_BASH_PROGRAM}" "${PROJECT_SOURCE_DIR}/toolchains/packaging/commit.sh"
      OUTPUT_VARIABLE said OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
    if(NOT failed)
      set(commit "${said}")
    endif()
    if(EXISTS "${PROJECT_SOURCE_DIR}/.git/logs/HEAD")
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/.git/logs/HEAD")
    endif()
  endif()
  file(CONFIGURE OUTPUT "${REDLOCK_GENERATED_DIR}/commit_text.hpp" @ONLY CONTENT
    "#define REDLOCK_COMMIT \"@commit@\"  // written by redlockVersion.cmake\n")
endfunction()
