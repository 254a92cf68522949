// SPDX-License-Identifier: MIT
#include "base/names.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace redlock {
namespace {

std::string text(Bytes b) { return std::string(b.data, b.size); }

struct Kept {
  explicit Kept(const std::vector<std::string>& given) : texts(given) {
    std::vector<Bytes> bytes;
    for (const std::string& t : texts) bytes.emplace_back(t.data(), t.size());
    sorted = Names::sort(bytes.data(), static_cast<unsigned>(bytes.size()));
    if (sorted) names.assign(memory, bytes.data(), static_cast<unsigned>(bytes.size()));
  }
  std::vector<std::string> all() const {
    std::vector<std::string> out;
    for (Bytes name : names) out.push_back(text(name));
    return out;
  }
  std::vector<std::string> texts;
  char memory[REDLOCK_RESOURCE_BYTES_MAX];
  Names names;
  bool sorted;
};

TEST(Names, any_number_in_any_order_and_any_bytes) {
  const std::vector<std::string> sorted = {std::string("\0", 1), "bus", "bus1",
                                           std::string(REDLOCK_RESOURCE_MAX, '\xff')};
  for (size_t count = 1; count <= Names::max; ++count) {
    std::vector<std::string> expected(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(count)),
        given = expected;
    std::sort(given.begin(), given.end());
    do {
      const Kept kept(given);
      ASSERT_TRUE(kept.sorted);
      EXPECT_EQ(kept.names.count(), count);
      EXPECT_EQ(kept.all(), expected);
      EXPECT_EQ(text(kept.names.first()), expected[0]);
    } while (std::next_permutation(given.begin(), given.end()));
  }
}

TEST(Names, twice_the_same_is_told_wherever_it_stands) {
  const std::vector<std::string> given = {"bus", "tap", "valve", "bus"};
  for (std::vector<std::string> order = given; std::next_permutation(order.begin(), order.end());) {
    EXPECT_FALSE(Kept(order).sorted);
  }
  EXPECT_FALSE(Kept({"bus", "bus"}).sorted);
}

// Against a set, over random choices of few short names, some of them the beginning of another.
TEST(Names, has_and_each_by_its_number) {
  const std::vector<std::string> words = {"a", "b", "ab", "aba", "ba", "bab"};
  std::mt19937 dice(7);
  for (int i = 0; i < 10'000; ++i) {
    std::set<std::string> set;
    const size_t count = 1 + dice() % Names::max;
    while (set.size() < count) set.insert(words[dice() % words.size()]);
    const Kept a({set.begin(), set.end()});
    for (const std::string& w : words) EXPECT_EQ(a.names.has(Bytes(w.data(), w.size())), set.count(w) != 0);
    unsigned n = 0;
    for (const std::string& w : set) EXPECT_EQ(a.names[n++], Bytes(w.data(), w.size()));
  }
}

}  // namespace
}  // namespace redlock
