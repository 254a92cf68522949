// SPDX-License-Identifier: MIT
//
// Machine: rounds, and the budget of a lock that waits.
#include "machine_fixture.hpp"

namespace redlock {
namespace {

using namespace machine_test;
using machine_test::Life;

// ---- rounds ---------------------------------------------------------------------------------------------------

TEST_F(BegunLife, a_counter_is_heard_with_the_first_answer_only) {
  l.machine.on_counter(l.lock, 0, {Counter::State::known, 4});
  EXPECT_EQ(l.lock.fence.counters.top, 4u);
  l.vote(0, Vote::granted);
  l.vote(1, Vote::refused);
  l.vote(2, Vote::failed, REDLOCK_E_OOM);
  for (MasterIndex m = 0; m < 3; ++m) l.machine.on_counter(l.lock, m, {Counter::State::ack, 9});
  EXPECT_EQ(l.lock.fence.counters.top, 4u);
  EXPECT_EQ(l.lock.fence.counters.acked, Masters());
}

TEST_F(HeldLife, what_a_round_that_is_over_was_granted_is_not_revoked) {
  EXPECT_EQ(l.machine.revoke(l.lock, 0, REDLOCK_E_UNREAD, l.now), Action::none);
  EXPECT_EQ(l.lock.state, State::held);
  EXPECT_EQ(l.lock.round.granted, Masters::of(0, 1, 2));
  EXPECT_EQ(l.lock.round.failed, Masters());
}

TEST(Machine, only_a_held_lock_is_lost_to_distrust) {
  Life l(with_wait(REDLOCK_WAIT_FOREVER));
  EXPECT_EQ(l.machine.distrust(l.lock, Masters::all(5)), Action::none);
  l.begin(0);
  l.votes(0, 2, Vote::granted);
  EXPECT_EQ(l.machine.distrust(l.lock, Masters::all(5)), Action::none);
  EXPECT_EQ(l.lock.state, State::acquiring);
  EXPECT_EQ(l.lock.tell.event, 0);
}

TEST(Machine, which_reasons_are_the_guards) {
  for (const int error : {REDLOCK_E_UNREAD, REDLOCK_E_UNWATCHED, REDLOCK_E_WALL_CLOCK, REDLOCK_E_REPLID,
                          REDLOCK_E_EVICTED, REDLOCK_E_TWO_SERVERS}) {
    Life l;
    l.begin(0);
    l.votes(0, 3, Vote::failed, error);
    expect_over(l, REDLOCK_EV_FAILED, REDLOCK_E_GUARD);
  }
  for (const int error : {REDLOCK_E_NO_GREETING, REDLOCK_E_GONE, REDLOCK_E_DENIED}) {
    Life l;
    l.begin(0);
    l.votes(0, 3, Vote::failed, error);
    EXPECT_EQ(l.lock.round.guarded, Masters()) << redlock_err_name(error);
    expect_over(l, REDLOCK_EV_FAILED, REDLOCK_E_NO_QUORUM);
  }
}

TEST(Machine, its_turn_begins_nothing_for_who_is_past_waiting) {
  const Lock before = Life::holding().lock;
  Life l = Life::holding();
  EXPECT_EQ(l.machine.came_first(l.lock, before), Action::none);
  EXPECT_EQ(l.lock.state, State::held);
  EXPECT_EQ(l.lock.line.in_a_row, 0);
}

TEST(Machine, who_lets_others_try_sleeps_no_longer_than_any_waiter) {
  Options options = with_wait(REDLOCK_WAIT_FOREVER);
  options.retry_delay_ms = 60'000;
  Life l(options);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(l.machine.yield(l.lock, at(0)), Action::look);
    EXPECT_LE(l.lock.wake_at, at(sleep_max_ms));
  }
}

TEST_F(AnyLife, who_is_silent_at_the_deadline_has_failed) {
  l.begin(100);
  l.votes(0, 2, Vote::granted);
  EXPECT_EQ(l.time(149), Action::none);
  EXPECT_EQ(l.lock.state, State::acquiring);
  EXPECT_EQ(l.time(150), Action::drop);
  expect_over(l, REDLOCK_EV_FAILED, REDLOCK_E_NO_QUORUM);
  EXPECT_EQ(l.lock.round.failed.count(), 3u);
  EXPECT_EQ(l.lock.round.told_error, REDLOCK_E_NODE_TIMEOUT);
  EXPECT_EQ(l.lock.round.told_master, 2u);
}

TEST_F(BegunLife, the_told_error_is_kept_at_the_deadline) {
  l.vote(3, Vote::failed, REDLOCK_E_LOADING);
  l.time(50);
  EXPECT_EQ(l.lock.round.told_error, REDLOCK_E_LOADING);
  EXPECT_EQ(l.lock.round.told_master, 3u);
  EXPECT_EQ(l.lock.round.failed.count(), masters);
}

// In the order of the exit codes of `redlock`: 78, 77, 69, 76; and last the master that is not greeted yet.
TEST(Machine, of_the_errors_of_a_round_the_one_that_tells_most_is_told) {
  constexpr int order[] = {REDLOCK_E_FINGERPRINT, REDLOCK_E_NOPERM, REDLOCK_E_OOM, REDLOCK_E_UNWATCHED,
                           REDLOCK_E_DISCONNECTED};
  for (size_t more = 0; more < std::size(order); ++more) {
    for (size_t less = more + 1; less < std::size(order); ++less) {
      for (const bool first : {true, false}) {
        Life l;
        l.begin(0);
        l.vote(first ? 1 : 2, Vote::failed, order[first ? more : less]);
        l.vote(first ? 2 : 1, Vote::failed, order[first ? less : more]);
        EXPECT_EQ(l.lock.round.told_error, order[more]);
        EXPECT_EQ(l.lock.round.told_master, 1u);
      }
    }
  }
  constexpr int alike[][2] = {{REDLOCK_E_MODE, REDLOCK_E_TLS_PIN}, {REDLOCK_E_AUTH, REDLOCK_E_TLS_CLIENT_REFUSED},
                              {REDLOCK_E_CONNECT, REDLOCK_E_LOADING}, {REDLOCK_E_UNREAD, REDLOCK_E_REPLID}};
  for (const auto& pair : alike) {
    Life l;
    l.begin(0);
    l.vote(1, Vote::failed, pair[0]);
    l.vote(2, Vote::failed, pair[1]);
    EXPECT_EQ(l.lock.round.told_error, pair[0]) << "the first of equals";
  }
}

TEST(Machine, won_too_late_to_be_of_use) {
  Options o = usual();
  o.ttl_ms = 40;  // valid for 37.6 ms
  Life late(o);
  late.begin(0);
  late.now = Instant::from_ns(37'600'000);
  EXPECT_EQ(late.votes(0, 3, Vote::granted), Action::drop);
  expect_over(late, REDLOCK_EV_FAILED, REDLOCK_E_TOO_SLOW);

  Life just(o);
  just.begin(0);
  just.now = Instant::from_ns(37'599'999);
  just.votes(0, 3, Vote::granted);
  EXPECT_EQ(just.lock.tell.event, REDLOCK_EV_ACQUIRED);

  o = usual();
  o.min_validity_ms = 9'000;
  Life little(o);
  little.begin(0);
  little.now = Instant::from_ns(at(898).ns() + 1);
  EXPECT_EQ(little.votes(0, 3, Vote::granted), Action::drop);
  expect_over(little, REDLOCK_EV_FAILED, REDLOCK_E_TOO_SLOW);
  Life enough(o);
  enough.begin(0);
  enough.now = at(898);
  enough.votes(0, 3, Vote::granted);
  EXPECT_EQ(enough.lock.tell.event, REDLOCK_EV_ACQUIRED);
}

// ---- wait budgets ---------------------------------------------------------------------------------------------

// However often the budgets take turns, they end.
TEST(Machine, budgets_that_take_turns_end) {
  Life l(with_wait(REDLOCK_WAIT_DEFAULT));
  Instant now = at(0);
  const Duration step = Duration::us(700);
  unsigned turns = 0;
  for (bool guard = true; now < l.lock.wait.until && turns < 100'000; guard = !guard, now = now + step, ++turns) {
    l.machine.charge(l.lock, guard, now);
  }
  EXPECT_GE(now, at(2 * wait_ms - 1)) << "each was charged with its own time";
  EXPECT_LE(now, at(2 * wait_ms + 1));
}

TEST(Machine, one_budget_or_none_unless_the_default_waits) {
  for (const int32_t wait : {REDLOCK_TRY_ONCE, REDLOCK_WAIT_FOREVER, 500}) {
    Life l(with_wait(wait));
    const Instant until = l.lock.wait.until;
    l.machine.charge(l.lock, true, at(100));
    EXPECT_EQ(l.lock.wait.until, until) << wait;
    EXPECT_EQ(until, wait == 500 ? at(500) : Instant::never()) << wait;
  }
  Life held = Life::holding(with_wait(REDLOCK_WAIT_DEFAULT));
  const Instant until = held.lock.wait.until;
  held.machine.charge(held.lock, true, at(100));
  EXPECT_EQ(held.lock.wait.until, until) << "a held lock does not wait";
}

TEST_F(AnyLife, no_budget_runs_before_the_first_turn) {
  l.machine.accept(*new (&l.lock) Lock, with_wait(REDLOCK_WAIT_DEFAULT));
  l.machine.charge(l.lock, true, at(100));
  EXPECT_FALSE(l.lock.wait.for_guard);
  EXPECT_EQ(l.lock.wait.until, Instant::never());
}

// Masters denied something, and then too many of them were silent: that may pass.
TEST(Machine, a_round_that_only_silence_has_lost_ends_no_wait) {
  Life l(with_wait(500));
  l.begin(0);
  l.lock.wait.denied = Masters::of(0, 1, 2);
  l.votes(0, 3, Vote::failed, REDLOCK_E_NODE_TIMEOUT);
  EXPECT_EQ(l.lock.state, State::waiting);
}

TEST(Machine, pauses_grow_only_while_masters_are_missing) {
  for (const Vote v : {Vote::refused, Vote::failed}) {
    Instant longest[8];
    for (int i = 0; i < 300; ++i) {
      Life l(with_wait(REDLOCK_WAIT_FOREVER));
      l.machine.seed(static_cast<uint64_t>(i));
      for (Instant& longest_of_round : longest) {
        l.lock.wants = Wants::acquire;
        ASSERT_TRUE(l.machine.begin(l.lock, Masters::all(masters), at(0)));
        l.now = at(0);
        l.votes(0, 3, v, REDLOCK_E_CONNECT);
        longest_of_round = later(longest_of_round, l.lock.wake_at);
      }
    }
    for (unsigned round = 0; round < 8; ++round) {
      const int64_t ceiling = v == Vote::refused ? 100 : std::min<int64_t>(int64_t{100} << std::min(round, 6u), 5'000);
      EXPECT_LE(longest[round], at(ceiling)) << round;
      EXPECT_GT(longest[round], at(ceiling * 9 / 10)) << round;
    }
  }
}

TEST(Machine, masters_that_come_back_wake_a_waiter) {
  Life l(with_wait(REDLOCK_WAIT_FOREVER));
  EXPECT_EQ(l.machine.wake(l.lock), Action::none) << "it wants a round already";
  l.begin(0);
  EXPECT_EQ(l.machine.wake(l.lock), Action::none);
  l.votes(0, 3, Vote::failed, REDLOCK_E_CONNECT);
  EXPECT_EQ(l.machine.wake(l.lock), Action::start);
  EXPECT_EQ(l.lock.wants, Wants::acquire);
  EXPECT_EQ(l.machine.wake(l.lock), Action::none);
  EXPECT_EQ(l.machine.deadline(l.lock), Instant::never());
  Life held = Life::holding();
  EXPECT_EQ(held.machine.wake(held.lock), Action::none);
}

}  // namespace
}  // namespace redlock
