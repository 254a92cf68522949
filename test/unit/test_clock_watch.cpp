// SPDX-License-Identifier: MIT
#include "master/clock_watch.hpp"

#include <gtest/gtest.h>

namespace redlock {
namespace {

using Verdict = ClockWatch::Verdict;

// A server whose clock is read halfway between sent and received.
struct Server {
  ClockWatch watch;
  int64_t wall_us = 1'700'000'000'000'000;
  int64_t ours_us = 1'000'000;
  Duration by;

  // Our clock goes on by `ours`, the server's by `theirs`, in ms; then one sample.
  Verdict after(double ours_ms, double theirs_ms, double round_trip_ms = 1) {
    ours_us += static_cast<int64_t>(ours_ms * 1'000);
    wall_us += static_cast<int64_t>(theirs_ms * 1'000);
    const auto half = static_cast<int64_t>(round_trip_ms * 500);
    return watch.sample(Instant::from_ns((ours_us - half) * 1'000), Instant::from_ns((ours_us + half) * 1'000), wall_us,
                        10'000, by);
  }
  double by_ms() const { return static_cast<double>(by.ns()) / 1e6; }
};

struct WatchedClock : ::testing::Test {
  Server s;
};

TEST(ClockWatch, a_clock_within_the_allowance_is_steady_for_ever) {
  for (const double rate : {0.99, 0.995, 1.0, 1.005, 1.01}) {
    Server s;
    s.after(0, 0);
    for (int i = 0; i < 10'000; ++i) ASSERT_EQ(s.after(5'000, 5'000 * rate), Verdict::steady) << rate << " " << i;
  }
}

TEST(ClockWatch, a_rate_beyond_it_is_told_at_the_next_sample) {
  for (const double rate : {0.92, 0.985, 1.012, 1.08}) {
    Server s;
    s.after(0, 0);
    EXPECT_EQ(s.after(5'000, 5'000 * rate), Verdict::stepped) << rate;
    EXPECT_EQ(s.by.ns() > 0, rate > 1) << rate;
    EXPECT_EQ(s.after(5'000, 5'000 * rate), Verdict::stepped) << rate << ": it still runs off";
  }
}

TEST(ClockWatch, a_step_is_told_once_with_its_size) {
  for (const double step : {3'600'000.0, 1'000.0, 60.0, -60.0, -3'600'000.0}) {
    Server s;
    s.after(0, 0);
    EXPECT_EQ(s.after(5'000, 5'000 + step), Verdict::stepped) << step;
    EXPECT_NEAR(s.by_ms(), step + (step > 0 ? -52 : 52), 2) << "less what the rates may have done";
    EXPECT_EQ(s.after(5'000, 5'000), Verdict::steady) << step << ": the new time is taken as it is";
  }
}

// A server that stood still, or a network that did, answers late: that is not a step.
TEST_F(WatchedClock, a_slow_answer_is_no_step) {
  s.after(0, 0);
  EXPECT_EQ(s.after(20'000, 20'000, 30'000), Verdict::steady);
  EXPECT_EQ(s.after(20'000, 20'000, 1), Verdict::steady);
  EXPECT_EQ(s.after(20'000, 20'000 + 300, 1), Verdict::stepped)
      << "and the wide sample has not made it forget the narrow one";
}

TEST_F(WatchedClock, small_steps_do_not_hide_between_frequent_samples) {
  s.after(0, 0);
  int told = 0;
  for (int i = 0; i < 100; ++i) told += s.after(500, 500 + 10) == Verdict::stepped;  // 2 % fast
  EXPECT_GT(told, 10);
}

}  // namespace
}  // namespace redlock
