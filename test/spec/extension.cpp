// SPDX-License-Identifier: MIT
//
// Redlock page, "Making the algorithm more reliable: Extending the lock".
#include <gtest/gtest.h>

#include "support/stage.hpp"

namespace redlock::test {
namespace {

// A script on every master makes the key live longer if it exists and still has this client's value.
TEST(Extension, RaisesTheLifeOfOwnKeysOnly) {
  Stage stage(5);
  Gateway& a = stage.add("a");
  a.acquire("bus", Gateway::options(1000));
  stage.advance_ms(300);
  stage.redis(4).evict("bus");                                // gone
  stage.redis(5).put("bus", "other", 700, stage.now());       // foreign
  a.extend("bus");
  EXPECT_EQ(a.outcome("bus"), "RENEWED");
  EXPECT_EQ(stage.executed("EVALSHA extend").size(), 5u);
  for (unsigned m = 1; m <= 3; ++m) EXPECT_EQ(stage.keys(m), "bus=a.1 for 1000 ms") << m;
  EXPECT_EQ(stage.keys(4), "bus=a.1 for 1000 ms") << "put back behind the round, by a SET of its own";
  EXPECT_EQ(stage.executed("SET bus").size(), 5u + 2u);
  EXPECT_EQ(stage.keys(5), "bus=other for 700 ms");
}

// So a short ttl is enough for long work.
TEST(Extension, AShortTtlCarriesLongWork) {
  Stage stage(3);
  Gateway& a = stage.add("a");
  Gateway& b = stage.add("b");
  Options renewing = Gateway::options(300);
  renewing.renew = true;
  a.acquire("bus", renewing);
  b.acquire("bus", Gateway::options(300, REDLOCK_WAIT_FOREVER));
  for (int i = 0; i < 100; ++i) {
    stage.advance_ms(100);
    ASSERT_EQ(a.check("bus", 150), 0) << stage.now_ms();
  }
  a.pause();  // crashed: others need not wait for longer than the short ttl
  stage.advance_ms(420);
  EXPECT_EQ(b.outcome("bus"), "ACQUIRED");
  EXPECT_EQ(stage.violations(), 0u);
}

// Extended only by a majority; every set of masters that lost the key is tried. A majority that lost it ends the lock.
TEST(Extension, NeedsAMajority) {
  for (unsigned gone = 0; gone < 32; ++gone) {
    Stage stage(5);
    Gateway& a = stage.add("a");
    a.acquire("bus", Gateway::options(1000));
    stage.advance_ms(500);
    for (unsigned m = 1; m <= 5; ++m) {
      if (gone >> (m - 1) & 1) stage.redis(m).evict("bus");
    }
    a.extend("bus");
    const bool won = __builtin_popcount(gone) <= 2;
    EXPECT_EQ(a.outcome("bus"), won ? "RENEWED" : "LOST") << gone;
    EXPECT_EQ(a.validity_ms("bus"), won ? 988 : 0) << gone;
  }
}

// A lost extend takes nothing away: the lock stays as valid as it was, as long as a majority may have the key.
TEST(Extension, ThatIsLostTakesNothingAway) {
  for (unsigned failing = 0; failing < 32; ++failing) {
    Stage stage(5);
    Gateway& a = stage.add("a");
    a.acquire("bus", Gateway::options(1000));
    stage.advance_ms(500);
    for (unsigned m = 1; m <= 5; ++m) {
      if (failing >> (m - 1) & 1) stage.redis(m).fail_next("BUSY Redis is busy", "EVALSHA");
    }
    a.extend("bus");
    const bool won = __builtin_popcount(failing) <= 2;
    EXPECT_EQ(a.outcome("bus"), won ? "RENEWED" : "AT_RISK NO_QUORUM") << failing;
    EXPECT_EQ(a.validity_ms("bus"), won ? 988 : 488) << failing;
  }
}

// And only within the validity: a majority that comes after its end extends nothing, although the keys live on.
TEST(Extension, MustBeDecidedWithinTheValidity) {
  for (const double delay : {80.0, 90.0}) {  // the validity ends 88 ms after the extend began
    Stage stage(3);
    Gateway& a = stage.add("a", [](Settings& s) { s.node_timeout = Duration::ms(500); });
    a.acquire("bus", Gateway::options(1000));
    stage.advance_ms(900);
    for (unsigned m = 1; m <= 3; ++m) stage.set_delay_ms(m, delay);
    a.extend("bus");
    stage.advance_ms(delay);
    EXPECT_EQ(a.outcome("bus"), delay < 88 ? "RENEWED" : "LOST") << delay;
    EXPECT_EQ(a.holds("bus"), delay < 88) << delay;
    stage.advance_ms(100);
    EXPECT_EQ(stage.holders("bus").empty(), delay > 88) << delay;
  }
}

// The new validity counts as in an acquire: from before the first contact.
TEST(Extension, CountsFromBeforeItsFirstContact) {
  Stage stage(3);
  Gateway& a = stage.add("a");
  a.acquire("bus", Gateway::options(1000));
  stage.advance_ms(500);
  for (unsigned m = 1; m <= 3; ++m) stage.set_delay_ms(m, 30);
  a.extend("bus");
  stage.advance_ms(30);
  EXPECT_EQ(a.validity_ms("bus"), 1000 - 12 - 30);
}

// Extending for ever would be a deadlock for the others: max_hold_ms bounds how long one holder may go on.
TEST(Extension, IsBounded) {
  Stage stage(3);
  Gateway& a = stage.add("a");
  Gateway& b = stage.add("b");
  Options renewing = Gateway::options(300);
  renewing.renew = true;
  renewing.max_hold_ms = 2000;
  a.acquire("bus", renewing);
  b.acquire("bus", Gateway::options(300, REDLOCK_WAIT_FOREVER));
  stage.advance_ms(1990);
  EXPECT_TRUE(a.holds("bus"));
  stage.advance_ms(10);
  EXPECT_FALSE(a.holds("bus"));
  EXPECT_EQ(a.outcome("bus"), "LOST");
  stage.advance_ms(200);
  EXPECT_EQ(b.outcome("bus"), "ACQUIRED");
  EXPECT_EQ(stage.violations(), 0u);
}

}  // namespace
}  // namespace redlock::test
