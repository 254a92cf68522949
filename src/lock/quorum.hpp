// SPDX-License-Identifier: MIT
//
// Quorum: is a round won, lost, or undecided? This file knows votes, but no Redis and no time. The quorum counts the
// *configured* masters, not the reachable ones: otherwise two clients that reach different halves would both win. A
// round is won at the Q-th grant, and lost as soon as a Q-th grant cannot come. Nobody waits for the slowest master.
#pragma once
#include "base/types.hpp"

namespace redlock {

enum class Decision : uint8_t { pending, won, lost };

constexpr unsigned quorum_of(unsigned masters) { return masters / 2 + 1; }

constexpr Decision decide(unsigned masters, unsigned granted, unsigned refused, unsigned failed) {
  const unsigned quorum = quorum_of(masters);
  if (granted >= quorum) return Decision::won;
  const unsigned pending = masters - granted - refused - failed;
  return granted + pending < quorum ? Decision::lost : Decision::pending;
}

// Is this error a reason of the guard to deny a master its vote? A seal that a script found broken counts, too. The
// guard's reasons have the lowest numbers.
constexpr bool is_guards(int error) {
  return (error <= REDLOCK_E_UNREAD && error >= REDLOCK_E_REPLID) ||
         (error <= REDLOCK_E_LEFT && error >= REDLOCK_E_TWO_SERVERS);
}

// Does the master deny this client its user, its password, its certificate or its key, or is the master of a kind that
// never votes? Time alone mends none of these.
constexpr bool is_denial(int error) {
  return error == REDLOCK_E_NOPERM || error == REDLOCK_E_AUTH || error == REDLOCK_E_AUTH_MISSING ||
         error == REDLOCK_E_DENIED || error == REDLOCK_E_TLS_CLIENT_CERT || error == REDLOCK_E_TLS_CLIENT_REFUSED ||
         error == REDLOCK_E_MODE || error == REDLOCK_E_IDENTITY || error == REDLOCK_E_MAXMEMORY;
}

// Of several failed votes a person is told the one that tells most: what the configuration must say otherwise, what is
// denied, what may pass, what passes with the guard's watch. A master that is not greeted yet tells least. The exit
// codes of the program `redlock` have the same order.
constexpr unsigned lasting = 4;  // and more: time alone mends none of these
constexpr unsigned telling(int error) {
  switch (error) {
    case 0:
      return 0;
    case REDLOCK_E_DISCONNECTED:
      return 1;
    case REDLOCK_E_UNREAD:
    case REDLOCK_E_UNWATCHED:
    case REDLOCK_E_REPLID:
      return 2;
    case REDLOCK_E_MODE:
    case REDLOCK_E_DUPLICATE:
    case REDLOCK_E_TWO_SERVERS:
    case REDLOCK_E_FINGERPRINT:
    case REDLOCK_E_IDENTITY:
    case REDLOCK_E_MAXMEMORY:
      return 5;
    default:
      const bool wrong_tls = error <= REDLOCK_E_TLS_NONE || error == REDLOCK_E_TLS;
      return is_denial(error) ? lasting : wrong_tls ? 5 : 3;
  }
}

// Why a round was lost. LOCKED: the masters that answered could have made a quorum, so others hold the lock. GUARD:
// they could have made one together with the masters that the guard denied a vote. NO_QUORUM: too many masters failed.
constexpr int lost_because(unsigned masters, unsigned failed, unsigned guarded = 0) {
  const unsigned spare = masters - quorum_of(masters);
  if (failed <= spare) return REDLOCK_E_LOCKED;
  return failed - guarded <= spare ? REDLOCK_E_GUARD : REDLOCK_E_NO_QUORUM;
}

}  // namespace redlock
