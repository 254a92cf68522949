// SPDX-License-Identifier: MIT
//
// Claims: each arrow of the drawing in claims.hpp by itself, then long random walks of valid operations: beside a model
// that keeps one plain record per claim and master, and beside servers that execute what they read, and read when they
// like.
#include "client/claims.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace redlock {
namespace {

using Deleted = Claims::Deleted;

constexpr uint32_t ttl = 1'000;
constexpr unsigned resource_bytes = 12;
constexpr int64_t lifetime_ms = 1'012;  // ttl + drift

Instant at(int64_t ms) { return Instant::from_ns(ms * 1'000'000); }

struct Fixture {
  explicit Fixture(unsigned masters = 3, unsigned locks = 4, unsigned capacity = 10)
      : table(capacity), names(capacity * resource_bytes) {
    claims.init({masters, masters / 2 + 1, locks, 10'000, 2, resource_bytes}, table.data(), capacity, names.data());
  }
  uint16_t make() { return claims.make(7, "valve", ttl); }
  // A claim whose SET was sent to masters 0 and 1 and granted there.
  uint16_t granted() {
    const uint16_t c = make();
    for (const MasterIndex m : {0u, 1u}) {
      claims.set_sent(c, m);
      claims.set_answered(c, m, false, at(0));
    }
    return c;
  }
  // One whose SET to master 0 was unanswered when its connection broke.
  uint16_t stray() {
    const uint16_t c = make();
    claims.set_sent(c, 0);
    claims.broke(0);
    return c;
  }
  void delete_absent(uint16_t c, MasterIndex m, Instant when) {
    claims.deletes_queued(c, Masters::of(m));
    claims.delete_answered(c, m, Deleted::absent, when);
  }
  bool freed(uint16_t c) const { return !claims[c].used; }

  std::vector<Claim> table;
  std::vector<char> names;
  Claims claims;
};

TEST(Claims, several_names_are_copied) {
  Fixture f;
  char memory[8];
  const Bytes both[] = {"bus", "valve"};
  Names names;
  names.assign(memory, both, 2);
  f.make();
  const uint16_t c = f.claims.make(7, names, ttl);
  f.make();
  memset(memory, 'x', sizeof memory);
  EXPECT_EQ(f.claims[c].names.count(), 2u);
  EXPECT_TRUE(f.claims[c].names.has("bus"));
  EXPECT_TRUE(f.claims[c].names.has("valve"));
}

TEST(Claims, a_new_one) {
  Fixture f;
  const uint16_t c = f.make();
  ASSERT_NE(c, no_slot);
  const Claim& claim = f.claims[c];
  EXPECT_TRUE(claim.used);
  EXPECT_FALSE(claim.ended);
  EXPECT_EQ(claim.slot, 7);
  EXPECT_EQ(claim.names.count(), 1u);
  EXPECT_EQ(claim.names.first(), Bytes("valve"));
  EXPECT_EQ(claim.names.first().data, f.names.data() + size_t{c} * resource_bytes) << "a copy";
  EXPECT_EQ(claim.ttl_ms, ttl);
  EXPECT_EQ(claim.sent | claim.refused | claim.pending | claim.stray | claim.owed | claim.deleting | claim.resting, Masters());
  EXPECT_EQ(f.claims.debts(), 0u);
  EXPECT_EQ(f.claims.deadline(), Instant::never());
  EXPECT_EQ(f.claims.on_time(at(1'000'000)), Instant::never());
}

TEST(Claims, full_and_again) {
  Fixture f;
  std::vector<uint16_t> all;
  for (unsigned i = 0; i < 10; ++i) {
    EXPECT_FALSE(f.claims.full());
    all.push_back(f.make());
  }
  EXPECT_TRUE(f.claims.full());
  EXPECT_EQ(f.make(), no_slot);
  f.claims.end(all[3], {}, at(0));
  EXPECT_FALSE(f.claims.full());
  EXPECT_EQ(f.make(), all[3]);
  EXPECT_TRUE(f.claims.full());
}

// ---- the arrows -----------------------------------------------------------------------------------------------

TEST(Claims, pending_then_answered) {
  Fixture f;
  const uint16_t c = f.make();
  f.claims.set_sent(c, 0);
  f.claims.set_sent(c, 2);
  EXPECT_EQ(f.claims[c].sent, Masters::of(0, 2));
  EXPECT_EQ(f.claims[c].pending, Masters::of(0, 2));
  EXPECT_EQ(f.claims.reserved(0), 1u);
  EXPECT_EQ(f.claims.reserved(1), 0u);
  f.claims.set_answered(c, 0, true, at(0));
  f.claims.set_answered(c, 2, false, at(0));
  EXPECT_EQ(f.claims[c].pending, Masters());
  EXPECT_EQ(f.claims[c].refused, Masters::of(0));
  EXPECT_EQ(f.claims.reserved(0), 1u) << "whether its delete is needed is for the end to say";
}

TEST(Claims, ended_deleted_and_paid) {
  Fixture f;
  const uint16_t c = f.granted();
  f.claims.end(c, Masters::of(0, 1), at(0));
  EXPECT_EQ(f.claims[c].slot, no_slot);
  EXPECT_EQ(f.claims.debts(), 1u);
  EXPECT_TRUE(f.claims.owes(0) && f.claims.owes(1) && !f.claims.owes(2));
  EXPECT_EQ(f.claims.next_owed(0, 0), c);
  EXPECT_EQ(f.claims.next_owed(0, static_cast<uint16_t>(c + 1)), no_slot);
  EXPECT_EQ(f.claims.next_owed(2, 0), no_slot);
  f.claims.deletes_queued(c, Masters::of(0));
  EXPECT_FALSE(f.claims.owes(0));
  EXPECT_EQ(f.claims.reserved(0), 0u) << "the place is taken";
  EXPECT_EQ(f.claims.reserved(1), 1u);
  EXPECT_EQ(f.claims.debts_of(0), 1u);
  f.claims.delete_answered(c, 0, Deleted::yes, at(1));
  EXPECT_EQ(f.claims.debts_of(0), 0u);
  EXPECT_FALSE(f.freed(c));
  f.claims.deletes_queued(c, Masters::of(1));
  f.claims.delete_answered(c, 1, Deleted::absent, at(1));
  EXPECT_TRUE(f.freed(c)) << "already expired is a normal answer";
  EXPECT_EQ(f.claims.debts(), 0u);
}

TEST(Claims, masters_that_refused_are_spared_and_give_their_places_back) {
  Fixture f;
  const uint16_t c = f.make();
  for (const MasterIndex m : {0u, 1u, 2u}) {
    f.claims.set_sent(c, m);
    f.claims.set_answered(c, m, m != 1, at(0));
  }
  f.claims.end(c, Masters::of(1), at(0));
  EXPECT_EQ(f.claims.reserved(0) + f.claims.reserved(2), 0u);
  EXPECT_EQ(f.claims.reserved(1), 1u);
  f.claims.deletes_queued(c, Masters::of(1));
  f.claims.delete_answered(c, 1, Deleted::yes, at(1));
  EXPECT_TRUE(f.freed(c));
}

TEST(Claims, every_refusal_is_remembered) {
  Fixture f;
  const uint16_t c = f.make();
  for (const MasterIndex m : {0u, 1u, 2u}) f.claims.set_sent(c, m);
  for (const MasterIndex m : {0u, 2u}) f.claims.set_answered(c, m, true, at(0));
  EXPECT_EQ(f.claims[c].refused, Masters::of(0, 2));
}

TEST(Claims, an_end_without_targets_is_over_at_once) {
  Fixture f;
  const uint16_t c = f.make();
  f.claims.set_sent(c, 0);
  f.claims.set_answered(c, 0, true, at(0));
  f.claims.end(c, {}, at(0));
  EXPECT_TRUE(f.freed(c));
  EXPECT_EQ(f.claims.debts(), 0u);
  EXPECT_EQ(f.claims.reserved(0), 0u);
}

TEST(Claims, a_delete_behind_an_unanswered_set) {
  Fixture f;
  const uint16_t c = f.make();
  f.claims.set_sent(c, 0);
  f.claims.end(c, Masters::of(0), at(0));
  f.claims.deletes_queued(c, Masters::of(0));
  f.claims.set_answered(c, 0, false, at(0));
  EXPECT_FALSE(f.freed(c));
  f.claims.delete_answered(c, 0, Deleted::yes, at(1));
  EXPECT_TRUE(f.freed(c));
}

TEST(Claims, an_error_rests_and_is_owed_again) {
  Fixture f;
  const uint16_t c = f.granted();
  f.claims.end(c, Masters::of(0), at(0));
  int64_t now = 0;
  for (const int64_t rest : {20, 40, 80, 160, 320, 640, 1'280, 1'280, 1'280}) {
    f.claims.deletes_queued(c, Masters::of(0));
    // void_at is not the matter here
    f.claims[c].void_at = Instant::never();
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

TEST(Claims, two_masters_rest_together) {
  Fixture f;
  const uint16_t c = f.granted();
  f.claims.end(c, Masters::of(0, 1), at(0));
  for (const MasterIndex m : {0u, 1u}) {
    f.claims.deletes_queued(c, Masters::of(m));
    f.claims.delete_answered(c, m, Deleted::error, at(m * 10));
  }
  f.claims.on_time(at(20));
  EXPECT_TRUE(f.claims.owes(0) && f.claims.owes(1));
}

TEST(Claims, an_unknown_script_is_owed_at_once) {
  Fixture f;
  const uint16_t c = f.granted();
  f.claims.end(c, Masters::of(0), at(0));
  f.claims.deletes_queued(c, Masters::of(0));
  f.claims.delete_unknown(c, 0);
  EXPECT_TRUE(f.claims.owes(0));
  EXPECT_EQ(f.claims.reserved(0), 0u);
  f.claims.deletes_queued(c, Masters::of(0));
  f.claims.delete_answered(c, 0, Deleted::yes, at(0));
  EXPECT_TRUE(f.freed(c));
}

// ---- broken connections ---------------------------------------------------------------------------------------

TEST(Claims, broke_while_pending) {
  Fixture f;
  const uint16_t c = f.make();
  f.claims.set_sent(c, 0);
  f.claims.set_sent(c, 1);
  f.claims.broke(0);
  EXPECT_EQ(f.claims[c].stray, Masters::of(0));
  EXPECT_EQ(f.claims[c].pending, Masters::of(1));
  EXPECT_EQ(f.claims.reserved(0), 0u) << "the places were that connection's";
  EXPECT_EQ(f.claims.reserved(1), 1u);
  EXPECT_FALSE(f.claims.owes(0)) << "a lock that is held owes nothing";
}

TEST(Claims, broke_while_granted_owed_deleting_and_resting) {
  Fixture f;
  const uint16_t held = f.granted();
  f.claims.broke(0);
  EXPECT_EQ(f.claims[held].stray, Masters());
  EXPECT_EQ(f.claims.reserved(0), 0u);

  const uint16_t owed = f.granted(), deleting = f.granted(), resting = f.granted();
  for (const uint16_t c : {owed, deleting, resting}) f.claims.end(c, Masters::of(0), at(0));
  f.claims.deletes_queued(deleting, Masters::of(0));
  f.claims.deletes_queued(resting, Masters::of(0));
  f.claims.delete_answered(resting, 0, Deleted::error, at(0));
  f.claims.broke(0);
  EXPECT_EQ(f.claims.reserved(0), 0u);
  for (const uint16_t c : {owed, deleting}) EXPECT_EQ(f.claims[c].owed, Masters::of(0));
  EXPECT_EQ(f.claims[deleting].deleting, Masters());
  EXPECT_EQ(f.claims[resting].resting, Masters::of(0));
  f.claims.on_time(at(20));
  unsigned n = 0;
  for (uint16_t i = f.claims.next_owed(0, 0); i != no_slot; i = f.claims.next_owed(0, static_cast<uint16_t>(i + 1)))
    ++n;
  EXPECT_EQ(n, 3u);
  EXPECT_EQ(f.claims.debts(), 3u);
}

// ---- strays -------------------------------------------------------------------------------------------------------

TEST(Claims, a_broken_connection_tells_whether_strays_are_left) {
  Fixture f;
  const uint16_t c = f.granted();
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

TEST(Claims, a_stray_of_a_debt_is_left_until_its_last_delete_is_on_its_way) {
  Fixture f;
  const uint16_t c = f.stray();
  f.claims.end(c, Masters::of(0), at(0));
  EXPECT_TRUE(f.claims.broke(0));
  f.claims.strays_at_large(0, at(0));
  f.delete_absent(c, 0, at(1));
  EXPECT_TRUE(f.claims.broke(0));
  f.claims.strays_at_large(0, at(10));
  f.claims.on_time(at(10 + lifetime_ms));
  f.delete_absent(c, 0, at(10 + lifetime_ms));
  EXPECT_FALSE(f.claims.broke(0));
}

// The server has closed the old connection: nothing of it can be executed behind that.
TEST(Claims, one_delete_behind_the_end_of_the_strays_is_final) {
  for (const Deleted how : {Deleted::yes, Deleted::absent}) {
    Fixture f;
    const uint16_t c = f.stray();
    f.claims.end(c, Masters::of(0), at(0));
    f.claims.strays_ended(0, at(5));
    EXPECT_FALSE(f.freed(c)) << "the delete is still owed";
    ASSERT_TRUE(f.claims.owes(0));
    f.claims.deletes_queued(c, Masters::of(0));
    f.claims.delete_answered(c, 0, how, at(6));
    EXPECT_TRUE(f.freed(c));
  }
}

TEST(Claims, the_final_delete_is_final_when_it_was_executed) {
  for (const char* fate : {"broke", "unknown", "error"}) {
    Fixture f;
    const uint16_t c = f.stray();
    f.claims.end(c, Masters::of(0), at(0));
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
    f.delete_absent(c, 0, at(100));
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

TEST(Claims, a_lock_that_is_held_has_no_stray_any_more) {
  Fixture f;
  const uint16_t c = f.stray();
  EXPECT_FALSE(f.claims.may_put_back(c, 0, at(4)));
  f.claims.strays_ended(0, at(5));
  EXPECT_TRUE(f.claims.may_put_back(c, 0, at(5)));
  EXPECT_EQ(f.claims.deadline(), Instant::never());
  f.claims.end(c, Masters::of(0), at(10));
  EXPECT_EQ(f.claims[c].void_at, at(10 + 2 * lifetime_ms));
  f.delete_absent(c, 0, at(11));
  EXPECT_TRUE(f.freed(c));
}

// The SET may have been executed just before: its key is that young, however old the debt is.
TEST(Claims, the_final_delete_leaves_also_when_the_debt_would_have_ended) {
  for (const bool at_large : {false, true}) {
    Fixture f;
    const uint16_t c = f.stray();
    f.claims.end(c, Masters::of(0), at(0));
    int64_t now = 5 * lifetime_ms;
    f.claims.on_time(at(now));
    if (at_large) {
      f.claims.strays_at_large(0, at(now));
      f.delete_absent(c, 0, at(now));
      now += lifetime_ms;
      f.claims.on_time(at(now));
      f.delete_absent(c, 0, at(now));
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
TEST(Claims, strays_at_large_are_deleted_again_and_again_and_once_more_when_their_time_is_over) {
  Fixture f;
  const uint16_t c = f.stray();
  f.claims.end(c, Masters::of(0), at(0));
  const int64_t back = 100, until = back + lifetime_ms;
  f.claims.strays_at_large(0, at(back));
  int64_t now = back;
  for (const int64_t rest : {20, 40, 80, 160, 320}) {
    f.claims.deletes_queued(c, Masters::of(0));
    f.claims.delete_answered(c, 0, rest == 80 ? Deleted::error : Deleted::absent, at(now));
    ASSERT_FALSE(f.freed(c));
    EXPECT_FALSE(f.claims.owes(0));
    f.claims.on_time(at(now + rest - 1));
    EXPECT_FALSE(f.claims.owes(0)) << rest;
    EXPECT_EQ(f.claims.deadline(), at(now + rest));
    now += rest;
    f.claims.on_time(at(now));
    ASSERT_TRUE(f.claims.owes(0)) << rest;
  }
  f.delete_absent(c, 0, at(now));
  EXPECT_EQ(f.claims.deadline(), at(until)) << "and not at the end of a longer rest";
  f.claims.on_time(at(until));
  f.claims.deletes_queued(c, Masters::of(0));
  f.claims.delete_answered(c, 0, Deleted::absent, at(until));
  ASSERT_TRUE(f.claims.owes(0)) << "the SET may have come behind that one: one more, at once";
  f.delete_absent(c, 0, at(until));
  EXPECT_TRUE(f.freed(c));
}

// It may have found what another listing of the same server has put back.
TEST(Claims, a_key_that_was_found_does_not_pay_for_a_stray) {
  Fixture f;
  const uint16_t c = f.stray();
  f.claims.end(c, Masters::of(0), at(0));
  f.claims.strays_at_large(0, at(10));
  f.claims.deletes_queued(c, Masters::of(0));
  f.claims.delete_answered(c, 0, Deleted::yes, at(10));
  EXPECT_FALSE(f.freed(c));
  EXPECT_EQ(f.claims[c].resting, Masters::of(0));
  f.claims.on_time(at(10 + lifetime_ms));
  f.claims.deletes_queued(c, Masters::of(0));
  f.claims.delete_answered(c, 0, Deleted::yes, at(10 + lifetime_ms));
  EXPECT_TRUE(f.claims.owes(0));
  f.claims.deletes_queued(c, Masters::of(0));
  f.claims.delete_answered(c, 0, Deleted::yes, at(11 + lifetime_ms));
  EXPECT_TRUE(f.freed(c));
}

TEST(Claims, a_delete_under_way_when_the_time_of_the_strays_was_over_is_not_the_last) {
  Fixture f;
  const uint16_t c = f.stray();
  f.claims.end(c, Masters::of(0), at(0));
  f.claims.strays_at_large(0, at(0));
  f.claims.deletes_queued(c, Masters::of(0));
  f.claims.on_time(at(lifetime_ms));
  f.claims.delete_answered(c, 0, Deleted::absent, at(2'000));
  ASSERT_FALSE(f.freed(c));
  EXPECT_TRUE(f.claims.owes(0)) << "at once";
  f.delete_absent(c, 0, at(2'001));
  EXPECT_TRUE(f.freed(c));
}

TEST(Claims, the_time_of_strays_begins_anew_when_the_connection_broke_again) {
  Fixture f;
  const uint16_t c = f.stray();
  f.claims.end(c, Masters::of(0), at(0));
  f.claims.strays_at_large(0, at(0));
  f.delete_absent(c, 0, at(0));
  f.claims.broke(0);
  f.claims.strays_at_large(0, at(900));
  f.claims.on_time(at(lifetime_ms));
  f.delete_absent(c, 0, at(lifetime_ms));
  EXPECT_FALSE(f.freed(c) || f.claims.owes(0)) << "from the last time that it was up again";
  f.claims.on_time(at(900 + lifetime_ms));
  f.delete_absent(c, 0, at(900 + lifetime_ms));
  f.delete_absent(c, 0, at(900 + lifetime_ms));
  EXPECT_TRUE(f.freed(c));
}

// The server has ended the last connection; what an older one has left keeps its time.
TEST(Claims, an_end_of_the_last_connection_is_none_of_older_ones_at_large) {
  Fixture f;
  const uint16_t c = f.stray();
  f.claims.end(c, Masters::of(0), at(0));
  f.claims.strays_at_large(0, at(10));
  f.claims.broke(0);
  f.claims.strays_ended(0, at(20));
  f.delete_absent(c, 0, at(20));
  ASSERT_FALSE(f.freed(c));
  f.claims.on_time(at(10 + lifetime_ms));
  f.delete_absent(c, 0, at(10 + lifetime_ms));
  f.delete_absent(c, 0, at(10 + lifetime_ms));
  EXPECT_TRUE(f.freed(c));

  const uint16_t d = f.stray();  // later, when the older ones are over
  f.claims.end(d, Masters::of(0), at(5'000));
  f.claims.strays_ended(0, at(5'000));
  f.delete_absent(d, 0, at(5'001));
  EXPECT_TRUE(f.freed(d));
}

TEST(Claims, the_longest_ttl_counts_for_strays) {
  Fixture f;
  const uint16_t c = f.stray();
  f.claims[c].ttl_ms = 30'000;  // as an extend does
  f.claims.end(c, Masters::of(0), at(0));
  f.claims.strays_at_large(0, at(0));
  f.claims.on_time(at(30'000));
  f.delete_absent(c, 0, at(30'301));
  EXPECT_FALSE(f.claims.owes(0));
  f.claims.on_time(at(30'321));
  f.delete_absent(c, 0, at(30'321));
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
    for (const MasterIndex m : {in_order ? 0u : 1u, in_order ? 1u : 0u}) f.delete_absent(c, m, at(1'000));
    EXPECT_EQ(f.claims.deadline(), at(1'020));
    f.claims.on_time(at(1'020));
    for (const MasterIndex m : {0u, 1u}) f.delete_absent(c, m, at(1'020));
    EXPECT_EQ(f.claims[c].owed, Masters::of(0)) << "the last of this one";
    f.delete_absent(c, 0, at(1'020));
    EXPECT_EQ(f.claims[c].resting, Masters::of(1));
    f.claims.on_time(at(600 + lifetime_ms));
    f.delete_absent(c, 1, at(600 + lifetime_ms));
    f.delete_absent(c, 1, at(600 + lifetime_ms));
    EXPECT_TRUE(f.freed(c));
  }
}

// The master is not back yet, and nobody knows what it will do then.
TEST(Claims, a_stray_set_never_ends_unheard) {
  Fixture f;
  const uint16_t c = f.stray();
  f.claims.end(c, Masters::of(0), at(0));
  for (int i = 0; i < 5; ++i) {  // the delete goes out again and again and is never answered
    f.claims.deletes_queued(c, Masters::of(0));
    f.claims.broke(0);
    f.claims.on_time(at(1'000'000 * (i + 1)));
    EXPECT_FALSE(f.freed(c));
    EXPECT_TRUE(f.claims.owes(0));
  }
}

// ---- ends by itself -------------------------------------------------------------------------------------------

TEST(Claims, a_debt_ends_by_itself_when_every_key_must_have_expired) {
  Fixture f;
  const uint16_t c = f.granted();
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

TEST(Claims, its_longest_ttl_counts) {
  Fixture f;
  const uint16_t c = f.granted();
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

// ---- lingering ------------------------------------------------------------------------------------------------

TEST(Claims, lingers_until_its_time) {
  Fixture f;
  const uint16_t c = f.granted();
  f.claims.linger(c, at(500));
  EXPECT_EQ(f.claims[c].slot, no_slot);
  EXPECT_EQ(f.claims.debts(), 0u);
  EXPECT_EQ(f.claims.deadline(), at(500));
  f.claims.on_time(Instant::from_ns(at(500).ns() - 1));
  EXPECT_FALSE(f.claims.owes(0)) << "a check already answered may be relied on";
  f.claims.on_time(at(500));
  EXPECT_TRUE(f.claims.owes(0) && f.claims.owes(1));
  EXPECT_EQ(f.claims.debts(), 1u);
  EXPECT_EQ(f.claims.deadline(), at(500 + 2 * lifetime_ms));
}

TEST(Claims, lingers_through_answers_and_broken_connections) {
  Fixture f;
  const uint16_t c = f.granted();
  f.claims.set_sent(c, 2);
  f.claims.linger(c, at(500));
  f.claims.broke(0);
  f.claims.set_answered(c, 2, true, at(0));
  EXPECT_FALSE(f.freed(c));
  f.claims.on_time(at(500));
  EXPECT_TRUE(f.claims.owes(0) && f.claims.owes(1) && f.claims.owes(2)) << "wherever anything was sent";
}

TEST(Claims, lingering_where_nothing_was_sent) {
  Fixture f;
  const uint16_t c = f.make();
  f.claims.linger(c, at(5));
  f.claims.on_time(at(5));
  EXPECT_TRUE(f.freed(c));
  EXPECT_EQ(f.claims.debts(), 0u);
  for (unsigned i = 0; i < 10; ++i) EXPECT_NE(f.make(), no_slot);
  EXPECT_EQ(f.make(), no_slot);
}

// ---- the queue of ended ones ----------------------------------------------------------------------------------

TEST(Claims, one_that_stands_in_a_queue_is_not_given_away) {
  Fixture f;
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

TEST(Claims, a_key_that_was_put_back_is_deleted_where_the_first_set_was_refused) {
  Fixture f;
  const uint16_t c = f.make();
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
    f.delete_absent(all[0], 0, at(lifetime_ms));
    EXPECT_FALSE(f.claims.may_send(0)) << "the last one is unanswered";
    f.delete_absent(all[0], 0, at(lifetime_ms));
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

TEST(Claims, an_answer_frees_the_share) {
  Fixture f(15, 4, 10);
  const uint16_t c = f.make();
  f.claims.set_sent(c, 3);
  EXPECT_FALSE(f.claims.may_send(3));
  f.claims.set_answered(c, 3, true, at(0));
  EXPECT_TRUE(f.claims.may_send(3));
}

#if defined(REDLOCK_ASSERTS)
TEST(Claims, what_cannot_happen_traps) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Fixture f;
  const uint16_t c = f.granted();
  EXPECT_DEATH(f.claims.set_answered(c, 0, false, at(0)), "") << "answered twice";
  EXPECT_DEATH(f.claims.end(c, Masters::of(2), at(0)), "") << "nothing was sent there";
  EXPECT_DEATH(f.claims.deletes_queued(c, Masters::of(0)), "") << "not owed";
  EXPECT_DEATH(f.claims.delete_answered(c, 0, Deleted::yes, at(0)), "") << "not asked";
}
#endif

// ---- random walks ---------------------------------------------------------------------------------------------

// What one claim is to one master, as plain facts.
struct Place {
  bool sent = false, refused = false;
  bool set_unanswered = false;  // on the present connection
  bool set_stray = false;
  enum { none, owed, asked, resting } debt = none;
  bool reserved = false;
};

struct Model {
  struct One {
    uint64_t value = 0;  // as the masters know it
    std::map<unsigned, Place> at;
    bool ended = false;
    std::optional<int64_t> end_at, void_at, repeat_at;
    int64_t rest = 20;
    bool over() const {
      if (!ended) return false;
      for (const auto& [m, p] : at) {
        if (p.set_unanswered || p.set_stray || p.debt != Place::none) return false;
      }
      return true;
    }
  };
  std::map<uint16_t, One> claims;
  std::map<unsigned, int64_t> back_at;  // when strays were told to be at large

  bool strays_may_come(unsigned m, int64_t now) const {
    const auto back = back_at.find(m);
    return back != back_at.end() && now < back->second + lifetime_ms;
  }
  void end(One& c, int64_t now, bool spare_refused) {
    c.ended = true;
    c.end_at.reset();
    c.void_at = now + 2 * lifetime_ms;
    for (auto& [m, p] : c.at) {
      if (p.sent && !(spare_refused && p.refused)) {
        p.debt = Place::owed;
      } else {
        p.reserved = false;
      }
    }
  }
  void time(int64_t now) {
    for (auto& [index, c] : claims) {
      if (!c.ended && c.end_at && now >= *c.end_at) end(c, now, false);
      bool any_resting = false;
      for (auto& [m, p] : c.at) {
        const bool voided =
            c.void_at && now >= *c.void_at && !p.set_stray && !p.set_unanswered && p.debt != Place::asked;
        if (voided) p.debt = Place::none, p.reserved = false;
        any_resting |= p.debt == Place::resting;
      }
      if (!any_resting || now < *c.repeat_at) continue;
      for (auto& [m, p] : c.at) {
        if (p.debt == Place::resting) p.debt = Place::owed;
      }
    }
    sweep();
  }
  void sweep() {
    for (auto it = claims.begin(); it != claims.end();) it = it->second.over() ? claims.erase(it) : std::next(it);
  }
  void no_stray(One& c, unsigned m, int64_t now) {
    c.at[m].set_stray = false;
    if (c.ended) c.void_at = std::max(*c.void_at, now + 2 * lifetime_ms);
  }
  void answered(One& c, unsigned m, Deleted how, int64_t now) {
    Place& p = c.at[m];
    if (how != Deleted::error && !p.set_stray) {
      p.debt = Place::none;
    } else if (how != Deleted::error && !strays_may_come(m, now)) {
      no_stray(c, m, now);
      p.debt = Place::owed;
    } else {
      bool any_resting = false;
      for (auto& [n, q] : c.at) any_resting |= q.debt == Place::resting;
      if (!any_resting) {
        c.repeat_at = now + c.rest;
        c.rest = std::min<int64_t>(2 * c.rest, 1'280);
      }
      if (p.set_stray) c.repeat_at = std::min(*c.repeat_at, std::max(back_at[m] + lifetime_ms, now + 20));
      p.debt = Place::resting;
    }
  }
  bool broke(unsigned m) {
    bool strays = false;
    for (auto& [index, c] : claims) {
      Place& p = c.at[m];
      p.reserved = false;
      if (p.set_unanswered) p.set_unanswered = false, p.set_stray = true;
      if (p.debt == Place::asked) p.debt = Place::owed;
      strays |= p.set_stray;
    }
    return strays;
  }
  void strays_ended(unsigned m, int64_t now) {
    if (strays_may_come(m, now)) return;
    for (auto& [index, c] : claims) {
      if (c.at[m].set_stray) no_stray(c, m, now);
    }
    sweep();
  }
  unsigned count(unsigned m, bool (*what)(const Place&)) const {
    unsigned n = 0;
    for (const auto& [index, c] : claims) {
      const auto it = c.at.find(m);
      n += it != c.at.end() && what(it->second);
    }
    return n;
  }
};

// What really is on a server: keys, and commands that it has not read yet, on the present connection and on old ones.
// It may read any connection at any time.
struct Server {
  struct Said {
    bool set;
    uint16_t claim;
    uint64_t value;
  };
  struct Answer {
    Said to;
    enum { yes, no, error, unknown } what;
  };
  struct Connection {
    std::deque<Said> unread;
    int64_t dead_at = INT64_MAX;  // nothing of it is executed from then on
  };
  std::map<uint64_t, int64_t> own_keys;  // value → when it expires
  std::map<uint64_t, int64_t>* keys = &own_keys;
  Connection present;
  std::vector<Connection> old;
  std::deque<Answer> answers;  // on their way

  bool has(uint64_t value, int64_t now) const {
    const auto key = keys->find(value);
    return key != keys->end() && now < key->second;
  }
  // The next command of a connection. A server may refuse for many reasons; then nothing is changed.
  Answer execute(Connection& connection, int64_t now, unsigned luck) {
    const Said said = connection.unread.front();
    connection.unread.pop_front();
    if (luck == 0) return {said, said.set ? Answer::error : Answer::unknown};
    if (luck == 1) return {said, said.set ? Answer::no : Answer::error};
    if (!said.set) {
      const bool was_there = has(said.value, now);
      keys->erase(said.value);
      return {said, was_there ? Answer::yes : Answer::no};
    }
    if (has(said.value, now)) return {said, Answer::no};
    (*keys)[said.value] = now + ttl;
    return {said, Answer::yes};
  }
  bool may_still_set(uint64_t value, int64_t now) const {
    const auto holds = [&](const Connection& c) {
      return now < c.dead_at &&
             std::any_of(c.unread.begin(), c.unread.end(), [&](const Said& s) { return s.set && s.value == value; });
    };
    return holds(present) || std::any_of(old.begin(), old.end(), holds);
  }
};

struct Walk {
  // twins: the first two masters are one server.
  Walk(unsigned seed, unsigned n_masters, unsigned n_locks, unsigned n_capacity, bool twins)
      : dice(seed),
        masters(n_masters),
        capacity(n_capacity),
        fixture(n_masters, n_locks, n_capacity),
        server(n_masters),
        up(n_masters, true) {
    const unsigned minority = masters - (masters / 2 + 1);
    share = std::max(1u, (capacity - n_locks) / std::max(1u, minority));
    if (twins && masters > 1) server[1].keys = server[0].keys;
  }

  unsigned roll(unsigned n) { return static_cast<unsigned>(dice() % n); }

  // ---- the client
  void make() {
    const uint16_t c = claims.make(1, "valve", ttl);
    ASSERT_EQ(c == no_slot, model.claims.size() == capacity);
    if (c == no_slot) return;
    ASSERT_EQ(model.claims.count(c), 0u) << "given out twice";
    Model::One& one = model.claims[c];
    one.value = values[c] = next_value++;
    for (unsigned m = 0; m < masters; ++m) {
      one.at[m];
      if (roll(4) == 0 || !up[m] || !claims.may_send(m)) continue;
      claims.set_sent(c, m);
      one.at[m].sent = one.at[m].set_unanswered = one.at[m].reserved = true;
      server[m].present.unread.push_back({true, c, one.value});
    }
  }
  void put_back() {
    for (auto& [index, c] : model.claims) {
      const unsigned m = roll(masters);
      if (c.ended || c.end_at || !up[m] || !c.at[m].sent || roll(2) == 0) continue;
      if (server[m].has(c.value, now)) continue;  // an extend has found it
      Place& p = c.at[m];
      if (p.set_stray && !strays_may_come(m)) p.set_stray = false;
      const bool may = claims.may_put_back(index, m, at(now));
      ASSERT_EQ(may, claims.may_send(m) && !p.set_unanswered && !p.set_stray);
      if (!may) continue;
      claims.put_back_sent(index, m);
      p.set_unanswered = p.reserved = true;
      p.refused = false;
      server[m].present.unread.push_back({true, index, c.value});
    }
  }
  bool strays_may_come(unsigned m) const { return model.strays_may_come(m, now); }
  void end() {
    std::vector<uint16_t> live;
    for (auto& [index, c] : model.claims) {
      if (!c.ended && !c.end_at) live.push_back(index);
    }
    if (live.empty()) return;
    const uint16_t index = live[roll(static_cast<unsigned>(live.size()))];
    Model::One& c = model.claims[index];
    if (roll(5) == 0) {
      const int64_t when = now + roll(1'000);
      claims.linger(index, at(when));
      c.end_at = when;
      return;
    }
    const bool spare = roll(2) == 0;
    Masters targets;
    for (auto& [m, p] : c.at) {
      if (p.sent && !(spare && p.refused)) targets.add(m);
    }
    claims.end(index, targets, at(now));
    model.end(c, now, spare);
    model.sweep();
  }
  void queue_delete(unsigned m) {
    const uint16_t index = claims.next_owed(m, 0);
    if (index == no_slot || !up[m]) return;
    claims.deletes_queued(index, Masters::of(m));
    Model::One& c = model.claims[index];
    Place& p = c.at[m];
    ASSERT_EQ(p.debt, Place::owed);
    p.debt = Place::asked;
    p.reserved = false;
    server[m].present.unread.push_back({false, index, c.value});
  }

  // ---- the servers
  void execute(unsigned m, bool well) {
    Server& s = server[m];
    const unsigned luck = well ? 99 : roll(20);
    const unsigned n = roll(static_cast<unsigned>(s.old.size()) + 1);
    if (n < s.old.size()) {
      if (!s.old[n].unread.empty() && now < s.old[n].dead_at) s.execute(s.old[n], now, luck);
    } else if (!s.present.unread.empty()) {
      s.answers.push_back(s.execute(s.present, now, luck));
    }
  }
  void answer(unsigned m) {
    if (server[m].answers.empty()) return;
    const Server::Answer a = server[m].answers.front();
    server[m].answers.pop_front();
    Model::One& c = model.claims.at(a.to.claim);
    ASSERT_EQ(c.value, a.to.value) << "an answer about a claim of before";
    if (a.to.set) {
      const bool refused = a.what == Server::Answer::no;
      claims.set_answered(a.to.claim, m, refused, at(now));
      c.at[m].set_unanswered = false;
      c.at[m].refused |= refused;
      if (c.ended && !refused) c.void_at = std::max(*c.void_at, now + 2 * lifetime_ms);
    } else if (a.what == Server::Answer::unknown) {
      claims.delete_unknown(a.to.claim, m);
      c.at[m].debt = Place::owed;
    } else {
      const Deleted how = a.what == Server::Answer::yes  ? Deleted::yes
                          : a.what == Server::Answer::no ? Deleted::absent
                                                         : Deleted::error;
      claims.delete_answered(a.to.claim, m, how, at(now));
      model.answered(c, m, how, now);
    }
    model.sweep();
  }
  // Also the next connection breaks, before it was up.
  void broke(unsigned m) {
    if (up[m]) server[m].old.push_back(std::move(server[m].present));
    server[m].present = {};
    server[m].answers.clear();
    up[m] = false;
    ASSERT_EQ(claims.broke(m), model.broke(m));
  }
  // The next one is up. The server has ended the last one that was up, or nobody has and what is left comes soon or
  // never.
  void back(unsigned m, bool ends) {
    if (up[m]) return;
    up[m] = true;
    Server& s = server[m];
    if (ends) {
      if (!s.old.empty()) s.old.back().unread.clear();
      claims.strays_ended(m, at(now));
      model.strays_ended(m, now);
    } else {
      for (Server::Connection& c : s.old) {
        if (now < c.dead_at) c.dead_at = now + lifetime_ms;
      }
      claims.strays_at_large(m, at(now));
      model.back_at[m] = now;
    }
    std::erase_if(s.old, [&](const Server::Connection& c) { return c.unread.empty() || now >= c.dead_at; });
  }

  // ---- time
  // The earliest thing that a claim will want, one by one.
  Instant first_due() const {
    Instant first = Instant::never();
    const auto may_be = [&](const std::optional<int64_t>& when) {
      if (when && *when > now) first = earlier(first, at(*when));
    };
    for (const auto& [index, c] : model.claims) {
      if (!c.ended) may_be(c.end_at);
      for (const auto& [m, p] : c.at) {
        if (p.debt == Place::resting) may_be(c.repeat_at);
        if (p.debt == Place::owed || p.debt == Place::resting) may_be(c.void_at);
      }
    }
    return first;
  }
  // Time goes by, and the claims are asked whenever they asked to be.
  void pass(int64_t ms) {
    const int64_t then = now + ms;
    while (claims.deadline() <= at(then)) {
      now = std::max(now, (claims.deadline().ns() + 999'999) / 1'000'000);
      claims.on_time(at(now));
      model.time(now);
      ASSERT_GT(claims.deadline(), at(now)) << "handled, and due again";
      check();
      if (testing::Test::HasFatalFailure()) return;
    }
    now = then;
    claims.on_time(at(now));  // nothing is due
    ASSERT_LE(claims.deadline(), first_due());
  }

  void check() {
    unsigned debts = 0;
    for (const auto& [index, c] : model.claims) {
      debts += c.ended;
      ASSERT_TRUE(claims[index].used);
    }
    ASSERT_EQ(claims.debts(), debts);
    ASSERT_EQ(claims.full(), model.claims.size() == capacity);
    for (unsigned m = 0; m < masters; ++m) {
      ASSERT_EQ(claims.reserved(m), model.count(m, [](const Place& p) { return p.reserved; }));
      ASSERT_EQ(claims.owes(m), model.count(m, [](const Place& p) { return p.debt == Place::owed; }) != 0);
      ASSERT_EQ(claims.debts_of(m), model.count(m, [](const Place& p) { return p.debt != Place::none; }));
      const unsigned open =
          model.count(m, [](const Place& p) { return p.set_unanswered || p.set_stray || p.debt != Place::none; });
      ASSERT_EQ(claims.may_send(m), open < share);
      uint16_t at_index = claims.next_owed(m, 0);
      for (const auto& [index, c] : model.claims) {
        if (c.at.at(m).debt != Place::owed) continue;
        ASSERT_EQ(at_index, index);
        at_index = claims.next_owed(m, static_cast<uint16_t>(index + 1));
      }
      ASSERT_EQ(at_index, no_slot);
    }
    // What the claims are for: none is forgotten while a server has its key, or may still execute its SET.
    for (auto it = values.begin(); it != values.end();) {
      if (claims[it->first].used && model.claims.count(it->first) != 0) {
        ++it;
        continue;
      }
      for (unsigned m = 0; m < masters; ++m) {
        ASSERT_FALSE(server[m].has(it->second, now)) << "master " << m << " has a key that nobody owes a delete";
        ASSERT_FALSE(server[m].may_still_set(it->second, now)) << "master " << m << " may still execute a SET";
      }
      it = values.erase(it);
    }
  }

  void step() {
    const unsigned m = roll(masters);
    switch (roll(16)) {
      case 0:
      case 1:
        return make();
      case 2:
      case 3:
        return end();
      case 4:
      case 5:
      case 6:
        return queue_delete(m);
      case 7:
        return pass(roll(roll(20) == 0 ? 3'000 : 50));
      case 8:
        if (roll(8) == 0) broke(m);
        return;
      case 9:
        if (roll(3) == 0) back(m, roll(3) != 0);
        return;
      case 10:
        return put_back();
      case 11:
      case 12:
        return execute(m, false);
      default:
        return answer(m);
    }
  }

  // Every lock ends, every master answers, time goes by: nothing is left.
  void settle() {
    for (int i = 0; i < 2'000 && !model.claims.empty(); ++i) {
      end();
      for (unsigned m = 0; m < masters; ++m) {
        back(m, true);
        queue_delete(m);
        for (int n = 0; n < 8; ++n) execute(m, true), answer(m);
      }
      pass(100);
      check();
      if (testing::Test::HasFatalFailure()) return;
    }
    ASSERT_TRUE(model.claims.empty());
    ASSERT_EQ(claims.debts(), 0u);
    pass(10 * lifetime_ms);  // a deadline may be early, but not for ever
    ASSERT_EQ(claims.deadline(), Instant::never());
    for (unsigned m = 0; m < masters; ++m) {
      ASSERT_EQ(claims.reserved(m), 0u);
      ASSERT_FALSE(claims.owes(m));
      // The whole share is there again.
      for (unsigned n = 0; n < share; ++n) {
        ASSERT_TRUE(claims.may_send(m));
        claims.set_sent(claims.make(1, "valve", ttl), m);
      }
      ASSERT_FALSE(claims.may_send(m));
      for (uint16_t i = 0; i < capacity; ++i) {
        if (!claims[i].used) continue;
        claims.set_answered(i, m, true, at(0));
        claims.end(i, {}, at(now));
      }
    }
    unsigned free = 0;
    while (claims.make(1, "valve", ttl) != no_slot) ++free;
    ASSERT_EQ(free, capacity);
  }

  std::mt19937 dice;
  unsigned masters, capacity, share;
  Fixture fixture;
  Claims& claims = fixture.claims;
  Model model;
  std::vector<Server> server;
  std::vector<bool> up;
  std::map<uint16_t, uint64_t> values;  // of claims that were made and not seen to be free
  uint64_t next_value = 1;
  int64_t now = 0;
};

TEST(Claims, random_walks_beside_a_model_and_servers) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const unsigned masters[] = {1, 2, 3, 5, 7};
    Walk walk(seed, masters[seed % 5], 4, 6 + seed % 9, seed % 3 == 0);
    for (int n = 0; n < 1'500; ++n) {
      walk.step();
      walk.check();
      if (HasFatalFailure()) FAIL() << "at step " << n;
    }
    walk.settle();
    if (HasFatalFailure()) FAIL() << "while settling";
  }
}

}  // namespace
}  // namespace redlock
