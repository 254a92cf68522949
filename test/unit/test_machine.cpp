// SPDX-License-Identifier: MIT
//
// Machine: every arrow of the drawing in machine.hpp, every rule about events, budgets, rounds and renewals. What a
// lock's owner must never see - two ends, an end before a beginning, a validity that comes back - is also looked for in
// long random lives.
#include "lock/machine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "lock/backoff.hpp"

namespace redlock {
namespace {

constexpr unsigned masters = 5;
constexpr unsigned node_timeout_ms = 50;
constexpr uint32_t sleep_max_ms = 5'000;
constexpr Drift drift = {10'000, 2};

Instant at(int64_t ms) { return Instant::from_ns(ms * 1'000'000); }

Instant a_third_after(int64_t ms) { return at(ms) + Duration::ns(10'000'000'000 / 3); }

Options usual() { return {10'000, REDLOCK_WAIT_NONE, 0, 0, 100, true}; }
Options with_wait(int32_t wait_ms) {
  Options o = usual();
  o.wait_ms = wait_ms;
  return o;
}
Options no_renew() {
  Options o = usual();
  o.renew = false;
  return o;
}
Options with_hold(uint32_t max_hold_ms, uint32_t ttl_ms = 10'000) {
  Options o = usual();
  o.max_hold_ms = max_hold_ms;
  o.ttl_ms = ttl_ms;
  return o;
}

// One lock and its client: it does at once what an Action asks for, as far as the machine is concerned.
struct Life {
  explicit Life(const Options& options = usual()) {
    machine.init({masters, drift, Duration::ms(node_timeout_ms), 30'000, sleep_max_ms, 1});
    ++lock.generation;
    machine.accept(lock, options);
    machine.see(lock, now);
  }

  bool begin(int64_t ms) {
    now = at(ms);
    return machine.begin(lock, Masters::all(masters), now);
  }
  Action vote(MasterIndex m, Vote v, int error = 0) { return machine.vote(lock, m, v, error, now); }
  Action votes(unsigned from, unsigned n, Vote v, int error = 0) {
    Action action = Action::none;
    for (unsigned i = 0; i < n; ++i) action = vote(from + i, v, error);
    return action;
  }
  Action time(int64_t ms) { return time(at(ms)); }
  Action time(Instant t) {
    now = t;
    return machine.on_time(lock, now);
  }
  // The owner is told what is to be told.
  int told() {
    const int event = lock.tell.event;
    lock.tell.event = 0;
    return event;
  }
  Held held(Instant t) const { return judge(lock.cell, lock.generation, true, t, Duration()).held; }

  // A lock that is held since `ms`, and ACQUIRED told.
  static Life holding(const Options& options = usual(), int64_t ms = 0) {
    Life l(options);
    l.begin(ms);
    l.votes(0, 3, Vote::granted);
    EXPECT_EQ(l.lock.state, State::held);
    EXPECT_EQ(l.told(), REDLOCK_EV_ACQUIRED);
    return l;
  }
  // The same with an extend round open that began at `ms`.
  static Life extending(int64_t ms, const Options& options = usual()) {
    Life l = holding(options);
    l.now = at(ms);
    EXPECT_EQ(l.machine.extend(l.lock, 10'000), 0);
    EXPECT_TRUE(l.begin(ms));
    return l;
  }

  Machine machine;
  Lock lock;
  Instant now = at(0);
};

void expect_over(Life& l, int event, int err) {
  EXPECT_EQ(l.lock.state, State::over);
  EXPECT_EQ(l.lock.tell.event, event);
  EXPECT_EQ(l.lock.tell.err, err);
  EXPECT_FALSE(l.lock.round.open);
  EXPECT_EQ(l.lock.wants, Wants::nothing);
  EXPECT_TRUE(l.lock.cell.expired(l.lock.generation)) << "a check may still find it held";
  EXPECT_EQ(l.machine.deadline(l.lock), Instant::never());
}

// ---- the arrows -----------------------------------------------------------------------------------------------

TEST(Machine, free_to_waiting) {
  Life l;
  EXPECT_EQ(l.lock.state, State::waiting);
  EXPECT_EQ(l.lock.wants, Wants::acquire);
  EXPECT_EQ(l.lock.tell.event, 0);
  EXPECT_EQ(l.held(at(0)), Held::not_held);
  EXPECT_EQ(l.machine.deadline(l.lock), Instant::never()) << "nothing but a turn is needed";
}

TEST(Machine, waiting_to_acquiring) {
  Life l;
  ASSERT_TRUE(l.begin(7));
  EXPECT_EQ(l.lock.state, State::acquiring);
  EXPECT_EQ(l.lock.wants, Wants::nothing);
  EXPECT_TRUE(l.lock.round.open);
  EXPECT_EQ(l.lock.round.t0, at(7));
  EXPECT_EQ(l.lock.round.ttl_ms, 10'000u);
  EXPECT_EQ(l.lock.rounds, 1u);
  EXPECT_EQ(l.machine.deadline(l.lock), at(7 + node_timeout_ms));
  EXPECT_EQ(l.held(at(7)), Held::not_held);
}

TEST(Machine, acquiring_to_held_at_the_third_of_five) {
  Life l;
  l.begin(100);
  l.now = at(130);
  EXPECT_EQ(l.votes(0, 2, Vote::granted), Action::none);
  EXPECT_EQ(l.lock.state, State::acquiring);
  EXPECT_EQ(l.vote(4, Vote::granted), Action::none);
  EXPECT_EQ(l.lock.state, State::held);
  EXPECT_EQ(l.lock.tell.event, REDLOCK_EV_ACQUIRED);
  EXPECT_EQ(l.lock.tell.err, 0);
  EXPECT_EQ(l.lock.valid_until, at(100 + 9'898)) << "from the start of the round, not from its decision";
  EXPECT_EQ(l.held(at(9'997)), Held::held);
  EXPECT_EQ(l.held(at(9'998)), Held::lost);
}

TEST(Machine, acquiring_to_over_when_it_does_not_wait) {
  Life l;
  l.begin(0);
  EXPECT_EQ(l.votes(0, 2, Vote::refused), Action::none);
  EXPECT_EQ(l.vote(2, Vote::refused), Action::drop);
  expect_over(l, REDLOCK_EV_FAILED, REDLOCK_E_LOCKED);
}

TEST(Machine, a_round_lost_for_missing_masters) {
  Life l;
  l.begin(0);
  l.vote(0, Vote::granted);
  l.vote(1, Vote::failed, REDLOCK_E_CONNECT);
  l.vote(2, Vote::failed, REDLOCK_E_OOM);
  EXPECT_EQ(l.vote(3, Vote::failed, REDLOCK_E_AUTH), Action::drop);
  expect_over(l, REDLOCK_EV_FAILED, REDLOCK_E_NO_QUORUM);
  EXPECT_EQ(l.lock.round.first_error, REDLOCK_E_CONNECT);
}

TEST(Machine, one_refusal_among_the_missing_is_enough_to_blame_the_holder) {
  Life l;
  l.begin(0);
  l.votes(0, 2, Vote::failed, REDLOCK_E_CONNECT);
  EXPECT_EQ(l.vote(3, Vote::refused), Action::drop);
  expect_over(l, REDLOCK_EV_FAILED, REDLOCK_E_LOCKED);
}

TEST(Machine, acquiring_to_waiting_and_again) {
  Life l(with_wait(REDLOCK_WAIT_FOREVER));
  std::set<uint32_t> numbers = {0};  // a put-back's
  for (unsigned round = 1; round < 20; ++round) {
    const Instant t0 = l.now;
    ASSERT_TRUE(l.machine.begin(l.lock, Masters::all(masters), t0));
    EXPECT_TRUE(numbers.insert(l.lock.round.number).second) << l.lock.round.number;
    EXPECT_EQ(l.votes(0, 3, Vote::refused), Action::watch);
    EXPECT_EQ(l.lock.state, State::waiting);
    EXPECT_EQ(l.lock.tell.event, 0);
    EXPECT_EQ(l.lock.wants, Wants::nothing);
    EXPECT_GT(l.lock.wake_at, t0);
    EXPECT_LE(l.lock.wake_at, t0 + Duration::ms(100));
    EXPECT_EQ(l.machine.deadline(l.lock), l.lock.wake_at);
    EXPECT_EQ(l.time(l.lock.wake_at + Duration::ns(-1)), Action::none);
    EXPECT_EQ(l.time(l.lock.wake_at), Action::start);
    EXPECT_EQ(l.lock.wants, Wants::acquire);
    EXPECT_EQ(l.machine.deadline(l.lock), Instant::never());
  }
  EXPECT_EQ(l.lock.rounds, 19u);
  EXPECT_EQ(numbers.count(UINT32_MAX), 1u) << "they have gone round";
}

TEST(Machine, held_to_over_by_release) {
  Life l = Life::holding();
  EXPECT_EQ(l.machine.release(l.lock), Action::release);
  expect_over(l, REDLOCK_EV_RELEASED, 0);
}

TEST(Machine, held_to_over_by_expiry_which_is_judged_first) {
  Life l = Life::holding(no_renew());
  ASSERT_EQ(l.time(3'334), Action::start);
  ASSERT_TRUE(l.begin(3'334));
  l.votes(0, 5, Vote::failed, REDLOCK_E_SUSPECT);
  ASSERT_EQ(l.time(6'668), Action::start);
  EXPECT_EQ(l.machine.deadline(l.lock), at(9'898));
  EXPECT_EQ(l.time(Instant::from_ns(at(9'898).ns() - 1)), Action::none);
  EXPECT_EQ(l.time(9'898), Action::release);
  expect_over(l, REDLOCK_EV_LOST, REDLOCK_E_LOST);
}

// A check on another thread may find it over before the driver does.
TEST(Machine, held_to_over_when_a_check_found_it_over) {
  Life l = Life::holding();
  l.lock.cell.mark_expired(l.lock.generation);
  EXPECT_EQ(l.time(1), Action::linger);
  expect_over(l, REDLOCK_EV_LOST, REDLOCK_E_LOST);
  EXPECT_EQ(l.lock.valid_until, at(9'898)) << "until then no delete may go out";
}

TEST(Machine, canceled_in_each_state) {
  Life waiting;
  EXPECT_EQ(waiting.machine.cancel(waiting.lock, REDLOCK_E_CANCELED), Action::none);
  expect_over(waiting, REDLOCK_EV_FAILED, REDLOCK_E_CANCELED);

  Life acquiring;
  acquiring.begin(0);
  acquiring.vote(0, Vote::granted);
  EXPECT_EQ(acquiring.machine.cancel(acquiring.lock, REDLOCK_E_CANCELED), Action::drop);
  expect_over(acquiring, REDLOCK_EV_FAILED, REDLOCK_E_CANCELED);

  Life acquired;
  acquired.begin(0);
  acquired.votes(0, 3, Vote::granted);
  EXPECT_EQ(acquired.machine.cancel(acquired.lock, REDLOCK_E_CANCELED), Action::release);
  expect_over(acquired, REDLOCK_EV_FAILED, REDLOCK_E_CANCELED);
}

TEST(Machine, released_before_it_is_held_is_canceled) {
  Life waiting;
  EXPECT_EQ(waiting.machine.release(waiting.lock), Action::none);
  expect_over(waiting, REDLOCK_EV_FAILED, REDLOCK_E_CANCELED);
  Life acquiring;
  acquiring.begin(0);
  EXPECT_EQ(acquiring.machine.release(acquiring.lock), Action::drop);
  expect_over(acquiring, REDLOCK_EV_FAILED, REDLOCK_E_CANCELED);
}

TEST(Machine, a_clock_that_jumped_in_each_state) {
  Life waiting;
  EXPECT_EQ(waiting.machine.jumped(waiting.lock, at(5)), Action::none);
  EXPECT_EQ(waiting.lock.state, State::waiting);
  EXPECT_EQ(waiting.lock.wants, Wants::acquire);

  Life acquiring;  // even one that would not wait begins anew, at once and with a fresh t0
  acquiring.begin(0);
  acquiring.votes(0, 2, Vote::granted);
  EXPECT_EQ(acquiring.machine.jumped(acquiring.lock, at(5)), Action::drop);
  EXPECT_EQ(acquiring.lock.state, State::waiting);
  EXPECT_FALSE(acquiring.lock.round.open);
  EXPECT_EQ(acquiring.lock.tell.event, 0);
  EXPECT_EQ(acquiring.vote(2, Vote::granted), Action::none) << "the old round is not heard any more";
  EXPECT_EQ(acquiring.lock.state, State::waiting);
  EXPECT_EQ(acquiring.machine.deadline(acquiring.lock), at(5));
  EXPECT_EQ(acquiring.time(5), Action::start);
  ASSERT_TRUE(acquiring.begin(6));
  EXPECT_EQ(acquiring.lock.round.granted, Masters());
  acquiring.votes(0, 3, Vote::granted);
  EXPECT_EQ(acquiring.lock.valid_until, at(6 + 9'898));

  Life held = Life::holding();
  EXPECT_EQ(held.machine.jumped(held.lock, at(5)), Action::linger);
  expect_over(held, REDLOCK_EV_LOST, REDLOCK_E_LOST);
  EXPECT_EQ(held.held(at(5)), Held::lost);

  Life extending = Life::extending(1'000);
  EXPECT_EQ(extending.machine.jumped(extending.lock, at(1'005)), Action::linger);
  expect_over(extending, REDLOCK_EV_LOST, REDLOCK_E_LOST);
  EXPECT_EQ(extending.votes(0, 5, Vote::granted), Action::none);
  expect_over(extending, REDLOCK_EV_LOST, REDLOCK_E_LOST);

  Life untold;
  untold.begin(0);
  untold.votes(0, 3, Vote::granted);
  EXPECT_EQ(untold.machine.jumped(untold.lock, at(5)), Action::linger);
  expect_over(untold, REDLOCK_EV_FAILED, REDLOCK_E_LOST);

  EXPECT_EQ(untold.machine.jumped(untold.lock, at(6)), Action::none);
  expect_over(untold, REDLOCK_EV_FAILED, REDLOCK_E_LOST);
  untold.lock.state = State::free;
  EXPECT_EQ(untold.machine.jumped(untold.lock, at(7)), Action::none);
  EXPECT_EQ(untold.lock.state, State::free);
}

TEST(Machine, over_and_free_stay_what_they_are) {
  Life l = Life::holding();
  l.machine.release(l.lock);
  l.told();
  for (const State state : {State::over, State::free}) {
    l.lock.state = state;
    EXPECT_EQ(l.time(1'000'000), Action::none);
    EXPECT_EQ(l.machine.wake(l.lock), Action::none);
    EXPECT_EQ(l.votes(0, 5, Vote::granted), Action::none);
    EXPECT_EQ(l.lock.state, state);
    EXPECT_EQ(l.lock.tell.event, 0);
    EXPECT_EQ(l.machine.deadline(l.lock), Instant::never());
  }
}

// ---- rounds ---------------------------------------------------------------------------------------------------

TEST(Machine, a_master_votes_once_per_round) {
  Life l;
  l.begin(0);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(l.vote(0, Vote::granted), Action::none);
  EXPECT_EQ(l.vote(0, Vote::refused), Action::none);
  EXPECT_EQ(l.vote(0, Vote::failed, REDLOCK_E_OOM), Action::none);
  EXPECT_EQ(l.lock.state, State::acquiring);
  EXPECT_EQ(l.lock.round.granted, Masters::of(0));
  EXPECT_EQ(l.lock.round.refused | l.lock.round.failed, Masters());
  EXPECT_EQ(l.lock.round.first_error, 0);
  l.vote(1, Vote::refused);
  l.vote(1, Vote::granted);
  l.vote(2, Vote::failed, REDLOCK_E_OOM);
  l.vote(2, Vote::granted);
  EXPECT_EQ(l.lock.state, State::acquiring);
}

TEST(Machine, a_counter_is_heard_with_the_first_answer_only) {
  Life l;
  l.begin(0);
  l.machine.hear(l.lock, 0, {Counter::State::known, 4});
  EXPECT_EQ(l.lock.fence.counters.top, 4u);
  l.vote(0, Vote::granted);
  l.vote(1, Vote::refused);
  l.vote(2, Vote::failed, REDLOCK_E_OOM);
  for (MasterIndex m = 0; m < 3; ++m) l.machine.hear(l.lock, m, {Counter::State::ack, 9});
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
      machine.hear(lock, m, {Counter::State::known, 9});
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

TEST(Machine, what_a_round_that_is_over_was_granted_is_not_revoked) {
  Life l = Life::holding();
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

TEST(Machine, a_seal_that_a_script_found_broken_is_the_guards_reason) {
  Life l;
  l.begin(0);
  EXPECT_EQ(l.votes(0, 3, Vote::failed, REDLOCK_E_SEAL), Action::drop);
  EXPECT_EQ(l.lock.round.guarded, Masters::of(0, 1, 2));
  expect_over(l, REDLOCK_EV_FAILED, REDLOCK_E_GUARD);
}

TEST(Machine, which_reasons_are_the_guards) {
  for (const int error : {REDLOCK_E_UNREAD, REDLOCK_E_UNWATCHED, REDLOCK_E_WALL_CLOCK, REDLOCK_E_REPLID}) {
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

TEST(Machine, split_rounds_in_a_row_are_counted_up_to_a_limit) {
  Life l(with_wait(REDLOCK_WAIT_FOREVER));
  const auto lose = [&l](bool collided) {
    l.lock.wants = Wants::acquire;
    ASSERT_TRUE(l.begin(0));
    if (collided) l.vote(4, Vote::granted);
    l.votes(0, 3, Vote::refused);
  };
  for (unsigned i = 1; i <= 300; ++i) {
    lose(true);
    ASSERT_EQ(l.lock.wait.collisions, std::min(i, 255u));
  }
  lose(false);
  EXPECT_EQ(l.lock.wait.collisions, 0);
}

// Whoever grants in between: a round that is lost is lost.
TEST(Machine, a_waiter_is_hasty_a_few_times_within_its_plain_pause) {
  Options options = with_wait(REDLOCK_WAIT_FOREVER);
  options.retry_delay_ms = 100;
  Life l(options);
  const auto not_before = [&l](int64_t ms, bool granted) {
    l.lock.wants = Wants::acquire;
    EXPECT_TRUE(l.begin(ms));
    if (granted) l.vote(4, Vote::granted);
    l.votes(0, 3, Vote::refused);
    EXPECT_LE(l.lock.wake_at, at(ms + 100));
    return l.lock.wait.not_before;
  };
  for (int64_t pause : {0, 100, 200}) {
    for (int64_t ms = pause; ms < pause + 6; ++ms)
      EXPECT_EQ(not_before(ms, ms % 2 != 0), at(ms)) << "at once, if all is free";
    for (int64_t ms = pause + 6; ms < pause + 100; ++ms) {
      EXPECT_EQ(not_before(ms, ms % 3 != 0), l.lock.wake_at);
      EXPECT_GT(l.lock.wait.not_before, at(ms));
    }
  }
}

TEST(Machine, its_turn_begins_nothing_for_who_is_past_waiting) {
  const Lock before = Life::holding().lock;
  Life l = Life::holding();
  EXPECT_EQ(l.machine.first(l.lock, before), Action::none);
  EXPECT_EQ(l.lock.state, State::held);
  EXPECT_EQ(l.lock.turn.in_a_row, 0);
}

TEST(Machine, who_lets_others_try_sleeps_no_longer_than_any_waiter) {
  Options options = with_wait(REDLOCK_WAIT_FOREVER);
  options.retry_delay_ms = 60'000;
  Life l(options);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(l.machine.yield(l.lock, at(0)), Action::watch);
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

TEST(Machine, who_is_silent_at_the_deadline_has_failed) {
  Life l;
  l.begin(100);
  l.votes(0, 2, Vote::granted);
  EXPECT_EQ(l.time(149), Action::none);
  EXPECT_EQ(l.lock.state, State::acquiring);
  EXPECT_EQ(l.time(150), Action::drop);
  expect_over(l, REDLOCK_EV_FAILED, REDLOCK_E_NO_QUORUM);
  EXPECT_EQ(l.lock.round.failed.count(), 3u);
  EXPECT_EQ(l.lock.round.first_error, REDLOCK_E_NODE_TIMEOUT);
}

TEST(Machine, the_first_error_is_kept_at_the_deadline) {
  Life l;
  l.begin(0);
  l.vote(3, Vote::failed, REDLOCK_E_LOADING);
  l.time(50);
  EXPECT_EQ(l.lock.round.first_error, REDLOCK_E_LOADING);
  EXPECT_EQ(l.lock.round.failed.count(), masters);
}

TEST(Machine, refusals_and_silence_together) {
  Life l;
  l.begin(0);
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

TEST(Machine, an_even_number_of_masters) {
  Life l;
  l.machine.init({4, drift, Duration::ms(node_timeout_ms), 30'000, sleep_max_ms, 1});
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
  l.machine.see(l.lock, at(20));
  EXPECT_EQ(l.lock.wait.until, at(30)) << "once";
  EXPECT_EQ(l.machine.deadline(l.lock), at(30));
  Life none(with_wait(REDLOCK_WAIT_NONE));
  EXPECT_EQ(none.lock.wait.until, Instant::never());
  Life forever(with_wait(REDLOCK_WAIT_FOREVER));
  EXPECT_EQ(forever.lock.wait.until, Instant::never());
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

// A pause that would pass the budget is cut for one more round, as long as an eighth of the retry delay is left.
TEST(Machine, the_last_pause_leaves_time_for_another_round) {
  for (const bool worthwhile : {true, false}) {
    unsigned early = 0;
    for (int i = 0; i < 200; ++i) {
      Life l(with_wait(40));
      l.machine.seed(static_cast<uint64_t>(i));
      l.begin(0);
      l.now = at(worthwhile ? 27 : 28);
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

// ---- extending ------------------------------------------------------------------------------------------------

TEST(Machine, extend_in_each_state) {
  Life l;
  EXPECT_EQ(l.machine.extend(l.lock, 1'000), REDLOCK_E_NOT_HELD);
  l.begin(0);
  EXPECT_EQ(l.machine.extend(l.lock, 1'000), REDLOCK_E_NOT_HELD);
  l.votes(0, 3, Vote::granted);
  EXPECT_EQ(l.machine.extend(l.lock, 1'000), 0);
  EXPECT_EQ(l.lock.wants, Wants::extend);
  EXPECT_EQ(l.machine.extend(l.lock, 1'000), REDLOCK_E_BUSY) << "wanted";
  ASSERT_TRUE(l.begin(1));
  EXPECT_EQ(l.lock.round.ttl_ms, 1'000u);
  EXPECT_EQ(l.machine.extend(l.lock, 1'000), REDLOCK_E_BUSY) << "open";
  l.votes(0, 3, Vote::granted);
  EXPECT_EQ(l.machine.extend(l.lock, 1'000), 0);
  l.machine.release(l.lock);
  EXPECT_EQ(l.machine.extend(l.lock, 1'000), REDLOCK_E_LOST);
}

TEST(Machine, an_extend_round_won) {
  Life l = Life::extending(1'000);
  EXPECT_EQ(l.lock.rounds, 1u) << "acquire rounds";
  EXPECT_EQ(l.lock.valid_until, at(9'898));
  l.now = at(1'030);
  EXPECT_EQ(l.votes(1, 2, Vote::granted), Action::none);
  EXPECT_EQ(l.lock.valid_until, at(9'898));
  EXPECT_EQ(l.vote(4, Vote::granted), Action::none);
  EXPECT_EQ(l.lock.valid_until, at(10'898));
  EXPECT_EQ(l.lock.tell.event, REDLOCK_EV_RENEWED);
  EXPECT_EQ(l.lock.state, State::held);
  EXPECT_EQ(l.held(at(10'897)), Held::held);
}

TEST(Machine, an_extend_never_shortens) {
  Life l = Life::holding();
  l.machine.extend(l.lock, 20);
  l.begin(10);
  l.votes(0, 3, Vote::granted);
  EXPECT_EQ(l.lock.valid_until, at(9'898));
  EXPECT_EQ(l.held(at(9'897)), Held::held);
  EXPECT_EQ(l.lock.tell.event, REDLOCK_EV_RENEWED);
}

TEST(Machine, an_extend_round_lost_leaves_the_lock_as_valid_as_it_was) {
  Life gone = Life::extending(1'000);
  EXPECT_EQ(gone.votes(0, 3, Vote::refused), Action::none);
  EXPECT_EQ(gone.lock.state, State::held);
  EXPECT_EQ(gone.lock.valid_until, at(9'898));
  EXPECT_EQ(gone.lock.tell.event, REDLOCK_EV_AT_RISK);
  EXPECT_EQ(gone.lock.tell.err, REDLOCK_E_GONE);
  EXPECT_EQ(gone.votes(3, 2, Vote::granted), Action::none);

  Life missing = Life::extending(1'000);
  EXPECT_EQ(missing.votes(0, 3, Vote::failed, REDLOCK_E_SUSPECT), Action::none);
  EXPECT_EQ(missing.lock.tell.err, REDLOCK_E_NO_QUORUM);
  EXPECT_EQ(missing.held(at(9'897)), Held::held);

  Life silent = Life::extending(1'000);
  EXPECT_EQ(silent.machine.deadline(silent.lock), at(1'050));
  EXPECT_EQ(silent.time(1'050), Action::none);
  EXPECT_EQ(silent.lock.state, State::held);
  EXPECT_EQ(silent.lock.tell.event, REDLOCK_EV_AT_RISK);
  EXPECT_EQ(silent.lock.round.first_error, REDLOCK_E_NODE_TIMEOUT);
  EXPECT_EQ(silent.time(9'898), Action::release);
  expect_over(silent, REDLOCK_EV_LOST, REDLOCK_E_LOST);
}

TEST(Machine, an_extend_that_is_asked_for_behind_a_check_that_failed_is_lost) {
  Life l;
  l.begin(0);
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

TEST(Machine, a_renewal_after_a_third_of_the_ttl) {
  Life l = Life::holding(usual(), 6);
  const Instant third = at(6) + Duration::ns(10'000'000'000 / 3);
  EXPECT_EQ(l.machine.deadline(l.lock), third);
  EXPECT_EQ(l.time(third + Duration::ns(-1)), Action::none);
  EXPECT_EQ(l.time(third), Action::start);
  EXPECT_EQ(l.lock.wants, Wants::extend);
  EXPECT_EQ(l.lock.hold.extend_ttl_ms, 10'000u);
  EXPECT_EQ(l.machine.deadline(l.lock), l.lock.valid_until) << "asked once";
  ASSERT_TRUE(l.begin(4'000));
  l.votes(0, 3, Vote::granted);
  EXPECT_EQ(l.lock.tell.event, REDLOCK_EV_RENEWED);
  EXPECT_EQ(l.machine.deadline(l.lock), at(4'000) + Duration::ns(10'000'000'000 / 3));
}

TEST(Machine, who_wants_no_renewal_asks_every_third_and_raises_nothing) {
  Life l = Life::holding(no_renew());
  EXPECT_EQ(l.machine.deadline(l.lock), a_third_after(0));
  for (const int64_t t : {3'334, 6'668}) {
    ASSERT_EQ(l.time(t), Action::start);
    ASSERT_TRUE(l.begin(t));
    EXPECT_EQ(l.lock.round.ttl_ms, 1u);
    l.votes(0, 3, Vote::granted);
    EXPECT_EQ(l.lock.valid_until, at(9'898));
    EXPECT_EQ(l.told(), 0);
  }
  ASSERT_EQ(l.machine.extend(l.lock, 30'000), 0);
  l.begin(9'000);
  l.votes(0, 3, Vote::granted);
  EXPECT_EQ(l.told(), REDLOCK_EV_RENEWED);
  EXPECT_EQ(l.machine.deadline(l.lock), at(19'000)) << "of the ttl that was won last";
}

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

TEST(Machine, lost_at_once_when_fewer_than_a_quorum_may_have_the_key) {
  Life l = Life::holding();
  EXPECT_EQ(l.machine.lacks(l.lock, 0, 0), Action::none);
  EXPECT_EQ(l.machine.lacks(l.lock, 0, 0), Action::none) << "one master is one";
  EXPECT_EQ(l.machine.lacks(l.lock, 4, 0), Action::none);
  l.machine.has(l.lock, 4);
  EXPECT_EQ(l.machine.lacks(l.lock, 3, 0), Action::none);
  l.machine.put_back_sent(l.lock, 3);
  EXPECT_EQ(l.machine.lacks(l.lock, 4, 0), Action::none);
  EXPECT_EQ(l.machine.lacks(l.lock, 1, 0), Action::linger) << "no key is deleted that a check vouched for";
  expect_over(l, REDLOCK_EV_LOST, REDLOCK_E_LOST);
  EXPECT_EQ(l.held(l.now), Held::lost);
}

TEST(Machine, a_key_is_put_back_behind_a_round_that_was_won_and_never_behind_another) {
  Life l = Life::extending(4'000);
  const uint32_t round = l.lock.round.number;
  EXPECT_EQ(l.machine.lacks(l.lock, 0, round), Action::none) << "not decided";
  l.vote(0, Vote::refused);
  l.votes(1, 2, Vote::granted);
  EXPECT_EQ(l.vote(3, Vote::granted), Action::put_back);
  EXPECT_EQ(l.machine.put_back_ttl(l.lock, at(4'000)), 10'000u);
  EXPECT_EQ(l.machine.put_back_ttl(l.lock, at(5'000)), 8'990u);
  EXPECT_GE(at(5'000) + Duration::ns(8'990'000'000 * 99 / 100 - 2'000'000), l.lock.valid_until);
  l.machine.put_back_sent(l.lock, 0);
  EXPECT_EQ(l.machine.lacks(l.lock, 4, round), Action::put_back) << "the last answer of the same round";
  EXPECT_EQ(l.machine.lacks(l.lock, 0, 0), Action::none) << "its SET was refused";
  EXPECT_EQ(l.machine.put_back_ttl(l.lock, l.lock.valid_until), 0u);

  Life lost = Life::extending(4'000);
  const uint32_t lost_round = lost.lock.round.number;
  EXPECT_EQ(lost.votes(0, 3, Vote::failed, REDLOCK_E_SUSPECT), Action::none);
  EXPECT_EQ(lost.machine.lacks(lost.lock, 4, lost_round), Action::none);

  Life over = Life::holding();
  over.machine.release(over.lock);
  EXPECT_EQ(over.machine.put_back_ttl(over.lock, at(1)), 0u);
}

// One whose clock ran ahead, or that is not the server it was, may have the first key still.
TEST(Machine, a_key_is_put_back_only_where_the_master_has_said_that_it_is_gone) {
  for (const bool distrusted : {true, false}) {
    Life l = Life::extending(4'000);
    for (MasterIndex m = 0; m < 5; ++m) l.machine.has(l.lock, m);
    const uint32_t round = l.lock.round.number;
    EXPECT_EQ(distrusted ? l.machine.distrust(l.lock, Masters::of(4)) : l.machine.lacks(l.lock, 4, 0), Action::none);
    EXPECT_EQ(l.lock.hold.lacking, Masters::of(4));
    EXPECT_EQ(l.votes(0, 3, Vote::granted), Action::none);
    EXPECT_EQ(l.machine.lacks(l.lock, 4, round), Action::put_back);
    EXPECT_EQ(l.lock.hold.gone, Masters::of(4));
    l.machine.put_back_sent(l.lock, 4);
    EXPECT_EQ(l.lock.hold.gone | l.lock.hold.lacking, Masters());
  }
  Life gone = Life::extending(4'000);
  gone.machine.lacks(gone.lock, 4, gone.lock.round.number);
  gone.machine.distrust(gone.lock, Masters::of(4));
  EXPECT_EQ(gone.lock.hold.gone, Masters()) << "it may come back with an old key";
}

TEST(Machine, word_of_a_change_brings_the_next_round_forward) {
  Life l = Life::holding();
  l.machine.alarm(l.lock, 2, at(100));
  EXPECT_EQ(l.machine.deadline(l.lock), at(100));
  ASSERT_EQ(l.time(100), Action::start);
  ASSERT_TRUE(l.begin(100));
  l.machine.alarm(l.lock, 2, at(101));
  l.votes(0, 3, Vote::granted);
  EXPECT_EQ(l.machine.deadline(l.lock), a_third_after(100)) << "the answer came behind the word";
  ASSERT_EQ(l.time(3'434), Action::start);
  ASSERT_TRUE(l.begin(3'434));
  l.vote(0, Vote::granted);
  l.machine.alarm(l.lock, 0, at(3'435));
  l.votes(1, 2, Vote::granted);
  EXPECT_LE(l.machine.deadline(l.lock), at(3'435)) << "the word came behind the answer";
}

TEST(Machine, word_without_end_brings_few_rounds) {
  Life l = Life::holding();
  unsigned rounds = 0;
  for (int64_t t = 1; t <= 9'000; ++t) {
    if (l.time(t) == Action::start) {
      ASSERT_TRUE(l.begin(t));
      l.votes(0, 3, Vote::granted);
      l.told();
      ++rounds;
    }
    l.machine.alarm(l.lock, static_cast<MasterIndex>(t % masters), l.now);
  }
  EXPECT_LE(rounds, 3u * 9u);
  EXPECT_GE(rounds, 9u);
  Life other = Life::holding();
  other.machine.lacks(other.lock, 2, 0);
  other.machine.alarm(other.lock, 2, at(1));
  EXPECT_EQ(other.machine.deadline(other.lock), a_third_after(0)) << "another's key";
}

// A master that votes but tells of no change is asked again as the plain timer would; one that does not vote is not.
TEST(Machine, where_no_look_can_be_sent_a_waiter_tries_or_waits) {
  for (const bool votes : {true, false}) {
    Instant free_at[masters];
    Life l(with_wait(REDLOCK_WAIT_FOREVER));
    l.lock.outlook.use(free_at, masters);
    l.begin(0);
    ASSERT_EQ(l.votes(0, 3, Vote::refused), Action::watch);
    l.machine.watch(l.lock, Masters::all(5), Masters::all(5), l.now);
    ASSERT_EQ(l.lock.outlook.look(), Masters::all(5));
    for (MasterIndex m = 0; m < masters; ++m) l.machine.look_sent(l.lock, m, l.now);
    EXPECT_GE(l.lock.wake_at, at(sleep_max_ms / 2)) << "nothing is known: its own timer";
    for (MasterIndex m = 0; m < 3; ++m) l.machine.look_away(l.lock, m, votes, l.now);
    if (votes) {
      EXPECT_LE(l.lock.wake_at, at(2 * 100)) << "the plain timer, and the others' first try";
    } else {
      EXPECT_GE(l.lock.wake_at, at(sleep_max_ms / 2));
    }
  }
}

TEST(Machine, a_failed_renewal_is_repeated_soon) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Life l = Life::extending(4'000);
    l.machine.seed(seed);
    l.now = at(4'010);
    l.votes(0, 3, Vote::failed, REDLOCK_E_SUSPECT);
    const Instant next = l.machine.deadline(l.lock);
    EXPECT_GT(next, at(4'010 + node_timeout_ms));
    EXPECT_LE(next, at(4'010 + 2 * node_timeout_ms));
    EXPECT_EQ(l.time(next), Action::start);
    EXPECT_EQ(l.lock.hold.extend_ttl_ms, 10'000u);
  }
}

// A renewal that falls due while the owner's extend waits for its turn must not take the owner's ttl away.
TEST(Machine, an_extend_that_waits_when_the_renewal_is_due_keeps_its_ttl) {
  Life l = Life::holding();
  ASSERT_EQ(l.machine.extend(l.lock, 30'000), 0);
  l.time(3'500);
  EXPECT_EQ(l.lock.wants, Wants::extend);
  EXPECT_EQ(l.lock.hold.extend_ttl_ms, 30'000u);
  EXPECT_EQ(l.machine.deadline(l.lock), at(9'898)) << "the renewal is not due over and over";
  ASSERT_TRUE(l.begin(3'500));
  EXPECT_EQ(l.lock.round.ttl_ms, 30'000u);
}

// ---- max_hold_ms ----------------------------------------------------------------------------------------------

TEST(Machine, max_hold_cuts_the_ttl_and_then_ends_renewals) {
  Life l = Life::holding(with_hold(15'000));
  ASSERT_EQ(l.time(3'334), Action::start);
  ASSERT_TRUE(l.begin(3'334));
  EXPECT_EQ(l.lock.round.ttl_ms, 10'000u) << "13232 is before the limit";
  l.votes(0, 3, Vote::granted);
  ASSERT_EQ(l.time(l.lock.wake_at), Action::start);
  ASSERT_TRUE(l.machine.begin(l.lock, Masters::all(masters), at(6'700)));
  EXPECT_EQ(l.lock.round.ttl_ms, 8'385u);
  l.now = at(6'710);
  l.votes(0, 3, Vote::granted);
  EXPECT_LE(l.lock.valid_until, at(15'000));
  EXPECT_GT(l.lock.valid_until, at(14'999));
  EXPECT_EQ(l.told(), REDLOCK_EV_RENEWED);
}

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

TEST(Machine, a_validity_at_or_past_max_hold_cannot_be_extended) {
  for (const uint32_t hold : {9'898u, 1'000u}) {
    Life l = Life::holding(with_hold(hold));
    EXPECT_EQ(l.machine.extend(l.lock, 10'000), REDLOCK_E_HOLD_LIMIT);
    EXPECT_EQ(l.time(3'334), Action::start);
    EXPECT_TRUE(l.lock.hold.probe) << "no renewal";
    EXPECT_EQ(l.held(at(9'897)), Held::held) << "but what was won stays won";
  }
}

TEST(Machine, max_hold_counts_from_the_round_that_was_won) {
  Options o = with_hold(12'000);
  o.wait_ms = REDLOCK_WAIT_FOREVER;
  Life l(o);
  l.begin(0);
  l.votes(0, 3, Vote::refused);
  l.time(l.lock.wake_at);
  l.begin(1'000);
  l.votes(0, 3, Vote::granted);
  EXPECT_EQ(l.lock.hold.limit, at(13'000));
}

// ---- events ---------------------------------------------------------------------------------------------------

TEST(Machine, acquired_is_told_before_anything_about_the_held_lock) {
  Life l;
  l.begin(0);
  l.votes(0, 3, Vote::granted);
  ASSERT_EQ(l.machine.extend(l.lock, 10'000), 0);
  l.begin(1'000);
  l.votes(0, 3, Vote::granted);
  EXPECT_EQ(l.lock.tell.event, REDLOCK_EV_ACQUIRED);
  ASSERT_EQ(l.machine.extend(l.lock, 10'000), 0);
  l.begin(2'000);
  l.votes(0, 3, Vote::refused);
  EXPECT_EQ(l.told(), REDLOCK_EV_ACQUIRED);
  EXPECT_EQ(l.lock.tell.err, 0);
}

TEST(Machine, the_latest_of_renewed_and_at_risk_is_told) {
  Life l = Life::extending(1'000);
  l.votes(0, 3, Vote::refused);
  EXPECT_EQ(l.lock.tell.event, REDLOCK_EV_AT_RISK);
  l.machine.extend(l.lock, 10'000);
  l.begin(1'100);
  l.votes(0, 3, Vote::granted);
  EXPECT_EQ(l.lock.tell.event, REDLOCK_EV_RENEWED);
  EXPECT_EQ(l.lock.tell.err, 0);
  l.machine.extend(l.lock, 10'000);
  l.begin(1'200);
  l.votes(0, 3, Vote::refused);
  EXPECT_EQ(l.lock.tell.event, REDLOCK_EV_AT_RISK);
  EXPECT_EQ(l.lock.tell.err, REDLOCK_E_GONE);
  l.machine.release(l.lock);
  expect_over(l, REDLOCK_EV_RELEASED, 0);
}

TEST(Machine, an_acquire_that_ends_before_it_was_told_is_the_one_failed) {
  const auto acquired = [](const Options& o = usual()) {
    Life l(o);
    l.begin(0);
    l.votes(0, 3, Vote::granted);
    return l;
  };
  Life expired = acquired(no_renew());
  EXPECT_EQ(expired.time(9'898), Action::release);
  expect_over(expired, REDLOCK_EV_FAILED, REDLOCK_E_LOST);
  Life released = acquired();
  EXPECT_EQ(released.machine.release(released.lock), Action::release);
  expect_over(released, REDLOCK_EV_FAILED, REDLOCK_E_CANCELED);
  Life marked = acquired();
  marked.lock.cell.mark_expired(marked.lock.generation);
  EXPECT_EQ(marked.time(1), Action::linger);
  expect_over(marked, REDLOCK_EV_FAILED, REDLOCK_E_LOST);
}

TEST(Machine, a_new_life_knows_nothing_of_the_old_one) {
  Life l = Life::holding(with_hold(15'000));
  l.machine.extend(l.lock, 10'000);
  l.begin(9'000);
  l.votes(0, 3, Vote::failed, REDLOCK_E_OOM);
  l.time(9'898);
  l.told();
  l.lock.state = State::free;
  l.lock.cell.retire(l.lock.generation);
  const uint64_t old = l.lock.generation++;
  l.machine.accept(l.lock, with_wait(50));
  EXPECT_EQ(l.machine.deadline(l.lock), Instant::never());
  EXPECT_EQ(l.lock.rounds, 0u);
  EXPECT_EQ(l.lock.wait.last_cause, 0);
  EXPECT_EQ(l.lock.round.first_error, 0);
  EXPECT_EQ(l.lock.hold.limit, Instant::never());
  EXPECT_EQ(judge(l.lock.cell, old, true, at(0), Duration()).held, Held::stale);
  EXPECT_EQ(l.held(at(0)), Held::not_held);
  l.machine.see(l.lock, at(10'000));
  EXPECT_EQ(l.time(10'050), Action::none);
  expect_over(l, REDLOCK_EV_FAILED, REDLOCK_E_TIMEOUT);
}

// Random lives: whatever happens in whatever order, the owner is told one of ACQUIRED and FAILED, after ACQUIRED one of
// RELEASED and LOST, a failed check stays failed, and no deadline that has been handled is due again.
struct Walk {
  explicit Walk(unsigned seed) : dice(seed) {}

  unsigned roll(unsigned n) { return static_cast<unsigned>(dice() % n); }

  Options options() {
    Options o = usual();
    o.ttl_ms = 20 + roll(200);
    o.wait_ms = static_cast<int32_t>(roll(3) == 0 ? roll(400) : roll(2)) - 1;
    o.min_validity_ms = roll(4) == 0 ? roll(50) : 0;
    o.max_hold_ms = roll(3) == 0 ? 1 + roll(600) : 0;
    o.renew = roll(3) != 0;
    return o;
  }

  void tell(Life& l) {
    const int event = l.told();
    if (event == 0) return;
    events.push_back(event);
    if (event == REDLOCK_EV_ACQUIRED) {
      EXPECT_FALSE(acquired);
      acquired = true;
    } else if (event == REDLOCK_EV_FAILED) {
      EXPECT_FALSE(acquired);
      EXPECT_EQ(l.lock.state, State::over);
    } else {
      EXPECT_TRUE(acquired);
    }
    const bool terminal = event == REDLOCK_EV_FAILED || event == REDLOCK_EV_RELEASED || event == REDLOCK_EV_LOST;
    EXPECT_EQ(l.lock.state == State::over, terminal);
  }

  void step(Life& l) {
    switch (roll(10)) {
      case 0:
        if (roll(l.lock.state == State::held ? 20 : 200) == 0) l.machine.release(l.lock);
        break;
      case 1:
        if (roll(50) == 0 && !(l.lock.state == State::held && acquired)) l.machine.cancel(l.lock, REDLOCK_E_CANCELED);
        break;
      case 2:
        l.machine.extend(l.lock, 20 + roll(300));
        break;
      case 3:
        if (roll(30) == 0) l.machine.jumped(l.lock, l.now);
        break;
      case 4:
        l.machine.wake(l.lock);
        break;
      case 5:
        if (roll(2) == 0) tell(l);
        break;
      case 6:
        if (l.lock.wants != Wants::nothing) l.machine.begin(l.lock, Masters::all(masters), l.now);
        break;
      default:
        l.vote(roll(masters), static_cast<Vote>(roll(8) < 6 ? 0 : 1 + roll(2)), REDLOCK_E_OOM);
    }
  }

  void live() {
    Life l(options());
    bool failed_check = false;
    Instant valid;
    for (int n = 0; n < 2'000 && l.lock.state != State::over; ++n) {
      l.time(l.now + Duration::us(roll(roll(16) == 0 ? 40'000 : 2'000)));
      EXPECT_GT(l.machine.deadline(l.lock), l.now) << "handled, and due again";
      if (l.lock.state == State::over) break;
      step(l);
      if (l.lock.state == State::held) {
        EXPECT_GE(l.lock.valid_until, valid) << "the validity never gets shorter";
        const bool extended = valid != Instant() && l.lock.valid_until > valid;
        EXPECT_TRUE(!extended || l.lock.valid_until <= l.lock.hold.limit) << "carried past max_hold_ms";
        valid = l.lock.valid_until;
      }
      if (roll(10) == 0) {
        const Held held = l.held(l.now + Duration::us(roll(5'000)));
        EXPECT_FALSE(failed_check && held != Held::lost) << "a failed check never becomes valid again";
        failed_check = failed_check || held == Held::lost;
      }
    }
    if (l.lock.state != State::over) l.machine.release(l.lock);
    tell(l);
    EXPECT_FALSE(events.empty());
    EXPECT_TRUE(!events.empty() && (events.back() == REDLOCK_EV_FAILED || events.back() == REDLOCK_EV_LOST ||
                                    events.back() == REDLOCK_EV_RELEASED));
    EXPECT_EQ(l.held(l.now), Held::lost);
    ends[events.empty() ? 0 : events.back()]++;
    events.clear();
    acquired = false;
  }

  std::mt19937 dice;
  std::vector<int> events;
  bool acquired = false;
  int ends[9] = {};
};

TEST(Machine, random_lives) {
  Walk walk(17);
  for (int i = 0; i < 3'000 && !testing::Test::HasFailure(); ++i) walk.live();
  EXPECT_GT(walk.ends[REDLOCK_EV_FAILED], 100);
  EXPECT_GT(walk.ends[REDLOCK_EV_LOST], 100);
  EXPECT_GT(walk.ends[REDLOCK_EV_RELEASED], 100);
}

TEST(Machine, a_check_that_finds_it_over_before_the_verdict_is_told) {
  Life l;
  l.begin(0);
  l.votes(0, 2, Vote::granted);
  l.lock.cell.mark_expired(l.lock.generation);  // as a check on another thread does, just after the cell was written
  EXPECT_EQ(l.vote(2, Vote::granted), Action::release);
  EXPECT_EQ(l.lock.state, State::over);
  EXPECT_EQ(l.lock.tell.err, REDLOCK_E_LOST);
  EXPECT_EQ(l.told(), REDLOCK_EV_FAILED);
}

#if defined(REDLOCK_ASSERTS)
TEST(Machine, a_lock_that_contradicts_itself_traps) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto check_with = [](void (*spoil)(Lock&)) {
    Life l = Life::holding();
    l.machine.check(l.lock);
    spoil(l.lock);
    l.machine.check(l.lock);
  };
  EXPECT_DEATH(check_with([](Lock& l) { l.round.refused.add(0); }), "") << "a master votes once";
  EXPECT_DEATH(check_with([](Lock& l) { l.round.failed.add(masters); }), "") << "no such master";
  EXPECT_DEATH(check_with([](Lock& l) { l.wants = Wants::acquire; }), "") << "it is held already";
  EXPECT_DEATH(check_with([](Lock& l) { l.hold.gone.add(4); }), "") << "gone and not lacking";
  EXPECT_DEATH(check_with([](Lock& l) { l.tell.event = REDLOCK_EV_LOST; }), "") << "told and still held";
  EXPECT_DEATH(check_with([](Lock& l) { l.state = State::acquiring; }), "") << "without a round";
  EXPECT_DEATH(check_with([](Lock& l) { l.state = State::over; }), "") << "a check would still find it held";
}
#endif

}  // namespace
}  // namespace redlock
