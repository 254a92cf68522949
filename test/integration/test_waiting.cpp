// SPDX-License-Identifier: MIT
//
// Waiters on real servers that make it hard. Attempts are counted, at the client by its rounds and at the master by its
// looks.
#include <vector>

#include "client_harness.hpp"
#include "support/redis_server.hpp"
#include "support/server_kind.hpp"

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

void expect_the_timer_alone(Loop& loop, RedisServer& master, Client& waiter) {
  EXPECT_EQ(waiter.master(0).tracked, 0u);
  UpClient holder(loop, Settings{{master.url()}, "holder", {}, {}});
  Lock& held = holder.acquire("bus", forever());
  redlock_acquire_opts_t opts = forever();
  opts.retry_delay_ms = 20;
  Lock& waits = waiter.start("bus", opts);
  EXPECT_TRUE(loop.run_until([&] { return waiter.status().rounds >= 5; })) << "it asks again and again";
  EXPECT_EQ(master.calls("pttl"), 0u) << "and looks at nothing";
  EXPECT_FALSE(waits.decided());
  holder.release(held);
  EXPECT_TRUE(loop.run_until([&] { return waits.decided(); }));
  EXPECT_TRUE(waits.has(REDLOCK_EV_ACQUIRED));
}

// A server that refuses HELLO leaves RESP2, where nobody is told of anything: the plain timer alone. (An ACL does not
// refuse it: Redis 7 asks none for the commands that need no authentication.)
TEST(Waiting, WhereHelloIsRefused) {
  Loop loop;
  RedisServer master({{"--rename-command", "HELLO", "NO-HELLO"}, "", false});
  UpClient waiter(loop, {master.url()});
  EXPECT_EQ(waiter.master(0).resp3, 0u);
  expect_the_timer_alone(loop, master, waiter);
}

// A user who may not ask for tracking: the same.
TEST(Waiting, WhereNothingIsTold) {
  Loop loop;
  RedisServer master;
  set_user(master, "gateway", {"on", ">secret", "~*", "+@all", "-client|tracking"});
  UpClient waiter(loop, {"redis://gateway:secret@127.0.0.1:" + std::to_string(master.port())});
  expect_the_timer_alone(loop, master, waiter);
}

}  // namespace
}  // namespace redlock::test
