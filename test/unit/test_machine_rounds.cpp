// SPDX-License-Identifier: MIT
//
// Machine: rounds, and the budget of a lock that waits.
#include "machine_fixture.hpp"

namespace redlock {
namespace {

using namespace machine_test;
using machine_test::Life;

// ---- rounds ---------------------------------------------------------------------------------------------------

TEST_F(BegunLife, a_master_votes_once_per_round) {
  for (int i = 0; i < 5; ++i) EXPECT_EQ(l.vote(0, Vote::granted), Action::none);
  EXPECT_EQ(l.vote(0, Vote::refused), Action::none);
  EXPECT_EQ(l.vote(0, Vote::failed, REDLOCK_E_OOM), Action::none);
  EXPECT_EQ(l.lock.state, State::acquiring);
  EXPECT_EQ(l.lock.round.granted, Masters::of(0));
  EXPECT_EQ(l.lock.round.refused | l.lock.round.failed, Masters());
  EXPECT_EQ(l.lock.round.told_error, 0);
  l.vote(1, Vote::refused);
  l.vote(1, Vote::granted);
  l.vote(2, Vote::failed, REDLOCK_E_OOM);
  l.vote(2, Vote::granted);
  EXPECT_EQ(l.lock.state, State::acquiring);
}

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

// Three grant, one refuses, and one has not answered: the three are asked to store a token, and only they vote on it.
struct Storing : Life {
  Storing() : Life(fenced()) {
    begin(0);
    machine.propose(lock, 7, true);
    vote(3, Vote::refused);
    for (MasterIndex m = 0; m < 3; ++m) {
      machine.on_counter(lock, m, {Counter::State::known, 9});
      asked = vote(m, Vote::granted);
    }
  }
  static Options fenced() {
    Options o = usual();
    o.fenced = true;
    return o;
  }
  Action asked = Action::none;
};

TEST(Machine, the_second_part_of_a_fenced_round_knows_who_refused_and_who_has_not_voted) {
  Storing l;
  ASSERT_EQ(l.asked, Action::store);
  EXPECT_EQ(l.lock.fence.token, 10u);
  EXPECT_EQ(l.lock.round.refused, Masters::of(3));
  EXPECT_EQ(l.lock.round.failed, Masters()) << "nobody has failed";
  l.vote(4, Vote::failed, REDLOCK_E_OOM);  // of the first part
  l.vote(4, Vote::granted);
  EXPECT_EQ(l.lock.round.granted | l.lock.round.failed, Masters());
  l.votes(0, 3, Vote::granted);
  EXPECT_EQ(l.lock.state, State::held);
  EXPECT_EQ(l.lock.round.granted, Masters::of(0, 1, 2));
  EXPECT_EQ(l.lock.round.refused, Masters::of(3));
  EXPECT_EQ(l.lock.round.failed, Masters());
}

TEST(Machine, a_token_that_too_few_store_is_for_the_masters_to_answer) {
  Storing l;
  l.vote(0, Vote::failed, REDLOCK_E_OOM);  // two could still store it, and three must
  EXPECT_EQ(l.lock.state, State::over);
  EXPECT_EQ(l.lock.tell.err, REDLOCK_E_LOCKED) << "one refused, one failed, one was not asked";
  Storing silent;
  silent.time(node_timeout_ms);
  EXPECT_EQ(silent.lock.tell.err, REDLOCK_E_NO_QUORUM);
  EXPECT_EQ(silent.lock.round.failed, Masters::of(0, 1, 2));
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

TEST_F(BegunLife, a_seal_that_a_script_found_broken_is_the_guards_reason) {
  EXPECT_EQ(l.votes(0, 3, Vote::failed, REDLOCK_E_SEAL), Action::drop);
  EXPECT_EQ(l.lock.round.guarded, Masters::of(0, 1, 2));
  expect_over(l, REDLOCK_EV_FAILED, REDLOCK_E_GUARD);
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

TEST(Machine, late_votes_of_a_round_that_is_over_are_not_heard) {
  Life l(with_wait(REDLOCK_WAIT_FOREVER));
  l.begin(0);
  l.votes(0, 3, Vote::refused);
  const Round decided = l.lock.round;
  EXPECT_EQ(l.votes(3, 2, Vote::granted), Action::none);
  EXPECT_EQ(l.lock.round.granted, decided.granted);
  EXPECT_EQ(l.lock.state, State::waiting);

  Life held = Life::holding();
  EXPECT_EQ(held.votes(3, 2, Vote::failed, REDLOCK_E_OOM), Action::none);
  EXPECT_EQ(held.lock.state, State::held);
  EXPECT_EQ(held.lock.round.failed, Masters());
  EXPECT_EQ(held.lock.tell.event, 0);
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

TEST_F(BegunLife, refusals_and_silence_together) {
  l.votes(0, 2, Vote::granted);
  l.vote(2, Vote::refused);
  EXPECT_EQ(l.time(50), Action::drop);
  expect_over(l, REDLOCK_EV_FAILED, REDLOCK_E_LOCKED);
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

TEST_F(AnyLife, an_even_number_of_masters) {
  l.machine.init(rules(4));
  l.begin(0);
  l.votes(0, 2, Vote::granted);
  EXPECT_EQ(l.lock.state, State::acquiring);
  EXPECT_EQ(l.votes(2, 2, Vote::refused), Action::drop);
  expect_over(l, REDLOCK_EV_FAILED, REDLOCK_E_LOCKED);
}

// ---- wait budgets ---------------------------------------------------------------------------------------------

TEST(Machine, the_budget_begins_when_the_lock_is_first_looked_at) {
  Life l(with_wait(30));
  EXPECT_EQ(l.lock.wait.until, at(30));
  l.machine.see(l.lock, false, at(20));
  EXPECT_EQ(l.lock.wait.until, at(30)) << "once";
  EXPECT_EQ(l.machine.deadline(l.lock), at(30));
  Life none(with_wait(REDLOCK_TRY_ONCE));
  EXPECT_EQ(none.lock.wait.until, Instant::never());
  Life forever(with_wait(REDLOCK_WAIT_FOREVER));
  EXPECT_EQ(forever.lock.wait.until, Instant::never());
}

// The machine's `see` and `charge` are called with whether the lock waits for the guard.
TEST(Machine, by_default_the_guard_has_a_budget_of_its_own) {
  Life l(with_wait(REDLOCK_WAIT_DEFAULT));
  EXPECT_EQ(l.lock.wait.until, at(wait_ms));
  l.machine.charge(l.lock, true, at(4'000));
  EXPECT_EQ(l.lock.wait.until, at(4'000 + guard_wait_ms));
  EXPECT_EQ(l.machine.deadline(l.lock), at(4'000 + guard_wait_ms));
  l.machine.charge(l.lock, true, at(5'000));
  EXPECT_EQ(l.lock.wait.until, at(4'000 + guard_wait_ms)) << "it runs already";
  l.machine.charge(l.lock, false, at(24'000));
  EXPECT_EQ(l.lock.wait.until, at(24'000 + 6'000)) << "4 s of 10 s were used";
  l.machine.charge(l.lock, true, at(25'000));
  EXPECT_EQ(l.lock.wait.until, at(25'000 + 40'000)) << "20 s of 60 s were used, in all";
  EXPECT_EQ(l.time(64'999), Action::none);
  EXPECT_EQ(l.time(65'000), Action::none);
  expect_over(l, REDLOCK_EV_FAILED, REDLOCK_E_GUARD);
}

TEST_F(AnyLife, a_default_wait_that_begins_with_the_guard) {
  l.lock.options.wait_ms = REDLOCK_WAIT_DEFAULT;
  l.lock.wait.begun = false;
  l.machine.see(l.lock, true, at(0));
  EXPECT_EQ(l.lock.wait.until, at(guard_wait_ms));
  l.begin(0);
  l.machine.charge(l.lock, false, at(10));
  EXPECT_EQ(l.lock.wait.until, at(10 + wait_ms)) << "also while a round is open";
  l.votes(0, 3, Vote::refused);
  ASSERT_EQ(l.lock.state, State::waiting);
  l.time(10 + wait_ms);
  expect_over(l, REDLOCK_EV_FAILED, REDLOCK_E_LOCKED);
}

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

// Masters that can never vote as things stand: the owner is told of a round in which they failed.
TEST(Machine, an_acquire_that_is_given_up) {
  for (const bool acquiring : {false, true}) {
    Life l(with_wait(REDLOCK_WAIT_FOREVER));
    if (acquiring) {
      l.begin(0);
      l.vote(0, Vote::granted);
      l.vote(1, Vote::refused);
    }
    const Masters failed = Masters::of(1, 2, 3), guarded = Masters::of(2, 3);
    const Action action = l.machine.give_up(l.lock, failed, guarded, 2, REDLOCK_E_FINGERPRINT);
    EXPECT_EQ(action, acquiring ? Action::drop : Action::none);
    expect_over(l, REDLOCK_EV_FAILED, REDLOCK_E_GUARD);
    EXPECT_EQ(l.lock.round.failed, failed);
    EXPECT_EQ(l.lock.round.told_error, REDLOCK_E_FINGERPRINT);
    EXPECT_EQ(l.lock.round.told_master, 2);
    l.machine.check(l.lock);
  }
  Life l;
  l.machine.give_up(l.lock, Masters::all(masters), Masters::of(4), 4, REDLOCK_E_MODE);
  expect_over(l, REDLOCK_EV_FAILED, REDLOCK_E_NO_QUORUM);
}

TEST(Machine, a_budget_that_ends_before_a_round_was_finished) {
  Life waiting(with_wait(30));
  EXPECT_EQ(waiting.time(29), Action::none);
  EXPECT_EQ(waiting.time(30), Action::none);
  expect_over(waiting, REDLOCK_EV_FAILED, REDLOCK_E_TIMEOUT);

  Life acquiring(with_wait(30));
  acquiring.begin(1);
  EXPECT_EQ(acquiring.machine.deadline(acquiring.lock), at(30)) << "before the masters' time is over";
  EXPECT_EQ(acquiring.time(30), Action::drop);
  expect_over(acquiring, REDLOCK_EV_FAILED, REDLOCK_E_TIMEOUT);
}

TEST(Machine, a_budget_that_ends_after_a_round_tells_how_that_ended) {
  for (const int cause : {REDLOCK_E_LOCKED, REDLOCK_E_NO_QUORUM}) {
    Life l(with_wait(200));
    l.begin(0);
    l.votes(0, 3, cause == REDLOCK_E_LOCKED ? Vote::refused : Vote::failed, REDLOCK_E_OOM);
    ASSERT_EQ(l.lock.state, State::waiting);
    ASSERT_EQ(l.time(l.lock.wake_at), Action::start);
    ASSERT_TRUE(l.machine.begin(l.lock, Masters::all(masters), l.now));
    EXPECT_EQ(l.time(200), Action::drop);
    expect_over(l, REDLOCK_EV_FAILED, cause);
  }
}

TEST(Machine, a_round_lost_at_the_end_of_the_budget_is_the_last) {
  Life l(with_wait(30));
  l.begin(0);
  l.now = at(30);
  EXPECT_EQ(l.votes(0, 3, Vote::refused), Action::drop);
  expect_over(l, REDLOCK_EV_FAILED, REDLOCK_E_LOCKED);
}

// A pause that would pass the budget is cut for one more round, as long as more than an eighth of the retry delay
// is left.
TEST(Machine, the_last_pause_leaves_time_for_another_round) {
  for (const int us : {27'000, 27'500, 28'000}) {
    const bool worthwhile = us < 27'500;
    unsigned early = 0;
    for (int i = 0; i < 200; ++i) {
      Life l(with_wait(40));
      l.machine.seed(static_cast<uint64_t>(i));
      l.begin(0);
      l.now = at(0) + Duration::us(us);
      l.votes(0, 3, Vote::refused);
      ASSERT_EQ(l.lock.state, State::waiting);
      EXPECT_GT(l.lock.wake_at, l.now);
      EXPECT_LE(l.lock.wake_at, at(40));
      early += l.lock.wake_at < at(40) && l.lock.wake_at > l.now + Duration::us(100);
    }
    // The others' pauses were that short anyhow.
    EXPECT_TRUE(worthwhile ? early > 180 : early > 5 && early < 50) << early;
  }
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

TEST(Machine, the_time_of_a_wait_begins_when_the_acquire_is_first_handled) {
  Life l(with_wait(60'000));
  Lock lock;
  l.machine.accept(lock, with_wait(60'000));
  EXPECT_EQ(waited(lock, at(500)), Duration()) << "not handled yet";
  l.machine.see(lock, false, at(1'000));
  EXPECT_EQ(waited(lock, at(1'500)), Duration::ms(500));
  l.machine.see(lock, false, at(4'000));
  EXPECT_EQ(waited(lock, at(7'000)), Duration::ms(6'000)) << "of all tries";
  l.machine.queue(lock);
  EXPECT_EQ(waited(lock, at(9'000)), Duration::ms(8'000)) << "behind another acquire of this client";
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
