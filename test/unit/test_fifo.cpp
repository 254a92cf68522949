// SPDX-License-Identifier: MIT
//
// Which kinds of requests owe an answer; bounds/test_fifo.cpp shows the rest.
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

}  // namespace
}  // namespace redlock
