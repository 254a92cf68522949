// SPDX-License-Identifier: MIT
#include <error_map.hpp>  // generated: the errors of redlock.h
#include <redlock/redlock.h>

#include "base/types.hpp"
#include "config/version.hpp"

#ifdef REDLOCK_TLS
#define REDLOCK_ALL_ERRORS(X) REDLOCK_ERROR_MAP(X) REDLOCK_TLS_ERROR_MAP(X)
#else
#define REDLOCK_ALL_ERRORS(X) REDLOCK_ERROR_MAP(X)  // no byte for what cannot happen
#endif

namespace {

// A row of numbers, and for each its name and its text: a switch, or a row of offsets, is larger.
constexpr redlock::ErrorByte numbers[] = {
#define REDLOCK_ERROR_NUMBER(name, number, text) -(number),
    REDLOCK_ALL_ERRORS(REDLOCK_ERROR_NUMBER)
#undef REDLOCK_ERROR_NUMBER
};

constexpr char texts[] =
#define REDLOCK_ERROR_TEXTS(name, number, text) "REDLOCK_E_" #name "\0" text "\0"
    REDLOCK_ALL_ERRORS(REDLOCK_ERROR_TEXTS);
#undef REDLOCK_ERROR_TEXTS

#define REDLOCK_ERROR_IN_RANGE(name, number, text) && (number) < 0 && (number) >= REDLOCK_E_LAST_
static_assert(true REDLOCK_ALL_ERRORS(REDLOCK_ERROR_IN_RANGE));
#undef REDLOCK_ERROR_IN_RANGE

// column: 0 the name, 1 the text.
const char* find(int err, unsigned column, const char* otherwise) {
  for (unsigned i = 0; i < sizeof numbers; ++i) {
    if (-numbers[i] == err) return redlock::nth_text(texts, 2 * i + column);
  }
  return otherwise;
}

}  // namespace

extern "C" const char* redlock_strerror(int err) {
  return err == REDLOCK_OK ? "no error" : find(err, 1, "not an error number of this library");
}

extern "C" const char* redlock_err_name(int err) {
  return err == REDLOCK_OK ? "REDLOCK_OK" : find(err, 0, "REDLOCK_E_UNKNOWN");
}

extern "C" uint32_t redlock_version(void) { return REDLOCK_VERSION_NUM; }

extern "C" const char* redlock_version_string(void) { return redlock::build_version; }
