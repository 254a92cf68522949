// SPDX-License-Identifier: MIT
//
// The clock over a world in which anything may happen between any two reads: a preemption, a suspend, a slew, a change
// of the suspend count in either direction. Each script of calls runs once for every place and pair of places.
#include "port/clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "port/posix/clock.hpp"

namespace redlock {
namespace {

constexpr int64_t us = 1'000;
constexpr int64_t ms = 1'000'000;
constexpr int64_t uncertainty = Clock<PosixClockSource>::uncertainty_ns;

enum class Happening { nothing, short_preemption, preemption, suspend, brief_suspend, slew_up, slew_down };

struct Incident {
  Happening what = Happening::nothing;
  int before_read = -1;
};

// True time is raw + suspended. BOOT - MONO is suspended + boot_skew.
struct World {
  int64_t raw = 1'000'000 * ms;
  int64_t slewed = 0;  // MONO - RAW
  int64_t suspended = 77 * ms;
  int64_t suspended_at_boottime = 0;  // when that clock was read last
  int64_t boot_skew = 0;
  int64_t rate_ppm = 0;
  int64_t read_cost = 0;  // 0: 20 .. 83 ns by the seed
  int64_t most_slewed = 0;
  uint32_t seed = 1;
  int reads = 0;
  enum { none, raw_clock, monotonic, boottime } broken = none;
  std::vector<Incident> incidents;

  int64_t true_ns() const { return raw + suspended; }
  void pass(int64_t ns) {
    raw += ns;
    slewed += ns * rate_ppm / 1'000'000;
    most_slewed = std::max(most_slewed, slewed);
  }
  void happen(Happening what) {
    switch (what) {
      case Happening::nothing: break;
      case Happening::short_preemption: pass(700 * us); break;
      case Happening::preemption: pass(5 * ms); break;
      case Happening::suspend: suspended += 5'000 * ms; break;
      case Happening::brief_suspend: suspended += 3 * ms; break;
      case Happening::slew_up: rate_ppm = 83'333; break;
      case Happening::slew_down: rate_ppm = -83'333; break;
    }
  }
  void before_read() {
    for (const Incident& incident : incidents) {
      if (incident.before_read == reads) happen(incident.what);
    }
    ++reads;
    seed = seed * 1'664'525 + 1'013'904'223;
    pass(read_cost != 0 ? read_cost : 20 + (seed >> 26));
  }
};

struct FakeSource {
  World* world;
  int64_t monotonic_raw_ns() const {
    world->before_read();
    return world->broken == World::raw_clock ? -1 : world->raw;
  }
  int64_t monotonic_ns() const {
    world->before_read();
    return world->broken == World::monotonic ? -1 : world->raw + world->slewed;
  }
  int64_t boottime_ns() const {
    world->before_read();
    world->suspended_at_boottime = world->suspended;
    return world->broken == World::boottime ? -1 : world->raw + world->slewed + world->suspended + world->boot_skew;
  }
};

using FakeClock = Clock<FakeSource>;

// What one call answered, and what was true when it began and when it returned.
struct Call {
  int64_t now;
  int64_t true_begin;
  int64_t true_end;
  int64_t suspended_begin;
};

bool is_suspend(Happening what) { return what == Happening::suspend || what == Happening::brief_suspend; }
bool is_preemption(Happening what) { return what == Happening::preemption || what == Happening::short_preemption; }

class Script {
 public:
  Script(uint32_t seed, std::vector<Incident> incidents) : clock_(FakeSource{&world_}) {
    world_.seed = seed;
    world_.incidents = incidents;
    for (const Incident& incident : incidents) {
      suspends_ |= is_suspend(incident.what);
      if (is_preemption(incident.what)) hidden_ += 6 * ms;
    }
  }

  // Returns how many raw reads it made.
  int run() {
    EXPECT_TRUE(clock_.start());
    noted_ = world_.suspended_at_boottime;
    driver();
    other_thread();
    driver();
    deadline();
    driver();
    world_.pass(3 * ms);
    other_thread();
    deadline();
    driver();
    other_thread();
    world_.pass(100 * ms);
    driver();
    return world_.reads;
  }

 private:
  Call begin() {
    world_.most_slewed = world_.slewed;
    return Call{0, world_.true_ns(), 0, world_.suspended};
  }
  void end(Call& call, Instant now) {
    call.now = now.ns();
    call.true_end = world_.true_ns();
  }

  void driver() {
    Call call = begin();
    const Reading reading = clock_.read();
    end(call, reading.now);
    if (!readings_.empty()) {
      EXPECT_GE(call.now, readings_.back().now) << "went back";
    }
    if (is_seen(call)) {
      EXPECT_TRUE(reading.jumped) << "a suspend was not seen";
    }
    if (!suspends_) {
      EXPECT_FALSE(reading.jumped) << "nothing had jumped";
    }
    if (reading.jumped) {
      jumped_at_ = readings_.size();
      noted_ = world_.suspended_at_boottime;
    }
    compare(call);
    readings_.push_back(call);
  }

  void other_thread() {
    Call call = begin();
    Instant now;
    const bool agrees = clock_.check(now);
    end(call, now);
    if (!suspends_) {
      EXPECT_TRUE(agrees) << "nothing had jumped";
    }
    if (is_seen(call)) {
      EXPECT_FALSE(agrees) << "a suspend was not seen";
    }
    if (agrees) compare(call);
  }

  // A suspend before this call must be seen in it, unless it is shorter than a preemption that may fall into the call.
  bool is_seen(const Call& call) const { return call.suspended_begin - noted_ > hidden_ + uncertainty; }

  // Time that has passed since any reading is never taken for less than it is, nor for much more.
  void compare(const Call& call) const {
    for (const Call& earlier : readings_) {
      EXPECT_GE(call.now - earlier.now, call.true_begin - earlier.true_end - uncertainty);
      EXPECT_LE(call.now - earlier.now, call.true_end - earlier.true_begin + 2 * uncertainty + hidden_);
    }
  }

  void deadline() {
    constexpr int64_t validity = 9'000 * ms;
    const int64_t least_slewed = world_.slewed - 12 * ms;  // two preemptions between its reads
    for (size_t i = jumped_at_; i < readings_.size(); ++i) {
      begin();
      const int64_t boot = clock_.boottime_ns(Instant::from_ns(readings_[i].now + validity));
      EXPECT_LE(boot, readings_[i].true_end + validity + world_.most_slewed) << "late";
      const int64_t unseen = world_.suspended - readings_[i].suspended_begin;  // then the reading itself was early
      const int64_t earliest = readings_[i].true_begin + validity - validity / 200 + least_slewed - unseen - hidden_ -
                               2 * uncertainty;
      EXPECT_GE(boot, earliest) << "far too early";
    }
  }

  World world_;
  FakeClock clock_;
  std::vector<Call> readings_;
  size_t jumped_at_ = 0;
  bool suspends_ = false;
  int64_t noted_ = 0;   // the suspended time that the clock knows of
  int64_t hidden_ = 0;  // how much of it preemptions may hide
};

constexpr Happening all_happenings[] = {Happening::short_preemption, Happening::preemption, Happening::suspend,
                                        Happening::brief_suspend,    Happening::slew_up,    Happening::slew_down};

TEST(Clock, anything_may_happen_between_any_two_reads) {
  for (uint32_t seed = 1; seed <= 8; ++seed) {
    const int reads = Script(seed, {}).run();
    for (Happening what : all_happenings) {
      for (int place = 0; place < reads + 8; ++place) {
        Script(seed, {{what, place}}).run();
        if (HasFailure()) FAIL() << "happening " << int(what) << " before read " << place << ", seed " << seed;
      }
    }
  }
}

TEST(Clock, two_things_may_happen_between_any_reads) {
  for (uint32_t seed = 1; seed <= 2; ++seed) {
    const int reads = Script(seed, {}).run();
    for (Happening first : all_happenings) {
      for (Happening second : all_happenings) {
        for (int place = 0; place < reads; ++place) {
          for (int later_place = place; later_place < reads + 8; ++later_place) {
            Script(seed, {{first, place}, {second, later_place}}).run();
            if (HasFailure()) {
              FAIL() << "happening " << int(first) << " before read " << place << ", " << int(second) << " before read "
                     << later_place << ", seed " << seed;
            }
          }
        }
      }
    }
  }
}

struct Fixture {
  World world;
  FakeClock clock{FakeSource{&world}};
};

struct AnyClock : ::testing::Test {
  Fixture f;
};

TEST_F(AnyClock, does_not_start_when_every_sample_is_wide) {
  f.world.read_cost = 600 * us;
  EXPECT_FALSE(f.clock.start());
  EXPECT_LE(f.world.reads, 4 * FakeClock::tries);
}

TEST(Clock, does_not_start_when_the_clocks_cannot_be_read) {
  for (auto broken : {World::raw_clock, World::monotonic, World::boottime}) {
    Fixture f;
    f.world.broken = broken;
    EXPECT_FALSE(f.clock.start());
  }
}

TEST_F(AnyClock, starts_when_one_sample_in_a_few_is_narrow) {
  for (int read = 1; read < 4 * (FakeClock::tries - 1); read += 4) {
    f.world.incidents.push_back({Happening::preemption, read});
  }
  EXPECT_TRUE(f.clock.start());
}

TEST_F(AnyClock, costs_four_reads) {
  ASSERT_TRUE(f.clock.start());
  const int before = f.world.reads;
  f.clock.read();
  EXPECT_EQ(f.world.reads - before, 4);
  Instant now;
  EXPECT_TRUE(f.clock.check(now));
  EXPECT_EQ(f.world.reads - before, 8);
}

TEST(Clock, clocks_that_fail_later_are_a_jump_and_never_agree) {
  for (auto broken : {World::raw_clock, World::monotonic, World::boottime}) {
    Fixture f;
    ASSERT_TRUE(f.clock.start());
    const Reading before = f.clock.read();
    f.world.broken = broken;
    Instant now;
    EXPECT_FALSE(f.clock.check(now));
    if (broken != World::boottime) {
      EXPECT_EQ(f.clock.boottime_ns(before.now), 0);
    }
    for (int i = 0; i < 3; ++i) {
      const Reading reading = f.clock.read();
      EXPECT_TRUE(reading.jumped);
      EXPECT_EQ(reading.now, before.now);
    }
  }
}

// While no narrow sample is to be had after a suspend, the jump stays: nothing can be held meanwhile.
TEST_F(AnyClock, a_jump_lasts_until_it_can_be_measured) {
  ASSERT_TRUE(f.clock.start());
  Reading last = f.clock.read();
  f.world.suspended += 5'000 * ms;
  f.world.read_cost = 600 * us;
  for (int i = 0; i < 3; ++i) {
    const int reads = f.world.reads;
    const Reading reading = f.clock.read();
    EXPECT_TRUE(reading.jumped);
    EXPECT_GE(reading.now, last.now);
    EXPECT_LE(f.world.reads - reads, 4 * FakeClock::tries);
    Instant now;
    EXPECT_FALSE(f.clock.check(now));
    last = reading;
  }
  f.world.read_cost = 0;
  EXPECT_TRUE(f.clock.read().jumped);
  Instant now;
  EXPECT_TRUE(f.clock.check(now));
  EXPECT_FALSE(f.clock.read().jumped);
  EXPECT_GE(f.clock.read().now.ns() + uncertainty, f.world.true_ns() - 1 * us);
}

// The count of suspended time falls: a restored process, a kernel that takes it back. Time must neither go back nor
// stand still until the old sum is reached again.
TEST_F(AnyClock, a_jump_down_is_seen_and_time_goes_on) {
  ASSERT_TRUE(f.clock.start());
  const Reading before = f.clock.read();
  f.world.boot_skew = -50 * ms;
  Instant now;
  EXPECT_FALSE(f.clock.check(now));
  f.world.pass(20 * ms);
  const Reading jumped = f.clock.read();
  EXPECT_TRUE(jumped.jumped);
  EXPECT_GE(jumped.now, before.now + Duration::ms(20));
  f.world.pass(20 * ms);
  const Reading after = f.clock.read();
  EXPECT_FALSE(after.jumped);
  EXPECT_GE(after.now, jumped.now + Duration::ms(20));
  EXPECT_TRUE(f.clock.check(now));
}

TEST_F(AnyClock, a_raw_clock_that_falls_back_is_a_jump_and_time_goes_on) {
  ASSERT_TRUE(f.clock.start());
  const Reading before = f.clock.read();
  f.world.raw -= 50 * ms;
  f.world.slewed += 50 * ms;  // only RAW fell
  const Reading jumped = f.clock.read();
  EXPECT_TRUE(jumped.jumped);
  EXPECT_GE(jumped.now, before.now);
  f.world.pass(20 * ms);
  const Reading after = f.clock.read();
  EXPECT_FALSE(after.jumped);
  EXPECT_GE(after.now, jumped.now + Duration::ms(20));
}

TEST_F(AnyClock, a_raw_clock_that_trembles_is_no_jump) {
  ASSERT_TRUE(f.clock.start());
  const Reading before = f.clock.read();
  f.world.raw -= 10 * us;
  f.world.slewed += 10 * us;
  const Reading after = f.clock.read();
  EXPECT_FALSE(after.jumped);
  EXPECT_EQ(after.now, before.now);
}

TEST(Clock, a_deadline_is_not_late_under_slewing_within_the_drift) {
  for (const int rate_ppm : {-5'000, -500, 0, 5'000}) {
    Fixture f;
    ASSERT_TRUE(f.clock.start());
    const Instant until = f.clock.read().now + Duration::ms(10'000);
    const int64_t deadline = f.clock.boottime_ns(until);
    f.world.rate_ppm = rate_ppm;
    f.world.pass(10'000 * ms);
    EXPECT_LE(deadline, f.world.raw + f.world.slewed + f.world.suspended) << "a timer comes too late at " << rate_ppm;
    EXPECT_GE(deadline, f.world.raw + f.world.slewed + f.world.suspended - 101 * ms) << rate_ppm;
  }
}

TEST_F(AnyClock, deadline_of_never_and_of_the_past) {
  ASSERT_TRUE(f.clock.start());
  EXPECT_GT(f.clock.boottime_ns(Instant::never()), INT64_MAX / 2);
  EXPECT_LT(f.clock.boottime_ns(Instant::from_ns(INT64_MIN)), INT64_MIN / 2);
}

TEST_F(AnyClock, boot_time_in_ms) {
  f.world.boot_skew = 0;
  f.world.raw = 2'999'999;
  f.world.read_cost = 0;
  f.world.suspended = 4'000'000'000;
  EXPECT_GE(f.clock.boot_ms(), 4'002);
  EXPECT_LE(f.clock.boot_ms(), 4'003);
  f.world.broken = World::boottime;
  EXPECT_LT(f.clock.boot_ms(), 0) << "and not the time of the boot itself";
}

TEST(PosixClock, the_deadline_of_now_is_boottime) {
  PosixClockSource source;
  Clock<PosixClockSource> clock;
  ASSERT_TRUE(clock.start());
  const Reading reading = clock.read();
  const int64_t deadline = clock.boottime_ns(reading.now);
  const int64_t after = source.boottime_ns();
  EXPECT_LE(deadline, after);
  EXPECT_GT(deadline, 0);
}

// Another thread's check against a driver that stores a new offset all the time. The world's suspends are 2^32 ns and a
// bit, so that half of a number would be off by seconds.
struct SharedWorld {
  std::atomic<int64_t> raw{1'000'000'000};
  std::atomic<int64_t> suspended{0};
};

struct SharedSource {
  SharedWorld* world;
  int64_t monotonic_raw_ns() const { return world->raw.fetch_add(50); }
  int64_t monotonic_ns() const { return world->raw.fetch_add(50); }
  int64_t boottime_ns() const { return world->raw.fetch_add(50) + world->suspended.load(); }
};

TEST(Clock, other_threads_never_see_half_of_an_offset) {
  SharedWorld world;
  Clock<SharedSource> clock(SharedSource{&world});
  ASSERT_TRUE(clock.start());
  std::atomic<bool> done{false};
  std::atomic<int> passed{0};
  auto checker = [&] {
    while (!done.load()) {
      const int64_t suspended = world.suspended.load();
      const int64_t begin = world.raw.load() + suspended;
      Instant now;
      if (!clock.check(now)) continue;
      const int64_t end = world.raw.load() + world.suspended.load();
      ASSERT_GE(now.ns(), begin);
      ASSERT_LE(now.ns(), end + uncertainty * (1 + end / (int64_t{1} << 32)));  // each jump may add its width
      ++passed;
    }
  };
  std::thread one(checker), two(checker);
  constexpr int64_t suspend = (int64_t{1} << 32) + 12'345'678;
  int jumps = 0;
  while (jumps < 3'000 || passed.load() < 3'000) {
    world.suspended += suspend;
    EXPECT_TRUE(clock.read().jumped);
    clock.read();
    if (++jumps > 1'000'000) break;
  }
  done = true;
  one.join();
  two.join();
  EXPECT_GE(passed.load(), 3'000);
}

}  // namespace
}  // namespace redlock
