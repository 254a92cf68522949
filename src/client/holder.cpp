// SPDX-License-Identifier: MIT
//
// Who holds the resource? An acquire that wants to tell asks one master with each round that it lost to others: the
// first one that refused. The question leaves with the looks. A lost try-once keeps its FAILED back until the answer
// has come, or a node_timeout is over.
#include "client/client.hpp"

namespace redlock {

// True: the lock's FAILED waits for the answer.
bool Client::want_holder(const Lock& lock, const Instant& now) {
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
  holder_.wanted = looks_ = again_ = true;
  if (over) soon(holder_.until = now + settings_.node_timeout);
  return over;
}

void Client::ask_holder(const Instant& now) {
  holder_.wanted = false;
  Lock& lock = table_[place_of_holder()];
  if (lock.round.refused.empty()) return;  // the next round has begun
  const MasterIndex m = *lock.round.refused.begin();
  if (!sessions_[m].votes() || !look(lock, m, true, now)) tell_kept_back();
}

void Client::holder_answered(const Reply& reply) {
  Lock* lock;
  if (static_cast<uint32_t>(holder_.lock >> 16) != reply.round || place_of_holder() != reply.claim) return;
  if (table_.find(holder_.lock, lock) != Table::Found::present) return;
  const bool known = holder_.foreign || holder_.size != 0;
  holder_.foreign = reply.meaning.answer == Answer::no;
  holder_.size = static_cast<uint8_t>(reply.key.size);
  if (holder_.size != 0) memcpy(holder_.name, reply.key.data, holder_.size);
  // Told once: a later round that is lost to the same holder is no news.
  if (!known && (holder_.foreign || holder_.size != 0)) note_wait(*lock, true);
  tell_kept_back();
}

void Client::tell_kept_back() {
  if (holder_.until == Instant::never()) return;
  holder_.until = Instant::never();
  carry_out(table_[place_of_holder()], Action::none, now_);
  again_ = true;
}

}  // namespace redlock
