// SPDX-License-Identifier: MIT
//
// redlock doctor: what makes a site slow, or a clock wrong, and what it sees of its own machine.
#include <arpa/inet.h>
#include <poll.h>

#include <atomic>

#include "tool_doctor.hpp"

namespace redlock::test {
namespace {

// A network between: each piece of a reply comes 10 ms later.
class SlowRelay {
 public:
  explicit SlowRelay(uint16_t server) : server_(server), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in own = address(0);
    socklen_t size = sizeof own;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&own), sizeof own), 0);
    EXPECT_EQ(::listen(listener_, 16), 0);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&own), &size);
    port_ = ntohs(own.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  SlowRelay(const SlowRelay&) = delete;
  SlowRelay& operator=(const SlowRelay&) = delete;
  ~SlowRelay() {
    stop_ = true;
    thread_.join();
    ::close(listener_);
  }
  uint16_t port() const { return port_; }

 private:
  static sockaddr_in address(uint16_t port) {
    sockaddr_in out{};
    out.sin_family = AF_INET;
    out.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    out.sin_port = htons(port);
    return out;
  }
  // One connection after the other.
  void run() {
    while (!stop_) {
      if (!is_readable(listener_)) continue;
      const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const sockaddr_in to = address(server_);
      if (::connect(server, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) relay(client, server);
      ::close(client);
      ::close(server);
    }
  }
  void relay(int client, int server) {
    while (!stop_) {
      if (is_readable(client, 1) && !copy(client, server)) return;
      if (!is_readable(server, 1)) continue;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      if (!copy(server, client)) return;
    }
  }
  static bool is_readable(int fd, int ms = 20) {
    pollfd wanted = {fd, POLLIN, 0};
    return ::poll(&wanted, 1, ms) > 0;
  }
  static bool copy(int from, int to) {
    char bytes[65536];
    const ssize_t size = ::recv(from, bytes, sizeof bytes, 0);
    return size > 0 && ::send(to, bytes, static_cast<size_t>(size), MSG_NOSIGNAL) == size;
  }

  const uint16_t server_;
  const int listener_;
  uint16_t port_ = 0;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

TEST(ToolFit, ASlowNetworkIs70) {
  ToolMasters site(1);
  commission(site, site.file({0}));
  SlowRelay relay(site[0].port());
  const std::string config = site.dir + "/slow.json";
  std::ofstream(config) << R"({"masters": [{"url": "redis://127.0.0.1:)" << relay.port() << R"(", "name": "m0"}],)"
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

TEST(ToolFit, APasswordThatOthersCanReadIs78) {
  ToolMasters site(1);
  const std::string config = site.file({0}, R"(, "password": "pw")");
  site[0].command({"CONFIG", "SET", "requirepass", "pw"});
  commission(site, config);
  ::chmod(config.c_str(), 0644);
  const Ended ended = site.run({"doctor", "-v"}, config);
  EXPECT_EQ(ended.status, 78) << ended.out;
  EXPECT_NE(ended.err.find(config + ": others can read its password; type: chmod o-r"), std::string::npos) << ended.err;
}

}  // namespace
}  // namespace redlock::test
