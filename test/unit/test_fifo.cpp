// SPDX-License-Identifier: MIT
//
// Which kinds of requests owe an answer; the tests of the session, the scenarios and fuzz_session show the rest.
#include "master/fifo.hpp"

#include <gtest/gtest.h>

namespace redlock {
namespace {

using Request = Fifo::Request;

Request of_claim(unsigned n, Request::Kind kind = Request::acquire) {
  return {Instant::from_ns(n), n, static_cast<uint16_t>(n), kind, false};
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
  constexpr unsigned capacity = Fifo::own_max + 4;
  for (unsigned begin = 0; begin < capacity; ++begin) {
    Request places[capacity];
    Fifo fifo(places, capacity);
    for (unsigned n = 0; n < begin; ++n) {
      fifo.push(of_claim(n));
      fifo.pop(false);
    }
    for (const unsigned n : {1u, 2u, 3u, 4u}) {
      Request request = of_claim(n);
      request.apart = n > 2;
      fifo.push(request);
    }
    EXPECT_EQ(fifo.take_back().claim, 2u);
    for (const unsigned n : {1u, 3u, 4u}) {
      EXPECT_EQ(fifo.oldest().claim, n) << begin;
      fifo.pop(false);
    }
  }
}

}  // namespace
}  // namespace redlock
