// SPDX-License-Identifier: MIT
//
// Examples; bounds/test_times.cpp goes through the boundaries, and through the ttls that are cut.
#include "lock/validity.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace redlock
