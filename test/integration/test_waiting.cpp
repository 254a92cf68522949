// SPDX-License-Identifier: MIT
//
// Waiters on real servers that make it hard. Attempts are counted, at the client by its rounds and at the master by its
// looks.
#include <vector>

#include "client_harness.hpp"
#include "support/redis_server.hpp"

namespace redlock::test {
namespace {

redlock_acquire_opts_t forever(uint32_t ttl_ms = 20'000) { return options(ttl_ms, REDLOCK_WAIT_FOREVER); }

TEST(Waiting, IsWhatTheInitializerMeans) {
  Loop loop;
  RedisServer master;
  UpClient holder(loop, {master.url()}), waiter(loop, {master.url()});
  Lock& held = holder.acquire("bus");
  Lock& waits = waiter.start("bus", REDLOCK_ACQUIRE_OPTS_INIT);
  EXPECT_TRUE(loop.run_until([&] { return waiter.status().rounds >= 2 || master.calls("pttl") > 0; }));
  EXPECT_FALSE(waits.decided());
  EXPECT_EQ(waiter.acquire("bus", once()).first(REDLOCK_EV_FAILED).err, REDLOCK_E_LOCKED);
  holder.release(held);
  EXPECT_TRUE(loop.run_until([&] { return waits.has(REDLOCK_EV_ACQUIRED); }));
}

// Such options end before the field that was added last, and their 0 is one try.
TEST(Waiting, OptionsThatWereCompiledBefore) {
  Loop loop;
  RedisServer master;
  UpClient holder(loop, {master.url()}), other(loop, {master.url()});
  holder.hold("bus");
  redlock_acquire_opts_t before = REDLOCK_ACQUIRE_OPTS_INIT;
  before.size = offsetof(redlock_acquire_opts_t, report);
  before.wait_ms = 0;
  EXPECT_EQ(other.acquire("bus", before).first(REDLOCK_EV_FAILED).err, REDLOCK_E_LOCKED);
}

// A table of one key: each look by one waiter makes the server forget, and tell, the other's.
TEST(Waiting, TrackingTableThatForgets) {
  Loop loop;
  RedisServer master({{"--tracking-table-max-keys", "1"}, "", false});
  UpClient client(loop, {master.url()});
  for (int i = 0; i < 4; ++i) master.command({"SET", "r" + std::to_string(i), "somebody", "PX", "100000"});
  std::vector<Lock*> locks;
  for (int i = 0; i < 4; ++i) locks.push_back(&client.start("r" + std::to_string(i), forever()));
  ASSERT_TRUE(loop.run_until([&] { return master.calls("pttl") >= 4; }));
  loop.run_for(2'000);
  EXPECT_LE(master.calls("pttl"), 4u * 3 * 40) << "looks are rationed";
  for (int i = 0; i < 4; ++i) master.command({"DEL", "r" + std::to_string(i)});
  EXPECT_TRUE(loop.run_until([&] {
    bool all = true;
    for (const Lock* lock : locks) all = all && lock->has(REDLOCK_EV_ACQUIRED);
    return all;
  }));
}

// The server closes connections that were idle for a second: registrations go with them, and come back.
TEST(Waiting, ServerThatClosesIdleConnections) {
  Loop loop;
  RedisServer master({{"--timeout", "1"}, "", false});
  master.command({"SET", "bus", "somebody", "PX", "100000"});
  UpClient client(loop, Settings{{master.url()}, "test", {{"timing.ping_interval_ms", 60'000}}, {}});
  Lock& lock = client.start("bus", forever());
  EXPECT_TRUE(loop.run_until([&] { return client.master(0).connects >= 3 && client.status().masters_up == 1; }));
  const std::string stats = master.connect().command({"INFO", "commandstats"});  // our own was closed as well
  EXPECT_EQ(stats.find("cmdstat_pttl:calls=1,"), std::string::npos) << "it looks again on each connection";
  master.connect().command({"DEL", "bus"});
  EXPECT_TRUE(loop.run_until([&] { return lock.has(REDLOCK_EV_ACQUIRED); }));
}

}  // namespace
}  // namespace redlock::test
