# SPDX-License-Identifier: MIT
#
# The Lua scripts are written as files that a person can read, and shipped as the text that goes over the wire: without
# comments and needless spaces, and with short names for locals. <build>/generated/scripts_text.hpp holds for each
# script NAME.lua
#   redlock::scripts::NAME        the text
#   redlock::scripts::NAME_sha1   what EVALSHA calls it
# The words that every script repeats get short names, too: r for redis.call, K for KEYS, A for ARGV. A local has the
# same short name in every script, so scripts can share text.
# Scripts have a simple form: comments are whole lines, strings stand in single quotes and have no backslash, no name of
# a local is also the name of a global.
# A script with the line "--:common" is sent with the text of common.lua in front of its own, and its digest is that of
# both: what several scripts need is in the program once.

set(REDLOCK_GENERATED_DIR "${PROJECT_BINARY_DIR}/generated")

# Sets `out` to the text of a script without comments, and adds the names of its locals to the list `names`.
function(redlock_read_script path out names)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
  file(READ "${path}" text)
  string(REGEX REPLACE "[ \t\r]*\n[ \t\r\n]*" "\n" text "\n${text}\n")
  string(REGEX REPLACE "\n--[^\n]*" "" text "${text}")
  if(text MATCHES "--|\"|\\\\|;")
    message(FATAL_ERROR "${path}: a comment behind code, a double quote, a backslash or a semicolon")
  endif()
  string(REPLACE "redis.call(" "r(" text "${text}")
  string(REPLACE "KEYS" "K" text "${text}")
  string(REPLACE "ARGV" "A" text "${text}")
  set(found "${${names}}")
  foreach(form "local " "local function " "for " "function [a-z_]+[(]")
    string(REGEX MATCHALL "${form}[a-z_,]+" declared "${text}")
    list(TRANSFORM declared REPLACE "^${form}" "")
    string(REPLACE "," ";" declared "${declared}")
    list(APPEND found ${declared})
  endforeach()
  list(REMOVE_ITEM found function)
  list(REMOVE_DUPLICATES found)
  set(${names} "${found}" PARENT_SCOPE)
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

# Sets short_<name> for each local. A name of one letter stays as it is.
macro(redlock_shorten_names locals)
  string(REGEX MATCHALL "[a-zB-JL-Z]" letters "abcdefghijklmnopqstuvwxyzBCDEFGHIJLMNOPQRSTUVWXYZ")
  list(REMOVE_ITEM letters ${${locals}})
  foreach(name IN LISTS ${locals})
    if(name MATCHES "..")
      list(POP_FRONT letters short_${name})
    endif()
  endforeach()
  if(NOT letters)
    message(FATAL_ERROR "the scripts have more locals than there are letters")
  endif()
endmacro()

# Token by token: two of them stand apart only where they would become another one.
function(redlock_minify text out)
  set(written "")
  set(last "")
  while(NOT text STREQUAL "")
    string(REGEX MATCH "^([ \n]+|'[^']*'|[A-Za-z_][A-Za-z_0-9]*|[0-9]+|[.][.]|.)" token "${text}")
    string(LENGTH "${token}" size)
    string(SUBSTRING "${text}" ${size} -1 text)
    if(token MATCHES "^[ \n]")
      continue()
    endif()
    if(DEFINED short_${token} AND NOT last MATCHES "^[.:]$")
      set(token "${short_${token}}")
    endif()
    set(pair "${last} ${token}")
    if(pair MATCHES "[A-Za-z_0-9] [A-Za-z_0-9]" OR pair MATCHES "[0-9] [.]" OR pair MATCHES "^(- -|\\[ \\[)$")
      string(APPEND written " ")
    endif()
    string(APPEND written "${token}")
    set(last "${token}")
  endwhile()
  set(${out} "${written}" PARENT_SCOPE)
endfunction()

# redlock_embed_scripts(<source folder> <folder of scripts>...); the first of these holds common.lua.
function(redlock_embed_scripts source folder)
  list(TRANSFORM ARGN PREPEND "${source}/" OUTPUT_VARIABLE others)
  list(TRANSFORM others APPEND "/*.lua")
  file(GLOB scripts CONFIGURE_DEPENDS "${source}/${folder}/*.lua" ${others})
  set(names "local r,K,A=redis.call,KEYS,ARGV ")
  set(locals "")
  foreach(script IN LISTS scripts)
    get_filename_component(name "${script}" NAME_WE)
    redlock_read_script("${script}" text_${name} locals)
  endforeach()
  redlock_shorten_names(locals)
  redlock_minify("${text_common}" common)
  set(common "${names}${common} ")
  set(header "// Generated from the scripts of src.\n#pragma once\n\nnamespace redlock::scripts {\n")
  foreach(script IN LISTS scripts)
    get_filename_component(name "${script}" NAME_WE)
    redlock_minify("${text_${name}}" text)
    file(STRINGS "${script}" marks REGEX "^--:common$")
    if(marks)
      string(SHA1 sha1 "${common}${text}")
    elseif(name STREQUAL "common")
      set(text "${common}")
    else()
      set(text "${names}${text}")
      string(SHA1 sha1 "${text}")
    endif()
    string(APPEND header
      "\ninline constexpr char ${name}[] =\n    \"${text}\";\n"
      "inline constexpr char ${name}_sha1[] = \"${sha1}\";\n")
  endforeach()
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
