// SPDX-License-Identifier: MIT
//
// Holding: what a held lock learns of its key, and how a master that has lost the key gets the key back. The machine
// decides what follows; this file carries messages.
//
// The cost. A lock that ends within a third of its ttl costs nothing here. A longer lock has its keys tracked by each
// extend round: CLIENT CACHING ahead of the script (38 bytes in the same write, and an answer of 5 bytes) and one more
// read inside the script. A separate read, as waiters send it, would cost 73 bytes and two answers for each master and
// round, and PTTL does not tell whose key it is.
//
// The limit. Until the first extend round the key is not tracked. A change in this time is found by that round. Only a
// change that the server tells every client (FLUSHALL) is noticed at once.
#include "client/client.hpp"

namespace redlock {

// "Gone or foreign" means that the master lacks the key, unless a SET of ours may still be executed there. The token
// script also says no for other reasons, so its answer does not count here.
bool Client::lacks_key(MasterIndex m, Reply reply, Lock& lock, const Instant& now) {
  const Claim& claim = post_.claims[reply.claim];
  if (reply.op == Op::token || (claim.pending | claim.stray).has(m)) return false;
  const Action action = machine_.on_key_missing(lock, m, reply.op == Op::extend);
  if (action == Action::none) return false;
  perform(lock, action, now);
  return true;
}

// A put-back is like the SET of a round, but its ttl is what is left of the validity. Several names are put back all or
// none, so a master that lost only one of several names gets nothing back.
void Client::put_back(Lock& lock, const Instant& now) {
  const uint32_t ttl_ms = machine_.put_back_ttl(lock, now);
  if (ttl_ms == 0) return;
  REDLOCK_ASSERT(lock.claim != no_claim);
  REDLOCK_ASSERT(post_.claims[lock.claim].slot == table_.index(lock));
  for (MasterIndex m : Machine::to_put_back(lock) - puts_back_) {
    if (!post_[m].votes()) continue;
    if (post_.put_back(lock, m, ttl_ms, now)) {
      machine_.put_back_sent(lock, m);
      plan(post_[m]);
      want_turn();
    } else {
      puts_back_.add(m);
    }
  }
}

// Of all locks. A master that has no room again is tried again when it has gained some.
void Client::put_back_all(const Instant& now) {
  const Masters masters = puts_back_ & post_.voting();
  puts_back_ = {};
  for (unsigned i = 0; i < table_.capacity(); ++i) {
    Lock& lock = table_[i];
    if (lock.state == State::held && !(lock.hold.gone & masters).empty()) put_back(lock, now);
  }
}

// Ignore a notification while an answer of this master about this lock is under way. Ahead of the answer to our SET,
// the notification is about the key of the lock's last owner. Ahead of the answer to our extend, the extend itself may
// have caused the notification: servers before 6.2.8 and 7.0.5 ignore NOLOOP in scripts.
void Client::alarm(Lock& lock, MasterIndex m, bool votes_again, const Instant& now) {
  if (post_[m].owes_answer(lock.claim)) return;
  machine_.on_key_changed(lock, m, votes_again, now);
  plan(lock);
  want_turn();
}

// votes_again: the connection to m was lost, and notifications with it. Only an answer of m can tell which keys m has.
void Client::alarm_all(MasterIndex m, bool votes_again, const Instant& now) {
  for (unsigned i = 0; i < table_.capacity(); ++i) {
    if (table_[i].state == State::held) alarm(table_[i], m, votes_again, now);
  }
}

// A master that was never sent the SET has nothing to forget, and may still be given the key by a put-back.
void Client::forgotten(MasterIndex m, const Instant& now) {
  for (unsigned i = 0; i < table_.capacity(); ++i) {
    Lock& lock = table_[i];
    if (lock.state != State::held || !post_.claims[lock.claim].sent.has(m)) continue;
    perform(lock, machine_.on_key_missing(lock, m, false), now);
  }
}

}  // namespace redlock
