// SPDX-License-Identifier: MIT
//
// Machine: a lock that is held: extends, renewals, what masters say of its key, and the longest hold.
#include "machine_fixture.hpp"

namespace redlock {
namespace {

using namespace machine_test;
using machine_test::Life;

// ---- extending ------------------------------------------------------------------------------------------------

TEST_F(BegunLife, an_extend_that_is_asked_for_behind_a_check_that_failed_is_lost) {
  l.votes(0, 3, Vote::granted);
  l.lock.cell.mark_expired(l.lock.generation);
  EXPECT_EQ(l.machine.extend(l.lock, 1'000), REDLOCK_E_LOST);
  EXPECT_EQ(l.lock.wants, Wants::nothing);
}

TEST(Machine, an_extend_that_a_check_overtook_is_lost) {
  Life l = Life::extending(1'000);
  l.lock.cell.mark_expired(l.lock.generation);
  EXPECT_EQ(l.votes(0, 2, Vote::granted), Action::none);
  EXPECT_EQ(l.vote(2, Vote::granted), Action::linger);
  expect_over(l, REDLOCK_EV_LOST, REDLOCK_E_LOST);
  EXPECT_EQ(l.lock.valid_until, at(10'898)) << "this was published, if only for a moment";
  EXPECT_EQ(l.held(at(1'000)), Held::lost);
}

TEST(Machine, an_expired_lock_is_not_extended_by_a_reply_that_waited) {
  Life l = Life::extending(9'890);
  EXPECT_EQ(l.machine.deadline(l.lock), at(9'898)) << "before the round's own";
  EXPECT_EQ(l.time(9'898), Action::release);
  EXPECT_EQ(l.votes(0, 5, Vote::granted), Action::none);
  expect_over(l, REDLOCK_EV_LOST, REDLOCK_E_LOST);
}

// ---- renewals -------------------------------------------------------------------------------------------------

// Asking is not the owner's: it tells nothing when it fails, and is no reason to refuse an extend.
TEST(Machine, a_question_is_neither_told_nor_in_the_way) {
  Life l = Life::holding(no_renew());
  ASSERT_EQ(l.time(3'334), Action::start);
  ASSERT_EQ(l.machine.extend(l.lock, 10'000), 0) << "before it has begun";
  ASSERT_TRUE(l.begin(3'334));
  EXPECT_EQ(l.lock.round.ttl_ms, 10'000u);
  EXPECT_EQ(l.machine.extend(l.lock, 10'000), REDLOCK_E_BUSY) << "that one is the owner's";
  l.votes(0, 3, Vote::granted);
  EXPECT_EQ(l.told(), REDLOCK_EV_RENEWED);
  ASSERT_EQ(l.time(6'668), Action::start);
  ASSERT_TRUE(l.begin(6'668));
  l.vote(0, Vote::granted);
  ASSERT_EQ(l.machine.extend(l.lock, 10'000), 0) << "while it is open";
  l.votes(1, 4, Vote::granted);
  EXPECT_EQ(l.lock.tell.event, 0) << "the question's answers";
  ASSERT_TRUE(l.begin(6'670));
  l.votes(0, 3, Vote::granted);
  EXPECT_EQ(l.told(), REDLOCK_EV_RENEWED);
  ASSERT_EQ(l.time(10'004), Action::start);
  ASSERT_TRUE(l.begin(10'004));
  l.votes(0, 5, Vote::failed, REDLOCK_E_SUSPECT);
  EXPECT_EQ(l.told(), 0);
  EXPECT_EQ(l.machine.deadline(l.lock), a_third_after(10'004));
}

// ---- what masters say of the key ------------------------------------------------------------------------------

TEST_F(HeldLife, lost_at_once_when_fewer_than_a_quorum_may_have_the_key) {
  EXPECT_EQ(l.machine.on_key_missing(l.lock, 0, false), Action::none);
  EXPECT_EQ(l.machine.on_key_missing(l.lock, 0, false), Action::none) << "one master is one";
  EXPECT_EQ(l.machine.on_key_missing(l.lock, 4, false), Action::none);
  l.machine.on_key_present(l.lock, 4);
  EXPECT_EQ(l.machine.on_key_missing(l.lock, 3, false), Action::none);
  l.machine.put_back_sent(l.lock, 3);
  EXPECT_EQ(l.machine.on_key_missing(l.lock, 4, false), Action::none);
  EXPECT_EQ(l.machine.on_key_missing(l.lock, 1, false), Action::linger) << "no key is deleted that a check vouched for";
  expect_over(l, REDLOCK_EV_LOST, REDLOCK_E_LOST);
  EXPECT_EQ(l.held(l.now), Held::lost);
}

// What is gone on a quorum ends the lock, so what a round has shown is put back when it is decided, won or lost.
TEST(Machine, a_key_is_put_back_behind_each_round_while_the_lock_is_held) {
  Life l = Life::extending(4'000);
  EXPECT_EQ(l.machine.on_key_missing(l.lock, 0, true), Action::none) << "not decided";
  l.vote(0, Vote::refused);
  l.votes(1, 2, Vote::granted);
  EXPECT_EQ(l.vote(3, Vote::granted), Action::put_back);
  EXPECT_EQ(l.machine.put_back_ttl(l.lock, at(4'000)), 10'000u);
  EXPECT_EQ(l.machine.put_back_ttl(l.lock, at(5'000)), 8'990u);
  EXPECT_GE(at(5'000) + Duration::ns(8'990'000'000 * 99 / 100 - 2'000'000), l.lock.valid_until);
  l.machine.put_back_sent(l.lock, 0);
  EXPECT_EQ(l.machine.on_key_missing(l.lock, 4, true), Action::put_back) << "the last answer of the same round";
  EXPECT_EQ(l.machine.on_key_missing(l.lock, 0, false), Action::put_back) << "4 waits for it still";
  EXPECT_EQ(Machine::to_put_back(l.lock), Masters::of(4)) << "0 has refused the SET";
  EXPECT_EQ(l.machine.put_back_ttl(l.lock, l.lock.valid_until), 0u);

  Life lost = Life::extending(4'000);
  lost.machine.on_key_missing(lost.lock, 4, true);
  lost.vote(4, Vote::refused);
  lost.votes(0, 1, Vote::failed, REDLOCK_E_SUSPECT);
  EXPECT_EQ(lost.vote(1, Vote::failed, REDLOCK_E_SUSPECT), Action::put_back);
  EXPECT_EQ(lost.machine.put_back_ttl(lost.lock, at(5'000)), 4'950u) << "what is left of the old validity";
  EXPECT_GE(at(5'000) + Duration::ns(4'950'000'000 * 99 / 100 - 2'000'000), lost.lock.valid_until);

  Life silent = Life::extending(4'000);
  silent.machine.on_key_missing(silent.lock, 4, true);
  silent.vote(4, Vote::refused);
  EXPECT_EQ(silent.time(4'000 + node_timeout_ms), Action::put_back);

  Life over = Life::holding();
  over.machine.release(over.lock);
  EXPECT_EQ(over.machine.put_back_ttl(over.lock, at(1)), 0u);
}

// Its key would be what the open round asks for.
TEST(Machine, a_master_that_may_vote_in_the_open_round_gets_no_key) {
  Life l = Life::holding();
  for (const MasterIndex m : {3u, 4u}) l.machine.on_key_missing(l.lock, m, true);
  EXPECT_EQ(Machine::to_put_back(l.lock), Masters::of(3, 4));
  ASSERT_EQ(l.machine.extend(l.lock, 10'000), 0);
  EXPECT_EQ(Machine::to_put_back(l.lock), Masters::of(3, 4)) << "it has not begun";
  ASSERT_TRUE(l.begin(4'000));
  EXPECT_EQ(Machine::to_put_back(l.lock), Masters());
  l.vote(3, Vote::failed, REDLOCK_E_DISCONNECTED);
  EXPECT_EQ(Machine::to_put_back(l.lock), Masters::of(3));
  l.vote(4, Vote::refused);
  EXPECT_EQ(Machine::to_put_back(l.lock), Masters::of(3)) << "what this round shows may end the lock";
  l.votes(0, 3, Vote::granted);
  EXPECT_EQ(Machine::to_put_back(l.lock), Masters::of(3, 4));
}

TEST(Machine, a_master_that_votes_again_is_asked_where_it_may_have_the_key) {
  struct Row {
    void (*before)(Life&);
    bool asked;
  };
  for (const auto& [before, asked] : {
           Row{[](Life&) {}, true},
           Row{[](Life& l) { l.machine.on_key_missing(l.lock, 4, false); }, true},
           Row{[](Life& l) { l.machine.on_key_missing(l.lock, 4, true); }, false},
           Row{[](Life& l) { l.machine.on_key_changed(l.lock, 3, false, at(1)); }, true},
       }) {
    Life l = Life::holding();
    before(l);
    l.machine.on_key_changed(l.lock, 4, true, at(1));
    EXPECT_EQ(l.machine.deadline(l.lock) == at(1), asked);
  }
}

// One whose clock ran ahead, or that is not the server it was, may have the first key still.
TEST(Machine, a_key_is_put_back_only_where_the_master_has_said_that_it_is_gone) {
  for (const bool distrusted : {true, false}) {
    Life l = Life::extending(4'000);
    for (MasterIndex m = 0; m < 5; ++m) l.machine.on_key_present(l.lock, m);
    EXPECT_EQ(distrusted ? l.machine.distrust(l.lock, Masters::of(4)) : l.machine.on_key_missing(l.lock, 4, false),
              Action::none);
    EXPECT_EQ(l.lock.hold.lacking, Masters::of(4));
    EXPECT_EQ(l.votes(0, 3, Vote::granted), Action::none);
    EXPECT_EQ(l.machine.on_key_missing(l.lock, 4, true), Action::put_back);
    EXPECT_EQ(l.lock.hold.gone, Masters::of(4));
    l.machine.put_back_sent(l.lock, 4);
    EXPECT_EQ(l.lock.hold.gone | l.lock.hold.lacking, Masters());
  }
  Life gone = Life::extending(4'000);
  gone.machine.on_key_missing(gone.lock, 4, true);
  gone.machine.distrust(gone.lock, Masters::of(4));
  EXPECT_EQ(gone.lock.hold.gone, Masters()) << "it may come back with an old key";
}

TEST_F(HeldLife, word_without_end_brings_few_rounds) {
  unsigned rounds = 0;
  for (int64_t t = 1; t <= 9'000; ++t) {
    if (l.time(t) == Action::start) {
      ASSERT_TRUE(l.begin(t));
      l.votes(0, 3, Vote::granted);
      l.told();
      ++rounds;
    }
    l.machine.on_key_changed(l.lock, static_cast<MasterIndex>(t % masters), false, l.now);
  }
  EXPECT_LE(rounds, 3u * 9u);
  EXPECT_GE(rounds, 9u);
  Life other = Life::holding();
  other.machine.on_key_missing(other.lock, 2, false);
  other.machine.on_key_changed(other.lock, 2, false, at(1));
  EXPECT_EQ(other.machine.deadline(other.lock), a_third_after(0)) << "another's key";
}

// A renewal that falls due while the owner's extend waits for its turn must not take the owner's ttl away.
TEST_F(HeldLife, an_extend_that_waits_when_the_renewal_is_due_keeps_its_ttl) {
  ASSERT_EQ(l.machine.extend(l.lock, 30'000), 0);
  l.time(3'500);
  EXPECT_EQ(l.lock.wants, Wants::extend);
  EXPECT_EQ(l.lock.hold.extend_ttl_ms, 30'000u);
  EXPECT_EQ(l.machine.deadline(l.lock), at(9'898)) << "the renewal is not due over and over";
  ASSERT_TRUE(l.begin(3'500));
  EXPECT_EQ(l.lock.round.ttl_ms, 30'000u);
}

// ---- max_hold_ms ----------------------------------------------------------------------------------------------

// A ttl counts in whole milliseconds, so the cut one may end up to one before the limit; from some starts no ttl comes
// nearer than that.
TEST(Machine, an_extend_that_cannot_come_nearer_to_max_hold_is_told_and_sends_nothing) {
  Life l = Life::holding(with_hold(15'000));
  ASSERT_EQ(l.machine.extend(l.lock, 10'000), 0);
  ASSERT_TRUE(l.begin(6'700));
  l.votes(0, 3, Vote::granted);
  EXPECT_EQ(l.lock.valid_until, at(6'700) + Duration::us(8'299'150));
  EXPECT_EQ(l.told(), REDLOCK_EV_RENEWED);
  ASSERT_EQ(l.machine.extend(l.lock, 10'000), 0);
  ASSERT_FALSE(l.begin(6'890));
  EXPECT_EQ(l.lock.valid_until, at(6'700) + Duration::us(8'299'150));
  EXPECT_EQ(l.told(), REDLOCK_EV_AT_RISK);
  EXPECT_EQ(l.lock.tell.err, REDLOCK_E_HOLD_LIMIT);
  EXPECT_EQ(l.machine.extend(l.lock, 10'000), REDLOCK_E_HOLD_LIMIT) << "told once";
  EXPECT_EQ(l.lock.state, State::held);
  EXPECT_EQ(l.lock.wants, Wants::nothing);
  EXPECT_FALSE(l.lock.round.open);
  ASSERT_EQ(l.time(l.lock.wake_at), Action::start);
  EXPECT_TRUE(l.lock.hold.probe) << "no renewal is planned any more";
  EXPECT_EQ(l.time(l.lock.valid_until), Action::release);
  expect_over(l, REDLOCK_EV_LOST, REDLOCK_E_LOST);
}

TEST(Machine, of_an_extend_that_cannot_come_nearer_nobody_hears_before_acquired) {
  Options options = with_hold(8'300);
  options.ttl_ms = 8'385;  // valid for 8'299.15 ms
  Life l(options);
  ASSERT_TRUE(l.begin(0));
  l.votes(0, 3, Vote::granted);
  ASSERT_EQ(l.machine.extend(l.lock, 8'385), 0);
  ASSERT_FALSE(l.begin(90));
  EXPECT_EQ(l.told(), REDLOCK_EV_ACQUIRED);
  EXPECT_EQ(l.told(), 0);
}

}  // namespace
}  // namespace redlock
