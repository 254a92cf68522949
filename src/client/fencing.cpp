// SPDX-License-Identifier: MIT
//
// Rounds by script: which command goes to which master, and what is remembered of tokens between rounds. A script can
// ask for a fencing token, takes any number of names, and compares the guard's state on the server.
#include "client/client.hpp"

namespace redlock {

// False: the master tells a number that is not believed. Our own proposal says nothing about the master.
bool Client::hear(Lock& lock, MasterIndex m, Counter counter) {
  const bool acknowledged = counter.state == Counter::State::ack && counter.value == lock.fence.proposal;
  if (!acknowledged && !belief_.believes(largest_of(counter))) return false;
  machine_.on_counter(lock, m, counter);
  proposals_.heard(lock.names, counter.value);
  return true;
}

// A grant with a counter, handled after its vote. The round may have been won just now, and other masters that granted
// lack the token. Or the round was won long ago, and this master lacks the token.
void Client::route_late_grant(MasterIndex m, Reply reply, Lock& lock) {
  if (lock.claim != reply.claim || lock.round.number != reply.round || reply.meaning.answer != Answer::yes) return;
  const Counter& counter = reply.meaning.counter;
  if (counter.state == Counter::State::ack && counter.value == lock.fence.token) machine_.token_told(lock, m);
  spread_token(lock, lock.round.granted | Masters::of(m));
}

// Sends the token to masters that granted and lack it. The more masters know a token, the more of them may be lost.
void Client::spread_token(Lock& lock, Masters granted) {
  if (lock.state != State::held && !lock.fence.storing) return;
  lock.round.unsent |= granted - lock.fence.told;
  if (!lock.round.unsent.empty()) want_round(lock);
}

// A token that is told is remembered, and uses up the permission of redlock_fence_init(). How long a lock was held is
// remembered, too: redlock_release() reads no clock, and the turn that delivers RELEASED does.
bool Client::next_event(Event& out, const Instant& now) {
  if (!notices_.next(out, now)) return false;
  soon(notices_.due());
  belief_.got(out.event.token);
  if (out.slot == no_slot) return true;
  const Lock& lock = table_[out.slot];
  const bool floored = (out.event.flags & REDLOCK_EV_F_FLOORED) != 0;
  if (floored && out.event.type == REDLOCK_EV_ACQUIRED) proposals_.floor_taken(lock.names);
  if (out.event.type == REDLOCK_EV_RELEASED) machine_.let_go(lock, now);
  return true;
}

}  // namespace redlock
