// SPDX-License-Identifier: MIT
//
// The inputs of a client, except for replies: time, random bytes, connections that open and close, the next turn.
#include "client/client.hpp"

namespace redlock {

void Client::run_due(const Instant& now) {
  deadline_ = Instant::never();
  for (unsigned page = 0; page < due_pages_.pages(); ++page) {
    if (now >= due_pages_.due(page)) run_locks(page, now);
    soon(due_pages_.due(page));
  }
  const Masters votes = voting();
  for (MasterIndex m = 0; m < settings_.masters; ++m) soon(sessions_[m].on_time(now));
  take_news(now);
  for (MasterIndex m : voting() - votes) wake_waiters(m, now);
  if (now >= holder_.until) tell_kept_back();
  soon(holder_.until);
  soon(claims_.on_time(now));
  claims_.check();
  soon(close_by_);
  repeat_waits(now);
  // What was due may have caused an event or a wish, so another turn is needed. A client that closes asks for no turn
  // here: close_by_ stays due until every event is delivered, and would ask again and again.
  if (phase_ == Phase::open) again_ = true;
}

void Client::run_locks(unsigned page, const Instant& now) {
  due_pages_.clear(page);
  for (unsigned i = due_pages_.begin(page); i < due_pages_.end(page); ++i) {
    Lock& lock = table_[i];
    if (lock.state == State::free) continue;
    if (now >= machine_.deadline(lock)) perform(lock, machine_.on_time(lock, now), now);
    plan(lock);
  }
}

void Client::clock_jumped(const Instant& now) {
  ++counters_.clock_jumps;
  for (unsigned i = 0; i < table_.capacity(); ++i) {
    if (table_[i].state != State::free && table_[i].state != State::over) {
      perform(table_[i], machine_.jumped(table_[i], now), now);
    }
  }
  for (MasterIndex m = 0; m < settings_.masters; ++m) sessions_[m].clock_jumped(now);
  due_pages_.all_due(now);  // every deadline is calculated anew
  soon(now);
}

void Client::add_entropy(const void* bytes, size_t size) {
  pool_.add(bytes, size);
  uint64_t seed;
  if (!seeded_ && take_seed(seed)) {
    machine_.seed(seed);
    seeded_ = true;
  }
  for (MasterIndex m = 0; m < settings_.masters; ++m) {
    if (sessions_[m].wants_seed() && take_seed(seed)) sessions_[m].seed(seed);
  }
}

bool Client::take_seed(uint64_t& seed) {
  if (!pool_.has(sizeof seed)) return false;
  pool_.take(reinterpret_cast<unsigned char*>(&seed), sizeof seed);
  return true;
}

void Client::connecting(MasterIndex m, const Instant& now) {
  sessions_[m].connecting(now);
  plan(sessions_[m]);
}

void Client::connected(MasterIndex m, const Instant& now) {
  on_time(now);
  sessions_[m].connected(now, machine_.draw());
  plan(sessions_[m]);
}

void Client::closed(MasterIndex m, int reason, const Instant& now) {
  on_time(now);
  sessions_[m].closed(now, reason, machine_.draw());
  sessions_[m].leave_strays(claims_.broke(m));
  soon(claims_.deadline());
  if (sessions_[m].reason() == REDLOCK_E_READONLY) withdrawn(m, now);
  identified();
  take_news(now);
  for (unsigned i = 0; i < table_.capacity(); ++i) {
    Lock& lock = table_[i];
    if (lock.state != State::free && lock.round.open) perform(lock, fail_votes(lock, Masters::of(m), now), now);
    if (lock.state == State::waiting || lock.state == State::acquiring) {
      machine_.master_left(lock, m, now);
      plan(lock);
    }
  }
  if (phase_ == Phase::disconnecting) sessions_[m].close_quietly();
  plan(sessions_[m]);
  again_ = true;
}

void Client::turn(const Instant& now) {
  on_time(now);
  again_ = false;
  if (called_ || (cause_ != REDLOCK_CAUSE_HELD && !starts_.empty())) judge_waits(now);
  pay_debts(now);
  start_rounds(now);
  if (looks_) send_looks(now);
}

}  // namespace redlock
