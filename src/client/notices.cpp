// SPDX-License-Identifier: MIT
#include "client/notices.hpp"

#include "lock/validity.hpp"

namespace redlock {
namespace {

constexpr Duration tell_again = Duration::ms(5'000);  // WAITING is repeated so often

using Counter = uint64_t redlock_status_t::*;

// The counter of the status that counts this event of a lock. of_type is in the order of redlock_event_type.
Counter counter_of(const Telling& tell) {
  static_assert(REDLOCK_EV_ACQUIRED == 1 && REDLOCK_EV_FAILED == 2 && REDLOCK_EV_RENEWED == 3);
  static_assert(REDLOCK_EV_AT_RISK == 4 && REDLOCK_EV_LOST == 5 && REDLOCK_EV_RELEASED == 6);
  static constexpr Counter of_type[REDLOCK_EV_RELEASED] = {&redlock_status_t::acquired, &redlock_status_t::failed_other,
                                                           &redlock_status_t::renewed,  &redlock_status_t::renew_failed,
                                                           &redlock_status_t::lost,     &redlock_status_t::released};
  if (tell.event == REDLOCK_EV_FAILED && tell.err == REDLOCK_E_LOCKED) return &redlock_status_t::failed_locked;
  if (tell.event == REDLOCK_EV_FAILED && tell.err == REDLOCK_E_NO_QUORUM) return &redlock_status_t::failed_no_quorum;
  return of_type[tell.event - REDLOCK_EV_ACQUIRED];
}

void add(redlock_times_t& times, Duration took) {
  const uint64_t ms = static_cast<uint64_t>(quotient(took.ns(), 1'000'000));
  ++times.count;
  times.sum_ms += ms;
  if (times.max_ms < ms) times.max_ms = ms;
  uint32_t* bucket = times.buckets;
  for (uint32_t most = 10; ms > most && bucket != times.buckets + 7; most *= 10) ++bucket;
  ++*bucket;
}

}  // namespace

// ---- events -----------------------------------------------------------------------------------------------------

void Notices::queue(Lock& lock) {
  REDLOCK_ASSERT(lock.tell.event != 0);
  if (lock.wait.untold) forget_waiting(lock);
  if (lock.tell.event == REDLOCK_EV_FAILED) lock.tell.cause = static_cast<uint8_t>(cause_of(lock));
  const uint16_t slot = table_.index(lock);
  if (!lock.told.queued) ++of_locks_;
  if (lock.tell.event == REDLOCK_EV_LOST) {
    told_.push_front(&table_[0], slot);
  } else {
    told_.push(&table_[0], slot);
  }
}

unsigned Notices::count() const {
  unsigned n = of_locks_;
  if (!post_.for_port) return n;
  for (MasterIndex m = 0; m < settings_.masters; ++m) n += post_[m].untold() ? 1u : 0u;
  return n;
}

bool Notices::take_master(Event& out, const Instant& now) {
  out.slot = no_slot;
  for (MasterIndex m = 0; m < settings_.masters; ++m) {
    if (!post_[m].take_untold()) continue;
    out.event.type = REDLOCK_EV_MASTER;
    out.event.master = m;
    out.event.state = shown_state(m);
    out.event.err = post_[m].reason();
    out.event.guard_ms = guard_ms_of(m, now);
    return true;
  }
  return false;
}

inline Lock& Notices::take_told(Telling& tell, const Instant& now) {
  Lock& lock = table_[told_.first()];
  told_.remove(&table_[0], told_.first());
  REDLOCK_ASSERT(of_locks_ > 0);
  REDLOCK_ASSERT(lock.tell.event != 0);
  --of_locks_;
  tell = Machine::take_event(lock);
  ++(counters.*counter_of(tell));
  const int event = tell.event;
  if (event != REDLOCK_EV_RENEWED && event != REDLOCK_EV_AT_RISK) {
    add(event < REDLOCK_EV_RENEWED ? counters.wait : counters.hold, waited(lock, now));
  }
  return lock;
}

bool Notices::next(Event& out, const Instant& now) {
  out = {};
  out.event.size = sizeof out.event;
  if (told_.empty()) {
    if (take_master(out, now)) return true;
    if (of_locks_ == 0) return false;  // else WAITING is due, and nothing else
  }
  Telling tell;
  const Lock& lock = told_.empty() ? take_waiting(tell, now) : take_told(tell, now);
  out.slot = table_.index(lock);
  out.callback = lock.callback;
  out.user = lock.user;
  out.event.type = tell.event;
  out.event.err = tell.err;
  out.event.cause = tell.cause;
  out.event.master_err = lock.round.told_error;
  out.event.lock.id = table_.handle(lock);
  // A lock is LOST because of its keys by what several rounds and pushes have told.
  const Masters owners = Masters::all(settings_.masters) - lock.hold.lacking;
  const bool by_keys = tell.event == REDLOCK_EV_LOST && owners.count() < quorum_of(settings_.masters);
  const Masters without = by_keys ? lock.hold.lacking : lock.round.refused;
  out.event.granted = (lock.round.granted - without).count();
  out.event.refused = without.count();
  out.event.failed = (lock.round.failed - without).count();
  out.event.rounds = lock.rounds;
  const bool waits_for_guard = tell.event == REDLOCK_EV_WAITING && tell.cause == REDLOCK_CAUSE_GUARD;
  if (waits_for_guard || tell.err == REDLOCK_E_GUARD) out.event.guard_ms = guard_ms(now);
  if (lock.state != State::held) return true;
  out.event.validity_ms = remaining_ms(lock.valid_until, now);
  out.event.token = lock.fence.token;
  if (lock.fence.floored) out.event.flags = REDLOCK_EV_F_FLOORED;
  return true;
}

void Notices::delivered(const Event& event, const Instant& now) {
  if (event.slot == no_slot) return;
  Lock& lock = table_[event.slot];
  REDLOCK_ASSERT(lock.state != State::free);
  if (event.event.type == REDLOCK_EV_ACQUIRED) lock.wait.since = now;
  if (lock.state == State::over && lock.tell.event == 0) table_.give_back(lock);
}

Notices::Detail Notices::detail(const Event& given, const Instant& now) const {
  const Lock& lock = table_[given.slot];
  const redlock_event_t& event = given.event;
  Detail out = {settings_.masters, nullptr, REDLOCK_GUARD_UNKNOWN};
  if (event.master_err != 0) out.master = lock.round.told_master;
  if (event.cause == REDLOCK_CAUSE_GUARD || event.err == REDLOCK_E_GUARD) out.to_go_ms = event.guard_ms;
  if (event.cause != REDLOCK_CAUSE_HELD && event.err != REDLOCK_E_LOCKED) return out;
  if (holder_.lock == event.lock.id) out.holder = &holder_;
  // What is farther away than the longest pause of the plain timer was told by masters.
  const Instant until = lock.forecast.waits() ? lock.forecast.quorum_at() : now;
  const Duration away = left(until, now);
  const bool told = until != Instant::never() && away > Duration::ms(lock.options.retry_delay_ms);
  if (told) out.to_go_ms = remaining_ms(until, now);
  return out;
}

// ---- WAITING ------------------------------------------------------------------------------------------------------

// The cause of an acquire that waits, or has just failed. NONE: its first round or look is open.
int Notices::cause_of(const Lock& lock) const {
  if (lock.tell.err == REDLOCK_E_LOCKED) return REDLOCK_CAUSE_HELD;
  if (cause != REDLOCK_CAUSE_HELD && cause != REDLOCK_CAUSE_NONE) return cause;
  switch (lock.wait.last_cause) {
    case REDLOCK_E_LOCKED:
      return REDLOCK_CAUSE_HELD;
    case REDLOCK_E_GUARD:
      return REDLOCK_CAUSE_GUARD;
    case REDLOCK_E_NO_QUORUM:
      return REDLOCK_CAUSE_TOO_FEW;
    default:
      return cause == REDLOCK_CAUSE_HELD ? REDLOCK_CAUSE_NONE : REDLOCK_CAUSE_TOO_FEW;
  }
}

void Notices::note_wait(Lock& lock, bool again) {
  if (!lock.options.tell_waiting || !is_pending(lock) || cause == REDLOCK_CAUSE_NONE) return;
  const int why = cause_of(lock);
  if (why == REDLOCK_CAUSE_NONE || (why == lock.wait.told_cause && !again)) return;
  if (why == REDLOCK_CAUSE_NEVER) return;  // an acquire that has just come: it fails in this turn
  lock.wait.told_cause = static_cast<uint8_t>(why);
  if (!lock.wait.untold) ++of_locks_;
  lock.wait.untold = true;
}

Instant Notices::on_time(const Instant& now) {
  if (now >= tell_at_) {
    tell_at_ = Instant::never();
    for (unsigned i = 0; i < table_.capacity(); ++i) note_wait(table_[i], true);
  }
  return due();
}

Lock& Notices::take_waiting(Telling& tell, const Instant& now) {
  uint16_t slot = 0;
  while (!table_[slot].wait.untold) ++slot;
  Lock& lock = table_[slot];
  forget_waiting(lock);
  tell.event = REDLOCK_EV_WAITING;
  tell.cause = lock.wait.told_cause;
  bring_forward(tell_at_, now + tell_again);
  return lock;
}

// ---- the holder ---------------------------------------------------------------------------------------------------

bool Notices::want_holder(const Lock& lock, const Instant& now) {
  const bool over = lock.state == State::over;
  if (lock.wait.last_cause != REDLOCK_E_LOCKED || lock.round.refused.empty()) return false;
  if (over && lock.options.wait_ms != REDLOCK_TRY_ONCE) return false;
  const uint64_t handle = table_.handle(lock);
  if (holder_.lock != handle) {
    Lock* other;
    if (table_.find(holder_.lock, other) == Table::Found::present && other->state != State::held) return false;
    holder_ = {};
    holder_.lock = handle;
  }
  holder_.wanted = true;
  if (over) holder_.until = now + settings_.node_timeout;
  return true;
}

Lock* Notices::take_question() {
  if (!holder_.wanted) return nullptr;
  holder_.wanted = false;
  Lock& lock = table_[place_of_holder()];
  return lock.round.refused.empty() ? nullptr : &lock;
}

void Notices::refused_late(MasterIndex m, uint32_t round) {
  Lock* lock;
  if (table_.find(holder_.lock, lock) != Table::Found::present || lock->round.number != round) return;
  Machine::refused_late(*lock, m);
}

bool Notices::hear_holder(const Reply& reply) {
  Lock* lock;
  if (static_cast<uint32_t>(holder_.lock >> 16) != reply.round || place_of_holder() != reply.claim) return false;
  if (table_.find(holder_.lock, lock) != Table::Found::present) return false;
  const bool known = holder_.foreign || holder_.size != 0;
  holder_.foreign = reply.meaning.answer == Answer::no;
  holder_.size = static_cast<uint8_t>(reply.key.size);
  if (holder_.size != 0) memcpy(holder_.name, reply.key.data, holder_.size);
  // Told once: a later round that is lost to the same holder is no news.
  if (!known && (holder_.foreign || holder_.size != 0)) note_wait(*lock, true);
  return true;
}

Lock* Notices::take_kept_back() {
  if (holder_.until == Instant::never()) return nullptr;
  holder_.until = Instant::never();
  return &table_[place_of_holder()];
}

}  // namespace redlock
