// SPDX-License-Identifier: MIT
#include "tool/words/exit_code.hpp"

#include <redlock/redlock.h>

namespace redlock::tool {
namespace {

// Every other error is one of masters that cannot be reached.
constexpr struct {
  ExitCode code;
  int errors[32];  // zeros behind them
} kinds[] = {
    {exit_held, {REDLOCK_E_LOCKED}},
    {exit_not_admitted, {REDLOCK_E_GUARD, REDLOCK_E_CHANGING, REDLOCK_E_UNREAD, REDLOCK_E_UNWATCHED, REDLOCK_E_REPLID}},
    {exit_left, {REDLOCK_E_LEFT}},
    {exit_lost, {REDLOCK_E_LOST}},
    {exit_usage, {REDLOCK_E_INVAL, REDLOCK_E_RESERVED}},
    {exit_permission,
     {REDLOCK_E_AUTH, REDLOCK_E_AUTH_MISSING, REDLOCK_E_NOPERM, REDLOCK_E_DENIED, REDLOCK_E_TLS_CLIENT_CERT,
      REDLOCK_E_TLS_CLIENT_REFUSED}},
    {exit_config, {REDLOCK_E_CONFIG,    REDLOCK_E_NOTSUP,      REDLOCK_E_TLS,         REDLOCK_E_FENCE_UNKNOWN,
                   REDLOCK_E_MODE,      REDLOCK_E_DUPLICATE,   REDLOCK_E_FINGERPRINT, REDLOCK_E_IDENTITY,
                   REDLOCK_E_MAXMEMORY, REDLOCK_E_TLS_NONE,    REDLOCK_E_TLS_ONLY,    REDLOCK_E_TLS_AUTHORITY,
                   REDLOCK_E_TLS_NAME,  REDLOCK_E_TLS_PIN,     REDLOCK_E_TLS_COMMON,  REDLOCK_E_TLS_FILE,
                   REDLOCK_E_TLS_CHAIN, REDLOCK_E_TLS_MESSAGE, REDLOCK_E_TLS_MODULUS, REDLOCK_E_TLS_EXPONENT,
                   REDLOCK_E_TLS_KEY,   REDLOCK_E_TLS_WEAK,    REDLOCK_E_TLS_USE,     REDLOCK_E_TLS_CURVES,
                   REDLOCK_E_TWO_SERVERS}},
    {exit_system, {REDLOCK_E_NOMEM, REDLOCK_E_CLOCK, REDLOCK_E_SYSTEM}},
    {exit_internal,
     {REDLOCK_E_FENCE_RANGE, REDLOCK_E_STALE, REDLOCK_E_DEADLOCK, REDLOCK_E_THREAD, REDLOCK_E_FORKED,
      REDLOCK_E_CLOSED}},
};

}  // namespace

ExitCode exit_code_of(int err) {
  if (err == REDLOCK_OK) return exit_ok;
  for (const auto& kind : kinds) {
    for (const int one : kind.errors) {
      if (one == err) return kind.code;
    }
  }
  return exit_too_few;
}

ExitCode worse_of(ExitCode a, ExitCode b) {
  constexpr ExitCode order[] = {exit_left, exit_config, exit_permission, exit_too_few, exit_not_admitted, exit_held};
  for (const ExitCode code : order) {
    if (a == code || b == code) return code;
  }
  return a != exit_ok ? a : b;
}

}  // namespace redlock::tool
