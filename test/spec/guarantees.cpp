// SPDX-License-Identifier: MIT
//
// Redlock page, "Safety and Liveness guarantees": the three properties that everything else serves.
#include <gtest/gtest.h>

#include "support/stage.hpp"

namespace redlock::test {
namespace {

// Property 1, mutual exclusion: however many ask and however slow the masters are, at most one holds.
TEST(Guarantees, NeverTwoHolders) {
  Stage stage(5);
  const char* const names[] = {"a", "b", "c"};
  Options options = Gateway::options(100, REDLOCK_WAIT_FOREVER);
  options.retry_delay_ms = 10;
  for (unsigned m = 1; m <= 5; ++m) stage.set_delay_ms(m, 0.3 * m);
  for (const char* name : names) stage.add(name).acquire("bus", options);
  std::map<std::string, double> ask_at;
  while (stage.now_ms() < 3000) {
    stage.advance_ms(2);
    for (const char* name : names) {
      Gateway& gateway = stage.gateway(name);
      if (gateway.holds("bus")) {
        // Every fourth holder forgets to release, so that some locks end by expiry.
        if (gateway.told_count("bus", REDLOCK_EV_ACQUIRED) % 4 != 0) gateway.release("bus");
        ask_at[name] = stage.now_ms() + 10;
      } else if (gateway.check("bus") == REDLOCK_E_STALE && stage.now_ms() > ask_at[name]) {
        gateway.acquire("bus", options);
      }
    }
  }
  EXPECT_EQ(stage.violations(), 0u) << stage.take_story();
  for (const char* name : names) {
    EXPECT_GT(stage.gateway(name).told_count("bus", REDLOCK_EV_RELEASED), 5u) << name;
    EXPECT_GT(stage.gateway(name).told_count("bus", REDLOCK_EV_LOST), 0u) << name;
  }
}

// Property 2, no deadlock: a resource can be had again although its holder crashed and never comes back.
TEST(Guarantees, ADeadHolderDoesNotBlockForEver) {
  Stage stage(3);
  Gateway& dead = stage.add("dead");
  Gateway& next = stage.add("next");
  dead.acquire("bus", Gateway::options(1000));
  ASSERT_EQ(dead.outcome("bus"), "ACQUIRED");
  dead.pause();
  next.acquire("bus", Gateway::options(1000, REDLOCK_WAIT_FOREVER));
  stage.advance_ms(999);
  EXPECT_EQ(next.outcome("bus"), "");
  stage.advance_ms(200);
  EXPECT_EQ(next.outcome("bus"), "ACQUIRED");
  EXPECT_EQ(stage.violations(), 0u);
}

// Property 3, fault tolerance: while a majority is up clients can acquire and release. Tried for every set of masters
// that are down; with a majority down nothing is granted.
TEST(Guarantees, AnyMajorityIsEnoughAndNothingLessIs) {
  for (const unsigned masters : {1u, 3u, 4u, 5u}) {
    for (unsigned down = 0; down < 1u << masters; ++down) {
      Stage stage(masters);
      for (unsigned m = 1; m <= masters; ++m) {
        if (down >> (m - 1) & 1) stage.set_way(m, Way::down);
      }
      Gateway& a = stage.add("a");
      a.acquire("bus", Gateway::options(1000));
      const unsigned up = masters - static_cast<unsigned>(__builtin_popcount(down));
      if (up < masters / 2 + 1) {
        EXPECT_EQ(a.outcome("bus"), "FAILED NO_QUORUM") << masters << " masters, down " << down;
        continue;
      }
      EXPECT_EQ(a.outcome("bus"), "ACQUIRED") << masters << " masters, down " << down;
      a.release("bus");
      EXPECT_EQ(a.outcome("bus"), "RELEASED");
      EXPECT_TRUE(stage.holders("bus").empty());
    }
  }
}

}  // namespace
}  // namespace redlock::test
