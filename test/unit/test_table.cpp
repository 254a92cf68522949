// SPDX-License-Identifier: MIT
#include "lock/table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

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

  size_t used() const {
    return static_cast<size_t>(
        std::count_if(slots.begin(), slots.end(), [](const Lock& lock) { return lock.state != State::free; }));
  }

  std::vector<Lock> slots;
  Table table;
};

using Found = Table::Found;

TEST(Table, present_past_and_never) {
  Fixture f(2);
  EXPECT_EQ(f.find(0), Found::never);
  Lock* lock = f.begin();
  const uint64_t first = f.table.handle(*lock);
  EXPECT_NE(first, 0u);
  EXPECT_EQ(f.find(first), Found::present);
  EXPECT_EQ(f.find(first + (1u << 16)), Found::never) << "the generation after";
  f.end(*lock);
  EXPECT_EQ(f.find(first), Found::past);
  EXPECT_EQ(f.find(first + (1u << 16)), Found::never);

  lock = f.begin();  // the slot that was given back last
  const uint64_t second = f.table.handle(*lock);
  EXPECT_EQ(second, first + (1u << 16));
  EXPECT_EQ(f.find(first), Found::past);
  EXPECT_EQ(f.find(second), Found::present);
  lock->state = State::over;  // ended, and its event is not delivered yet
  EXPECT_EQ(f.find(second), Found::present);
  f.end(*lock);
  EXPECT_EQ(f.find(second), Found::past);
}

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

TEST(Table, full) {
  Fixture f(3);
  std::set<uint64_t> handles;
  Lock* last = nullptr;
  for (unsigned i = 0; i < 3; ++i) {
    EXPECT_EQ(f.used(), i);
    last = f.begin();
    ASSERT_NE(last, nullptr);
    EXPECT_EQ(&f.table[f.table.index(*last)], last);
    handles.insert(f.table.handle(*last));
  }
  EXPECT_EQ(handles.size(), 3u);
  EXPECT_EQ(f.begin(), nullptr);
  EXPECT_EQ(f.begin(), nullptr);
  EXPECT_EQ(f.used(), 3u);
  f.end(*last);
  EXPECT_EQ(f.used(), 2u);
  EXPECT_EQ(f.begin(), last);
  EXPECT_EQ(f.begin(), nullptr);
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

TEST(Table, a_slot_begins_clean) {
  Fixture f(2);
  Lock* lock = f.begin();
  f.end(*lock);
  lock = f.begin();
  for (const Link& link : {lock->start, lock->told}) {
    EXPECT_FALSE(link.queued);
    EXPECT_EQ(link.next, no_slot);
    EXPECT_EQ(link.previous, no_slot);
  }
}

// What a check on another thread sees through the cell follows the slot's life.
TEST(Table, cells) {
  Fixture f(2);
  EXPECT_EQ(f.table.cell(0), nullptr);
  EXPECT_EQ(f.table.cell(2), &f.slots[1].cell);
  EXPECT_EQ(f.table.cell(3), nullptr);
  EXPECT_EQ(f.table.cell(UINT64_MAX), nullptr);
  Lock* lock = f.begin();
  const uint64_t handle = f.table.handle(*lock);
  ASSERT_EQ(f.table.cell(handle), &lock->cell);
  const auto held = [&](uint64_t h) {
    return judge(*f.table.cell(h), Table::generation(h), true, Instant::from_ns(0), Duration()).held;
  };
  EXPECT_EQ(held(handle), Held::not_held);
  f.end(*lock);
  EXPECT_EQ(held(handle), Held::stale);
  Lock* next = f.begin();
  ASSERT_EQ(next, lock);
  EXPECT_EQ(held(handle), Held::stale);
  EXPECT_EQ(held(f.table.handle(*next)), Held::not_held);
}

TEST(Table, against_a_map) {
  constexpr unsigned capacity = 5;
  Fixture f(capacity);
  std::map<uint64_t, Lock*> present;
  std::set<uint64_t> past;
  std::mt19937 random(11);
  for (int n = 0; n < 20'000; ++n) {
    if (random() % 2 == 0) {
      Lock* lock = f.begin();
      ASSERT_EQ(lock == nullptr, present.size() == capacity);
      if (lock != nullptr) {
        const uint64_t handle = f.table.handle(*lock);
        ASSERT_EQ(past.count(handle) + present.count(handle), 0u) << "a handle given out twice";
        present[handle] = lock;
      }
    } else if (!present.empty()) {
      auto it = present.begin();
      std::advance(it, static_cast<long>(random() % present.size()));
      past.insert(it->first);
      f.end(*it->second);
      present.erase(it);
    }
    ASSERT_EQ(f.used(), present.size());
    for (const auto& [handle, lock] : present) {
      Lock* found = nullptr;
      ASSERT_EQ(f.table.find(handle, found), Found::present);
      ASSERT_EQ(found, lock);
    }
    if (n % 100 == 0) {
      for (const uint64_t handle : past) ASSERT_EQ(f.find(handle), Found::past);
    }
  }
}

}  // namespace
}  // namespace redlock
