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

// A command of the lock's open round. Each master has its own seal, so a script's command differs for each master.
Command Client::round_command(Op op, const Lock& lock, MasterIndex m) {
  const bool by_name = !sessions_[m].send_script_text(op);
  const Subject s = subject(lock.claim, lock.round.ttl_ms);
  const Sealed state = sessions_[m].sealed();
  const bool nothing_to_compare = op == Op::extend && state.seal.size == 0;
  if (!by_script(lock, m) || nothing_to_compare) return Command::plain(sessions_[m].space(), op, s, by_name);
  const uint64_t token = op == Op::token ? lock.fence.token : lock.fence.proposal;
  return Command::sealed(sessions_[m].space(), op, s, state, token, by_name);
}

void Client::ask_script(Op op, const Lock& lock, MasterIndex m, Instant now) {
  if (op == Op::extend) sessions_[m].track_next(now);
  const Command command = round_command(op, lock, m);
  sessions_[m].ask(op, lock.claim, lock.round.number, command, now);
}

// Remembers the token before it is stored. So the next proposal is larger, whether this round is won or lost.
Action Client::store_token(Lock& lock, Instant now) {
  proposals_.heard(lock.names, lock.fence.token);
  Masters unable;
  for (MasterIndex m : lock.fence.told) {
    if (sessions_[m].votes() && sessions_[m].room(round_size(lock, m), claims_.reserved(m) + 1)) {
      ask_script(Op::token, lock, m, now);
    } else {
      unable.add(m);
    }
  }
  again_ = true;
  plan(lock);
  return fail_votes(lock, unable, now);
}

// A grant with a counter, handled after its vote. The round may have been won just now, and other masters that granted
// lack the token. Or the round was won long ago, and this master lacks the token.
void Client::route_late_grant(MasterIndex m, const Reply& reply, Lock& lock, Instant now) {
  if (lock.claim != reply.claim || lock.round.number != reply.round || reply.meaning.answer != Answer::yes) return;
  const Counter& counter = reply.meaning.counter;
  if (counter.state == Counter::State::ack && counter.value == lock.fence.token) machine_.token_told(lock, m);
  spread_token(lock, lock.round.granted | Masters::of(m), now);
}

// Sends the token to masters that granted and lack it. The more masters know a token, the more of them may be lost.
void Client::spread_token(Lock& lock, Masters granted, Instant now) {
  if (lock.state != State::held && !lock.fence.storing) return;
  for (MasterIndex m : granted - lock.fence.told) {
    if (!sessions_[m].votes() || !sessions_[m].room(round_size(lock, m), claims_.reserved(m) + 1)) continue;
    machine_.token_told(lock, m);
    ask_script(Op::token, lock, m, now);
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
