// SPDX-License-Identifier: MIT
//
// Rounds: when a round begins, with which masters, and what each of them is sent. A master that cannot be asked counts
// as failed before the first byte leaves.
#include "client/client.hpp"

#include "lock/quorum.hpp"

namespace redlock {
namespace {

constexpr Duration entropy_retry = Duration::ms(50);

}  // namespace

void Client::start_rounds(const Instant& now) {
  if (starts_.empty()) return;
  const Masters votes = post_.voting();
  const bool quorum_votes = votes.count() >= quorum_of(settings_.masters);
  Masters comparing;
  for (MasterIndex m : votes) {
    if (post_[m].asked_by_script()) comparing.add(m);
  }
  for (uint16_t i = starts_.first(); i != no_slot;) {
    Lock& lock = table_[i];
    i = starts_.next(&table_[0], i);
    if (lock.wants == Wants::nothing && lock.claim != no_claim && !lock.round.unsent.empty()) {
      send_unsent(lock, votes, now);
      continue;
    }
    if (lock.wants == Wants::acquire) machine_.see(lock, notices_.cause == REDLOCK_CAUSE_GUARD, now);
    const bool is_first = lock.wants != Wants::acquire || queue_.is_first(lock);
    if (!is_first || (lock.line.yields && lock.wants != Wants::nothing)) {
      starts_.remove(&table_[0], table_.index(lock));
      perform(lock, is_first ? machine_.yield(lock, now) : machine_.queue(lock), now);
      notices_.note_wait(lock, false);
      continue;
    }
    const Masters by_script = Post::script_only(lock) ? votes : comparing;
    const Masters ready = post_.ready(lock, votes, by_script);
    if (lock.wants != Wants::nothing && !may_begin(lock, quorum_votes, ready, now)) {
      plan(lock);
      continue;
    }
    starts_.remove(&table_[0], table_.index(lock));
    if (lock.wants != Wants::nothing) begin_round(lock, ready, by_script, now);
  }
}

// Does the round begin now, or wait for room in our own tables? A round does not wait for masters: it begins, and is
// lost for the right reason.
bool Client::may_begin(Lock& lock, bool quorum_votes, Masters ready, const Instant& now) {
  if (lock.tell.event != 0) {  // the event carries the votes of the last round, which a new round would overwrite
    want_turn();
    return false;
  }
  if (lock.wants == Wants::acquire && !post_.introduced()) return false;
  if (!quorum_votes) return true;
  const bool acquire = lock.wants == Wants::acquire;
  if (acquire && !pool_.has(REDLOCK_VALUE_RANDOM)) {
    machine_.put_off_freely(lock);
    soon(now + entropy_retry);
    return false;
  }
  if (ready.count() >= quorum_of(settings_.masters) && !(acquire && post_.claims.full())) return true;
  return !machine_.put_off(lock, now);
}

void Client::begin_round(Lock& lock, Masters ready, Masters by_script, const Instant& now) {
  post_.asked = true;
  const bool acquire = lock.wants == Wants::acquire;
  if (acquire && post_.claims.full()) ready = {};
  if (!machine_.begin(lock, ready, now)) {
    // max_hold allows no later validity. The extend has ended an open probe, so the keys that the probe found gone are
    // put back here.
    return carry_out(lock, Action::put_back, now);
  }
  if (acquire && lock.options.fenced) {
    machine_.propose(lock, proposals_.next(lock.names), proposals_.may_floor(lock.names));
  }
  if (acquire) ++notices_.counters.rounds;
  plan(lock);
  const Masters unable = Masters::all(settings_.masters) - ready;
  const Action action = !unable.empty() ? fail_votes(lock, unable, now) : Action::none;
  if (!lock.round.open) return perform(lock, action, now);  // lost before a byte was sent

  if (acquire) {
    lock.claim = post_.claims.make(table_.index(lock), lock.names, lock.round.ttl_ms);
    pool_.take(post_.claims[lock.claim].value.random, REDLOCK_VALUE_RANDOM);
  }
  const uint16_t claim = lock.claim;
  if (post_.claims[claim].ttl_ms < lock.round.ttl_ms) post_.claims[claim].ttl_ms = lock.round.ttl_ms;
  REDLOCK_ASSERT(claim != no_claim);
  REDLOCK_ASSERT(post_.claims[claim].used);
  REDLOCK_ASSERT(!post_.claims[claim].ended);
  if (acquire) post_.claims.sets_sent(claim, ready);
  post_.ask_round(lock, ready, by_script, now);
}

// One more command of a round that has begun: the token, or what a master did not know the script for. Where our own
// memory has no room, the command waits, until the round's deadline. A token is remembered before it is stored. So the
// next proposal is larger, whether this round is won or lost.
void Client::send_unsent(Lock& lock, Masters votes, const Instant& now) {
  REDLOCK_ASSERT(lock.claim != no_claim);
  const Op op = lock.fence.storing || !lock.round.open ? Op::token
                : lock.state == State::held            ? Op::extend
                : lock.options.fenced                  ? Op::acquire_fenced
                                                       : Op::acquire;
  REDLOCK_ASSERT(op != Op::token || lock.fence.token != 0);
  const Masters unsent = lock.round.unsent - lock.round.failed, able = post_.able(op, lock, unsent);
  lock.round.unsent = (unsent & votes) - able;
  if (op == Op::token) {
    proposals_.heard(lock.names, lock.fence.token);
    lock.fence.told |= able;
  } else if (op != Op::extend) {
    for (MasterIndex m : able) {
      post_.claims.put_back_sent(lock.claim, m);
      machine_.put_back_sent(lock, m);
    }
  }
  post_.ask_more(op, lock, able, true, now);
  if (lock.round.unsent.empty()) starts_.remove(&table_[0], table_.index(lock));
  perform(lock, fail_votes(lock, unsent - votes, now), now);
}

// Of connections that were slow. A command that such a connection did not begin to take counts as never sent. The
// second script of a token leaves when the connection has room, because few other masters can take its place.
void Client::take_back(const Instant& now) {
  for (MasterIndex m = 0; m < settings_.masters; ++m) {
    if (post_[m].tx().empty()) continue;
    for (Session::Request request; post_.take_back(m, request, now); want_turn()) {
      const Op op = static_cast<Op>(request.kind);
      const uint16_t slot = post_.claims[request.claim].slot;  // none, of a delete
      if (slot == no_slot || table_[slot].claim != request.claim) continue;
      Lock& lock = table_[slot];
      const bool acquires = op == Op::acquire || op == Op::acquire_fenced;
      Action action = acquires ? machine_.on_key_missing(lock, m, true) : Action::none;
      const bool other_part = lock.state == State::acquiring && lock.fence.storing != (op == Op::token);
      const bool votes = lock.round.number == request.round && !other_part;
      if (votes && lock.state == State::acquiring && op == Op::token && lock.round.open) {
        lock.round.unsent.add(m);
        action = Action::store;
      } else if (votes) {
        action = fail_votes(lock, Masters::of(m), now);
      }
      perform(lock, action, now);
    }
    plan(post_[m]);
  }
  soon(post_.claims.deadline());
}

Action Client::fail_votes(Lock& lock, Masters masters, const Instant& now) {
  Action action = Action::none;
  for (MasterIndex m : masters) {
    if (is_denial(post_.why_unable(lock, m))) lock.wait.denied.add(m);
  }
  for (unsigned pass = 0; pass < 2; ++pass) {  // the round may be lost with the first vote, which is told
    for (MasterIndex m : masters) {
      const int error = post_.why_unable(lock, m);
      if (lock.round.open && (pass == 0) == (telling(error) >= lasting)) {
        action = machine_.vote(lock, m, Vote::failed, error, now);
      }
    }
  }
  return action;
}

}  // namespace redlock
