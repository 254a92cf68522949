// SPDX-License-Identifier: MIT
//
// Quorum: have we won, lost, or must we wait? It knows votes, no Redis and no time. The quorum is that of the
// *configured* masters, whoever is reachable: two clients that reach different halves must not both win. A round is won
// at the Q-th grant and lost as soon as a Q-th grant cannot come; nobody waits for the slowest master.
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

// Why a lost round was lost: when so many failed that the others could not have made a quorum, the masters are to
// blame - or the guard, if without its part they could have; else it is held by others.
constexpr int lost_because(unsigned masters, unsigned failed, unsigned guarded = 0) {
  const unsigned spare = masters - quorum_of(masters);
  if (failed <= spare) return REDLOCK_E_LOCKED;
  return failed - guarded <= spare ? REDLOCK_E_GUARD : REDLOCK_E_NO_QUORUM;
}

}  // namespace redlock
