// SPDX-License-Identifier: MIT
//
// Machine: every arrow of the drawing in machine.hpp, every rule about events, budgets, rounds and renewals.
// What a lock's owner must never see - two ends, an end before a beginning - the simulator looks for in long lives.
#include "machine_fixture.hpp"

namespace redlock {
namespace {

using namespace machine_test;
using machine_test::Life;

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

// A check on another thread may find it over before the driver does.
TEST_F(HeldLife, held_to_over_when_a_check_found_it_over) {
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

TEST_F(HeldLife, over_and_free_stay_what_they_are) {
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

// ---- events ---------------------------------------------------------------------------------------------------

TEST_F(BegunLife, acquired_is_told_before_anything_about_the_held_lock) {
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

}  // namespace
}  // namespace redlock
