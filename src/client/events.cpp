// SPDX-License-Identifier: MIT
//
// Events: what the owner is told, and when. The step that causes an event notes the event in the lock's slot. Events
// are delivered at the end of a turn, and LOST comes before all others. A slot holds one event at a time, so the next
// round of the lock waits until the event is taken. WAITING takes no such place, and comes after all others
// (client/causes.cpp).
#include "client/client.hpp"

namespace redlock {
namespace {

using Counter = uint64_t redlock_status_t::*;

// The counter of the status that counts this event of a lock. of_type is in the order of redlock_event_type.
Counter counter_of(const Telling& tell) {
  static_assert(REDLOCK_EV_ACQUIRED == 1 && REDLOCK_EV_FAILED == 2 && REDLOCK_EV_RENEWED == 3);
  static_assert(REDLOCK_EV_AT_RISK == 4 && REDLOCK_EV_LOST == 5 && REDLOCK_EV_RELEASED == 6);
  static constexpr Counter of_type[REDLOCK_EV_RELEASED] = {
      &redlock_status_t::acquired,     &redlock_status_t::failed_other, &redlock_status_t::renewed,
      &redlock_status_t::renew_failed, &redlock_status_t::lost,         &redlock_status_t::released};
  if (tell.event == REDLOCK_EV_FAILED && tell.err == REDLOCK_E_LOCKED) return &redlock_status_t::failed_locked;
  if (tell.event == REDLOCK_EV_FAILED && tell.err == REDLOCK_E_NO_QUORUM) return &redlock_status_t::failed_no_quorum;
  return of_type[tell.event - REDLOCK_EV_ACQUIRED];
}

}  // namespace

void Client::queue_event(Lock& lock) {
  if (lock.wait.untold) forget_waiting(lock);
  if (lock.tell.event == REDLOCK_EV_FAILED) lock.tell.cause = static_cast<uint8_t>(cause_of(lock));
  const uint16_t slot = table_.index(lock);
  if (!lock.told.queued) ++events_;
  if (lock.tell.event == REDLOCK_EV_LOST) {
    told_.push_front(&table_[0], slot);
  } else {
    told_.push(&table_[0], slot);
  }
}

bool Client::called() {
  if (!called_) return false;
  called_ = false;
  for (MasterIndex m = 0; m < settings_.masters; ++m) {
    if (sessions_[m].changed() || sessions_[m].wish() != Session::Wish::none) called_ = true;
  }
  return called_;
}

unsigned Client::events() const {
  unsigned n = events_;
  if (!called_) return n;
  for (MasterIndex m = 0; m < settings_.masters; ++m) n += sessions_[m].changed() ? 1u : 0u;
  return n;
}

bool Client::next_event(Event& out, const Instant& now) {
  out = {};
  out.event.size = sizeof out.event;
  if (told_.empty()) {
    if (take_master(out, now)) return true;
    if (events_ == 0) return false;  // else WAITING is due, and nothing else
  }
  take_event(out, now);
  return true;
}

bool Client::take_master(Event& out, const Instant& now) {
  out.slot = no_slot;
  for (MasterIndex m = 0; m < settings_.masters; ++m) {
    if (!sessions_[m].take_changed()) continue;
    out.event.type = REDLOCK_EV_MASTER;
    out.event.master = m;
    out.event.state = shown_state(m);
    out.event.err = sessions_[m].reason();
    out.event.guard_ms = guard_ms_of(m, now);
    return true;
  }
  return false;
}

inline Lock& Client::take_told(Telling& tell) {
  Lock& lock = table_[told_.first()];
  told_.remove(&table_[0], told_.first());
  REDLOCK_ASSERT(events_ > 0 && lock.tell.event != 0);
  --events_;
  tell = machine_.take_event(lock);
  ++(counters_.*counter_of(tell));
  return lock;
}

void Client::take_event(Event& out, const Instant& now) {
  Telling tell;
  const Lock& lock = told_.empty() ? take_waiting(tell, out, now) : take_told(tell);
  out.slot = table_.index(lock);
  out.callback = lock.callback;
  out.user = lock.user;
  out.event.type = tell.event;
  out.event.err = tell.err;
  out.event.cause = tell.cause;
  out.event.master_err = lock.round.first_error;
  out.event.lock.id = table_.handle(lock);
  out.event.validity_ms = lock.state == State::held ? remaining_ms(lock.valid_until, now) : 0;
  out.event.granted = lock.round.granted.count();
  out.event.refused = lock.round.refused.count();
  out.event.failed = lock.round.failed.count();
  out.event.rounds = lock.rounds;
  if (tell.err == REDLOCK_E_GUARD) out.event.guard_ms = guard_ms(now);
  if (lock.state == State::held) tell_token(lock, out.event);
}

void Client::delivered(const Event& event) {
  if (event.slot == no_slot) return;
  Lock& lock = table_[event.slot];
  if (lock.state == State::over && lock.tell.event == 0) table_.give_back(lock);
}

}  // namespace redlock
