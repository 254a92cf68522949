// SPDX-License-Identifier: MIT
//
// Claims: requests that a broken connection left on their way, and when a debt ends by itself.
#include "claims_fixture.hpp"

namespace redlock {
namespace {

using namespace claims_test;

// ---- strays -------------------------------------------------------------------------------------------------------

TEST_F(GrantedClaim, a_broken_connection_tells_whether_strays_are_left) {
  EXPECT_FALSE(f.claims.broke(0)) << "its SET was answered";
  f.claims.set_sent(c, 2);
  EXPECT_FALSE(f.claims.broke(1)) << "that is another master's";
  EXPECT_TRUE(f.claims.broke(2));
  EXPECT_TRUE(f.claims.broke(2)) << "of an older connection";
  f.make();
  EXPECT_TRUE(f.claims.broke(2));
  f.claims.strays_at_large(2, at(10));
  EXPECT_TRUE(f.claims.broke(2)) << "nobody has ended it";
  f.claims.strays_ended(2, at(10 + lifetime_ms));
  EXPECT_FALSE(f.claims.broke(2));
}

TEST_F(StrayDebt, a_stray_of_a_debt_is_left_until_its_last_delete_is_on_its_way) {
  EXPECT_TRUE(f.claims.broke(0));
  f.claims.strays_at_large(0, at(0));
  f.remove(c, 0, Deleted::absent, at(1));
  EXPECT_TRUE(f.claims.broke(0));
  f.claims.strays_at_large(0, at(10));
  f.claims.on_time(at(10 + lifetime_ms));
  f.remove(c, 0, Deleted::absent, at(10 + lifetime_ms));
  EXPECT_FALSE(f.claims.broke(0));
}

// The server has closed the old connection: nothing of it can be executed behind that.
TEST(Claims, one_delete_behind_the_end_of_the_strays_is_final) {
  for (const Deleted how : {Deleted::yes, Deleted::absent}) {
    Fixture f;
    const uint16_t c = f.stray_debt();
    f.claims.strays_ended(0, at(5));
    EXPECT_FALSE(f.freed(c)) << "the delete is still owed";
    ASSERT_TRUE(f.claims.owes(0));
    f.remove(c, 0, how, at(6));
    EXPECT_TRUE(f.freed(c));
  }
}

TEST(Claims, the_final_delete_is_final_when_it_was_executed) {
  for (const char* fate : {"broke", "unknown", "error"}) {
    Fixture f;
    const uint16_t c = f.stray_debt();
    f.claims.strays_ended(0, at(5));
    f.claims.deletes_queued(c, Masters::of(0));
    if (fate == std::string("broke")) {
      EXPECT_FALSE(f.claims.broke(0));
    }
    if (fate == std::string("unknown")) f.claims.delete_unknown(c, 0);
    if (fate == std::string("error")) f.claims.delete_answered(c, 0, Deleted::error, at(6));
    ASSERT_FALSE(f.freed(c)) << fate;
    f.claims.on_time(at(100));
    ASSERT_TRUE(f.claims.owes(0)) << fate;
    f.remove(c, 0, Deleted::absent, at(100));
    EXPECT_TRUE(f.freed(c)) << fate;
  }
}

TEST(Claims, strays_end_on_one_master_and_for_all_claims) {
  Fixture f(5);
  const uint16_t one = f.make(), two = f.make();
  for (const uint16_t c : {one, two}) {
    f.claims.set_sent(c, 0);
    f.claims.set_sent(c, 1);
  }
  f.claims.broke(0);
  f.claims.broke(1);
  f.claims.strays_ended(0, at(5));
  for (const uint16_t c : {one, two}) EXPECT_EQ(f.claims[c].stray, Masters::of(1));
}

TEST_F(AnyClaims, a_lock_that_is_held_has_no_stray_any_more) {
  const uint16_t c = f.stray();
  EXPECT_FALSE(f.claims.may_put_back(c, 0, at(4)));
  f.claims.strays_ended(0, at(5));
  EXPECT_TRUE(f.claims.may_put_back(c, 0, at(5)));
  EXPECT_EQ(f.claims.deadline(), Instant::never());
  f.claims.end(c, Masters::of(0), at(10));
  EXPECT_EQ(f.claims[c].over_at, at(10 + 2 * lifetime_ms));
  f.remove(c, 0, Deleted::absent, at(11));
  EXPECT_TRUE(f.freed(c));
}

// The SET may have been executed just before: its key is that young, however old the debt is.
TEST(Claims, the_final_delete_leaves_also_when_the_debt_would_have_ended) {
  for (const bool at_large : {false, true}) {
    Fixture f;
    const uint16_t c = f.stray_debt();
    int64_t now = 5 * lifetime_ms;
    f.claims.on_time(at(now));
    if (at_large) {
      f.claims.strays_at_large(0, at(now));
      f.remove(c, 0, Deleted::absent, at(now));
      now += lifetime_ms;
      f.claims.on_time(at(now));
      f.remove(c, 0, Deleted::absent, at(now));
    } else {
      f.claims.strays_ended(0, at(now));
    }
    const uint16_t other = f.granted();  // whose deadline has come
    f.claims.linger(other, at(now));
    f.claims.on_time(at(now));
    ASSERT_FALSE(f.freed(c)) << at_large;
    EXPECT_EQ(f.claims[c].owed, Masters::of(0)) << at_large;
    f.claims.on_time(at(now + 2 * lifetime_ms));
    EXPECT_TRUE(f.freed(c)) << "its key has expired: " << at_large;
  }
}

// Nobody has ended it: the SET may be executed behind any delete, and the time is from when the connection was up
// again.
TEST_F(StrayDebt, strays_at_large_are_deleted_again_and_again_and_once_more_when_their_time_is_over) {
  const int64_t back = 100, until = back + lifetime_ms;
  f.claims.strays_at_large(0, at(back));
  int64_t now = back;
  for (const int64_t rest : {20, 40, 80, 160, 320}) {
    f.remove(c, 0, rest == 80 ? Deleted::error : Deleted::absent, at(now));
    ASSERT_FALSE(f.freed(c));
    EXPECT_FALSE(f.claims.owes(0));
    f.claims.on_time(at(now + rest - 1));
    EXPECT_FALSE(f.claims.owes(0)) << rest;
    EXPECT_EQ(f.claims.deadline(), at(now + rest));
    now += rest;
    f.claims.on_time(at(now));
    ASSERT_TRUE(f.claims.owes(0)) << rest;
  }
  f.remove(c, 0, Deleted::absent, at(now));
  EXPECT_EQ(f.claims.deadline(), at(until)) << "and not at the end of a longer rest";
  f.claims.on_time(at(until));
  f.remove(c, 0, Deleted::absent, at(until));
  ASSERT_TRUE(f.claims.owes(0)) << "the SET may have come behind that one: one more, at once";
  f.remove(c, 0, Deleted::absent, at(until));
  EXPECT_TRUE(f.freed(c));
}

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

TEST_F(StrayDebt, a_delete_under_way_when_the_time_of_the_strays_was_over_is_not_the_last) {
  f.claims.strays_at_large(0, at(0));
  f.claims.deletes_queued(c, Masters::of(0));
  f.claims.on_time(at(lifetime_ms));
  f.claims.delete_answered(c, 0, Deleted::absent, at(2'000));
  ASSERT_FALSE(f.freed(c));
  EXPECT_TRUE(f.claims.owes(0)) << "at once";
  f.remove(c, 0, Deleted::absent, at(2'001));
  EXPECT_TRUE(f.freed(c));
}

TEST_F(StrayDebt, the_time_of_strays_begins_anew_when_the_connection_broke_again) {
  f.claims.strays_at_large(0, at(0));
  f.remove(c, 0, Deleted::absent, at(0));
  f.claims.broke(0);
  f.claims.strays_at_large(0, at(900));
  f.claims.on_time(at(lifetime_ms));
  f.remove(c, 0, Deleted::absent, at(lifetime_ms));
  EXPECT_FALSE(f.freed(c) || f.claims.owes(0)) << "from the last time that it was up again";
  f.claims.on_time(at(900 + lifetime_ms));
  f.remove(c, 0, Deleted::absent, at(900 + lifetime_ms));
  f.remove(c, 0, Deleted::absent, at(900 + lifetime_ms));
  EXPECT_TRUE(f.freed(c));
}

// The server has ended the last connection; what an older one has left keeps its time.
TEST_F(StrayDebt, an_end_of_the_last_connection_is_none_of_older_ones_at_large) {
  f.claims.strays_at_large(0, at(10));
  f.claims.broke(0);
  f.claims.strays_ended(0, at(20));
  f.remove(c, 0, Deleted::absent, at(20));
  ASSERT_FALSE(f.freed(c));
  f.claims.on_time(at(10 + lifetime_ms));
  f.remove(c, 0, Deleted::absent, at(10 + lifetime_ms));
  f.remove(c, 0, Deleted::absent, at(10 + lifetime_ms));
  EXPECT_TRUE(f.freed(c));

  const uint16_t d = f.stray();  // later, when the older ones are over
  f.claims.end(d, Masters::of(0), at(5'000));
  f.claims.strays_ended(0, at(5'000));
  f.remove(d, 0, Deleted::absent, at(5'001));
  EXPECT_TRUE(f.freed(d));
}

TEST_F(AnyClaims, the_longest_ttl_counts_for_strays) {
  const uint16_t c = f.stray();
  f.claims[c].ttl_ms = 30'000;  // as an extend does
  f.claims.end(c, Masters::of(0), at(0));
  f.claims.strays_at_large(0, at(0));
  f.claims.on_time(at(30'000));
  f.remove(c, 0, Deleted::absent, at(30'301));
  EXPECT_FALSE(f.claims.owes(0));
  f.claims.on_time(at(30'321));
  f.remove(c, 0, Deleted::absent, at(30'321));
  EXPECT_TRUE(f.claims.owes(0)) << "1 % and 2 ms later";
}

TEST(Claims, two_masters_with_strays_at_large_each_have_their_time) {
  for (const bool in_order : {true, false}) {
    Fixture f(5);
    const uint16_t c = f.make();
    for (const MasterIndex m : {0u, 1u}) {
      f.claims.set_sent(c, m);
      f.claims.broke(m);
    }
    f.claims.end(c, Masters::of(0, 1), at(0));
    f.claims.strays_at_large(0, at(0));
    f.claims.strays_at_large(1, at(600));
    for (const MasterIndex m : {in_order ? 0u : 1u, in_order ? 1u : 0u}) f.remove(c, m, Deleted::absent, at(1'000));
    EXPECT_EQ(f.claims.deadline(), at(1'020));
    f.claims.on_time(at(1'020));
    for (const MasterIndex m : {0u, 1u}) f.remove(c, m, Deleted::absent, at(1'020));
    EXPECT_EQ(f.claims[c].owed, Masters::of(0)) << "the last of this one";
    f.remove(c, 0, Deleted::absent, at(1'020));
    EXPECT_EQ(f.claims[c].resting, Masters::of(1));
    f.claims.on_time(at(600 + lifetime_ms));
    f.remove(c, 1, Deleted::absent, at(600 + lifetime_ms));
    f.remove(c, 1, Deleted::absent, at(600 + lifetime_ms));
    EXPECT_TRUE(f.freed(c));
  }
}

// The master is not back yet, and nobody knows what it will do then.
TEST_F(StrayDebt, a_stray_set_never_ends_unheard) {
  for (int i = 0; i < 5; ++i) {  // the delete goes out again and again and is never answered
    f.claims.deletes_queued(c, Masters::of(0));
    f.claims.broke(0);
    f.claims.on_time(at(1'000'000 * (i + 1)));
    EXPECT_FALSE(f.freed(c));
    EXPECT_TRUE(f.claims.owes(0));
  }
}

// ---- ends by itself -------------------------------------------------------------------------------------------

TEST_F(GrantedClaim, a_debt_ends_by_itself_when_every_key_must_have_expired) {
  f.claims.end(c, Masters::of(0, 1), at(5));
  const Instant end = at(5 + 2 * lifetime_ms);
  EXPECT_EQ(f.claims.deadline(), end);
  f.claims.on_time(end + Duration::ns(-1));
  EXPECT_FALSE(f.freed(c));
  EXPECT_EQ(f.claims.on_time(end), Instant::never());
  EXPECT_TRUE(f.freed(c));
  EXPECT_EQ(f.claims.reserved(0) + f.claims.reserved(1), 0u);
  EXPECT_FALSE(f.claims.owes(0) || f.claims.owes(1));
}

TEST_F(GrantedClaim, its_longest_ttl_counts) {
  f.claims[c].ttl_ms = 30'000;  // as an extend does
  f.claims.end(c, Masters::of(0), at(0));
  EXPECT_EQ(f.claims.deadline(), at(2 * (30'000 + 302)));
}

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

// The delete has found no room and waits; the answer to the SET comes after the debt would have ended; the master goes.
TEST(Claims, a_late_answer_does_not_leave_a_debt_without_an_end) {
  for (const bool refused : {true, false}) {
    Fixture f;
    const uint16_t c = f.make();
    f.claims.set_sent(c, 0);
    f.claims.end(c, Masters::of(0), at(0));
    const int64_t late = 2 * lifetime_ms + 500;
    f.claims.on_time(at(late));
    EXPECT_TRUE(f.claims.owes(0)) << "the SET is unanswered";
    f.claims.set_answered(c, 0, refused, at(late));
    f.claims.broke(0);
    EXPECT_LE(f.claims.deadline(), at(late + (refused ? 0 : 2 * lifetime_ms)));
    f.claims.on_time(f.claims.deadline());
    f.claims.on_time(f.claims.deadline());
    EXPECT_TRUE(f.freed(c)) << refused;
  }
}

}  // namespace
}  // namespace redlock
