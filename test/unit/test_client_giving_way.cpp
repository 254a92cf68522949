// SPDX-License-Identifier: MIT
//
// A client that lets go only to acquire at once again. Others need not wait for hundreds of its holds, and a client
// that is alone does not pay for them.
#include <gtest/gtest.h>

#include <string>

#include "support/stage.hpp"

namespace redlock {
namespace {

using test::Gateway;
using test::Stage;

constexpr int waits = REDLOCK_WAIT_FOREVER;

struct Site : Stage {
  explicit Site(const std::string& name = "a") : Stage(3), a(add(name, local)) {
    for (const unsigned m : {1u, 2u, 3u}) set_delay_ms(m, 0.2);
    advance_ms(100);
    a.acquire("bus", Gateway::options(10'000, waits));
    advance_ms(3);
  }
  static void local(Settings& s) { s.locks = 4; }

  // Holds the lock, lets go, pauses, and acquires it again.
  void cycle(double hold_ms, double pause_ms = 0) {
    advance_ms(hold_ms);
    a.release("bus");
    if (pause_ms > 0) advance_ms(pause_ms);
    a.acquire("bus", Gateway::options(10'000, waits));
    advance_ms(3);
  }
  size_t looks() const { return executed("PTTL bus").size(); }

  Gateway& a;
};

TEST(GivingWay, WhoComesToALeaderThatWasAloneForLongIsServedAtItsNextReleaseOrTheSecond) {
  for (const std::string name : {"a", "c", "d", "e", "f", "g"}) {
    Site site(name);
    for (unsigned i = 0; i < 300; ++i) site.cycle(1'000);
    Gateway& b = site.add("b");
    site.advance_ms(100);
    b.acquire("bus", Gateway::options(10'000, waits));
    unsigned releases = 0;
    for (; b.outcome("bus").empty() && releases < 10; ++releases) site.cycle(1'000);
    EXPECT_EQ(b.outcome("bus"), "ACQUIRED") << name;
    EXPECT_LE(releases, 2u) << name;
  }
}

TEST(GivingWay, ALeaderGivesWayFromItsSecondReleaseOn) {
  Site site;
  for (unsigned i = 0; i < 3; ++i) site.cycle(1'000);
  EXPECT_EQ(site.looks(), 2u);
}

// Else the next acquire after each pause would take some round trips more.
TEST(GivingWay, ThePausesOfAClientDoNotCountAsItsHolds) {
  Site site;
  for (unsigned i = 0; i < 50; ++i) site.cycle(0, 1'000);
  EXPECT_EQ(site.looks(), 3u) << "after 4, 8, 16 grants";
}

}  // namespace
}  // namespace redlock
