// SPDX-License-Identifier: MIT
//
// Locks of one client that wait for each other: against a list that is searched from the front each time.
#include "lock/local_queue.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace redlock {
namespace {

constexpr unsigned capacity = 12;
constexpr unsigned rows_count = 3;  // so few that unlike names meet

struct Line {
  Line() : locks(new Lock[capacity]) {
    table.init(locks.get(), capacity);
    queue.init(rows, rows_count);
  }

  uint16_t enter(const std::string& resource) {
    Lock* lock = table.take();
    EXPECT_NE(lock, nullptr);
    lock->resource_size = static_cast<uint8_t>(resource.size());
    memcpy(lock->resource, resource.data(), resource.size());
    queue.enter(*lock);
    lock->state = State::waiting;
    return table.index(*lock);
  }
  std::vector<uint16_t> leave(uint16_t index) {
    table[index].state = State::over;
    std::vector<uint16_t> first;
    for (uint16_t i = queue.next_first(table[index]); i != no_slot; i = queue.next_first(table[index])) {
      first.push_back(i);
    }
    table.give_back(table[index]);
    return first;
  }
  bool waits(uint16_t index) { return table[index].behind != no_slot; }

  std::unique_ptr<Lock[]> locks;
  Table table;
  LocalQueue::Row rows[rows_count];
  LocalQueue queue{table};
};

TEST(LocalQueue, one_after_the_other) {
  Line line;
  const uint16_t a = line.enter("bus"), b = line.enter("bus"), other = line.enter("valve"), c = line.enter("bus");
  EXPECT_FALSE(line.waits(a) || line.waits(other));
  EXPECT_TRUE(line.waits(b) && line.waits(c));
  EXPECT_EQ(line.leave(a), std::vector<uint16_t>{b});
  EXPECT_TRUE(line.waits(c));
  EXPECT_EQ(line.leave(other), std::vector<uint16_t>{});
  EXPECT_EQ(line.leave(b), std::vector<uint16_t>{c});
  EXPECT_EQ(line.leave(c), std::vector<uint16_t>{});
}

TEST(LocalQueue, leaving_from_the_middle) {
  Line line;
  const uint16_t a = line.enter("bus"), b = line.enter("bus"), c = line.enter("bus");
  EXPECT_EQ(line.leave(b), std::vector<uint16_t>{});
  EXPECT_TRUE(line.waits(c));
  EXPECT_EQ(line.leave(a), std::vector<uint16_t>{c});
}

TEST(LocalQueue, who_comes_back_is_the_last) {
  Line line;
  const uint16_t a = line.enter("bus"), b = line.enter("bus");
  line.table[a].state = State::over;  // its callback asks again before the slot is free
  const uint16_t again = line.enter("bus");
  EXPECT_TRUE(line.waits(again));
  EXPECT_EQ(line.queue.next_first(line.table[a]), b);
  EXPECT_EQ(line.leave(b), std::vector<uint16_t>{again});
}

TEST(LocalQueue, names_of_which_one_begins_the_other_are_two) {
  Line line;
  line.enter("bus");
  EXPECT_FALSE(line.waits(line.enter("bus2")));
  EXPECT_FALSE(line.waits(line.enter("bu")));
  EXPECT_TRUE(line.waits(line.enter("bus2")));
}

TEST(LocalQueue, as_a_list_would_do) {
  std::mt19937 dice(7);
  Line line;
  struct Entry {
    uint16_t index;
    std::string resource;
  };
  std::vector<Entry> list;  // in order of arrival
  const auto is_first = [&](size_t i) {
    for (size_t j = 0; j < i; ++j) {
      if (list[j].resource == list[i].resource) return false;
    }
    return true;
  };
  for (unsigned step = 0; step < 20'000; ++step) {
    if (list.size() < capacity && (list.empty() || dice() % 2 != 0)) {
      const std::string resource(1, static_cast<char>('a' + dice() % 3));
      list.push_back({line.enter(resource), resource});
    } else {
      const size_t i = dice() % list.size();
      line.leave(list[i].index);
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
    }
    for (size_t i = 0; i < list.size(); ++i) ASSERT_EQ(line.waits(list[i].index), !is_first(i)) << "step " << step;
  }
}

}  // namespace
}  // namespace redlock
