// SPDX-License-Identifier: MIT
//
// Validity: until when may a holder rely on a lock, and how much time is left? Only this file subtracts times of a
// lock.
//
//     valid_until = t0 + ttl - drift        t0: read before the first byte of the round is handed to a transport
//     drift       = ttl * ppm / 1e6 + fixed
//
// The Redlock page ("Safety arguments") says MIN_VALIDITY = TTL - (T2 - T1) - CLOCK_DRIFT. Here the validity is an
// absolute instant, so the elapsed time T2 - T1 needs no measuring. The drift covers the rate errors of the holder and
// of a master together, and the master's whole milliseconds. What is left is rounded down; a wait is rounded up.
#pragma once
#include "base/time.hpp"
#include "base/types.hpp"

namespace redlock {

struct Drift {
  uint32_t ppm;
  uint32_t fixed_ms;

  // ttl in ms times ppm is nanoseconds.
  constexpr Duration of(uint32_t ttl_ms) const {
    return Duration::ns(int64_t{ttl_ms} * ppm + Duration::ms(fixed_ms).ns());
  }
};

// With raw counts: see base/time.hpp.
REDLOCK_APART_FOR_SIZE constexpr int64_t left_ns(int64_t until, int64_t now) { return until > now ? until - now : 0; }

constexpr Duration left(Instant until, const Instant& now) { return Duration::ns(left_ns(until.ns(), now.ns())); }

// Whole milliseconds left, rounded down; 0: nothing is left.
constexpr int64_t remaining_ms(Instant until, const Instant& now) { return quotient(left(until, now).ns(), 1'000'000); }

inline Instant valid_until(Instant t0, uint32_t ttl_ms, Drift drift) {
  return t0 + Duration::ns(Duration::ms(ttl_ms).ns() - drift.of(ttl_ms).ns());
}

// The longest ttl, at most ttl_ms, whose validity from t0 ends at `limit` or before; 0: there is none.
REDLOCK_APART_FOR_SIZE inline uint32_t ttl_within(Instant t0, uint32_t ttl_ms, Drift drift, Instant limit) {
  if (valid_until(t0, ttl_ms, drift) <= limit) return ttl_ms;
  if (limit <= t0) return 0;
  return static_cast<uint32_t>(
      quotient((left(limit, t0) + Duration::ms(drift.fixed_ms)).ns(), 1'000'000 - drift.ppm));
}

}  // namespace redlock
