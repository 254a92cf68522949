// SPDX-License-Identifier: MIT
//
// redlock_create() when the system refuses something, on the caller's thread or on the new one: a clear error, and
// nothing is left of it, no thread, no descriptor. The program's own definitions of these functions stand in front of
// libc's.
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "client_harness.hpp"

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)  // which stand in front of libc themselves

namespace redlock::test {
namespace {

enum Call { call_thread, call_condition, call_mutex, call_epoll, call_eventfd, call_timerfd, calls_count };
std::atomic<int> refused{calls_count};
std::atomic<bool> fired{false};

bool refuses(Call call) {
  if (refused != call) return false;
  fired = true;
  return true;
}

}  // namespace
}  // namespace redlock::test

using namespace redlock::test;

extern "C" {

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*main)(void*), void* argument) noexcept {
  return refuses(call_thread) ? EAGAIN : real(&::pthread_create, "pthread_create")(thread, attributes, main, argument);
}
int pthread_cond_init(pthread_cond_t* condition, const pthread_condattr_t* attributes) noexcept {
  return refuses(call_condition) ? ENOMEM : real(&::pthread_cond_init, "pthread_cond_init")(condition, attributes);
}
int pthread_mutex_init(pthread_mutex_t* mutex, const pthread_mutexattr_t* attributes) noexcept {
  return refuses(call_mutex) ? ENOMEM : real(&::pthread_mutex_init, "pthread_mutex_init")(mutex, attributes);
}
int epoll_create1(int flags) noexcept {
  if (!refuses(call_epoll)) return real(&::epoll_create1, "epoll_create1")(flags);
  errno = EMFILE;
  return -1;
}
int eventfd(unsigned count, int flags) noexcept {
  if (!refuses(call_eventfd)) return real(&::eventfd, "eventfd")(count, flags);
  errno = EMFILE;
  return -1;
}
int timerfd_create(int clock, int flags) noexcept {
  if (!refuses(call_timerfd)) return real(&::timerfd_create, "timerfd_create")(clock, flags);
  errno = EMFILE;
  return -1;
}

}  // extern "C"

namespace redlock::test {
namespace {

unsigned entries(const char* folder) {
  DIR* dir = ::opendir(folder);
  unsigned count = 0;
  while (::readdir(dir) != nullptr) ++count;
  ::closedir(dir);
  return count;
}

// A thread that was joined may still be listed for a moment; there is nothing to wait for but the list.
unsigned tasks_down_to(unsigned expected) {
  unsigned count = entries("/proc/self/task");
  for (int tries = 0; count > expected && tries < 5000; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    count = entries("/proc/self/task");
  }
  return count;
}

class Refused : public ::testing::TestWithParam<Call> {
 protected:
  void SetUp() override {
    cfg_ = configure(Settings{{"redis://127.0.0.1:1"}, "test", {}, {}});
    tasks_ = entries("/proc/self/task");
    redlock_t* rl = nullptr;  // once before: libuv keeps what it opens first
    ASSERT_EQ(redlock_create(&rl, cfg_), 0);
    ASSERT_EQ(redlock_destroy(rl, 0), 0);
    ASSERT_EQ(tasks_down_to(tasks_), tasks_);
    descriptors_ = entries("/proc/self/fd");
    fired = false;
    refused = GetParam();
  }
  void TearDown() override {
    refused = calls_count;
    // libuv 1.44's uv_loop_init() itself leaves its epoll descriptor open when its eventfd is refused.
    const unsigned of_libuv = GetParam() == call_eventfd ? 1 : 0;
    EXPECT_LE(entries("/proc/self/fd"), descriptors_ + of_libuv);
    EXPECT_EQ(tasks_down_to(tasks_), tasks_);
    redlock_t* rl = nullptr;
    EXPECT_EQ(redlock_create(&rl, cfg_), 0) << "the next one is well";
    EXPECT_EQ(redlock_destroy(rl, 0), 0);
    EXPECT_EQ(tasks_down_to(tasks_), tasks_);
    redlock_config_free(cfg_);
  }
  redlock_config_t* cfg_ = nullptr;
  unsigned descriptors_ = 0, tasks_ = 0;
};

TEST_P(Refused, Thread) {
  redlock_t* rl = reinterpret_cast<redlock_t*>(this);
  EXPECT_EQ(redlock_create(&rl, cfg_), REDLOCK_E_SYSTEM);
  EXPECT_EQ(rl, nullptr);
  EXPECT_TRUE(fired);
}

TEST_P(Refused, Polled) {
  redlock_t* rl = reinterpret_cast<redlock_t*>(this);
  const int err = redlock_create_polled(&rl, cfg_);
  refused = calls_count;
  if (!fired) {  // it needs no thread and no condition
    EXPECT_EQ(err, 0);
    EXPECT_EQ(redlock_close_async(rl, 0), 0);
    while (redlock_process(rl) != REDLOCK_E_CLOSED) continue;
    return;
  }
  EXPECT_EQ(err, REDLOCK_E_SYSTEM);
  EXPECT_EQ(rl, nullptr);
}

INSTANTIATE_TEST_SUITE_P(Calls, Refused,
                         ::testing::Values(call_thread, call_condition, call_mutex, call_epoll, call_eventfd,
                                           call_timerfd));

// With so many descriptors left; 0: create has returned, and well or with SYSTEM.
int create_with_descriptors_left(unsigned left) {
  redlock_config_t* cfg = configure(Settings{{"redis://127.0.0.1:1"}, "test", {}, {}});
  const int lowest = ::dup(0);
  ::close(lowest);
  const rlimit limit = {static_cast<rlim_t>(lowest) + left, static_cast<rlim_t>(lowest) + left};
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return 2;
  redlock_t* rl = nullptr;
  const int err = redlock_create_polled(&rl, cfg);
  return err == 0 || err == REDLOCK_E_SYSTEM ? 0 : 1;
}

// In a process of its own each time, which has never had a loop: libuv aborts when it cannot open what the first one
// needs.
TEST(FirstLoopDeathTest, IsRefusedWhereDescriptorsAreShort) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (unsigned left = 0; left < 10; ++left) {
    EXPECT_EXIT(::exit(create_with_descriptors_left(left)), ::testing::ExitedWithCode(0), "") << left << " left";
  }
}

}  // namespace
}  // namespace redlock::test

#else
TEST(Refused, NeedsNoSanitizer) { GTEST_SKIP() << "sanitizers stand in front of libc themselves"; }
#endif
