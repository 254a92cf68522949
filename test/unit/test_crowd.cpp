// SPDX-License-Identifier: MIT
//
// What a client learns about a resource that others want, too.
#include "lock/crowd.hpp"

#include <gtest/gtest.h>

namespace redlock {
namespace {

constexpr uint32_t share_ms = 6;

// A crowd of `n`: the resource comes to a waiter after n shares, if all take their turns.
Crowd after(Crowd crowd, unsigned passed, uint32_t waited_ms) {
  crowd.learn(passed, Duration::ms(int64_t{share_ms} * (passed + 1)), Duration::ms(waited_ms));
  return crowd;
}

TEST(Crowd, a_share_is_the_time_between_two_grants) {
  Crowd crowd = after({}, 3, 24);
  EXPECT_EQ(crowd.share_us, share_ms * 1000);
  crowd.learn(0, Duration::ms(500), Duration::ms(500));
  EXPECT_EQ(crowd.share_us, share_ms * 1000) << "nobody passed: it says nothing about others";
  crowd.learn(1, Duration::ms(20), Duration::ms(20));
  EXPECT_EQ(crowd.share_us, 8000u);
}

TEST(Crowd, who_watched_too_early_sleeps_longer_and_who_watched_too_late_shorter) {
  const Crowd crowd = after({}, 10, 66);
  EXPECT_EQ(crowd.nap_us, (66 - 3 * share_ms) * 1000 / 2) << "half of the way to the right nap";
  EXPECT_GT(after(crowd, 5, 66).nap_us, crowd.nap_us);
  EXPECT_LT(after(crowd, 2, 44).nap_us, crowd.nap_us);
  EXPECT_LT(after(crowd, 0, 24).nap_us, after(crowd, 2, 44).nap_us);
  EXPECT_EQ(after(crowd, 3, 1).nap_us, crowd.nap_us) << "it never shrinks for watching too early";
  Crowd less = crowd;
  for (unsigned i = 0; i < 20; ++i) less = after(less, 0, 1);
  EXPECT_EQ(less.nap_us, 0u);
}

TEST(Crowd, naps_that_began_unlike_become_alike) {
  Crowd one, other;
  one.nap_us = 400'000;
  one.share_us = other.share_us = share_ms * 1000;
  for (unsigned i = 0; i < 100; ++i) {
    const unsigned passed = i % 2 == 0 ? 0 : 6;  // what both see is the same
    const auto waited = [&](const Crowd& c) { return c.nap_us / 1000 + share_ms * (passed + 1); };
    one = after(one, passed, waited(one));
    other = after(other, passed, waited(other));
  }
  EXPECT_LT(one.nap_us - other.nap_us, 20'000u);
}

TEST(Crowd, a_wait_without_end_overflows_nothing) {
  Crowd crowd;
  crowd.learn(255, Duration::ns(INT64_MAX), Duration::ns(INT64_MAX));
  crowd.learn(255, Duration::ns(INT64_MAX), Duration::ns(INT64_MAX));
  EXPECT_LE(crowd.nap(), Duration::ms(600'000));
  EXPECT_LE(crowd.share_us, 600'000'000u);
}

TEST(Crowds, a_name_that_is_not_known_is_one_that_nobody_else_wants) {
  Crowds crowds;
  EXPECT_FALSE(crowds.of("bus").waited);
  Crowd crowd;
  crowd.waited = true;
  crowd.nap_us = 7;
  crowds.keep("bus", crowd);
  EXPECT_TRUE(crowds.of("bus").waited);
  EXPECT_EQ(crowds.of("bus").nap(), Duration::us(7));
  for (const Bytes other : {Bytes("valve"), Bytes("pump"), Bytes("tap"), Bytes("Bus")}) {
    EXPECT_FALSE(crowds.of(Names(other)).waited);
  }
}

}  // namespace
}  // namespace redlock
