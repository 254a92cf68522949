// SPDX-License-Identifier: MIT
//
// Replies. A reply goes from its session to its claim, and to the lock of the claim. Then what follows is carried out.
#include "client/client.hpp"
#include "lock/quorum.hpp"

namespace redlock {

void Client::hear_of_keys(MasterIndex m, const Reply& reply, const Instant& now) {
  want_turn();
  switch (reply.kind) {
    case Reply::Kind::answer:  // no news
      break;
    case Reply::Kind::ttl_read: {
      Lock& lock = table_[reply.claim];
      if (static_cast<uint32_t>(lock.generation) != reply.round) return;
      machine_.looked(lock, m, reply.ttl, now);
      notices_.note_wait(lock, false);
      if (!lock.forecast.look().empty()) looks_ = true;
      return plan(lock);
    }
    case Reply::Kind::holder_read:
      if (notices_.hear_holder(reply)) tell_kept_back();
      return;
    case Reply::Kind::key_changed: {
      const Bytes prefix = settings_.key_prefix;
      if (reply.key.size < prefix.size || Bytes(reply.key.data, prefix.size) != prefix) return;
      return key_changed(m, Bytes(reply.key.data + prefix.size, reply.key.size - prefix.size), now);
    }
    case Reply::Kind::all_changed:
      for (unsigned i = 0; i < table_.capacity(); ++i) alarm_waiter(table_[i], m, now);
      alarm_all(m, false, now);
      break;
  }
}

inline void Client::route_round(MasterIndex m, const Reply& reply, const Instant& now) {
  const uint16_t slot = post_.claims[reply.claim].slot;
  const bool unknown = reply.meaning.error == REDLOCK_E_NOSCRIPT;
  belief_.told(m, largest_of(reply.meaning.counter));  // also by an answer that comes too late for its round
  if (is_denial(reply.meaning.error)) denied(m, post_.claims[reply.claim].names);
  if (reply.op == Op::acquire || reply.op == Op::acquire_fenced) {
    const bool again = unknown && slot != no_slot && ask_again(m, reply, table_[slot]);
    const bool refused = reply.meaning.answer == Answer::no;
    // The value does not lie on a master that did not know the script.
    post_.claims.set_answered(reply.claim, m, refused || again, now);
    // Of a lock that is held by now it is put back, once.
    const bool late = unknown && reply.round != 0 && slot != no_slot && table_[slot].claim == reply.claim &&
                      !is_pending(table_[slot]);
    if (again || late) return perform(table_[slot], machine_.on_key_missing(table_[slot], m, true), now);
    if (refused && slot == no_slot) notices_.refused_late(m, reply.round);
  }
  if (slot == no_slot || table_[slot].claim != reply.claim) return;
  Lock& lock = table_[slot];
  // Does the master have the key? A reply answers this even if its round is over.
  if (reply.meaning.answer == Answer::yes) machine_.on_key_present(lock, m);
  if (reply.meaning.answer == Answer::no && lacks_key(m, reply, lock, now)) return;
  const bool extends = reply.op == Op::extend || reply.op == Op::token;
  if (unknown && extends && ask_again(m, reply, lock)) return;
  if (lock.round.number == reply.round && lock.round.open) route_vote(m, reply, lock, now);
  if (reply.op == Op::acquire_fenced && lock.options.fenced) route_late_grant(m, reply, lock);
}

// Also by an answer that comes too late for its round: where one master is down, the first denial decides each round.
void Client::denied(MasterIndex m, const Names& names) {
  for (unsigned i = 0; i < table_.capacity(); ++i) {
    if (is_pending(table_[i]) && table_[i].names.has(names.first())) table_[i].wait.denied.add(m);
  }
}

// After NOSCRIPT: the command is sent again in the next turn, with the script's text or behind it, if its round still
// needs the answer.
bool Client::ask_again(MasterIndex m, Reply reply, Lock& lock) {
  if (lock.claim != reply.claim || lock.round.number != reply.round) return false;
  if (reply.op == Op::acquire && !post_.by_script(lock, m)) return false;  // the command was a plain SET
  const bool wanted = reply.op == Op::token ? lock.state == State::held || lock.fence.storing
                                            : lock.round.open && !lock.fence.storing;
  if (!wanted) return false;
  lock.round.unsent.add(m);
  want_round(lock);
  return true;
}

inline void Client::route_vote(MasterIndex m, const Reply& reply, Lock& lock, const Instant& now) {
  const bool late = lock.state == State::acquiring && lock.fence.storing != (reply.op == Op::token);
  if (late) return;  // the answer belongs to the other part of a fenced round
  const bool counts = reply.op == Op::acquire_fenced && lock.options.fenced;
  const bool believed = !counts || hear(lock, m, reply.meaning.counter);
  const Vote vote = reply.meaning.answer == Answer::yes && believed ? Vote::granted
                    : reply.meaning.answer == Answer::no            ? Vote::refused
                                                                    : Vote::failed;
  const int error = believed ? reply.meaning.error : REDLOCK_E_FENCE_RANGE;
  const Action action = machine_.vote(lock, m, vote, error, now);
  if (!lock.round.open || action != Action::none) perform(lock, action, now);
  machine_.check(lock);
}

inline void Client::route_delete(MasterIndex m, const Reply& reply, const Instant& now) {
  if (reply.meaning.error == REDLOCK_E_NOSCRIPT) {
    post_.claims.delete_unknown(reply.claim, m);
    post_.send_deletes(reply.claim, Masters::of(m), now);
    soon(now + settings_.node_timeout);
    return;
  }
  const Claims::Deleted how = reply.meaning.answer == Answer::yes  ? Claims::Deleted::yes
                              : reply.meaning.answer == Answer::no ? Claims::Deleted::absent
                                                                   : Claims::Deleted::error;
  // The server does not notify us of our own delete, so tell our own waiters here.
  if (how == Claims::Deleted::yes && waiters_look_) {
    for (Bytes name : post_.claims[reply.claim].names) key_changed(m, name, now);
  }
  post_.claims.delete_answered(reply.claim, m, how, now);
}

inline void Client::route_answer(MasterIndex m, const Reply& reply, const Instant& now) {
  if (reply.op == Op::release) return route_delete(m, reply, now);
  route_round(m, reply, now);
}

REDLOCK_APART_FOR_SPEED void Client::route(MasterIndex m, const Reply& reply, const Instant& now) {
  if (reply.kind != Reply::Kind::answer) return hear_of_keys(m, reply, now);
  route_answer(m, reply, now);
}

void Client::received(MasterIndex m, size_t size, const Instant& now) {
  on_time(now);
  Session& session = post_[m];
  bool fast = session.is_fast(now);
  bool fast_only = fast;
  session.received(size);
  for (Reply reply;;) {
    if (Reply good; for_speed && fast && session.try_fast_reply(now, good)) {
      route_answer(m, good, now);
      continue;
    }
    if (for_speed || !fast || !session.try_fast_reply(now, reply)) {
      if (!session.unread()) break;
      fast_only = false;
      if (!session.next_item(now, reply)) break;
      fast = session.is_fast(now);
    }
    route(m, reply, now);
  }
  if (!fast_only) {
    take_news(now);
    quarantine_stepped(now);
    note_votes(now);
    if (!session.idle()) want_turn();
    plan(session);
  } else if (session.in_flight() == 0) {
    soon(session.ping_at());
  }
  soon(post_.claims.deadline());
  gained_room(m);
  if (phase_ != Phase::open) want_turn();
}

// ---- what follows from a step ---------------------------------------------------------------------------------

void Client::perform(Lock& lock, Action action, const Instant& now) {
  carry_out(lock, action, now);
  if (lock.state != State::over) return;
  starts_.remove(&table_[0], table_.index(lock));
  hand_on(lock, now);
}

void Client::carry_out(Lock& lock, Action action, const Instant& now) {
  switch (action) {
    case Action::none:
      break;
    case Action::start:
    case Action::store:
      want_round(lock);
      break;
    case Action::drop:
      end_claim(lock, true, now);
      if (lock.options.wants_holder && want_holder(lock, now)) return;
      notices_.note_wait(lock, false);
      break;
    case Action::look:
      end_claim(lock, true, now);
      begin_looking(lock, now);
      if (lock.options.wants_holder) want_holder(lock, now);
      notices_.note_wait(lock, false);
      break;
    case Action::release:
      end_claim(lock, false, now);
      break;
    case Action::put_back:
      put_back(lock, now);
      break;
    case Action::linger:
      post_.claims.linger(lock.claim, lock.valid_until);
      lock.claim = no_claim;
      soon(lock.valid_until);
      break;
  }
  machine_.check(lock);
  if (lock.tell.event != 0) notices_.queue(lock);
  if (lock.state != State::over) plan(lock);
}

void Client::end_claim(Lock& lock, bool spare_refused, const Instant& now) {
  const uint16_t index = lock.claim;
  if (index == no_claim) return;
  lock.claim = no_claim;
  const Claim& claim = post_.claims[index];
  const Masters owed = spare_refused ? claim.sent - claim.refused : claim.sent;
  post_.end(index, owed, now);
  soon(post_.claims.deadline());
  want_turn();
}

void Client::want_round(const Lock& lock) {
  starts_.push(&table_[0], table_.index(lock));
  want_turn();
}

void Client::plan(const Lock& lock) {
  machine_.check(lock);
  const Instant due = Machine::deadline(lock);
  due_pages_.note(table_.index(lock), due);
  soon(due);
}

REDLOCK_APART_FOR_SIZE void Client::plan(const Session& session) { soon(session.deadline()); }

}  // namespace redlock
