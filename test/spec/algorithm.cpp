// SPDX-License-Identifier: MIT
//
// Redlock page, "The Redlock algorithm": its five steps.
#include <gtest/gtest.h>

#include "support/stage.hpp"

namespace redlock::test {
namespace {

unsigned bits(unsigned mask) { return static_cast<unsigned>(__builtin_popcount(mask)); }

// Steps 1 and 4: time counts from before the first master is contacted, and what is left is the ttl less what has
// passed since (and less the drift), whatever part of it the network took.
TEST(Algorithm, ValidityCountsFromBeforeTheFirstContact) {
  for (const double delay : {0.0, 0.4, 1.0, 7.0, 40.0}) {
    Stage stage(3);
    Gateway& a = stage.add("a");
    for (unsigned m = 1; m <= 3; ++m) stage.set_delay_ms(m, delay);
    a.acquire("bus", Gateway::options(1000));
    stage.advance_ms(delay);
    ASSERT_EQ(a.outcome("bus"), "ACQUIRED") << delay;
    EXPECT_EQ(a.last("bus")->event.validity_ms, static_cast<int64_t>(1000 - 12 - delay)) << delay;
    stage.advance_ms(100);
    EXPECT_EQ(a.validity_ms("bus"), static_cast<int64_t>(1000 - 12 - delay - 100)) << delay;
  }
}

// Step 2: the same key and the same value on every master.
TEST(Algorithm, OneKeyAndOneValueEverywhere) {
  Stage stage(5);
  Gateway& a = stage.add("a");
  a.acquire("bus", Gateway::options(1000));
  const std::vector<Executed> sets = stage.executed("SET");
  ASSERT_EQ(sets.size(), 5u);
  for (const Executed& set : sets) EXPECT_EQ(set.words, sets[0].words);
}

// Step 2: a master that does not answer is given a time that is small against the ttl, and a master that is down none.
TEST(Algorithm, ASilentMasterCostsItsTimeoutOnly) {
  Stage stage(3);
  Gateway& a = stage.add("a");
  stage.set_way(2, Way::silent);
  stage.set_way(3, Way::silent);
  a.acquire("bus", Gateway::options(10000));
  stage.advance_ms(49);
  EXPECT_EQ(a.outcome("bus"), "");
  stage.advance_ms(1);
  EXPECT_EQ(a.outcome("bus"), "FAILED NO_QUORUM");
  // Known to be silent, it costs nothing any more; nor does one that is down.
  a.acquire("tap", Gateway::options(10000));
  EXPECT_EQ(a.outcome("tap"), "FAILED NO_QUORUM");
  stage.set_way(1, Way::down);
  a.acquire("fan", Gateway::options(10000));
  EXPECT_EQ(a.outcome("fan"), "FAILED NO_QUORUM");
  EXPECT_EQ(stage.now_ms(), 50);
}

// Step 3: acquired if and only if a majority of all masters granted. Every way in which five masters may grant,
// refuse or be silent is tried.
TEST(Algorithm, WonByAMajorityOnly) {
  for (unsigned granting = 0; granting < 32; ++granting) {
    for (unsigned refusing = 0; refusing < 32; ++refusing) {
      if (granting & refusing) continue;
      Stage stage(5);
      Gateway& a = stage.add("a");
      for (unsigned m = 1; m <= 5; ++m) {
        const unsigned bit = 1u << (m - 1);
        if (refusing & bit) stage.redis(m).put("bus", "other", 5000, stage.now());
        if (!((granting | refusing) & bit)) stage.set_way(m, Way::silent);
      }
      a.acquire("bus", Gateway::options(1000));
      stage.advance_ms(50);
      const std::string expected = bits(granting) >= 3                        ? "ACQUIRED"
                                   : 5 - bits(granting) - bits(refusing) > 2 ? "FAILED NO_QUORUM"
                                                                             : "FAILED LOCKED";
      // Three refusals decide before the silence of the others is known.
      const bool early = bits(refusing) >= 3;
      EXPECT_EQ(a.outcome("bus"), early ? "FAILED LOCKED" : expected) << granting << " " << refusing;
    }
  }
}

// Step 3: and only if less time than the validity has passed.
TEST(Algorithm, AMajorityThatCameTooLateDoesNotCount) {
  for (const double delay : {85.0, 86.9, 87.2, 95.0}) {
    Stage stage(3);
    Gateway& a = stage.add("a", [](Settings& s) { s.node_timeout = Duration::ms(500); });
    for (unsigned m = 1; m <= 3; ++m) stage.set_delay_ms(m, delay);
    a.acquire("bus", Gateway::options(90));  // valid for 90 - 0.9 - 2 = 87.1 ms
    stage.advance_ms(delay);
    EXPECT_EQ(a.outcome("bus"), delay < 87.1 ? "ACQUIRED" : "FAILED TOO_SLOW") << delay;
    EXPECT_EQ(stage.holders("bus").empty(), delay > 87.1) << delay;
  }
}

// Step 5: a client that failed unlocks the masters again, also those of which it does not know that it locked them: a
// master that executed the SET but could not say so loses the key all the same.
TEST(Algorithm, AFailedRoundIsUndoneEverywhere) {
  Stage stage(5);
  Gateway& a = stage.add("a");
  stage.redis(1).put("bus", "other", 5000, stage.now());
  stage.redis(2).put("bus", "other", 5000, stage.now());
  stage.set_way(4, Way::silent);  // will have the key, and not tell
  stage.redis(5).fail_next("OOM command not allowed", "SET");
  a.acquire("bus", Gateway::options(1000));
  stage.advance_ms(50);
  EXPECT_EQ(a.outcome("bus"), "FAILED LOCKED");
  for (const unsigned m : {3u, 4u, 5u}) EXPECT_EQ(stage.executed("EVALSHA release", m).size(), 1u) << m;
  // Deviation: who answered "held by another" has nothing of ours.
  for (const unsigned m : {1u, 2u}) EXPECT_EQ(stage.executed("EVALSHA release", m).size(), 0u) << m;
  EXPECT_EQ(stage.holders("bus"), (std::map<unsigned, std::string>{{1, "other"}, {2, "other"}}));
}

}  // namespace
}  // namespace redlock::test
