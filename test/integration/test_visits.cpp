// SPDX-License-Identifier: MIT
//
// Clients that live for less than a guard time watch a restarted master together, by the two times that the first one
// leaves on it: on the clocks of a machine, in time namespaces, and where two machines have one boot id.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <functional>

#include "guard_site.hpp"

namespace redlock::test {
namespace {

const std::string seen = "redlock::seen";

std::string boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}
int64_t boot_ms() { return boot_ns() / 1'000'000; }

RedisServer::Options that_keeps_everything() {
  RedisServer::Options options;
  options.args = {"--appendonly", "yes", "--appendfsync", "always"};
  return options;
}

class Visits : public ::testing::Test {
 protected:
  // A client that lives for three tenths of the guard time. True: the master was admitted meanwhile.
  bool short_life() {
    Client client(site.loop, site.settings(false));
    return site.loop.run_until([&] { return client.status().masters_up == 1; },
                               static_cast<int>(site.guard_ns() * 3 / 10'000'000));
  }
  std::string visits() { return site[0].command({"HLEN", seen}); }
  // The state as a visit names it: "replication id:quarantine id".
  std::string state() {
    const std::string info = site[0].command({"INFO", "replication"});
    const size_t at = info.find("master_replid:") + 14;
    return info.substr(at, 16) + ":" + site.record(0, "q");
  }
  // TIME, at most a second later than it is.
  int64_t server_ms() { return (std::stoll(site[0].command({"TIME"})) + 1) * 1'000; }
  void leave_word(int64_t ms, int64_t at_the_server_ms) {
    site[0].command({"HSET", seen, boot_id(),
                     state() + " " + std::to_string(ms) + " " + std::to_string(at_the_server_ms)});
  }
  // A state that nobody has watched yet.
  void begin_a_state() {
    Client client(site.loop, site.settings(false));
    EXPECT_TRUE(site.loop.run_until([&] { return site[0].exists(seen); }));
    site[0].command({"DEL", seen});
  }
  Site site{1, 1'500, that_keeps_everything()};
};

TEST_F(Visits, ShortLivesAddUp) {
  Client(site.loop, site.settings()).wait_up(1);
  site[0].kill_hard();
  site[0].restart();
  const int64_t restarted = boot_ns();
  int lives = 1;
  while (!short_life() && lives < 40) ++lives;
  const int64_t took = boot_ns() - restarted;
  EXPECT_LT(lives, 40) << "such a site never gets its master back";
  EXPECT_GE(took, site.guard_ns()) << "a lock of before may be held";
  EXPECT_GE(took, site.guard_ns() / 8 * 9) << "the clock that is read may have been slewed";
  EXPECT_EQ(visits(), "0") << "the seal makes visits void";
  std::printf("admitted after %d lives and %.3f guard times\n", lives, double(took) / double(site.guard_ns()));
}

// In a process of its own, whose clocks have an offset; its result is what the work returns. -1: not permitted here.
int in_a_time_namespace(const char* offsets, const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWTIME) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWTIME) != 0) _exit(99);
    std::ofstream("/proc/self/timens_offsets") << offsets << std::flush;
    // Only a child is in the new namespace.
    const pid_t inside = fork();
    if (inside == 0) _exit(work());
    int status = 0;
    waitpid(inside, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 98);
  }
  int status = 0;
  waitpid(child, &status, 0);
  const int result = WIFEXITED(status) ? WEXITSTATUS(status) : 98;
  return result == 99 ? -1 : result;
}

// A container's clock may be told to run ahead of the machine's.
TEST_F(Visits, NoneInATimeNamespace) {
  begin_a_state();
  int within_ms = 100;
  const auto admitted_at_once = [&] {
    Loop loop;
    Client client(loop, site.settings(false));
    if (!loop.run_until([&] { return client.status().guard_ms > 0 || client.status().masters_up == 1; })) return 2;
    return loop.run_until([&] { return client.status().masters_up == 1; }, within_ms) ? 1 : 0;
  };
  const int result = in_a_time_namespace("boottime 1000000 0\n", admitted_at_once);
  if (result == -1) GTEST_SKIP() << "time namespaces are not permitted here";
  EXPECT_EQ(result, 0);
  EXPECT_EQ(visits(), "0") << "none is written";
  leave_word(boot_ms() - 10'000, server_ms() - 10'000);
  EXPECT_EQ(in_a_time_namespace("boottime 1000000 0\n", admitted_at_once), 0) << "none is read";
  within_ms = 1'000;  // less than a guard time
  EXPECT_EQ(in_a_time_namespace("boottime 0 0\n", admitted_at_once), 1)
      << "without an offset it is the machine's clock";
}

// ---- two machines with one boot id ---------------------------------------------------------------------------------

// What the library reads of a machine, as another machine would tell it. False: not permitted here.
bool see_another_machine(const std::string& id) {
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  if (mount("none", "/proc", "tmpfs", 0, nullptr) != 0) return false;
  for (const char* folder : {"/proc/self", "/proc/sys", "/proc/sys/kernel", "/proc/sys/kernel/random"}) {
    if (mkdir(folder, 0755) != 0) return false;
  }
  std::ofstream("/proc/self/timens_offsets") << "monotonic           0         0\nboottime            0         0\n";
  std::ofstream("/proc/sys/kernel/random/boot_id") << id << "\n";
  return true;
}

// A board without entropy draws the boot id that its neighbour has drawn. The other board is up for an hour longer.
// The holder stands still, and a quorum of its masters restarts empty.
TEST(VisitsOfTwoMachines, OneBootIdAndAnHourBetweenThemAdmitNobody) {
  Site site(3, 5'000);
  UpClient a(site.loop, site.settings());
  Lock& held = a.hold("bus", site.longest());
  const int64_t deadline = redlock_deadline_ns(a.get(), held.handle);
  for (const unsigned m : {0u, 1u}) {
    site[m].kill_hard();
    site[m].restart();
  }
  const auto left = [&](unsigned m) { return site[m].command({"HGET", seen, boot_id()}); };
  ASSERT_TRUE(site.loop.run_until([&] { return left(0).size() > 33 && left(1).size() > 33; })) << "visits";
  const std::string before[] = {left(0), left(1)};

  const std::string id = boot_id();
  const int result = in_a_time_namespace("boottime 3600 0\n", [&] {
    if (unshare(CLONE_NEWNS) != 0 || !see_another_machine(id)) return 2;
    Loop loop;
    Client b(loop, site.settings(false));
    return b.acquire("bus", site.longest(1'000)).has(REDLOCK_EV_ACQUIRED) ? 1 : 0;
  });
  if (result == -1 || result == 2) GTEST_SKIP() << "namespaces are not permitted here";
  EXPECT_EQ(result, 0) << "a second holder";
  EXPECT_LT(boot_ns(), deadline) << "too late to show anything";
  for (const unsigned m : {0u, 1u}) EXPECT_NE(left(m), before[m]) << "the other machine has not left its own";
}

}  // namespace
}  // namespace redlock::test
