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
bool Client::may_begin(Lock& lock, bool quorum_votes, Masters ready, const Instant& now) {
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

void Client::begin_round(Lock& lock, Masters ready, Masters by_script, const Instant& now) {
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
  Wording what = wording(acquire ? Op::acquire : Op::extend, claim, lock.round.number, lock.round.ttl_ms, now);
  ask(what, ready - by_script);
  if ((ready & by_script).empty()) return;
  ask(wording_of_round(acquire && lock.options.fenced ? Op::acquire_fenced : what.op(), lock, now), ready & by_script);
}

Command Client::encode(Space space, const Wording& what, MasterIndex m, bool by_name) const {
  char hex[ValueBytes::hex_size];
  const Subject s = subject(what.request.claim, what.ttl_ms, hex);
  if (!what.sealed) return Command::plain(space, what.op(), s, by_name);
  return Command::sealed(space, what.op(), s, sessions_[m].sealed(), what.token, by_name);
}

// Which of them need the text of an op's script?
Masters Client::without_script(Op op, Masters masters) const {
  Masters without;
  for (MasterIndex m : masters) {
    if (sessions_[m].send_script_text(op)) without.add(m);
  }
  return without;
}

// Every master gets the same bytes, written once, except for masters that do not know the script: these get its text.
void Client::ask(const Wording& what, Masters masters) {
  if (masters.empty()) return;
  const Op op = what.op();
  const bool script = what.sealed || op != Op::acquire;
  Masters tracked;
  if (script) {
    const Masters apart = without_script(op, masters);
    for (MasterIndex m : apart) {
      if (op == Op::extend) sessions_[m].track_next(what.request.sent);
      sessions_[m].ask(what.request, encode(sessions_[m].space(), what, m, false));
    }
    masters -= apart;
    if (masters.empty()) return;
    for (MasterIndex m : op == Op::extend ? masters : Masters()) {
      if (sessions_[m].tracked()) tracked.add(m);
    }
  }
  if (!tracked.empty()) {
    const Bytes caching = Command::caching();
    memcpy(shared_.space().data, caching.data, caching.size);
    shared_.add(caching.size, 0, tracked);
    const Session::Request request = {what.request.sent, 0, 0, Session::Request::look_caching, false};
    for (MasterIndex m : tracked) sessions_[m].ask_shared(request);
  }
  const Command command = encode(shared_.space(), what, *masters.begin(), true);
  shared_.add(command.text_size(), command.seal(), masters);
  for (MasterIndex m : masters) sessions_[m].ask_shared(what.request);
}

void Client::take_all_back(const Instant& now) {
  for (MasterIndex m = 0; m < settings_.masters; ++m) {
    if (!sessions_[m].tx().empty()) take_back(m, now);
  }
}

// This connection was slow. A command that the connection did not begin to take counts as never sent.
void Client::take_back(MasterIndex m, const Instant& now) {
  for (Session::Request request; sessions_[m].take_back(request); again_ = true) {
    if (!Session::Request::is_about_claim(request.kind)) continue;  // ahead of an extend, which was taken back
    const Op op = static_cast<Op>(request.kind);
    if (op == Op::release) {
      claims_.delete_unknown(request.claim, m);
      continue;
    }
    const bool acquires = op == Op::acquire || op == Op::acquire_fenced;
    // As after a refusal: the value does not lie there.
    if (acquires) claims_.set_answered(request.claim, m, true, now);
    const uint16_t slot = claims_[request.claim].slot;
    if (slot == no_slot || table_[slot].claim != request.claim) continue;
    Lock& lock = table_[slot];
    Action action = acquires ? machine_.on_key_missing(lock, m, 0) : Action::none;
    const bool other_part = lock.state == State::acquiring && lock.fence.storing != (op == Op::token);
    if (lock.round.number == request.round && !other_part) action = fail_votes(lock, Masters::of(m), now);
    perform(lock, action, now);
  }
  plan(sessions_[m]);
  soon(claims_.deadline());
}

Action Client::fail_votes(Lock& lock, Masters masters, const Instant& now) {
  Action action = Action::none;
  for (MasterIndex m : masters) {
    if (lock.round.open) action = machine_.vote(lock, m, Vote::failed, why_unable(lock, m), now);
  }
  return action;
}

uint16_t Client::make_claim(Lock& lock) {
  const uint16_t claim = claims_.make(table_.index(lock), lock.names, lock.round.ttl_ms);
  pool_.take(claims_[claim].value.random, sizeof claims_[claim].value.random);
  return claim;
}

Masters Client::voting() const {
  Masters mask;
  for (MasterIndex m = 0; m < settings_.masters; ++m) {
    if (sessions_[m].votes()) mask.add(m);
  }
  return mask;
}

// Which of the voting masters can be sent this round? A SET needs room for itself and, later, for its delete. Where the
// shared memory is full, none can: the next turn has room.
Masters Client::able(Masters votes, Masters by_script, Wants wants, const Lock& lock) const {
  const bool acquire = wants != Wants::extend;
  const size_t plain = command_size(lock.names), sealed = plain + sealed_size();
  const Op op = !acquire ? Op::extend : lock.options.fenced ? Op::acquire_fenced : Op::acquire;
  if (!acquire) votes &= claims_[lock.claim].sent;
  size_t bytes = Shared::size_of(Command::caching().size);
  if (!(votes - by_script).empty()) bytes += Shared::size_of(plain);
  if (!(votes & by_script).empty()) bytes += Shared::size_of(sealed);
  Masters mask;
  if (!shared_.has_room(bytes)) return mask;
  for (MasterIndex m : votes) {
    const bool script = by_script.has(m);
    if (acquire && !claims_.may_send(m)) continue;
    const Session& session = sessions_[m];
    const unsigned requests = acquire ? 2 : session.extend_requests();
    const bool apart = (script || !acquire) && session.send_script_text(op);
    if (session.room(script ? sealed : plain, claims_.reserved(m) + requests, apart)) mask.add(m);
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

Subject Client::subject(uint16_t index, uint32_t ttl_ms, char (&hex)[ValueBytes::hex_size]) const {
  const Claim& c = claims_[index];
  return {settings_.key_prefix, c.names, c.value.write_hex(hex), settings_.client_name, ttl_ms};
}

}  // namespace redlock
