// SPDX-License-Identifier: MIT
//
// After create the heap is left alone in the other modes too: with a thread of the client's own, whose every call
// counts here as well, and behind a descriptor. As in test_no_heap.cpp the test itself touches the heap only outside of
// what is counted.
#include <gtest/gtest.h>
#include <heap_count.h>
#include <poll.h>
#include <pthread.h>
#include <redlock/redlock.h>

#include <memory>
#include <vector>

#include "support/counted_masters.hpp"

namespace redlock::test {
namespace {

constexpr uint32_t masters_count = CountedMasters::count;
constexpr int threads_count = 8;

struct Seen {
  unsigned events[REDLOCK_EV_CLOSED + 1] = {};
  unsigned long calls_at_closed = 0;
};

void on_event(redlock_t*, const redlock_event_t* event, void* user) {
  Seen& seen = *static_cast<Seen*>(user);
  __atomic_fetch_add(&seen.events[event->type], 1u, __ATOMIC_RELAXED);
  if (event->type == REDLOCK_EV_CLOSED) seen.calls_at_closed = heap_count_total();
}

class NoHeapInOtherModes : public ::testing::Test {
 protected:
  void SetUp() override {
    if (heap_count_total == nullptr) GTEST_SKIP() << "a sanitizer has its own heap";
    masters_.start();
    masters_.configure(cfg_);
    ASSERT_NE(cfg_, nullptr);
    redlock_config_set_event(cfg_, on_event, &seen_);
  }
  void TearDown() override { redlock_config_free(cfg_); }

  uint32_t masters_up() const {
    redlock_status_t status = {};
    status.size = sizeof status;
    return redlock_status(rl_, &status) == 0 ? status.masters_up : 0;
  }
  uint32_t connects() const {
    uint32_t sum = 0;
    for (uint32_t m = 0; m < masters_count; ++m) {
      redlock_master_status_t master = {};
      master.size = sizeof master;
      if (redlock_master_status(rl_, m, &master) == 0) sum += master.connects;
    }
    return sum;
  }

  CountedMasters masters_;
  redlock_config_t* cfg_ = nullptr;
  redlock_t* rl_ = nullptr;
  Seen seen_;
};

// ---- a thread of its own -------------------------------------------------------------------------------------------

bool cycles(redlock_t* rl, const char* name, int count) {
  const redlock_resource_t resource = redlock_resource(name);
  redlock_acquire_opts_t opts = REDLOCK_ACQUIRE_OPTS_INIT;
  opts.wait_ms = 20'000;
  opts.retry_delay_ms = 2;
  for (int i = 0; i < count; ++i) {
    redlock_lock_t lock = {0};
    if (redlock_acquire(rl, &resource, 1, &opts, &lock) != 0 || redlock_check(rl, lock, 1) != 0) return false;
    if (redlock_extend(rl, lock, 0) != 0 || redlock_release(rl, lock) != 0) return false;
    if (redlock_acquire_async(rl, &resource, 1, &opts, &lock) != 0 || redlock_cancel(rl, lock) > 0) return false;
    if (redlock_release(rl, lock) != 0) return false;
  }
  return true;
}

struct Worker {
  redlock_t* rl = nullptr;
  pthread_barrier_t* both = nullptr;
  bool well = false;
};

void* work(void* user) {
  Worker& worker = *static_cast<Worker*>(user);
  pthread_barrier_wait(worker.both);
  worker.well = cycles(worker.rl, "bus", 50);
  pthread_barrier_wait(worker.both);
  return nullptr;
}

TEST_F(NoHeapInOtherModes, Thread) {
  ASSERT_EQ(redlock_create(&rl_, cfg_), 0);
  ASSERT_EQ(redlock_commission(rl_), 0);
  while (masters_up() != masters_count) continue;
  pthread_barrier_t both;
  ASSERT_EQ(pthread_barrier_init(&both, nullptr, threads_count + 1), 0);
  Worker workers[threads_count];
  pthread_t threads[threads_count];
  for (int i = 0; i < threads_count; ++i) {
    workers[i] = {rl_, &both, false};
    ASSERT_EQ(pthread_create(&threads[i], nullptr, work, &workers[i]), 0);
  }
  RedisConnection killer = masters_.servers[0]->connect();
  const std::string kill = resp_command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  const uint32_t connects_before = connects();

  const unsigned long before = heap_count_total();
  pthread_barrier_wait(&both);
  pthread_barrier_wait(&both);
  killer.send(kill);
  while (connects() == connects_before || masters_up() != masters_count) continue;
  const bool well = cycles(rl_, "pump", 50);
  const unsigned long after = heap_count_total();

  for (pthread_t thread : threads) pthread_join(thread, nullptr);
  pthread_barrier_destroy(&both);
  for (const Worker& worker : workers) EXPECT_TRUE(worker.well);
  EXPECT_TRUE(well);
  EXPECT_EQ(after - before, 0ul);
  EXPECT_GE(seen_.events[REDLOCK_EV_RELEASED], 50u * (threads_count + 1));

  const unsigned long before_destroy = heap_count_total();
  EXPECT_EQ(redlock_destroy(rl_, 2'000), 0);
  EXPECT_EQ(seen_.calls_at_closed - before_destroy, 0ul) << "up to CLOSED";
}

// ---- behind a descriptor -------------------------------------------------------------------------------------------

template <class Predicate>
bool poll_until(redlock_t* rl, Predicate predicate) {
  while (!predicate()) {
    pollfd wait{redlock_fd(rl), POLLIN, 0};
    if (::poll(&wait, 1, 30'000) != 1) return false;
    const int err = redlock_process(rl);
    if (err != 0) return err == REDLOCK_E_CLOSED && predicate();
  }
  return true;
}

TEST_F(NoHeapInOtherModes, Polled) {
  ASSERT_EQ(redlock_create_polled(&rl_, cfg_), 0);
  ASSERT_EQ(redlock_commission(rl_), 0);
  ASSERT_TRUE(poll_until(rl_, [this] { return masters_up() == masters_count; }));
  RedisConnection killer = masters_.servers[1]->connect();
  const std::string kill = resp_command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  const uint32_t connects_before = connects();
  const redlock_resource_t bus = redlock_resource("bus");
  const auto seen = [this](int type, unsigned count) { return [=, this] { return seen_.events[type] == count; }; };

  const unsigned long before = heap_count_total();
  bool well = true;
  for (unsigned i = 1; i <= 1'000 && well; ++i) {
    redlock_lock_t lock = {0};
    well = redlock_acquire_async(rl_, &bus, 1, nullptr, &lock) == 0 && poll_until(rl_, seen(REDLOCK_EV_ACQUIRED, i)) &&
           redlock_check(rl_, lock, 1) == 0 && redlock_extend_async(rl_, lock, 0) == 0 &&
           poll_until(rl_, seen(REDLOCK_EV_RENEWED, i)) && redlock_release_async(rl_, lock) == 0 &&
           poll_until(rl_, seen(REDLOCK_EV_RELEASED, i));
  }
  killer.send(kill);
  well = well && poll_until(rl_, [&] { return connects() > connects_before && masters_up() == masters_count; });
  well = well && redlock_close_async(rl_, 2'000) == 0;
  EXPECT_TRUE(poll_until(rl_, seen(REDLOCK_EV_CLOSED, 1)));
  EXPECT_TRUE(well);
  EXPECT_EQ(seen_.calls_at_closed - before, 0ul);
  rl_ = nullptr;
}

}  // namespace
}  // namespace redlock::test
