// SPDX-License-Identifier: MIT
//
// Redlock page, "Performance, crash-recovery and fsync": what happens when masters crash. "To guarantee this we just
// need to make an instance, after a crash, unavailable for at least a bit more than the max TTL we use": the guard does
// it for the operator.
#include <gtest/gtest.h>

#include "support/stage.hpp"

namespace redlock::test {
namespace {

// Three of five masters hold a's lock; then one of them restarts.
struct Restart {
  Stage stage{5};
  Gateway& a;
  Gateway& b;

  explicit Restart(GuardMode guard = GuardMode::off)
      : a(stage.add("a", [guard](Settings& s) { configure(s, guard); }, 0, true, true)),
        b(stage.add("b", [guard](Settings& s) { configure(s, guard); }, 0, true, true)) {
    stage.set_way(4, Way::down);
    stage.set_way(5, Way::down);
    a.acquire("bus", Gateway::options(5000));
    stage.set_way(4, Way::answering);
    stage.set_way(5, Way::answering);
    stage.advance_ms(1000);
  }
  static void configure(Settings& s, GuardMode guard) {
    s.guard = guard;
    s.max_ttl_ms = 10'000;
  }
  void b_tries(const std::string& label) {
    b.acquire("bus", Gateway::options(1000), label);
    stage.advance_ms(1);
  }
};

// Without persistence a master that comes back within the ttl would let a second client in: so it does where the guard
// is off, and nowhere else. (A holder that can hear of it loses the lock at once, if nobody was quicker: this one is
// busy.)
TEST(CrashRecovery, AMasterThatForgotLetsASecondHolderInWithoutTheGuard) {
  Restart r;
  r.a.pause();
  r.stage.restart(3, RedisDouble::Keep::none);
  r.stage.advance_ms(1000);
  r.b_tries("bus");
  EXPECT_EQ(r.b.outcome("bus"), "ACQUIRED");
  EXPECT_EQ(r.stage.violations(), 1u);
}

// "... unavailable for at least a bit more than the max TTL": 10 s here, and a percent.
TEST(CrashRecovery, AMasterThatForgotHasNoVote) {
  Restart r(GuardMode::strict);
  ASSERT_EQ(r.a.outcome("bus"), "ACQUIRED");
  r.stage.restart(3, RedisDouble::Keep::none);
  r.stage.advance_ms(1000);
  for (int i = 0; r.a.holds("bus"); ++i) {
    r.b_tries("try" + std::to_string(i));
    EXPECT_NE(r.b.outcome("try" + std::to_string(i)), "ACQUIRED") << r.stage.now_ms();
    r.stage.advance_ms(100);
  }
  EXPECT_FALSE(r.b.client().session(2).votes());
  r.stage.advance_ms(10'102);
  EXPECT_TRUE(r.b.client().session(2).votes()) << "it has been watched for long enough";
  r.b_tries("bus");
  EXPECT_EQ(r.b.outcome("bus"), "ACQUIRED");
  EXPECT_EQ(r.stage.violations(), 0u);
}

// With persistence it does not: the keys are back, and their time has gone on while the server was away.
TEST(CrashRecovery, AMasterThatRemembersDoesNot) {
  Restart r;
  r.stage.set_way(3, Way::down);
  r.stage.advance_ms(1000);
  r.stage.restart(3, RedisDouble::Keep::all);
  r.stage.set_way(3, Way::answering);
  r.stage.advance_ms(1000);
  r.b_tries("early");
  EXPECT_EQ(r.b.outcome("early"), "FAILED LOCKED");
  r.stage.advance_ms(2010);
  r.b_tries("late");
  EXPECT_EQ(r.b.outcome("late"), "ACQUIRED");
  EXPECT_EQ(r.stage.violations(), 0u);
}

// A master that stays away for longer than the longest ttl takes part in no lock that was active when it crashed.
TEST(CrashRecovery, ADelayedRestartIsSafeWithoutPersistence) {
  Restart r;
  r.stage.set_way(3, Way::down);
  r.stage.restart(3, RedisDouble::Keep::none);
  for (int i = 0; r.a.holds("bus"); ++i) {
    r.b_tries("try" + std::to_string(i));
    EXPECT_EQ(r.b.outcome("try" + std::to_string(i)), "FAILED LOCKED") << r.stage.now_ms();
    r.stage.advance_ms(100);
  }
  r.stage.set_way(3, Way::answering);
  r.stage.advance_ms(6000);
  r.b_tries("bus");
  EXPECT_EQ(r.b.outcome("bus"), "ACQUIRED");
  EXPECT_EQ(r.stage.violations(), 0u);
}

// The price: while a majority stays away, no resource at all can be locked.
TEST(CrashRecovery, WithoutAMajorityNothingCanBeLocked) {
  Stage stage(5);
  Gateway& a = stage.add("a");
  for (unsigned m = 1; m <= 3; ++m) stage.set_way(m, Way::down);
  for (const char* resource : {"bus", "tap", "fan"}) {
    a.acquire(resource, Gateway::options(1000));
    EXPECT_EQ(a.outcome(resource), "FAILED NO_QUORUM");
  }
  for (unsigned m = 1; m <= 3; ++m) stage.set_way(m, Way::answering);
  stage.advance_ms(500);
  a.acquire("bus", Gateway::options(1000), "again");
  EXPECT_EQ(a.outcome("again"), "ACQUIRED");
}

// A restarted master has no scripts and no connections; neither costs a vote or leaves a key.
TEST(CrashRecovery, ARestartedMasterIsGreetedAgain) {
  Stage stage(1);
  Gateway& a = stage.add("a");
  a.acquire("bus", Gateway::options(10'000));
  stage.restart(1, RedisDouble::Keep::all);
  stage.advance_ms(500);
  a.release("bus");
  EXPECT_TRUE(stage.holders("bus").empty());
  a.acquire("bus", Gateway::options(10'000), "again");
  EXPECT_EQ(a.outcome("again"), "ACQUIRED");
}

}  // namespace
}  // namespace redlock::test
