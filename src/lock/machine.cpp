// SPDX-License-Identifier: MIT
#include "lock/machine.hpp"
#include <error_map.hpp>  // generated: the errors of redlock.h

namespace redlock {
namespace {

constexpr unsigned renew_share = 3;  // renewals start after a third of the ttl
constexpr unsigned hurried_max = 8;  // a server whose tracking table is full would push, and bring forward, for ever

void report(Lock& lock, int event, int err) {
  lock.tell.event = static_cast<uint8_t>(event);
  lock.tell.err = static_cast<int16_t>(err);
}

// The error when a wait budget is over: GUARD if it is the guard's. Else the last round's; TIMEOUT: none has ended.
int out_of_time(const Lock& lock) {
  if (lock.wait.for_guard) return REDLOCK_E_GUARD;
  return lock.wait.last_cause != 0 ? int{lock.wait.last_cause} : int{REDLOCK_E_TIMEOUT};
}

#define REDLOCK_IS_GUARDS(name, number, text) +is_guards(number)
static_assert((0 REDLOCK_ERROR_MAP(REDLOCK_IS_GUARDS) REDLOCK_TLS_ERROR_MAP(REDLOCK_IS_GUARDS)) == 11,
              "an error between the guard's would count as one");

void note_error(Round& round, MasterIndex m, int error) {
  if (telling(error) <= telling(round.told_error)) return;
  round.told_error = static_cast<int16_t>(error);
  round.told_master = static_cast<uint8_t>(m);
}

Duration third(uint32_t ttl_ms) { return Duration::ns(quotient(Duration::ms(ttl_ms).ns(), renew_share)); }

bool owner_knows(const Lock& lock) { return lock.tell.event != REDLOCK_EV_ACQUIRED; }
Action behind_round(const Lock& lock) { return lock.hold.gone.empty() ? Action::none : Action::put_back; }

}  // namespace

// ---- beginning ------------------------------------------------------------------------------------------------

void Machine::accept(Lock& lock, const Options& options) {
  REDLOCK_ASSERT(lock.state == State::free);
  lock.options = options;
  static_cast<Acquire&>(lock) = {};
  lock.state = State::waiting;
  lock.wants = Wants::acquire;
  lock.claim = no_claim;
  lock.valid_until = lock.wake_at = lock.defer_until = Instant::never();
  lock.wait.until = lock.hold.limit = Instant::never();
  lock.forecast.reset();
  lock.cell.begin(lock.generation);
  give_way(lock);
}

bool Machine::begin(Lock& lock, Masters asked, Instant t0) {
  REDLOCK_ASSERT(lock.wants != Wants::nothing);
  REDLOCK_ASSERT(!lock.round.open);
  uint32_t ttl_ms = lock.options.ttl_ms;
  if (lock.wants == Wants::extend) {
    REDLOCK_ASSERT(lock.state == State::held);
    ttl_ms = lock.hold.extend_ttl_ms;
    if (!lock.hold.probe) ttl_ms = ttl_within(t0, ttl_ms, rules_.drift, lock.hold.limit);
    if (ttl_ms < lock.hold.extend_ttl_ms && valid_until(t0, ttl_ms, rules_.drift) <= lock.valid_until) {
      lock.wants = Wants::nothing;
      lock.hold.limit = lock.valid_until;
      lock.defer_until = Instant::never();
      lock.wake_at = t0 + third(lock.hold.pace_ms);
      if (owner_knows(lock)) report(lock, REDLOCK_EV_AT_RISK, REDLOCK_E_HOLD_LIMIT);
      return false;
    }
  } else {
    REDLOCK_ASSERT(lock.state == State::waiting);
    lock.state = State::acquiring;
    lock.hold.owners = {};
    lock.hold.lacking = lock.hold.gone = Masters::all(rules_.masters) - asked;
    lock.forecast.round_begins();
    ++lock.rounds;
  }
  lock.wants = Wants::nothing;
  lock.hold.alarmed = false;
  lock.wake_at = lock.defer_until = Instant::never();
  if (++rounds_ == 0) ++rounds_;
  lock.round = {};
  lock.round.t0 = t0;
  lock.round.deadline = t0 + rules_.node_timeout;
  lock.round.ttl_ms = ttl_ms;
  lock.round.number = rounds_;
  lock.round.open = true;
  return true;
}

bool Machine::put_off(Lock& lock, const Instant& now) const {
  if (lock.defer_until == Instant::never()) lock.defer_until = now + rules_.node_timeout;
  return now < lock.defer_until;
}

void Machine::propose(Lock& lock, uint64_t proposal, bool may_floor) const {
  lock.fence = {};
  lock.fence.proposal = proposal;
  lock.fence.may_floor = may_floor || rules_.may_floor;
}

// ---- votes ----------------------------------------------------------------------------------------------------

Action Machine::vote_against(Lock& lock, MasterIndex m, Vote vote, int error, const Instant& now) {
  Round& round = lock.round;
  if (vote == Vote::refused) {
    round.refused.add(m);
  } else {
    round.failed.add(m);
    if (is_guards(error)) round.guarded.add(m);
    if (error == REDLOCK_E_FENCE_RANGE) lock.fence.disbelieved = true;
    note_error(round, m, error);
  }
  return decided(lock, now);
}

Action Machine::revoke(Lock& lock, MasterIndex m, int error, const Instant& now) {
  if (!lock.round.open || (lock.round.refused | lock.round.failed).has(m)) return Action::none;
  lock.round.granted.remove(m);
  lock.fence.counters.forget(m);
  return vote(lock, m, Vote::failed, error, now);
}

Action Machine::distrust(Lock& lock, Masters masters) const {
  if (lock.state != State::held) return Action::none;
  lock.hold.lacking |= masters;
  lock.hold.gone -= masters;
  const unsigned owners = (lock.hold.owners - masters).count();
  return owners < quorum_of(rules_.masters) ? lost_early(lock) : Action::none;
}

// Put a key back only where the master itself reported it missing, or got no SET. Otherwise the old copy may still be
// there, and our delete could remove the old copy while the new SET is still in flight.
Action Machine::on_key_missing(Lock& lock, MasterIndex m, bool gone) const {
  lock.hold.lacking.add(m);
  lock.hold.gone.remove(m);
  if (gone) lock.hold.gone.add(m);
  lock.hold.owners.remove(m);
  if (lock.state != State::held) return Action::none;
  const unsigned quorum = quorum_of(rules_.masters);
  if ((Masters::all(rules_.masters) - lock.hold.lacking).count() < quorum) return lost_early(lock);
  return lock.round.open ? Action::none : behind_round(lock);
}

uint32_t Machine::put_back_ttl(const Lock& lock, const Instant& now) const {
  if (lock.state != State::held) return 0;
  const uint32_t ttl_ms = ttl_within(now, lock.hold.pace_ms, rules_.drift, lock.valid_until);
  return ttl_ms != 0 && ttl_ms < lock.hold.pace_ms ? ttl_ms + 1 : ttl_ms;  // ttl_within() rounds down
}

// Ignore masters that are known to lack our key. One that votes again may have it all the same. If this master has
// answered the open round, the notification is newer than the answer. If not, the pending answer will tell us.
void Machine::on_key_changed(Lock& lock, MasterIndex m, bool votes_again, const Instant& now) const {
  const Round& round = lock.round;
  REDLOCK_ASSERT(lock.state == State::held);
  if ((votes_again ? lock.hold.gone : lock.hold.lacking).has(m) || lock.hold.alarmed) return;
  if (lock.hold.hurried == hurried_max || (round.open && !voted(round).has(m))) return;
  lock.hold.alarmed = true;
  ++lock.hold.hurried;
  if (!round.open && lock.wants == Wants::nothing) lock.wake_at = now;
}

void Machine::on_counter(Lock& lock, MasterIndex m, const Counter& counter) const {
  const Round& round = lock.round;
  if (!voted(round).has(m)) lock.fence.counters.hear(m, counter);
}

Action Machine::decided_fenced(Lock& lock, const Instant& now) {
  using What = TokenChoice::What;
  Round& round = lock.round;
  Fence& fence = lock.fence;
  const TokenChoice choice = choose_token(rules_.masters, round.granted.count(), round.refused.count(),
                                          round.failed.count(), fence.counters, fence.proposal, fence.may_floor);
  switch (choice.what) {
    case What::wait:
      return Action::none;
    case What::store:
    case What::floor:
      fence.floored = choice.what == What::floor;
      return store(lock, choice.token, now);
    case What::proposed:
      fence.token = choice.token;
      fence.told = fence.counters.acked;
      round.open = false;
      return won(lock, now);
    case What::lost:
    case What::unknown:
    case What::exhausted:
      break;
  }
  round.open = false;
  int cause = choice.what == What::unknown     ? REDLOCK_E_FENCE_UNKNOWN
              : choice.what == What::exhausted ? REDLOCK_E_FENCE_RANGE
                                               : why_lost(round);
  if (cause == REDLOCK_E_NO_QUORUM && fence.disbelieved) cause = REDLOCK_E_FENCE_RANGE;
  return lost(lock, cause, now);
}

// The second part of a fenced round. Only the masters that granted the names are asked. They have a whole node_timeout
// again.
Action Machine::store(Lock& lock, uint64_t token, const Instant& now) const {
  Round& round = lock.round;
  lock.fence.token = token;
  lock.fence.storing = true;
  round.unsent = round.granted;
  round.unasked = Masters::all(rules_.masters) - voted(round);
  round.granted = {};
  round.deadline = now + rules_.node_timeout;
  return Action::store;
}

Action Machine::decided(Lock& lock, const Instant& now) {
  if (lock.options.fenced && lock.state == State::acquiring && !lock.fence.storing) {
    return decided_fenced(lock, now);
  }
  const Round& round = lock.round;
  const unsigned against = (round.failed | round.unasked).count();
  switch (decide(rules_.masters, round.granted.count(), round.refused.count(), against)) {
    case Decision::pending:
      return Action::none;
    case Decision::won:
      lock.round.open = false;
      return lock.state == State::acquiring ? won(lock, now) : extended(lock);
    case Decision::lost:
      break;
  }
  lock.round.open = false;
  const int cause = why_lost(round);
  if (lock.state == State::acquiring) return lost(lock, cause, now);
  extend_lost(lock, cause == REDLOCK_E_LOCKED ? REDLOCK_E_GONE : cause, now);
  return behind_round(lock);
}

// An unasked master has not refused the token, so it counts like a failed one.
int Machine::why_lost(const Round& round) const {
  const unsigned without = (round.failed | round.unasked).count();
  return lost_because(rules_.masters, without, round.guarded.count());
}

Action Machine::won(Lock& lock, const Instant& now) {
  const Round& round = lock.round;
  const Instant until = valid_until(round.t0, round.ttl_ms, rules_.drift);
  if (until <= now || until < now + Duration::ms(lock.options.min_validity_ms)) {
    return lost(lock, REDLOCK_E_TOO_SLOW, now);
  }
  remember(lock, now);
  lock.state = State::held;
  lock.fence.storing = false;
  lock.valid_until = until;
  lock.wait.round_took = left(now, round.t0);
  lock.hold.since = now;
  if (lock.options.max_hold_ms != 0) lock.hold.limit = round.t0 + Duration::ms(lock.options.max_hold_ms);
  lock.cell.set_token(lock.fence.token);
  if (!lock.cell.publish(lock.generation, until)) return end(lock, REDLOCK_EV_FAILED, REDLOCK_E_LOST, Action::release);
  lock.hold.pace_ms = round.ttl_ms;
  plan_next(lock);
  report(lock, REDLOCK_EV_ACQUIRED, 0);
  return behind_round(lock);
}

// The old validity is not over here: on_time() comes first on every input, and would have ended the lock.
Action Machine::extended(Lock& lock) const {
  const Instant until = valid_until(lock.round.t0, lock.round.ttl_ms, rules_.drift);
  if (until > lock.valid_until || (lock.options.renew && !lock.hold.probe)) lock.hold.pace_ms = lock.round.ttl_ms;
  lock.valid_until = later(lock.valid_until, until);
  // A check on another thread may have found the old validity over just now. The lock must not be valid after that.
  if (!lock.cell.publish(lock.generation, lock.valid_until)) return lost_early(lock);
  plan_next(lock);
  if (!lock.hold.probe && owner_knows(lock)) report(lock, REDLOCK_EV_RENEWED, 0);
  return behind_round(lock);
}

void Machine::extend_lost(Lock& lock, int cause, const Instant& now) {
  plan_next(lock);
  // The pause is bounded by the ttl, so that there is another try even if node_timeout is as long as the ttl.
  const Duration share = third(lock.hold.pace_ms / 2);
  const Duration pause = rules_.node_timeout < share ? rules_.node_timeout : share;
  lock.wake_at = later(lock.wake_at, now + pause);
  if (lock.hold.probe) return;
  if (lock.options.renew) lock.wake_at = now + pause + lot(pause);
  if (owner_knows(lock)) report(lock, REDLOCK_EV_AT_RISK, cause);
}

void Machine::plan_next(Lock& lock) const {
  lock.round.unsent = {};
  lock.wake_at = lock.hold.alarmed ? lock.round.t0 : lock.round.t0 + third(lock.hold.pace_ms);
}

// ---- time -----------------------------------------------------------------------------------------------------

Action Machine::on_time(Lock& lock, const Instant& now, const Instant& heard) {
  switch (lock.state) {
    case State::free:
    case State::over:
      return Action::none;
    case State::waiting:
      if (now >= lock.wait.until) return fail(lock, out_of_time(lock));
      return now >= lock.wake_at ? due(lock, now) : Action::none;
    case State::acquiring:
      if (now >= lock.wait.until) {
        fail(lock, out_of_time(lock));
        return Action::drop;
      }
      break;
    case State::held:
      if (now >= lock.valid_until) {
        return end(lock, owner_knows(lock) ? REDLOCK_EV_LOST : REDLOCK_EV_FAILED, REDLOCK_E_LOST, Action::release);
      }
      if (lock.cell.expired(lock.generation)) return lost_early(lock);
      if (now >= lock.wake_at) {
        REDLOCK_ASSERT(!lock.round.open);  // wake_at is set when a round ends, and cleared when a round begins
        lock.wake_at = Instant::never();
        if (lock.wants != Wants::nothing) return Action::none;  // the owner's own extend waits already
        if (!lock.hold.alarmed) lock.hold.hurried = 0;
        lock.wants = Wants::extend;
        lock.hold.probe = !renews(lock);
        lock.hold.extend_ttl_ms = lock.hold.probe ? 1 : lock.options.ttl_ms;
        return Action::start;
      }
      break;
  }
  if (!lock.round.open || heard < lock.round.deadline) return Action::none;
  Round& round = lock.round;
  const Masters silent = Masters::all(rules_.masters) - voted(round);
  round.failed |= silent;
  for (MasterIndex m : silent) note_error(round, m, REDLOCK_E_NODE_TIMEOUT);
  return decided(lock, now);
}

Instant Machine::deadline(const Lock& lock) {
  switch (lock.state) {
    case State::free:
    case State::over:
      return Instant::never();
    case State::waiting:
      return earlier(lock.wait.until, earlier(lock.wake_at, lock.defer_until));
    case State::acquiring:
      return earlier(lock.wait.until, lock.round.deadline);
    case State::held:
      break;
  }
  const Instant next = earlier(lock.valid_until, earlier(lock.wake_at, lock.defer_until));
  return lock.round.open ? earlier(next, lock.round.deadline) : next;
}

// ---- the owner's wishes, and the clock ------------------------------------------------------------------------

int Machine::extend(Lock& lock, uint32_t ttl_ms) const {
  if (lock.cell.expired(lock.generation)) return REDLOCK_E_LOST;  // over, or a check has just found so
  if (lock.state != State::held) return REDLOCK_E_NOT_HELD;
  if (!lock.hold.probe && (lock.round.open || lock.wants != Wants::nothing)) return REDLOCK_E_BUSY;
  if (lock.valid_until >= lock.hold.limit) return REDLOCK_E_HOLD_LIMIT;
  lock.round.open = lock.hold.probe = false;
  lock.wants = Wants::extend;
  lock.hold.extend_ttl_ms = ttl_ms;
  return 0;
}

Action Machine::cancel(Lock& lock, int err) const {
  const Action action = lock.state == State::acquiring ? Action::drop
                        : lock.state == State::held    ? Action::release
                                                       : Action::none;
  fail(lock, err);
  return action;
}

Action Machine::release(Lock& lock) const {
  if (lock.state != State::held) return cancel(lock, REDLOCK_E_CANCELED);
  if (!owner_knows(lock)) return end(lock, REDLOCK_EV_FAILED, REDLOCK_E_CANCELED, Action::release);
  return end(lock, REDLOCK_EV_RELEASED, 0, Action::release);
}

Action Machine::jumped(Lock& lock, const Instant& now) const {
  if (lock.state == State::held) return lost_early(lock);
  if (lock.state != State::acquiring) return Action::none;
  lock.round.open = false;
  lock.state = State::waiting;
  lock.wake_at = now;
  return Action::drop;
}

// The owner did not ask for this end, and the published validity is not over. The owner may rely on a check until then,
// so the keys stay until then: deleted earlier, they would let another client in.
Action Machine::lost_early(Lock& lock) const {
  return end(lock, owner_knows(lock) ? REDLOCK_EV_LOST : REDLOCK_EV_FAILED, REDLOCK_E_LOST, Action::linger);
}

Action Machine::fail(Lock& lock, int err) const { return end(lock, REDLOCK_EV_FAILED, err, Action::none); }

Action Machine::end(Lock& lock, int event, int err, Action action) const {
  lock.state = State::over;
  lock.round.open = false;
  lock.wants = Wants::nothing;
  lock.cell.mark_expired(lock.generation);
  report(lock, event, err);
  return action;
}

}  // namespace redlock
