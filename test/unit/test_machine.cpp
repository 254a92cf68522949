// SPDX-License-Identifier: MIT
//
// Machine: one lock that does at once what an action asks for: rounds, renewals, budgets, and a waiter that masters
// tell of changes. What a lock's owner must never see - two ends, an end before a beginning - the simulator looks for
// in long lives; stories of a few messages are told by test/scenario.
#include "lock/machine.hpp"

#include <gtest/gtest.h>
#include <redlock/limits.h>

#include <algorithm>
#include <set>
#include <vector>

#include "lock/backoff.hpp"
#include "lock/validity.hpp"
#include "master/guard.hpp"

namespace redlock {
namespace {

constexpr unsigned masters = 5;
constexpr unsigned node_timeout_ms = 50;
constexpr uint32_t sleep_max_ms = 5'000;
constexpr uint32_t wait_ms = 10'000;  // the budgets of REDLOCK_WAIT_DEFAULT
constexpr uint32_t guard_wait_ms = 60'000;
constexpr Drift drift = {10'000, 2};

Instant at(int64_t ms) { return Instant::from_ns(ms * 1'000'000); }

Instant a_third_after(int64_t ms) { return at(ms) + Duration::ns(10'000'000'000 / 3); }

Options usual() { return {10'000, REDLOCK_TRY_ONCE, 0, 0, 100, true}; }
Options with_wait(int32_t ms) {
  Options o = usual();
  o.wait_ms = ms;
  return o;
}
Options urgent(int32_t ms) {
  Options o = with_wait(ms);
  o.urgent = true;
  return o;
}
Options with_hold(uint32_t max_hold_ms, uint32_t ttl_ms = 10'000) {
  Options o = usual();
  o.max_hold_ms = max_hold_ms;
  o.ttl_ms = ttl_ms;
  return o;
}

Machine::Rules rules(unsigned of_masters = masters) {
  return {.masters = of_masters,
          .drift = drift,
          .node_timeout = Duration::ms(node_timeout_ms),
          .max_ttl_ms = 30'000,
          .sleep_max_ms = sleep_max_ms,
          .local_turns = 1,
          .wait = Duration::ms(wait_ms),
          .guard_wait = Duration::ms(guard_wait_ms)};
}

// One lock and its client: it does at once what an Action asks for, as far as the machine is concerned.
struct Life {
  explicit Life(const Options& options = usual()) {
    machine.init(rules());
    ++lock.generation;
    machine.accept(lock, options);
    machine.see(lock, false, now);
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
    return machine.on_time(lock, now, now);
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

struct AnyLife : ::testing::Test {
  Life l;
};
struct BegunLife : AnyLife {
  BegunLife() { l.begin(0); }
};
struct HeldLife : ::testing::Test {
  Life l = Life::holding();
};

// ---- the arrows -----------------------------------------------------------------------------------------------

TEST_F(AnyLife, acquiring_to_held_at_the_third_of_five) {
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

TEST(Machine, acquiring_to_waiting_and_again) {
  Life l(with_wait(REDLOCK_WAIT_FOREVER));
  std::set<uint32_t> numbers = {0};  // a put-back's
  for (unsigned round = 1; round < 20; ++round) {
    const Instant t0 = l.now;
    ASSERT_TRUE(l.machine.begin(l.lock, Masters::all(masters), t0));
    EXPECT_TRUE(numbers.insert(l.lock.round.number).second) << l.lock.round.number;
    EXPECT_EQ(l.votes(0, 3, Vote::refused), Action::look);
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

// ---- events ---------------------------------------------------------------------------------------------------

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
  EXPECT_EQ(l.lock.round.told_error, 0);
  EXPECT_EQ(l.lock.hold.limit, Instant::never());
  EXPECT_EQ(judge(l.lock.cell, old, true, at(0), Duration()).held, Held::stale);
  EXPECT_EQ(l.held(at(0)), Held::not_held);
  l.machine.see(l.lock, false, at(10'000));
  EXPECT_EQ(l.time(10'050), Action::none);
  expect_over(l, REDLOCK_EV_FAILED, REDLOCK_E_TIMEOUT);
}

TEST_F(HeldLife, what_is_meant_for_another_state_changes_nothing) {
  EXPECT_EQ(l.machine.revoke(l.lock, 0, REDLOCK_E_UNREAD, l.now), Action::none) << "its round is over";
  EXPECT_EQ(l.lock.round.granted, Masters::of(0, 1, 2));
  EXPECT_EQ(l.machine.wake(l.lock), Action::none);
  l.lock.options.wait_ms = REDLOCK_WAIT_DEFAULT;
  const Instant until = l.lock.wait.until;
  l.machine.charge(l.lock, true, at(100));
  EXPECT_EQ(l.lock.wait.until, until) << "it does not wait";
  EXPECT_EQ(l.machine.put_back_ttl(l.lock, l.lock.valid_until), 0u);
  EXPECT_EQ(l.machine.cancel(l.lock, REDLOCK_E_CANCELED), Action::release);
  EXPECT_EQ(l.machine.on_key_missing(l.lock, 0, true), Action::none);
  EXPECT_EQ(l.machine.put_back_ttl(l.lock, at(1)), 0u);
  for (const State state : {State::over, State::free}) {
    l.lock.state = state;
    EXPECT_EQ(l.time(1'000'000), Action::none);
    EXPECT_EQ(l.votes(0, 5, Vote::granted), Action::none) << "no round is open";
  }
  Life acquiring;
  acquiring.begin(0);
  EXPECT_EQ(acquiring.machine.distrust(acquiring.lock, Masters::all(5)), Action::none);
  EXPECT_EQ(acquiring.lock.state, State::acquiring);
  acquiring.vote(0, Vote::granted);
  EXPECT_EQ(acquiring.vote(0, Vote::refused), Action::none) << "it has voted";
  acquiring.machine.on_counter(acquiring.lock, 0, {Counter::State::ack, 9});
  EXPECT_EQ(acquiring.lock.fence.counters.top, 0u);
  Life waiting(with_wait(REDLOCK_WAIT_DEFAULT));
  EXPECT_EQ(waiting.machine.wake(waiting.lock), Action::none) << "it wants a round already";
  EXPECT_EQ(waiting.machine.came_first(waiting.lock, acquiring.lock), Action::none);
  waiting.lock.wants = Wants::nothing;
  EXPECT_EQ(waiting.machine.came_first(waiting.lock, acquiring.lock), Action::start) << "which held nothing";
  waiting.machine.accept(*new (&waiting.lock) Lock, with_wait(REDLOCK_WAIT_DEFAULT));
  waiting.machine.charge(waiting.lock, true, at(100));
  EXPECT_EQ(waiting.lock.wait.until, Instant::never()) << "no budget runs before its first turn";
}

// A check on another thread may find it over before ACQUIRED is told.
TEST_F(BegunLife, held_to_over_when_a_check_found_it_over) {
  l.votes(0, 3, Vote::granted);
  l.lock.cell.mark_expired(l.lock.generation);
  EXPECT_EQ(l.machine.extend(l.lock, 1'000), REDLOCK_E_LOST);
  EXPECT_EQ(l.time(1), Action::linger);
  expect_over(l, REDLOCK_EV_FAILED, REDLOCK_E_LOST);
}

// Masters denied something, and then too many of them were silent: that may pass.
TEST(Machine, a_round_that_only_silence_has_lost_ends_no_wait) {
  Life l(with_wait(500));
  l.begin(0);
  l.lock.wait.denied = Masters::of(0, 1, 2);
  l.votes(0, 3, Vote::failed, REDLOCK_E_NODE_TIMEOUT);
  EXPECT_EQ(l.lock.state, State::waiting);
}

TEST_F(BegunLife, acquired_is_told_before_an_extend_that_failed) {
  l.votes(0, 3, Vote::granted);
  ASSERT_EQ(l.machine.extend(l.lock, 10'000), 0);
  l.begin(1'000);
  l.votes(0, 3, Vote::granted);
  ASSERT_EQ(l.machine.extend(l.lock, 10'000), 0);
  l.begin(2'000);
  l.votes(0, 3, Vote::refused);
  EXPECT_EQ(l.told(), REDLOCK_EV_ACQUIRED);
  EXPECT_EQ(l.lock.tell.err, 0);
}

TEST(Machine, a_grant_that_comes_when_its_validity_ends_is_too_slow) {
  Options o = usual();
  o.ttl_ms = 40;  // valid for 37.6 ms
  Life late(o);
  late.begin(0);
  late.now = Instant::from_ns(37'600'000);
  EXPECT_EQ(late.votes(0, 3, Vote::granted), Action::drop);
  expect_over(late, REDLOCK_EV_FAILED, REDLOCK_E_TOO_SLOW);
}

TEST_F(BegunLife, a_check_that_finds_it_over_before_the_verdict_is_told) {
  l.votes(0, 2, Vote::granted);
  l.lock.cell.mark_expired(l.lock.generation);  // as a check on another thread does, just after the cell was written
  EXPECT_EQ(l.vote(2, Vote::granted), Action::release);
  EXPECT_EQ(l.lock.state, State::over);
  EXPECT_EQ(l.lock.tell.err, REDLOCK_E_LOST);
  EXPECT_EQ(l.told(), REDLOCK_EV_FAILED);
}

#if defined(REDLOCK_ASSERTS)
TEST(Machine, a_lock_that_contradicts_itself_traps) {
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

// ---- extending ------------------------------------------------------------------------------------------------

TEST(Machine, an_extend_that_a_check_overtook_is_lost) {
  Life l = Life::extending(1'000);
  l.lock.cell.mark_expired(l.lock.generation);
  EXPECT_EQ(l.votes(0, 2, Vote::granted), Action::none);
  EXPECT_EQ(l.vote(2, Vote::granted), Action::linger);
  expect_over(l, REDLOCK_EV_LOST, REDLOCK_E_LOST);
  EXPECT_EQ(l.lock.valid_until, at(10'898)) << "this was published, if only for a moment";
  EXPECT_EQ(l.held(at(1'000)), Held::lost);
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

// ---- rounds ---------------------------------------------------------------------------------------------------

TEST(Machine, which_reasons_are_the_guards) {
  for (const int error : {REDLOCK_E_UNREAD, REDLOCK_E_UNWATCHED, REDLOCK_E_WALL_CLOCK, REDLOCK_E_REPLID,
                          REDLOCK_E_EVICTED, REDLOCK_E_TWO_SERVERS}) {
    Life l;
    l.begin(0);
    l.votes(0, 3, Vote::failed, error);
    expect_over(l, REDLOCK_EV_FAILED, REDLOCK_E_GUARD);
  }
  for (const int error : {REDLOCK_E_NO_GREETING, REDLOCK_E_GONE, REDLOCK_E_DENIED, REDLOCK_E_TLS_NONE}) {
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

TEST_F(BegunLife, the_told_error_is_kept_at_the_deadline) {
  l.vote(3, Vote::failed, REDLOCK_E_LOADING);
  l.time(50);
  EXPECT_EQ(l.lock.round.told_error, REDLOCK_E_LOADING);
  EXPECT_EQ(l.lock.round.told_master, 3u);
  EXPECT_EQ(l.lock.round.failed.count(), masters);
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

// A lock that lost its first round to a holder on all five masters, has looked, and knows that the key lives.
struct Watcher : Life {
  explicit Watcher(uint64_t seed = 1, const Options& options = with_wait(REDLOCK_WAIT_FOREVER)) : Life(options) {
    machine.seed(seed);
    lock.options.retry_delay_ms = 200;
    lock.forecast.use(free_at, masters);
    now = now + Duration::ms(1'000);  // zero would be: has not waited
    lose();
  }
  void lose() {
    lock.wants = Wants::acquire;
    EXPECT_TRUE(machine.begin(lock, Masters::all(masters), now));
    now = now + Duration::us(500);
    EXPECT_EQ(votes(0, 3, Vote::refused), Action::look);
    look();
  }
  // Sends the looks and answers them.
  void look(int64_t ttl = 9'000) {
    machine.begin_looking(lock, Masters::all(masters), Masters::all(masters), now);
    answer(ttl);
  }
  void answer(int64_t ttl) {
    while (!lock.forecast.look().empty()) {
      const MasterIndex m = *lock.forecast.look().begin();
      machine.look_sent(lock, m, now);
      ++looks;
      machine.looked(lock, m, ttl, now);
    }
  }
  // The holder lets go, and the pushes of all masters come.
  void push() {
    for (MasterIndex m = 0; m < masters; ++m) machine.changed(lock, m, now);
  }
  Duration pause() const { return left(lock.wake_at, now); }
  Action wait_until_due() {
    now = lock.wake_at;
    return machine.on_time(lock, now, now);
  }
  // Another waiter is faster. True: this one looked before it tried.
  bool pass() {
    push();
    const bool looked = lock.wait.unsure;
    if (wait_until_due() == Action::look) {
      look();
    } else {
      lose();
    }
    return looked;
  }
  Instant free_at[masters];
  unsigned looks = 0;
};

// ---- urgent ----------------------------------------------------------------------------------------------------

struct Alarm : Watcher {
  explicit Alarm(uint64_t seed = 1) : Watcher(seed, urgent(REDLOCK_WAIT_FOREVER)) {}
};

TEST(Urgent, watches_a_set_that_blocks_a_quorum_and_draws_no_pause) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Alarm w(seed);
    EXPECT_EQ(w.looks, 3u);
    EXPECT_EQ(w.lock.wait.stance, Stance::armed);
    w.push();
    EXPECT_EQ(w.pause(), Duration());
    EXPECT_EQ(w.wait_until_due(), Action::start);
  }
}

// A round took 0.5 ms. The SETs of an urgent waiter are underway for half of that.
TEST(Urgent, all_others_leave_it_two_fifths_of_a_round) {
  Duration least = Duration::ms(1'000);
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Watcher w(seed);
    w.push();
    if (!w.lock.wait.unsure) least = std::min(least, w.pause());
  }
  EXPECT_GE(least, Duration::us(200));
  EXPECT_LT(least, Duration::us(300));
}

// A grant, and the next acquire of this client right behind the release.
void again(Watcher& w, const Options& options) {
  w.lock.wants = Wants::acquire;
  ASSERT_TRUE(w.machine.begin(w.lock, Masters::all(masters), w.now));
  w.votes(0, 3, Vote::granted);
  ASSERT_EQ(w.lock.state, State::held);
  w.now = w.now + Duration::ms(10);
  w.machine.let_go(w.lock, w.now);
  w.machine.release(w.lock);
  w.lock.state = State::free;
  ++w.lock.generation;
  w.machine.accept(w.lock, options);
  w.machine.see(w.lock, false, w.now);
}

TEST(Urgent, who_asks_without_a_pause_leaves_the_others_a_round_and_a_half) {
  Duration least = Duration::ms(1'000);
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Alarm w(seed);
    for (unsigned i = 0; i < 5; ++i) again(w, urgent(REDLOCK_WAIT_FOREVER));
    w.lose();
    w.push();
    if (!w.lock.wait.unsure) least = std::min(least, w.pause());
  }
  EXPECT_GE(least, Duration::us(800));
  EXPECT_LT(least, Duration::us(900));
}

TEST(Urgent, the_one_before_it_wakes_and_hurries) {
  Watcher w;
  w.lock.wait.nap = Duration::ms(500);
  w.lock.wait.stance = Stance::peeks;
  w.lock.wait.planned_for = Instant();
  w.machine.looked(w.lock, *w.lock.round.refused.begin(), 8'000, w.now);
  ASSERT_EQ(w.lock.wait.stance, Stance::sleeps);
  w.machine.hurry(w.lock, w.now);
  EXPECT_EQ(w.pause(), Duration());
  EXPECT_EQ(w.wait_until_due(), Action::look);
  w.look();
  EXPECT_NE(w.lock.wait.stance, Stance::sleeps);
  w.push();
  EXPECT_EQ(w.pause(), Duration());
}

TEST(Urgent, a_turn_goes_to_it_a_few_times_more) {
  Life before = Life::holding(), next(urgent(1'000));
  for (const unsigned in_a_row : {1u, 4u, 5u}) {
    before.lock.line.in_a_row = static_cast<uint16_t>(in_a_row);
    next.lock.wants = Wants::nothing;
    EXPECT_EQ(next.machine.came_first(next.lock, before.lock), Action::start);
    EXPECT_EQ(next.lock.line.yields, in_a_row == 5);
  }
}

struct AnyWatcher : ::testing::Test {
  Watcher w;
};

TEST_F(AnyWatcher, where_a_master_cannot_tell_of_changes_one_of_the_others_is_not_enough) {
  w.machine.begin_looking(w.lock, Masters::all(masters), Masters::all(masters) - Masters::of(0), w.now);
  EXPECT_EQ(w.lock.forecast.look().count(), 3u);
}

TEST_F(AnyWatcher, news_without_end_is_acted_on_a_few_times_for_each_plain_pause) {
  unsigned sleeps = 0, steps = 0;
  const Instant end = w.now + Duration::ms(2'000);
  for (; w.now < end && steps < 10'000; ++steps) {
    if (w.lock.wait.stance == Stance::sleeps) {
      ++sleeps;
      EXPECT_LE(w.pause(), Duration::ms(200));
      w.push();
      EXPECT_EQ(w.wait_until_due(), Action::look) << "a sleeper is deaf, and looks before it tries";
      w.look();
    } else {
      w.pass();
    }
  }
  EXPECT_GT(sleeps, 5u);
  EXPECT_LT(steps, 200u);
}

TEST_F(AnyWatcher, news_that_comes_seldom_puts_nobody_to_sleep) {
  for (unsigned i = 0; i < 50; ++i) {
    w.now = w.now + Duration::ms(3'333);
    w.pass();
    EXPECT_EQ(w.lock.wait.stance, Stance::listens) << i << ": a holder that renews";
  }
}

// Two names with one place among those that the client remembers: the one that others want stays for one grant.
TEST_F(AnyWatcher, what_is_known_of_a_name_that_others_want_outlives_one_grant_of_another) {
  for (unsigned i = 0; i < 3; ++i) w.pass();
  const Names wanted = w.lock.names;
  std::string other;
  const auto place_of = [](const Bytes& name) { return hash_of(name) % 4; };
  do {
    other += 'x';
  } while (place_of(Bytes(other.data(), other.size())) != place_of(wanted.first()));
  const auto accept = [this](const Names& names) {
    w.lock.names = names;
    w.lock.state = State::free;
    w.machine.accept(w.lock, with_wait(REDLOCK_WAIT_FOREVER));
    return w.lock.wait.round_took;
  };
  const auto is_granted = [this] {
    w.lock.wants = Wants::acquire;
    ASSERT_TRUE(w.machine.begin(w.lock, Masters::all(masters), w.now));
    w.now = w.now + Duration::ms(2);
    w.votes(0, 3, Vote::granted);
    ASSERT_EQ(w.lock.state, State::held);
  };
  is_granted();
  const Duration round = accept(wanted);
  EXPECT_GT(round, Duration());
  accept(Names(Bytes(other.data(), other.size())));
  is_granted();
  EXPECT_EQ(accept(wanted), round);
  accept(Names(Bytes(other.data(), other.size())));
  is_granted();
  EXPECT_EQ(accept(wanted), Duration()) << "the other name has the place now";
}

// Others pass the lock four times before it is granted, so the client learns to sleep.
void learn(Watcher& w, int64_t share_ms = 4, int64_t waited_ms = 3'000) {
  for (unsigned i = 0; i < 4; ++i) w.pass();
  w.now = w.now + Duration::ms(100'000);
  w.lock.wait.since = w.now + Duration::ms(-waited_ms);
  w.lock.wait.heard_since = w.now + Duration::ms(-(w.lock.wait.passed + 1) * share_ms);
  w.lock.wants = Wants::acquire;
  w.machine.begin(w.lock, Masters::all(masters), w.now);
  w.votes(0, 3, Vote::granted);
  ASSERT_EQ(w.lock.state, State::held);
}

// The next acquire of a client that has learned to sleep: it looks, finds the key, and sleeps.
void sleep(Watcher& w, int32_t budget_ms) {
  w.lock.state = State::free;
  w.machine.accept(w.lock, with_wait(budget_ms));
  w.machine.see(w.lock, false, w.now);
  ASSERT_EQ(w.machine.yield(w.lock, w.now), Action::look);
  w.look();
  ASSERT_EQ(w.lock.wait.stance, Stance::sleeps);
}

// The local timer cuts a long nap. The waiter looks then, and sleeps again.
TEST(Watcher, a_learned_nap_may_take_several_sleeps) {
  for (const int64_t share_ms : {100, 1'300}) {  // six plain pauses are 1,200 ms
    Watcher w;
    learn(w, share_ms, 30'000);
    sleep(w, REDLOCK_WAIT_FOREVER);
    const Instant end = w.lock.wait.since + Duration::ms((30'000 - 3 * share_ms) / 2);
    unsigned sleeps = 0;
    while (w.lock.wait.stance == Stance::sleeps) {
      ++sleeps;
      EXPECT_LE(w.lock.wake_at, end);
      ASSERT_EQ(w.wait_until_due(), Action::look);
      w.look();
    }
    EXPECT_EQ(w.lock.wait.stance, Stance::listens);
    if (share_ms > 1'200) {
      EXPECT_EQ(sleeps, 1u) << "the news may be that its holder renews";
    } else {
      EXPECT_GE(sleeps, 3u);
      EXPECT_GE(w.now, end + Duration::ms(-200)) << "what is left is less than a plain pause";
    }
  }
}

// An urgent acquire of its client waits behind this lock. Only a sleeper that wants no round yet has to be woken.
TEST_F(AnyWatcher, who_is_hurried_sleeps_no_longer) {
  w.machine.hurry(w.lock, w.now + Duration::ms(-1));
  EXPECT_GT(w.lock.wake_at, w.now) << "it listens";
  learn(w, 100, 30'000);
  sleep(w, REDLOCK_WAIT_FOREVER);
  w.lock.wants = Wants::acquire;
  w.machine.hurry(w.lock, w.now);
  EXPECT_GT(w.lock.wake_at, w.now);
  w.lock.wants = Wants::nothing;
  w.lock.state = State::acquiring;
  w.machine.hurry(w.lock, w.now);
  EXPECT_GT(w.lock.wake_at, w.now);
  w.lock.state = State::waiting;
  w.machine.hurry(w.lock, w.now);
  EXPECT_EQ(w.lock.wake_at, w.now);
  EXPECT_TRUE(w.lock.line.urgent);
}

// Some masters tell of changes, and those that are looked at have no key. The others are asked as often as the plain
// timer says: one of three masters that vote, where one look is enough, and two of five, where it takes three.
TEST(Watcher, nobody_sleeps_where_no_master_that_is_looked_at_has_the_key) {
  const Masters two = Masters::of(0) | Masters::of(1), three = two | Masters::of(2);
  for (const auto& [votes, tracked] : {std::pair(three, two), std::pair(Masters::all(masters), three)}) {
    for (const int64_t ttl : {ttl_gone, int64_t{9'000}}) {
      Watcher w;
      learn(w, 100, 30'000);
      sleep(w, REDLOCK_WAIT_FOREVER);
      ASSERT_EQ(w.wait_until_due(), Action::look);
      w.machine.begin_looking(w.lock, votes, tracked, w.now);
      w.answer(ttl);
      EXPECT_EQ(w.lock.wait.stance == Stance::sleeps, ttl != ttl_gone);
      if (ttl != ttl_gone) continue;
      EXPECT_LE(w.pause(), Duration::ms(200));
      EXPECT_EQ(w.wait_until_due(), Action::start);
    }
  }
}

// One that has tried in vain five times sleeps all the same: others fail, and its rounds would go on at their own pace.
TEST_F(AnyWatcher, who_is_tired_sleeps_also_where_no_master_that_is_looked_at_has_the_key) {
  const Masters tracked = Masters::of(0) | Masters::of(1);
  for (unsigned i = 1; i < 5; ++i) {  // the first was lost before
    EXPECT_NE(w.lock.wait.stance, Stance::sleeps) << i;
    w.now = w.now + Duration::ms(100);
    w.lock.wants = Wants::acquire;
    ASSERT_TRUE(w.machine.begin(w.lock, Masters::all(masters), w.now));
    ASSERT_EQ(w.votes(0, 3, Vote::refused), Action::look);
    w.machine.begin_looking(w.lock, tracked | Masters::of(2), tracked, w.now);
    w.answer(ttl_gone);
  }
  EXPECT_EQ(w.lock.wait.stance, Stance::sleeps);
}

// The key is on the last of them.
TEST_F(AnyWatcher, the_last_look_that_is_answered_decides_about_the_nap) {
  learn(w, 100, 30'000);
  sleep(w, REDLOCK_WAIT_FOREVER);
  ASSERT_EQ(w.wait_until_due(), Action::look);
  w.machine.begin_looking(w.lock, Masters::all(masters), Masters::of(0) | Masters::of(1) | Masters::of(2), w.now);
  for (MasterIndex m = 0; m < 3; ++m) w.machine.look_sent(w.lock, m, w.now);
  for (MasterIndex m = 0; m < 3; ++m) {
    EXPECT_NE(w.lock.wait.stance, Stance::sleeps);
    w.machine.looked(w.lock, m, m == 2 ? 9'000 : ttl_gone, w.now);
  }
  EXPECT_EQ(w.lock.wait.stance, Stance::sleeps);
}

TEST_F(AnyWatcher, who_is_granted_the_lock_out_of_its_sleep_had_to_wait) {
  learn(w);
  sleep(w, REDLOCK_WAIT_FOREVER);
  w.lock.wants = Wants::acquire;  // masters came back
  w.machine.begin(w.lock, Masters::all(masters), w.now);
  w.votes(0, 3, Vote::granted);
  ASSERT_EQ(w.lock.state, State::held);
  w.lock.state = State::free;
  w.machine.accept(w.lock, with_wait(REDLOCK_WAIT_FOREVER));
  EXPECT_TRUE(w.lock.line.yields);
}

// The usual loop of a firmware: acquire, use, release, and acquire again. Its SET is the first one at each master.
TEST(Watcher, a_loop_without_a_pause_leaves_others_the_first_try) {
  Life l(with_wait(REDLOCK_WAIT_FOREVER));
  const auto acquire = [&l] {
    EXPECT_TRUE(l.machine.begin(l.lock, Masters::all(masters), l.now));
    l.now = l.now + Duration::us(500);
    l.votes(0, 3, Vote::granted);
    EXPECT_EQ(l.lock.state, State::held);
    l.lock.state = State::free;
    l.machine.accept(l.lock, with_wait(REDLOCK_WAIT_FOREVER));
  };
  Instant free_at[masters];
  l.lock.forecast.use(free_at, masters);
  unsigned given = 0;
  for (unsigned i = 0; i < 100; ++i) {
    acquire();
    if (!l.lock.line.yields) continue;
    ++given;
    EXPECT_EQ(l.machine.yield(l.lock, l.now), Action::look);
    const Duration first_try = left(l.lock.wait.not_before, l.now);
    EXPECT_EQ(first_try, Duration::us(4'000)) << "another hears of the release, looks, and tries";
    ASSERT_EQ(l.machine.wake(l.lock), Action::start);
  }
  EXPECT_EQ(given, 4u) << "after 4, 8, 16, 32 grants";
}

TEST(Urgent, who_has_lost_many_races_draws_a_pause) {
  Alarm w;
  w.lock.wait.passed = 100;
  w.lose();
  w.push();
  EXPECT_GT(w.pause(), Duration());
}

TEST_F(AnyWatcher, passes_are_counted_as_far_as_two_bytes_go) {
  w.lock.wait.passed = UINT16_MAX;
  w.lose();
  EXPECT_EQ(w.lock.wait.passed, UINT16_MAX);
}

TEST(Watcher, masters_that_leave_wake_whom_nobody_tells_any_more_but_no_sleeper) {
  for (const bool sleeps : {false, true}) {
    Watcher w;
    if (sleeps) {
      learn(w);
      sleep(w, REDLOCK_WAIT_FOREVER);
    }
    const Instant before = w.lock.wake_at;
    for (MasterIndex m = 0; m < masters; ++m) w.machine.master_disconnected(w.lock, m, w.now);
    EXPECT_EQ(w.lock.wake_at < before, !sleeps);
  }
  Watcher due;  // its round is put off, for want of room or of random bytes: the timer does not help
  due.push();
  ASSERT_EQ(due.machine.wake(due.lock), Action::start);
  for (MasterIndex m = 0; m < masters; ++m) due.machine.master_disconnected(due.lock, m, due.now);
  EXPECT_EQ(due.lock.wake_at, Instant::never());
  Watcher w;  // its round is open: nothing is to be woken
  w.lock.wants = Wants::acquire;
  w.machine.begin(w.lock, Masters::all(masters), w.now);
  const Instant before = w.lock.wake_at;
  w.machine.master_disconnected(w.lock, 0, w.now);
  EXPECT_EQ(w.lock.wake_at, before);
  w.votes(0, 3, Vote::failed);  // it waits, but not for others
  ASSERT_EQ(w.lock.state, State::waiting);
  const Instant plain = w.lock.wake_at;
  w.machine.master_disconnected(w.lock, 0, w.now);
  EXPECT_EQ(w.lock.wake_at, plain);
}

// The arithmetic of times at its boundaries: every combination of values at and beside zero, the limits of the
// configuration, and the ends of 32 and 64 bits, compared with the same formula in 128 bits.
#ifdef __SIZEOF_INT128__  // no processor of 32 bits has it
using Wide = __int128;
constexpr Wide million = 1'000'000;

int64_t saturated(Wide n) {
  return n > INT64_MAX ? INT64_MAX : n < INT64_MIN ? INT64_MIN : static_cast<int64_t>(n);
}

// The values, and those beside them that fit.
template <class T>
std::vector<T> around(const std::set<T>& values) {
  std::set<T> all;
  for (const T value : values) {
    for (const int step : {-1, 0, 1}) {
      T neighbour = 0;
      if (!__builtin_add_overflow(value, step, &neighbour)) all.insert(neighbour);
    }
  }
  return {all.begin(), all.end()};
}

const std::vector<int64_t>& instants() {
  static const auto all = around<int64_t>({INT64_MIN, -(int64_t{1} << 53), -1'000'000'000, -1'000'000, 0, 1'000'000,
                                           1'000'000'000, 86'400'000'000'000, int64_t{1} << 53, INT64_MAX});
  return all;
}

const std::vector<uint32_t>& ttls() {
  static const auto all = around<uint32_t>({0, REDLOCK_TTL_MS_MIN, REDLOCK_TTL_MS_DEFAULT, REDLOCK_MAX_TTL_MS_MAX,
                                            uint32_t{1} << 31, UINT32_MAX});
  return all;
}

const Drift drifts[] = {{0, 0},
                        {REDLOCK_DRIFT_PPM_DEFAULT, REDLOCK_DRIFT_FIXED_MS_DEFAULT},
                        {REDLOCK_DRIFT_PPM_DEFAULT, REDLOCK_DRIFT_FIXED_MS_MAX},
                        {REDLOCK_DRIFT_PPM_MAX, REDLOCK_DRIFT_FIXED_MS_DEFAULT},
                        {REDLOCK_DRIFT_PPM_MAX, REDLOCK_DRIFT_FIXED_MS_MAX}};

TEST(EveryBoundary, of_a_sum_saturates) {
  for (const int64_t t : instants()) {
    for (const int64_t d : instants()) {
      ASSERT_EQ((Instant::from_ns(t) + Duration::ns(d)).ns(), saturated(Wide{t} + d)) << t << ' ' << d;
    }
  }
}

TEST(EveryBoundary, of_what_is_left) {
  for (const int64_t until : instants()) {
    for (const int64_t now : instants()) {
      if (Wide{until} - now > INT64_MAX) continue;  // three centuries apart: instants are never negative in a client
      const Wide wanted = until > now ? Wide{until} - now : 0;
      ASSERT_EQ(left(Instant::from_ns(until), Instant::from_ns(now)).ns(), saturated(wanted)) << until << ' ' << now;
      ASSERT_EQ(remaining_ms(Instant::from_ns(until), Instant::from_ns(now)), saturated(wanted / million));
    }
  }
}

TEST(EveryBoundary, of_a_validity) {
  for (const Drift d : drifts) {
    for (const uint32_t ttl : ttls()) {
      const Wide lost = Wide{ttl} * d.ppm + d.fixed_ms * million;
      for (const int64_t t0 : instants()) {
        const Wide wanted = Wide{t0} + ttl * million - lost;
        ASSERT_EQ(valid_until(Instant::from_ns(t0), ttl, d).ns(), saturated(wanted))
            << t0 << " ttl " << ttl << " ppm " << d.ppm << " fixed " << d.fixed_ms;
      }
    }
  }
}

// No longer than asked for, not past the limit, and one millisecond more would be.
TEST(EveryBoundary, of_a_ttl_that_is_cut) {
  unsigned long cut = 0;
  for (const Drift d : drifts) {
    for (const uint32_t ttl : ttls()) {
      for (const int64_t t0 : instants()) {
        if (t0 < 0) continue;
        const Instant begin = Instant::from_ns(t0);
        std::set<int64_t> limits(instants().begin(), instants().end());
        for (const uint32_t shorter : ttls()) limits.insert(valid_until(begin, shorter, d).ns());
        for (const int64_t limit : around<int64_t>(limits)) {
          if (limit < 0) continue;
          const uint32_t within = ttl_within(begin, ttl, d, Instant::from_ns(limit));
          ASSERT_LE(within, ttl);
          if (within == ttl) {
            ASSERT_TRUE(ttl == 0 || valid_until(begin, ttl, d).ns() <= limit) << t0 << ' ' << ttl << ' ' << limit;
            continue;
          }
          ++cut;
          ASSERT_TRUE(limit > t0 || within == 0) << t0 << ' ' << ttl << ' ' << limit << ' ' << within;
          const auto end = [&](Wide ms) { return t0 + ms * million - ms * d.ppm - d.fixed_ms * million; };
          ASSERT_TRUE(within == 0 || end(within) <= limit) << t0 << ' ' << ttl << ' ' << limit << ' ' << within;
          const bool longest = limit <= t0 || end(Wide{within} + 1) > limit;
          ASSERT_TRUE(longest) << t0 << ' ' << ttl << ' ' << limit << ' ' << within;
        }
      }
    }
  }
  EXPECT_GT(cut, 10'000u);
}

TEST(EveryBoundary, of_a_guard_time) {
  for (const Drift d : drifts) {
    for (const uint32_t ttl : ttls()) {
      const Wide wanted = Wide{ttl} * (million + d.ppm) + d.fixed_ms * million;
      ASSERT_EQ(guard_time(ttl, d.ppm, d.fixed_ms).ns(), saturated(wanted));
      ASSERT_LT(wanted, INT64_MAX);
      ASSERT_GE(wanted, ttl * million) << "every lock of that ttl has ended";
    }
  }
}
#endif

}  // namespace
}  // namespace redlock
