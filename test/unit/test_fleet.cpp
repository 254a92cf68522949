// SPDX-License-Identifier: MIT
#include "client/fleet.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace redlock {
namespace {

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
