// SPDX-License-Identifier: MIT
//
// Backoff: how long a waiter pauses after a lost round. Full jitter (Redlock page, "Retry on failure": a random delay
// desynchronises clients that try at the same time): uniform between nothing and a ceiling. When others hold the lock
// the ceiling is retry_delay, since they may release at any time; when masters are missing it doubles with every round,
// since asking faster brings none back. `random` is an argument, so the function is pure.
#pragma once
#include "base/time.hpp"
#include "base/types.hpp"

namespace redlock {

constexpr Duration pause_after(int lost_because, uint32_t retry_delay_ms, unsigned lost_rounds, uint32_t cap_ms,
                               uint32_t random) {
  int64_t ceiling = retry_delay_ms;
  if (lost_because != REDLOCK_E_LOCKED) ceiling <<= lost_rounds < 6 ? lost_rounds : 6;
  return part_of(Duration::ms(ceiling < cap_ms ? ceiling : cap_ms), random);
}

}  // namespace redlock
