# SPDX-License-Identifier: MIT
#
# The Lua scripts are written as files that a person can read, and shipped as the text that goes over the wire: without
# comments, indentation and blank lines. <build>/generated/scripts_text.hpp holds for each script NAME.lua
#   redlock::scripts::NAME        the text
#   redlock::scripts::NAME_sha1   what EVALSHA calls it
# No script's meaning may hang on leading white space (a string over several lines), and comments are whole lines. The
# words that every script repeats get short names: r for redis.call, K for KEYS, A for ARGV.
# A script with the line "--:common" is sent with the text of common.lua in front of its own, and its digest is that of
# both: what several scripts need is in the program once.

set(REDLOCK_GENERATED_DIR "${PROJECT_BINARY_DIR}/generated")

function(redlock_read_script path out)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
  file(READ "${path}" text)
  if(text MATCHES "--\\[=*\\[")
    message(FATAL_ERROR "${path}: comments over several lines are not understood")
  endif()
  string(REGEX REPLACE "[ \t\r]*\n[ \t\r\n]*" "\n" text "\n${text}\n")
  string(REGEX REPLACE "\n--[^\n]*" "" text "${text}")
  string(REGEX REPLACE "^\n" "" text "${text}")
  string(REPLACE "redis.call(" "r(" text "${text}")
  string(REPLACE "KEYS" "K" text "${text}")
  string(REPLACE "ARGV" "A" text "${text}")
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

# redlock_embed_scripts(<source folder> <folder of scripts>...); the first of these holds common.lua.
function(redlock_embed_scripts source folder)
  list(TRANSFORM ARGN PREPEND "${source}/" OUTPUT_VARIABLE others)
  list(TRANSFORM others APPEND "/*.lua")
  file(GLOB scripts CONFIGURE_DEPENDS "${source}/${folder}/*.lua" ${others})
  set(names "local r,K,A=redis.call,KEYS,ARGV\n")
  redlock_read_script("${source}/${folder}/common.lua" common)
  set(common "${names}${common}")
  set(header "// Generated from the scripts of src.\n#pragma once\n\nnamespace redlock::scripts {\n")
  foreach(script IN LISTS scripts)
    get_filename_component(name "${script}" NAME_WE)
    redlock_read_script("${script}" text)
    file(STRINGS "${script}" marks REGEX "^--:common$")
    if(marks)
      string(SHA1 sha1 "${common}${text}")
    elseif(name STREQUAL "common")
      set(text "${common}")
    else()
      set(text "${names}${text}")
      string(SHA1 sha1 "${text}")
    endif()
    string(REPLACE "\\" "\\\\" text "${text}")
    string(REPLACE "\"" "\\\"" text "${text}")
    string(REPLACE "\n" "\\n\"\n    \"" text "${text}")
    string(APPEND header
      "\ninline constexpr char ${name}[] =\n    \"${text}\";\n"
      "inline constexpr char ${name}_sha1[] = \"${sha1}\";\n")
  endforeach()
  string(REPLACE "\n    \"\";\n" ";\n" header "${header}")
  string(APPEND header "\n}  // namespace redlock::scripts\n")

  set(path "${REDLOCK_GENERATED_DIR}/scripts_text.hpp")
  set(before "")
  if(EXISTS "${path}")
    file(READ "${path}" before)
  endif()
  if(NOT before STREQUAL header)
    file(WRITE "${path}" "${header}")
  endif()
endfunction()
