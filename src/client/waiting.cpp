// SPDX-License-Identifier: MIT
//
// Waiting: which masters a waiter looks at, and what the masters tell the waiter. The machine decides what follows.
#include "client/client.hpp"

namespace redlock {

// m votes again. A waiter that found too few masters tries at once. A waiter that watches looks at m, too.
void Client::wake_waiters(MasterIndex m, const Instant& now) {
  alarm_all(m, now);
  for (unsigned i = 0; i < table_.capacity(); ++i) {
    Lock& lock = table_[i];
    if (lock.state != State::waiting || !queue_.is_first(lock)) continue;
    if (lock.wait.last_cause != REDLOCK_E_LOCKED) {
      perform(lock, machine_.wake(lock), now);
    } else {
      machine_.master_back(lock, m, sessions_[m].tracked(), now);
      plan(lock);
      if (!lock.forecast.look().empty()) looks_ = true;
    }
  }
  again_ = true;
}

void Client::watch(Lock& lock, const Instant& now) {
  if (!settings_.wakeups) return;
  Masters votes, tracked;
  for (MasterIndex m = 0; m < settings_.masters; ++m) {
    if (!sessions_[m].votes()) continue;
    votes.add(m);
    if (sessions_[m].tracked()) tracked.add(m);
  }
  machine_.watch(lock, votes, tracked, now);
  watched_ = true;
  if (!lock.forecast.look().empty()) looks_ = again_ = true;
}

// Looks go out behind the deletes of the same turn. Otherwise a look could find a value of our own lost round.
void Client::send_looks(const Instant& now) {
  looks_ = false;
  for (unsigned i = 0; i < table_.capacity(); ++i) {
    Lock& lock = table_[i];
    if (lock.state != State::waiting || lock.forecast.look().empty()) continue;
    for (MasterIndex m : lock.forecast.look()) {
      const bool votes = sessions_[m].votes();
      if (!votes || !sessions_[m].tracked()) {
        machine_.look_away(lock, m, votes, now);
      } else if (!look(lock, m, false, now)) {
        looks_ = true;
      }
    }
    plan(lock);
  }
  if (holder_.wanted) ask_holder(now);
}

// Leaves room for deletes and rounds; looks are optional. holder: asks for the name of the holder instead.
bool Client::look(Lock& lock, MasterIndex m, bool holder, const Instant& now) {
  Session& session = sessions_[m];
  const Command read = holder ? Command::holder(session.space(), settings_.key_prefix, lock.names)
                              : Command::look(session.space(), settings_.key_prefix, lock.names);
  if (!session.room(read, claims_.reserved(m) + 2 + Command::look_requests)) return false;
  session.look(table_.index(lock), static_cast<uint32_t>(lock.generation), read, holder, now);
  if (!holder) machine_.look_sent(lock, m, now);
  plan(session);
  return true;
}

void Client::changed(MasterIndex m, Bytes resource, const Instant& now) {
  watched_ = false;
  for (unsigned i = 0; i < table_.capacity(); ++i) {
    Lock& lock = table_[i];
    const bool held = lock.state == State::held;
    if (!held && lock.state != State::waiting && lock.state != State::acquiring) continue;
    watched_ = watched_ || (!held && (lock.rounds > 0 || lock.forecast.waits()));
    if (!lock.names.has(resource)) continue;
    if (held) {
      alarm(lock, m, now);
    } else {
      change(lock, m, now);
    }
  }
}

void Client::change(Lock& lock, MasterIndex m, const Instant& now) {
  if (lock.state != State::waiting && lock.state != State::acquiring) return;
  machine_.changed(lock, m, now);
  plan(lock);
  if (!lock.forecast.look().empty()) looks_ = again_ = true;
}

}  // namespace redlock
