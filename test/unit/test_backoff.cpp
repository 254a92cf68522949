// SPDX-License-Identifier: MIT
#include "lock/backoff.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace redlock {
namespace {

constexpr uint32_t cap = 5'000;

Duration longest(int cause, uint32_t delay, unsigned rounds, uint32_t cap_ms = cap) {
  return pause_after(cause, delay, rounds, cap_ms, UINT32_MAX);
}

TEST(Backoff, never_nothing_and_never_above_the_ceiling) {
  std::mt19937 random(5);
  for (const int cause : {REDLOCK_E_LOCKED, REDLOCK_E_NO_QUORUM, REDLOCK_E_TOO_SLOW}) {
    for (unsigned rounds : {0u, 1u, 5u, 6u, 7u, 31u, 32u, 64u, UINT32_MAX}) {
      for (uint32_t delay : {1u, 100u, 5'000u}) {
        for (int i = 0; i < 200; ++i) {
          const Duration pause = pause_after(cause, delay, rounds, cap, static_cast<uint32_t>(random()));
          ASSERT_GT(pause, Duration());
          ASSERT_LE(pause, Duration::ms(cap));
          ASSERT_TRUE(cause != REDLOCK_E_LOCKED || pause <= Duration::ms(delay));
        }
        EXPECT_GT(pause_after(cause, delay, rounds, cap, 0), Duration());
      }
    }
  }
}

TEST(Backoff, doubles_only_when_masters_are_missing) {
  for (unsigned rounds = 0; rounds < 100; ++rounds) {
    EXPECT_EQ(longest(REDLOCK_E_LOCKED, 100, rounds), Duration::ms(100));
    const int64_t doubled = int64_t{10} << std::min(rounds, 6u);
    EXPECT_EQ(longest(REDLOCK_E_NO_QUORUM, 10, rounds), Duration::ms(doubled));
    EXPECT_EQ(longest(REDLOCK_E_TOO_SLOW, 10, rounds), Duration::ms(doubled));
  }
}

TEST(Backoff, cap) {
  EXPECT_EQ(longest(REDLOCK_E_NO_QUORUM, 100, 6), Duration::ms(5'000));
  EXPECT_EQ(longest(REDLOCK_E_NO_QUORUM, 5'000, UINT32_MAX), Duration::ms(5'000));
  EXPECT_EQ(longest(REDLOCK_E_LOCKED, 5'000, 0, 20), Duration::ms(20));
  EXPECT_EQ(longest(REDLOCK_E_NO_QUORUM, UINT32_MAX, 6, UINT32_MAX), Duration::ms(UINT32_MAX));
}

}  // namespace
}  // namespace redlock
