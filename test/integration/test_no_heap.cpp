// SPDX-License-Identifier: MIT
//
// After create the heap is left alone: test/size/heap_count stands in front of it and sees every call of this process,
// the library's, libuv's and the test's own. So the test lets the loop run only inside counted(), where its own code
// stores into what is there already, and does everything else - servers, expectations - outside.
//
// Host names are the exception that redlock.h names.
#include <gtest/gtest.h>
#include <heap_count.h>
#include <redlock/redlock.h>
#include <uv.h>

#include <chrono>
#include <cstdlib>
#include <vector>

#include "support/counted_masters.hpp"

namespace redlock::test {
namespace {

constexpr uint32_t masters_count = CountedMasters::count;

struct Seen {
  unsigned events[REDLOCK_EV_CLOSED + 1] = {};
  int last_lock_event = 0;
  unsigned up = 0;
  uv_loop_t* loop = nullptr;
};

void on_event(redlock_t*, const redlock_event_t* event, void* user) {
  Seen& seen = *static_cast<Seen*>(user);
  ++seen.events[event->type];
  if (event->type < REDLOCK_EV_MASTER) seen.last_lock_event = event->type;
  if (event->type == REDLOCK_EV_MASTER && event->state == REDLOCK_MASTER_UP) ++seen.up;
  uv_stop(seen.loop);  // events come before the loop blocks: it shall look up
}

class NoHeap : public ::testing::Test {
 protected:
  void SetUp() override {
    if (heap_count_total == nullptr) GTEST_SKIP() << "a sanitizer has its own heap";
    masters_.start();
    ASSERT_EQ(uv_loop_init(&loop_), 0);
    seen_.loop = &loop_;
    create();
    counting_ = false;
    ASSERT_TRUE(run_until([this] { return status().masters_up == masters_count; }));
    counting_ = true;
  }

  void TearDown() override {
    if (rl_ == nullptr) return;
    EXPECT_EQ(counted([this] { return redlock_close_async(rl_, 2'000); }), 0);
    EXPECT_TRUE(run_until([this] { return seen_.events[REDLOCK_EV_CLOSED] == 1; }));
    EXPECT_EQ(calls_, 0ul) << "calls of the heap between the first connections and CLOSED";
    EXPECT_EQ(uv_loop_close(&loop_), 0);
  }

  template <class Work>
  auto counted(Work work) -> decltype(work()) {
    const unsigned long before = heap_count_total();
    const auto result = work();
    if (counting_) calls_ += heap_count_total() - before;
    return result;
  }

  template <class Predicate>
  bool run_until(Predicate predicate) {
    return counted([&] {
      const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
      while (!predicate()) {
        if (std::chrono::steady_clock::now() > until) return false;
        uv_run(&loop_, UV_RUN_ONCE);
      }
      return true;
    });
  }

  redlock_status_t status() const {
    redlock_status_t status = {};
    status.size = sizeof status;
    if (redlock_status(rl_, &status) != 0) std::abort();
    return status;
  }

  bool until_told(int type) {
    return run_until([this, type] { return seen_.last_lock_event == type; });
  }

  bool start(const char* name, int32_t wait_ms, uint32_t flags = 0) {
    redlock_acquire_opts_t opts = REDLOCK_ACQUIRE_OPTS_INIT;
    opts.wait_ms = wait_ms;
    opts.flags = flags;
    const redlock_resource_t resource = redlock_resource(name);
    seen_.last_lock_event = 0;
    return counted([&] { return redlock_acquire_async(rl_, &resource, 1, &opts, &lock_); }) == 0;
  }

  bool acquire_and_release() {
    if (!start("bus", 20'000) || !until_told(REDLOCK_EV_ACQUIRED)) return false;
    if (counted([this] { return redlock_check(rl_, lock_, 1); }) != 0) return false;
    if (counted([this] { return redlock_release_async(rl_, lock_); }) != 0) return false;
    return until_told(REDLOCK_EV_RELEASED);
  }

  CountedMasters masters_;
  uv_loop_t loop_{};
  redlock_t* rl_ = nullptr;
  redlock_lock_t lock_{0};
  Seen seen_;
  bool counting_ = true;
  unsigned long calls_ = 0;

 private:
  void create() {
    redlock_config_t* cfg = nullptr;
    masters_.configure(cfg);
    ASSERT_NE(cfg, nullptr);
    redlock_config_set_event(cfg, on_event, &seen_);
    memory_.resize(redlock_memory_size(cfg) / sizeof(max_align_t) + 1);
    ASSERT_EQ(redlock_create_on_loop_in(memory_.data(), memory_.size() * sizeof(max_align_t), &rl_, cfg, &loop_), 0);
    ASSERT_EQ(redlock_commission(rl_), 0);
    redlock_config_free(cfg);
  }

  std::vector<max_align_t> memory_;
};

// A counter that sees nothing would let every test below pass.
TEST(HeapCount, SeesTheProgramLibuvAndCJson) {
  if (heap_count_total == nullptr) GTEST_SKIP() << "a sanitizer has its own heap";
  unsigned long before = heap_count_total();
  void* volatile memory = std::malloc(1);
  std::free(memory);
  EXPECT_EQ(heap_count_total() - before, 2ul);

  before = heap_count_total();
  uv_loop_t loop;
  ASSERT_EQ(uv_loop_init(&loop), 0);
  EXPECT_EQ(uv_loop_close(&loop), 0);
  EXPECT_GE(heap_count_total() - before, 2ul);

  redlock_config_t* cfg = nullptr;
  before = heap_count_total();
  ASSERT_EQ(redlock_config_new(&cfg), 0);
  EXPECT_GE(heap_count_total() - before, 1ul) << "the library's own";
  before = heap_count_total();
  EXPECT_EQ(redlock_config_load_json(cfg, "{\"client_name\":\"gw\"}", 20), 0);
  EXPECT_GE(heap_count_total() - before, 2ul) << "cJSON's";
  redlock_config_free(cfg);
}

TEST_F(NoHeap, TenThousandCycles) {
  for (int i = 0; i < 10'000; ++i) ASSERT_TRUE(acquire_and_release()) << "cycle " << i;
  EXPECT_EQ(seen_.events[REDLOCK_EV_ACQUIRED], 10'000u);
  EXPECT_EQ(seen_.events[REDLOCK_EV_RELEASED], 10'000u);
  EXPECT_EQ(calls_, 0ul);
}

// Connections broken by the server while a lock is held on it: each is made and greeted again. The last master has
// another password each time.
TEST_F(NoHeap, AHundredReconnects) {
  for (unsigned i = 0; i < 100; ++i) {
    ASSERT_TRUE(start("bus", 20'000) && until_told(REDLOCK_EV_ACQUIRED));
    const unsigned up = seen_.up;
    if (i % masters_count == 2) {
      masters_.servers[2]->command({"CONFIG", "SET", "requirepass", "next-" + std::to_string(i)});
      masters_.write_password("next-" + std::to_string(i));
    }
    masters_.servers[i % masters_count]->command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    ASSERT_TRUE(run_until([&] { return seen_.up > up; })) << "reconnect " << i;
    ASSERT_EQ(counted([this] { return redlock_release_async(rl_, lock_); }), 0);
    ASSERT_TRUE(until_told(REDLOCK_EV_RELEASED));
  }
  uint32_t connects = 0;
  for (uint32_t m = 0; m < masters_count; ++m) {
    redlock_master_status_t master = {};
    master.size = sizeof master;
    ASSERT_EQ(redlock_master_status(rl_, m, &master), 0);
    connects += master.connects;
  }
  EXPECT_GE(connects, 100u + masters_count);
  EXPECT_EQ(calls_, 0ul);
}

}  // namespace
}  // namespace redlock::test
