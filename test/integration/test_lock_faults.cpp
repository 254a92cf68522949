// SPDX-License-Identifier: MIT
//
// What only sockets and signals show of masters that fail: a login that is refused, and peers that hang up.
#include <signal.h>

#include <map>

#include "client_harness.hpp"
#include "support/redis_double.hpp"
#include "support/redis_server.hpp"
#include "support/tcp_peer.hpp"

namespace redlock::test {
namespace {

TEST(Refused, WrongPasswordIsNamedAndNeverShown) {
  Loop loop;
  RedisServer::Options guarded;
  guarded.password = "the-right-one";
  RedisServer strict(guarded), silent(guarded);
  Cluster open(3);
  Settings settings{{open[0].url(), open[1].url(), open[2].url(), strict.url_with_password("the-wrong-one"),
                     silent.url_with_password("")},
                    "test",
                    {},
                    {}};
  Client client(loop, settings);
  client.hold("bus", options(20'000, 20'000));
  client.wait_master_err(3, REDLOCK_E_AUTH);
  client.wait_master_err(4, REDLOCK_E_AUTH_MISSING);
  char json[8192];
  size_t size = sizeof json;
  ASSERT_EQ(redlock_status_json(client.get(), json, &size), 0);
  EXPECT_NE(std::string(json).find("AUTH"), std::string::npos);
  EXPECT_EQ(std::string(json).find("the-wrong-one"), std::string::npos);
  EXPECT_EQ(std::string(client.master(3).address).find("the-wrong-one"), std::string::npos);
  EXPECT_FALSE(client.log_mentions("the-wrong-one"));
}

// A master by bytes, behind a socket: what the double answers, over TCP.
TcpPeer::Handler speaks_redis(RedisDouble& redis, std::map<int, int>& conns) {
  return [&redis, &conns](int number, std::string& in, std::string& out) {
    if (conns.count(number) == 0) conns[number] = redis.open(boot_ns());
    redis.receive(conns[number], in, boot_ns());
    in.clear();
    out = redis.out(conns[number]);
    redis.out(conns[number]).clear();
    return TcpPeer::Then::keep;
  };
}

void take_part_while_the_peer_hangs_up(TcpPeer::Then how) {
  ::signal(SIGPIPE, SIG_DFL);
  Loop loop;
  RedisDouble redis;
  std::map<int, int> conns;
  TcpPeer peer(speaks_redis(redis, conns));
  Client client(loop, {peer.url()});
  for (int again = 0; again < 20; ++again) {
    client.wait_up(1);
    peer.end_all(how);
    for (int i = 0; i < 8; ++i) client.start("bus/" + std::to_string(i));
    loop.run_until([&] { return client.status().locks_pending == 0; });
  }
  client.close(0);
}

void write_to_a_dead_unix_socket() {
  ::signal(SIGPIPE, SIG_DFL);
  Loop loop;
  RedisServer::Options unix_socket;
  unix_socket.unix_socket = true;
  RedisServer master(unix_socket);
  UpClient client(loop, {master.url()});
  master.kill_hard();
  Lock& lock = client.acquire("bus");
  EXPECT_TRUE(lock.has(REDLOCK_EV_FAILED));
  client.close(0);
}

TEST(BrokenPipeDeathTest, RaisesNoSignal) {
  using Then = TcpPeer::Then;
  const auto ends = [](const std::function<void()>& what) {
    what();
    std::exit(::testing::Test::HasFailure() ? 1 : 0);
  };
  for (const Then how : {Then::close, Then::reset, Then::end_reset}) {
    EXPECT_EXIT(ends([how] { take_part_while_the_peer_hangs_up(how); }), ::testing::ExitedWithCode(0), "");
  }
  EXPECT_EXIT(ends(write_to_a_dead_unix_socket), ::testing::ExitedWithCode(0), "");
}

// Nothing is asked, and no ping is due: the end of the connection itself is told.
TEST(Killed, IsToldAtOnce) {
  Loop loop;
  RedisServer master;
  UpClient client(loop, Settings{{master.url()}, "test", {{"timing.ping_interval_ms", 60'000}}, {}});
  master.kill_hard();
  EXPECT_TRUE(loop.run_until([&] { return client.status().masters_up == 0; }));
}

TEST(Garbage, PeerThatHangsUpAtOnce) {
  for (const TcpPeer::Then how : {TcpPeer::Then::close, TcpPeer::Then::reset, TcpPeer::Then::end_reset}) {
    Loop loop;
    TcpPeer peer([how](int, std::string&, std::string&) { return how; });
    Cluster masters(2);
    Client client(loop, {masters[0].url(), masters[1].url(), peer.url()});
    Lock& lock = client.acquire("bus", options(20'000, 20'000));
    EXPECT_TRUE(lock.has(REDLOCK_EV_ACQUIRED));
    EXPECT_TRUE(loop.run_until([&] { return peer.accepted() >= 3; })) << "it tries again, after a pause";
    client.release(lock);
  }
}

}  // namespace
}  // namespace redlock::test
