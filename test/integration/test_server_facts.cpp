// SPDX-License-Identifier: MIT
//
// What no manual promises, a rule of ours rests on, and no other test asks: each case is a row of test/SERVERS.md, and
// servers.sh prints how each server answers. A `told` answer differs between servers that are all good enough.
#include <gtest/gtest.h>

#include <iostream>

#include "support/eventually.hpp"
#include "support/redis_server.hpp"
#include "support/server_kind.hpp"

namespace redlock::test {
namespace {

using Words = std::vector<std::string>;

// servers.sh looks for this line.
void tell(const std::string& answer) {
  const char* const fact = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  std::cout << "answer of " << fact << ": " << answer << "\n";
}

bool has(const std::string& bytes, const std::string& part) { return bytes.find(part) != std::string::npos; }
bool is_pushed(const std::string& bytes) { return has(bytes, ">2\r\n$10\r\ninvalidate\r\n"); }

class ServerFacts : public ::testing::Test {
 protected:
  // What the connection receives up to the PONG behind these commands.
  static std::string say(RedisConnection& conn, const std::vector<Words>& commands) {
    std::string bytes;
    for (const Words& command : commands) bytes += resp_command(command);
    conn.send(bytes + resp_command({"PING"}));
    return conn.receive(commands.size() + 1);
  }
  RedisConnection tracker() {
    RedisConnection conn = real.connect();
    say(conn, {{"HELLO", "3"}, {"CLIENT", "TRACKING", "on", "OPTIN", "NOLOOP"}});
    return conn;
  }
  void track(RedisConnection& conn, const std::string& key = "k") {
    EXPECT_FALSE(is_pushed(say(conn, {{"CLIENT", "CACHING", "yes"}, {"GET", key}})));
  }
  std::string info(const std::string& field) { return info_field(real.command({"INFO"}), field); }
  std::string eval(const std::string& script) { return real.command({"EVAL", script, "1", "k"}); }
  std::string load(const std::string& script) { return real.command({"SCRIPT", "LOAD", script}); }

  RedisServer real{{{"--databases", "2"}, "", false}};
  RedisConnection stranger = real.connect();
};

// ---- pushes

TEST_F(ServerFacts, APushStandsBeforeTheNextReply) {
  RedisConnection conn = tracker();
  for (int i = 0; i < 100; ++i) {
    track(conn);
    stranger.command({"SET", "k", "v"});
    const std::string bytes = say(conn, {{"TIME"}});
    EXPECT_EQ(bytes.find('>'), 0u) << bytes;
  }
}

TEST_F(ServerFacts, AnExpiryThatAStrangersReadFindsIsPushed) {
  real.command({"CONFIG", "SET", "hz", "1"});  // the server finds few by itself
  const auto is_told = [&](bool stranger_reads) {
    RedisConnection conn = tracker();
    real.command({"SET", "k", "v", "PX", "20"});
    track(conn);
    std::this_thread::sleep_for(std::chrono::milliseconds(22));
    if (stranger_reads) stranger.command({"GET", "k"});
    return is_pushed(say(conn, {{"GET", "k"}}));
  };
  EXPECT_TRUE(eventually([&] { return is_told(true); }));
  tell(eventually([&] { return !is_told(false); }, std::chrono::seconds(3)) ? "not by our own" : "by our own, too");
}

TEST_F(ServerFacts, ASecondTrackingOnDropsItsOptions) {
  RedisConnection conn = tracker();
  EXPECT_FALSE(has(say(conn, {{"CLIENT", "TRACKING", "on"}}), "-ERR"));
  say(conn, {{"GET", "k"}});  // without CACHING
  stranger.command({"SET", "k", "v"});
  EXPECT_TRUE(is_pushed(say(conn, {{"TIME"}})));
}

TEST_F(ServerFacts, TrackingInRespTwoIsTakenAndSilent) {
  EXPECT_EQ(stranger.command({"CLIENT", "TRACKING", "on", "OPTIN", "NOLOOP"}), "OK");
  EXPECT_EQ(stranger.command({"CLIENT", "CACHING", "yes"}), "OK");
  stranger.command({"GET", "k"});
  real.command({"SET", "k", "v"});
  EXPECT_EQ(say(stranger, {}), "+PONG\r\n");
}

TEST_F(ServerFacts, HelloTwoTakesPushesAway) {
  RedisConnection conn = tracker();
  track(conn);
  say(conn, {{"HELLO", "2"}});
  stranger.command({"SET", "k", "v"});
  EXPECT_EQ(say(conn, {}), "+PONG\r\n");
}

TEST_F(ServerFacts, AServerThatBecomesAReplicaPushesNull) {
  RedisServer other;
  RedisConnection conn = tracker();
  track(conn);
  std::string bytes;
  real.command({"REPLICAOF", "127.0.0.1", std::to_string(other.port())});
  EXPECT_TRUE(eventually([&] { return has(bytes += say(conn, {}), "invalidate\r\n_\r\n"); })) << bytes;
  EXPECT_FALSE(conn.closed()) << "a role that changes ends no connection";
}

TEST_F(ServerFacts, SwapdbPushesNothing) {
  RedisConnection conn = tracker();
  real.command({"SET", "k", "v"});
  track(conn);
  EXPECT_EQ(real.command({"SWAPDB", "0", "1"}), "OK");
  EXPECT_FALSE(is_pushed(say(conn, {{"GET", "k"}})));
}

// ---- connections

TEST_F(ServerFacts, AWriteThatWaitsInAPauseDiesWithItsConnection) {
  if (kind_of(real).is_before_seven()) GTEST_SKIP() << "its pauses hold everybody up";
  const std::string id = stranger.command({"CLIENT", "ID"});
  real.command({"CLIENT", "PAUSE", "600000", "WRITE"});
  stranger.send(resp_command({"SET", "k", "v"}));
  EXPECT_TRUE(eventually([&] { return has(real.command({"CLIENT", "LIST"}), "cmd=set "); }));
  EXPECT_EQ(real.command({"CLIENT", "KILL", "ID", id}), "1");
  EXPECT_EQ(real.command({"CLIENT", "UNPAUSE"}), "OK");
  EXPECT_FALSE(real.exists("k"));
}

TEST_F(ServerFacts, AConnectionThatTracksIsIdleForTimeout) {
  RedisConnection conn = tracker();
  track(conn);
  real.command({"CONFIG", "SET", "timeout", "1"});
  EXPECT_TRUE(eventually([&] { return info("tracking_clients") == "0"; }));
}

TEST_F(ServerFacts, APasswordThatChangesEndsNoConnectionAndALostUserDoes) {
  real.command({"ACL", "SETUSER", "u", "on", ">one", "~*", "+@all"});
  EXPECT_EQ(stranger.command({"AUTH", "u", "one"}), "OK");
  real.command({"ACL", "SETUSER", "u", "resetpass", ">two"});
  EXPECT_EQ(stranger.command({"PING"}), "PONG");
  real.command({"ACL", "DELUSER", "u"});
  stranger.send(resp_command({"PING"}));
  stranger.receive(1);
  EXPECT_TRUE(stranger.closed());
}

// ---- scripts

TEST_F(ServerFacts, ALoadedScriptStaysBehindManyOthers) {
  const std::string loaded = load("return 1");
  eval("return 2");
  const std::string evaled = load("return 2");
  for (int i = 0; i < 600; ++i) eval("return " + std::to_string(1'000 + i));
  EXPECT_EQ(stranger.command({"EVALSHA", loaded, "0"}), "1");
  const std::string answer = stranger.command({"EVALSHA", evaled, "0"});
  EXPECT_TRUE(answer == "2" || answer.starts_with("-NOSCRIPT")) << answer;
  tell(answer == "2" ? "kept behind EVAL, too" : "forgotten behind EVAL");
}

constexpr const char* until_it_runs_out =
    "redis.call('SET',KEYS[1],'v','PX','3') local a=redis.call('TIME') local t for i=1,2000000 do t=i end "
    "local b=redis.call('TIME') return {redis.call('GET',KEYS[1]),a[1]==b[1] and a[2]==b[2] and 'stands' or 'moves'}";

TEST_F(ServerFacts, NoKeyRunsOutWithinAScript) {
  const std::string answer = eval(until_it_runs_out);
  EXPECT_EQ(answer.substr(0, 2), "v ");
  EXPECT_EQ(real.command({"GET", "k"}), "(nil)");
  tell("TIME " + answer.substr(2));
}

TEST_F(ServerFacts, PttlMayBeZero) {
  EXPECT_TRUE(eventually([&] {  // one by one: a batch may be answered by one reading of the clock
    stranger.command({"SET", "k", "v", "PX", "3"});
    std::string left;
    while ((left = stranger.command({"PTTL", "k"})) != "-2" && left != "0") continue;
    return left == "0";
  }));
}

TEST_F(ServerFacts, UnderALongScriptLoginWorksAndNothingElse) {
  stranger.send(resp_command({"EVAL", "while true do end", "0"}));
  real.command({"CONFIG", "SET", "lua-time-limit", "5"});
  RedisConnection conn = real.connect();
  EXPECT_TRUE(eventually([&] { return conn.command({"PING"}).starts_with("-BUSY"); }));
  EXPECT_FALSE(conn.command({"HELLO", "3"}).starts_with("-"));
  for (const Words& command : std::vector<Words>{{"CLIENT", "KILL", "ID", "1"}, {"INFO"}, {"EVALSHA", "x", "0"}}) {
    EXPECT_TRUE(conn.command(command).starts_with("-BUSY")) << command[0];
  }
  EXPECT_EQ(conn.command({"SCRIPT", "KILL"}), "OK");
}

// ---- what a server knows of itself

TEST_F(ServerFacts, ARestartMakesNewIds) {
  const std::string run_id = info("run_id"), replid = info("master_replid"), loaded = load("return 1");
  real.command({"SET", "k", "v"});
  EXPECT_EQ(real.command({"SAVE"}), "OK");
  real.restart();
  EXPECT_TRUE(real.exists("k")) << "its data are those of before";
  EXPECT_NE(info("run_id"), run_id);
  EXPECT_NE(info("master_replid"), replid);
  EXPECT_EQ(real.command({"SCRIPT", "EXISTS", loaded}), "0");
}

TEST_F(ServerFacts, EvictionsAreCounted) {
  EXPECT_EQ(info("evicted_keys"), "0");
  real.command({"SET", "k", "v", "PX", "600000"});
  real.command({"CONFIG", "SET", "maxmemory-policy", "volatile-ttl"});
  real.command({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_TRUE(eventually([&] { return real.command({"SET", "other", "v"}).starts_with("-OOM"); }));
  EXPECT_EQ(info("evicted_keys"), "1");
}

}  // namespace
}  // namespace redlock::test
