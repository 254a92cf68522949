// SPDX-License-Identifier: MIT
//
// redlock_create() when the system refuses something, on the caller's thread or on the new one: a clear error, and
// nothing is left of it, no thread, no descriptor. The program's own definitions of these functions stand in front of
// libc's.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "client_harness.hpp"

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)  // which stand in front of libc themselves

namespace redlock::test {
namespace {

enum Call { call_thread, call_condition, call_mutex, call_epoll, call_eventfd, call_timerfd, calls_count };
std::atomic<int> refused{calls_count};
std::atomic<bool> fired{false};
std::atomic<pthread_t> opener{};

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
  opener = pthread_self();
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

// The driver has the kernel replace the table of descriptors, which takes some 10 ms where threads share that table.
TEST(Create, OpensTheLoopBeforeItsThread) {
  redlock_config_t* cfg = configure(Settings{{"redis://127.0.0.1:1"}, "test", {}, {}});
  redlock_t* rl = nullptr;
  opener = {};
  ASSERT_EQ(redlock_create(&rl, cfg), 0);
  EXPECT_TRUE(pthread_equal(opener, pthread_self()));
  EXPECT_EQ(redlock_destroy(rl, 0), 0);
  redlock_config_free(cfg);
}

using Create = int (*)(redlock_t**, const redlock_config_t*);
constexpr unsigned descriptors_needed = 8;  // redlock_create() in redlock.h

unsigned open_descriptors(int end) {
  unsigned count = 0;
  for (int fd = 0; fd < end; ++fd) count += ::fcntl(fd, F_GETFD) >= 0;
  return count;
}

// With exactly so many descriptors left; nullptr: create has done what it promises.
const char* create_with_descriptors_left(unsigned left, Create create) {
  redlock_config_t* cfg = configure(Settings{{"redis://127.0.0.1:1"}, "test", {}, {}});
  const rlimit limit = {100, 100};
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return "no limit here";
  int last = 0;
  for (int fd = 0; (fd = ::dup(2)) >= 0;) last = fd;
  for (unsigned i = 0; i < left; ++i) ::close(last - static_cast<int>(i));
  const unsigned before = open_descriptors(100);
  redlock_t* rl = nullptr;
  const int err = create(&rl, cfg);
  const unsigned after = open_descriptors(100);
  if (err != (left < descriptors_needed ? REDLOCK_E_SYSTEM : 0)) return redlock_err_name(err);
  if (err != 0) return rl != nullptr ? "a client" : after != before ? "descriptors are left open" : nullptr;
  if (after > before + descriptors_needed + 1) return "it takes more";  // its thread may have a socket by now
  if (create == redlock_create) {
    if (redlock_destroy(rl, 0) != 0) return "destroy fails";
  } else {
    if (redlock_close_async(rl, 0) != 0) return "close fails";
    while (redlock_process(rl) != REDLOCK_E_CLOSED) continue;
  }
  return open_descriptors(100) > before + 2 ? "more is left open than libuv's signal pipe" : nullptr;
}

// In a process of its own each time, which has never had a loop.
TEST(FirstLoopDeathTest, IsRefusedWhereDescriptorsAreShort) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const Create create : {Create{redlock_create}, Create{redlock_create_polled}}) {
    for (unsigned left = 0; left <= 12; ++left) {
      const auto run = [&] {
        const char* wrong = create_with_descriptors_left(left, create);
        if (wrong != nullptr) std::fprintf(stderr, "%s\n", wrong);
        ::exit(wrong != nullptr);
      };
      EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "") << left << " left";
    }
  }
}

}  // namespace
}  // namespace redlock::test

#else
TEST(Refused, NeedsNoSanitizer) { GTEST_SKIP() << "sanitizers stand in front of libc themselves"; }
#endif
