// SPDX-License-Identifier: MIT
//
// The double where no server can be asked: virtual time, crashes, knobs. What else it answers is compared with a server
// in integration/test_redis_double_conformance.cpp.
#include "support/redis_double.hpp"

#include <gtest/gtest.h>

namespace redlock::test {
namespace {

constexpr TrueTime ms(int64_t n) { return n * 1'000'000; }

std::string wire(const Args& words) {
  std::string bytes = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) bytes += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  return bytes;
}

class RedisDoubleTest : public ::testing::Test {
 protected:
  std::string take(int conn) {
    std::string bytes = redis.out(conn);
    redis.out(conn).clear();
    return bytes;
  }
  std::string say(int conn, const Args& words) {
    redis.receive(conn, wire(words), now);
    return take(conn);
  }
  int resp3() {
    const int conn = redis.open(now);
    say(conn, {"HELLO", "3"});
    return conn;
  }
  int tracker() {
    const int conn = resp3();
    say(conn, {"CLIENT", "TRACKING", "on", "OPTIN", "NOLOOP"});
    return conn;
  }
  void watch(int conn, const std::string& key) {
    say(conn, {"CLIENT", "CACHING", "yes"});
    say(conn, {"PTTL", key});
  }
  static std::string invalidate(const std::string& key) {
    return ">2\r\n$10\r\ninvalidate\r\n*1\r\n$" + std::to_string(key.size()) + "\r\n" + key + "\r\n";
  }

  TrueTime now = 0;
  RedisDouble redis;
  int a = redis.open(0);
};

TEST(WallClock, RateStepFreeze) {
  WallClock clock(1000);
  EXPECT_EQ(clock.ms(ms(500)), 1500);
  clock.set_rate_ppm(5000, ms(500));
  EXPECT_EQ(clock.ms(ms(1500)), 2505);
  clock.step_ms(-1000, ms(1500));
  EXPECT_EQ(clock.ms(ms(1500)), 1505);
  clock.freeze(ms(1500));
  EXPECT_EQ(clock.ms(ms(9000)), 1505);
  clock.thaw(ms(9000));
  EXPECT_EQ(clock.ms(ms(10'000)), 2510);
}

TEST_F(RedisDoubleTest, KeyLivesUntilTheMillisecondAfterItsExpiry) {
  say(a, {"SET", "k", "v", "PX", "100"});
  now = ms(100) + 999'999;
  EXPECT_EQ(say(a, {"PTTL", "k"}), ":0\r\n");
  EXPECT_TRUE(redis.peek("k", now));
  now = ms(101);
  EXPECT_FALSE(redis.peek("k", now));
  EXPECT_EQ(say(a, {"PTTL", "k"}), ":-2\r\n");
}

TEST_F(RedisDoubleTest, ExpiryFollowsTheServersClock) {
  say(a, {"SET", "k", "v", "PX", "60000"});
  redis.wall.step_ms(3'600'000, now);
  EXPECT_EQ(say(a, {"GET", "k"}), "$-1\r\n");
  say(a, {"SET", "k", "v", "PX", "60000"});
  redis.wall.freeze(now);
  now = ms(10'000'000);
  EXPECT_EQ(say(a, {"PTTL", "k"}), ":60000\r\n");
}

TEST_F(RedisDoubleTest, RequestsArriveInAnyPieces) {
  const std::string bytes = wire({"SET", "k", "a\r\nb"}) + "PING\r\n" + wire({"GET", "k"});
  for (size_t split = 0; split <= bytes.size(); ++split) {
    const int conn = redis.open(now);
    redis.receive(conn, bytes.substr(0, split), now);
    redis.receive(conn, bytes.substr(split), now);
    EXPECT_EQ(take(conn), "+OK\r\n+PONG\r\n$4\r\na\r\nb\r\n") << split;
  }
}

TEST_F(RedisDoubleTest, HelloTellsModeAndRole) {
  redis.knobs.cluster = true;
  redis.knobs.replica = true;
  redis.knobs.nested_modules = true;
  const std::string hello = say(a, {"HELLO", "3", "SETNAME", "gw-1"});
  EXPECT_EQ(hello.rfind("%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n", 0), 0u);
  EXPECT_NE(hello.find("$4\r\nmode\r\n$7\r\ncluster\r\n"), std::string::npos);
  EXPECT_NE(hello.find("$4\r\nrole\r\n$7\r\nreplica\r\n"), std::string::npos);
  EXPECT_NE(hello.find("$7\r\nmodules\r\n*1\r\n%4\r\n"), std::string::npos);
  EXPECT_EQ(redis.client_name(a), "gw-1");
  EXPECT_EQ(say(a, {"SET", "k", "v"}), "-CLUSTERDOWN Hash slot not served\r\n");
}

TEST_F(RedisDoubleTest, EveryRefusalHasItsWord) {
  using Knobs = RedisDouble::Knobs;
  const std::vector<std::pair<bool Knobs::*, std::string>> cases = {
      {&Knobs::replica, "-READONLY "},
      {&Knobs::loading, "-LOADING "},
      {&Knobs::oom, "-OOM "},
      {&Knobs::misconf, "-MISCONF "},
      {&Knobs::busy, "-BUSY "},
      {&Knobs::cluster, "-CLUSTERDOWN "},
      {&Knobs::noreplicas, "-NOREPLICAS "},
      {&Knobs::masterdown, "-MASTERDOWN "},
  };
  for (const auto& [knob, word] : cases) {
    redis.knobs.*knob = true;
    EXPECT_EQ(say(a, {"SET", "k", "v", "NX", "PX", "1000"}).rfind(word, 0), 0u) << word;
    redis.knobs.*knob = false;
    EXPECT_FALSE(redis.peek("k", now)) << word;
  }
  redis.knobs.noperm = {"SET"};
  EXPECT_EQ(say(a, {"SET", "k", "v"}), "-NOPERM this user has no permissions to run the 'set' command\r\n");
  redis.knobs.no_hello = true;
  EXPECT_EQ(say(a, {"HELLO", "3"}), "-ERR unknown command 'HELLO', with args beginning with: '3' \r\n");
  redis.knobs.max_clients = true;
  const int refused = redis.open(now);
  EXPECT_EQ(take(refused), "-ERR max number of clients reached\r\n");
  EXPECT_TRUE(redis.closed_by_server(refused));
}

TEST_F(RedisDoubleTest, FailNextAndGarbageNextActOnce) {
  redis.fail_next("TRYAGAIN later", "SET");
  EXPECT_EQ(say(a, {"PING"}), "+PONG\r\n");
  EXPECT_EQ(say(a, {"SET", "k", "v"}), "-TRYAGAIN later\r\n");
  EXPECT_FALSE(redis.peek("k", now));
  redis.garbage_next("HTTP/1.1 200 OK\r\n");
  EXPECT_EQ(say(a, {"SET", "k", "v"}), "HTTP/1.1 200 OK\r\n");
  EXPECT_TRUE(redis.peek("k", now));
  EXPECT_EQ(say(a, {"SET", "k", "v"}), "+OK\r\n");
}

TEST_F(RedisDoubleTest, ExpiryIsToldWhenNoticed) {
  const int waiter = tracker();
  say(a, {"SET", "k", "v", "PX", "100"});
  watch(waiter, "k");
  now = ms(200);
  EXPECT_EQ(take(waiter), "");
  redis.tick(now);
  EXPECT_EQ(take(waiter), invalidate("k"));
  say(a, {"SET", "k", "v", "PX", "100"});
  watch(waiter, "k");
  now = ms(400);
  say(a, {"SET", "k", "w", "NX", "PX", "100"});
  EXPECT_EQ(take(waiter), invalidate("k"));
}

TEST_F(RedisDoubleTest, CrashForgetsWhatItIsToldTo) {
  say(a, {"SET", "old", "v"});
  redis.snapshot(now);
  say(a, {"SET", "new", "v"});
  const std::string first = redis.run_id();
  redis.crash(RedisDouble::Keep::snapshot, now);
  EXPECT_TRUE(redis.closed_by_server(a));
  EXPECT_NE(redis.run_id(), first);
  EXPECT_EQ(redis.keys(now), std::vector<std::string>{"old"});
  redis.crash(RedisDouble::Keep::all, now);
  EXPECT_EQ(redis.keys(now).size(), 1u);
  redis.crash(RedisDouble::Keep::none, now);
  EXPECT_TRUE(redis.keys(now).empty());
}

TEST_F(RedisDoubleTest, RoleCycleKeepsRunIdAndChangesReplid) {
  const std::string run_id = redis.run_id();
  const std::string replid = redis.replid();
  redis.become_replica();
  EXPECT_EQ(say(a, {"ROLE"}).rfind("*5\r\n$5\r\nslave\r\n", 0), 0u);
  redis.become_master();
  EXPECT_EQ(redis.run_id(), run_id);
  EXPECT_NE(redis.replid(), replid);
  const std::string info = say(a, {"INFO", "server", "replication"});
  EXPECT_NE(info.find("run_id:" + run_id), std::string::npos);
  EXPECT_NE(info.find("master_replid:" + redis.replid()), std::string::npos);
}

TEST_F(RedisDoubleTest, SameSeedSameServer) {
  EXPECT_EQ(RedisDouble(7).run_id(), RedisDouble(7).run_id());
  EXPECT_NE(RedisDouble(7).run_id(), RedisDouble(8).run_id());
}

TEST_F(RedisDoubleTest, CountsWhatRanNotWhatWasRefused) {
  redis.knobs.loading = true;
  say(a, {"SET", "k", "v"});
  redis.knobs.loading = false;
  say(a, {"SET", "k", "v"});
  EXPECT_EQ(redis.calls("SET"), 1u);
  EXPECT_EQ(redis.received(), 2u);
}

TEST_F(RedisDoubleTest, ClosedConnectionsAreForgotten) {
  const int waiter = tracker();
  say(a, {"SET", "k", "v"});
  watch(waiter, "k");
  redis.close(waiter);
  EXPECT_FALSE(redis.tracked("k"));
  redis.receive(waiter, wire({"DEL", "k"}), now);
  EXPECT_TRUE(redis.peek("k", now));
}

}  // namespace
}  // namespace redlock::test
