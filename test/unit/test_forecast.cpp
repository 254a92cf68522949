// SPDX-License-Identifier: MIT
//
// When is a quorum plausibly free? The rule over all small inputs against a dumb second answer, and what one waiter
// learns, step by step.
#include "lock/forecast.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

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

}  // namespace
}  // namespace redlock
