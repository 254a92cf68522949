// SPDX-License-Identifier: MIT
#include "lock/fence.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace redlock {
namespace {

using What = TokenChoice::What;
using State = Counter::State;

const char* name_of(What what) {
  static constexpr const char* names[] = {"wait", "lost", "proposed", "store", "floor", "unknown", "exhausted"};
  return names[static_cast<int>(what)];
}

// ---- a dumb second implementation ------------------------------------------------------------------------------

struct Said {
  bool answered = false;
  bool failed = false;
  bool granted = false;
  State state = State::none;
  uint64_t value = 0;
  uint64_t ms = 0;
};

// What one master may say: nothing yet, nothing for good, refused or granted, each with what it knows of the counter.
const std::vector<Said> vocabulary = {
    {},
    {true, true},
    {true, false, false, State::known, 4},
    {true, false, false, State::hint, 9},
    {true, false, true, State::ack, 7},
    {true, false, true, State::known, 5, 100},
    {true, false, true, State::hint, 6, 200},
    {true, false, true, State::hint, 0, 3},
};

// In the words of the protocol, and in no hurry.
TokenChoice dumb(const std::vector<Said>& said, uint64_t proposal, bool may_floor) {
  const long quorum = static_cast<long>(said.size() / 2 + 1);
  const auto all = [&](auto what) { return std::count_if(said.begin(), said.end(), what); };
  const long waiting = all([](const Said& s) { return !s.answered; });
  const long grants = all([](const Said& s) { return s.granted; });
  const long acks = all([](const Said& s) { return s.state == State::ack; });
  const long knows = all([](const Said& s) { return s.state == State::ack || s.state == State::known; });
  uint64_t top = 0, ms = 0;
  for (const Said& s : said) top = std::max(top, s.value), ms = std::max(ms, s.ms);
  if (grants + waiting < quorum) return {What::lost};
  const bool could_be_fast = acks + waiting >= quorum;
  const bool could_be_slow = knows + waiting >= quorum;
  if (acks >= quorum) return {What::proposed, proposal};
  if (grants < quorum || could_be_fast) return {What::wait};
  if (knows >= quorum) return {What::store, top + 1};
  if (could_be_slow) return {What::wait};
  if (!may_floor) return {What::unknown};
  return {What::floor, std::max({top + 1, ms + 1, proposal})};
}

TokenChoice shipped(const std::vector<Said>& said, uint64_t proposal, bool may_floor) {
  unsigned granted = 0, refused = 0, failed = 0;
  Counters counters;
  for (MasterIndex m = 0; m < said.size(); ++m) {
    if (!said[m].answered) continue;
    if (said[m].failed) {
      ++failed;
    } else {
      said[m].granted ? ++granted : ++refused;
      counters.hear(m, {said[m].state, said[m].value, said[m].ms});
    }
  }
  return choose_token(static_cast<unsigned>(said.size()), granted, refused, failed, counters, proposal, may_floor);
}

// Every combination of answers, for one to five masters, with and without the floor.
TEST(Fence, says_what_the_dumb_one_says) {
  size_t combinations = 0;
  std::vector<int> seen(7, 0);
  for (size_t masters = 1; masters <= 5; ++masters) {
    std::vector<size_t> at(masters, 0);
    for (bool more = true; more;) {
      std::vector<Said> said;
      std::string text;
      for (const size_t word : at) said.push_back(vocabulary[word]), text += std::to_string(word) + " ";
      for (const bool may_floor : {false, true}) {
        const TokenChoice wanted = dumb(said, 7, may_floor), got = shipped(said, 7, may_floor);
        ASSERT_STREQ(name_of(got.what), name_of(wanted.what)) << text << may_floor;
        ASSERT_EQ(got.token, wanted.token) << text << may_floor;
        ++seen[static_cast<size_t>(got.what)];
        ++combinations;
      }
      size_t i = 0;
      while (i < masters && ++at[i] == vocabulary.size()) at[i++] = 0;
      more = i < masters;
    }
  }
  EXPECT_EQ(combinations, 2u * (8 + 64 + 512 + 4096 + 32768));
  for (int what = 0; what <= static_cast<int>(What::unknown); ++what) {
    EXPECT_GT(seen[static_cast<size_t>(what)], 0) << name_of(static_cast<What>(what));
  }
}

TEST(Fence, the_last_number_is_given_and_none_after_it) {
  EXPECT_EQ(shipped({{true, false, true, State::known, token_max - 1, 0}}, 1, true).token, token_max);
  EXPECT_EQ(shipped({{true, false, true, State::known, token_max, 0}}, 1, true).what, What::exhausted);
  EXPECT_EQ(shipped({{true, false, true, State::hint, UINT64_MAX, 0}}, 1, true).what, What::exhausted);
  EXPECT_EQ(shipped({{true, false, true, State::hint, 1, UINT64_MAX - 1}}, 1, true).what, What::exhausted);
}

TEST(Fence, who_says_nothing_of_its_counter_is_not_heard) {
  Counters counters;
  counters.hear(1, {State::none, 41, 1'000});
  EXPECT_EQ(counters.known | counters.acked, Masters());
  EXPECT_EQ(counters.top, 0u);
  EXPECT_EQ(counters.server_ms, 0u);
}

// ---- what is believed ------------------------------------------------------------------------------------------

constexpr uint64_t free_number = Belief::free, step = Belief::step;

struct Believing : Belief {
  explicit Believing(unsigned masters) { init(masters); }
  bool believes(MasterIndex m, uint64_t number) {
    told(m, number);
    return Belief::believes(number);
  }
};

TEST(Belief, a_large_number_needs_more_masters_than_may_lie) {
  for (const unsigned masters : {3u, 4u, 5u, 15u}) {
    Believing b(masters);
    const unsigned liars = masters - quorum_of(masters);
    for (unsigned m = 0; m < liars; ++m) EXPECT_FALSE(b.believes(m, token_max)) << masters;
    for (unsigned m = 0; m < liars; ++m) EXPECT_FALSE(b.believes(m, token_max)) << "said twice, by the same";
    EXPECT_TRUE(b.believes(liars, token_max)) << masters;
    EXPECT_TRUE(b.believes(0, token_max)) << masters;
  }
  EXPECT_TRUE(Believing(1).believes(0, token_max)) << "nobody may lie";
  EXPECT_TRUE(Believing(2).believes(1, free_number)) << "nobody may lie, and nobody may be away";
}

TEST(Belief, near_a_token_that_the_client_got_any_master_is_believed) {
  Believing b(5);
  b.got(7);
  EXPECT_TRUE(b.believes(0, free_number)) << "a small token lowers nothing";
  b.got(free_number + 9);
  b.got(free_number + 8);
  EXPECT_TRUE(b.believes(0, free_number + 9 + step));
  EXPECT_FALSE(b.believes(0, free_number + 10 + step));
}

// Every combination of numbers near the edges: whatever liars say, a number is believed only if an honest master has
// told about as much; and what Q masters have told is believed of each of them.
TEST(Belief, against_every_minority) {
  const uint64_t words[] = {7, free_number, free_number + 1, free_number + step, free_number + step + 1, token_max};
  for (unsigned a = 0; a < 6 * 6 * 6; ++a) {
    const uint64_t told[] = {words[a % 6], words[a / 6 % 6], words[a / 36]};
    Believing b(3);
    for (unsigned m = 0; m < 3; ++m) (void)b.believes(m, told[m]);
    for (unsigned m = 0; m < 3; ++m) {
      const uint64_t others = std::max(told[(m + 1) % 3], told[(m + 2) % 3]);
      EXPECT_EQ(b.believes(m, told[m]), told[m] <= std::max(free_number, others + step)) << a << " " << m;
    }
  }
}

// ---- what is remembered ----------------------------------------------------------------------------------------

struct Remembered {
  explicit Remembered(unsigned size) : places(size) { proposals.init(places.data(), size); }
  std::vector<Proposals::Place> places;
  Proposals proposals;
};

TEST(Proposals, the_largest_heard_of_plus_one) {
  Remembered r(8);
  EXPECT_EQ(r.proposals.next("bus"), 1u);
  r.proposals.heard("bus", 41);
  r.proposals.heard("bus", 40);
  EXPECT_EQ(r.proposals.next("bus"), 42u);
  r.proposals.heard("bus", token_max);
  EXPECT_EQ(r.proposals.next("bus"), 0u);
}

TEST(Proposals, a_permission_is_kept_until_it_is_used) {
  Remembered r(1);
  EXPECT_FALSE(r.proposals.may_floor("bus"));
  EXPECT_TRUE(r.proposals.allow_floor("bus"));
  EXPECT_TRUE(r.proposals.allow_floor("bus"));
  EXPECT_FALSE(r.proposals.allow_floor("valve"));
  r.proposals.heard("valve", 7);
  EXPECT_TRUE(r.proposals.may_floor("bus"));
  EXPECT_FALSE(r.proposals.may_floor("valve"));
  r.proposals.heard("bus", 3);
  EXPECT_TRUE(r.proposals.may_floor("bus"));
  r.proposals.floor_taken("valve");
  EXPECT_TRUE(r.proposals.may_floor("bus"));
  r.proposals.floor_taken("bus");
  EXPECT_FALSE(r.proposals.may_floor("bus"));
  EXPECT_EQ(r.proposals.next("bus"), 4u);
  EXPECT_TRUE(r.proposals.allow_floor("valve"));
}

struct TwoNames {
  TwoNames() {
    const Bytes both[] = {"bus", "valve"};
    names.assign(memory, both, 2);
  }
  char memory[8];
  Names names;
};

TEST(Proposals, of_several_names_is_above_each) {
  Remembered r(64);
  r.proposals.heard("bus", 41);
  r.proposals.heard("valve", 12);
  EXPECT_EQ(r.proposals.next(TwoNames().names), 42u);
}

TEST(Proposals, the_floor_of_several_names_wants_permission_for_each) {
  Remembered r(64);
  const TwoNames two;
  EXPECT_TRUE(r.proposals.allow_floor("bus"));
  EXPECT_FALSE(r.proposals.may_floor(two.names));
  EXPECT_TRUE(r.proposals.allow_floor("valve"));
  EXPECT_TRUE(r.proposals.may_floor(two.names));
  r.proposals.floor_taken(two.names);
  EXPECT_FALSE(r.proposals.may_floor("bus"));
  EXPECT_FALSE(r.proposals.may_floor("valve"));
}

// ---- the device's side -----------------------------------------------------------------------------------------

TEST(FenceCheck, power_up_equality_and_order) {
  uint64_t high_water = 0;
  EXPECT_EQ(redlock_fence_check(&high_water, 0), REDLOCK_E_INVAL);
  EXPECT_EQ(redlock_fence_check(&high_water, 5), 0);
  EXPECT_EQ(redlock_fence_check(&high_water, 5), 0);
  EXPECT_EQ(redlock_fence_check(&high_water, 4), REDLOCK_E_FENCED);
  EXPECT_EQ(high_water, 5u);
  EXPECT_EQ(redlock_fence_check(&high_water, uint64_t{1} << 40), 0);
  EXPECT_EQ(redlock_fence_check(&high_water, 6), REDLOCK_E_FENCED);
  EXPECT_EQ(high_water, uint64_t{1} << 40);
}

}  // namespace
}  // namespace redlock
