// SPDX-License-Identifier: MIT
#include "base/time.hpp"

#include "base/types.hpp"

namespace redlock {

REDLOCK_APART_FOR_SIZE Instant operator+(Instant t, Duration d) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(t.ns(), d.ns(), &sum)) return Instant::from_ns(sum);
  return d.ns() > 0 ? Instant::never() : Instant::from_ns(INT64_MIN);
}

REDLOCK_APART_FOR_SIZE void bring_forward(Instant& deadline, Instant t) { deadline = earlier(deadline, t); }

REDLOCK_APART_FOR_SIZE Duration part_of(Duration whole, uint32_t random) {
  const int64_t part = whole.ns() / 65536 * ((random >> 16) + 1);
  return Duration::ns(part > 0 ? part : 1);
}

}  // namespace redlock
