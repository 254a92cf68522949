// SPDX-License-Identifier: MIT
//
// Holders and masters: what a held lock hears of its key, and how the key gets back to a master that has lost it. What
// follows is the machine's to say.
//
// What it costs. A lock that is over within a third of its ttl: nothing. A longer one: behind each extend round the
// keys are tracked, which is CLIENT CACHING ahead of the script, 38 bytes and an answer of 5 in the same write, and
// one more read inside the script. To read the key apart, as waiters do, would be 73 bytes and two answers for each
// master and round, and PTTL does not tell whose key it is. So a change within the first third of the ttl is found by
// the first round; one that is told to everybody, as FLUSHALL is, at once.
#include "client/client.hpp"

namespace redlock {

// "Gone or foreign" is final unless a SET of ours may still come there. A token's script says no for other reasons,
// too.
bool Client::lacks_key(MasterIndex m, const Reply& reply, Lock& lock, Instant now) {
  const Claim& claim = claims_[reply.claim];
  if (reply.op == Op::token || (claim.pending | claim.stray).has(m)) return false;
  const Action action = machine_.on_key_missing(lock, m, reply.op == Op::extend ? reply.round : 0);
  if (action == Action::none) return false;
  perform(lock, action, now);
  return true;
}

// Like the SET of a round, but with what is left of the validity, and no vote: no round has the number 0. Of several
// names all or none, so a master that has lost only one of them stays without; always with the script's text, since who
// has lost its keys has often lost its scripts, too, and nobody asks a put-back again.
void Client::put_back(Lock& lock, Instant now) {
  const uint32_t ttl_ms = machine_.put_back_ttl(lock, now);
  if (ttl_ms == 0) return;
  const uint16_t index = lock.claim;
  REDLOCK_ASSERT(index != no_slot && claims_[index].slot == table_.index(lock));
  const Subject s = subject(index, ttl_ms);
  for (MasterIndex m : lock.hold.gone) {
    Session& session = sessions_[m];
    if (!session.votes() || !claims_.may_put_back(index, m, now)) continue;
    const bool by_script = lock.names.count() > 1 || session.asked_by_script();
    const Command command = by_script ? Command::sealed(session.space(), Op::acquire, s, session.sealed(), 0, false)
                                      : Command::plain(session.space(), Op::acquire, s, true);
    if (!session.room(command, claims_.reserved(m) + 2)) continue;
    session.ask(Op::acquire, index, 0, command, now);
    claims_.put_back_sent(index, m);
    machine_.put_back_sent(lock, m);
    soon(session.deadline());
    again_ = true;
  }
}

// What a master tells ahead of its answer to our SET is about the key of the lock's last owner. What it tells ahead of
// its answer to our extend may be about that very extend: servers before 6.2.8 and 7.0.5 ignore NOLOOP in scripts.
void Client::alarm(Lock& lock, MasterIndex m, Instant now) {
  if (sessions_[m].owes_answer(lock.claim)) return;
  machine_.on_key_changed(lock, m, now);
  plan(lock);
  again_ = true;
}

// The connection to m was lost, and notifications about keys with it. Only an answer tells what m has now.
void Client::alarm_all(MasterIndex m, Instant now) {
  for (unsigned i = 0; i < table_.capacity(); ++i) {
    if (table_[i].state == State::held) alarm(table_[i], m, now);
  }
}

void Client::forgotten(MasterIndex m, Instant now) {
  for (unsigned i = 0; i < table_.capacity(); ++i) {
    Lock& lock = table_[i];
    if (lock.state == State::held) perform(lock, machine_.on_key_missing(lock, m, 0), now);
  }
}

}  // namespace redlock
