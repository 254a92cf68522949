// SPDX-License-Identifier: MIT
//
// redlock doctor: what makes a site slow, or a clock wrong, and what it sees of its own machine.
#include <atomic>

#include "support/tcp_peer.hpp"
#include "tool_masters.hpp"

namespace redlock::test {
namespace {

TEST(ToolFit, ASlowNetworkIs70) {
  ToolMasters site(1);
  commission(site, site.file({0}));
  RedisConnection server = site[0].connect();
  TcpPeer slow([&](int, std::string& in, std::string& out) {  // a network between: each reply comes 10 ms later
    for (size_t size = resp_value_size(in); size > 0; size = resp_value_size(in)) {
      server.send(in.substr(0, size));
      in.erase(0, size);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      out += server.receive(1);
    }
    return TcpPeer::Then::keep;
  });
  const std::string config = site.dir + "/slow.json";
  std::ofstream(config) << R"({"masters": [{"url": ")" << slow.url() << R"(", "name": "m0"}],)"
                        << R"( "defaults": {"ttl_ms": 900}, "timing": {"max_ttl_ms": 1000, "node_timeout_ms": 5,)"
                        << R"( "suspect_close_ms": 10000, "connect_timeout_ms": 10000}})";
  const Ended ended = site.run({"doctor", "-v"}, config);
  EXPECT_EQ(ended.status, 70) << ended.out;
  EXPECT_TELLS(ended, "fail", "round_trip", "m0: p50 ");
  EXPECT_TELLS(ended, "fail", "round_trip", " us of 50 cycles; node_timeout_ms 5");
  EXPECT_EQ(ended.err, "redlock: doctor: 1 check(s) failed\n");
}

// A server with a wall clock that is off by so much.
class Clock {
 public:
  explicit Clock(const std::string& path) : path_(path) { set_us(0); }
  void set_us(int64_t us) {
    const int fd = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    EXPECT_EQ(::pwrite(fd, &us, sizeof us, 0), static_cast<ssize_t>(sizeof us));
    ::close(fd);
  }
  RedisServer::Options options() const {
    RedisServer::Options out;
    out.environment = {std::string("LD_PRELOAD=") + REDLOCK_WALL_CLOCK_LIBRARY, "REDLOCK_WALL_CLOCK=" + path_};
    return out;
  }

 private:
  const std::string path_;
};

TEST(ToolFit, AServersClockThatIsOffOrRunsOff) {
  if (std::string(REDLOCK_WALL_CLOCK_LIBRARY).empty()) GTEST_SKIP() << "the servers are of another processor";
  ToolMasters site(1);
  Clock clock(site.dir + "/clock");
  clock.set_us(5'000'000);
  site.servers.push_back(std::make_unique<RedisServer>(clock.options()));
  const std::string config = site.file({1});
  commission(site, config);
  const Ended off = site.run({"doctor", "-v"}, config);
  EXPECT_EQ(off.status, 0) << off.out;
  EXPECT_TELLS(off, "warn", "clock", "m1: 5.0 s ahead of this machine; its rate is right: in ");
  EXPECT_TRUE(has(off.out, "-> compare both with a third clock: chronyc makestep where it is wrong;")) << off.out;
  const Ended quiet = site.run({"doctor", "-q"}, config);  // what is wrong, and nothing else
  EXPECT_EQ(quiet.out.find("ok "), std::string::npos) << quiet.out;
  EXPECT_EQ(quiet.out.find("fit for"), std::string::npos) << quiet.out;
  EXPECT_TELLS(quiet, "warn", "clock", " s ahead of this machine; its rate is right: in ");

  std::atomic<bool> stop{false};
  std::thread stepper([&] {
    for (int64_t us = 5'000'000; !stop; us += 100'000) {
      clock.set_us(us);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  const Ended runs = site.run({"doctor", "-v"}, config);
  stop = true;
  stepper.join();
  EXPECT_EQ(runs.status, 70) << runs.out;
  EXPECT_TELLS(runs, "fail", "clock", "it was off by ");
}

// Where the masters agree it is this machine's clock, which no step of theirs mends.
TEST(ToolFit, ThisMachinesClockIsOffOrOneOfThree) {
  if (std::string(REDLOCK_WALL_CLOCK_LIBRARY).empty()) GTEST_SKIP() << "the servers are of another processor";
  ToolMasters site(1);
  Clock three(site.dir + "/clock"), one(site.dir + "/other");
  three.set_us(-3'600'000'000);
  one.set_us(-3'600'000'000);
  for (const Clock* clock : {&three, &three, &one}) {
    site.servers.push_back(std::make_unique<RedisServer>(clock->options()));
  }
  const std::string config = site.file({1, 2, 3});
  commission(site, config);
  const Ended ours = site.run({"doctor"}, config);
  EXPECT_EQ(ours.status, 0) << ours.out;
  EXPECT_TELLS(ours, "warn", "clock", "this machine's clock is 1 h 0 min ahead of all 3 masters, which agree");
  EXPECT_TRUE(has(ours.out, "-> chronyc makestep here, on this machine\n")) << ours.out;
  EXPECT_FALSE(has(ours.out, "makestep there")) << ours.out;
  EXPECT_FALSE(has(ours.out, ", clock")) << "well at the same time" << ours.out;
  one.set_us(3'600'000'000);
  const Ended both = site.run({"doctor"}, config);
  EXPECT_TELLS(both, "warn", "clock", "this machine's clock is 1 h 0 min ahead of 2 masters, which agree");
  EXPECT_TELLS(both, "warn", "clock", "m3: 2 h 0 min ahead of most masters");
  three.set_us(0);
  const Ended theirs = site.run({"doctor"}, config);
  EXPECT_TELLS(theirs, "warn", "clock", "m3: 1 h 0 min ahead of this machine");
  EXPECT_FALSE(has(theirs.out, "this machine's clock")) << theirs.out;
}

TEST(ToolFit, MemoryThatIsNearlyFullAndASaveThatFailed) {
  ToolMasters site(1);
  RedisServer::Options options;
  options.args = {"--dbfilename", "folder"};
  site.servers.push_back(std::make_unique<RedisServer>(options));
  std::filesystem::create_directory(site[1].dir() + "/folder");  // no file can take its place
  const std::string config = site.file({1});
  commission(site, config);
  site[1].command({"CONFIG", "SET", "maxmemory-policy", "noeviction"});
  const std::string info = site[1].command({"INFO", "memory"});
  const size_t at = info.find("used_memory:") + 12;
  const long long used = std::stoll(info.substr(at, info.find('\r', at) - at));
  site[1].command({"CONFIG", "SET", "maxmemory", std::to_string(used + used / 20)});
  const Ended full = site.run({"doctor", "-v"}, config);
  EXPECT_EQ(full.status, 0) << full.out;
  EXPECT_TELLS(full, "warn", "eviction", " used");
  site[1].command({"CONFIG", "SET", "maxmemory", std::to_string(used / 2)});
  const Ended over = site.run({"doctor", "-v"}, config);
  EXPECT_EQ(over.status, 69) << over.out;
  EXPECT_TELLS(over, "fail", "eviction", ", and more is used");
  const Ended status = site.run({"status"}, config);
  EXPECT_TRUE(has(status.out, "  votes, but is over its maxmemory: it refuses locks\n")) << status.out;
  site[1].command({"CONFIG", "SET", "maxmemory", "0"});

  site[1].command({"BGSAVE"});
  ASSERT_TRUE(eventually([&] { return has(site[1].command({"INFO", "persistence"}), "rdb_last_bgsave_status:err"); }));
  const Ended failed = site.run({"doctor", "-v"}, config);
  EXPECT_EQ(failed.status, 70) << failed.out;
  EXPECT_TELLS(failed, "fail", "persistence", "m1: the last save has failed");
  EXPECT_TRUE(has(failed.out, "(MISCONF)")) << failed.out;
}

// Its files are covered by others, in a mount namespace.
TEST(ToolFit, TheMachinesOwnClockAndSuspend) {
  ToolMasters site(1);
  const std::string config = site.file({0});
  const std::string source = "/sys/devices/system/clocksource/clocksource0", power = "/sys/power";
  commission(site, config);
  std::ofstream(site.dir + "/current_clocksource") << "jiffies\n";
  std::ofstream(site.dir + "/state") << "freeze mem disk\n";
  const auto start = [&](const std::string& cover) {
    const Words shell = {"unshare", "-m", "sh", "-c", cover + " && exec \"$@\" || exit 99", "sh"};
    return std::make_unique<Program>(shell + site.words({"doctor", "-v"}, config), site.dir);
  };
  const std::string bind = "mount --bind " + site.dir + " ";
  const auto coarse = start(bind + source + " && " + bind + power);
  const auto none = start("mount -t tmpfs none " + source + " && mount -t tmpfs none " + power);
  const int status = coarse->exit_status();
  if (status == 99) GTEST_SKIP() << "this user may not mount, or the machine has no such files";
  EXPECT_EQ(status, 0) << coarse->err();
  const Ended with = {status, coarse->out(), coarse->err()};
  EXPECT_TELLS(with, "warn", "gw_clock", "clock source jiffies");
  EXPECT_TELLS(with, "ok", "gw_suspend", "can suspend; ");
  const Ended without = {none->exit_status(), none->out(), none->err()};
  EXPECT_EQ(without.status, 0) << without.err;
  EXPECT_TELLS(without, "unknown", "gw_clock", "does not tell");
  EXPECT_TELLS(without, "unknown", "gw_suspend", "does not tell");
}

}  // namespace
}  // namespace redlock::test
