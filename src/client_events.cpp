// SPDX-License-Identifier: MIT
//
// What the user is told, and when: an outcome is noted in the lock's slot at the step that brings it and delivered
// last of all, LOST before anything else. A slot holds one outcome at a time; the next round waits until it is taken.
#include "client.hpp"

namespace redlock {

void Client::tell(Lock& lock) {
  if (lock.event == 0 || lock.urgent) return;
  const uint16_t slot = table_.index(lock);
  if (!lock.told.queued) ++events_;
  if (lock.event == REDLOCK_EV_LOST) {
    told_.remove(&table_[0], slot);
    lost_.push(&table_[0], slot);
    lock.urgent = true;
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

bool Client::next_event(Event& out, Instant now) {
  if (!lost_.empty()) return take_event(lost_, out, now);
  if (!told_.empty()) return take_event(told_, out, now);
  for (MasterIndex m = 0; m < settings_.masters; ++m) {
    if (!sessions_[m].take_changed()) continue;
    out = {};
    out.event.size = sizeof out.event;
    out.slot = no_slot;
    out.event.type = REDLOCK_EV_MASTER;
    out.event.master = m;
    out.event.state = shown_state(m);
    out.event.err = sessions_[m].reason();
    out.event.guard_ms = guard_ms_of(m, now);
    return true;
  }
  return false;
}

bool Client::take_event(Queue<Lock, &Lock::told>& from, Event& out, Instant now) {
  const uint16_t slot = from.first();
  Lock& lock = table_[slot];
  from.remove(&table_[0], slot);
  --events_;
  out = {};
  out.event.size = sizeof out.event;
  out.slot = slot;
  out.callback = lock.callback;
  out.user = lock.user;
  out.event.type = lock.event;
  out.event.err = lock.event_err;
  out.event.master_err = lock.round.first_error;
  out.event.lock.id = table_.handle(lock);
  out.event.validity_ms = lock.state == State::held ? remaining_ms(lock.valid_until, now) : 0;
  out.event.granted = count(lock.round.granted);
  out.event.refused = count(lock.round.refused);
  out.event.failed = count(lock.round.failed);
  out.event.rounds = lock.rounds;
  if (lock.event_err == REDLOCK_E_GUARD) out.event.guard_ms = guard_ms(now);
  if (lock.state == State::held) tell_token(lock, out.event);
  lock.event = 0;
  count_event(out.event);
  return true;
}

void Client::delivered(const Event& event) {
  if (event.slot == no_slot) return;
  Lock& lock = table_[event.slot];
  if (lock.state == State::over && lock.event == 0) table_.give_back(lock);
}

void Client::count_event(const redlock_event_t& event) {
  switch (event.type) {
    case REDLOCK_EV_ACQUIRED:
      ++counters_.acquired;
      break;
    case REDLOCK_EV_FAILED:
      if (event.err == REDLOCK_E_LOCKED) {
        ++counters_.failed_locked;
      } else if (event.err == REDLOCK_E_NO_QUORUM) {
        ++counters_.failed_no_quorum;
      } else {
        ++counters_.failed_other;
      }
      break;
    case REDLOCK_EV_RENEWED:
      ++counters_.renewed;
      break;
    case REDLOCK_EV_AT_RISK:
      ++counters_.renew_failed;
      break;
    case REDLOCK_EV_LOST:
      ++counters_.lost;
      break;
    case REDLOCK_EV_RELEASED:
      ++counters_.released;
      break;
    default:
      break;
  }
}

}  // namespace redlock
