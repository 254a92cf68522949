// SPDX-License-Identifier: MIT
//
// The guard against real redis-servers: restarts, and what an operator says of them. A guard time of a second, so that
// each test also sees how it ends.
#include <gtest/gtest.h>

#include "guard_site.hpp"

namespace redlock::test {
namespace {

// kill -9 and an empty restart of two of three masters while a lock is held: nobody else gets it before it has ended.
TEST(Guard, AMajorityThatForgetsLetsNobodyIn) {
  Site site(3);
  UpClient a(site.loop, site.settings());
  UpClient b(site.loop, site.settings(false));
  Lock& held = a.hold("bus", site.longest());
  for (const unsigned m : {0u, 1u}) {
    site.masters[m]->kill_hard();
    site.masters[m]->restart();
  }
  Lock& second = b.start("bus", site.longest(REDLOCK_WAIT_FOREVER));
  bool overlap = false;
  EXPECT_TRUE(site.loop.run_until([&] {
    overlap = overlap || (a.check(held) == 0 && b.check(second) == 0);
    return second.decided();
  }));
  EXPECT_TRUE(second.has(REDLOCK_EV_ACQUIRED));
  EXPECT_FALSE(overlap);
  EXPECT_TRUE(held.ended());
  EXPECT_GT(second.first(REDLOCK_EV_ACQUIRED).rounds, 1u);
}

// ---- commission -----------------------------------------------------------------------------------------------------

// Nothing may be held anywhere, the operator has said. That is no word about a master which is reached only later.
TEST(Commission, IsNoWordAboutAMasterThatIsReachedLater) {
  Site site(3, 20'000);
  site[2].kill_hard();
  Settings s = site.settings();
  s.numbers.push_back({"timing.connect_timeout_ms", 250});
  Client client(site.loop, s);
  client.wait_up(2);
  site.loop.run_for(550);
  site[2].restart();
  wait_guarded(site.loop, client, 2, REDLOCK_E_UNWATCHED);
  EXPECT_GT(client.master(2).guard_ms, 15'000);
  EXPECT_EQ(redlock_commission_master(client.get(), 3), REDLOCK_E_INVAL);
  EXPECT_EQ(redlock_commission_master(client.get(), 2), 0);
  client.wait_up(3);
}

// One gateway holds a lock and stands still when the masters lose their power. Another one is started with the same
// statement, which is false now, and both have the lock. So one person says it, once. Without it the guard helps.
TEST(Commission, OfTwoGatewaysMakesTwoHolders) {
  Site site(3, 20'000);
  UpClient a(site.loop, site.settings());
  Lock& first = a.acquire("bus", site.longest());
  for (const auto& master : site.masters) master->kill_hard();
  for (const auto& master : site.masters) master->restart();
  Loop other;
  Client careful(other, site.settings(false));
  wait_guarded(other, careful, 0, REDLOCK_E_UNWATCHED);
  UpClient b(other, site.settings());
  Lock& second = b.acquire("bus", site.longest());
  EXPECT_EQ(redlock_check(a.get(), first.handle, 0), 0);
  EXPECT_EQ(redlock_check(b.get(), second.handle, 0), 0);
}

}  // namespace
}  // namespace redlock::test
