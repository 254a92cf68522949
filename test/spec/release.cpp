// SPDX-License-Identifier: MIT
//
// Redlock page, "Releasing the lock": on all masters, whatever the client believes about them.
#include <gtest/gtest.h>

#include "support/stage.hpp"

namespace redlock::test {
namespace {

TEST(Release, GoesToEveryMasterThatWasAsked) {
  Stage stage(5);
  Gateway& a = stage.add("a");
  stage.redis(2).put("bus", "other", 500, stage.now());  // refused
  stage.set_way(4, Way::silent);                         // nobody knows
  stage.redis(5).fail_next("BUSY Redis is busy", "SET"); // failed
  a.acquire("bus", Gateway::options(1000));
  stage.advance_ms(50);
  ASSERT_EQ(a.outcome("bus"), "FAILED LOCKED");
  stage.redis(2).evict("bus");
  stage.set_way(4, Way::answering);

  a.acquire("bus", Gateway::options(1000), "again");
  stage.redis(2).put("bus", "other", 500, stage.now());
  ASSERT_EQ(a.outcome("again"), "ACQUIRED");
  a.release("again");
  for (unsigned m = 1; m <= 5; ++m) EXPECT_EQ(stage.executed("EVALSHA release bus a.2", m).size(), 1u) << m;
  EXPECT_EQ(stage.holders("bus"), (std::map<unsigned, std::string>{{2, "other"}}));
}

// Also to one that refused the SET of a round that was won.
TEST(Release, GoesToAMasterThatRefused) {
  Stage stage(3);
  Gateway& a = stage.add("a");
  stage.redis(1).put("bus", "other", 5000, stage.now());
  a.acquire("bus", Gateway::options(1000));
  a.release("bus");
  EXPECT_EQ(stage.executed("EVALSHA release", 1).size(), 1u);
}

// A master that cannot be reached at the release is told later: its key does not stay until it expires.
TEST(Release, ReachesAMasterThatWasAway) {
  Stage stage(3);
  Gateway& a = stage.add("a");
  a.acquire("bus", Gateway::options(10'000));
  stage.set_way(3, Way::down);
  a.release("bus");
  EXPECT_EQ(a.outcome("bus"), "RELEASED");
  EXPECT_EQ(stage.holders("bus").size(), 1u);
  stage.advance_ms(100);
  stage.set_way(3, Way::answering);
  stage.advance_ms(500);
  EXPECT_TRUE(stage.holders("bus").empty());
}

// It is simple: nobody waits for answers, the resource can be had in the same instant.
TEST(Release, LetsTheNextInAtOnce) {
  Stage stage(3);
  Gateway& a = stage.add("a");
  Gateway& b = stage.add("b");
  a.acquire("bus", Gateway::options(10'000));
  a.release("bus");
  b.acquire("bus", Gateway::options(10'000));
  EXPECT_EQ(b.outcome("bus"), "ACQUIRED");
  EXPECT_EQ(stage.now_ms(), 0);
}

}  // namespace
}  // namespace redlock::test
