// SPDX-License-Identifier: MIT
//
// Redlock page, "Safety arguments".
#include <gtest/gtest.h>

#include "support/stage.hpp"

namespace redlock::test {
namespace {

// MIN_VALIDITY. The keys are set at different times, up to the last answer, and expire at different times. But the
// first to expire was set no earlier than the time from before the first contact, so until the end of the validity a
// majority holds all its keys at once.
TEST(Safety, AMajorityOfKeysOutlivesTheValidity) {
  for (const double spread : {0.0, 3.0, 20.0, 49.0}) {
    Stage stage(5);
    Gateway& a = stage.add("a");
    for (unsigned m = 2; m <= 5; ++m) stage.block(a, m, true);
    a.acquire("bus", Gateway::options(200));
    for (unsigned m = 2; m <= 5; ++m) {  // the SETs arrive one after the other
      stage.advance_ms(spread / 4);
      stage.block(a, m, false);
    }
    ASSERT_EQ(a.outcome("bus"), "ACQUIRED") << spread;
    while (a.holds("bus")) {
      ASSERT_GE(stage.holders("bus").size(), 3u) << spread << ", " << stage.now_ms();
      stage.advance_ms(0.1);
    }
    // TTL - CLOCK_DRIFT, counted from before the first contact: not one tenth of a millisecond too early, either.
    EXPECT_NEAR(stage.now_ms(), 200 - 4, 0.11) << spread;
  }
}

// While a majority of the keys is set nobody else can set a majority, so a lock that is held cannot be acquired again.
TEST(Safety, NobodyAcquiresAHeldLock) {
  Stage stage(5);
  Gateway& a = stage.add("a");
  Gateway& b = stage.add("b");
  stage.set_way(4, Way::down);
  stage.set_way(5, Way::down);
  a.acquire("bus", Gateway::options(500));  // holds exactly three keys, and cannot put it back on the others
  for (const unsigned m : {4u, 5u}) stage.block(a, m, true);
  stage.set_way(4, Way::answering);
  stage.set_way(5, Way::answering);
  stage.advance_ms(300);
  ASSERT_EQ(stage.holders("bus").size(), 3u);
  for (int i = 0; a.holds("bus"); ++i) {
    b.acquire("bus", Gateway::options(500), "try" + std::to_string(i));
    ASSERT_EQ(b.outcome("try" + std::to_string(i)), "FAILED LOCKED") << stage.now_ms();
    stage.advance_ms(1);
  }
  stage.advance_ms(10);
  b.acquire("bus", Gateway::options(500));
  EXPECT_EQ(b.outcome("bus"), "ACQUIRED");
  EXPECT_EQ(stage.violations(), 0u);
}

// Clients that try at the same time cannot all succeed: whatever the order in which the SETs of two clients arrive at
// five masters, exactly one of them has a majority of five.
TEST(Safety, AtMostOneOfTwoSimultaneousRoundsIsWon) {
  for (unsigned order = 0; order < 32; ++order) {
    Stage stage(5);
    Gateway& a = stage.add("a");
    Gateway& b = stage.add("b");
    for (unsigned m = 1; m <= 5; ++m) {
      stage.set_delay_ms(m, 1);
      stage.block(order >> (m - 1) & 1 ? a : b, m, true);
    }
    a.acquire("bus", Gateway::options(1000));
    b.acquire("bus", Gateway::options(1000));
    for (unsigned m = 1; m <= 5; ++m) stage.block(order >> (m - 1) & 1 ? a : b, m, false);
    stage.advance_ms(2);
    const bool b_first = __builtin_popcount(order) >= 3;
    EXPECT_EQ(a.outcome("bus"), b_first ? "FAILED LOCKED" : "ACQUIRED") << order;
    EXPECT_EQ(b.outcome("bus"), b_first ? "ACQUIRED" : "FAILED LOCKED") << order;
    EXPECT_EQ(stage.violations(), 0u) << order;
    EXPECT_EQ(stage.holders("bus").size(), static_cast<unsigned>(b_first ? __builtin_popcount(order)
                                                                         : 5 - __builtin_popcount(order)));
  }
}

// A round that took nearly as long as the keys live, or longer, is not believed, and its keys are deleted: by its end
// the first of them may be gone, and somebody else may be at it.
TEST(Safety, ASlowRoundIsNotBelieved) {
  Stage stage(3);
  Gateway& slow = stage.add("slow", [](Settings& s) { s.node_timeout = Duration::ms(1000); });
  Gateway& quick = stage.add("quick");
  stage.block(slow, 2, true);
  stage.block(slow, 3, true);
  slow.acquire("bus", Gateway::options(100));
  stage.advance_ms(99);
  stage.block(slow, 2, false);  // a second grant, when the first is nearly over
  EXPECT_EQ(slow.outcome("bus"), "FAILED TOO_SLOW");
  EXPECT_EQ(stage.holders("bus").size(), 0u);
  quick.acquire("bus", Gateway::options(100));
  EXPECT_EQ(quick.outcome("bus"), "ACQUIRED");
  stage.block(slow, 3, false);
  EXPECT_EQ(stage.holders("bus").at(1), "quick.1");
  EXPECT_EQ(stage.violations(), 0u);
}

// A vote that comes after its round was decided counts for nothing: three late grants are not a majority.
TEST(Safety, LateGrantsDoNotWin) {
  Stage stage(3);
  Gateway& a = stage.add("a");
  Gateway& b = stage.add("b");
  for (unsigned m = 1; m <= 3; ++m) stage.block(a, m, true);
  a.acquire("bus", Gateway::options(1000, 5000));
  stage.advance_ms(50);
  b.acquire("bus", Gateway::options(1000));
  ASSERT_EQ(b.outcome("bus"), "ACQUIRED");
  b.release("bus");
  for (unsigned m = 1; m <= 3; ++m) stage.block(a, m, false);
  for (const Executed& set : stage.executed("SET bus a.1")) EXPECT_EQ(set.reply, "OK");
  // Since the masters answer again, a has tried again at once; what it holds was won by that round.
  ASSERT_EQ(a.outcome("bus"), "ACQUIRED");
  EXPECT_GE(a.last("bus")->event.rounds, 2u);
  for (const auto& [m, holder] : stage.holders("bus")) EXPECT_NE(holder, "a.1") << m;
  EXPECT_GE(stage.holders("bus").size(), 2u);
}

}  // namespace
}  // namespace redlock::test
