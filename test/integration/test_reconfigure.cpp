// SPDX-License-Identifier: MIT
//
// A changed set of masters, on real servers, with clients of the old one running.
#include <gtest/gtest.h>
#include <redlock/site.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "client_harness.hpp"
#include "support/redis_server.hpp"

namespace redlock::test {
namespace {

constexpr uint32_t max_ttl_ms = 1'000;
using Members = std::vector<unsigned>;

// A client's or a call's settings for these of the servers.
Settings of(Cluster& servers, const Members& members, bool commission = false) {
  Settings s;
  for (const unsigned i : members) s.urls.push_back(servers[i].url());
  s.strings = {{"guard", "strict"}};
  s.numbers = {{"defaults.ttl_ms", 1'000},         {"timing.max_ttl_ms", max_ttl_ms},
               {"timing.node_timeout_ms", 500},    {"timing.suspect_close_ms", 1'000},
               {"timing.connect_timeout_ms", 250}};
  s.commission = commission;
  return s;
}

using Report = redlock_reconfigure_report_t;

int reconfigure(const Settings& before, const Settings& after, Report& report) {
  redlock_config_t* old_cfg = configure(before);
  redlock_config_t* new_cfg = configure(after);
  report = {};
  report.size = sizeof report;
  const int result = redlock_reconfigure(old_cfg, new_cfg, &report);
  redlock_config_free(old_cfg);
  redlock_config_free(new_cfg);
  return result;
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

// Servers that end silent connections hear of the call while it waits.
TEST(Reconfigure, NoConnectionIsSilentForLong) {
  Cluster servers(2);
  Settings before = of(servers, {0}), after = of(servers, {1});
  for (Settings* s : {&before, &after}) s->numbers.emplace_back("timing.max_ttl_ms", 24'000);  // it waits for 8 s
  for (unsigned i = 0; i < 2; ++i) servers[i].command({"CONFIG", "SET", "timeout", "6"});
  Report report;
  EXPECT_EQ(reconfigure(before, after, report), 0);
}

// 3 masters become 5. A gateway of the old set holds the bus and renews all the time; it loses it, gets nothing any
// more, and nobody of the new set holds it before that.
TEST(Reconfigure, ThreeBecomeFiveUnderARunningClient) {
  Cluster servers(5);
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

// Before anybody is asked.
TEST(Reconfigure, WhatIsNoChangeOfOneSiteIsRefused) {
  const Settings good{{"redis://127.0.0.1:1"}, "test", {}, {{"guard", "strict"}}};
  Settings prefixed = good, off = good;
  for (Settings* other : {&prefixed, &off}) other->numbers = {{"timing.max_ttl_ms", 20'000}};
  prefixed.strings.push_back({"key_prefix", "p:"});
  off.strings = {{"guard", "off"}};
  Report report;
  for (const auto& [before, after] : {std::pair(good, good), {good, prefixed}, {good, off}, {off, good}}) {
    EXPECT_EQ(reconfigure(before, after, report), REDLOCK_E_CONFIG);
  }
}

}  // namespace
}  // namespace redlock::test
