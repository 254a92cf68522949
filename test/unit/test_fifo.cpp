// SPDX-License-Identifier: MIT
#include "master/fifo.hpp"

#include <gtest/gtest.h>

#include <deque>

namespace redlock {
namespace {

using Request = Fifo::Request;

Request of_claim(unsigned n, Request::Kind kind = Request::acquire) {
  return {Instant::from_ns(n), n, static_cast<uint16_t>(n), kind, false};
}

TEST(Fifo, requests_leave_in_the_order_in_which_they_came) {
  Request places[Fifo::own_max + 4];
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

TEST(Fifo, places_are_kept_for_the_sessions_own_requests) {
  Request places[Fifo::own_max + 2];
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
  Request places[Fifo::own_max + 8];
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

// Requests that only this master was sent stay where they are, wherever the ring ends.
TEST(Fifo, takes_back_the_newest_shared_request) {
  for (unsigned turn = 0; turn < Fifo::own_max + 8; ++turn) {
    Request places[Fifo::own_max + 8];
    Fifo fifo(places, Fifo::own_max + 8);
    for (unsigned n = 0; n < turn; ++n) {
      fifo.push(of_claim(n));
      fifo.pop(false);
    }
    for (const unsigned n : {1u, 2u, 3u, 4u, 5u}) {
      Request request = of_claim(n, n == 2 ? Request::release : Request::acquire);
      request.apart = n == 3 || n == 5;
      fifo.push(request);
    }
    EXPECT_EQ(fifo.take_back().claim, 4u);
    const Request second = fifo.take_back();
    EXPECT_EQ(second.claim, 2u);
    EXPECT_EQ(second.kind, Request::release);
    fifo.check();
    fifo.push(of_claim(6));
    for (const unsigned n : {1u, 3u, 5u, 6u}) {
      EXPECT_EQ(fifo.oldest().claim, n) << turn;
      fifo.pop(false);
    }
    EXPECT_TRUE(fifo.empty());
  }
}

}  // namespace
}  // namespace redlock
