// SPDX-License-Identifier: MIT
//
// The wall clock is stepped by an hour, forth and back, under a client that holds a lock and under one that waits:
// nobody notices. The program's own clock_gettime() and its kin stand in front of libc's, for the library and for libuv
// alike, and add the step to the wall clock only, as a step of the system's does. The masters' clocks are left alone.
#include <sys/time.h>
#include <time.h>

#include <atomic>

#include "support/redis_server.hpp"
#include "thread_harness.hpp"

namespace redlock::test {
namespace {

std::atomic<time_t> step_s{0};
std::atomic<unsigned> wall_clock_reads{0};

}  // namespace
}  // namespace redlock::test

extern "C" {

int clock_gettime(clockid_t id, timespec* out) noexcept {
  static auto* const next = redlock::test::real(&::clock_gettime, "clock_gettime");
  const int result = next(id, out);
  if (result == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE || id == CLOCK_TAI)) {
    ++redlock::test::wall_clock_reads;
    out->tv_sec += redlock::test::step_s;
  }
  return result;
}

int gettimeofday(timeval* out, void* zone) noexcept {
  static auto* const next = redlock::test::real(&::gettimeofday, "gettimeofday");
  const int result = next(out, zone);
  if (result == 0) out->tv_sec += redlock::test::step_s;
  return result;
}

time_t time(time_t* out) noexcept {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) *out = now.tv_sec;
  return now.tv_sec;
}

}  // extern "C"

namespace redlock::test {
namespace {

TEST(WallClock, TheStepIsSeenByWhoeverReadsIt) {
  const time_t before = ::time(nullptr);
  step_s = 3600;
  EXPECT_GE(::time(nullptr), before + 3600);
  EXPECT_GT(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()), before + 3599);
  timespec monotonic_before = {}, monotonic = {};
  clock_gettime(CLOCK_MONOTONIC, &monotonic_before);
  step_s = 0;
  clock_gettime(CLOCK_MONOTONIC, &monotonic);
  EXPECT_LT(monotonic.tv_sec - monotonic_before.tv_sec, 60);
}

class WallClockStep : public ::testing::TestWithParam<int> {
 protected:
  ~WallClockStep() override { step_s = 0; }
};

TEST_P(WallClockStep, ChangesNothing) {
  Cluster masters(3);
  ThreadClient holder(masters.urls());
  ThreadClient waiter(masters.urls());
  redlock_lock_t held{0}, got{0}, late{0};
  ASSERT_EQ(holder.acquire("bus", held, options(1'500)), 0);
  std::thread thread([&] { EXPECT_EQ(waiter.acquire("bus", got, options(20'000, REDLOCK_WAIT_FOREVER)), 0); });
  EXPECT_TRUE(ThreadClient::eventually([&] { return waiter.status().rounds >= 1; }));
  const int64_t validity = redlock_validity_ms(holder.get(), held);
  const unsigned reads = wall_clock_reads;

  step_s = GetParam();
  EXPECT_EQ(holder.check(held, 1), 0);
  EXPECT_LE(redlock_validity_ms(holder.get(), held), validity);
  EXPECT_GT(redlock_deadline_ns(holder.get(), held), boot_ns());
  // Three renewals come when they would have come, and a budget ends when it would have ended.
  EXPECT_TRUE(ThreadClient::eventually([&] { return holder.count(REDLOCK_EV_RENEWED, held) >= 3; }));
  const int64_t begin = boot_ns();
  EXPECT_EQ(holder.acquire("bus", late, options(1'000, 300)), REDLOCK_E_LOCKED);
  EXPECT_GE(boot_ns() - begin, 290'000'000) << "not at once";
  EXPECT_EQ(holder.check(held, 1), 0);
  EXPECT_EQ(holder.count(REDLOCK_EV_LOST), 0u);
  EXPECT_EQ(holder.status().clock_jumps, 0u);
  EXPECT_EQ(waiter.status().clock_jumps, 0u);

  EXPECT_EQ(holder.release(held), 0);
  thread.join();
  EXPECT_EQ(waiter.check(got, 10'000), 0);
  // A master tells late that the other's key is gone, and the client may be asking for its own just now.
  int err = REDLOCK_E_BUSY;
  EXPECT_TRUE(ThreadClient::eventually([&] { return (err = waiter.extend(got)) != REDLOCK_E_BUSY; }));
  EXPECT_EQ(err, 0);
  EXPECT_EQ(waiter.release(got), 0);
  EXPECT_EQ(wall_clock_reads, reads) << "the library has no use for the wall clock";
}
INSTANTIATE_TEST_SUITE_P(Seconds, WallClockStep, ::testing::Values(3600, -3600));

}  // namespace
}  // namespace redlock::test
