// SPDX-License-Identifier: MIT
//
// The guard against real redis-servers: restarts, FLUSHALL, role cycles, changed policies, one server under two names,
// stepped clocks. A guard time of a second or two, so that each test also sees how it ends.
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "client_harness.hpp"
#include "support/redis_server.hpp"

namespace redlock::test {
namespace {

constexpr uint32_t max_ttl_ms = 1'000;
constexpr int64_t guard_ms = 1'012;

struct Site {
  explicit Site(unsigned n) {
    for (unsigned i = 0; i < n; ++i) masters.push_back(std::make_unique<RedisServer>());
  }
  std::vector<std::string> urls() const {
    std::vector<std::string> all;
    for (const auto& master : masters) all.push_back(master->url());
    return all;
  }
  Settings settings(bool commission = true) const {
    Settings s;
    s.urls = urls();
    s.strings = {{"guard", "strict"}};
    s.numbers = {{"defaults.ttl_ms", 1'000},          {"timing.max_ttl_ms", max_ttl_ms},
                 {"timing.node_timeout_ms", 500},     {"timing.suspect_close_ms", 5'000},
                 {"commission", commission ? 1u : 0u}};
    return s;
  }
  std::vector<std::unique_ptr<RedisServer>> masters;
  Loop loop;
};

redlock_acquire_opts_t one_second(int32_t wait_ms = REDLOCK_WAIT_NONE) { return options(1'000, wait_ms, REDLOCK_F_NO_RENEW); }

// Runs until this master is guarded for this reason.
void wait_guarded(Site& site, Client& client, uint32_t index, int err) {
  EXPECT_TRUE(site.loop.run_until([&] {
    return client.master(index).state == REDLOCK_MASTER_GUARDED && client.master(index).err == err;
  })) << client.master(index).state << " " << redlock_err_name(client.master(index).err);
}

TEST(Guard, ANewSiteIsWatchedOnceForAll) {
  Site site(3);
  Client a(site.loop, site.settings(false));
  wait_guarded(site, a, 0, REDLOCK_E_UNWATCHED);
  const int64_t began = boot_ns();
  Lock& refused = a.acquire("bus", one_second());
  EXPECT_EQ(refused.first(REDLOCK_EV_FAILED).err, REDLOCK_E_GUARD);
  EXPECT_GT(refused.first(REDLOCK_EV_FAILED).guard_ms, 0);
  EXPECT_LE(refused.first(REDLOCK_EV_FAILED).guard_ms, guard_ms);
  EXPECT_GT(a.status().guard_ms, 0);
  EXPECT_TRUE(a.acquire("bus", one_second(REDLOCK_WAIT_FOREVER)).has(REDLOCK_EV_ACQUIRED));
  EXPECT_GE(boot_ns() - began, (guard_ms - 500) * 1'000'000);

  Client b(site.loop, site.settings(false));
  b.wait_up(3);  // the seals are there
  EXPECT_EQ(b.status().guard_ms, 0);
}

// kill -9 and an empty restart of two of three masters while a lock is held: nobody else gets it before it has ended.
TEST(Guard, AMajorityThatForgetsLetsNobodyIn) {
  Site site(3);
  Client a(site.loop, site.settings());
  a.wait_up(3);
  Client b(site.loop, site.settings(false));
  b.wait_up(3);
  Lock& held = a.acquire("bus", one_second());
  ASSERT_TRUE(held.has(REDLOCK_EV_ACQUIRED));
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
  Client a(site.loop, site.settings());
  a.wait_up(1);
  const std::string before = site.masters[0]->command({"HGET", "redlock::meta", "q"});
  site.masters[0]->kill_hard();
  site.masters[0]->restart();
  wait_guarded(site, a, 0, REDLOCK_E_UNWATCHED);
  EXPECT_EQ(site.masters[0]->command({"HGET", "redlock::meta", "q"}), before) << "it has kept everything";
  a.wait_up(1);
}

TEST(Guard, FlushallTwiceWithAClientAway) {
  Site site(1);
  Client a(site.loop, site.settings());
  a.wait_up(1);
  site.masters[0]->command({"FLUSHALL"});
  wait_guarded(site, a, 0, REDLOCK_E_UNWATCHED);
  const int64_t first = boot_ns();
  site.masters[0]->command({"CLIENT", "KILL", "TYPE", "normal"});
  site.masters[0]->command({"FLUSHALL"});
  EXPECT_TRUE(site.loop.run_until([&] { return a.master(0).connects >= 2; }));
  wait_guarded(site, a, 0, REDLOCK_E_UNWATCHED);
  const int64_t again = boot_ns();
  a.wait_up(1);
  EXPECT_GT(boot_ns() - first, guard_ms * 1'000'000);
  EXPECT_GT(boot_ns() - again, (guard_ms - 300) * 1'000'000) << "the watch began anew at the second one";
}

// A role cycle on a connection that stays: pushed, or told by the READONLY of the next SET; never a vote before.
TEST(Guard, ReplicaofAndBack) {
  Site site(1);
  RedisServer other;
  other.command({"SET", "x", "y"});
  Client a(site.loop, site.settings());
  a.wait_up(1);
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
  Client a(site.loop, site.settings());
  a.wait_up(1);
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
  Client a(site.loop, site.settings());
  a.wait_up(1);
  Settings s = site.settings();
  s.numbers.push_back({"timing.max_ttl_ms", 2'000});
  Client b(site.loop, s);
  wait_guarded(site, b, 0, REDLOCK_E_FINGERPRINT);
  EXPECT_TRUE(a.acquire("bus", one_second()).has(REDLOCK_EV_ACQUIRED));
}

// The ACL that the README names is enough for everything the guard does.
TEST(Guard, AUserWithoutInfoIsRefusedUnlessWeak) {
  Site site(1);
  site.masters[0]->command({"ACL", "SETUSER", "locker", "on", ">secret", "~*", "+@all", "-info"});
  Settings s = site.settings();
  s.strings.push_back({"username", "locker"});
  s.strings.push_back({"password", "secret"});
  Client a(site.loop, s);
  wait_guarded(site, a, 0, REDLOCK_E_NOPERM);
  s.strings.push_back({"guard", "weak"});
  s.name = "weak";
  Client b(site.loop, s);
  b.wait_up(1);
  EXPECT_TRUE(b.acquire("bus", one_second()).has(REDLOCK_EV_ACQUIRED));
}

}  // namespace
}  // namespace redlock::test
