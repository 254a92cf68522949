// SPDX-License-Identifier: MIT
//
// What a client learns about a resource that others want, too.
#include "lock/crowd.hpp"

#include <gtest/gtest.h>

#include <string>

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

TEST(Crowd, a_wait_without_end_overflows_nothing) {
  Crowd crowd;
  crowd.learn(255, Duration::ns(INT64_MAX), Duration::ns(INT64_MAX));
  crowd.learn(255, Duration::ns(INT64_MAX), Duration::ns(INT64_MAX));
  EXPECT_LE(crowd.nap(), Duration::ms(600'000));
  EXPECT_LE(crowd.share_us, 600'000'000u);
}

// Grants until the client gives way next.
unsigned grants_until_it_gives(Crowd& crowd) {
  unsigned n = 0;
  do crowd.granted(true, Duration::us(200), 1), ++n;
  while (!crowd.gives() && n < 5'000);
  return n;
}

TEST(Crowd, who_never_waits_gives_way_ever_more_seldom_and_anew_when_somebody_took_the_resource) {
  Crowd crowd;
  EXPECT_FALSE(crowd.gives());
  for (unsigned turns = 4; turns < 1'024; turns *= 2) EXPECT_EQ(grants_until_it_gives(crowd), turns);
  for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(grants_until_it_gives(crowd), 1'024u);
  crowd.granted(false, Duration::us(200), 1);
  EXPECT_FALSE(crowd.gives()) << "it had to wait";
  EXPECT_EQ(grants_until_it_gives(crowd), 1u);
  EXPECT_EQ(grants_until_it_gives(crowd), 2u);
  EXPECT_EQ(crowd.round(), Duration::us(200));
}

TEST(Crowd, who_has_held_the_resource_for_long_gives_way_whatever_the_count) {
  Crowd crowd;
  const auto hold = [&crowd](Duration held) {
    crowd.let_go(held, Instant());
    crowd.granted(true, Duration::us(200), 1);
  };
  for (unsigned turns = 4; turns < 1'024; turns *= 2) grants_until_it_gives(crowd);
  hold(Duration::us(0));
  unsigned n = 0;
  for (; !crowd.gives() && n < 100; ++n) hold(Duration::ms(5));
  EXPECT_EQ(n, 41u) << "1,024 rounds are 205 ms";
  hold(Duration::ms(5));
  EXPECT_FALSE(crowd.gives()) << "it counts anew";
  for (unsigned i = 0; i < 3; ++i) {
    hold(Duration::ms(3'600'000));
    EXPECT_TRUE(crowd.gives());
  }
}

constexpr Duration hold = Duration::ms(10);

// Urgent acquires without a pause before each, until one of them may not hurry.
unsigned hurried_in_a_row(Crowd& crowd, Instant now) {
  unsigned n = 0;
  for (; crowd.hurries(now) && n < 100; ++n) {
    crowd.hurried(now);
    now = now + hold;
    crowd.let_go(hold, now);
  }
  return n;
}

TEST(Crowd, urgent_ones_hurry_after_a_pause_of_four_holds_and_four_times_more) {
  const Instant now = Instant() + Duration::ms(1'000);
  Crowd crowd;
  EXPECT_EQ(hurried_in_a_row(crowd, now), 5u);
  crowd.hurried(now);  // once more than it may
  const Instant let_go = now + Duration::ms(50);
  EXPECT_FALSE(crowd.hurries(let_go + Duration::ms(35)));
  EXPECT_TRUE(crowd.hurries(let_go + Duration::ms(45)));
  EXPECT_EQ(hurried_in_a_row(crowd, let_go + Duration::ms(45)), 5u);
}

// A grant of this name.
void note(Crowds& crowds, uint32_t name, bool waited, uint32_t nap_us) {
  Crowd* const crowd = crowds.note(name, waited);
  if (crowd != nullptr) crowd->nap_us = nap_us;
}

TEST(Crowds, a_name_that_others_want_is_not_forgotten_for_one_that_nobody_else_wants) {
  Crowds crowds;
  const std::string a = "bus";
  std::string b = "x";
  const auto name_of = [](const std::string& s) { return Crowds::name_of(Bytes(s.data(), s.size()), false); };
  while (name_of(b) % 4 != name_of(a) % 4) b += 'x';
  const uint32_t bus = name_of(a), other = name_of(b);
  note(crowds, bus, true, 7);
  note(crowds, other, false, 5);
  EXPECT_EQ(crowds.of(bus).nap_us, 7u);
  EXPECT_EQ(crowds.find(other), nullptr);
  note(crowds, other, false, 5);
  EXPECT_EQ(crowds.of(other).nap_us, 5u) << "it is asked for more often";
  EXPECT_EQ(crowds.of(bus).nap_us, 0u);
  note(crowds, bus, true, 7);
  EXPECT_EQ(crowds.of(bus).nap_us, 7u);
  note(crowds, other, true, 9);
  EXPECT_EQ(crowds.of(other).nap_us, 9u) << "others want both";
}

}  // namespace
}  // namespace redlock
