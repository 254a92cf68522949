// SPDX-License-Identifier: MIT
//
// The arithmetic of times at its boundaries: every combination of values at and beside zero, the limits of the
// configuration, and the ends of 32 and 64 bits, compared with the same formula in 128 bits.
#include <gtest/gtest.h>

#include <redlock/limits.h>

#include <set>
#include <vector>

#include "lock/validity.hpp"
#include "master/clock_watch.hpp"
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

TEST(EveryBoundary, of_a_random_part) {
  for (const int64_t whole : instants()) {
    if (whole < 1) continue;
    for (const uint32_t random : around<uint32_t>({0, 1u << 16, 1u << 31, UINT32_MAX})) {
      const int64_t part = part_of(Duration::ns(whole), random).ns();
      ASSERT_GE(part, 1) << whole << ' ' << random;
      ASSERT_LE(part, whole) << whole << ' ' << random;
    }
  }
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

// A master whose clock keeps its rate is steady, whatever the two clocks say. One that was stepped by more than what is
// allowed is stepped, in the direction that is told.
void check_step(int64_t server_us, int64_t at, int64_t later, int64_t step) {
  const uint32_t ppm = REDLOCK_DRIFT_PPM_DEFAULT;
  ClockWatch watch;
  Duration by;
  const Instant first = Instant::from_ns(at), second = Instant::from_ns(at + later);
  ASSERT_EQ(watch.sample(first, first, server_us, ppm, by), ClockWatch::Verdict::first);
  const int64_t then_us = server_us + later / 1'000 + step / 1'000;
  if (then_us < 0) return;
  const Wide allowed = Wide{later / million} * ppm + million + 2'000;
  const ClockWatch::Verdict verdict = watch.sample(second, second, then_us, ppm, by);
  if (step <= million && step >= -million) {
    ASSERT_EQ(verdict, ClockWatch::Verdict::steady) << server_us << ' ' << at << ' ' << step;
  } else if (step > allowed || step < -allowed) {
    ASSERT_EQ(verdict, ClockWatch::Verdict::stepped) << server_us << ' ' << at << ' ' << step;
    ASSERT_EQ(by.ns() > 0, step > 0) << server_us << ' ' << at << ' ' << step;
  }
}

TEST(EveryBoundary, of_a_clock_that_is_watched) {
  constexpr int64_t most_us = 9'000'009'000'000'000;  // Record believes no later TIME
  for (const int64_t server_us : around<int64_t>({1, 1'000'000, 1'700'000'000'000'000, most_us - 1})) {
    for (const int64_t at : around<int64_t>({1, 1'000'000'000, 86'400'000'000'000, int64_t{1} << 53})) {
      for (const int64_t later : {int64_t{0}, int64_t{1'000'000}, int64_t{10'000'000'000}}) {
        for (const int64_t step : around<int64_t>({-20'000'000'000, -5'000'000, 0, 5'000'000, 20'000'000'000})) {
          check_step(server_us, at, later, step);
        }
      }
    }
  }
}
#endif

constexpr Drift usual = {REDLOCK_DRIFT_PPM_DEFAULT, REDLOCK_DRIFT_FIXED_MS_DEFAULT};
constexpr int64_t ms = 1'000'000;

Instant at(int64_t ns) { return Instant::from_ns(ns); }

TEST(Validity, drift) {
  EXPECT_EQ(usual.of(10'000), Duration::ms(102));
  EXPECT_EQ(usual.of(20).ns(), 2'200'000);
  EXPECT_EQ(usual.of(1).ns(), 2'010'000);
  EXPECT_EQ((Drift{200'000, 1'000}.of(86'400'000)), Duration::ms(17'281'000));
  EXPECT_EQ(usual.of(0), Duration::ms(2));
}

TEST(Validity, ends_a_ttl_after_the_start_less_the_drift) {
  EXPECT_EQ(valid_until(at(0), 10'000, usual), at(9'898 * ms));
  EXPECT_EQ(valid_until(at(5), 10'000, usual), at(9'898 * ms + 5));
  EXPECT_EQ(valid_until(at(-7), 20, usual), at(17'800'000 - 7));
  EXPECT_LT(valid_until(at(0), 2, usual), at(0)) << "all of it is drift";
}

}  // namespace
}  // namespace redlock::test
