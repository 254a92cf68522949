// SPDX-License-Identifier: MIT
//
// Several resources at once on real servers: all of them or none, and nobody who waits holds one.
#include <algorithm>
#include <random>

#include "client_of.hpp"

namespace redlock::test {
namespace {

using Several3 = ClientOf<3>;

using Resources = std::vector<std::string>;

bool no_key(Cluster& masters, const Resources& names) {
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) { return masters.holders(name) == 0; });
}

TEST(Several, ALifeOfFour) {
  Loop loop;
  Cluster masters(3);
  const Resources names = {"valve", "bus", "tap", "fan"};
  UpClient client(loop, masters.urls());
  Lock& lock = client.hold(names, options(20'000));
  EXPECT_GE(masters.holders("fan"), 2u);
  for (size_t m = 0; m < masters.size(); ++m) {
    const std::string value = masters[m].command({"GET", "bus"});
    for (const std::string& name : names) EXPECT_EQ(masters[m].command({"GET", name}), value) << name;
  }
  ASSERT_EQ(redlock_extend_async(client.get(), lock.handle, 30'000), 0);
  EXPECT_TRUE(loop.run_until([&] { return lock.has(REDLOCK_EV_RENEWED); }));
  EXPECT_GT(redlock_validity_ms(client.get(), lock.handle), 20'000);
  client.release(lock);
  EXPECT_TRUE(loop.run_until([&] { return no_key(masters, names); }));
}

TEST_F(Several3, OneNameIsTaken) {
  masters[0].command({"SET", "tap", "somebody"});
  masters[1].command({"SET", "tap", "somebody"});
  const redlock_event_t& failed =
      client.acquire(Resources{"bus", "tap", "valve"}, options(20'000)).first(REDLOCK_EV_FAILED);
  EXPECT_EQ(failed.err, REDLOCK_E_LOCKED);
  EXPECT_TRUE(loop.run_until([&] { return no_key(masters, {"bus", "valve"}); })) << "none of the others is left";
  EXPECT_EQ(masters.holders("tap"), 2u) << "somebody's own is left alone";
}

// The server tells of any of the names, since the look's script has read them all.
TEST(Several, AWaiterIsWokenByTheLast) {
  Loop loop;
  Cluster masters(3);
  Client holder(loop, masters.urls()), other(loop, masters.urls()), waiter(loop, masters.urls());
  for (Client* client : {&holder, &other, &waiter}) client->wait_up(3);
  Lock& bus = holder.acquire("bus", options(20'000, 0, REDLOCK_F_NO_RENEW));
  Lock& valve = other.acquire("valve", options(20'000, 0, REDLOCK_F_NO_RENEW));
  Lock& both = waiter.start(Resources{"bus", "valve"}, options(20'000, REDLOCK_WAIT_FOREVER));
  EXPECT_TRUE(loop.run_until([&] { return waiter.status().rounds == 1 && waiter.status().locks_pending == 1; }));
  holder.release(bus);
  loop.run_for(100);
  EXPECT_FALSE(both.decided());
  EXPECT_TRUE(waiter.acquire("bus").has(REDLOCK_EV_FAILED)) << "it stands behind its own client's waiter";
  EXPECT_EQ(masters.holders("bus"), 0u) << "who waits holds nothing";
  other.release(valve);
  EXPECT_TRUE(loop.run_until([&] { return both.decided(); }, 10'000)) << "long before the keys' end";
  EXPECT_TRUE(both.has(REDLOCK_EV_ACQUIRED));
}

// Two clients want overlapping sets in all orders, again and again: one at a time for each name, and both go on.
TEST(Several, OverlappingSetsTakeTurns) {
  Loop loop;
  Cluster masters(3);
  UpClient a(loop, Settings{masters.urls(), "a", {}, {}}), b(loop, Settings{masters.urls(), "b", {}, {}});
  const Resources sets[] = {{"bus", "valve"}, {"valve", "tap"}, {"tap", "bus"}, {"valve", "bus", "tap"}, {"bus"}};
  std::mt19937 dice(7);
  for (int round = 0; round < 40; ++round) {
    const Resources &first = sets[dice() % std::size(sets)], &second = sets[dice() % std::size(sets)];
    const bool meet = std::find_first_of(first.begin(), first.end(), second.begin(), second.end()) != first.end();
    Lock& one = a.start(first, options(20'000, REDLOCK_WAIT_FOREVER));
    Lock& two = b.start(second, options(20'000, REDLOCK_WAIT_FOREVER));
    ASSERT_TRUE(loop.run_until([&] { return one.decided() || two.decided(); }));
    if (meet) {
      ASSERT_FALSE(one.decided() && two.decided() && a.check(one) == 0 && b.check(two) == 0) << "both hold one name";
    }
    Lock& winner = one.decided() ? one : two;
    Lock& loser = one.decided() ? two : one;
    (one.decided() ? a : b).release(winner);
    ASSERT_TRUE(loop.run_until([&] { return loser.decided(); }));
    ASSERT_TRUE(loser.has(REDLOCK_EV_ACQUIRED));
    (&loser == &one ? a : b).release(loser);
  }
  EXPECT_TRUE(loop.run_until([&] { return no_key(masters, {"bus", "valve", "tap"}); }));
}

// With the guard, and without the permissions that may be left out (test_acl.cpp has all that the guide names).
TEST(Several, WithTheGuardAndAnAclUser) {
  Loop loop;
  RedisServer master;
  master.command({"ACL", "SETUSER", "locker", "on", ">secret", "~*", "-@all", "+set", "+get", "+del", "+pttl",
                  "+pexpire", "+evalsha", "+eval", "+script|load", "+ping", "+info", "+time", "+hget", "+hmget",
                  "+hset", "+hdel", "+client|tracking", "+client|caching", "+exists"});
  UpClient client(loop, Settings{{master.url()}, "acl", {},
                                 {{"guard", "strict"}, {"username", "locker"}, {"password", "secret"}}, true});
  for (const uint32_t flags : {0u, REDLOCK_F_FENCING}) {
    Lock& lock = client.acquire(Resources{"bus", "valve"}, options(20'000, 0, flags));
    ASSERT_TRUE(lock.has(REDLOCK_EV_ACQUIRED)) << redlock_err_name(lock.first(REDLOCK_EV_FAILED).err);
    EXPECT_EQ(redlock_fencing_token(client.get(), lock.handle) != 0, flags != 0);
    ASSERT_EQ(redlock_extend_async(client.get(), lock.handle, 0), 0);
    EXPECT_TRUE(loop.run_until([&] { return lock.has(REDLOCK_EV_RENEWED); }));
    client.release(lock);
    EXPECT_TRUE(loop.run_until([&] { return !master.exists("bus") && !master.exists("valve"); }));
  }
}

// A declared limit that was raised: the longest names there are.
TEST(Several, LongNames) {
  Loop loop;
  RedisServer master;
  UpClient client(loop, Settings{{master.url()}, "long", {{"limits.resource_bytes", REDLOCK_RESOURCE_BYTES_MAX}}, {}});
  Resources names;
  for (int i = 0; i < REDLOCK_RESOURCES_PER_LOCK_MAX; ++i)
    names.emplace_back(REDLOCK_RESOURCE_MAX, static_cast<char>('d' - i));
  Lock& lock = client.hold(names, options(20'000));
  for (const std::string& name : names) EXPECT_TRUE(master.exists(name));
  client.release(lock);
  EXPECT_TRUE(loop.run_until([&] { return !master.exists(names[0]) && !master.exists(names[3]); }));
}

}  // namespace
}  // namespace redlock::test
