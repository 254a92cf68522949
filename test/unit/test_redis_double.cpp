// SPDX-License-Identifier: MIT
#include "support/redis_double.hpp"

#include <gtest/gtest.h>

#include "support/lua_scripts.hpp"
#include "support/sha1.hpp"

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

TEST(Sha1, KnownDigests) {
  EXPECT_EQ(Sha1::hex(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(Sha1::hex("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(Sha1::hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  EXPECT_EQ(Sha1::hex(std::string(1'000'000, 'a')), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

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

TEST_F(RedisDoubleTest, SetNxPxKeepsTheFirstValue) {
  EXPECT_EQ(say(a, {"SET", "k", "one", "NX", "PX", "100"}), "+OK\r\n");
  EXPECT_EQ(say(a, {"set", "k", "two", "nx", "px", "100"}), "$-1\r\n");
  EXPECT_EQ(say(a, {"GET", "k"}), "$3\r\none\r\n");
  EXPECT_EQ(say(resp3(), {"SET", "k", "two", "NX"}), "_\r\n");
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

TEST_F(RedisDoubleTest, BrokenBytesCloseTheConnection) {
  redis.receive(a, "*1\r\n+PING\r\n" + wire({"PING"}), now);
  EXPECT_EQ(take(a), "-ERR Protocol error: expected '$', got '+'\r\n");
  EXPECT_TRUE(redis.closed_by_server(a));
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

TEST_F(RedisDoubleTest, PasswordIsAskedFor) {
  redis.knobs.password = "secret";
  const int conn = redis.open(now);
  EXPECT_EQ(say(conn, {"GET", "k"}), "-NOAUTH Authentication required.\r\n");
  EXPECT_EQ(say(conn, {"HELLO", "3", "AUTH", "default", "wrong"}).rfind("-WRONGPASS ", 0), 0u);
  EXPECT_EQ(say(conn, {"GET", "k"}), "-NOAUTH Authentication required.\r\n");
  EXPECT_EQ(say(conn, {"HELLO", "3", "AUTH", "default", "secret"})[0], '%');
  EXPECT_EQ(say(conn, {"GET", "k"}), "_\r\n");
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

TEST_F(RedisDoubleTest, FullMemoryRefusesOnlyWhatGrows) {
  say(a, {"SET", "k", "v"});
  redis.knobs.oom = true;
  EXPECT_EQ(say(a, {"PEXPIRE", "k", "1000"}), ":1\r\n");
  EXPECT_EQ(say(a, {"DEL", "k"}), ":1\r\n");
  EXPECT_EQ(say(a, {"SET", "k", "v"}).rfind("-OOM ", 0), 0u);
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

class ScriptTest : public RedisDoubleTest {
 protected:
  const std::string body = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) end return 0";
  const std::string sha = register_script(redis, body);
};

TEST_F(ScriptTest, LoadedOrSentWhole) {
  say(a, {"SET", "k", "mine"});
  EXPECT_EQ(say(a, {"EVALSHA", sha, "1", "k", "mine"}), "-NOSCRIPT No matching script. Please use EVAL.\r\n");
  EXPECT_EQ(say(a, {"SCRIPT", "LOAD", body}), "$40\r\n" + sha + "\r\n");
  EXPECT_EQ(say(a, {"EVALSHA", sha, "1", "k", "other"}), ":0\r\n");
  EXPECT_EQ(say(a, {"EVALSHA", sha, "1", "k", "mine"}), ":1\r\n");
  EXPECT_FALSE(redis.peek("k", now));
  EXPECT_EQ(say(a, {"SCRIPT", "FLUSH"}), "+OK\r\n");
  EXPECT_EQ(say(a, {"EVAL", body, "1", "k", "mine"}), ":0\r\n");
  EXPECT_EQ(say(a, {"EVALSHA", sha, "1", "k", "mine"}), ":0\r\n");
}

TEST_F(ScriptTest, InnerErrorEndsTheScript) {
  say(a, {"SET", "k", "mine"});
  redis.become_replica();
  EXPECT_EQ(say(a, {"EVAL", body, "1", "k", "other"}), ":0\r\n");
  EXPECT_EQ(say(a, {"EVAL", body, "1", "k", "mine"}),
            "-READONLY You can't write against a read only replica. script: " + sha + ", on @user_script:1.\r\n");
  EXPECT_TRUE(redis.peek("k", now));
}

TEST_F(ScriptTest, WrongTypeIsAnError) {
  redis.put_hash("k");
  EXPECT_EQ(say(a, {"EVAL", body, "1", "k", "mine"}).rfind("-WRONGTYPE ", 0), 0u);
}

TEST_F(RedisDoubleTest, TrackingTellsOncePerRead) {
  const int waiter = tracker();
  say(a, {"SET", "k", "v"});
  watch(waiter, "k");
  EXPECT_EQ(say(a, {"SET", "k", "w", "NX"}), "$-1\r\n");
  EXPECT_EQ(take(waiter), "");
  say(a, {"PEXPIRE", "k", "1000"});
  EXPECT_EQ(take(waiter), invalidate("k"));
  say(a, {"DEL", "k"});
  EXPECT_EQ(take(waiter), "");
}

TEST_F(RedisDoubleTest, CachingMustStandDirectlyBeforeTheRead) {
  const int waiter = tracker();
  say(waiter, {"CLIENT", "CACHING", "yes"});
  say(waiter, {"SET", "k", "v", "NX"});
  say(waiter, {"GET", "k"});
  EXPECT_FALSE(redis.tracked("k"));
  watch(waiter, "k");
  EXPECT_TRUE(redis.tracked("k"));
}

TEST_F(RedisDoubleTest, OwnChangeIsNotToldButUsesUpTheRegistration) {
  const int waiter = tracker();
  say(a, {"SET", "k", "v"});
  watch(waiter, "k");
  EXPECT_EQ(say(waiter, {"PEXPIRE", "k", "1000"}), ":1\r\n");
  say(a, {"DEL", "k"});
  EXPECT_EQ(take(waiter), "");
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

TEST_F(RedisDoubleTest, FlushAllTellsEveryTrackerEvenItsAuthorAfterTheReply) {
  const int waiter = tracker();
  const int other = tracker();
  EXPECT_EQ(say(waiter, {"FLUSHALL"}), "+OK\r\n>2\r\n$10\r\ninvalidate\r\n_\r\n");
  EXPECT_EQ(take(other), ">2\r\n$10\r\ninvalidate\r\n_\r\n");
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
