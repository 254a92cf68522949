// SPDX-License-Identifier: MIT
#include "lock/quorum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "client/fleet.hpp"

namespace redlock {
namespace {

enum class Said { nothing, granted, refused, failed };

// A second implementation that is as dumb as can be: it tries every way in which the masters that have not answered
// could answer, and looks whether each, or none, ends with more than half of all granted.
struct Dumb {
  bool can_win = false;
  bool can_lose = false;

  void try_all(std::vector<Said>& said, size_t from = 0) {
    while (from < said.size() && said[from] != Said::nothing) ++from;
    if (from == said.size()) {
      size_t granted = 0;
      for (const Said s : said) granted += s == Said::granted;
      (granted * 2 > said.size() ? can_win : can_lose) = true;
      return;
    }
    for (const Said s : {Said::granted, Said::refused}) {
      said[from] = s;
      try_all(said, from + 1);
    }
    said[from] = Said::nothing;
  }
};

// Was it lost because of masters that failed? Yes if all that did answer, taken as grants, would be no majority.
bool masters_are_to_blame(const std::vector<Said>& said) {
  size_t not_failed = 0;
  for (const Said s : said) not_failed += s != Said::failed;
  return not_failed * 2 <= said.size();
}

class EveryVote : public testing::TestWithParam<unsigned> {};

TEST_P(EveryVote, is_decided_as_the_dumb_one_decides) {
  const unsigned masters = GetParam();
  unsigned combinations = 1;
  for (unsigned i = 0; i < masters; ++i) combinations *= 4;
  for (unsigned n = 0; n < combinations; ++n) {
    std::vector<Said> said;
    unsigned count[4] = {};
    for (unsigned i = 0, rest = n; i < masters; ++i, rest /= 4) {
      said.push_back(static_cast<Said>(rest % 4));
      ++count[rest % 4];
    }
    Dumb dumb;
    dumb.try_all(said);
    const Decision expected = !dumb.can_lose ? Decision::won : !dumb.can_win ? Decision::lost : Decision::pending;
    ASSERT_EQ(decide(masters, count[1], count[2], count[3]), expected) << masters << " masters, combination " << n;
    if (expected != Decision::lost) continue;
    ASSERT_EQ(lost_because(masters, count[3]), masters_are_to_blame(said) ? REDLOCK_E_NO_QUORUM : REDLOCK_E_LOCKED)
        << masters << " masters, combination " << n;
  }
}

INSTANTIATE_TEST_SUITE_P(Quorum, EveryVote, testing::Range(1u, 8u));

TEST(Quorum, two_quorums_always_meet_and_none_is_larger_than_it_must_be) {
  for (unsigned masters = 1; masters <= REDLOCK_MASTERS_MAX; ++masters) {
    EXPECT_GT(2 * quorum_of(masters), masters) << masters;
    EXPECT_LE(2 * (quorum_of(masters) - 1), masters) << masters;
  }
}

TEST(Quorum, what_a_failed_vote_tells) {
  struct Row {
    int error;
    bool denial;
    unsigned telling;
  };
  const std::vector<Row> rows = {
      {0, false, 0},
      {REDLOCK_E_DISCONNECTED, false, 1},
      {REDLOCK_E_UNREAD, false, 2},
      {REDLOCK_E_UNWATCHED, false, 2},
      {REDLOCK_E_REPLID, false, 2},
      {REDLOCK_E_NODE_TIMEOUT, false, 3},
      {REDLOCK_E_LOADING, false, 3},
      {REDLOCK_E_NOPERM, true, 4},
      {REDLOCK_E_AUTH, true, 4},
      {REDLOCK_E_AUTH_MISSING, true, 4},
      {REDLOCK_E_DENIED, true, 4},
      {REDLOCK_E_TLS_CLIENT_CERT, true, 4},
      {REDLOCK_E_TLS_CLIENT_REFUSED, true, 4},
      {REDLOCK_E_MODE, true, 5},
      {REDLOCK_E_IDENTITY, true, 5},
      {REDLOCK_E_MAXMEMORY, true, 5},
      {REDLOCK_E_FINGERPRINT, false, 5},
      {REDLOCK_E_DUPLICATE, false, 5},
      {REDLOCK_E_TLS, false, 5},
      {REDLOCK_E_TLS_NONE, false, 5},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(is_denial(row.error), row.denial) << row.error;
    EXPECT_EQ(telling(row.error), row.telling) << row.error;
  }
}

TEST(Fleet, a_server_under_two_names_counts_once) {
  const Fleet fleet(5);
  const Bytes distinct[] = {"a", "b", "c", "d", "e"};
  EXPECT_EQ(fleet.duplicates(distinct), Masters());
  const Bytes two[] = {"a", "b", "a", "d", "b"};
  EXPECT_EQ(fleet.duplicates(two), Masters::of(2, 4)) << "the first of them keeps its vote";
  const Bytes three[] = {"a", "b", "b", "b", "e"};
  EXPECT_EQ(fleet.duplicates(three), Masters::of(2, 3));
  const Bytes unnamed[] = {"", "", "a", Bytes(), "a"};
  EXPECT_EQ(fleet.duplicates(unnamed), Masters::of(4)) << "two that have not named themselves are not one";
}

// What src/DESIGN.md says of causes, master by master: who could vote, if all went as well as it may?
struct Site {
  using Outlook = Guard::Outlook;
  static constexpr unsigned kinds = 7;  // it votes, or one of six outlooks

  Site(unsigned masters, unsigned code) : n(masters) {
    for (MasterIndex m = 0; m < n; ++m, code /= kinds) {
      outlooks[m] = code % kinds == 0 ? Outlook::never : static_cast<Outlook>(code % kinds - 1);
      votes[m] = code % kinds == 0;
      if (votes[m]) voting.add(m);
      changing = changing || (!votes[m] && outlooks[m] == Outlook::moving);
    }
  }
  bool is_lost(MasterIndex m) const {
    return !votes[m] && (outlooks[m] == Outlook::never || (outlooks[m] == Outlook::foreign && !changing));
  }
  // Are those that vote, and those with one of these outlooks, a quorum?
  bool enough(std::vector<Outlook> wanted) const {
    unsigned count = 0;
    for (MasterIndex m = 0; m < n; ++m) {
      count += votes[m] || std::find(wanted.begin(), wanted.end(), outlooks[m]) != wanted.end();
    }
    return 2 * count > n;
  }
  int cause(int before) const {
    unsigned lost = 0;
    for (MasterIndex m = 0; m < n; ++m) lost += is_lost(m);
    if (enough({})) return REDLOCK_CAUSE_HELD;
    if (2 * (n - lost) <= n) return REDLOCK_CAUSE_NEVER;
    if (enough({Outlook::watched})) return REDLOCK_CAUSE_GUARD;
    if (enough({Outlook::watched, Outlook::soon})) return before == REDLOCK_CAUSE_NEVER ? REDLOCK_CAUSE_NONE : before;
    const bool may_change =
        changing && enough({Outlook::watched, Outlook::soon, Outlook::moving, Outlook::foreign});
    return may_change ? REDLOCK_CAUSE_CHANGE : REDLOCK_CAUSE_TOO_FEW;
  }

  unsigned n;
  Masters voting;
  bool votes[5];
  Outlook outlooks[5];
  bool changing = false;
};

TEST(Fleet, the_cause_in_every_combination) {
  unsigned seen[REDLOCK_CAUSE_NEVER + 1] = {};
  for (unsigned masters = 1, codes = Site::kinds; masters <= 5; ++masters, codes *= Site::kinds) {
    for (unsigned code = 0; code < codes; ++code) {
      const Site site(masters, code);
      for (int before = REDLOCK_CAUSE_NONE; before <= REDLOCK_CAUSE_NEVER; ++before) {
        const int cause = Fleet(masters).cause(site.voting, site.outlooks, before);
        ASSERT_EQ(cause, site.cause(before)) << masters << " " << code << " " << before;
        ++seen[cause];
      }
      Masters never;
      for (MasterIndex m = 0; m < masters; ++m) {
        if (site.is_lost(m)) never.add(m);
      }
      ASSERT_EQ(Fleet(masters).never(site.voting, site.outlooks), never) << masters << " " << code;
    }
  }
  for (unsigned cause = REDLOCK_CAUSE_NONE; cause <= REDLOCK_CAUSE_NEVER; ++cause) EXPECT_NE(seen[cause], 0u) << cause;
}

}  // namespace
}  // namespace redlock
