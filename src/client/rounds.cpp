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

void Client::start_rounds(Instant now) {
  if (starts_.empty()) return;
  const Masters votes = voting();
  const bool quorum_votes = votes.count() >= quorum_of(settings_.masters);
  Masters comparing;
  for (MasterIndex m : votes) {
    if (sessions_[m].asked_by_script()) comparing.add(m);
  }
  for (uint16_t i = starts_.first(); i != no_slot;) {
    Lock& lock = table_[i];
    i = starts_.next(&table_[0], i);
    if (lock.wants == Wants::acquire) machine_.see(lock, cause_ == REDLOCK_CAUSE_GUARD, now);
    const bool its_turn = lock.wants != Wants::acquire || queue_.is_first(lock);
    if (!its_turn || (lock.turn.yields && lock.wants != Wants::nothing)) {
      starts_.remove(&table_[0], table_.index(lock));
      perform(lock, its_turn ? machine_.yield(lock, now) : machine_.queue(lock, now), now);
      note_wait(lock, false);
      continue;
    }
    const Masters by_script = script_only(lock) ? votes : comparing;
    const Masters ready = able(votes, by_script, lock.wants, lock);
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
bool Client::may_begin(Lock& lock, bool quorum_votes, Masters ready, Instant now) {
  if (lock.tell.event != 0) {  // the event carries the votes of the last round, which a new round would overwrite
    again_ = true;
    return false;
  }
  if (!introduced_ && lock.wants == Wants::acquire && !introduced()) return false;
  if (!quorum_votes) return true;
  const bool acquire = lock.wants == Wants::acquire;
  if (acquire && !pool_.has(REDLOCK_VALUE_RANDOM)) {
    machine_.put_off_freely(lock);
    soon(now + entropy_retry);
    return false;
  }
  if (ready.count() >= quorum_of(settings_.masters) && !(acquire && claims_.full())) return true;
  return !machine_.put_off(lock, now);
}

// Has every master been tried once, or does a quorum vote? Before that a round would only be lost because the client
// has just been created.
bool Client::introduced() const {
  if (voting().count() >= quorum_of(settings_.masters)) return true;
  for (MasterIndex m = 0; m < settings_.masters; ++m) {
    if (!sessions_[m].tried()) return false;
  }
  return true;
}

void Client::begin_round(Lock& lock, Masters ready, Masters by_script, Instant now) {
  introduced_ = true;
  const bool acquire = lock.wants == Wants::acquire;
  if (acquire && claims_.full()) ready = {};
  if (!machine_.begin(lock, ready, now)) return carry_out(lock, Action::none, now);
  if (acquire && lock.options.fenced) propose(lock);
  if (acquire) ++counters_.rounds;
  plan(lock);
  const Masters unable = Masters::all(settings_.masters) - ready;
  const Action action = !unable.empty() ? fail_votes(lock, unable, now) : Action::none;
  if (!lock.round.open) return perform(lock, action, now);  // lost before a byte was sent

  if (acquire) lock.claim = make_claim(lock);
  const uint16_t claim = lock.claim;
  if (claims_[claim].ttl_ms < lock.round.ttl_ms) claims_[claim].ttl_ms = lock.round.ttl_ms;
  REDLOCK_ASSERT(claim != no_slot && claims_[claim].used && !claims_[claim].ended);
  if (acquire) claims_.sets_sent(claim, ready);
  const Masters plain = ready - by_script;
  for (MasterIndex m : ready & by_script) {
    ask_script(!acquire ? Op::extend : lock.options.fenced ? Op::acquire_fenced : Op::acquire, lock, m, now);
  }
  ask(acquire ? Op::acquire : Op::extend, claim, lock.round.number, lock.round.ttl_ms, plain, now);
}

// Every master gets the same bytes, except for masters that do not know the script: these get its text.
void Client::ask(Op op, uint16_t claim, uint32_t round, uint32_t ttl_ms, Masters masters, Instant now) {
  const Subject s = subject(claim, ttl_ms);
  const Session::Request request = {now, round, claim, static_cast<uint16_t>(op)};
  Masters forgetful;
  if (op == Op::extend) {
    for (MasterIndex m : masters) sessions_[m].track_next(now);
  }
  if (op != Op::acquire) {
    for (MasterIndex m : masters) {
      if (sessions_[m].send_script_text(op)) forgetful.add(m);
    }
  }
  say(request, masters - forgetful, s, true);
  if (!forgetful.empty()) say(request, forgetful, s, false);
}

// The command is encoded once, into the first master's transmit buffer, and copied to the other masters from there.
void Client::say(const Session::Request& request, Masters masters, const Subject& s, bool by_name) {
  if (masters.empty()) return;
  const MasterIndex first = *masters.begin();
  const Command command = Command::plain(sessions_[first].space(), static_cast<Op>(request.kind), s, by_name);
  for (MasterIndex m : masters) sessions_[m].ask(request, command);
}

Action Client::fail_votes(Lock& lock, Masters masters, Instant now) {
  Action action = Action::none;
  for (MasterIndex m : masters) {
    if (lock.round.open) action = machine_.vote(lock, m, Vote::failed, why_unable(lock, m), now);
  }
  return action;
}

uint16_t Client::make_claim(Lock& lock) {
  const uint16_t claim = claims_.make(table_.index(lock), lock.names, lock.round.ttl_ms);
  pool_.take_hex(claims_[claim].value_hex);
  return claim;
}

Masters Client::voting() const {
  Masters mask;
  for (MasterIndex m = 0; m < settings_.masters; ++m) {
    if (sessions_[m].votes()) mask.add(m);
  }
  return mask;
}

// Which of the voting masters can be sent this round? A SET needs room for itself and, later, for its delete.
Masters Client::able(Masters votes, Masters by_script, Wants wants, const Lock& lock) const {
  Masters mask;
  const bool acquire = wants != Wants::extend;
  const size_t plain = command_size(lock.names) + (acquire ? 0 : Command::caching().size);
  for (MasterIndex m : acquire ? votes : votes & claims_[lock.claim].sent) {
    if (acquire && !claims_.may_send(m)) continue;
    const unsigned requests = acquire ? 2 : sessions_[m].extend_requests();
    const size_t bytes = plain + (by_script.has(m) ? Command::sealed_max : 0);
    if (sessions_[m].room(bytes, claims_.reserved(m) + requests)) mask.add(m);
  }
  return mask;
}

int Client::why_unable(const Lock& lock, MasterIndex m) const {
  switch (sessions_[m].state()) {
    case Session::State::up:
      if (sessions_[m].guarded()) return sessions_[m].reason();
      // A master that was never sent the SET is not asked to extend.
      return lock.state == State::held && !claims_[lock.claim].sent.has(m) ? REDLOCK_E_GONE : REDLOCK_E_NO_ROOM;
    case Session::State::suspect:
      return REDLOCK_E_SUSPECT;
    default:
      return sessions_[m].reason() != 0 ? sessions_[m].reason() : REDLOCK_E_DISCONNECTED;
  }
}

Subject Client::subject(uint16_t index, uint32_t ttl_ms) const {
  const Claim& c = claims_[index];
  return {settings_.key_prefix, c.names, Bytes(c.value_hex, sizeof c.value_hex),
          settings_.client_name, ttl_ms};
}

// An upper bound for the size of any command about these names, without a script's text.
size_t Client::command_size(const Names& names) const {
  const size_t more = names.count() - 1;
  return Command::frame_max + settings_.key_prefix.size + names.bytes() + REDLOCK_VALUE_MAX +
         more * (settings_.key_prefix.size + Command::name_max);
}

size_t Client::round_size(const Lock& lock, MasterIndex m) const {
  return command_size(lock.names) + (by_script(lock, m) ? Command::sealed_max : 0);
}

}  // namespace redlock
