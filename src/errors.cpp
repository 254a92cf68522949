// SPDX-License-Identifier: MIT
#include <redlock/redlock.h>

#define REDLOCK_TEXT(x) #x
#define REDLOCK_TEXT_OF(x) REDLOCK_TEXT(x)

extern "C" const char* redlock_strerror(int err) {
  switch (err) {
    case REDLOCK_OK: return "no error";
#define REDLOCK_CASE(name, number, text) \
  case number: return text;
      REDLOCK_ERROR_MAP(REDLOCK_CASE)
#undef REDLOCK_CASE
    default: return "not an error number of this library";
  }
}

extern "C" const char* redlock_err_name(int err) {
  switch (err) {
    case REDLOCK_OK: return "REDLOCK_OK";
#define REDLOCK_CASE(name, number, text) \
  case number: return "REDLOCK_E_" #name;
      REDLOCK_ERROR_MAP(REDLOCK_CASE)
#undef REDLOCK_CASE
    default: return "REDLOCK_E_UNKNOWN";
  }
}

extern "C" uint32_t redlock_version(void) { return REDLOCK_VERSION_NUM; }

extern "C" const char* redlock_version_string(void) {
  return REDLOCK_TEXT_OF(REDLOCK_VERSION_MAJOR) "." REDLOCK_TEXT_OF(REDLOCK_VERSION_MINOR) "." REDLOCK_TEXT_OF(
      REDLOCK_VERSION_PATCH);
}
