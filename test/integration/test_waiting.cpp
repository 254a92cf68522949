// SPDX-License-Identifier: MIT
//
// Waiters on real servers: woken by a release, by an expiry and by nothing at all, many at once, and where the server
// makes it hard. Attempts are counted, at the client by its rounds and at the master by its SETs.
#include <memory>
#include <vector>

#include "client_harness.hpp"
#include "support/redis_server.hpp"
#include "support/server_kind.hpp"

namespace redlock::test {
namespace {

redlock_acquire_opts_t forever(uint32_t ttl_ms = 20'000) { return options(ttl_ms, REDLOCK_WAIT_FOREVER); }

TEST(Waiting, ReleaseIsHandedOverAtTheSecondTry) {
  Loop loop;
  Cluster masters(3);
  UpClient holder(loop, Settings{masters.urls(), "holder", {}, {}}),
      waiter(loop, Settings{masters.urls(), "waiter", {}, {}});
  Lock& held = holder.acquire("bus", forever());
  Lock& waits = waiter.start("bus", forever());
  // Two of three masters block a quorum, whichever two the waiter takes.
  ASSERT_TRUE(loop.run_until([&] {
    unsigned looked = 0;
    for (size_t m = 0; m < 3; ++m) looked += masters[m].calls("pttl") > 0;
    return looked == 2;
  }));
  loop.run_for(300);
  EXPECT_EQ(waiter.status().rounds, 1u) << "it waits to be told";
  holder.release(held);
  EXPECT_TRUE(loop.run_until([&] { return waits.decided(); }));
  EXPECT_LE(waits.first(REDLOCK_EV_ACQUIRED).rounds, 4u);
}

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

TEST(Waiting, SaysWhatItWaitsFor) {
  Loop loop;
  RedisServer master;
  UpClient holder(loop, {master.url()}), waiter(loop, {master.url()});
  holder.hold("bus");
  Lock& waits = waiter.start("bus", options(0, REDLOCK_WAIT_DEFAULT, REDLOCK_F_TELL_WAITING));
  EXPECT_TRUE(loop.run_until([&] { return waits.has(REDLOCK_EV_WAITING); }));
  const redlock_event_t waiting = waits.first(REDLOCK_EV_WAITING);
  EXPECT_EQ(waiting.cause, REDLOCK_CAUSE_HELD);
  EXPECT_EQ(waiting.refused, 1u);
  EXPECT_EQ(waiting.lock.id, waits.handle.id);
  master.kill_hard();
  EXPECT_TRUE(loop.run_until([&] { return waits.events.back().cause == REDLOCK_CAUSE_TOO_FEW; }));
  EXPECT_EQ(redlock_cancel(waiter.get(), waits.handle), 0);
  EXPECT_TRUE(loop.run_until([&] { return waits.decided(); }));
  EXPECT_EQ(waits.first(REDLOCK_EV_FAILED).cause, REDLOCK_CAUSE_TOO_FEW);
}

// The holder is gone without a word: nothing is pushed, since nobody touches the keys, and the waiter comes all the
// same.
TEST(Waiting, DeadHolderCostsItsTtlAndHardlyMore) {
  Loop loop;
  Cluster masters(3);
  UpClient waiter(loop, masters.urls());
  // Other keys that expire, so that the servers are slow to find this one.
  for (size_t m = 0; m < 3; ++m) {
    for (int i = 0; i < 2000; ++i) masters[m].command({"SET", "other" + std::to_string(i), "x", "PX", "1000000"});
  }
  const int64_t begin = boot_ns();
  for (size_t m = 0; m < 3; ++m) masters[m].command({"SET", "bus", "dead", "PX", "1500"});
  Lock& waits = waiter.acquire("bus", forever());
  const redlock_event_t& acquired = waits.first(REDLOCK_EV_ACQUIRED);
  EXPECT_GE(boot_ns(), begin + 1'400'000'000);
  EXPECT_LE(acquired.rounds, 3u) << "it knew when";
}

// A push does not say whether the key was deleted or extended. Those whose turn is near try at once, which costs one
// command; the others look first, which costs three.
TEST(Waiting, ARenewalMakesFewTry) {
  constexpr unsigned waiters = 50;
  Loop loop;
  RedisServer master;
  UpClient holder(loop, Settings{{master.url()}, "holder", {}, {}});
  Lock& held = holder.acquire("bus", options(2'400));
  std::vector<std::unique_ptr<Client>> clients;
  for (unsigned i = 0; i < waiters; ++i) {
    clients.push_back(std::make_unique<Client>(loop, Settings{{master.url()}, "w" + std::to_string(i), {}, {}}));
    clients.back()->start("bus", forever());
  }
  ASSERT_TRUE(loop.run_until([&] { return master.calls("pttl") >= waiters; }));
  const uint64_t sets = master.calls("set"), looks = master.calls("pttl");
  const size_t renewals = held.count(REDLOCK_EV_RENEWED);
  ASSERT_TRUE(loop.run_until([&] { return held.count(REDLOCK_EV_RENEWED) >= renewals + 4; }));
  EXPECT_GE(master.calls("pttl"), looks + 3 * waiters) << "they were told, and looked";
  const size_t told = held.count(REDLOCK_EV_RENEWED) - renewals;
  EXPECT_LE(master.calls("set"), sets + waiters + told * waiters / 2) << "the local timer, and half of them";
  EXPECT_EQ(held.count(REDLOCK_EV_LOST), 0u);
}

TEST(Waiting, SixtyFourInOneClientTakeTurns) {
  constexpr unsigned waiters = 64;
  Loop loop;
  Cluster masters(3);
  UpClient client(loop, Settings{masters.urls(), "many", {{"limits.locks", 80}}, {}});
  unsigned held = 0, done = 0, together = 0;
  for (unsigned i = 0; i < waiters; ++i) {
    Lock& lock = client.start("bus", forever());
    lock.on_event = [&](const redlock_event_t& event) {
      if (event.type == REDLOCK_EV_ACQUIRED) {
        together += held++ > 0 ? 1u : 0u;
        EXPECT_EQ(redlock_release_async(client.get(), event.lock), 0);
      } else if (event.type == REDLOCK_EV_RELEASED) {
        --held;
        ++done;
      }
    };
  }
  EXPECT_TRUE(loop.run_until([&] { return done == waiters; })) << done;
  EXPECT_EQ(together, 0u);
  EXPECT_LE(client.status().rounds, waiters + waiters / 4) << "only the first of the line asks";
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
