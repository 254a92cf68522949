// SPDX-License-Identifier: MIT
//
// Redlock page, "Correct implementation with a single instance": what is said to one master, and why it is safe.
#include <gtest/gtest.h>

#include "support/stage.hpp"

namespace redlock::test {
namespace {

// The lock is taken by one command that sets the key only if it is absent, with a value and an expiry in milliseconds.
TEST(SingleInstance, OneCommandTakesTheLock) {
  Stage stage(1);
  Gateway& a = stage.add("a", [](Settings& s) { s.key_prefix = Bytes("plant7:"); });
  a.acquire("bus", Gateway::options(30000));
  const std::vector<Executed> sets = stage.executed("SET");
  ASSERT_EQ(sets.size(), 1u);
  const std::vector<std::string>& words = sets[0].words;
  ASSERT_EQ(words.size(), 6u);
  EXPECT_EQ(words[1], "plant7:bus");
  EXPECT_EQ(std::vector<std::string>(words.begin() + 3, words.end()), (std::vector<std::string>{"NX", "PX", "30000"}));
  EXPECT_EQ(stage.keys(1), "plant7:bus=a.1 for 30000 ms");
}

// A key that exists is left as it is, and that means: held by another.
TEST(SingleInstance, AnExistingKeyIsNotTouched) {
  Stage stage(1);
  Gateway& a = stage.add("a");
  stage.redis(1).put("bus", "somebody", 5000, stage.now());
  a.acquire("bus", Gateway::options(30000));
  EXPECT_EQ(a.outcome("bus"), "FAILED LOCKED");
  EXPECT_EQ(stage.keys(1), "bus=somebody for 5000 ms");
}

// The value must be unique across all clients and all requests: 20 random bytes. Here every round of every lock, lost
// ones included, has its own.
TEST(SingleInstance, NoValueIsEverUsedTwice) {
  Stage stage(1);
  Gateway& a = stage.add("a");
  Gateway& b = stage.add("b");
  std::set<std::string> values;
  for (int i = 0; i < 50; ++i) {
    a.acquire("bus", Gateway::options(1000));
    b.acquire("bus", Gateway::options(1000));
    b.acquire("tap", Gateway::options(1000));
    a.release("bus");
    b.release("tap");
  }
  const std::vector<Executed> sets = stage.executed("SET");
  EXPECT_EQ(sets.size(), 150u);
  for (const Executed& set : sets) {
    const std::string& value = set.words[2];
    EXPECT_TRUE(values.insert(value).second) << value;
    ASSERT_EQ(value.size(), 42u);
    EXPECT_EQ(value.find_first_not_of("0123456789abcdef"), 40u) << value;
    EXPECT_EQ(value.substr(40), ":" + set.gateway);
  }
}

// A release removes the key only while it holds the very value that the releaser has set. So a client that was held up
// beyond its time cannot remove the lock of the client that came after it.
TEST(SingleInstance, ALateReleaseDoesNotRemoveTheNextHoldersLock) {
  Stage stage(1);
  Gateway& slow = stage.add("slow");
  Gateway& next = stage.add("next");
  slow.acquire("bus", Gateway::options(1000));
  slow.pause();
  stage.advance_ms(1001);
  next.acquire("bus", Gateway::options(1000));
  ASSERT_EQ(next.outcome("bus"), "ACQUIRED");
  slow.resume();
  slow.release("bus");
  ASSERT_EQ(stage.executed("EVALSHA release bus slow.1").size(), 1u);
  EXPECT_EQ(stage.executed("EVALSHA release bus slow.1")[0].reply, "0");
  EXPECT_TRUE(next.holds("bus"));
  EXPECT_EQ(stage.holders("bus"), (std::map<unsigned, std::string>{{1, "next.1"}}));
  EXPECT_EQ(stage.executed("DEL").size(), 0u);
}

// The time to live is two things: when the key goes by itself, and how long the holder may work; the second ends first.
TEST(SingleInstance, TheHoldersTimeEndsBeforeTheKeys) {
  Stage stage(1);
  Gateway& a = stage.add("a");
  a.acquire("bus", Gateway::options(1000));
  a.pause();
  double valid_until = 0, key_until = 0;
  for (int ms = 1; ms <= 1100; ++ms) {
    stage.advance_ms(1);
    if (a.validity_ms("bus") > 0) valid_until = stage.now_ms();
    if (!stage.holders("bus").empty()) key_until = stage.now_ms();
  }
  EXPECT_EQ(valid_until, 987);  // 988 less what is no whole millisecond any more
  EXPECT_GE(key_until, 1000);
}

}  // namespace
}  // namespace redlock::test
