// SPDX-License-Identifier: MIT
//
// The arithmetic of times at its boundaries: every combination of values at and beside zero, the limits of the
// configuration, and the ends of 32 and 64 bits, compared with the same formula in 128 bits.
#include <gtest/gtest.h>

#include <redlock/limits.h>

#include <set>
#include <vector>

#include "lock/validity.hpp"
#include "master/guard.hpp"

namespace redlock::test {
namespace {

#ifdef __SIZEOF_INT128__  // no processor of 32 bits has it
using Wide = __int128;
constexpr Wide million = 1'000'000;

int64_t saturated(Wide n) {
  return n > INT64_MAX ? INT64_MAX : n < INT64_MIN ? INT64_MIN : static_cast<int64_t>(n);
}

// The values, and those beside them that fit.
template <class T>
std::vector<T> around(const std::set<T>& values) {
  std::set<T> all;
  for (const T value : values) {
    for (const int step : {-1, 0, 1}) {
      T neighbour = 0;
      if (!__builtin_add_overflow(value, step, &neighbour)) all.insert(neighbour);
    }
  }
  return {all.begin(), all.end()};
}

const std::vector<int64_t>& instants() {
  static const auto all = around<int64_t>({INT64_MIN, -(int64_t{1} << 53), -1'000'000'000, -1'000'000, 0, 1'000'000,
                                           1'000'000'000, 86'400'000'000'000, int64_t{1} << 53, INT64_MAX});
  return all;
}

const std::vector<uint32_t>& ttls() {
  static const auto all = around<uint32_t>({0, REDLOCK_TTL_MS_MIN, REDLOCK_TTL_MS_DEFAULT, REDLOCK_MAX_TTL_MS_MAX,
                                            uint32_t{1} << 31, UINT32_MAX});
  return all;
}

const Drift drifts[] = {{0, 0},
                        {REDLOCK_DRIFT_PPM_DEFAULT, REDLOCK_DRIFT_FIXED_MS_DEFAULT},
                        {REDLOCK_DRIFT_PPM_DEFAULT, REDLOCK_DRIFT_FIXED_MS_MAX},
                        {REDLOCK_DRIFT_PPM_MAX, REDLOCK_DRIFT_FIXED_MS_DEFAULT},
                        {REDLOCK_DRIFT_PPM_MAX, REDLOCK_DRIFT_FIXED_MS_MAX}};

TEST(EveryBoundary, of_a_sum_saturates) {
  for (const int64_t t : instants()) {
    for (const int64_t d : instants()) {
      ASSERT_EQ((Instant::from_ns(t) + Duration::ns(d)).ns(), saturated(Wide{t} + d)) << t << ' ' << d;
    }
  }
}

TEST(EveryBoundary, of_what_is_left) {
  for (const int64_t until : instants()) {
    for (const int64_t now : instants()) {
      if (Wide{until} - now > INT64_MAX) continue;  // three centuries apart: instants are never negative in a client
      const Wide wanted = until > now ? Wide{until} - now : 0;
      ASSERT_EQ(left(Instant::from_ns(until), Instant::from_ns(now)).ns(), saturated(wanted)) << until << ' ' << now;
      ASSERT_EQ(remaining_ms(Instant::from_ns(until), Instant::from_ns(now)), saturated(wanted / million));
    }
  }
}

TEST(EveryBoundary, of_a_validity) {
  for (const Drift drift : drifts) {
    for (const uint32_t ttl : ttls()) {
      const Wide lost = Wide{ttl} * drift.ppm + drift.fixed_ms * million;
      for (const int64_t t0 : instants()) {
        const Wide wanted = Wide{t0} + ttl * million - lost;
        ASSERT_EQ(valid_until(Instant::from_ns(t0), ttl, drift).ns(), saturated(wanted))
            << t0 << " ttl " << ttl << " ppm " << drift.ppm << " fixed " << drift.fixed_ms;
      }
    }
  }
}

// No longer than asked for, not past the limit, and one millisecond more would be.
TEST(EveryBoundary, of_a_ttl_that_is_cut) {
  unsigned long cut = 0;
  for (const Drift drift : drifts) {
    for (const uint32_t ttl : ttls()) {
      for (const int64_t t0 : instants()) {
        if (t0 < 0) continue;
        const Instant begin = Instant::from_ns(t0);
        std::set<int64_t> limits(instants().begin(), instants().end());
        for (const uint32_t shorter : ttls()) limits.insert(valid_until(begin, shorter, drift).ns());
        for (const int64_t limit : around<int64_t>(limits)) {
          if (limit < 0) continue;
          const uint32_t within = ttl_within(begin, ttl, drift, Instant::from_ns(limit));
          ASSERT_LE(within, ttl);
          if (within == ttl) {
            ASSERT_TRUE(ttl == 0 || valid_until(begin, ttl, drift).ns() <= limit) << t0 << ' ' << ttl << ' ' << limit;
            continue;
          }
          ++cut;
          ASSERT_TRUE(limit > t0 || within == 0) << t0 << ' ' << ttl << ' ' << limit << ' ' << within;
          const auto end = [&](Wide ms) { return t0 + ms * million - ms * drift.ppm - drift.fixed_ms * million; };
          ASSERT_TRUE(within == 0 || end(within) <= limit) << t0 << ' ' << ttl << ' ' << limit << ' ' << within;
          const bool longest = limit <= t0 || end(Wide{within} + 1) > limit;
          ASSERT_TRUE(longest) << t0 << ' ' << ttl << ' ' << limit << ' ' << within;
        }
      }
    }
  }
  EXPECT_GT(cut, 10'000u);
}

TEST(EveryBoundary, of_a_guard_time) {
  for (const Drift drift : drifts) {
    for (const uint32_t ttl : ttls()) {
      const Wide wanted = Wide{ttl} * (million + drift.ppm) + drift.fixed_ms * million;
      ASSERT_EQ(guard_time(ttl, drift.ppm, drift.fixed_ms).ns(), saturated(wanted));
      ASSERT_LT(wanted, INT64_MAX);
      ASSERT_GE(wanted, ttl * million) << "every lock of that ttl has ended";
    }
  }
}
#endif

}  // namespace
}  // namespace redlock::test
