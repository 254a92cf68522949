// SPDX-License-Identifier: MIT
#include <error_map.hpp>  // generated: the errors of redlock.h
#include <redlock/redlock.h>
#include <stddef.h>

#include "config/version.hpp"

#ifdef REDLOCK_TLS
#define REDLOCK_ALL_ERRORS(X) REDLOCK_ERROR_MAP(X) REDLOCK_TLS_ERROR_MAP(X)
#else
#define REDLOCK_ALL_ERRORS(X) REDLOCK_ERROR_MAP(X)  // no byte for what cannot happen
#endif

// All texts in one run of characters, with a row of offsets by number. The loader would have to relocate a table of
// pointers, and a switch is larger than this table.
namespace {

struct Characters {
#define REDLOCK_FIELDS(name, number, text) \
  char name_##name[sizeof "REDLOCK_E_" #name]; \
  char text_##name[sizeof text];
  REDLOCK_ALL_ERRORS(REDLOCK_FIELDS)
#undef REDLOCK_FIELDS
};

constexpr Characters characters = {
#define REDLOCK_CHARACTERS(name, number, text) "REDLOCK_E_" #name, text,
    REDLOCK_ALL_ERRORS(REDLOCK_CHARACTERS)
#undef REDLOCK_CHARACTERS
};

struct Row {
  int16_t number;
  uint16_t name;
  uint16_t text;
};

constexpr Row rows[] = {
#define REDLOCK_ROW(name, number, text) {number, offsetof(Characters, name_##name), offsetof(Characters, text_##name)},
    REDLOCK_ALL_ERRORS(REDLOCK_ROW)
#undef REDLOCK_ROW
};

const char* find(int err, uint16_t Row::*column, const char* otherwise) {
  for (const Row& row : rows) {
    if (row.number == err) return reinterpret_cast<const char*>(&characters) + row.*column;
  }
  return otherwise;
}

}  // namespace

extern "C" const char* redlock_strerror(int err) {
  return err == REDLOCK_OK ? "no error" : find(err, &Row::text, "not an error number of this library");
}

extern "C" const char* redlock_err_name(int err) {
  return err == REDLOCK_OK ? "REDLOCK_OK" : find(err, &Row::name, "REDLOCK_E_UNKNOWN");
}

extern "C" uint32_t redlock_version(void) { return REDLOCK_VERSION_NUM; }

extern "C" const char* redlock_version_string(void) { return redlock::build_version; }
