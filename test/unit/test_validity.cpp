// SPDX-License-Identifier: MIT
#include "lock/validity.hpp"

#include <gtest/gtest.h>

#include <random>

#include <redlock/limits.h>

namespace redlock {
namespace {

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

TEST(Validity, extreme_ttls) {
  EXPECT_EQ(valid_until(at(0), 1u << 31, usual).ns(), (int64_t{1} << 31) * 990'000 - 2 * ms);
  EXPECT_EQ(valid_until(at(0), UINT32_MAX, usual).ns(), int64_t{UINT32_MAX} * 990'000 - 2 * ms);
  EXPECT_EQ(valid_until(Instant::never(), UINT32_MAX, usual), Instant::never());
  EXPECT_EQ(valid_until(at(INT64_MAX - 1), 20, usual), Instant::never());
  EXPECT_EQ(valid_until(at(INT64_MAX - 1), 1, usual).ns(), INT64_MAX - 1 - 1'010'000);
}

TEST(Validity, what_is_left_is_rounded_down) {
  EXPECT_EQ(remaining_ms(at(3 * ms), at(0)), 3);
  EXPECT_EQ(remaining_ms(at(3 * ms - 1), at(0)), 2);
  EXPECT_EQ(remaining_ms(at(3 * ms), at(1)), 2);
  EXPECT_EQ(remaining_ms(at(ms), at(1)), 0);
  EXPECT_EQ(remaining_ms(at(1), at(1)), 0);
  EXPECT_EQ(remaining_ms(at(1), at(2 * ms)), 0) << "never below nothing";
  EXPECT_EQ(remaining_ms(at(-5), at(-5 - 2 * ms)), 2);
  EXPECT_EQ(remaining_ms(Instant::never(), at(0)), INT64_MAX / ms);
  EXPECT_EQ(remaining_ms(at(INT64_MIN), Instant::never()), 0);
  EXPECT_EQ(left(at(7), at(3)), Duration::ns(4));
  EXPECT_EQ(left(at(3), at(7)), Duration());
}

// The cut ttl: its validity does not pass the limit, one millisecond more would; or nothing had to be cut.
void check_cut(Instant t0, uint32_t ttl, Drift drift, Instant limit) {
  const uint32_t cut = ttl_within(t0, ttl, drift, limit);
  SCOPED_TRACE(testing::Message() << "t0 " << t0.ns() << " ttl " << ttl << " ppm " << drift.ppm << " fixed "
                                  << drift.fixed_ms << " limit " << limit.ns() << " cut " << cut);
  ASSERT_LE(cut, ttl);
  if (cut == ttl) {
    ASSERT_LE(valid_until(t0, ttl, drift), limit);
  } else if (limit <= t0) {
    ASSERT_EQ(cut, 0u);
  } else {
    ASSERT_LE(valid_until(t0, cut, drift), limit);
    ASSERT_GT(valid_until(t0, cut + 1, drift), limit);
  }
}

TEST(Validity, a_cut_ttl_stays_within_the_limit_and_could_not_be_longer) {
  std::mt19937_64 random(3);
  const auto up_to = [&](uint64_t n) { return static_cast<int64_t>(random() % (n + 1)); };
  for (int i = 0; i < 200'000; ++i) {
    const Drift drift = {static_cast<uint32_t>(10'000 + up_to(190'000)), static_cast<uint32_t>(2 + up_to(998))};
    const uint32_t ttl = static_cast<uint32_t>(20 + up_to(i % 2 ? 30'000 : 86'399'980));
    const Instant t0 = at(up_to(uint64_t{1} << 50));
    const int64_t full = left(valid_until(t0, ttl, drift), t0).ns();
    check_cut(t0, ttl, drift, t0 + Duration::ns(up_to(static_cast<uint64_t>(full) + 5 * ms) - 2 * ms));
  }
}

TEST(Validity, cuts_at_the_edges) {
  for (const uint32_t ttl : {20u, 10'000u, 1u << 31, UINT32_MAX}) {
    const Instant full = valid_until(at(0), ttl, usual);
    EXPECT_EQ(ttl_within(at(0), ttl, usual, full), ttl);
    EXPECT_EQ(ttl_within(at(0), ttl, usual, full + Duration::ns(-1)), ttl - 1);
    EXPECT_EQ(ttl_within(at(0), ttl, usual, Instant::never()), ttl);
    EXPECT_EQ(ttl_within(at(9), ttl, usual, at(9)), 0u);
    EXPECT_EQ(ttl_within(at(9), ttl, usual, at(8)), 0u);
    EXPECT_EQ(ttl_within(at(9), ttl, usual, at(INT64_MIN)), 0u);
    for (int64_t back = -3; back <= 3; ++back) check_cut(at(0), ttl, usual, full + Duration::ns(back));
    for (int64_t limit = 1; limit <= 4; ++limit) check_cut(at(0), ttl, usual, at(limit));
  }
  EXPECT_EQ(ttl_within(Instant::never(), 20, usual, Instant::never()), 20u);
}

}  // namespace
}  // namespace redlock
