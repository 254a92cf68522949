// SPDX-License-Identifier: MIT
#include "client/fleet.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace redlock {
namespace {

constexpr Duration patience = Duration::ms(1'000);

Instant at(int64_t ms) { return Instant::from_ns(ms * 1'000'000); }

TEST(Fleet, a_server_under_two_names_counts_once) {
  const Fleet fleet(5);
  const Bytes distinct[] = {"a", "b", "c", "d", "e"};
  EXPECT_EQ(fleet.duplicates(distinct), Masters());
  const Bytes two[] = {"a", "b", "a", "d", "b"};
  EXPECT_EQ(fleet.duplicates(two), Masters::of(2, 4)) << "the first of them keeps its vote";
  const Bytes three[] = {"a", "b", "b", "b", "e"};
  EXPECT_EQ(fleet.duplicates(three), Masters::of(2, 3));
}

TEST(Fleet, two_that_have_not_named_themselves_are_not_one) {
  const Bytes ids[] = {"", "", "a", Bytes(), "a"};
  EXPECT_EQ(Fleet(5).duplicates(ids), Masters::of(4));
}

// A quorum of 5 is 3: the guard has admitted it when it has admitted the third.
TEST(Fleet, the_guard_admits_a_quorum_with_its_last_master) {
  const Instant admitted = Instant::from_ns(INT64_MIN), unknown = Instant::never();
  const Fleet fleet(5);
  const Instant none[] = {unknown, unknown, unknown, unknown, unknown};
  EXPECT_EQ(fleet.quorum_admitted_at(none), unknown);
  const Instant enough[] = {admitted, unknown, admitted, at(7), admitted};
  EXPECT_EQ(fleet.quorum_admitted_at(enough), admitted);
  const Instant one_missing[] = {admitted, at(9), at(7), unknown, admitted};
  EXPECT_EQ(fleet.quorum_admitted_at(one_missing), at(7));
  const Instant too_few[] = {admitted, at(9), unknown, unknown, unknown};
  EXPECT_EQ(fleet.quorum_admitted_at(too_few), unknown);
}

TEST(Fleet, a_stepped_clock_is_told_when_a_quorum_of_others_agrees_with_ours) {
  Fleet fleet(5);
  EXPECT_FALSE(fleet.doubts_clocks());
  fleet.clock_stepped(1, at(10));
  EXPECT_TRUE(fleet.doubts_clocks());
  EXPECT_EQ(fleet.stepped_at(), at(10));
  EXPECT_EQ(fleet.surely_stepped(Masters::of(0, 2), patience, at(20)), Masters()) << "two are no quorum of five";
  EXPECT_TRUE(fleet.doubts_clocks());
  EXPECT_EQ(fleet.surely_stepped(Masters::of(0, 2, 4), patience, at(30)), Masters::of(1));
  EXPECT_FALSE(fleet.doubts_clocks()) << "it is told once";
}

TEST(Fleet, a_second_step_asks_everybody_anew_and_both_are_told) {
  Fleet fleet(5);
  fleet.clock_stepped(1, at(10));
  fleet.clock_stepped(3, at(40));
  EXPECT_EQ(fleet.stepped_at(), at(40)) << "answers from before that say nothing of it";
  EXPECT_EQ(fleet.surely_stepped(Masters::of(0, 2, 4), patience, at(50)), Masters::of(1, 3));
}

TEST(Fleet, a_step_that_nobody_confirms_is_forgotten) {
  Fleet fleet(5);
  fleet.clock_stepped(1, at(10));
  EXPECT_EQ(fleet.surely_stepped(Masters(), patience, at(1'009)), Masters());
  EXPECT_TRUE(fleet.doubts_clocks());
  EXPECT_EQ(fleet.surely_stepped(Masters(), patience, at(1'010)), Masters());
  EXPECT_FALSE(fleet.doubts_clocks());
}

// Of two clocks that differ nobody can tell which one is wrong.
TEST(Fleet, with_two_masters_no_clock_is_surely_wrong) {
  for (const unsigned masters : {1u, 2u}) {
    Fleet fleet(masters);
    fleet.clock_stepped(0, at(10));
    EXPECT_EQ(fleet.surely_stepped(Masters::all(masters), patience, at(20)), Masters());
  }
  Fleet three(3);
  three.clock_stepped(0, at(10));
  EXPECT_EQ(three.surely_stepped(Masters::of(1, 2), patience, at(20)), Masters::of(0));
}

}  // namespace
}  // namespace redlock
