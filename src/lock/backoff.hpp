// SPDX-License-Identifier: MIT
//
// Backoff: how long a waiter pauses after a lost round. The pause is uniform between nothing and a ceiling (full
// jitter; Redlock page, "Retry on failure": a random delay desynchronises clients that try at the same time). If others
// hold the lock the ceiling is retry_delay, because the holder may release at any time. If masters are missing the
// ceiling doubles with every round, because asking faster brings no master back. `random` is an argument, so the
// function is pure.
#pragma once
#include "base/time.hpp"
#include "base/types.hpp"

namespace redlock {

inline Duration pause_after(int lost_because, uint32_t retry_delay_ms, unsigned lost_rounds, uint32_t cap_ms,
                               uint32_t random) {
  int64_t ceiling = retry_delay_ms;
  if (lost_because != REDLOCK_E_LOCKED) ceiling <<= lost_rounds < 6 ? lost_rounds : 6;
  return part_of(Duration::ms(ceiling < cap_ms ? ceiling : cap_ms), random);
}

}  // namespace redlock
