// SPDX-License-Identifier: MIT
//
// A firewall between a gateway and its masters, while a command runs under `redlock run`: each in a network namespace
// of its own, with a router between them. The router's route to a master becomes one that drops every packet, or
// rejects it, as a firewall does. The namespaces have no names: they are gone with the processes in them.
#include <gtest/gtest.h>
#include <sched.h>

#include <utility>

#include "tool_masters.hpp"
#include "tool_site.hpp"

namespace redlock::test {
namespace {

class Namespace {
 public:
  explicit Namespace(int fd = -1) : fd_(fd) {}
  Namespace(Namespace&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Namespace& operator=(Namespace&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Namespace() {
    if (fd_ >= 0) ::close(fd_);
  }
  static Namespace current() { return Namespace(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)); }
  void enter() const { EXPECT_EQ(::setns(fd_, CLONE_NEWNET), 0); }
  std::string path() const { return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

// This process, and what it starts, is in the namespace for the life of the object.
class Inside {
 public:
  explicit Inside(const Namespace& space) : before_(Namespace::current()) { space.enter(); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() { before_.enter(); }

 private:
  Namespace before_;
};

// A gateway, a router and three masters.
class Plant {
 public:
  static constexpr unsigned gateway = 3;

  explicit Plant(const char* kind) : kind_(kind) {}
  // False: the machine does not allow it.
  bool build() {
    if (!make(router_)) return false;
    Inside in(router_);
    std::ofstream forward("/proc/sys/net/ipv4/ip_forward");
    if (!(forward << "1" << std::flush)) return false;
    for (unsigned i = 0; i < 4; ++i) {
      if (!make(ends_[i]) || !connect(i)) return false;
    }
    return true;
  }
  void start_masters() {
    for (unsigned m = 0; m < 3; ++m) {
      Inside in(ends_[m]);
      RedisServer::Options options;
      options.args = {"--bind", "0.0.0.0", "--protected-mode", "no"};
      servers_.push_back(std::make_unique<RedisServer>(options));
    }
    dir = servers_[0]->dir();
    config_ = dir + "/redlock.json";
    std::ofstream file(config_);
    for (unsigned m = 0; m < 3; ++m) {
      file << (m == 0 ? R"({"client_name": "gw-1", "masters": [{"url": ")" : R"(, {"url": ")")
           << servers_[m]->url_for_host(address(m)) << R"(", "name": "m)" << m << "\"}";
    }
    file << R"(], "defaults": {"ttl_ms": 2400}, "timing": {"max_ttl_ms": 2400, "node_timeout_ms": 500,)"
         << R"( "connect_timeout_ms": 300, "suspect_close_ms": 1000}})";
  }
  std::unique_ptr<Program> start(const Words& arguments) const {
    Inside in(ends_[gateway]);
    Words words = redlock_words({arguments[0], "-C", config_});
    words.insert(words.end(), arguments.begin() + 1, arguments.end());
    return std::make_unique<Program>(words, dir);
  }
  void block(unsigned m) { EXPECT_TRUE(route("add", m)); }
  void unblock(unsigned m) { EXPECT_TRUE(route("del", m)); }
  std::string command(unsigned m, const Words& words) {
    Inside in(ends_[m]);
    return servers_[m]->command(words);
  }
  const char* kind() const { return kind_; }

  std::string dir;

 private:
  static bool make(Namespace& out) {
    const Namespace before = Namespace::current();
    if (::unshare(CLONE_NEWNET) != 0) return false;
    out = Namespace::current();
    before.enter();
    return true;
  }
  static std::string address(unsigned i) { return "10.77." + std::to_string(i) + ".2"; }
  static bool ip(const std::string& words) { return std::system(("ip " + words + " 2>/dev/null").c_str()) == 0; }
  bool connect(unsigned i) const {
    const std::string link = "r" + std::to_string(i), hop = "10.77." + std::to_string(i) + ".1";
    if (!ip("link add name " + link + " type veth peer name eth0 netns " + ends_[i].path()) ||
        !ip("addr add " + hop + "/24 dev " + link) || !ip("link set " + link + " up")) {
      return false;
    }
    Inside in(ends_[i]);
    return ip("link set lo up") && ip("addr add " + address(i) + "/24 dev eth0") && ip("link set eth0 up") &&
           ip("route add default via " + hop);
  }
  bool route(const std::string& what, unsigned m) const {
    Inside in(router_);
    return ip("route " + what + " " + kind_ + " " + address(m) + "/32");
  }

  const char* kind_;
  Namespace router_, ends_[4];
  std::vector<std::unique_ptr<RedisServer>> servers_;
  std::string config_;
};

// A plant with a command under the lock `bus`.
struct Trial {
  explicit Trial(const char* kind) : plant(kind) {}
  void begin() {
    plant.start_masters();
    // A slow machine's masters may not answer within its time: then it wants to be repeated.
    ASSERT_TRUE(eventually([this] { return plant.start({"commission", "--yes"})->exit_status() == 0; }));
    board = std::make_unique<Board>(plant.dir + "/board");
    run = plant.start({"run", "bus", "--", REDLOCK_WITNESS, board->file(), "1"});
    ASSERT_TRUE(board->acts()) << run->err();
  }
  // An extend has reached this master. A key that was put back counts from then on.
  bool is_renewed(unsigned m) {
    int64_t before = INT64_MAX;
    return eventually([&] {
      const int64_t left = std::stoll(plant.command(m, {"PTTL", "bus"}));
      const int64_t last = std::exchange(before, left);
      return last > 0 && left > last;
    });
  }
  bool acts() {
    const uint32_t before = (*board)->acts;
    return eventually([&] { return (*board)->acts > before; });
  }
  void look() {
    looked_ns = boot_ns();
    status = plant.start({"status", "bus"});
    doctor = plant.start({"doctor", "-v"});
  }

  Plant plant;
  std::unique_ptr<Board> board;
  std::unique_ptr<Program> run, status, doctor;
  int64_t end_ns = 0, looked_ns = 0;
};

TEST(ToolFirewall, DropsAndRejectsOneMasterAndThenTwo) {
  Trial trials[] = {Trial("blackhole"), Trial("prohibit")};
  for (Trial& trial : trials) {
    if (!trial.plant.build()) GTEST_SKIP() << "no network namespaces, no veth or no ip here";
  }
  for (Trial& trial : trials) {
    SCOPED_TRACE(trial.plant.kind());
    trial.begin();
    if (HasFatalFailure()) return;
  }
  for (Trial& trial : trials) {  // the lock does not need the first master
    SCOPED_TRACE(trial.plant.kind());
    for (const unsigned m : {1u, 2u}) ASSERT_TRUE(trial.is_renewed(m));
    trial.plant.block(0);
  }
  for (Trial& trial : trials) {  // the key ends where no extend arrives; the lock goes on
    SCOPED_TRACE(trial.plant.kind());
    ASSERT_TRUE(eventually([&] { return trial.plant.command(0, {"EXISTS", "bus"}) == "0"; }));
    EXPECT_TRUE(trial.acts());
    trial.look();
  }
  for (Trial& trial : trials) {
    SCOPED_TRACE(trial.plant.kind());
    EXPECT_EQ(trial.status->exit_status(), 75);
    EXPECT_TRUE(has(trial.status->out(), "2 of 3 masters vote")) << trial.status->out();
    EXPECT_TRUE(has(trial.status->out(), "\nbus: held by gw-1 on 2/3, ends in ")) << trial.status->out();
    EXPECT_EQ(trial.doctor->exit_status(), 0) << trial.doctor->out();
    EXPECT_TRUE(has(trial.doctor->out(), "warn    reach       m0: ")) << trial.doctor->out();
    EXPECT_TRUE(trial.acts());
    trial.plant.block(1);
    const int64_t left_ms = std::stoll(trial.plant.command(1, {"PTTL", "bus"}));  // nothing can raise it any more
    trial.end_ns = boot_ns() + (left_ms - ToolSite::drift_ms) * ns_per_ms;
    trial.look();
  }
  for (Trial& trial : trials) {
    SCOPED_TRACE(trial.plant.kind());
    EXPECT_EQ(trial.run->exit_status(), 79) << trial.run->err();
    EXPECT_LT((*trial.board)->last_act_ns, trial.end_ns) << "CMD acted when somebody else could hold the lock";
    EXPECT_TRUE(trial.board->is_abandoned());
    EXPECT_EQ(trial.status->exit_status(), 69);
    EXPECT_TRUE(has(trial.status->out(), "\nm2  ")) << trial.status->out();
    EXPECT_TRUE(has(trial.status->out(), "\nbus: unknown: ")) << trial.status->out();
    EXPECT_TRUE(has(trial.status->out(), "2/3 did not answer")) << trial.status->out();
    EXPECT_EQ(trial.doctor->exit_status(), 69);
    EXPECT_TRUE(has(trial.doctor->out(), "fail    reach       m1: ")) << trial.doctor->out();
    EXPECT_TRUE(has(trial.doctor->out(), "ok      reach       m2: ")) << trial.doctor->out();
    EXPECT_LT(boot_ns() - trial.looked_ns, 30'000 * ns_per_ms) << "far less than TCP tries by itself";
    trial.plant.unblock(1);
    trial.run = trial.plant.start({"run", "-w", "20", "bus", "--", "true"});
  }
  for (Trial& trial : trials) {
    SCOPED_TRACE(trial.plant.kind());
    EXPECT_EQ(trial.run->exit_status(), 0) << "two masters are enough again: " << trial.run->err();
  }
}

}  // namespace
}  // namespace redlock::test
