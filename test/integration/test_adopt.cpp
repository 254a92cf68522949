// SPDX-License-Identifier: MIT
//
// Masters of another configuration are adopted, on real servers, with clients of both configurations running.
#include <gtest/gtest.h>
#include <redlock/site.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "change_servers.hpp"
#include "support/proxy.hpp"

namespace redlock::test {
namespace {

constexpr int64_t wait_ms = 1'000 + 200 + 1'000;  // a second at least, the largest drift

using Report = redlock_adopt_report_t;

int adopt(const Settings& settings, uint32_t flags, Report& report, std::vector<Report>* steps = nullptr) {
  redlock_config_t* cfg = configure(settings);
  report = {};
  report.size = sizeof report;
  const redlock_adopt_fn note = [](void* user, const Report* now) {
    if (user != nullptr) static_cast<std::vector<Report>*>(user)->push_back(*now);
  };
  const int result = redlock_adopt(cfg, flags, steps != nullptr ? note : nullptr, steps, &report);
  redlock_config_free(cfg);
  return result;
}

int adopt(const Settings& settings, uint32_t flags = 0) {
  Report report;
  return adopt(settings, flags, report);
}

// A call that blocks a thread of its own while the loop runs.
struct Call {
  explicit Call(const std::function<int(Call&)>& call) {
    thread = std::thread([this, call] {
      result = call(*this);
      done = true;
    });
  }
  explicit Call(const Settings& settings)
      : Call([settings](Call& self) { return adopt(settings, 0, self.report, &self.steps); }) {}
  ~Call() { thread.join(); }
  Report report{};
  std::vector<Report> steps;
  int result = -1'000;
  std::atomic<bool> done{false};
  std::thread thread;
};

redlock_acquire_opts_t held(int32_t wait_ms_given = REDLOCK_TRY_ONCE) { return options(1'000, wait_ms_given); }

// Server 2 serves a test program. Our gateway needs it, because server 0 is down.
TEST(Adopt, ATestProgramsServerBecomesTheThirdMaster) {
  Servers servers(3);
  Loop loop;
  const Settings ours = of(servers, {0, 1, 2});
  Client test_program(loop, of(servers, {2}, true));
  test_program.wait_up(1);
  servers[0].kill_hard();
  Client gateway(loop, ours);
  gateway.wait_master_err(2, REDLOCK_E_FINGERPRINT);
  gateway.wait_up(1);
  Lock& old_lock = test_program.acquire("bus", held());
  ASSERT_TRUE(old_lock.has(REDLOCK_EV_ACQUIRED));
  EXPECT_TRUE(loop.run_until([&] { return old_lock.has(REDLOCK_EV_RENEWED); }));
  Lock& old_waiter = test_program.start("bus", held(REDLOCK_WAIT_FOREVER));
  Lock& new_lock = gateway.start("bus", held(REDLOCK_WAIT_FOREVER));
  bool overlap = false;
  const auto look = [&] {
    const int holders =
        (test_program.check(old_lock) == 0) + (test_program.check(old_waiter) == 0) + (gateway.check(new_lock) == 0);
    overlap = overlap || holders > 1;
  };
  {
    const int64_t began = boot_ns();
    Call call(ours);
    EXPECT_TRUE(loop.run_until([&] { return look(), call.done.load(); }));
    EXPECT_GE(boot_ns() - began, wait_ms * 1'000'000);
    EXPECT_EQ(call.result, 1);
    EXPECT_EQ(call.report.adopted, 1u);
    EXPECT_EQ(call.report.step, REDLOCK_ADOPT_DONE);
    EXPECT_EQ(call.report.err[0], REDLOCK_E_REFUSED);
    EXPECT_EQ(call.report.err[2], 0);
    EXPECT_EQ(call.report.their_masters, 1u);
    EXPECT_EQ(call.report.their_max_ttl_ms, max_ttl_ms);
    std::vector<uint32_t> steps;
    uint32_t to_go = UINT32_MAX;
    for (const Report& step : call.steps) {
      if (steps.empty() || steps.back() != step.step) steps.push_back(step.step);
      if (step.step != REDLOCK_ADOPT_WAIT || step.to_go_ms == 0) continue;
      EXPECT_LT(step.to_go_ms, to_go);
      to_go = step.to_go_ms;
    }
    EXPECT_EQ(steps, (std::vector<uint32_t>{REDLOCK_ADOPT_MARK, REDLOCK_ADOPT_WAIT, REDLOCK_ADOPT_ENTER,
                                            REDLOCK_ADOPT_DONE}));
    EXPECT_LE(to_go, 1'000u) << "told about once a second";
    EXPECT_EQ(call.steps.back().adopted, 1u);
  }
  EXPECT_TRUE(loop.run_until([&] { return look(), new_lock.has(REDLOCK_EV_ACQUIRED); }));
  EXPECT_FALSE(overlap);
  EXPECT_TRUE(old_lock.has(REDLOCK_EV_LOST));
  EXPECT_EQ(old_waiter.first(REDLOCK_EV_FAILED).cause, REDLOCK_CAUSE_NEVER);
  test_program.wait_master_err(0, REDLOCK_E_FINGERPRINT);
  servers[0].restart();
  const std::string q = servers.field(2, "q");
  EXPECT_EQ(adopt(ours), 0) << "nothing is left to do";
  EXPECT_EQ(servers.field(2, "q"), q);
  gateway.wait_up(3);
}

TEST(Adopt, OneOfThreeNeedsTheOperatorsStatement) {
  Servers servers(5);
  Loop loop;
  Client other(loop, of(servers, {2, 3, 4}, true));
  other.wait_up(3);
  const Settings ours = of(servers, {0, 1, 2});
  const std::string q = servers.field(2, "q");
  Report report;
  EXPECT_EQ(adopt(ours, 0, report), REDLOCK_E_NO_QUORUM);
  EXPECT_EQ(report.step, REDLOCK_ADOPT_READ);
  EXPECT_EQ(report.their_masters, 3u);
  EXPECT_EQ(report.their_needed, 2u);
  EXPECT_EQ(report.their_found, 1u);
  EXPECT_EQ(report.err[0], 0);
  EXPECT_EQ(report.err[2], REDLOCK_E_FINGERPRINT);
  EXPECT_EQ(servers.field(2, "q"), q);
  EXPECT_FALSE(servers[0].exists("redlock::meta"));
  EXPECT_EQ(other.status().masters_up, 3u);
  servers[3].kill_hard();
  servers[4].kill_hard();
  EXPECT_EQ(adopt(ours, REDLOCK_ADOPT_REST_IS_GONE, report), 0);
  EXPECT_EQ(report.adopted, 1u);
  EXPECT_FALSE(servers[0].exists("redlock::meta"));
  Client gateway(loop, ours);
  gateway.wait_up(3);
}

// kill -9 between mark and enter.
void adopt_and_die(Servers& servers, Loop& loop, const Settings& settings, uint32_t flags) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(adopt(settings, flags) == 0 ? 0 : 1);
  EXPECT_TRUE(loop.run_until([&] { return servers.marked(0); }));
  ::kill(pid, SIGKILL);
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(servers.marked(0));
}

// The other site has a quorum beside server 0, which has two addresses here. By its record it is one master; and by its
// run id, when the record bears a mark, which is the same on all servers of a call.
TEST(Adopt, OneServerIsOneMasterByWhateverAddress) {
  Servers servers(3);
  Proxy proxy(servers[0].port());
  Loop loop;
  Client other(loop, of(servers, {0, 1, 2}, true));
  other.wait_up(3);
  Settings ours = of(servers, {0});
  ours.urls.push_back(proxy.url());
  Report report;
  EXPECT_EQ(adopt(ours, 0, report), REDLOCK_E_NO_QUORUM);
  EXPECT_EQ(report.their_found, 1u);
  EXPECT_EQ(report.err[0], REDLOCK_E_FINGERPRINT);
  EXPECT_EQ(report.err[1], REDLOCK_E_FINGERPRINT);
  EXPECT_FALSE(servers.marked(0));
  EXPECT_EQ(other.status().masters_up, 3u);
  adopt_and_die(servers, loop, ours, REDLOCK_ADOPT_REST_IS_GONE);
  EXPECT_EQ(adopt(ours, 0, report), REDLOCK_E_NO_QUORUM);
  EXPECT_EQ(report.step, REDLOCK_ADOPT_READ);
  EXPECT_EQ(report.their_found, 1u);
  EXPECT_EQ(adopt(ours, REDLOCK_ADOPT_REST_IS_GONE, report), 1);
  EXPECT_EQ(report.err[1], REDLOCK_E_DUPLICATE);
}

TEST(Adopt, ACallThatWasKilledIsRepeated) {
  Servers servers(2);
  Loop loop;
  Client test_program(loop, of(servers, {0}, true));
  test_program.wait_up(1);
  const Settings ours = of(servers, {0, 1});
  adopt_and_die(servers, loop, ours, 0);
  test_program.wait_master_err(0, REDLOCK_E_FINGERPRINT);
  const int64_t began = boot_ns();
  EXPECT_EQ(adopt(ours), 0);
  EXPECT_GE(boot_ns() - began, wait_ms * 1'000'000) << "the whole time again";
  Client gateway(loop, ours);
  gateway.wait_up(2);
  EXPECT_EQ(test_program.acquire("bus", held()).first(REDLOCK_EV_FAILED).err, REDLOCK_E_GUARD);
}

TEST(Adopt, OfTwoAdoptersOneGoesOn) {
  Servers servers(1);
  Loop loop;
  Client test_program(loop, of(servers, {0}, true));
  test_program.wait_up(1);
  Settings ours = of(servers, {0});
  ours.names = {"another name"};
  Call one(ours);
  EXPECT_TRUE(loop.run_until([&] { return servers.marked(0); }));
  Call other(ours);
  EXPECT_TRUE(loop.run_until([&] { return one.done && other.done; }));
  EXPECT_EQ(one.result, REDLOCK_E_CHANGING);
  EXPECT_EQ(one.report.err[0], REDLOCK_E_CHANGING);
  EXPECT_EQ(other.result, 0);
  Client gateway(loop, ours);
  gateway.wait_up(1);
}

int reconfigure(const Settings& before, const Settings& after) {
  redlock_config_t *old_cfg = configure(before), *new_cfg = configure(after);
  const int result = redlock_reconfigure(old_cfg, new_cfg, nullptr);
  redlock_config_free(old_cfg);
  redlock_config_free(new_cfg);
  return result;
}

// A change between the same configurations begins while an adoption waits, and takes over. The other way round, the
// adoption refuses: a change also marks masters that were never of the old set.
TEST(Adopt, AgainstAChangeOfMasters) {
  Servers servers(3);
  Loop loop;
  Client test_program(loop, of(servers, {0}, true));
  test_program.wait_up(1);
  const Settings before = of(servers, {0}), after = of(servers, {0, 1, 2});
  Call adopter(after);
  EXPECT_TRUE(loop.run_until([&] { return servers.marked(0); }));
  Call change([&](Call&) { return reconfigure(before, after); });
  EXPECT_TRUE(loop.run_until([&] { return servers.marked(1); }));
  Report report;
  EXPECT_EQ(adopt(after, 0, report), REDLOCK_E_CHANGING);
  EXPECT_EQ(report.err[1], REDLOCK_E_CHANGING);
  EXPECT_TRUE(loop.run_until([&] { return adopter.done && change.done; }));
  EXPECT_EQ(adopter.result, REDLOCK_E_CHANGING);
  EXPECT_EQ(change.result, 0);
  EXPECT_EQ(adopt(after), 0);
  Client gateway(loop, after);
  gateway.wait_up(3);
}

TEST(Adopt, BadInputSaysWhatIsWrong) {
  Servers servers(1);
  Settings off = of(servers, {0});
  off.strings = {{"guard", "off"}};
  redlock_config_t* cfg = configure(off);
  EXPECT_EQ(redlock_adopt(cfg, 0, nullptr, nullptr, nullptr), REDLOCK_E_CONFIG);
  EXPECT_NE(std::string(redlock_config_error(cfg)).find("guard:"), std::string::npos);
  EXPECT_EQ(redlock_adopt(nullptr, 0, nullptr, nullptr, nullptr), REDLOCK_E_INVAL);
  EXPECT_EQ(redlock_adopt(cfg, 2, nullptr, nullptr, nullptr), REDLOCK_E_INVAL);
  Report report{};
  EXPECT_EQ(redlock_adopt(cfg, 0, nullptr, nullptr, &report), REDLOCK_E_INVAL);
  redlock_config_free(cfg);
  const Settings good = of(servers, {0});
  EXPECT_EQ(adopt(good), 0) << "a server without a record";
  EXPECT_FALSE(servers[0].exists("redlock::meta"));
  servers[0].command({"HSET", "redlock::meta", "desc", "v2 of a later version", "q", "0123456789abcdef"});
  EXPECT_EQ(adopt(good, REDLOCK_ADOPT_REST_IS_GONE), REDLOCK_E_FINGERPRINT);
  servers[0].kill_hard();
  EXPECT_EQ(adopt(good), REDLOCK_E_NO_QUORUM);
}

}  // namespace
}  // namespace redlock::test
