// SPDX-License-Identifier: MIT
#include "master/clock_watch.hpp"

#include "base/types.hpp"

namespace redlock {
namespace {

constexpr int64_t resolution_ns = 1'000'000;

}  // namespace

ClockWatch::Verdict ClockWatch::sample(Instant sent, Instant received, int64_t server_us, uint32_t ppm, Duration& by) {
  REDLOCK_ASSERT(sent <= received);
  REDLOCK_ASSERT(server_us >= 0);
  REDLOCK_ASSERT(!known_ || low_ <= high_);
  const int64_t server_ns = server_us * 1'000;
  const int64_t low = server_ns - received.ns();
  const int64_t high = server_ns + 1'000 - sent.ns();
  const int64_t moved = quotient(received.ns() - at_.ns(), 1'000'000) * ppm + resolution_ns;
  const int64_t lowest = low_ - moved;
  const int64_t highest = high_ + moved;
  const bool was_known = known_;
  known_ = true;
  at_ = received;
  sent_ = sent;
  if (was_known && low <= highest && high >= lowest) {
    low_ = low > lowest ? low : lowest;
    high_ = high < highest ? high : highest;
    return Verdict::steady;
  }
  low_ = low;
  high_ = high;
  if (!was_known) return Verdict::first;
  by = Duration::ns(low > highest ? low - highest : high - lowest);
  return Verdict::stepped;
}

}  // namespace redlock
