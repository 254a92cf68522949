// SPDX-License-Identifier: MIT
#include "tool/exit_code.hpp"

#include <redlock/redlock.h>

namespace redlock::tool {

ExitCode exit_code_of(int err) {
  switch (err) {
    case REDLOCK_OK:
      return exit_ok;
    case REDLOCK_E_LOCKED:
      return exit_held;
    case REDLOCK_E_GUARD:
    case REDLOCK_E_CHANGING:
    case REDLOCK_E_UNREAD:
    case REDLOCK_E_UNWATCHED:
    case REDLOCK_E_REPLID:
      return exit_not_admitted;
    case REDLOCK_E_LOST:
      return exit_lost;
    case REDLOCK_E_INVAL:
    case REDLOCK_E_RESERVED:
      return exit_usage;
    case REDLOCK_E_AUTH:
    case REDLOCK_E_AUTH_MISSING:
    case REDLOCK_E_NOPERM:
    case REDLOCK_E_DENIED:
    case REDLOCK_E_TLS_CLIENT_CERT:
    case REDLOCK_E_TLS_CLIENT_REFUSED:
      return exit_permission;
    case REDLOCK_E_CONFIG:
    case REDLOCK_E_NOTSUP:
    case REDLOCK_E_TLS:
    case REDLOCK_E_FENCE_UNKNOWN:
    case REDLOCK_E_MODE:
    case REDLOCK_E_DUPLICATE:
    case REDLOCK_E_FINGERPRINT:
    case REDLOCK_E_IDENTITY:
    case REDLOCK_E_MAXMEMORY:
    case REDLOCK_E_TLS_NONE:
    case REDLOCK_E_TLS_ONLY:
    case REDLOCK_E_TLS_AUTHORITY:
    case REDLOCK_E_TLS_NAME:
    case REDLOCK_E_TLS_PIN:
    case REDLOCK_E_TLS_COMMON:
    case REDLOCK_E_TLS_FILE:
      return exit_config;
    case REDLOCK_E_NOMEM:
    case REDLOCK_E_CLOCK:
    case REDLOCK_E_SYSTEM:
      return exit_system;
    case REDLOCK_E_FENCE_RANGE:
    case REDLOCK_E_STALE:
    case REDLOCK_E_DEADLOCK:
    case REDLOCK_E_THREAD:
    case REDLOCK_E_FORKED:
    case REDLOCK_E_CLOSED:
      return exit_internal;
    default:
      return exit_too_few;
  }
}

ExitCode worse_of(ExitCode a, ExitCode b) {
  constexpr ExitCode order[] = {exit_config, exit_permission, exit_too_few, exit_not_admitted, exit_held};
  for (const ExitCode code : order) {
    if (a == code || b == code) return code;
  }
  return a != exit_ok ? a : b;
}

}  // namespace redlock::tool
