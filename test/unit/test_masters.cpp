// SPDX-License-Identifier: MIT
#include "base/masters.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace redlock {
namespace {

std::vector<MasterIndex> listed(Masters masters) {
  std::vector<MasterIndex> out;
  for (MasterIndex m : masters) out.push_back(m);
  return out;
}

TEST(Masters, one_is_added_and_removed) {
  Masters some;
  EXPECT_TRUE(some.empty());
  some.add(3);
  some.add(3);
  EXPECT_FALSE(some.empty());
  EXPECT_EQ(some, Masters::of(3));
  EXPECT_TRUE(some.has(3));
  EXPECT_FALSE(some.has(2));
  some.remove(2);
  EXPECT_EQ(some, Masters::of(3));
  some.remove(3);
  EXPECT_EQ(some, Masters());
}

TEST(Masters, all_is_the_first_n) {
  for (unsigned n = 0; n <= REDLOCK_MASTERS_MAX; ++n) {
    const Masters all = Masters::all(n);
    EXPECT_EQ(all.count(), n);
    for (MasterIndex m = 0; m < REDLOCK_MASTERS_MAX; ++m) EXPECT_EQ(all.has(m), m < n);
  }
}

// Every pair of sets of seven, against std::set.
TEST(Masters, union_intersection_and_difference) {
  const auto set_of = [](unsigned bits) {
    std::set<MasterIndex> out;
    for (MasterIndex m = 0; m < 7; ++m) {
      if ((bits >> m & 1) != 0) out.insert(m);
    }
    return out;
  };
  const auto masters_of = [](const std::set<MasterIndex>& set) {
    Masters out;
    for (MasterIndex m : set) out.add(m);
    return out;
  };
  for (unsigned x = 0; x < 128; ++x) {
    for (unsigned y = 0; y < 128; ++y) {
      const Masters a = masters_of(set_of(x)), b = masters_of(set_of(y));
      ASSERT_EQ(a | b, masters_of(set_of(x | y)));
      ASSERT_EQ(a & b, masters_of(set_of(x & y)));
      ASSERT_EQ(a - b, masters_of(set_of(x & ~y)));
      ASSERT_EQ(a == b, x == y);
      ASSERT_EQ((a - b).count(), set_of(x & ~y).size());
    }
    const std::set<MasterIndex> in_order = set_of(x);
    ASSERT_EQ(listed(masters_of(in_order)), std::vector<MasterIndex>(in_order.begin(), in_order.end()));
  }
}

}  // namespace
}  // namespace redlock
