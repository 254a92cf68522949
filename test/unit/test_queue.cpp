// SPDX-License-Identifier: MIT
#include "base/queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

namespace redlock {
namespace {

struct Slot {
  Link one;
  Link two;
};
using One = Queue<Slot, &Slot::one>;
using Two = Queue<Slot, &Slot::two>;

template <class Q, Link Slot::*link>
std::vector<uint16_t> walk(const Q& queue, const std::vector<Slot>& slots) {
  std::vector<uint16_t> seen;
  uint16_t before = no_slot;
  for (uint16_t i = queue.first(); i != no_slot; i = Q::next(slots.data(), i)) {
    EXPECT_TRUE((slots[i].*link).queued);
    EXPECT_EQ((slots[i].*link).previous, before);
    before = i;
    seen.push_back(i);
    if (seen.size() > slots.size()) {
      ADD_FAILURE() << "a loop";
      break;
    }
  }
  return seen;
}

TEST(Queue, against_a_deque) {
  constexpr uint16_t size = 9;
  std::vector<Slot> slots(size);
  One one;
  Two two;  // a slot may stand in both
  std::deque<uint16_t> model_one, model_two;
  std::mt19937 random(7);
  const auto step = [&](auto& queue, std::deque<uint16_t>& model) {
    const uint16_t i = static_cast<uint16_t>(random() % size);
    const auto place = std::find(model.begin(), model.end(), i);
    const unsigned what = static_cast<unsigned>(random() % 4);
    if (what < 2) {
      queue.push(slots.data(), i);
      if (place == model.end()) model.push_back(i);
    } else if (what == 2) {
      queue.push_front(slots.data(), i);
      if (place != model.end()) model.erase(place);
      model.push_front(i);
    } else {
      queue.remove(slots.data(), i);
      if (place != model.end()) model.erase(place);
    }
  };
  for (int n = 0; n < 20'000; ++n) {
    step(one, model_one);
    step(two, model_two);
    ASSERT_EQ((walk<One, &Slot::one>(one, slots)), std::vector<uint16_t>(model_one.begin(), model_one.end()));
    ASSERT_EQ((walk<Two, &Slot::two>(two, slots)), std::vector<uint16_t>(model_two.begin(), model_two.end()));
    ASSERT_EQ(one.empty(), model_one.empty());
  }
}

}  // namespace
}  // namespace redlock
