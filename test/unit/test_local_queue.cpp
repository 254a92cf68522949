// SPDX-License-Identifier: MIT
//
// Locks of one client that wait for each other: against a list that is searched from the front each time.
#include "lock/local_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
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

  // "a+b": two, in order
  uint16_t enter(const std::string& resources, bool urgent = false) {
    Lock* lock = table.take();
    EXPECT_NE(lock, nullptr);
    static_cast<Acquire&>(*lock) = {};
    lock->line.urgent = urgent;
    Bytes names[Names::max];
    unsigned n = 0;
    for (size_t at = 0; at < resources.size(); ++n) {
      const size_t end = std::min(resources.find('+', at), resources.size());
      names[n] = Bytes(resources.data() + at, end - at);
      at = end + 1;
    }
    memory.emplace_back();
    lock->names.assign(memory.back().data(), names, n);
    queue.enter(*lock);
    lock->state = State::waiting;
    return table.index(*lock);
  }
  std::vector<uint16_t> leave(uint16_t index) {
    const std::vector<uint16_t> first = end(index);
    table.give_back(table[index]);
    return first;
  }
  // The lock is over, and its slot is not free yet: its event is still to be delivered.
  std::vector<uint16_t> end(uint16_t index) {
    table[index].state = State::over;
    uint16_t first[Names::max];
    const unsigned n = queue.leave(table[index], first);
    return std::vector<uint16_t>(first, first + n);
  }
  bool waits(uint16_t index) { return !queue.is_first(table[index]); }

  std::unique_ptr<Lock[]> locks;
  std::deque<std::array<char, 64>> memory;
  Table table;
  LocalQueue::Row rows[rows_count];
  LocalQueue queue{table};
};

struct AnyLine : ::testing::Test {
  Line line;
};

TEST_F(AnyLine, two_urgent_ones_go_before_the_others_in_order_of_arrival) {
  const uint16_t sent = line.enter("bus"), nothing = line.enter("bus");
  line.table[sent].rounds = 1;
  const uint16_t alarm = line.enter("bus", true), second = line.enter("bus", true);
  EXPECT_EQ(line.leave(sent), std::vector<uint16_t>{alarm});
  EXPECT_EQ(line.leave(alarm), std::vector<uint16_t>{second});
  EXPECT_EQ(line.leave(second), std::vector<uint16_t>{nothing});
}

// A look tells the masters of changes that its lock has to hear, so it counts as sent.
TEST_F(AnyLine, an_urgent_one_goes_behind_those_that_have_looked) {
  const uint16_t looked = line.enter("bus");
  Instant free_at[1];
  line.table[looked].forecast.use(free_at, 1);
  line.table[looked].forecast.wait(Masters::all(1), Masters::all(1), Masters::all(1), Instant());
  const uint16_t alarm = line.enter("bus", true);
  EXPECT_TRUE(line.waits(alarm) && !line.waits(looked));
}

// A lock that goes before another does so in all rows, so some lock is always first.
TEST(LocalQueue, urgent_ones_with_several_names_never_wait_for_each_other) {
  std::mt19937 dice(5);
  for (unsigned game = 0; game < 2'000; ++game) {
    Line line;
    std::vector<uint16_t> all;
    for (unsigned step = 0; step < 60; ++step) {
      for (const uint16_t i : all) {
        if (!line.waits(i) && dice() % 2 != 0) line.table[i].rounds = 1;
      }
      if (all.size() < capacity && dice() % 3 != 0) {
        static constexpr const char* names[] = {"a", "b", "c", "a+b", "b+c", "a+c", "a+b+c"};
        all.push_back(line.enter(names[dice() % 7], dice() % 2 != 0));
      } else if (!all.empty()) {
        const auto one = all.begin() + static_cast<std::ptrdiff_t>(dice() % all.size());
        line.leave(*one);
        all.erase(one);
      }
      const auto first = [&](uint16_t i) { return !line.waits(i); };
      ASSERT_TRUE(all.empty() || std::any_of(all.begin(), all.end(), first)) << "game " << game;
      for (const uint16_t i : all) ASSERT_TRUE(line.table[i].rounds == 0 || first(i)) << "overtaken, after it had sent";
    }
  }
}

#if defined(REDLOCK_ASSERTS)
// A lock leaves its lines once: to take it out again would cut the line behind it.
TEST_F(AnyLine, leaving_twice_traps) {
  const uint16_t a = line.enter("bus");
  line.enter("bus");
  line.end(a);
  EXPECT_DEATH(line.end(a), "");
}
#endif

// All sets of four names: nobody goes before an older one that shares a name, and everybody else may.
TEST(LocalQueue, as_a_list_of_sets_would_do) {
  std::mt19937 dice(11);
  Line line;
  struct Entry {
    uint16_t index;
    unsigned set;
  };
  std::vector<Entry> list;
  const auto is_first = [&](size_t i) {
    for (size_t j = 0; j < i; ++j) {
      if (list[j].set & list[i].set) return false;
    }
    return true;
  };
  for (unsigned step = 0; step < 20'000; ++step) {
    if (list.size() < capacity && (list.empty() || dice() % 2 != 0)) {
      const unsigned set = 1 + static_cast<unsigned>(dice() % 15);
      std::string names;
      for (unsigned n = 0; n < 4; ++n) {
        if (set >> n & 1) names += (names.empty() ? "" : "+") + std::string(1, static_cast<char>('a' + n));
      }
      list.push_back({line.enter(names), set});
    } else {
      const size_t i = dice() % list.size();
      std::vector<uint16_t> waited, expected;
      for (const Entry& e : list) waited.push_back(line.waits(e.index));
      std::vector<uint16_t> first = line.leave(list[i].index);
      std::sort(first.begin(), first.end());
      waited.erase(waited.begin() + static_cast<std::ptrdiff_t>(i));
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
      for (size_t k = 0; k < list.size(); ++k) {
        if (waited[k] && is_first(k)) expected.push_back(list[k].index);
      }
      std::sort(expected.begin(), expected.end());
      ASSERT_EQ(first, expected) << "who came to be first is told, at step " << step;
    }
    for (size_t i = 0; i < list.size(); ++i) ASSERT_EQ(line.waits(list[i].index), !is_first(i)) << "step " << step;
  }
}

}  // namespace
}  // namespace redlock
