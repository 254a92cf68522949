# SPDX-License-Identifier: MIT
#
# The Lua scripts are shipped as they are written, without comments, indentation and empty lines. Comments are whole
# lines. <build>/generated/scripts_text.hpp holds for each script NAME.lua
#   redlock::scripts::NAME        the text
#   redlock::scripts::NAME_sha1   what EVALSHA calls it
# A script with the line "--:common" is sent with the text of common.lua in front of its own, and its digest is that of
# both: what several scripts need is in the program once.

set(REDLOCK_GENERATED_DIR "${PROJECT_BINARY_DIR}/generated")

function(redlock_read_script path out)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
  file(READ "${path}" text)
  string(REGEX REPLACE "[ \t\r]*\n[ \t\r\n]*" "\n" text "\n${text}\n")
  string(REGEX REPLACE "\n--[^\n]*" "" text "${text}")
  string(STRIP "${text}" text)
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

# redlock_embed_scripts(<source folder> <folder of scripts>...); the first of these holds common.lua.
function(redlock_embed_scripts source folder)
  list(TRANSFORM ARGN PREPEND "${source}/" OUTPUT_VARIABLE others)
  list(TRANSFORM others APPEND "/*.lua")
  file(GLOB scripts CONFIGURE_DEPENDS "${source}/${folder}/*.lua" ${others})
  list(REMOVE_ITEM scripts "${source}/${folder}/common.lua")
  redlock_read_script("${source}/${folder}/common.lua" common)
  string(APPEND common "\n")
  set(header "// Generated from the scripts of src.\n#pragma once\n\nnamespace redlock::scripts {\n")
  string(APPEND header "\ninline constexpr char common[] = R\"lua(${common})lua\";\n")
  foreach(script IN LISTS scripts)
    get_filename_component(name "${script}" NAME_WE)
    redlock_read_script("${script}" text)
    file(STRINGS "${script}" marks REGEX "^--:common$")
    if(marks)
      string(SHA1 sha1 "${common}${text}")
    else()
      string(SHA1 sha1 "${text}")
    endif()
    string(APPEND header
      "\ninline constexpr char ${name}[] = R\"lua(${text})lua\";\n"
      "inline constexpr char ${name}_sha1[] = \"${sha1}\";\n")
  endforeach()
  redlock_generate(scripts_text.hpp "${header}\n}  // namespace redlock::scripts\n")
endfunction()

# Writes <build>/generated/NAME where its text has changed.
function(redlock_generate name text)
  set(path "${REDLOCK_GENERATED_DIR}/${name}")
  set(before "")
  if(EXISTS "${path}")
    file(READ "${path}" before)
  endif()
  if(NOT before STREQUAL text)
    file(WRITE "${path}" "${text}")
  endif()
endfunction()

# The errors of redlock.h with the texts that their comments have: REDLOCK_ERROR_MAP(X) and, from -100 to -199,
# REDLOCK_TLS_ERROR_MAP(X) are X(NAME, number, "text") for each in <build>/generated/error_map.hpp.
function(redlock_embed_errors header)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${header}")
  set(row "^  REDLOCK_E_([A-Z_0-9]+) = (-[0-9]+), /[*][*]< (.*) [*]/$")
  file(STRINGS "${header}" rows REGEX "${row}")
  set(errors "")
  set(tls_errors "")
  foreach(line IN LISTS rows)
    string(REGEX REPLACE "${row}" " \\\\\n  X(\\1, \\2, \"\\3\")" macro "${line}")
    if(line MATCHES " -1[0-9][0-9], ")
      string(APPEND tls_errors "${macro}")
    else()
      string(APPEND errors "${macro}")
    endif()
  endforeach()
  redlock_generate(error_map.hpp "// Generated from redlock.h.\n#pragma once\n
#define REDLOCK_ERROR_MAP(X)${errors}\n\n#define REDLOCK_TLS_ERROR_MAP(X)${tls_errors}\n")
endfunction()
