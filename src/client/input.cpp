// SPDX-License-Identifier: MIT
//
// The inputs of a client, except for replies: time, random bytes, connections that open and close, the next turn.
#include "client/client.hpp"

namespace redlock {

void Client::run_due(const Instant& now) {
  deadline_ = Instant::never();
  const Instant heard = earlier(now, heard_);
  for (unsigned page = 0; page < due_pages_.pages(); ++page) {
    if (now >= due_pages_.due(page)) run_locks(page, now, heard);
    soon(due_pages_.due(page));
  }
  for (MasterIndex m = 0; m < settings_.masters; ++m) soon(post_[m].on_time(now, heard));
  take_news(now);
  note_votes(now);
  if (notices_.is_overdue(now)) tell_kept_back();
  soon(post_.claims.on_time(now));
  post_.claims.check();
  soon(close_by_);
  soon(notices_.on_time(now));
  // What was due may have caused an event or a wish, so another turn is needed. A client that closes asks for no turn
  // here: close_by_ stays due until every event is delivered, and would ask again and again.
  if (phase_ == Phase::open) want_turn();
}

void Client::run_locks(unsigned page, const Instant& now, const Instant& heard) {
  due_pages_.clear(page);
  for (unsigned i = due_pages_.begin(page); i < due_pages_.end(page); ++i) {
    Lock& lock = table_[i];
    if (lock.state == State::free) continue;
    if (now >= Machine::deadline(lock)) perform(lock, machine_.on_time(lock, now, heard), now);
    plan(lock);
  }
}

void Client::clock_jumped(const Instant& now) {
  ++notices_.counters.clock_jumps;
  for (unsigned i = 0; i < table_.capacity(); ++i) {
    if (table_[i].state != State::free && table_[i].state != State::over) {
      perform(table_[i], machine_.jumped(table_[i], now), now);
    }
  }
  for (MasterIndex m = 0; m < settings_.masters; ++m) post_[m].clock_jumped(now);
  due_pages_.all_due(now);  // every deadline is calculated anew
  soon(now);
}

void Client::add_entropy(const void* bytes, size_t size) {
  pool_.add(bytes, size);
  uint64_t seed;
  if (machine_.wants_seed() && take_seed(seed)) machine_.seed(seed);
  for (MasterIndex m = 0; m < settings_.masters; ++m) {
    if (post_[m].wants_seed() && take_seed(seed)) post_[m].seed(seed);
  }
}

bool Client::take_seed(uint64_t& seed) {
  if (!pool_.has(sizeof seed)) return false;
  pool_.take(reinterpret_cast<unsigned char*>(&seed), sizeof seed);
  return true;
}

void Client::connecting(MasterIndex m, const Instant& now) {
  post_[m].connecting(now);
  plan(post_[m]);
}

void Client::connected(MasterIndex m, const Instant& now) {
  on_time(now);
  post_[m].connected(now, machine_.draw());
  plan(post_[m]);
}

void Client::closed(MasterIndex m, int reason, const Instant& now) {
  on_time(now);
  post_[m].closed(now, reason, machine_.draw());
  post_[m].leave_strays(post_.claims.broke(m));
  soon(post_.claims.deadline());
  if (post_[m].reason() == REDLOCK_E_READONLY) withdrawn(m, now);
  identified();
  take_news(now);
  note_votes(now);
  for (unsigned i = 0; i < table_.capacity(); ++i) {
    Lock& lock = table_[i];
    if (lock.state != State::free && lock.round.open) perform(lock, fail_votes(lock, Masters::of(m), now), now);
    if (lock.state == State::waiting || lock.state == State::acquiring) {
      machine_.master_disconnected(lock, m, now);
      plan(lock);
    }
  }
  if (phase_ == Phase::disconnecting) post_[m].close_quietly();
  plan(post_[m]);
  want_turn();
}

void Client::turn(const Instant& now) {
  on_time(now);
  again_ = false;
  post_.awake = post_.claims.in_use() || !starts_.empty() ? Awake::holds
                : table_.in_use()                         ? Awake::waits
                                                          : Awake::no;
  if (post_.for_port || (notices_.cause != REDLOCK_CAUSE_HELD && !starts_.empty())) judge_waits(now);
  const Post::Paid paid = post_.pay_debts(now);
  if (paid.queued) soon(now + settings_.node_timeout);
  if (paid.full) want_turn();
  if (!starts_.empty()) look_ahead(now);
  start_rounds(now);
  if (looks_) send_looks(now);
  if (!puts_back_.empty()) put_back_all(now);
}

}  // namespace redlock
