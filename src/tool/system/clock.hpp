// SPDX-License-Identifier: MIT
//
// CLOCK_BOOTTIME in nanoseconds: the clock that the ends of locks are told in, which counts suspend.
#pragma once
#include <poll.h>
#include <stdint.h>
#include <time.h>

namespace redlock::tool {

constexpr int64_t ns_per_ms = 1'000'000;
constexpr int64_t never = INT64_MAX;

inline int64_t ns_of(clockid_t clock) {  // -1: there is no such clock
  timespec now{};
  return clock_gettime(clock, &now) == 0 ? int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec : -1;
}
inline int64_t now_ns() { return ns_of(CLOCK_BOOTTIME); }

// The timeout of poll() until `when`, rounded up; -1: for ever.
inline int timeout_until(int64_t when) {
  if (when == never) return -1;
  const int64_t left = when - now_ns();
  if (left <= 0) return 0;
  const int64_t ms = (left + ns_per_ms - 1) / ns_per_ms;
  return ms < 3'600'000 ? static_cast<int>(ms) : 3'600'000;
}

// How much earlier a time of `ms` may be over by another clock, rounded up: timing.drift_ppm and timing.drift_fixed_ms.
inline uint32_t drift_ms(uint32_t ms, uint32_t ppm, uint32_t fixed_ms) {
  return static_cast<uint32_t>((uint64_t{ms} * ppm + 999'999) / 1'000'000) + fixed_ms;
}

inline int64_t earlier_of(int64_t a, int64_t b) { return a < b ? a : b; }

inline void pause_ms(int ms) { poll(nullptr, 0, ms); }

// Of two timeouts of poll().
inline int shorter_of(int a, int b) {
  if (a < 0) return b;
  return b < 0 || a < b ? a : b;
}

}  // namespace redlock::tool
