// SPDX-License-Identifier: MIT
//
// Claims: each arrow of the drawing in claims.hpp by itself, then long random walks of valid operations beside a model
// that keeps one plain record per claim and master, and knows connections only as queues of unanswered requests.
#include "master/claims.hpp"

#include <gtest/gtest.h>

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
    claims.deletes_queued(c, bit(m));
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
  EXPECT_EQ(claim.sent | claim.refused | claim.pending | claim.stray | claim.owed | claim.deleting | claim.resting, 0);
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
  f.claims.end(all[3], 0, at(0));
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
  EXPECT_EQ(f.claims[c].sent, bit(0) | bit(2));
  EXPECT_EQ(f.claims[c].pending, bit(0) | bit(2));
  EXPECT_EQ(f.claims.reserved(0), 1u);
  EXPECT_EQ(f.claims.reserved(1), 0u);
  f.claims.set_answered(c, 0, true, at(0));
  f.claims.set_answered(c, 2, false, at(0));
  EXPECT_EQ(f.claims[c].pending, 0);
  EXPECT_EQ(f.claims[c].refused, bit(0));
  EXPECT_EQ(f.claims.reserved(0), 1u) << "whether its delete is needed is for the end to say";
}

TEST(Claims, ended_deleted_and_paid) {
  Fixture f;
  const uint16_t c = f.granted();
  f.claims.end(c, bit(0) | bit(1), at(0));
  EXPECT_EQ(f.claims[c].slot, no_slot);
  EXPECT_EQ(f.claims.debts(), 1u);
  EXPECT_TRUE(f.claims.owes(0) && f.claims.owes(1) && !f.claims.owes(2));
  EXPECT_EQ(f.claims.next_owed(0, 0), c);
  EXPECT_EQ(f.claims.next_owed(0, static_cast<uint16_t>(c + 1)), no_slot);
  EXPECT_EQ(f.claims.next_owed(2, 0), no_slot);
  f.claims.deletes_queued(c, bit(0));
  EXPECT_FALSE(f.claims.owes(0));
  EXPECT_EQ(f.claims.reserved(0), 0u) << "the place is taken";
  EXPECT_EQ(f.claims.reserved(1), 1u);
  EXPECT_EQ(f.claims.debts_of(0), 1u);
  f.claims.delete_answered(c, 0, Deleted::yes, at(1));
  EXPECT_EQ(f.claims.debts_of(0), 0u);
  EXPECT_FALSE(f.freed(c));
  f.claims.deletes_queued(c, bit(1));
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
  f.claims.end(c, bit(1), at(0));
  EXPECT_EQ(f.claims.reserved(0) + f.claims.reserved(2), 0u);
  EXPECT_EQ(f.claims.reserved(1), 1u);
  f.claims.deletes_queued(c, bit(1));
  f.claims.delete_answered(c, 1, Deleted::yes, at(1));
  EXPECT_TRUE(f.freed(c));
}

TEST(Claims, every_refusal_is_remembered) {
  Fixture f;
  const uint16_t c = f.make();
  for (const MasterIndex m : {0u, 1u, 2u}) f.claims.set_sent(c, m);
  for (const MasterIndex m : {0u, 2u}) f.claims.set_answered(c, m, true, at(0));
  EXPECT_EQ(f.claims[c].refused, bit(0) | bit(2));
}

TEST(Claims, an_end_without_targets_is_over_at_once) {
  Fixture f;
  const uint16_t c = f.make();
  f.claims.set_sent(c, 0);
  f.claims.set_answered(c, 0, true, at(0));
  f.claims.end(c, 0, at(0));
  EXPECT_TRUE(f.freed(c));
  EXPECT_EQ(f.claims.debts(), 0u);
  EXPECT_EQ(f.claims.reserved(0), 0u);
}

TEST(Claims, a_delete_behind_an_unanswered_set) {
  Fixture f;
  const uint16_t c = f.make();
  f.claims.set_sent(c, 0);
  f.claims.end(c, bit(0), at(0));
  f.claims.deletes_queued(c, bit(0));
  f.claims.set_answered(c, 0, false, at(0));
  EXPECT_FALSE(f.freed(c));
  f.claims.delete_answered(c, 0, Deleted::yes, at(1));
  EXPECT_TRUE(f.freed(c));
}

TEST(Claims, an_error_rests_and_is_owed_again) {
  Fixture f;
  const uint16_t c = f.granted();
  f.claims.end(c, bit(0), at(0));
  int64_t now = 0;
  for (const int64_t rest : {20, 40, 80, 160, 320, 640, 1'280, 1'280, 1'280}) {
    f.claims.deletes_queued(c, bit(0));
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
  f.claims.end(c, bit(0) | bit(1), at(0));
  for (const MasterIndex m : {0u, 1u}) {
    f.claims.deletes_queued(c, bit(m));
    f.claims.delete_answered(c, m, Deleted::error, at(m * 10));
  }
  f.claims.on_time(at(20));
  EXPECT_TRUE(f.claims.owes(0) && f.claims.owes(1));
}

TEST(Claims, an_unknown_script_is_owed_at_once) {
  Fixture f;
  const uint16_t c = f.granted();
  f.claims.end(c, bit(0), at(0));
  f.claims.deletes_queued(c, bit(0));
  f.claims.delete_unknown(c, 0);
  EXPECT_TRUE(f.claims.owes(0));
  EXPECT_EQ(f.claims.reserved(0), 0u);
  f.claims.deletes_queued(c, bit(0));
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
  EXPECT_EQ(f.claims[c].stray, bit(0));
  EXPECT_EQ(f.claims[c].pending, bit(1));
  EXPECT_EQ(f.claims.reserved(0), 0u) << "the places were that connection's";
  EXPECT_EQ(f.claims.reserved(1), 1u);
  EXPECT_FALSE(f.claims.owes(0)) << "a lock that is held owes nothing";
}

TEST(Claims, broke_while_granted_owed_deleting_and_resting) {
  Fixture f;
  const uint16_t held = f.granted();
  f.claims.broke(0);
  EXPECT_EQ(f.claims[held].stray, 0);
  EXPECT_EQ(f.claims.reserved(0), 0u);

  const uint16_t owed = f.granted(), deleting = f.granted(), resting = f.granted();
  for (const uint16_t c : {owed, deleting, resting}) f.claims.end(c, bit(0), at(0));
  f.claims.deletes_queued(deleting, bit(0));
  f.claims.deletes_queued(resting, bit(0));
  f.claims.delete_answered(resting, 0, Deleted::error, at(0));
  f.claims.broke(0);
  EXPECT_EQ(f.claims.reserved(0), 0u);
  for (const uint16_t c : {owed, deleting}) EXPECT_EQ(f.claims[c].owed, bit(0));
  EXPECT_EQ(f.claims[deleting].deleting, 0);
  EXPECT_EQ(f.claims[resting].resting, bit(0));
  f.claims.on_time(at(20));
  unsigned n = 0;
  for (uint16_t i = f.claims.next_owed(0, 0); i != no_slot; i = f.claims.next_owed(0, static_cast<uint16_t>(i + 1)))
    ++n;
  EXPECT_EQ(n, 3u);
  EXPECT_EQ(f.claims.debts(), 3u);
}

TEST(Claims, a_stray_set_that_was_deleted_is_paid) {
  Fixture f;
  const uint16_t c = f.stray();
  f.claims.end(c, bit(0), at(0));
  f.claims.deletes_queued(c, bit(0));
  f.claims.delete_answered(c, 0, Deleted::yes, at(5));
  EXPECT_TRUE(f.freed(c));
}

// It may still be read: nothing but a ttl + drift after the master's first word on a later connection is an end.
TEST(Claims, a_stray_set_that_was_not_there_is_asked_for_again) {
  Fixture f;
  const uint16_t c = f.stray();
  f.claims.end(c, bit(0), at(0));
  int64_t now = 100;
  const Instant until = at(now + lifetime_ms);
  for (int i = 0; i < 4; ++i) {
    f.claims.deletes_queued(c, bit(0));
    f.claims.delete_answered(c, 0, i % 2 ? Deleted::error : Deleted::absent, at(now));
    ASSERT_FALSE(f.freed(c));
    EXPECT_EQ(f.claims[c].stray_until, until) << "from the first answer, not from the last";
    now += 20 << i;
    f.claims.on_time(at(now));
    ASSERT_TRUE(f.claims.owes(0));
  }
  f.claims.on_time(until + Duration::ns(-1));
  f.claims.deletes_queued(c, bit(0));
  f.claims.delete_answered(c, 0, Deleted::absent, until + Duration::ns(-1));
  EXPECT_FALSE(f.freed(c) || f.claims.owes(0));
  f.claims.on_time(until);
  EXPECT_TRUE(f.claims.owes(0)) << "the SET may have come behind the last delete: one more";
  f.delete_absent(c, 0, until);
  ASSERT_FALSE(f.freed(c));
  EXPECT_TRUE(f.claims.owes(0)) << "or behind this one, in the same socket of a frozen master: one more, at once";
  f.delete_absent(c, 0, until);
  EXPECT_TRUE(f.freed(c)) << "the master has gone through its sockets since it was too late for the SET to come";
}

// Which of two sockets a master reads first when it thaws is chance, and the SET may be in the other one.
TEST(Claims, the_last_delete_leaves_after_an_answer_to_one_that_left_after_the_time) {
  for (const char* fate : {"answered", "broke", "unknown", "error"}) {
    Fixture f;
    const uint16_t c = f.stray();
    f.claims.end(c, bit(0), at(0));
    f.delete_absent(c, 0, at(100));
    f.claims.on_time(at(100 + lifetime_ms));
    f.claims.deletes_queued(c, bit(0));  // into the frozen master
    if (fate == std::string("broke")) f.claims.broke(0);
    if (fate == std::string("unknown")) f.claims.delete_unknown(c, 0);
    if (fate == std::string("error")) f.claims.delete_answered(c, 0, Deleted::error, at(5'000));
    if (fate == std::string("answered")) {
      f.claims.delete_answered(c, 0, Deleted::absent, at(5'000));
    } else {
      f.claims.on_time(at(6'000));
      f.delete_absent(c, 0, at(6'000));
    }
    ASSERT_FALSE(f.freed(c)) << fate;
    ASSERT_TRUE(f.claims.owes(0)) << fate;
    f.delete_absent(c, 0, at(6'001));
    EXPECT_TRUE(f.freed(c)) << fate;
  }
}

// What one answer has proven stays proven, whatever becomes of the last delete.
TEST(Claims, the_last_delete_is_the_last_however_often_it_must_leave) {
  for (const char* fate : {"broke", "unknown", "error"}) {
    Fixture f;
    const uint16_t c = f.stray();
    f.claims.end(c, bit(0), at(0));
    f.delete_absent(c, 0, at(100));
    f.claims.on_time(at(100 + lifetime_ms));
    f.delete_absent(c, 0, at(5'000));
    f.claims.deletes_queued(c, bit(0));
    if (fate == std::string("broke")) f.claims.broke(0);
    if (fate == std::string("unknown")) f.claims.delete_unknown(c, 0);
    if (fate == std::string("error")) f.claims.delete_answered(c, 0, Deleted::error, at(5'001));
    f.claims.on_time(at(6'000));
    f.delete_absent(c, 0, at(6'000));
    EXPECT_TRUE(f.freed(c)) << fate;
  }
}

// A frozen master may read the delete of one connection before the SET of another.
TEST(Claims, a_delete_under_way_when_the_time_was_over_is_not_the_last) {
  Fixture f;
  const uint16_t c = f.stray();
  f.claims.end(c, bit(0), at(0));
  f.claims.deletes_queued(c, bit(0));
  f.claims.delete_answered(c, 0, Deleted::absent, at(100));
  f.claims.on_time(at(120));
  f.claims.deletes_queued(c, bit(0));
  f.claims.on_time(at(100 + lifetime_ms));
  EXPECT_FALSE(f.claims.owes(0));
  f.claims.delete_answered(c, 0, Deleted::absent, at(2'000));
  for (const int64_t now : {2'001, 2'002}) {
    ASSERT_FALSE(f.freed(c));
    EXPECT_TRUE(f.claims.owes(0)) << "at once: one more";
    f.delete_absent(c, 0, at(now));
  }
  EXPECT_TRUE(f.freed(c));
}

// Nothing but an answer ends it: a master that stood still ever since may read that SET when it goes on.
TEST(Claims, a_stray_set_that_was_heard_of_does_not_end_unanswered) {
  Fixture f;
  const uint16_t c = f.stray();
  f.claims.end(c, bit(0), at(0));
  f.claims.deletes_queued(c, bit(0));
  f.claims.delete_answered(c, 0, Deleted::absent, at(100));
  f.claims.on_time(at(100 + lifetime_ms));
  f.claims.deletes_queued(c, bit(0));
  f.claims.broke(0);
  f.claims.on_time(at(1'000'000));
  ASSERT_FALSE(f.freed(c));
  ASSERT_TRUE(f.claims.owes(0));
  f.claims.deletes_queued(c, bit(0));
  f.claims.delete_answered(c, 0, Deleted::error, at(1'000'000));
  ASSERT_FALSE(f.freed(c));
  f.claims.on_time(at(1'002'000));
  f.delete_absent(c, 0, at(1'002'000));
  f.delete_absent(c, 0, at(1'002'001));
  EXPECT_TRUE(f.freed(c));
}

TEST(Claims, two_stray_sets_are_heard_of_each_in_its_time) {
  for (const bool in_order : {true, false}) {
    Fixture f(5);
    const uint16_t c = f.make();
    for (const MasterIndex m : {0u, 1u}) {
      f.claims.set_sent(c, m);
      f.claims.broke(m);
    }
    f.claims.end(c, bit(0) | bit(1), at(0));
    for (const MasterIndex m : {in_order ? 0u : 1u, in_order ? 1u : 0u}) {
      f.claims.deletes_queued(c, bit(m));
      f.claims.delete_answered(c, m, Deleted::absent, at(m * 10));
    }
    f.claims.on_time(at(lifetime_ms + 9));
    for (const MasterIndex m : {0u, 1u}) {
      f.claims.deletes_queued(c, bit(m));
      f.claims.delete_answered(c, m, Deleted::absent, at(lifetime_ms + 9));
    }
    EXPECT_FALSE(f.freed(c)) << "they may still come";
    f.claims.on_time(at(lifetime_ms + 10));
    EXPECT_TRUE(f.claims.owes(0) && f.claims.owes(1));
    for (const int64_t now : {lifetime_ms + 10, lifetime_ms + 11}) {
      for (const MasterIndex m : {0u, 1u}) f.delete_absent(c, m, at(now));
    }
    EXPECT_TRUE(f.freed(c));
  }
}

TEST(Claims, a_stray_set_never_ends_unheard) {
  Fixture f;
  const uint16_t c = f.stray();
  f.claims.end(c, bit(0), at(0));
  for (int i = 0; i < 5; ++i) {  // the delete goes out again and again and is never answered
    f.claims.deletes_queued(c, bit(0));
    f.claims.broke(0);
    f.claims.on_time(at(1'000'000 * (i + 1)));
    EXPECT_FALSE(f.freed(c));
    EXPECT_TRUE(f.claims.owes(0));
  }
}

// A lock that goes on for long after a connection broke owes no patience at its end: the master has answered its extends.
TEST(Claims, a_stray_set_is_heard_of_by_an_extend) {
  Fixture f;
  const uint16_t c = f.stray();
  f.claims.extend_sent(c, 0);
  f.claims.extend_answered(c, 0, at(100));
  f.claims.extend_sent(c, 0);
  f.claims.extend_answered(c, 0, at(200));
  EXPECT_EQ(f.claims[c].stray_until, at(100 + lifetime_ms)) << "from the first answer, not from the last";
  EXPECT_LE(f.claims.deadline(), at(100 + lifetime_ms));
  EXPECT_EQ(f.claims.on_time(at(100 + lifetime_ms)), Instant::never()) << "handled, and not due again";
  f.claims.end(c, bit(0), at(5'000));
  f.delete_absent(c, 0, at(5'001));
  EXPECT_TRUE(f.claims.owes(0)) << "at once";
  f.delete_absent(c, 0, at(5'002));
  EXPECT_TRUE(f.freed(c));
}

TEST(Claims, a_stray_set_that_was_heard_of_shortly_before_the_end) {
  Fixture f;
  const uint16_t c = f.stray();
  f.claims.extend_sent(c, 0);
  f.claims.extend_answered(c, 0, at(100));
  f.claims.end(c, bit(0), at(200));
  f.claims.deletes_queued(c, bit(0));
  f.claims.delete_answered(c, 0, Deleted::absent, at(210));
  EXPECT_FALSE(f.freed(c)) << "it may still come";
  f.claims.on_time(at(100 + lifetime_ms));
  EXPECT_TRUE(f.claims.owes(0)) << "the last deletes";
  f.delete_absent(c, 0, at(101 + lifetime_ms));
  f.delete_absent(c, 0, at(102 + lifetime_ms));
  EXPECT_TRUE(f.freed(c));
}

// ---- ends by itself -------------------------------------------------------------------------------------------

TEST(Claims, a_debt_ends_by_itself_when_every_key_must_have_expired) {
  Fixture f;
  const uint16_t c = f.granted();
  f.claims.end(c, bit(0) | bit(1), at(5));
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
  f.claims.end(c, bit(0), at(0));
  EXPECT_EQ(f.claims.deadline(), at(2 * (30'000 + 302)));
}

// A delete that is under way when its debt would end keeps the claim, since its reply will name it. Whatever becomes of
// that delete, the claim is free soon after.
TEST(Claims, a_delete_under_way_outlasts_the_debt) {
  for (const char* fate : {"yes", "error", "unknown", "broke"}) {
    Fixture f;
    const uint16_t c = f.granted();
    f.claims.end(c, bit(0), at(0));
    f.claims.deletes_queued(c, bit(0));
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
    f.claims.deletes_queued(c, bit(0));
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
    f.claims.end(c, bit(0), at(0));
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

// Each extend that was unanswered when its connection broke may raise the expiry once more.
TEST(Claims, a_stray_extend_keeps_the_debt_for_longer) {
  Fixture f;
  const uint16_t c = f.granted();
  f.claims.extend_sent(c, 0);
  f.claims.broke(0);
  f.claims.extend_sent(c, 0);
  f.claims.broke(0);
  f.claims.extend_sent(c, 0);
  f.claims.extend_answered(c, 0, at(0));
  f.claims.broke(0);
  f.claims.end(c, bit(0), at(0));
  f.claims.on_time(Instant::from_ns(at(4 * lifetime_ms).ns() - 1));
  EXPECT_TRUE(f.claims.owes(0));
  f.claims.on_time(at(4 * lifetime_ms));
  EXPECT_TRUE(f.freed(c));
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
  f.claims.end(c, bit(0), at(0));
  ended.push(f.table.data(), c);
  f.claims.on_time(at(10'000));  // the debt ends meanwhile
  EXPECT_FALSE(f.freed(c));
  EXPECT_EQ(f.claims[c].owed, 0);
  ended.remove(f.table.data(), c);
  f.claims.unqueued(c);
  EXPECT_TRUE(f.freed(c));
  EXPECT_EQ(f.make(), c);
}

TEST(Claims, a_key_is_put_back_where_no_set_is_on_its_way_and_the_share_allows_it) {
  Fixture f(5, 4, 10);  // a share of 3
  const uint16_t c = f.granted();
  EXPECT_TRUE(f.claims.may_put_back(c, 0));
  f.claims.put_back_sent(c, 0);
  EXPECT_FALSE(f.claims.may_put_back(c, 0)) << "unanswered";
  EXPECT_TRUE(f.claims.may_put_back(c, 1));
  f.claims.broke(0);
  EXPECT_FALSE(f.claims.may_put_back(c, 0)) << "it may still come";
  for (unsigned i = 0; i < 3; ++i) {
    EXPECT_TRUE(f.claims.may_put_back(c, 1)) << i;
    f.claims.set_sent(f.make(), 1);
  }
  EXPECT_FALSE(f.claims.may_put_back(c, 1)) << "it owes answers enough";
}

// ---- shares ---------------------------------------------------------------------------------------------------

TEST(Claims, a_master_has_its_share_of_unanswered_sets) {
  const struct {
    unsigned masters, locks, capacity, share;
  } cases[] = {{1, 4, 10, 6}, {2, 4, 10, 6}, {3, 4, 10, 6}, {4, 4, 10, 6}, {5, 4, 10, 3}, {7, 4, 10, 2},
               {15, 4, 10, 1}, {15, 4, 5, 1}, {3, 32, 64, 32}, {5, 32, 64, 16}};
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
    f.claims.end(all[0], bit(0), at(0));
    EXPECT_FALSE(f.claims.may_send(0));
    f.claims.deletes_queued(all[0], bit(0));
    f.claims.delete_answered(all[0], 0, Deleted::absent, at(0));
    EXPECT_FALSE(f.claims.may_send(0)) << "the SET may still come";
    f.claims.on_time(at(lifetime_ms));
    EXPECT_FALSE(f.claims.may_send(0)) << "the last deletes are unanswered";
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
  for (const uint16_t c : held) f.claims.end(c, bit(0) | bit(1), at(0));
  EXPECT_FALSE(f.claims.may_send(0));
  f.claims.deletes_queued(held[0], bit(0));
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
  EXPECT_DEATH(f.claims.end(c, bit(2), at(0)), "") << "nothing was sent there";
  EXPECT_DEATH(f.claims.deletes_queued(c, bit(0)), "") << "not owed";
  EXPECT_DEATH(f.claims.delete_answered(c, 0, Deleted::yes, at(0)), "") << "not asked";
}
#endif

// ---- random walks ---------------------------------------------------------------------------------------------

// What one claim is to one master, as plain facts.
struct Place {
  bool sent = false, refused = false;
  bool set_unanswered = false;  // on the present connection
  bool set_stray = false, heard = false;
  bool after = false;   // the delete that was asked left when the stray SET was too late
  bool proven = false;  // one that did was answered
  enum { none, owed, asked, resting } debt = none;
  bool reserved = false;
};

struct Model {
  struct One {
    std::map<unsigned, Place> at;
    bool ended = false;
    std::optional<int64_t> end_at, void_at, stray_until, repeat_at;
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
      const bool strays_end = c.stray_until && now >= *c.stray_until;
      if (strays_end) c.stray_until.reset();
      for (auto& [m, p] : c.at) {
        if (strays_end && p.heard && p.debt == Place::resting) p.debt = Place::owed;  // behind what came late
      }
      for (auto& [m, p] : c.at) {
        const bool voided =
            c.void_at && now >= *c.void_at && !p.set_stray && !p.set_unanswered && p.debt != Place::asked;
        if (voided) p.debt = Place::none, p.reserved = false;
      }
      bool any_heard = false, any_resting = false;
      for (auto& [m, p] : c.at) any_heard |= p.heard, any_resting |= p.debt == Place::resting;
      if (!any_heard) c.stray_until.reset();
      if (any_resting && now >= *c.repeat_at) {
        for (auto& [m, p] : c.at) {
          if (p.debt == Place::resting) p.debt = Place::owed;
        }
      }
    }
    sweep();
  }
  void sweep() {
    for (auto it = claims.begin(); it != claims.end();) it = it->second.over() ? claims.erase(it) : std::next(it);
  }
  void hear(One& c, unsigned m, int64_t now) {
    Place& p = c.at[m];
    if (!p.set_stray || p.heard) return;
    p.heard = true;
    c.stray_until = std::max(c.stray_until.value_or(0), now + lifetime_ms);
  }
  void answered(One& c, unsigned m, Deleted how, int64_t now) {
    Place& p = c.at[m];
    const bool asked_after = p.after;
    p.after = false;
    if (how == Deleted::yes || (how == Deleted::absent && (p.proven || !p.set_stray))) {
      p.debt = Place::none;
      p.set_stray = p.heard = p.proven = false;
      bool any_heard = false;
      for (auto& [n, q] : c.at) any_heard |= q.heard;
      if (!any_heard) c.stray_until.reset();
    } else if (how == Deleted::absent && p.heard && !c.stray_until) {
      p.debt = Place::owed;  // and read, perhaps, before the SET
      if (asked_after) p.proven = true;
    } else {
      hear(c, m, now);
      bool any_resting = false;
      for (auto& [n, q] : c.at) any_resting |= q.debt == Place::resting;
      if (!any_resting) {
        c.repeat_at = now + c.rest;
        c.rest = std::min<int64_t>(2 * c.rest, 1'280);
      }
      p.debt = Place::resting;
    }
  }
  void broke(unsigned m) {
    for (auto& [index, c] : claims) {
      Place& p = c.at[m];
      p.reserved = false;
      if (p.set_unanswered) p.set_unanswered = false, p.set_stray = true;
      if (p.debt == Place::asked) p.debt = Place::owed;
    }
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

struct Walk {
  Walk(unsigned seed, unsigned n_masters, unsigned n_locks, unsigned n_capacity)
      : dice(seed), masters(n_masters), capacity(n_capacity), fixture(n_masters, n_locks, n_capacity), fifo(n_masters) {
    const unsigned minority = masters - (masters / 2 + 1);
    share = std::max(1u, (capacity - n_locks) / std::max(1u, minority));
  }
  struct Request {
    bool set;
    uint16_t claim;
  };

  unsigned roll(unsigned n) { return static_cast<unsigned>(dice() % n); }

  void make() {
    const uint16_t c = claims.make(1, "valve", ttl);
    ASSERT_EQ(c == no_slot, model.claims.size() == capacity);
    if (c == no_slot) return;
    ASSERT_EQ(model.claims.count(c), 0u) << "given out twice";
    Model::One& one = model.claims[c];
    for (unsigned m = 0; m < masters; ++m) {
      one.at[m];
      if (roll(4) == 0 || !claims.may_send(m)) continue;
      claims.set_sent(c, m);
      one.at[m].sent = one.at[m].set_unanswered = one.at[m].reserved = true;
      fifo[m].push_back({true, c});
    }
  }
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
    MasterMask targets = 0;
    for (auto& [m, p] : c.at) {
      if (p.sent && !(spare && p.refused)) targets = static_cast<MasterMask>(targets | bit(m));
    }
    claims.end(index, targets, at(now));
    model.end(c, now, spare);
    model.sweep();
  }
  // A lock is extended, and this master answers at once.
  void extend(unsigned m) {
    for (auto& [index, c] : model.claims) {
      if (c.ended || !c.at[m].sent || c.at[m].set_unanswered || roll(2) == 0) continue;
      claims.extend_sent(index, m);
      claims.extend_answered(index, m, at(now));
      model.hear(c, m, now);
    }
  }
  void queue_delete(unsigned m) {
    const uint16_t index = claims.next_owed(m, 0);
    if (index == no_slot) return;
    claims.deletes_queued(index, bit(m));
    Place& p = model.claims[index].at[m];
    ASSERT_EQ(p.debt, Place::owed);
    p.debt = Place::asked;
    p.after = p.heard && !model.claims[index].stray_until;
    p.reserved = false;
    fifo[m].push_back({false, index});
  }
  void answer(unsigned m, bool well) {
    if (fifo[m].empty()) return;
    const Request r = fifo[m].front();
    fifo[m].pop_front();
    Model::One& c = model.claims.at(r.claim);
    if (r.set) {
      const bool refused = roll(2) == 0;
      claims.set_answered(r.claim, m, refused, at(now));
      c.at[m].set_unanswered = false;
      c.at[m].refused = refused;
      if (c.ended && !refused) c.void_at = std::max(*c.void_at, now + 2 * lifetime_ms);
    } else if (!well && roll(4) == 0) {
      claims.delete_unknown(r.claim, m);
      c.at[m].debt = Place::owed;
    } else {
      const Deleted how = well || roll(3) != 0 ? (roll(2) ? Deleted::yes : Deleted::absent) : Deleted::error;
      claims.delete_answered(r.claim, m, how, at(now));
      model.answered(c, m, how, now);
    }
    model.sweep();
  }
  void broke(unsigned m) {
    fifo[m].clear();
    claims.broke(m);
    model.broke(m);
  }
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
        if (p.heard && c.stray_until) may_be(c.stray_until);
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
      ASSERT_EQ(claims.may_send(m),
                model.count(m, [](const Place& p) {
                  return p.set_unanswered || p.set_stray || p.debt != Place::none;
                }) < share);
      uint16_t at_index = claims.next_owed(m, 0);
      for (const auto& [index, c] : model.claims) {
        if (c.at.at(m).debt != Place::owed) continue;
        ASSERT_EQ(at_index, index);
        at_index = claims.next_owed(m, static_cast<uint16_t>(index + 1));
      }
      ASSERT_EQ(at_index, no_slot);
    }
  }

  void step() {
    const unsigned m = roll(masters);
    switch (roll(13)) {
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
        if (roll(10) == 0) broke(m);
        return;
      case 9:
        return extend(m);
      default:
        return answer(m, false);
    }
  }

  // Every lock ends, every master answers, time goes by: nothing is left.
  void settle() {
    for (int i = 0; i < 2'000 && !model.claims.empty(); ++i) {
      end();
      for (unsigned m = 0; m < masters; ++m) {
        queue_delete(m);
        for (int n = 0; n < 8; ++n) answer(m, true);
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
        claims.end(i, 0, at(now));
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
  std::vector<std::deque<Request>> fifo;
  int64_t now = 0;
};

TEST(Claims, random_walks_beside_a_model) {
  for (unsigned seed = 0; seed < 25; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const unsigned masters[] = {1, 2, 3, 5, 7};
    Walk walk(seed, masters[seed % 5], 4, 6 + seed % 9);
    for (int n = 0; n < 1'500; ++n) {
      walk.step();
      walk.check();
      if (HasFatalFailure()) FAIL() << "at step " << n;
    }
    walk.settle();
    if (HasFatalFailure()) FAIL() << "while settling";
  }
}

TEST(Claims, more_stray_extends_than_are_counted) {
  Fixture f;
  const uint16_t c = f.granted();
  for (unsigned i = 0; i < 300; ++i) {
    f.claims.extend_sent(c, 0);
    f.claims.broke(0);
  }
  EXPECT_EQ(f.claims[c].stray_extends, 255);
  f.claims.end(c, 1, at(0));
  EXPECT_EQ(f.claims[c].void_at, at(lifetime_ms * 257));
}

}  // namespace
}  // namespace redlock
