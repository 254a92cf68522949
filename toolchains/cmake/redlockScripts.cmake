# SPDX-License-Identifier: MIT
#
# The Lua scripts are written as files that a person can read, and shipped as the text that goes over the wire: without
# comments, indentation and blank lines. <build>/generated/scripts_text.hpp holds for each src/master/scripts/NAME.lua
#   redlock::scripts::NAME        the text
#   redlock::scripts::NAME_sha1   what EVALSHA calls it
# No script's meaning may hang on leading white space (a string over several lines), and comments are whole lines.

set(REDLOCK_GENERATED_DIR "${PROJECT_BINARY_DIR}/generated")

function(redlock_embed_scripts folder)
  file(GLOB scripts CONFIGURE_DEPENDS "${folder}/*.lua")
  set(header "// Generated from src/master/scripts/*.lua.\n#pragma once\n\nnamespace redlock::scripts {\n")
  foreach(script IN LISTS scripts)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${script}")
    get_filename_component(name "${script}" NAME_WE)
    file(READ "${script}" text)
    if(text MATCHES "--\\[=*\\[")
      message(FATAL_ERROR "${script}: comments over several lines are not understood")
    endif()
    string(REGEX REPLACE "[ \t\r]*\n[ \t\r\n]*" "\n" text "\n${text}\n")
    string(REGEX REPLACE "\n--[^\n]*" "" text "${text}")
    string(REGEX REPLACE "^\n" "" text "${text}")
    string(SHA1 sha1 "${text}")
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
