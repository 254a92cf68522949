// SPDX-License-Identifier: MIT
//
// Who holds the resource? An acquire that wants to tell asks one master with each round that it lost to others: the
// first one that refused. A lost try-once keeps its FAILED back until the answer has come, or a node_timeout is over.
#include "client/client.hpp"

namespace redlock {

bool Client::is_holder_of(const Lock& lock) const {
  return holder_.slot == table_.index(lock) && holder_.generation == static_cast<uint32_t>(lock.generation);
}

// Is the place of another lock that has not been told its end?
bool Client::holder_is_taken(const Lock& lock) const {
  if (holder_.slot == no_slot || is_holder_of(lock)) return false;
  const Lock& other = table_[holder_.slot];
  return is_holder_of(other) && other.state != State::free && other.state != State::held;
}

// True: the lock's FAILED waits for the answer.
bool Client::ask_holder(const Lock& lock, Instant now) {
  const bool waits = lock.state == State::over;
  if (waits && (lock.options.wait_ms != REDLOCK_TRY_ONCE || lock.tell.err != REDLOCK_E_LOCKED)) return false;
  const bool to_others = lock.wait.last_cause == REDLOCK_E_LOCKED && !lock.round.refused.empty();
  if (!to_others || holder_is_taken(lock)) return false;
  const MasterIndex m = *lock.round.refused.begin();
  Session& session = sessions_[m];
  if (!session.connected()) return false;
  const Command get = Command::holder(session.space(), settings_.key_prefix, lock.names.first());
  if (!session.room(get, claims_.reserved(m) + 2 + 1)) return false;
  const uint16_t slot = table_.index(lock);
  const uint32_t generation = static_cast<uint32_t>(lock.generation);
  session.ask_holder(slot, generation, get, now);
  soon(session.deadline());
  again_ = true;
  if (!is_holder_of(lock)) holder_ = {};
  holder_.slot = slot;
  holder_.generation = generation;
  if (waits) soon(holder_.until = now + settings_.node_timeout);
  return waits;
}

void Client::holder_answered(const Reply& reply) {
  if (holder_.slot != reply.claim || holder_.generation != reply.round) return;
  const Answer answer = reply.meaning.answer;
  holder_.known = answer == Answer::yes  ? Holder::Known::name
                  : answer == Answer::no ? Holder::Known::foreign
                                         : Holder::Known::nothing;
  holder_.size = static_cast<uint8_t>(answer == Answer::yes ? reply.key.size : 0);
  if (holder_.size != 0) memcpy(holder_.name, reply.key.data, holder_.size);
  tell_kept_back();
}

void Client::tell_kept_back() {
  if (holder_.until == Instant::never()) return;
  holder_.until = Instant::never();
  tell(table_[holder_.slot]);
  again_ = true;
}

}  // namespace redlock
