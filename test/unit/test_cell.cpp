// SPDX-License-Identifier: MIT
#include "lock/cell.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace redlock {
namespace {

Instant at(int64_t ms) { return Instant::from_ns(ms * 1'000'000); }

// Every word of a value is derived from one number, and successive values differ in every word.
struct Whole {
  uint32_t word[8];
};

Whole whole(uint32_t n) {
  Whole value;
  for (uint32_t i = 0; i < 8; ++i) value.word[i] = n * 2'654'435'761u + i;
  return value;
}

TEST(Latch, readers_never_see_a_torn_value) {
  Latch<Whole> latch;
  latch.write(whole(0));
  std::atomic<bool> done{false};
  std::atomic<unsigned> torn{0};
  std::atomic<unsigned> values{0};
  auto reader = [&] {
    uint32_t last = 0;
    while (!done.load(std::memory_order_relaxed)) {
      const Whole seen = latch.read();
      for (uint32_t i = 0; i < 8; ++i) torn += seen.word[i] != seen.word[0] + i;
      values += seen.word[0] != last;
      last = seen.word[0];
    }
  };
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) readers.emplace_back(reader);
  for (uint32_t n = 1; n < 300'000 || (values.load() < 1'000 && n < 100'000'000); ++n) latch.write(whole(n));
  done = true;
  for (std::thread& thread : readers) thread.join();
  EXPECT_EQ(torn.load(), 0u);
  EXPECT_GE(values.load(), 1'000u);
}

struct ACell : ::testing::Test {
  ValidityCell cell;
};

TEST_F(ACell, tells_all_five) {
  const Duration none = Duration::ms(0);
  EXPECT_EQ(judge(cell, 1, true, at(0), none).held, Held::stale);
  EXPECT_EQ(judge(cell, 0, true, at(0), none).held, Held::stale);
  cell.begin(1);
  EXPECT_EQ(judge(cell, 1, true, at(0), none).held, Held::not_held);
  EXPECT_EQ(judge(cell, 2, true, at(0), none).held, Held::stale);
  ASSERT_TRUE(cell.publish(1, at(100)));
  EXPECT_EQ(judge(cell, 1, true, at(0), none).held, Held::held);
  EXPECT_EQ(judge(cell, 1, true, at(0), none).valid_until, at(100));
  EXPECT_EQ(judge(cell, 1, true, at(40), Duration::ms(60)).held, Held::held);
  EXPECT_EQ(judge(cell, 1, true, at(40), Duration::ns(60'000'001)).held, Held::too_little);
  EXPECT_EQ(judge(cell, 1, true, Instant::from_ns(at(100).ns() - 1), none).held, Held::held);
  EXPECT_EQ(judge(cell, 1, true, at(100), none).held, Held::lost);
  cell.retire(1);
  EXPECT_EQ(judge(cell, 1, true, at(0), none).held, Held::stale);
  cell.begin(2);
  EXPECT_EQ(judge(cell, 1, true, at(0), none).held, Held::stale);
  EXPECT_EQ(judge(cell, 2, true, at(0), none).held, Held::not_held);
  ASSERT_TRUE(cell.publish(2, at(100)));
  EXPECT_EQ(judge(cell, 2, true, at(0), none).held, Held::held);
}

TEST_F(ACell, need_that_overflows_is_too_much) {
  cell.begin(1);
  ASSERT_TRUE(cell.publish(1, Instant::from_ns(INT64_MAX - 1)));
  EXPECT_EQ(judge(cell, 1, true, at(1), Duration::ns(INT64_MAX)).held, Held::too_little);
}

TEST_F(ACell, an_extension_after_a_failed_check_is_refused) {
  cell.begin(7);
  ASSERT_TRUE(cell.publish(7, at(100)));
  EXPECT_EQ(judge(cell, 7, true, at(101), Duration::ms(0)).held, Held::lost);
  EXPECT_TRUE(cell.expired(7));
  EXPECT_FALSE(cell.publish(7, at(200)));
  EXPECT_EQ(judge(cell, 7, true, at(101), Duration::ms(0)).held, Held::lost);
}

TEST_F(ACell, a_clock_that_jumped_ends_a_lock_but_not_an_acquire) {
  cell.begin(3);
  EXPECT_EQ(judge(cell, 3, false, at(0), Duration::ms(0)).held, Held::not_held);
  ASSERT_TRUE(cell.publish(3, at(100)));
  EXPECT_EQ(judge(cell, 3, false, at(0), Duration::ms(0)).held, Held::lost);
  EXPECT_EQ(judge(cell, 3, true, at(0), Duration::ms(0)).held, Held::lost);
  EXPECT_FALSE(cell.publish(3, at(200)));
}

TEST_F(ACell, a_late_mark_of_an_older_generation_takes_nothing_back) {
  cell.begin(5);
  ASSERT_TRUE(cell.publish(5, at(100)));
  cell.retire(5);
  cell.begin(9);
  ASSERT_TRUE(cell.publish(9, at(200)));
  cell.mark_expired(5);
  EXPECT_FALSE(cell.expired(9));
  cell.mark_expired(9);
  cell.mark_expired(5);
  EXPECT_TRUE(cell.expired(9));
  EXPECT_TRUE(cell.expired(5)) << "who read the cell before a new acquire began must not pass after it";
}

TEST_F(ACell, generations_may_pass_32_bits) {
  for (uint64_t generation = 0xFFFF'FFFDu; generation < 0x1'0000'0003u; ++generation) {
    cell.begin(generation);
    ASSERT_TRUE(cell.publish(generation, at(100)));
    EXPECT_EQ(judge(cell, generation, true, at(0), Duration::ms(0)).held, Held::held);
    EXPECT_EQ(judge(cell, generation - 1, true, at(0), Duration::ms(0)).held, Held::stale);
    EXPECT_TRUE(cell.expired(generation - 1));
    EXPECT_EQ(judge(cell, generation, true, at(100), Duration::ms(0)).held, Held::lost);
    EXPECT_FALSE(cell.publish(generation, at(200)));
    cell.retire(generation);
  }
}

// Two threads that meet at the start of each round, as closely as can be: they spin, and give way when they must.
class Meeting {
 public:
  void meet(unsigned round) {
    arrived_.fetch_add(1);
    for (unsigned spins = 0; arrived_.load() < 2 * (round + 1); ++spins) {
      if (spins > 2'000) std::this_thread::yield();
    }
  }

 private:
  std::atomic<unsigned> arrived_{0};
};

// One round: valid until 100, and it is 150. The driver publishes 200 while a check runs. Whatever comes of it, both
// know in the end: a check that failed is never followed by one that passes, and when the driver saw no mark, then the
// check that set one finds the extension in the cell.
TEST(ValidityCell, a_failed_check_and_an_extension_cannot_both_win) {
  constexpr unsigned rounds = 200'000;
  struct Round {
    ValidityCell cell;
    bool check_failed = false;
    bool check_saw_extension = false;
    bool driver_saw_no_mark = false;
  };
  std::vector<Round> round(rounds);
  for (unsigned i = 0; i < rounds; ++i) {
    round[i].cell.begin(i + 1);
    ASSERT_TRUE(round[i].cell.publish(i + 1, at(100)));
  }
  Meeting start;
  auto pause = [](unsigned n) {
    for (unsigned i = 0; i < n; ++i) __asm__ volatile("");
  };
  std::thread checker([&] {
    for (unsigned i = 0; i < rounds; ++i) {
      Round& r = round[i];
      start.meet(i);
      pause(i % 64);
      r.check_failed = judge(r.cell, i + 1, true, at(150), Duration::ms(0)).held == Held::lost;
      r.check_saw_extension = r.cell.read().valid_until == at(200);
    }
  });
  for (unsigned i = 0; i < rounds; ++i) {
    start.meet(i);
    pause(i / 64 % 64);
    round[i].driver_saw_no_mark = round[i].cell.publish(i + 1, at(200));
  }
  checker.join();
  unsigned failed = 0;
  unsigned passed = 0;
  for (unsigned i = 0; i < rounds; ++i) {
    const Round& r = round[i];
    (r.check_failed ? failed : passed) += 1;
    const bool passes_later = judge(r.cell, i + 1, true, at(150), Duration::ms(0)).held == Held::held;
    ASSERT_NE(r.check_failed, passes_later) << "round " << i;
    ASSERT_TRUE(!r.check_failed || !r.driver_saw_no_mark || r.check_saw_extension) << "round " << i;
    ASSERT_TRUE(r.check_failed || r.driver_saw_no_mark) << "round " << i;
  }
  RecordProperty("failed", static_cast<int>(failed));
  RecordProperty("passed", static_cast<int>(passed));
}

// Checks on three threads while the driver extends, ends and begins anew: after the first failure of a generation that
// any of them has returned, none that begins later passes.
TEST_F(ACell, no_check_passes_after_one_has_failed) {
  std::atomic<int64_t> now_ms{0};
  std::atomic<uint64_t> generation{0};
  std::atomic<uint64_t> failed{0};  // the newest generation of which a check has failed
  std::atomic<bool> done{false};
  std::atomic<unsigned> violations{0};
  std::atomic<unsigned> failures{0};
  auto checker = [&] {
    while (!done.load()) {
      const uint64_t mine = generation.load();
      const bool failed_before = failed.load() >= mine;
      const Held held = judge(cell, mine, true, at(now_ms.load()), Duration::ms(0)).held;
      if (held == Held::held && failed_before) ++violations;
      if (held == Held::lost) {
        uint64_t newest = failed.load();
        while (newest < mine && !failed.compare_exchange_weak(newest, mine)) {
        }
        ++failures;
      }
    }
  };
  std::vector<std::thread> checkers;
  for (int i = 0; i < 3; ++i) checkers.emplace_back(checker);
  for (uint64_t g = 1; g < 20'000 || (failures.load() < 1'000 && g < 10'000'000); ++g) {
    cell.begin(g);
    generation = g;
    bool valid = true;
    for (int extension = 0; valid && extension < 8; ++extension) {
      const int64_t now = now_ms.load();
      valid = cell.publish(g, at(now + 2));
      now_ms = now + 1 + extension % 3;
    }
    cell.retire(g);
  }
  done = true;
  for (std::thread& thread : checkers) thread.join();
  EXPECT_EQ(violations.load(), 0u);
  EXPECT_GE(failures.load(), 1'000u);
}

}  // namespace
}  // namespace redlock
