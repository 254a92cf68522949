// SPDX-License-Identifier: MIT
//
// Redlock page, "Is the algorithm asynchronous?": nobody's clock shows the same time, but all run at nearly the same
// rate.
#include <gtest/gtest.h>

#include "support/stage.hpp"

namespace redlock::test {
namespace {

constexpr int64_t half_percent = 5000;  // ppm

// A holder whose clock is `slow` ppm slow and masters whose clocks are `fast` ppm fast. Another client asks all the
// time.
unsigned violations(int64_t slow, int64_t fast, uint32_t ttl_ms) {
  Stage stage(3);
  Gateway& holder = stage.add("holder", nullptr, -slow);
  Gateway& other = stage.add("other");
  for (unsigned m = 1; m <= 3; ++m) stage.redis(m).wall.set_rate_ppm(fast, stage.now());
  holder.acquire("bus", Gateway::options(ttl_ms));
  EXPECT_EQ(holder.outcome("bus"), "ACQUIRED");
  stage.advance_ms(ttl_ms * 0.9);
  Options eager = Gateway::options(ttl_ms, REDLOCK_WAIT_FOREVER);
  eager.retry_delay_ms = 1 + ttl_ms / 2000;  // a twentieth of a percent: far less than what the drift covers
  other.acquire("bus", eager);
  stage.advance_ms(ttl_ms * 0.2);
  EXPECT_EQ(other.told_count("bus", REDLOCK_EV_ACQUIRED), 1u);
  return stage.violations();
}

// No synchronized clock is needed: masters may show any time of day.
TEST(Asynchrony, TheTimeOfDayDoesNotMatter) {
  Stage stage(3);
  stage.redis(1).wall.step_ms(-86'400'000, stage.now());
  stage.redis(2).wall.step_ms(+86'400'000, stage.now());
  Gateway& a = stage.add("a");
  Gateway& b = stage.add("b");
  a.acquire("bus", Gateway::options(1000));
  b.acquire("bus", Gateway::options(1000, REDLOCK_WAIT_FOREVER));
  stage.advance_ms(980);
  EXPECT_TRUE(a.holds("bus"));
  stage.advance_ms(200);
  EXPECT_EQ(b.outcome("bus"), "ACQUIRED");
  EXPECT_EQ(stage.violations(), 0u);
}

// Rates may differ by an error that is small against the ttl: half a percent each way is covered by the drift.
TEST(Asynchrony, RatesMayDifferByTheDrift) {
  for (const uint32_t ttl_ms : {20u, 100u, 1000u, 10000u, 30000u}) {
    EXPECT_EQ(violations(0, 0, ttl_ms), 0u) << ttl_ms;
    EXPECT_EQ(violations(half_percent, half_percent, ttl_ms), 0u) << ttl_ms;
  }
}

// It is an assumption, not a promise: clocks that are further apart break the exclusion.
TEST(Asynchrony, RatesBeyondTheDriftBreakTheExclusion) { EXPECT_GT(violations(50000, 50000, 1000), 0u); }

// Exclusion holds only for a client that ends its work within the validity. So it can ask whether there is time enough
// for a piece of work, and is told no when it ends too near to the end.
TEST(Asynchrony, WorkMustFitIntoTheValidity) {
  Stage stage(3);
  Gateway& a = stage.add("a");
  a.acquire("bus", Gateway::options(1000));
  stage.advance_ms(900);
  EXPECT_EQ(a.check("bus", 88), 0);
  EXPECT_EQ(a.check("bus", 89), REDLOCK_E_TOO_SLOW);
  EXPECT_EQ(a.check("bus", 88), 0);
  stage.advance_ms(88);
  EXPECT_NE(a.check("bus", 0), 0);
}

}  // namespace
}  // namespace redlock::test
