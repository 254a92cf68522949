// SPDX-License-Identifier: MIT
//
// Masters that are dead, frozen, forgetful, or not what they should be; peers that speak garbage or hang up.
#include <signal.h>
#include <string.h>

#include <atomic>
#include <map>

#include "client_of.hpp"
#include "support/redis_double.hpp"
#include "support/tcp_peer.hpp"

namespace redlock::test {
namespace {

using Killed3 = ClientOf<3>;
using Killed2 = ClientOf<2>;
using Restarted3 = ClientOf<3>;
using Restarted1 = ClientOf<1>;
using Refused1 = ClientOf<1>;

// ---- dead -----------------------------------------------------------------------------------------------------------

TEST_F(Killed3, MajorityIsNoQuorum) {
  masters[0].kill_hard();
  masters[2].kill_hard();
  Lock& lock = client.acquire("bus", options(20'000));
  const redlock_event_t& failed = lock.first(REDLOCK_EV_FAILED);
  EXPECT_EQ(failed.err, REDLOCK_E_NO_QUORUM);
  EXPECT_GE(failed.failed, 2u);
  EXPECT_NE(failed.master_err, 0);
  EXPECT_TRUE(loop.run_until([&] { return masters[1].calls("set") == 1 && !masters[1].exists("bus"); }));
}

TEST_F(Killed3, HolderLosesTheMajority) {
  Lock& lock = client.hold("bus", options(1'500));
  masters[0].kill_hard();
  masters[1].kill_hard();
  EXPECT_TRUE(loop.run_until([&] { return lock.has(REDLOCK_EV_AT_RISK) || lock.ended(); }));
  EXPECT_TRUE(lock.has(REDLOCK_EV_AT_RISK)) << "told before it is over";
  EXPECT_TRUE(loop.run_until([&] { return lock.has(REDLOCK_EV_LOST); }));
}

TEST_F(Killed2, OneOfTwoIsNoQuorum) {
  EXPECT_EQ(client.status().quorum, 2u);
  EXPECT_EQ(client.status().even, 1u);
  Lock& both = client.hold("bus", options(20'000));
  client.release(both);
  masters[1].kill_hard();
  Lock& one = client.acquire("bus", options(20'000));
  EXPECT_EQ(one.first(REDLOCK_EV_FAILED).err, REDLOCK_E_NO_QUORUM);
  expect_gone("bus");
}

TEST_F(Restarted3, IsUsedAgain) {
  masters[0].restart();
  masters[1].restart();
  EXPECT_TRUE(loop.run_until([&] { return client.master(0).connects >= 2 && client.master(1).connects >= 2; }));
  client.wait_up(3);
  Lock& lock = client.hold("bus", options(20'000));
  EXPECT_TRUE(loop.run_until([&] { return masters.holders("bus") == 3; }));
  client.release(lock);
  EXPECT_TRUE(loop.run_until([&] { return masters.holders("bus") == 0; })) << "the scripts were loaded again";
}

TEST_F(Restarted1, WakesAWaiter) {
  master.kill_hard();
  Lock& lock = client.start("bus", options(20'000, REDLOCK_WAIT_FOREVER));
  EXPECT_TRUE(loop.run_until([&] { return client.status().masters_up == 0; }));
  master.restart();
  EXPECT_TRUE(loop.run_until([&] { return lock.has(REDLOCK_EV_ACQUIRED); }));
}

TEST_F(Restarted3, OneMasterWhileHeld) {
  Lock& lock = client.hold("bus", options(4'500));
  ASSERT_TRUE(loop.run_until([&] { return masters.holders("bus") == 3; }));
  masters[2].restart();
  EXPECT_TRUE(loop.run_until([&] { return lock.count(REDLOCK_EV_RENEWED) >= 2 || lock.ended(); }));
  EXPECT_FALSE(lock.ended());
  EXPECT_EQ(client.check(lock), 0);
  client.wait_up(3);
  client.release(lock);
  EXPECT_TRUE(loop.run_until([&] { return client.status().debts == 0; }));
  EXPECT_EQ(masters.holders("bus"), 0u);
}

// A master that was away when the lock was taken gets the key as soon as it votes, long before a renewal is due. So the
// lock outlives any one of the three.
TEST_F(Restarted3, EachMasterThatVotesHasTheKey) {
  struct Row {
    std::vector<std::string> names;
    uint32_t flags;
    size_t away, failing;
  };
  for (const Row& row : {Row{{"bus"}, 0, 2, 0}, Row{{"bus"}, 0, 0, 2}, Row{{"bus"}, 0, 1, 1},
                         Row{{"bus"}, REDLOCK_F_NO_RENEW, 2, 1}, Row{{"bus"}, REDLOCK_F_FENCING, 0, 1},
                         Row{{"bus", "valve"}, 0, 1, 2}}) {
    SCOPED_TRACE(row.names.back() + " with flags " + std::to_string(row.flags) + ", of master " +
                 std::to_string(row.away));
    client.wait_up(3);
    masters[row.away].kill_hard();
    client.wait_up(2);
    Lock& lock = client.hold(row.names, options(20'000, REDLOCK_TRY_ONCE, row.flags));
    masters[row.away].restart();
    for (const std::string& name : row.names) {
      EXPECT_TRUE(loop.run_until([&] { return masters.holders(name) == 3; })) << name;
    }
    EXPECT_EQ(lock.events.size(), 1u) << "it came with a renewal";
    masters[row.failing].kill_hard();
    client.wait_up(2);
    ASSERT_EQ(redlock_extend_async(client.get(), lock.handle, 20'000), 0);
    EXPECT_TRUE(loop.run_until([&] { return lock.events.size() > 1; }));
    EXPECT_EQ(lock.events.back().type, REDLOCK_EV_RENEWED);
    client.release(lock);
    masters[row.failing].restart();
  }
}

// ---- frozen ---------------------------------------------------------------------------------------------------------

// Short enough that a frozen master costs a test little, long enough for a loaded machine to answer.
class Frozen : public ClientOf<3> {
 protected:
  explicit Frozen(uint32_t close_ms = 60'000)
      : ClientOf({{}, "test", {{"timing.node_timeout_ms", 1'500}, {"timing.suspect_close_ms", close_ms}}, {}}) {}
};

TEST_F(Frozen, MinorityDoesNotSlowAnybody) {
  masters[2].freeze();
  Lock& lock = client.hold("bus", options(20'000));
  EXPECT_EQ(lock.first(REDLOCK_EV_ACQUIRED).granted, 2u);
  EXPECT_EQ(lock.first(REDLOCK_EV_ACQUIRED).failed, 0u) << "nobody waits for the slowest master";
}

TEST_F(Frozen, MajorityIsNoQuorum) {
  masters[0].freeze();
  masters[1].freeze();
  Lock& lock = client.acquire("bus", options(20'000));
  const redlock_event_t& failed = lock.first(REDLOCK_EV_FAILED);
  EXPECT_EQ(failed.err, REDLOCK_E_NO_QUORUM);
  EXPECT_EQ(failed.master_err, REDLOCK_E_NODE_TIMEOUT);
  EXPECT_TRUE(loop.run_until([&] { return masters[2].calls("set") == 1 && !masters[2].exists("bus"); }));
  EXPECT_EQ(client.master(0).state, REDLOCK_MASTER_SUSPECT);
  Lock& again = client.acquire("bus", options(20'000));
  EXPECT_EQ(again.first(REDLOCK_EV_FAILED).master_err, REDLOCK_E_SUSPECT);
  masters[0].thaw();
  masters[1].thaw();
  client.wait_up(3);
  EXPECT_TRUE(loop.run_until([&] { return client.status().debts == 0; }));
  EXPECT_EQ(masters[0].calls("set"), 1u) << "a suspect master gets no SET";
  EXPECT_EQ(masters.holders("bus"), 0u);
}

// The SET lies unread in the socket of a stopped server. When it wakes, it takes the lock for somebody who has let go
// long ago: the delete must be right behind.
TEST_F(Frozen, UnreadSetIsDeletedWhenItThaws) {
  masters[2].freeze();
  Lock& lock = client.hold("bus", options(30'000));
  client.release(lock);
  expect_gone("bus");
  EXPECT_EQ(client.status().debts, 1u);
  masters[2].thaw();
  EXPECT_TRUE(loop.run_until([&] { return masters[2].calls("set") == 1 && client.status().debts == 0; }));
  EXPECT_FALSE(masters[2].exists("bus"));
}

// The same, but the connection is given up before the server wakes.
class FrozenForLong : public Frozen {
 protected:
  FrozenForLong() : Frozen(1'500) {}
};
TEST_F(FrozenForLong, UnreadSetIsDeletedOnTheNextConnection) {
  masters[2].freeze();
  Lock& lock = client.hold("bus", options(30'000));
  client.release(lock);
  EXPECT_TRUE(loop.run_until([&] { return client.master(2).state == REDLOCK_MASTER_DOWN; }));
  EXPECT_EQ(client.status().debts, 1u);
  masters[2].thaw();
  client.wait_up(3);
  EXPECT_TRUE(loop.run_until([&] { return !masters[2].exists("bus"); }, 10'000)) << "long before the ttl";
}

// ---- connections that break at the worst moment --------------------------------------------------------------------

// Hands requests on to a real master one by one, except the first that contains `word`: there the connection breaks,
// before the master has seen it or after, and no answer arrives.
class BreakingProxy {
 public:
  BreakingProxy(RedisServer& master, std::string word, bool executed)
      : behind_(master.connect()),
        word_(std::move(word)),
        executed_(executed),
        peer_([this](int, auto& in, auto& out) { return pass_on(in, out); }) {}
  std::string url() const { return peer_.url(); }
  bool has_broken() const { return broken_; }

 private:
  TcpPeer::Then pass_on(std::string& in, std::string& out) {
    for (size_t size = resp_value_size(in); size > 0; size = resp_value_size(in)) {
      const std::string request = in.substr(0, size);
      in.erase(0, size);
      const bool breaks = !broken_ && request.find("\r\n" + word_ + "\r\n") != std::string::npos;
      if (!breaks || executed_) {
        behind_.send(request);
        const std::string reply = behind_.receive(1);
        if (!breaks) out += reply;
      }
      if (!breaks) continue;
      broken_ = true;
      return TcpPeer::Then::reset;
    }
    return TcpPeer::Then::keep;
  }

  RedisConnection behind_;
  std::string word_;
  bool executed_;
  std::atomic<bool> broken_{false};
  TcpPeer peer_;
};

class Broken : public ::testing::TestWithParam<bool> {};

TEST_P(Broken, DeleteIsSentAgain) {
  Loop loop;
  RedisServer master;
  BreakingProxy proxy(master, "EVALSHA", GetParam());
  Client client(loop, {proxy.url()});
  Lock& lock = client.hold("bus", options(30'000, 0, REDLOCK_F_NO_RENEW));
  client.release(lock);
  EXPECT_TRUE(loop.run_until([&] { return proxy.has_broken() && !master.exists("bus"); }, 15'000)) << "before the ttl";
}

TEST_P(Broken, SetWithoutAnAnswerIsDeleted) {
  Loop loop;
  RedisServer master;
  BreakingProxy proxy(master, "SET", GetParam());
  Client client(loop, {proxy.url()});
  Lock& lock = client.acquire("bus", options(30'000));
  EXPECT_EQ(lock.first(REDLOCK_EV_FAILED).err, REDLOCK_E_NO_QUORUM);
  EXPECT_EQ(lock.first(REDLOCK_EV_FAILED).master_err, REDLOCK_E_DISCONNECTED);
  EXPECT_TRUE(loop.run_until([&] { return proxy.has_broken() && !master.exists("bus"); }, 15'000)) << "before the ttl";
}

INSTANTIATE_TEST_SUITE_P(Executed, Broken, ::testing::Bool());

// ---- not what it should be ------------------------------------------------------------------------------------------

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

TEST(Refused, RightPassword) {
  Loop loop;
  RedisServer::Options guarded;
  guarded.password = "p@ss:word/%1";
  RedisServer by_url(guarded), by_default(guarded);
  Client client(loop,
                Settings{{by_url.url(), by_default.url_with_password("")}, "test", {}, {{"password", "p@ss:word/%1"}}});
  client.hold("bus");
  EXPECT_FALSE(client.log_mentions("p@ss"));
}

TEST_F(Refused1, MasterThatBecomesAReplica) {
  master.command({"REPLICAOF", "127.0.0.1", "1"});
  Lock& lock = client.acquire("bus", options(20'000));
  EXPECT_EQ(lock.first(REDLOCK_EV_FAILED).err, REDLOCK_E_NO_QUORUM);
  EXPECT_EQ(lock.first(REDLOCK_EV_FAILED).master_err, REDLOCK_E_READONLY);
  master.command({"REPLICAOF", "NO", "ONE"});
  client.hold("bus", options(20'000, 20'000));
}

TEST_F(Refused1, FullMemory) {
  Lock& held = client.hold("held", options(20'000));
  master.command({"CONFIG", "SET", "maxmemory", "1"});
  Lock& lock = client.acquire("bus");
  EXPECT_EQ(lock.first(REDLOCK_EV_FAILED).err, REDLOCK_E_NO_QUORUM);
  EXPECT_EQ(lock.first(REDLOCK_EV_FAILED).master_err, REDLOCK_E_OOM);
  ASSERT_EQ(redlock_extend_async(client.get(), held.handle, 25'000), 0);
  EXPECT_TRUE(loop.run_until([&] { return held.has(REDLOCK_EV_RENEWED) || held.has(REDLOCK_EV_AT_RISK); }));
  EXPECT_TRUE(held.has(REDLOCK_EV_RENEWED)) << "a full server still renews";
  client.release(held);
  EXPECT_TRUE(loop.run_until([&] { return !master.exists("held"); })) << "and still deletes";
}

// ---- garbage and broken pipes ---------------------------------------------------------------------------------------

TEST(Garbage, IsAProtocolErrorWhateverItLooksLike) {
  for (const char* bytes : {"HTTP/1.1 400 Bad Request\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n",
                            "\x15\x03\x01\x00\x02\x02\x28", "$99999999999999999999\r\n",
                            "+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n", "*-5\r\n", ":12x\r\n"}) {
    Loop loop;
    TcpPeer peer([bytes](int, std::string& in, std::string& out) {
      if (!in.empty()) out = bytes;
      in.clear();
      return TcpPeer::Then::keep;
    });
    Client client(loop, {peer.url()});
    const bool alert_of_tls = strchr(redlock_version_string(), '+') != nullptr && bytes[0] == 0x15;
    client.wait_master_err(0, alert_of_tls ? REDLOCK_E_TLS_ONLY : REDLOCK_E_PROTOCOL);
    Lock& lock = client.acquire("bus");
    EXPECT_EQ(lock.first(REDLOCK_EV_FAILED).err, REDLOCK_E_NO_QUORUM) << bytes;
  }
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

TEST(Garbage, AfterAnHonestGreeting) {
  Loop loop;
  RedisDouble redis;
  std::map<int, int> conns;
  const TcpPeer::Handler honest = speaks_redis(redis, conns);
  TcpPeer peer([&](int number, std::string& in, std::string& out) {
    const bool has_set = in.find("\r\nSET\r\n") != std::string::npos;
    const TcpPeer::Then then = honest(number, in, out);
    if (has_set) out = "$5\r\nhello\r\n" + out;  // a SET is never answered so
    return then;
  });
  UpClient client(loop, {peer.url()});
  Lock& lock = client.acquire("bus");
  EXPECT_EQ(lock.first(REDLOCK_EV_FAILED).err, REDLOCK_E_NO_QUORUM);
  EXPECT_TRUE(loop.run_until([&] { return client.master(0).connects >= 2; })) << "unsure accounting closes";
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

int result() { return ::testing::Test::HasFailure() ? 1 : 0; }

TEST(BrokenPipeDeathTest, RaisesNoSignal) {
  using Then = TcpPeer::Then;
  EXPECT_EXIT(
      {
        take_part_while_the_peer_hangs_up(Then::close);
        std::exit(result());
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      {
        take_part_while_the_peer_hangs_up(Then::reset);
        std::exit(result());
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      {
        take_part_while_the_peer_hangs_up(Then::end_reset);
        std::exit(result());
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      {
        write_to_a_dead_unix_socket();
        std::exit(result());
      },
      ::testing::ExitedWithCode(0), "");
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
