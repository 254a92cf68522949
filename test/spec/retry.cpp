// SPDX-License-Identifier: MIT
//
// Redlock page, "Retry on failure".
#include <gtest/gtest.h>

#include "support/stage.hpp"

namespace redlock::test {
namespace {

std::vector<double> attempts(const Stage& stage, const std::string& gateway) {
  std::vector<double> times;
  for (const Executed& set : stage.executed("SET", 1)) {
    if (set.gateway == gateway) times.push_back(set.at_ms);
  }
  return times;
}

// A client that did not get the lock tries again after a random delay, so that clients that collide once do not collide
// again and again. This is the plain timer; where masters tell of changes a waiter asks less often
// (scenario/wake_ups.txt).
TEST(Retry, AfterARandomDelay) {
  Stage stage(3);
  const auto plain = [](Settings& s) { s.wakeups = false; };
  Gateway& a = stage.add("a", plain);
  Gateway& b = stage.add("b", plain);
  for (unsigned m = 1; m <= 2; ++m) stage.redis(m).put("bus", "other", 60'000, stage.now());
  Options options = Gateway::options(1000, REDLOCK_WAIT_FOREVER);
  options.retry_delay_ms = 100;
  a.acquire("bus", options);
  b.acquire("bus", options);
  stage.advance_ms(10'000);
  const std::vector<double> first = attempts(stage, "a"), second = attempts(stage, "b");
  ASSERT_GT(first.size(), 100u);
  double shortest = 100, longest = 0, sum = 0;
  for (size_t i = 1; i < first.size(); ++i) {
    const double pause = first[i] - first[i - 1];
    shortest = std::min(shortest, pause);
    longest = std::max(longest, pause);
    sum += pause;
  }
  EXPECT_LT(shortest, 10);
  EXPECT_GT(longest, 90);
  EXPECT_LE(longest, 100);
  EXPECT_NEAR(sum / static_cast<double>(first.size() - 1), 50, 10);
  unsigned together = 0;
  for (size_t i = 1; i < std::min(first.size(), second.size()); ++i) {
    together += std::abs(first[i] - second[i]) < 0.001 ? 1u : 0u;
  }
  EXPECT_EQ(together, 0u);
}

// The quicker all masters are asked, the smaller the window for a split vote: the SETs leave at the same instant, in
// one write for each master, and nobody's answer is waited for before the next is asked.
TEST(Retry, AllMastersAreAskedAtOnce) {
  Stage stage(5);
  Gateway& a = stage.add("a");
  for (unsigned m = 1; m <= 5; ++m) stage.set_delay_ms(m, 20.0 * m);
  a.acquire("bus", Gateway::options(1000));
  const std::vector<Executed> sets = stage.executed("SET");
  ASSERT_EQ(sets.size(), 5u);
  std::set<uint64_t> writes;
  for (const Executed& set : sets) {
    EXPECT_EQ(set.at_ms, 0);
    writes.insert(set.write);
  }
  EXPECT_EQ(writes.size(), 5u);
  EXPECT_EQ(a.outcome("bus"), "");
}

// What a client got of a lock that it did not get as a whole it gives back at once, so that others need not wait for
// the keys to expire.
TEST(Retry, ALoserGivesBackAtOnce) {
  Stage stage(3);
  Gateway& a = stage.add("a");
  Gateway& b = stage.add("b");
  for (unsigned m = 1; m <= 3; ++m) stage.set_delay_ms(m, 1);
  for (unsigned m = 1; m <= 2; ++m) stage.redis(m).put("bus", "other", 4, stage.now());
  a.acquire("bus", Gateway::options(10'000));
  EXPECT_EQ(stage.holders("bus").at(3), "a.1");
  stage.advance_ms(1);
  EXPECT_EQ(a.outcome("bus"), "FAILED LOCKED");
  EXPECT_EQ(stage.holders("bus").count(3), 0u);
  stage.advance_ms(5);
  b.acquire("bus", Gateway::options(10'000));
  stage.advance_ms(1);
  EXPECT_EQ(b.outcome("bus"), "ACQUIRED");
  EXPECT_EQ(b.last("bus")->event.granted, 2u);
}

// A client that is cut off cannot give back: the price is to wait for the expiry, and no more than that.
TEST(Retry, WhoIsCutOffCostsTheTtl) {
  Stage stage(3);
  Gateway& lost = stage.add("lost");
  Gateway& other = stage.add("other");
  lost.acquire("bus", Gateway::options(1000));
  for (unsigned m = 1; m <= 3; ++m) stage.block(lost, m, true);
  lost.release("bus");
  EXPECT_EQ(lost.outcome("bus"), "RELEASED");
  Options options = Gateway::options(1000, REDLOCK_WAIT_FOREVER);
  options.retry_delay_ms = 10;
  other.acquire("bus", options);
  stage.advance_ms(1000);
  EXPECT_EQ(other.outcome("bus"), "");
  stage.advance_ms(12);
  EXPECT_EQ(other.outcome("bus"), "ACQUIRED");
}

}  // namespace
}  // namespace redlock::test
