// SPDX-License-Identifier: MIT
//
// Rounds by script: which command goes to which master, and what is remembered of tokens between rounds. A script can
// ask for a fencing token, takes any number of names, and compares the guard's state on the server.
#include "client/client.hpp"

namespace redlock {

void Client::propose(Lock& lock) {
  machine_.propose(lock, proposals_.next(lock.names), proposals_.may_floor(lock.names));
}

// False: the master tells a number that is not believed. Our own proposal says nothing about the master.
bool Client::hear(Lock& lock, MasterIndex m, const Counter& counter) {
  const bool acknowledged = counter.state == Counter::State::ack && counter.value == lock.fence.proposal;
  if (!acknowledged && !belief_.believes(largest_of(counter))) return false;
  machine_.on_counter(lock, m, counter);
  proposals_.heard(lock.names, counter.value);
  return true;
}

// A command of the lock's open round, by script.
Client::Wording Client::wording_of_round(Op op, const Lock& lock, const Instant& now) const {
  Wording what = wording(op, lock.claim, lock.round.number, lock.round.ttl_ms, now);
  what.sealed = op != Op::extend || settings_.guard != GuardMode::off;  // without a guard there is nothing to compare
  what.token = op == Op::token ? lock.fence.token : lock.fence.proposal;
  return what;
}

// Is there room for one more command of the lock's round to this master?
bool Client::may_ask(Op op, const Lock& lock, MasterIndex m) const {
  const Session& session = sessions_[m];
  const size_t size = command_size(lock.names) + sealed_size();
  return session.votes() && shared_.has_room(Shared::size_of(size) + Shared::size_of(Command::caching().size)) &&
         session.room(size, claims_.reserved(m) + (op == Op::extend ? session.extend_requests() : 1),
                      session.send_script_text(op));
}

// Remembers the token before it is stored. So the next proposal is larger, whether this round is won or lost.
Action Client::store_token(Lock& lock, const Instant& now) {
  proposals_.heard(lock.names, lock.fence.token);
  Masters able;
  for (MasterIndex m : lock.fence.told) {
    if (may_ask(Op::token, lock, m)) able.add(m);
  }
  const Masters unable = lock.fence.told - able;
  ask(wording_of_round(Op::token, lock, now), able);
  again_ = true;
  plan(lock);
  return fail_votes(lock, unable, now);
}

// A grant with a counter, handled after its vote. The round may have been won just now, and other masters that granted
// lack the token. Or the round was won long ago, and this master lacks the token.
void Client::route_late_grant(MasterIndex m, const Reply& reply, Lock& lock, const Instant& now) {
  if (lock.claim != reply.claim || lock.round.number != reply.round || reply.meaning.answer != Answer::yes) return;
  const Counter& counter = reply.meaning.counter;
  if (counter.state == Counter::State::ack && counter.value == lock.fence.token) machine_.token_told(lock, m);
  spread_token(lock, lock.round.granted | Masters::of(m), now);
}

// Sends the token to masters that granted and lack it. The more masters know a token, the more of them may be lost.
void Client::spread_token(Lock& lock, Masters granted, const Instant& now) {
  if (lock.state != State::held && !lock.fence.storing) return;
  for (MasterIndex m : granted - lock.fence.told) {
    if (!may_ask(Op::token, lock, m)) continue;
    machine_.token_told(lock, m);
    ask(wording_of_round(Op::token, lock, now), Masters::of(m));
    again_ = true;
  }
}

void Client::tell_token(const Lock& lock, redlock_event_t& event) {
  event.token = lock.fence.token;
  belief_.got(event.token);
  if (!lock.fence.floored) return;
  event.flags = REDLOCK_EV_F_FLOORED;
  if (event.type == REDLOCK_EV_ACQUIRED) proposals_.floor_taken(lock.names);
}

int Client::fence_init(Bytes resource) {
  if (phase_ != Phase::open) return REDLOCK_E_CLOSED;
  return proposals_.allow_floor(resource) ? 0 : REDLOCK_E_TABLE_FULL;
}

}  // namespace redlock
