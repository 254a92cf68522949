// SPDX-License-Identifier: MIT
#include "lock/quorum.hpp"

#include <gtest/gtest.h>

#include <vector>

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

}  // namespace
}  // namespace redlock
