// SPDX-License-Identifier: MIT
//
// The wall clock of a real redis-server is stepped (support/wall_clock.c, preloaded into the server and into nothing
// else), of one master of three, and of two. Redis ends keys by that clock: a step ahead by an hour ends every lock
// there at once, and nothing but the clock watch tells.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "client_harness.hpp"
#include "support/redis_server.hpp"

namespace redlock::test {
namespace {

constexpr uint32_t max_ttl_ms = 3'000;  // so the clocks are looked at every half second
constexpr int64_t guard_ms = 3'032;
constexpr int64_t hour_us = 3'600'000'000;

// A master and the step of its wall clock, which the server finds in a file without a name.
class SteppedServer {
 public:
  SteppedServer() : fd_(memfd_create("wall-clock", 0)) {
    if (fd_ < 0 || ftruncate(fd_, sizeof *step_) != 0) throw std::runtime_error("memfd");
    void* const shared = mmap(nullptr, sizeof *step_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (shared == MAP_FAILED) throw std::runtime_error("mmap");
    step_ = static_cast<std::atomic<int64_t>*>(shared);
    RedisServer::Options options;
    options.environment = {std::string("LD_PRELOAD=") + REDLOCK_WALL_CLOCK_LIBRARY,
                           "REDLOCK_WALL_CLOCK=/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd_)};
    server_ = std::make_unique<RedisServer>(options);
  }
  ~SteppedServer() {
    server_.reset();
    munmap(step_, sizeof *step_);
    close(fd_);
  }
  void step(int64_t us) { *step_ = us; }
  RedisServer& operator*() { return *server_; }
  RedisServer* operator->() { return server_.get(); }
  int64_t seconds() { return std::stoll(server_->command({"TIME"})); }
  std::string quarantine() { return server_->command({"HGET", "redlock::meta", "q"}); }

 private:
  int fd_;
  std::atomic<int64_t>* step_ = nullptr;
  std::unique_ptr<RedisServer> server_;
};

class ServerClock : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string(REDLOCK_WALL_CLOCK_LIBRARY).empty()) GTEST_SKIP() << "the servers are of another processor";
    for (int i = 0; i < 3; ++i) masters_.push_back(std::make_unique<SteppedServer>());
    a_ = client("a", true);
    a_->wait_up(3);
    b_ = client("b", false);
    b_->wait_up(3);
    for (const auto& master : masters_) ids_.push_back(master->quarantine());
  }

  std::unique_ptr<Client> client(const std::string& name, bool commission) {
    Settings s;
    for (const auto& master : masters_) s.urls.push_back((**master).url());
    s.name = name;
    s.strings = {{"guard", "strict"}};
    s.numbers = {{"defaults.ttl_ms", max_ttl_ms},   {"timing.max_ttl_ms", max_ttl_ms},
                 {"timing.node_timeout_ms", 2'000}, {"timing.suspect_close_ms", 5'000},
                 {"timing.ping_interval_ms", 500}};
    s.commission = commission;
    return std::make_unique<Client>(loop_, s);
  }

  // Until both clients have seen the step of this master.
  void wait_distrusted(uint32_t index) {
    for (Client* c : {a_.get(), b_.get()}) {
      EXPECT_TRUE(loop_.run_until([&] {
        return c->master(index).state == REDLOCK_MASTER_GUARDED && c->master(index).err == REDLOCK_E_WALL_CLOCK;
      })) << "master " << index << ": " << redlock_err_name(c->master(index).err);
    }
  }
  static redlock_acquire_opts_t once() { return options(max_ttl_ms, REDLOCK_TRY_ONCE, REDLOCK_F_NO_RENEW); }

  Loop loop_;
  std::vector<std::unique_ptr<SteppedServer>> masters_;
  std::vector<std::string> ids_;
  std::unique_ptr<Client> a_, b_;
};

// The shim does what it is for: an hour ahead, the key is gone before its time, without a push or an error.
TEST_F(ServerClock, AStepEndsKeysBeforeTheirTime) {
  SteppedServer& master = *masters_[0];
  const int64_t before = master.seconds();
  master->command({"SET", "x", "y", "PX", "60000"});
  EXPECT_TRUE(master->exists("x"));
  master.step(hour_us);
  // Valkey 9 reads its clock once a millisecond.
  EXPECT_TRUE(loop_.run_until([&] { return master.seconds() >= before + 3'600; }));
  EXPECT_FALSE(master->exists("x"));
  EXPECT_LT(masters_[1]->seconds(), before + 600) << "the others' clocks are left alone";
}

// One of three, ahead or back: it has no vote for a guard time, every client is told by a new quarantine id, and a lock
// that two others keep is held on.
class OneStep : public ServerClock, public ::testing::WithParamInterface<int64_t> {};

TEST_P(OneStep, CostsTheMasterItsVoteAndNobodyALock) {
  Lock& held = a_->hold("bus", options(max_ttl_ms));  // renewed
  const int64_t began = boot_ns();
  masters_[0]->step(GetParam());
  wait_distrusted(0);
  EXPECT_GE(a_->status().clock_steps, 1u);
  EXPECT_EQ(a_->check(held), 0);
  EXPECT_FALSE(held.ended());
  Lock& other = b_->acquire("tap", once());
  ASSERT_TRUE(other.has(REDLOCK_EV_ACQUIRED)) << redlock_err_name(other.events.front().err);
  EXPECT_EQ(other.first(REDLOCK_EV_ACQUIRED).granted, 2u);
  EXPECT_EQ(b_->acquire("bus", once()).first(REDLOCK_EV_FAILED).err, REDLOCK_E_LOCKED);
  EXPECT_TRUE(loop_.run_until([&] { return masters_[0]->quarantine() != ids_[0]; })) << "nobody told the other clients";

  a_->wait_up(3);
  b_->wait_up(3);
  EXPECT_GE(boot_ns() - began, guard_ms * 1'000'000);
  EXPECT_EQ(a_->check(held), 0);
  EXPECT_EQ(held.count(REDLOCK_EV_LOST), 0u);
  a_->release(held);
  EXPECT_TRUE(loop_.run_until([&] {
    return !(**masters_[0]).exists("bus") && !(**masters_[1]).exists("bus") && !(**masters_[2]).exists("bus");
  })) << "also where a clock set back would keep it for an hour";
}
INSTANTIATE_TEST_SUITE_P(Hour, OneStep, ::testing::Values(hour_us, -hour_us));

// Two of three: whose clock is wrong, theirs or ours? The lock is over, neither votes for a guard time, and nothing is
// written down for others.
TEST_F(ServerClock, AMajorityThatStepsEndsLocksAndHasNoVote) {
  Lock& held = a_->hold("bus", options(max_ttl_ms));
  const int64_t began = boot_ns();
  for (const unsigned m : {0u, 1u}) masters_[m]->step(hour_us);
  for (const unsigned m : {0u, 1u}) wait_distrusted(m);
  EXPECT_TRUE(loop_.run_until([&] { return held.ended(); }));
  EXPECT_TRUE(held.has(REDLOCK_EV_LOST));
  EXPECT_NE(a_->check(held), 0);
  Lock& refused = b_->acquire("tap", once());
  EXPECT_EQ(refused.first(REDLOCK_EV_FAILED).err, REDLOCK_E_GUARD);
  EXPECT_GT(refused.first(REDLOCK_EV_FAILED).guard_ms, 0);

  b_->hold("bus", options(max_ttl_ms, REDLOCK_WAIT_FOREVER, REDLOCK_F_NO_RENEW));
  EXPECT_GE(boot_ns() - began, guard_ms * 1'000'000) << "no vote before";
  for (const unsigned m : {0u, 1u}) EXPECT_EQ(masters_[m]->quarantine(), ids_[m]);
}

}  // namespace
}  // namespace redlock::test
