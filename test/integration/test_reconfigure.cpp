// SPDX-License-Identifier: MIT
//
// A changed set of masters, on real servers, with clients of the old one running.
#include <gtest/gtest.h>
#include <redlock/site.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "change_servers.hpp"
#include "support/eventually.hpp"
#include "support/server_kind.hpp"

namespace redlock::test {
namespace {

// A master refuses to save while it writes a copy for a replica.
bool saves(RedisServer& server) {
  return eventually([&] { return server.command({"SAVE"}) == "OK"; });
}

using Report = redlock_reconfigure_report_t;

int reconfigure(const Settings& before, const Settings& after, Report& report) {
  redlock_config_t* old_cfg = configure(before);
  redlock_config_t* new_cfg = configure(after);
  report = {};
  report.size = sizeof report;
  const int result = redlock_reconfigure(old_cfg, new_cfg, &report);
  if (result == REDLOCK_E_CONFIG) {
    EXPECT_STRNE((std::string(redlock_config_error(old_cfg)) + redlock_config_error(new_cfg)).c_str(), "");
  }
  redlock_config_free(old_cfg);
  redlock_config_free(new_cfg);
  return result;
}

int reconfigure(const Settings& before, const Settings& after) {
  Report report;
  return reconfigure(before, after, report);
}

// The call blocks a thread of its own while the loop runs.
struct Call {
  Call(const Settings& before, const Settings& after) {
    thread = std::thread([this, before, after] {
      result = reconfigure(before, after, report);
      done = true;
    });
  }
  ~Call() { thread.join(); }
  // Read while the call runs, as the header allows: atomically.
  int32_t written() const { return static_cast<int32_t>(__atomic_load_n(&report.written, __ATOMIC_ACQUIRE)); }
  Report report{};
  int result = -1;
  std::atomic<bool> done{false};
  std::thread thread;
};

redlock_acquire_opts_t held(int32_t wait_ms = REDLOCK_TRY_ONCE) { return options(1'000, wait_ms); }

// A client of the new set that runs before the change: nothing is waited for then, so it asks again whenever it fails.
struct Early {
  void look() {
    if (lock->has(REDLOCK_EV_FAILED)) lock = &client.start("bus", held(REDLOCK_WAIT_FOREVER));
  }
  Client& client;
  Lock* lock = &client.start("bus", held(REDLOCK_WAIT_FOREVER));
};

// 3 masters become 5. A gateway of the old set holds the bus and renews all the time; it loses it, gets nothing any
// more, and nobody of the new set holds it before that.
TEST(Reconfigure, ThreeBecomeFiveUnderARunningClient) {
  Servers servers(5);
  Loop loop;
  const Settings three = of(servers, {0, 1, 2}), five = of(servers, {0, 1, 2, 3, 4});
  UpClient first(loop, of(servers, {0, 1, 2}, true));
  UpClient old_client(loop, three);
  Client early(loop, five);
  Lock& old_lock = old_client.hold("bus", held());
  EXPECT_TRUE(loop.run_until([&] { return old_lock.has(REDLOCK_EV_RENEWED); }));
  Lock& old_waiter = first.start("bus", held(REDLOCK_WAIT_FOREVER));
  Early new_waiter{early};

  bool overlap = false;
  const auto look = [&] {
    new_waiter.look();
    const int holders =
        (old_client.check(old_lock) == 0) + (first.check(old_waiter) == 0) + (early.check(*new_waiter.lock) == 0);
    overlap = overlap || holders > 1;
  };
  {
    Call call(three, five);
    EXPECT_TRUE(loop.run_until([&] { return look(), call.done.load(); }));
    EXPECT_EQ(call.result, 0);
    EXPECT_EQ(call.report.written, REDLOCK_WRITTEN_BOTH);
    EXPECT_EQ(call.report.old_needed, 2u);
    EXPECT_EQ(call.report.new_needed, 3u);
  }
  EXPECT_TRUE(loop.run_until([&] { return look(), new_waiter.lock->has(REDLOCK_EV_ACQUIRED); }));
  EXPECT_FALSE(overlap);
  EXPECT_TRUE(old_lock.has(REDLOCK_EV_LOST));
  EXPECT_EQ(old_waiter.first(REDLOCK_EV_FAILED).err, REDLOCK_E_GUARD) << "although it waits for ever";
  EXPECT_EQ(old_waiter.first(REDLOCK_EV_FAILED).cause, REDLOCK_CAUSE_NEVER);
  EXPECT_EQ(old_waiter.first(REDLOCK_EV_FAILED).master_err, REDLOCK_E_LEFT);
  for (uint32_t m = 0; m < 3; ++m) {  // it may be about to read the record again
    EXPECT_TRUE(loop.run_until([&] { return old_client.master(m).err == REDLOCK_E_LEFT; })) << m;
  }
  EXPECT_EQ(old_client.acquire("tap", held()).first(REDLOCK_EV_FAILED).err, REDLOCK_E_GUARD);
  early.wait_up(5);
  first.close(0);
  old_client.close(0);
}

// The old gateway locks and unlocks as fast as it can, on a connection without tracking; once a majority has been taken
// from it, it never gets another.
TEST(Reconfigure, AClientWithoutTrackingLosesItsVotesToo) {
  Servers servers(3);
  for (unsigned i = 0; i < 3; ++i) set_user(servers[i], "default", {"-client|tracking", "-hello"});
  Loop loop;
  const Settings one = of(servers, {0}), three = of(servers, {0, 1, 2});
  UpClient old_client(loop, of(servers, {0}, true));
  EXPECT_EQ(old_client.master(0).tracked, 0u);
  int after_write = 0;
  {
    Call call(one, three);
    EXPECT_TRUE(loop.run_until([&] {
      const bool written = servers.field(0, "desc").rfind("v1", 0) != 0;
      Lock& lock = old_client.acquire("bus", held());
      if (lock.has(REDLOCK_EV_ACQUIRED)) {
        after_write += written ? 1 : 0;
        old_client.release(lock);
      }
      return call.done.load();
    }));
    EXPECT_EQ(call.result, 0);
  }
  EXPECT_EQ(after_write, 0);
  EXPECT_EQ(old_client.acquire("bus", held()).first(REDLOCK_EV_FAILED).err, REDLOCK_E_GUARD);
}

// A site that nobody can be asked at is not changed: neither set is written.
TEST(Reconfigure, TooFewMastersWriteNothing) {
  Servers servers(6);
  const Settings before = of(servers, {0, 1, 2}), after = of(servers, {3, 4, 5});
  {
    Loop loop;
    UpClient client(loop, of(servers, {0, 1, 2}, true));
  }
  const std::string desc = servers.field(0, "desc"), q = servers.field(0, "q");
  servers[1].kill_hard();
  servers[2].kill_hard();
  Report report;
  EXPECT_EQ(reconfigure(before, after, report), REDLOCK_E_NO_QUORUM);
  EXPECT_EQ(report.written, REDLOCK_WRITTEN_NOTHING);
  EXPECT_EQ(report.old_err[0], 0);
  EXPECT_EQ(report.old_err[1], REDLOCK_E_REFUSED);
  EXPECT_EQ(report.new_err[0], 0);
  servers[1].restart();
  servers[3].kill_hard();
  servers[4].kill_hard();
  EXPECT_EQ(reconfigure(before, after, report), REDLOCK_E_NO_QUORUM);
  EXPECT_EQ(report.written, REDLOCK_WRITTEN_NOTHING);
  EXPECT_EQ(report.new_err[1], REDLOCK_E_REFUSED);
  EXPECT_EQ(servers.field(0, "desc"), desc);
  EXPECT_EQ(servers.field(0, "q"), q);
  EXPECT_FALSE(servers[1].exists("redlock::meta"));
  EXPECT_FALSE(servers[5].exists("redlock::meta"));
}

// A lock of the old clients may live longer than the new clients' guard time: the call waits for the difference.
TEST(Reconfigure, AShorterLongestTtlIsWaitedFor) {
  Servers servers(1);
  Settings before = of(servers, {0}), after = of(servers, {0});
  before.numbers.push_back({"timing.max_ttl_ms", 2'000});
  Loop loop;
  Client old_client(loop, [&] {
    Settings s = before;
    s.commission = true;
    return s;
  }());
  old_client.wait_up(1);
  Client new_client(loop, after);
  Lock& old_lock = old_client.hold("bus", options(2'000, REDLOCK_TRY_ONCE, REDLOCK_F_NO_RENEW));
  Early waiter{new_client};
  const int64_t began = boot_ns();
  bool overlap = false;
  const auto look = [&] {
    waiter.look();
    overlap = overlap || (old_client.check(old_lock) == 0 && new_client.check(*waiter.lock) == 0);
  };
  {
    Call call(before, after);
    EXPECT_TRUE(loop.run_until([&] { return look(), call.done.load(); }));
    EXPECT_EQ(call.result, 0);
    EXPECT_GE(boot_ns() - began, int64_t{2'000} * 1'000'000);
  }
  EXPECT_TRUE(loop.run_until([&] { return look(), waiter.lock->has(REDLOCK_EV_ACQUIRED); }));
  EXPECT_FALSE(overlap);
}

// ---- old records: a server restarts from what it saved before the change was undone

struct Reverted {
  Reverted(Settings old_settings, Settings new_settings) : before(old_settings), after(new_settings) {
    Settings commissioned = before;
    commissioned.commission = true;
    client = std::make_unique<Client>(loop, commissioned);
    client->wait_up(static_cast<uint32_t>(before.urls.size()));
    lock = &client->acquire("bus", held());
  }
  // The change again, under a client of the old set that holds or wants the bus: when it is done, no quorum of the old
  // masters serves that client, and no client of the new set holds the bus beside it.
  void change_again(Servers& servers, const Members& old_set, const std::string& old_desc, int64_t least_ms) {
    const int64_t began = boot_ns();
    {
      Call call(before, after);
      EXPECT_TRUE(loop.run_until([&] { return look(), call.done.load(); }));
      EXPECT_EQ(call.result, 0);
    }
    EXPECT_GE(boot_ns() - began, least_ms * 1'000'000);
    size_t serving = 0;
    for (const unsigned i : old_set) serving += servers.field(i, "desc") == old_desc ? 1u : 0u;
    EXPECT_LT(serving, old_set.size() / 2 + 1);
    Client fresh(loop, after);
    Lock& wanted = fresh.start("bus", held(REDLOCK_WAIT_FOREVER));
    bool overlap = false;
    const auto both = [&] {
      look();
      overlap = overlap || (client->check(*lock) == 0 && fresh.check(wanted) == 0);
    };
    EXPECT_TRUE(loop.run_until([&] { return both(), wanted.has(REDLOCK_EV_ACQUIRED); }));
    const int64_t until = boot_ns() + int64_t{2 * max_ttl_ms} * 1'000'000;
    EXPECT_TRUE(loop.run_until([&] { return both(), boot_ns() >= until; }));
    EXPECT_FALSE(overlap);
  }
  void look() {
    if (lock->ended()) lock = &client->start("bus", held(REDLOCK_WAIT_FOREVER));
  }

  Settings before, after;
  Loop loop;
  std::unique_ptr<Client> client;
  Lock* lock = nullptr;
};

// {a, b, c} to {a, b, d}; back while d is away; then a comes back as it was in between: by a restart, or as the replica
// of a copy that was made then.
struct Back {
  bool by_copy;
  uint32_t old_ttl_ms;
};
class AQuorumOfOldRecords : public testing::TestWithParam<Back> {};

TEST_P(AQuorumOfOldRecords, ShortensNothing) {
  Servers servers(5);
  Settings before = of(servers, {0, 1, 2});
  before.numbers.push_back({"timing.max_ttl_ms", GetParam().old_ttl_ms});
  Reverted site(before, of(servers, {0, 1, 3}));
  const std::string desc = servers.field(0, "desc");
  ASSERT_EQ(reconfigure(site.before, site.after), 0);
  const std::string in_between = servers.field(0, "desc");
  const auto copy = [&](unsigned to, unsigned from) {
    servers[from].command({"CONFIG", "SET", "repl-diskless-sync-delay", "0"});
    servers[to].command({"REPLICAOF", "127.0.0.1", std::to_string(servers[from].port())});
    ASSERT_TRUE(eventually([&] { return servers.field(to, "desc") == in_between; }));
    servers[to].command({"REPLICAOF", "NO", "ONE"});
  };
  if (GetParam().by_copy) copy(4, 0);
  ASSERT_TRUE(saves(servers[0]));
  ASSERT_TRUE(saves(servers[3]));
  servers[3].kill_hard();
  ASSERT_EQ(reconfigure(site.after, site.before), 0);
  servers[3].restart();
  GetParam().by_copy ? copy(0, 4) : servers[0].restart();
  ASSERT_EQ(servers.field(0, "desc"), servers.field(3, "desc")) << "two of three say the new set";
  site.change_again(servers, {0, 1, 2}, desc, GetParam().old_ttl_ms);
}
INSTANTIATE_TEST_SUITE_P(Reconfigure, AQuorumOfOldRecords,
                         testing::Values(Back{false, max_ttl_ms}, Back{false, 2 * max_ttl_ms},
                                         Back{true, 2 * max_ttl_ms}));

// A mark does not count when its connection broke, although it stands there when the call looks again: the master may
// have served its set in between.
TEST(Reconfigure, AMarkWhoseConnectionBrokeDoesNotCount) {
  Servers servers(2);
  const Settings before = of(servers, {0}), after = of(servers, {1});
  {
    Loop loop;
    UpClient client(loop, of(servers, {0}, true));
  }
  Call call(before, after);
  ASSERT_TRUE(eventually([&] { return servers.marked(0) && call.written() == REDLOCK_WRITTEN_OLD; }));
  ASSERT_TRUE(saves(servers[0]));
  servers[0].restart();
  EXPECT_TRUE(servers.marked(0));
  EXPECT_TRUE(eventually([&] { return call.done.load(); }));
  EXPECT_EQ(call.result, REDLOCK_E_RECORD_LOST);
  EXPECT_EQ(call.report.old_err[0], REDLOCK_E_RECORD_LOST);
}

// A gateway that a change has left behind does not wait for the change.
TEST(Reconfigure, AClientThatWasLeftBehindSaysSo) {
  Servers servers(4);
  const Settings before = of(servers, {0, 1, 2}), after = of(servers, {0, 1, 3});
  Loop loop;
  UpClient client(loop, of(servers, {0, 1, 2}, true));
  ASSERT_EQ(reconfigure(before, after), 0);
  EXPECT_EQ(servers.field(2, "desc").rfind("left ", 0), 0u);
  EXPECT_NE(servers.field(2, "names").find(" > "), std::string::npos);
  EXPECT_NE(servers.field(2, "by"), "(nil)");
  EXPECT_NE(servers.field(2, "begun"), "(nil)");
  EXPECT_EQ(servers.field(0, "by"), "(nil)") << "an entered record tells of no change";
  EXPECT_TRUE(loop.run_until([&] { return client.master(2).err == REDLOCK_E_LEFT; }));  // the last that is written
  Lock& wanted = client.start("bus", held(REDLOCK_WAIT_FOREVER));
  EXPECT_TRUE(loop.run_until([&] { return wanted.has(REDLOCK_EV_FAILED); }));
  EXPECT_EQ(wanted.first(REDLOCK_EV_FAILED).err, REDLOCK_E_GUARD);
  EXPECT_EQ(wanted.first(REDLOCK_EV_FAILED).cause, REDLOCK_CAUSE_NEVER);
  EXPECT_EQ(wanted.first(REDLOCK_EV_FAILED).master_err, REDLOCK_E_LEFT);
  EXPECT_EQ(reconfigure(after, before), 0) << "the opposite change takes it back";
  client.wait_up(3);
}

TEST(Reconfigure, BadInputSaysWhatIsWrong) {
  Servers servers(1);
  const Settings good = of(servers, {0});
  Settings other = good;
  EXPECT_EQ(reconfigure(good, good), REDLOCK_E_CONFIG) << "nothing changes";
  other.numbers.push_back({"timing.max_ttl_ms", 2'000});
  Settings off = other;
  off.strings = {{"guard", "off"}};
  EXPECT_EQ(reconfigure(good, off), REDLOCK_E_CONFIG);
  EXPECT_EQ(reconfigure(off, good), REDLOCK_E_CONFIG);
  Settings prefixed = other;
  prefixed.strings.push_back({"key_prefix", "p:"});
  EXPECT_EQ(reconfigure(good, prefixed), REDLOCK_E_CONFIG);
  EXPECT_EQ(reconfigure(Settings{{}, "none", {}, {{"guard", "strict"}}}, good), REDLOCK_E_CONFIG);
  redlock_config_t* cfg = configure(good);
  EXPECT_EQ(redlock_reconfigure(nullptr, cfg, nullptr), REDLOCK_E_INVAL);
  EXPECT_EQ(redlock_reconfigure(cfg, nullptr, nullptr), REDLOCK_E_INVAL);
  Report report{};
  EXPECT_EQ(redlock_reconfigure(cfg, cfg, &report), REDLOCK_E_INVAL);
  EXPECT_EQ(redlock_reconfigure(cfg, cfg, nullptr), REDLOCK_E_CONFIG);
  EXPECT_NE(std::string(redlock_config_error(cfg)).find("masters:"), std::string::npos);
  redlock_config_free(cfg);
  EXPECT_FALSE(servers[0].exists("redlock::meta"));
}

}  // namespace
}  // namespace redlock::test
