// SPDX-License-Identifier: MIT
//
// Claims: what the walks of test_claims_walk.cpp do not go through of strays and of debts that end by themselves: other
// ttls, an end beside a delete under way; and one life of strays at large to read.
#include "claims_fixture.hpp"

namespace redlock {
namespace {

using namespace claims_test;

// ---- strays -------------------------------------------------------------------------------------------------------

// It may have found what another listing of the same server has put back.
TEST_F(StrayDebt, a_key_that_was_found_does_not_pay_for_a_stray) {
  f.claims.strays_at_large(0, at(10));
  f.remove(c, 0, Deleted::yes, at(10));
  EXPECT_FALSE(f.freed(c));
  EXPECT_EQ(f.claims[c].resting, Masters::of(0));
  f.claims.on_time(at(10 + lifetime_ms));
  f.remove(c, 0, Deleted::yes, at(10 + lifetime_ms));
  EXPECT_TRUE(f.claims.owes(0));
  f.remove(c, 0, Deleted::yes, at(11 + lifetime_ms));
  EXPECT_TRUE(f.freed(c));
}

// ---- ends by itself -------------------------------------------------------------------------------------------

// A delete that is under way when its debt would end keeps the claim, since its reply will name it. Whatever becomes of
// that delete, the claim is free soon after.
TEST(Claims, a_delete_under_way_outlasts_the_debt) {
  for (const char* fate : {"yes", "error", "unknown", "broke"}) {
    Fixture f;
    const uint16_t c = f.granted();
    f.claims.end(c, Masters::of(0), at(0));
    f.claims.deletes_queued(c, Masters::of(0));
    const Instant late = at(2 * lifetime_ms + 500);
    EXPECT_EQ(f.claims.on_time(late), Instant::never()) << fate;
    ASSERT_FALSE(f.freed(c)) << fate;
    if (fate == std::string("yes")) f.claims.delete_answered(c, 0, Deleted::yes, late);
    if (fate == std::string("error")) f.claims.delete_answered(c, 0, Deleted::error, late);
    if (fate == std::string("unknown")) f.claims.delete_unknown(c, 0);
    if (fate == std::string("broke")) f.claims.broke(0);
    // Only what deadline() asks for; the master may never be back.
    for (int i = 0; i < 3 && f.claims.deadline() != Instant::never(); ++i) {
      f.claims.on_time(later(late, f.claims.deadline()));
    }
    EXPECT_TRUE(f.freed(c)) << fate;
    EXPECT_EQ(f.claims.debts(), 0u) << fate;
    EXPECT_FALSE(f.claims.owes(0)) << fate;
  }
}

// A frozen master may answer the SET of an ended claim late: the key is as young as that answer, and so is the debt.
TEST(Claims, a_late_grant_begins_the_debt_anew) {
  for (const bool breaks : {true, false}) {
    Fixture f;
    const uint16_t c = f.make();
    f.claims.set_sent(c, 0);
    f.claims.end(c, f.claims[c].sent, at(0));
    f.claims.deletes_queued(c, Masters::of(0));
    const int64_t late = 2 * lifetime_ms + 500;
    f.claims.on_time(at(late));
    f.claims.set_answered(c, 0, false, at(late));
    if (breaks) {
      f.claims.broke(0);
    } else {
      f.claims.delete_answered(c, 0, Deleted::error, at(late));
    }
    f.claims.on_time(at(late + 1'000));
    EXPECT_TRUE(f.claims.owes(0)) << breaks;
    f.claims.on_time(at(late + 2 * lifetime_ms));
    EXPECT_FALSE(f.claims.owes(0)) << breaks;
  }
}

}  // namespace
}  // namespace redlock
