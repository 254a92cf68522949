// SPDX-License-Identifier: MIT
//
// Claims: what the model of test_claims_walk.cpp does not go through. The walks there show each arrow of the drawing in
// claims.hpp; strays have a file of their own.
#include "claims_fixture.hpp"

namespace redlock {
namespace {

using namespace claims_test;

TEST_F(GrantedClaim, an_error_rests_and_is_owed_again) {
  f.claims.end(c, Masters::of(0), at(0));
  int64_t now = 0;
  for (const int64_t rest : {20, 40, 80, 160, 320, 640, 1'280, 1'280, 1'280}) {
    f.claims.deletes_queued(c, Masters::of(0));
    // when the debt is written off is not the matter here
    f.claims[c].over_at = at(1'000'000);
    f.claims.delete_answered(c, 0, Deleted::error, at(now));
    EXPECT_FALSE(f.claims.owes(0));
    EXPECT_EQ(f.claims.debts_of(0), 1u);
    EXPECT_LE(f.claims.deadline(), at(now + rest));
    f.claims.on_time(at(now + rest - 1));
    EXPECT_FALSE(f.claims.owes(0)) << rest;
    EXPECT_EQ(f.claims.deadline(), at(now + rest));
    now += rest;
    f.claims.on_time(at(now));
    EXPECT_TRUE(f.claims.owes(0)) << rest;
  }
}

// ---- the queue of ended ones ----------------------------------------------------------------------------------

TEST_F(AnyClaims, one_that_stands_in_a_queue_is_not_given_away) {
  Queue<Claim, &Claim::place> ended;
  const uint16_t c = f.granted();
  f.claims.end(c, Masters::of(0), at(0));
  ended.push(f.table.data(), c);
  f.claims.on_time(at(10'000));  // the debt ends meanwhile
  EXPECT_FALSE(f.freed(c));
  EXPECT_EQ(f.claims[c].owed, Masters());
  ended.remove(f.table.data(), c);
  f.claims.unqueued(c);
  EXPECT_TRUE(f.freed(c));
  EXPECT_EQ(f.make(), c);
}

TEST(Claims, a_key_is_put_back_where_no_set_is_on_its_way_and_the_share_allows_it) {
  Fixture f(5, 4, 10);  // a share of 3
  const uint16_t c = f.granted();
  EXPECT_TRUE(f.claims.may_put_back(c, 0, at(0)));
  f.claims.put_back_sent(c, 0);
  EXPECT_FALSE(f.claims.may_put_back(c, 0, at(0))) << "unanswered";
  EXPECT_TRUE(f.claims.may_put_back(c, 1, at(0)));
  f.claims.broke(0);
  for (const int64_t ms : {0, 1'000'000}) EXPECT_FALSE(f.claims.may_put_back(c, 0, at(ms))) << "it may still come";
  f.claims.strays_at_large(0, at(1'000'000));
  EXPECT_FALSE(f.claims.may_put_back(c, 0, at(1'000'000 + lifetime_ms - 1))) << "it may still come";
  EXPECT_TRUE(f.claims.may_put_back(c, 0, at(1'000'000 + lifetime_ms)));
  f.claims.put_back_sent(c, 0);
  f.claims.broke(0);
  f.claims.strays_ended(0, at(2'000'000));
  EXPECT_TRUE(f.claims.may_put_back(c, 0, at(2'000'000)));
  for (unsigned i = 0; i < 3; ++i) {
    EXPECT_TRUE(f.claims.may_put_back(c, 1, at(0))) << i;
    f.claims.set_sent(f.make(), 1);
  }
  EXPECT_FALSE(f.claims.may_put_back(c, 1, at(0))) << "it owes answers enough";
}

TEST_F(NewClaim, a_key_that_was_put_back_is_deleted_where_the_first_set_was_refused) {
  f.claims.set_sent(c, 0);
  f.claims.set_answered(c, 0, true, at(0));
  EXPECT_EQ(f.claims.reserved(0), 1u);
  f.claims.put_back_sent(c, 0);
  EXPECT_EQ(f.claims[c].refused, Masters());
  EXPECT_EQ(f.claims.reserved(0), 1u) << "one delete, one place";
  f.claims.broke(0);
  f.claims.strays_ended(0, at(1));
  f.claims.put_back_sent(c, 0);
  EXPECT_EQ(f.claims.reserved(0), 1u) << "a place of the new connection";
}

// ---- shares ---------------------------------------------------------------------------------------------------

TEST(Claims, a_master_has_its_share_of_unanswered_sets) {
  const struct {
    unsigned masters, locks, capacity, share;
  } cases[] = {{1, 4, 10, 6}, {2, 4, 10, 6},  {3, 4, 10, 6}, {4, 4, 10, 6},   {5, 4, 10, 3},
               {7, 4, 10, 2}, {15, 4, 10, 1}, {15, 4, 5, 1}, {3, 32, 64, 32}, {5, 32, 64, 16}};
  for (const auto& k : cases) {
    Fixture f(k.masters, k.locks, k.capacity);
    std::vector<uint16_t> all;
    while (f.claims.may_send(0)) {
      all.push_back(f.make());
      f.claims.set_sent(all.back(), 0);
    }
    EXPECT_EQ(all.size(), k.share) << k.masters << " masters";
    EXPECT_TRUE(k.masters == 1 || f.claims.may_send(1));
    f.claims.broke(0);
    EXPECT_FALSE(f.claims.may_send(0)) << "a broken connection answers nothing";
    f.claims.strays_at_large(0, at(0));
    f.claims.end(all[0], Masters::of(0), at(0));
    EXPECT_FALSE(f.claims.may_send(0));
    f.claims.deletes_queued(all[0], Masters::of(0));
    f.claims.delete_answered(all[0], 0, Deleted::absent, at(0));
    EXPECT_FALSE(f.claims.may_send(0)) << "the SET may still come";
    f.claims.on_time(at(lifetime_ms));
    EXPECT_FALSE(f.claims.may_send(0)) << "the last delete but one is unanswered";
    f.remove(all[0], 0, Deleted::absent, at(lifetime_ms));
    EXPECT_FALSE(f.claims.may_send(0)) << "the last one is unanswered";
    f.remove(all[0], 0, Deleted::absent, at(lifetime_ms));
    EXPECT_TRUE(f.claims.may_send(0));
  }
}

// A frozen master that owes deletes takes no more claims either: locks that were held when it froze fill its share.
TEST(Claims, unanswered_deletes_fill_the_share) {
  Fixture f(5, 4, 10);
  std::vector<uint16_t> held;
  for (int i = 0; i < 3; ++i) {
    held.push_back(f.granted());
    EXPECT_TRUE(f.claims.may_send(0));
  }
  for (const uint16_t c : held) f.claims.end(c, Masters::of(0, 1), at(0));
  EXPECT_FALSE(f.claims.may_send(0));
  f.claims.deletes_queued(held[0], Masters::of(0));
  f.claims.delete_answered(held[0], 0, Deleted::yes, at(0));
  EXPECT_TRUE(f.claims.may_send(0));
  EXPECT_FALSE(f.claims.may_send(1));
}

#if defined(REDLOCK_ASSERTS)
TEST_F(GrantedClaim, what_cannot_happen_traps) {
  EXPECT_DEATH(f.claims.set_answered(c, 0, false, at(0)), "claims.hpp:[0-9]+: c.pending.has\\(m\\)\n")
      << "answered twice";
  EXPECT_DEATH(f.claims.end(c, Masters::of(2), at(0)), "") << "nothing was sent there";
  EXPECT_DEATH(f.claims.deletes_queued(c, Masters::of(0)), "") << "not owed";
  EXPECT_DEATH(f.claims.delete_answered(c, 0, Deleted::yes, at(0)), "") << "not asked";
}

TEST(Claims, what_contradicts_itself_traps) {
  const auto check_with = [](void (*spoil)(Claim&)) {
    Fixture f;
    Claim& claim = f.claims[f.granted()];
    f.claims.check();
    spoil(claim);
    f.claims.check();
  };
  EXPECT_DEATH(check_with([](Claim& c) { c.refused.add(2); }), "") << "was not sent it";
  EXPECT_DEATH(check_with([](Claim& c) { c.owed.add(0); }), "") << "the value has not ended";
  EXPECT_DEATH(check_with([](Claim& c) { c.pending.add(0); }), "") << "not counted as open";
  EXPECT_DEATH(check_with([](Claim& c) { c.reserved.remove(0); }), "") << "counted as reserved";
  EXPECT_DEATH(check_with([](Claim& c) { c.ended = true; }), "") << "not counted as a debt";
}
#endif

}  // namespace
}  // namespace redlock
