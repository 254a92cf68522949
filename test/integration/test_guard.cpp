// SPDX-License-Identifier: MIT
//
// The guard against real redis-servers: restarts, FLUSHALL, role cycles, changed policies, one server under two names,
// stepped clocks. A guard time of a second or two, so that each test also sees how it ends.
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "guard_site.hpp"

namespace redlock::test {
namespace {

constexpr int64_t guard_ms = 1'012;

redlock_acquire_opts_t one_second(int32_t wait_ms = REDLOCK_TRY_ONCE) {
  return options(1'000, wait_ms, REDLOCK_F_NO_RENEW);
}

void wait_guarded(Site& site, Client& client, uint32_t index, int err) { wait_guarded(site.loop, client, index, err); }

TEST(Guard, ANewSiteIsWatchedOnceForAll) {
  Site site(3);
  const int64_t began = boot_ns();
  Client a(site.loop, site.settings(false));
  wait_guarded(site, a, 0, REDLOCK_E_UNWATCHED);
  Lock& refused = a.acquire("bus", one_second());
  EXPECT_EQ(refused.first(REDLOCK_EV_FAILED).err, REDLOCK_E_GUARD);
  EXPECT_GT(refused.first(REDLOCK_EV_FAILED).guard_ms, 0);
  EXPECT_LE(refused.first(REDLOCK_EV_FAILED).guard_ms, guard_ms);
  EXPECT_GT(a.status().guard_ms, 0);
  EXPECT_TRUE(a.acquire("bus", one_second(REDLOCK_WAIT_FOREVER)).has(REDLOCK_EV_ACQUIRED));
  EXPECT_GE(boot_ns() - began, guard_ms * 1'000'000);

  Client b(site.loop, site.settings(false));
  b.wait_up(3);  // the seals are there
  EXPECT_EQ(b.status().guard_ms, 0);
}

// kill -9 and an empty restart of two of three masters while a lock is held: nobody else gets it before it has ended.
TEST(Guard, AMajorityThatForgetsLetsNobodyIn) {
  Site site(3);
  UpClient a(site.loop, site.settings());
  UpClient b(site.loop, site.settings(false));
  Lock& held = a.hold("bus", one_second());
  for (const unsigned m : {0u, 1u}) {
    site.masters[m]->kill_hard();
    site.masters[m]->restart();
  }
  Lock& second = b.start("bus", one_second(REDLOCK_WAIT_FOREVER));
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

// The same with every key kept on disk: a restart is a restart, the run id is new.
TEST(Guard, ARestartWithPersistenceIsWatchedToo) {
  Site site(0);
  RedisServer::Options options;
  options.args = {"--appendonly", "yes", "--appendfsync", "always"};
  site.masters.push_back(std::make_unique<RedisServer>(options));
  UpClient a(site.loop, site.settings());
  const std::string before = site.masters[0]->command({"HGET", "redlock::meta", "q"});
  site.masters[0]->kill_hard();
  site.masters[0]->restart();
  wait_guarded(site, a, 0, REDLOCK_E_UNWATCHED);
  EXPECT_EQ(site.masters[0]->command({"HGET", "redlock::meta", "q"}), before) << "it has kept everything";
  a.wait_up(1);
}

TEST(Guard, FlushallTwiceWithAClientAway) {
  Site site(1);
  UpClient a(site.loop, site.settings());
  site.masters[0]->command({"FLUSHALL"});
  wait_guarded(site, a, 0, REDLOCK_E_UNWATCHED);
  site.masters[0]->command({"CLIENT", "KILL", "TYPE", "normal"});
  const int64_t again = boot_ns();
  site.masters[0]->command({"FLUSHALL"});
  EXPECT_TRUE(site.loop.run_until([&] { return a.master(0).connects >= 2; }));
  a.wait_up(1);
  EXPECT_GE(boot_ns() - again, guard_ms * 1'000'000) << "the watch began anew at the second one";
}

// A role cycle on a connection that stays: pushed, or told by the READONLY of the next SET; never a vote before.
TEST(Guard, ReplicaofAndBack) {
  Site site(1);
  RedisServer other;
  other.command({"SET", "x", "y"});
  UpClient a(site.loop, site.settings());
  site.masters[0]->command({"REPLICAOF", "127.0.0.1", std::to_string(other.port())});
  EXPECT_TRUE(site.loop.run_until([&] { return site.masters[0]->exists("x"); }));
  site.masters[0]->command({"REPLICAOF", "NO", "ONE"});
  Lock& early = a.acquire("bus", one_second());
  EXPECT_FALSE(early.has(REDLOCK_EV_ACQUIRED)) << redlock_err_name(early.events.front().err);
  a.wait_up(1);
  EXPECT_TRUE(a.acquire("bus", one_second()).has(REDLOCK_EV_ACQUIRED));
}

TEST(Guard, APolicyThatEvictsIsRefused) {
  Site site(1);
  site.masters[0]->command({"CONFIG", "SET", "maxmemory", "100mb"});
  UpClient a(site.loop, site.settings());
  site.masters[0]->command({"CONFIG", "SET", "maxmemory-policy", "volatile-ttl"});
  wait_guarded(site, a, 0, REDLOCK_E_MAXMEMORY);
  EXPECT_EQ(a.acquire("bus", one_second()).first(REDLOCK_EV_FAILED).err, REDLOCK_E_GUARD);
  site.masters[0]->command({"CONFIG", "SET", "maxmemory-policy", "noeviction"});
  a.wait_up(1);
}

TEST(Guard, TheSameServerUnderTwoNamesHasOneVote) {
  Site site(1);
  const std::string path = "/tmp/redlock-guard-" + std::to_string(getpid()) + ".sock";
  RedisServer::Options both;
  both.args = {"--unixsocket", path};
  site.masters.push_back(std::make_unique<RedisServer>(both));
  Settings s = site.settings();
  s.urls.push_back("unix://" + path);
  Client a(site.loop, s);
  wait_guarded(site, a, 2, REDLOCK_E_DUPLICATE);
  a.wait_up(2);
  EXPECT_TRUE(a.acquire("bus", one_second()).has(REDLOCK_EV_ACQUIRED));
  site.masters[0]->kill_hard();
  EXPECT_TRUE(site.loop.run_until([&] { return a.status().masters_up == 1; }));
  EXPECT_TRUE(a.acquire("tap", one_second()).has(REDLOCK_EV_FAILED)) << "one server is no quorum of three";
}

TEST(Guard, AnotherConfigurationIsRefused) {
  Site site(1);
  UpClient a(site.loop, site.settings());
  Settings s = site.settings();
  s.numbers.push_back({"timing.max_ttl_ms", 2'000});
  Client b(site.loop, s);
  wait_guarded(site, b, 0, REDLOCK_E_FINGERPRINT);
  EXPECT_TRUE(a.acquire("bus", one_second()).has(REDLOCK_EV_ACQUIRED));
}

// ---- what a user may not do -----------------------------------------------------------------------------------------

class AclUser : public ::testing::Test {
 protected:
  Settings settings_without(const std::vector<std::string>& permissions, const char* mode = "strict") {
    deny(site[0], permissions);
    Settings s = site.settings();
    s.strings = {{"guard", mode}};
    log_in(s);
    return s;
  }
  // One life of a lock. How many SETs of it were no script's?
  size_t plain_sets(Client& client) {
    Monitor monitor(site[0]);
    Lock& lock = client.acquire("bus", one_second());
    EXPECT_TRUE(lock.has(REDLOCK_EV_ACQUIRED)) << redlock_err_name(lock.events.front().err);
    EXPECT_EQ(redlock_extend_async(client.get(), lock.handle, 0), 0);
    EXPECT_TRUE(site.loop.run_until([&] { return lock.has(REDLOCK_EV_RENEWED); }));
    client.release(lock);
    EXPECT_TRUE(site.loop.run_until([&] { return !site[0].exists("bus"); }));
    return monitor.plain("SET");
  }
  Site site{1};
};

TEST_F(AclUser, WithEverythingAsksByPlainSet) {
  UpClient client(site.loop, settings_without({}));
  EXPECT_EQ(plain_sets(client), 1u);
}

TEST_F(AclUser, WithoutInfoIsRefusedUnlessWeak) {
  Client strict(site.loop, settings_without({"-info"}));
  wait_guarded(site, strict, 0, REDLOCK_E_NOPERM);
  EXPECT_TRUE(strict.acquire("bus", one_second()).has(REDLOCK_EV_FAILED));
  UpClient weak(site.loop, settings_without({"-info"}, "weak"));
  EXPECT_EQ(plain_sets(weak), 0u) << "nothing says that there is no replica";
}

TEST_F(AclUser, WithoutTrackingAsksByScript) {
  UpClient client(site.loop, settings_without({"-client|tracking"}));
  EXPECT_FALSE(client.master(0).tracked);
  EXPECT_EQ(plain_sets(client), 0u);
}

TEST_F(AclUser, WithoutTheGuardIsAskedByPlainSetAsEver) {
  UpClient client(site.loop, settings_without({"-info", "-client|tracking", "-hmget"}, "off"));
  EXPECT_EQ(plain_sets(client), 1u);
}

// INFO may be taken away while the client runs, and comes back.
TEST_F(AclUser, ThatLosesInfoAndGetsItBack) {
  UpClient client(site.loop, settings_without({}));
  site[0].command({"ACL", "SETUSER", "locker", "-info"});
  wait_guarded(site, client, 0, REDLOCK_E_NOPERM);
  site[0].command({"ACL", "SETUSER", "locker", "+info"});
  client.wait_up(1);
  EXPECT_TRUE(client.acquire("bus", one_second()).has(REDLOCK_EV_ACQUIRED));
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
  wait_guarded(site, client, 2, REDLOCK_E_UNWATCHED);
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
