// SPDX-License-Identifier: MIT
//
// The table of handles: what is present, past and unknown, and what a check on another thread sees of a slot.
#include "lock/table.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "lock/due_pages.hpp"

namespace redlock {
namespace {

struct Fixture {
  explicit Fixture(unsigned capacity) : slots(capacity) { table.init(slots.data(), capacity); }

  // What the client does between take() and give_back(), as far as the table is concerned.
  Lock* begin() {
    Lock* lock = table.take();
    if (lock != nullptr) {
      lock->state = State::waiting;
      lock->cell.begin(lock->generation);
    }
    return lock;
  }
  void end(Lock& lock) {
    lock.state = State::over;
    table.give_back(lock);
  }
  Table::Found find(uint64_t handle) {
    Lock* lock = nullptr;
    const Table::Found found = table.find(handle, lock);
    EXPECT_EQ(lock != nullptr, found == Table::Found::present);
    EXPECT_TRUE(lock == nullptr || table.handle(*lock) == handle);
    return found;
  }

  std::vector<Lock> slots;
  Table table;
};

using Found = Table::Found;

TEST(Table, wild_values_name_nothing) {
  Fixture f(3);
  Lock* lock = f.begin();
  const uint64_t handle = f.table.handle(*lock);
  for (const uint64_t wild : {uint64_t{1}, uint64_t{0x10000}, uint64_t{0x10000 + 4}, uint64_t{0x1FFFF}, UINT64_MAX,
                              UINT64_MAX << 16 | 1, handle | uint64_t{1} << 63, handle ^ 3, handle & 0xFFFF}) {
    EXPECT_EQ(f.find(wild), Found::never) << std::hex << wild;
  }
  std::mt19937_64 random(9);
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t wild = random() >> random() % 64;
    ASSERT_TRUE(wild == handle || f.find(wild) == Found::never) << std::hex << wild;
  }
}

TEST(Table, a_handle_of_no_slot_has_no_cell) {
  Fixture f(2);
  for (const uint64_t handle : {uint64_t{0}, uint64_t{3}, UINT64_MAX}) EXPECT_EQ(f.table.cell(handle), nullptr);
}

TEST(Table, generations_grow_past_32_bits) {
  Fixture f(1);
  f.slots[0].generation = UINT32_MAX;
  Lock* lock = f.begin();
  EXPECT_EQ(lock->generation, uint64_t{1} << 32);
  const uint64_t handle = f.table.handle(*lock);
  EXPECT_EQ(Table::generation(handle), uint64_t{1} << 32);
  EXPECT_EQ(f.find(handle), Found::present);
  EXPECT_EQ(f.find(uint64_t{1} << 16 | 1), Found::past);
  EXPECT_EQ(f.find((uint64_t{1} << 32 | 1) << 16 | 1), Found::never);
}

Instant at(int64_t ms) { return Instant::from_ns(ms * 1'000'000); }

struct Due {
  explicit Due(unsigned locks) : memory(DuePages::pages_of(locks)) { pages.init(memory.data(), locks); }
  std::vector<Instant> memory;
  DuePages pages;
};

TEST(DuePages, PagesHoldEachLockOnce) {
  for (unsigned locks : {1u, 63u, 64u, 65u, 128u, 4'096u, 65'534u}) {
    Due f(locks);
    unsigned next = 0;
    for (unsigned page = 0; page < f.pages.pages(); ++page) {
      EXPECT_EQ(f.pages.begin(page), next);
      EXPECT_GT(f.pages.end(page), next);
      EXPECT_LE(f.pages.end(page) - next, DuePages::page_locks);
      next = f.pages.end(page);
    }
    EXPECT_EQ(next, locks);
  }
}

TEST(DuePages, APageIsDueWithTheFirstOfItsLocks) {
  Due f(130);
  f.pages.note(64, at(30));
  f.pages.note(127, at(20));
  f.pages.note(100, at(40));
  EXPECT_EQ(f.pages.due(0), Instant::never());
  EXPECT_EQ(f.pages.due(1), at(20));
  EXPECT_EQ(f.pages.due(2), Instant::never());
}

TEST(DuePages, OnlyLookingThroughPutsAPageOff) {
  Due f(64);
  f.pages.note(5, at(10));
  f.pages.note(5, at(50));
  EXPECT_EQ(f.pages.due(0), at(10));
  f.pages.clear(0);
  EXPECT_EQ(f.pages.due(0), Instant::never());
  f.pages.note(5, at(50));
  EXPECT_EQ(f.pages.due(0), at(50));
}

}  // namespace
}  // namespace redlock
