// SPDX-License-Identifier: MIT
//
// When is a quorum plausibly free? The rule over all small inputs against a dumb second answer, and what one waiter
// learns, step by step.
#include "lock/forecast.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "lock/backoff.hpp"
#include "lock/crowd.hpp"

namespace redlock {
namespace {

constexpr Instant never = Instant::never();
Instant at(int64_t ms) { return Instant::from_ns(ms * 1'000'000); }

// Every assignment of four times to up to five masters: sorted, the Q-th.
TEST(QuorumFreeAt, is_the_qth_smallest) {
  const Instant times[] = {at(0), at(10), at(20), never};
  for (unsigned masters = 1; masters <= 5; ++masters) {
    unsigned all = 1;
    for (unsigned m = 0; m < masters; ++m) all *= 4;
    for (unsigned code = 0; code < all; ++code) {
      std::vector<Instant> free_at;
      for (unsigned m = 0, rest = code; m < masters; ++m, rest /= 4) free_at.push_back(times[rest % 4]);
      std::vector<Instant> sorted = free_at;
      std::sort(sorted.begin(), sorted.end());
      for (unsigned quorum = 1; quorum <= masters; ++quorum) {
        ASSERT_EQ(quorum_free_at(free_at.data(), masters, quorum), sorted[quorum - 1]) << masters << " " << code;
      }
    }
  }
}

TEST(RaceWindow, follows_the_round_within_bounds) {
  EXPECT_EQ(race_window(Duration::ms(1), 1, 1, 100), Duration::ms(2));
  EXPECT_EQ(race_window(Duration::ms(1), 5, 1, 100), Duration::ms(10));
  EXPECT_EQ(race_window(Duration::ms(1), 5, 2, 100), Duration::ms(5)) << "the older, the shorter";
  EXPECT_EQ(race_window(Duration::ms(9), 6, 1, 100), Duration::ms(100)) << "never longer than the plain pause";
  EXPECT_EQ(race_window(Duration::ms(100), 1, 4, 100), Duration::ms(100)) << "a round that takes as long";
  EXPECT_EQ(race_window(Duration::ms(3'000'000'000), 5, 1, 100), Duration::ms(100));
  EXPECT_EQ(race_window(Duration(), 1, 1, 100), Duration::us(200)) << "a round that took no time is still raced for";
  EXPECT_EQ(race_window(Duration::ms(50), 5, 1, 1), Duration::ms(1));
}

struct Waiter {
  explicit Waiter(unsigned n) : free_at(n) {
    forecast.use(free_at.data(), n);
    forecast.reset();
  }
  // Lost the first round to a holder on all masters, and has looked.
  static Waiter looking(unsigned n = 3) {
    Waiter w(n);
    const Masters all = Masters::all(n);
    w.forecast.round_begins();
    w.forecast.wait(all, all, all, at(50));
    for (MasterIndex m = 0; m < n; ++m) w.forecast.look_sent(m);
    return w;
  }
  void looked(MasterIndex m, int64_t ttl, int64_t now_ms) { forecast.looked(m, ttl, at(now_ms), at(now_ms + 60)); }
  void changed(MasterIndex m, int64_t now_ms) { forecast.changed(m, false, at(now_ms)); }

  std::vector<Instant> free_at;
  Forecast forecast;
};

struct WaiterOfFive : ::testing::Test {
  Waiter w{5};
};

struct LookingWaiter : ::testing::Test {
  Waiter w = Waiter::looking();
};

TEST_F(LookingWaiter, what_a_look_says) {
  EXPECT_EQ(w.forecast.look(), Masters());
  EXPECT_EQ(w.forecast.quorum_at(), never) << "nothing is known yet";
  w.looked(0, 700, 10);
  EXPECT_EQ(w.free_at[0], at(712)) << "the server's milliseconds, and expired is after";
  w.looked(1, ttl_gone, 10);
  EXPECT_EQ(w.free_at[1], at(10));
  EXPECT_EQ(w.forecast.quorum_at(), at(712));
  w.looked(2, ttl_none, 10);
  EXPECT_EQ(w.free_at[2], never);
  Waiter refused = Waiter::looking();
  refused.looked(0, ttl_unknown, 10);
  EXPECT_EQ(refused.free_at[0], at(70));
  Waiter foreign = Waiter::looking();
  foreign.looked(0, INT64_MAX, 10);
  EXPECT_LT(foreign.free_at[0], never) << "far, but a time";
}

TEST_F(LookingWaiter, only_the_last_of_several_answers_counts) {
  w.forecast.look_sent(0);
  w.looked(0, ttl_gone, 10);
  EXPECT_EQ(w.free_at[0], never) << "asked before something that we did ourselves";
  w.looked(0, 300, 11);
  EXPECT_EQ(w.free_at[0], at(313));
  w.looked(0, ttl_gone, 12);
  EXPECT_EQ(w.free_at[0], at(313)) << "nobody asked";
}

// Two masters are free and a third lives; the fourth took no SET, for want of room, and others' attempts make it push.
TEST_F(WaiterOfFive, a_master_that_took_no_set_is_left_to_the_plain_timer) {
  w.forecast.round_begins();
  w.forecast.look_sent(3);  // behind the SET, and not answered yet
  w.forecast.wait(Masters::all(4), Masters::all(3), Masters::all(3), at(50));
  for (const MasterIndex m : {0u, 1u, 2u}) {
    w.forecast.look_sent(m);
    w.looked(m, m == 2 ? 1'000 : ttl_gone, 1);
  }
  w.looked(3, ttl_gone, 2);
  EXPECT_EQ(w.forecast.quorum_at(), at(50));
  w.changed(3, 3);
  EXPECT_EQ(w.forecast.look(), Masters());
  EXPECT_EQ(w.forecast.quorum_at(), at(50));
  w.forecast.disconnected(3);
  w.forecast.back(3, true, at(70));
  EXPECT_EQ(w.forecast.look(), Masters::of(3)) << "on a new connection it may take one";
  w.forecast.look_sent(3);
  w.looked(3, ttl_gone, 5);
  EXPECT_EQ(w.forecast.quorum_at(), at(5));
  w.forecast.disconnected(3);
  w.forecast.back(3, false, at(70));
  w.changed(3, 6);
  EXPECT_EQ(w.forecast.look(), Masters());
  EXPECT_EQ(w.forecast.quorum_at(), at(70));
  w.forecast.round_begins();
  w.forecast.wait(Masters::all(5), Masters::all(5), Masters::all(5), at(100));
  EXPECT_EQ(w.forecast.look(), Masters::all(5)) << "each round shows anew";
}

TEST_F(LookingWaiter, a_look_of_an_earlier_wait_says_nothing_of_a_master_that_is_not_watched) {
  w.looked(1, 9'000, 9);
  w.forecast.round_begins();
  w.forecast.wait(Masters::all(3), Masters::all(3), Masters::of(1), at(100));
  w.forecast.look_sent(1);
  w.looked(0, 9'000, 10);
  w.looked(1, 9'000, 11);
  w.changed(1, 20);
  EXPECT_EQ(w.forecast.quorum_at(), at(20)) << "a late answer would make the waiter deaf to the master it watches";
}

TEST_F(LookingWaiter, looks_are_counted_as_far_as_one_byte_goes) {
  for (unsigned i = 0; i < 300; ++i) w.forecast.look_sent(0);
  for (unsigned i = 0; i < 254; ++i) w.looked(0, ttl_gone, 10);
  EXPECT_EQ(w.free_at[0], never);
  w.looked(0, ttl_gone, 11);
  EXPECT_EQ(w.free_at[0], at(11));
}

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

// What a client learns about a resource that others want, too.
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
