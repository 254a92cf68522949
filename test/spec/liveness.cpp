// SPDX-License-Identifier: MIT
//
// Redlock page, "Liveness arguments".
#include <gtest/gtest.h>

#include "support/stage.hpp"

namespace redlock::test {
namespace {

// 1: keys expire, so every lock ends without anybody's help.
TEST(Liveness, KeysGoByThemselves) {
  Stage stage(3);
  Gateway& a = stage.add("a");
  a.acquire("bus", Gateway::options(1000));
  a.pause();
  stage.advance_ms(1000);
  EXPECT_EQ(stage.holders("bus").size(), 3u);
  stage.advance_ms(1);
  EXPECT_TRUE(stage.holders("bus").empty());
}

// 2: clients cooperate: what was not acquired as a whole, what was given up and what is no longer needed is removed, so
// that expiry is the exception.
TEST(Liveness, ClientsRemoveWhatTheyDoNotNeed) {
  Stage stage(3);
  Gateway& a = stage.add("a");
  for (unsigned m = 1; m <= 3; ++m) stage.set_delay_ms(m, 1);
  stage.redis(1).put("lost", "other", 60'000, stage.now());
  stage.redis(2).put("lost", "other", 60'000, stage.now());
  a.acquire("lost", Gateway::options(10'000));
  a.acquire("canceled", Gateway::options(10'000));
  a.cancel("canceled");
  a.acquire("done", Gateway::options(10'000));
  stage.advance_ms(5);
  ASSERT_EQ(a.outcome("done"), "ACQUIRED");
  a.release("done");
  stage.advance_ms(5);
  for (unsigned m = 1; m <= 3; ++m) {
    EXPECT_EQ(stage.holders("canceled").count(m) + stage.holders("done").count(m), 0u) << m;
  }
  EXPECT_EQ(stage.holders("lost").size(), 2u);
}

// 3: the pause before a retry is long against the time of a round, so that split votes do not repeat for long. Five
// clients that start at the same instant, three masters 0.5 ms away: all have had their turn soon.
TEST(Liveness, SplitVotesDoNotRepeatForLong) {
  Stage stage(3);
  for (const char* name : {"a", "b", "c", "d", "e"}) stage.add(name);
  for (unsigned m = 1; m <= 3; ++m) stage.set_delay_ms(m, 0.5);
  stage.on_event = [](Gateway& gateway, const std::string& lock, const redlock_event_t& e) {
    if (e.type == REDLOCK_EV_ACQUIRED) gateway.release(lock);
  };
  Options options = Gateway::options(1000, REDLOCK_WAIT_FOREVER);
  options.retry_delay_ms = 20;
  const char* first = "abcde";
  for (unsigned i = 0; i < 5; ++i) {  // each is first at another master
    Gateway& gateway = stage.gateway(std::string(1, first[i]));
    for (unsigned m = 1; m <= 3; ++m) stage.block(gateway, m, m != i % 3 + 1);
    gateway.acquire("bus", options);
  }
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    for (unsigned m = 1; m <= 3; ++m) stage.block(stage.gateway(name), m, false);
  }
  stage.advance_ms(200);
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    EXPECT_EQ(stage.gateway(name).outcome("bus"), "RELEASED") << name;
  }
  EXPECT_EQ(stage.violations(), 0u);
}

// A holder that is cut off before it can release costs the others its ttl; and when that happens again and again,
// they pay again and again.
TEST(Liveness, APartitionCostsTheTtlEachTime) {
  Stage stage(3);
  Options options = Gateway::options(500, REDLOCK_WAIT_FOREVER);
  options.retry_delay_ms = 5;
  double before = 0;
  for (int i = 0; i < 3; ++i) {
    Gateway& next = stage.add("g" + std::to_string(i));
    next.acquire("bus", options);
    while (next.last("bus") == nullptr) stage.advance_ms(1);
    EXPECT_EQ(next.outcome("bus"), "ACQUIRED");
    if (i > 0) {
      EXPECT_GE(stage.now_ms() - before, 500);
      EXPECT_LE(stage.now_ms() - before, 508);
    }
    before = stage.now_ms();
    for (unsigned m = 1; m <= 3; ++m) stage.block(next, m, true);
    next.release("bus");
  }
}

}  // namespace
}  // namespace redlock::test
