// SPDX-License-Identifier: MIT
//
// Waiting: which masters a waiter looks at, and what the masters tell the waiter. The machine decides what follows.
#include "client/client.hpp"

namespace redlock {

// ---- what every acquire waits for -------------------------------------------------------------------------------

// A master's state has changed, or an acquire was asked for while no quorum votes.
void Client::judge_waits(const Instant& now) {
  const int before = notices_.cause;
  const Masters voting = post_.voting();
  Guard::Outlook outlooks[REDLOCK_MASTERS_MAX];
  for (MasterIndex m = 0; m < settings_.masters; ++m) outlooks[m] = post_[m].outlook();
  // A master that was never tried may vote at once, or may be the one that can tell why the others never will.
  const int cause = post_.introduced() ? fleet_.cause(voting, outlooks, before) : REDLOCK_CAUSE_NONE;
  notices_.cause = cause;
  if (cause == REDLOCK_CAUSE_NEVER) return give_up(fleet_.never(voting, outlooks), now);
  if (cause == before) return;
  for (unsigned i = 0; i < table_.capacity(); ++i) {
    Lock& lock = table_[i];
    if (!is_pending(lock)) continue;
    machine_.charge(lock, cause == REDLOCK_CAUSE_GUARD, now);
    plan(lock);
    notices_.note_wait(lock, false);
  }
}

// Masters that can never vote as things stand leave no quorum of others.
void Client::give_up(Masters never, const Instant& now) {
  Masters guarded;
  for (MasterIndex m = 0; m < settings_.masters; ++m) {
    if (post_[m].guarded() && is_guards(post_[m].reason())) guarded.add(m);
  }
  // A master that tells of a finished change says more than one that bears another configuration's record.
  MasterIndex first = *never.begin();
  for (MasterIndex m : never) {
    if (post_[m].reason() == REDLOCK_E_LEFT) first = m;
  }
  const int error = post_[first].reason();
  const Masters failed = Masters::all(settings_.masters) - post_.voting();
  for (unsigned i = 0; i < table_.capacity(); ++i) {
    Lock& lock = table_[i];
    if (is_pending(lock)) perform(lock, machine_.give_up(lock, failed, guarded, first, error), now);
  }
}

// ---- behind another lock of this client -------------------------------------------------------------------------

// What an urgent acquire has to wait for in this client hurries in its place.
void Client::hurry_before(const Lock& urgent) {
  for (unsigned i = 0; i < table_.capacity(); ++i) {
    Lock& lock = table_[i];
    if (!is_pending(lock) || lock.line.urgent || !queue_.is_first(lock)) continue;
    bool shares = false;
    for (Bytes name : urgent.names) shares = shares || lock.names.has(name);
    if (!shares) continue;
    machine_.hurry(lock, now_);
    plan(lock);
  }
}

// The lock is over, so the next locks that want its resources may begin.
void Client::hand_on(Lock& lock, const Instant& now) {
  uint16_t first[Names::max];
  const unsigned n = queue_.leave(lock, first);
  for (unsigned i = 0; i < n; ++i) carry_out(table_[first[i]], machine_.came_first(table_[first[i]], lock), now);
}

// ---- looks ------------------------------------------------------------------------------------------------------

// Behind each input that may have changed who votes: news of one master may change it for another.
void Client::note_votes(const Instant& now) {
  const Masters voting = post_.voting(), again = voting - voting_;
  for (MasterIndex m : voting_ - voting) {
    for (unsigned i = 0; i < table_.capacity(); ++i) {
      if (machine_.master_mute(table_[i], m, now)) plan(table_[i]);
    }
  }
  voting_ = voting;
  for (MasterIndex m : again) votes_again(m, now);
}

// m votes again, or for the first time, and gets the keys that it lacks. A waiter that found too few masters tries at
// once. A waiter that looks at masters looks at m, too.
void Client::votes_again(MasterIndex m, const Instant& now) {
  alarm_all(m, true, now);
  puts_back_.add(m);
  for (unsigned i = 0; i < table_.capacity(); ++i) {
    Lock& lock = table_[i];
    if (lock.state != State::waiting || !queue_.is_first(lock)) continue;
    if (lock.wait.last_cause != REDLOCK_E_LOCKED) {
      perform(lock, machine_.wake(lock), now);
    } else {
      machine_.master_back(lock, m, post_[m].tracked(), now);
      plan(lock);
      if (!lock.forecast.look().empty()) looks_ = true;
    }
  }
  want_turn();
}

void Client::begin_looking(Lock& lock, const Instant& now) {
  if (!settings_.wakeups) return;
  Masters votes, tracked;
  for (MasterIndex m = 0; m < settings_.masters; ++m) {
    if (!post_[m].votes()) continue;
    votes.add(m);
    if (post_[m].tracked()) tracked.add(m);
  }
  machine_.begin_looking(lock, votes, tracked, now);
  waiters_look_ = true;
  if (!lock.forecast.look().empty()) want_looks();
}

// Looks go out behind the deletes of the same turn. Otherwise a look could find a value of our own lost round.
void Client::send_looks(const Instant& now) {
  looks_ = false;
  for (unsigned i = 0; i < table_.capacity(); ++i) {
    Lock& lock = table_[i];
    if (lock.state != State::waiting || lock.forecast.look().empty()) continue;
    for (MasterIndex m : lock.forecast.look()) {
      const bool votes = post_[m].votes();
      if (!votes || !post_[m].tracked()) {
        machine_.look_away(lock, m, votes, now);
      } else if (!look(lock, m, false, now)) {
        looks_ = true;
      }
    }
    plan(lock);
  }
  const Lock* const asks = notices_.take_question();
  if (asks == nullptr) return;
  const MasterIndex m = *asks->round.refused.begin();
  if (!post_[m].votes() || !look(table_[asks->slot], m, true, now)) tell_kept_back();
}

// holder: asks for the name of the holder instead.
bool Client::look(Lock& lock, MasterIndex m, bool holder, const Instant& now) {
  if (!post_.look(lock, m, holder, now)) return false;
  if (!holder) machine_.look_sent(lock, m, now);
  plan(post_[m]);
  return true;
}

// True: the lock's FAILED waits for the answer.
bool Client::want_holder(const Lock& lock, const Instant& now) {
  if (!notices_.want_holder(lock, now)) return false;
  want_looks();
  soon(notices_.due());
  return lock.state == State::over;
}

void Client::tell_kept_back() {
  Lock* const lock = notices_.take_kept_back();
  if (lock == nullptr) return;
  carry_out(*lock, Action::none, now_);
  want_turn();
}

// ---- pushes -----------------------------------------------------------------------------------------------------

void Client::key_changed(MasterIndex m, Bytes resource, const Instant& now) {
  waiters_look_ = false;
  for (unsigned i = 0; i < table_.capacity(); ++i) {
    Lock& lock = table_[i];
    const bool held = lock.state == State::held;
    if (!held && lock.state != State::waiting && lock.state != State::acquiring) continue;
    waiters_look_ = waiters_look_ || (!held && (lock.rounds > 0 || lock.forecast.waits()));
    if (!lock.names.has(resource)) continue;
    if (held) {
      alarm(lock, m, false, now);
    } else {
      alarm_waiter(lock, m, now);
    }
  }
}

void Client::alarm_waiter(Lock& lock, MasterIndex m, const Instant& now) {
  if (lock.state != State::waiting && lock.state != State::acquiring) return;
  machine_.changed(lock, m, now);
  plan(lock);
  if (!lock.forecast.look().empty()) want_looks();
}

}  // namespace redlock
