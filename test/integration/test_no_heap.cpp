// SPDX-License-Identifier: MIT
//
// After create the heap is left alone: test/size/heap_count stands in front of it and sees every call of this process,
// the library's, libuv's and the test's own. So the test lets the loop run only inside counted(), where its own code
// stores into what is there already, and does everything else - servers, expectations - outside.
// Host names are the exception that redlock.h names.
#include <gtest/gtest.h>
#include <heap_count.h>
#include <poll.h>
#include <pthread.h>
#include <redlock/redlock.h>
#include <uv.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "support/redis_server.hpp"

namespace redlock::test {
namespace {

// Three masters, two by TCP and one by unix socket, and a configuration that is patient with a loaded machine and quick
// to connect again.
struct CountedMasters {
  static constexpr uint32_t count = 3;
  std::vector<std::unique_ptr<RedisServer>> servers;
  std::string password_file;  // of the last

  void start() {
    RedisServer::Options unix_socket;
    unix_socket.unix_socket = true;
    unix_socket.password = "first";
    for (uint32_t m = 0; m < count; ++m) {
      servers.push_back(std::make_unique<RedisServer>(m == 2 ? unix_socket : RedisServer::Options{}));
    }
    password_file = servers[2]->dir() + "/password";
    write_password("first");
  }
  void write_password(const std::string& password) const {
    const std::string next = password_file + ".new";
    std::ofstream(next) << password;
    std::filesystem::permissions(next, std::filesystem::perms(0640));
    std::filesystem::rename(next, password_file);
  }

  void configure(redlock_config_t*& cfg) const {
    ASSERT_EQ(redlock_config_new(&cfg), 0);
    const std::string json = R"({"masters":[{"url":"unix://)" + servers[2]->socket_path() +
                             R"(","password_file":")" + password_file + "\"}]}";
    for (uint32_t m = 0; m < 2; ++m) ASSERT_EQ(redlock_config_add_master(cfg, servers[m]->url().c_str()), 0);
    ASSERT_EQ(redlock_config_load_json(cfg, json.data(), json.size()), 0) << redlock_config_error(cfg);
    // What a restarted master may have forgotten cannot be held for longer than max_ttl.
    const struct {
      const char* field;
      uint32_t value;
    } fields[] = {{"timing.max_ttl_ms", 3'000},
                  {"defaults.ttl_ms", 3'000},
                  {"timing.suspect_close_ms", 10'000},
                  {"timing.node_timeout_ms", 2'000},
                  {"timing.reconnect_min_ms", 10},
                  {"timing.reconnect_max_ms", 20}};
    for (const auto& f : fields) ASSERT_EQ(redlock_config_set_u32(cfg, f.field, f.value), 0) << f.field;
  }
};

constexpr uint32_t masters_count = CountedMasters::count;

struct Seen {
  unsigned events[REDLOCK_EV_CLOSED + 1] = {};
  int last_lock_event = 0;
  unsigned up = 0;
  unsigned long calls_at_closed = 0;
  uv_loop_t* loop = nullptr;
};

void on_event(redlock_t*, const redlock_event_t* event, void* user) {
  Seen& seen = *static_cast<Seen*>(user);
  __atomic_fetch_add(&seen.events[event->type], 1u, __ATOMIC_RELAXED);
  if (event->type == REDLOCK_EV_CLOSED) seen.calls_at_closed = heap_count_total();
  if (event->type < REDLOCK_EV_MASTER) seen.last_lock_event = event->type;
  if (event->type == REDLOCK_EV_MASTER && event->state == REDLOCK_MASTER_UP) ++seen.up;
  if (seen.loop != nullptr) uv_stop(seen.loop);  // events come before the loop blocks: it shall look up
}

uint32_t masters_up(const redlock_t* rl) {
  redlock_status_t status = {};
  status.size = sizeof status;
  return redlock_status(rl, &status) == 0 ? status.masters_up : 0;
}

uint32_t connects(const redlock_t* rl) {
  uint32_t sum = 0;
  for (uint32_t m = 0; m < masters_count; ++m) {
    redlock_master_status_t master = {};
    master.size = sizeof master;
    if (redlock_master_status(rl, m, &master) == 0) sum += master.connects;
  }
  return sum;
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
    ASSERT_TRUE(run_until([this] { return masters_up(rl_) == masters_count; }));
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
  EXPECT_GE(connects(rl_), 100u + masters_count);
  EXPECT_EQ(calls_, 0ul);
}

// The other modes: with a thread of the client's own, whose every call counts here as well, and behind a descriptor.
constexpr int threads_count = 8;

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
  while (masters_up(rl_) != masters_count) continue;
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
  const uint32_t connects_before = connects(rl_);

  const unsigned long before = heap_count_total();
  pthread_barrier_wait(&both);
  pthread_barrier_wait(&both);
  killer.send(kill);
  while (connects(rl_) == connects_before || masters_up(rl_) != masters_count) continue;
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
  ASSERT_TRUE(poll_until(rl_, [this] { return masters_up(rl_) == masters_count; }));
  RedisConnection killer = masters_.servers[1]->connect();
  const std::string kill = resp_command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  const uint32_t connects_before = connects(rl_);
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
  well = well && poll_until(rl_, [&] { return connects(rl_) > connects_before && masters_up(rl_) == masters_count; });
  well = well && redlock_close_async(rl_, 2'000) == 0;
  EXPECT_TRUE(poll_until(rl_, seen(REDLOCK_EV_CLOSED, 1)));
  EXPECT_TRUE(well);
  EXPECT_EQ(seen_.calls_at_closed - before, 0ul);
  rl_ = nullptr;
}

}  // namespace
}  // namespace redlock::test
