// SPDX-License-Identifier: MIT
//
// The machine between two rounds of an acquire: how long the lock pauses, what it learns of the masters meanwhile, and
// how the turn passes from one lock of this client to the next.
#include "lock/backoff.hpp"
#include "lock/machine.hpp"

namespace redlock {
namespace {

constexpr unsigned hasty_max = 6;  // lost rounds of a waiter within one plain pause; after these the plain timer rules

void count_loss(Lock& lock) {
  const bool collided = !lock.round.granted.empty();
  if (collided && lock.wait.collisions < UINT8_MAX) ++lock.wait.collisions;
  if (!collided) lock.wait.collisions = 0;
}

}  // namespace

void Machine::see(Lock& lock, bool for_guard, Instant now) const {
  if (lock.wait.begun) return;
  lock.wait.begun = true;
  if (lock.options.wait_ms > 0) lock.wait.until = now + Duration::ms(lock.options.wait_ms);
  if (lock.options.wait_ms != REDLOCK_WAIT_DEFAULT) return;
  lock.wait.until = now + rules_.wait;
  lock.wait.other = rules_.guard_wait;
  charge(lock, for_guard, now);
}

void Machine::charge(Lock& lock, bool for_guard, Instant now) const {
  Waiting& wait = lock.wait;
  const bool two_budgets = wait.begun && lock.options.wait_ms == REDLOCK_WAIT_DEFAULT;
  if (!is_pending(lock) || !two_budgets || wait.for_guard == for_guard) return;
  const Duration rest = left(wait.until, now);
  wait.until = now + wait.other;
  wait.other = rest;
  wait.for_guard = for_guard;
}

Action Machine::lost(Lock& lock, int cause, Instant now) {
  lock.wait.last_cause = static_cast<int16_t>(cause);
  if (lock.wait.since == Instant()) lock.wait.since = lock.round.t0;
  lock.turn.in_a_row = 0;
  count_loss(lock);
  lock.wait.round_took = left(now, lock.round.t0);
  lock.wait.not_before = now;
  // A counter never goes back, so another try cannot win. Other masters may confirm a number that was not believed.
  const bool hopeless = cause == REDLOCK_E_FENCE_RANGE && !lock.fence.disbelieved;
  if (lock.options.wait_ms == 0 || now >= lock.wait.until || hopeless) {
    fail(lock, cause);
    return Action::drop;
  }
  Duration pause =
      pause_after(cause, lock.options.retry_delay_ms, lock.rounds - 1, rules_.sleep_max_ms, random_.next());
  // A pause that is longer than the rest of the budget is cut, for one more try. Where little of the budget is left
  // there is no such try: otherwise the tries would follow each other ever faster toward the end.
  const Duration budget = left(lock.wait.until, now);
  if (pause >= budget) {
    const bool worthwhile = budget > Duration::us(int64_t{lock.options.retry_delay_ms} * 125);
    pause = worthwhile ? lot(budget) : budget;
  }
  lock.state = State::waiting;
  lock.wake_at = now + pause;
  // A waiter that is repeatedly told 'free' and then refused is being misled (for example by a stopped server clock).
  // Fall back to the plain timer.
  if (now >= lock.wait.hasty_until) {
    lock.wait.hasty_until = now + plain_pause(lock);
    lock.wait.hasty = 0;
  }
  if (++lock.wait.hasty > hasty_max) lock.wait.not_before = lock.wake_at;
  return cause == REDLOCK_E_LOCKED ? Action::watch : Action::drop;
}

Action Machine::give_up(Lock& lock, Masters failed, Masters guarded, MasterIndex first, int error) const {
  const Action action = cancel(lock, lost_because(rules_.masters, failed.count(), guarded.count()));
  lock.round.granted = lock.round.refused = lock.round.unasked = {};
  lock.round.failed = failed;
  lock.round.guarded = guarded;
  lock.round.first_error = static_cast<int16_t>(error);
  lock.round.first_failed = static_cast<uint8_t>(first);
  return action;
}

Action Machine::wake(Lock& lock) const {
  if (lock.state != State::waiting || lock.wants != Wants::nothing) return Action::none;
  lock.wake_at = Instant::never();
  lock.wants = Wants::acquire;
  return Action::start;
}

// wake_at comes from the plain timer, and stays if no master tells of changes. Notifications of a master that failed do
// not count: a missing key does not explain why the master did not take the SET.
void Machine::watch(Lock& lock, Masters votes, Masters tracked, Instant now) {
  tracked -= lock.round.failed;
  if (tracked.empty()) return;
  const Duration half = Duration::us(int64_t{rules_.sleep_max_ms} * 500);
  lock.wait.net_at = now + half + lot(half);
  lock.forecast.wait(votes, tracked, lock.round.refused, lock.wake_at);
  plan_round(lock, true, now);
}

void Machine::look_sent(Lock& lock, MasterIndex m, Instant now) {
  lock.forecast.look_sent(m);
  plan_round(lock, false, now);
}

void Machine::look_away(Lock& lock, MasterIndex m, bool votes, Instant now) {
  lock.forecast.look_away(m, votes ? poll_at(lock, now) : Instant::never());
  plan_round(lock, false, now);
}

void Machine::looked(Lock& lock, MasterIndex m, int64_t ttl, Instant now) {
  lock.forecast.looked(m, ttl, now, poll_at(lock, now));
  plan_round(lock, false, now);
}

void Machine::changed(Lock& lock, MasterIndex m, Instant now) {
  if (!lock.forecast.changed(m, now)) lock.forecast.look_away(m, poll_at(lock, now));
  plan_round(lock, false, now);
}

void Machine::master_left(Lock& lock, MasterIndex m, Instant now) {
  lock.forecast.left(m);
  plan_round(lock, false, now);
}

void Machine::master_back(Lock& lock, MasterIndex m, bool tracked, Instant now) {
  lock.forecast.back(m, tracked, poll_at(lock, now));
  plan_round(lock, false, now);
}

// Whatever a master tells may bring the next round nearer or put it off. A message that changes nothing draws no new
// random pause: otherwise every message would give the waiter a new place among the others.
void Machine::plan_round(Lock& lock, bool anew, Instant now) {
  if (lock.state != State::waiting || !lock.forecast.waits() || lock.wants != Wants::nothing) return;
  const Instant at = lock.forecast.quorum_at();
  const bool as_before = at == lock.wait.planned_for || (at <= now && lock.wait.planned_for <= now);
  if (as_before && !anew) return;
  lock.wait.planned_for = at;
  const Duration window = race_window(lock.wait.round_took, lock.wait.collisions, lock.options.retry_delay_ms);
  lock.wake_at = earlier(lock.wait.net_at, later(at, later(now, lock.wait.not_before)) + lot(window));
}

Duration Machine::lot(Duration longest) { return part_of(longest, random_.next()); }

Duration Machine::plain_pause(const Lock& lock) const {
  const uint32_t retry_ms = lock.options.retry_delay_ms;
  return Duration::ms(retry_ms < rules_.sleep_max_ms ? retry_ms : rules_.sleep_max_ms);
}

Instant Machine::poll_at(const Lock& lock, Instant now) {
  return now + lot(plain_pause(lock));
}

Action Machine::queue(Lock& lock, Instant now) const {
  if (lock.wait.since == Instant()) lock.wait.since = now;
  lock.wants = Wants::nothing;
  lock.wake_at = lock.defer_until = Instant::never();
  lock.wait.last_cause = REDLOCK_E_LOCKED;
  return lock.options.wait_ms == 0 ? fail(lock, REDLOCK_E_LOCKED) : Action::none;
}

Action Machine::turn_came(Lock& lock, const Lock& before) const {
  if (lock.state != State::waiting || lock.wants != Wants::nothing) return Action::none;  // wants a round already
  const bool was_held = before.valid_until != Instant::never();
  lock.turn.in_a_row = static_cast<uint16_t>(was_held ? before.turn.in_a_row + 1 : before.turn.in_a_row);
  lock.turn.yields = lock.turn.in_a_row > rules_.local_turns;
  lock.wait.round_took = before.wait.round_took;
  return wake(lock);
}

// The pause is long enough for another client to hear of the release, to look, and to try.
Action Machine::yield(Lock& lock, Instant now) {
  lock.turn.yields = false;
  lock.turn.in_a_row = 0;
  lock.wants = Wants::nothing;
  lock.wait.not_before = now + race_window(lock.wait.round_took, 2, lock.options.retry_delay_ms);
  lock.wake_at = poll_at(lock, now);
  return Action::watch;
}

}  // namespace redlock
