// SPDX-License-Identifier: MIT
#include "master/fifo.hpp"

#include <gtest/gtest.h>

#include <deque>

namespace redlock {
namespace {

using Request = Fifo::Request;

Request of_claim(unsigned n, Request::Kind kind = Request::acquire) {
  return {Instant::from_ns(n), n, static_cast<uint16_t>(n), kind};
}

TEST(Fifo, requests_leave_in_the_order_in_which_they_came) {
  Fifo::Place places[Fifo::own_max + 4];
  Fifo fifo(places, Fifo::own_max + 4);
  std::deque<unsigned> rounds;
  for (unsigned n = 0; n < 100; ++n) {  // round and round
    for (unsigned i = 0; i < n % 4 && fifo.has_room(1); ++i) {
      fifo.push(of_claim(n));
      rounds.push_back(n);
    }
    while (rounds.size() > n % 3) {
      ASSERT_EQ(fifo.oldest().round, rounds.front());
      fifo.pop(false);
      rounds.pop_front();
    }
    fifo.check();
    ASSERT_EQ(fifo.size(), rounds.size());
  }
}

// Of each request only the distance to the one before is kept, so what is rounded off must not add up.
TEST(Fifo, a_request_is_never_younger_than_it_is_and_at_most_a_tick_older) {
  Fifo::Place places[Fifo::own_max + 4];
  Fifo fifo(places, Fifo::own_max + 4);
  std::deque<int64_t> sent;
  int64_t now = -5;
  for (unsigned n = 0; n < 10'000; ++n) {
    now += n % 7 * 1'000 + n % 3;
    fifo.push({Instant::from_ns(now), 0, 0, Request::acquire});
    sent.push_back(now);
    if (sent.size() == 1 + n % 4) {
      fifo.pop(false);
      sent.pop_front();
    }
    while (sent.size() > 3) {
      fifo.pop(false);
      sent.pop_front();
    }
    fifo.check();
    if (sent.empty()) continue;
    ASSERT_LE(fifo.oldest_sent().ns(), sent.front()) << n;
    ASSERT_GT(fifo.oldest_sent().ns(), sent.front() - 1'024) << n;
  }
}

// More than the 73 minutes that a distance can tell: a machine that slept. Older is the safe side.
TEST(Fifo, a_request_behind_a_long_sleep_seems_older) {
  Fifo::Place places[Fifo::own_max + 4];
  Fifo fifo(places, Fifo::own_max + 4);
  const Instant asleep = Instant::from_ns(1'000'000), awake = asleep + Duration::ms(3 * 3'600'000);
  fifo.push({asleep, 0, 0, Request::acquire});
  fifo.push({awake, 0, 0, Request::acquire});
  EXPECT_EQ(fifo.oldest_sent(), asleep);
  fifo.pop(false);
  EXPECT_LT(fifo.oldest_sent(), awake);
  EXPECT_GT(fifo.oldest_sent(), asleep + Duration::ms(3'600'000));
  fifo.push({awake, 0, 0, Request::acquire});
  fifo.pop(false);
  EXPECT_LE(fifo.oldest_sent(), awake);
  fifo.pop(false);
  fifo.push({awake, 0, 0, Request::acquire});
  EXPECT_EQ(fifo.oldest_sent(), awake) << "the first one is kept as it is";
}

TEST(Fifo, places_are_kept_for_the_sessions_own_requests) {
  Fifo::Place places[Fifo::own_max + 2];
  Fifo fifo(places, Fifo::own_max + 2);
  EXPECT_TRUE(fifo.has_room(2));
  EXPECT_FALSE(fifo.has_room(3));
  fifo.push(of_claim(0));
  fifo.push(of_claim(1));
  EXPECT_FALSE(fifo.has_room(1));
  EXPECT_TRUE(fifo.has_own_room(Fifo::own_max));
  for (unsigned i = 0; i < Fifo::own_max; ++i) fifo.push_own(Request::ping, Instant::from_ns(2));
  EXPECT_FALSE(fifo.has_own_room(1));
  fifo.pop(false);
  EXPECT_TRUE(fifo.has_room(1)) << "own requests take none of the client's places";
  EXPECT_FALSE(fifo.has_room(2));
}

TEST(Fifo, an_answer_is_owed_for_each_claim_that_was_asked_about_deletes_apart) {
  Fifo::Place places[Fifo::own_max + 8];
  Fifo fifo(places, Fifo::own_max + 8);
  fifo.push(of_claim(1, Request::release));
  fifo.push(of_claim(2, Request::look));
  fifo.push(of_claim(3, Request::extend));
  fifo.push_own(Request::time, Instant::from_ns(4));
  fifo.push(of_claim(5, Request::token));
  for (uint16_t claim = 0; claim < 7; ++claim) EXPECT_EQ(fifo.owes_answer(claim), claim == 3 || claim == 5) << claim;
  fifo.clear();
  EXPECT_FALSE(fifo.owes_answer(3));
  EXPECT_TRUE(fifo.empty());
}

}  // namespace
}  // namespace redlock
