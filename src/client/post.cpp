// SPDX-License-Identifier: MIT
#include "client/post.hpp"

namespace redlock {

Masters Post::voting() const {
  Masters mask;
  for (MasterIndex m = 0; m < settings_.masters; ++m) {
    if (sessions_[m].votes()) mask.add(m);
  }
  return mask;
}

bool Post::introduced() const {
  if (asked || voting().count() >= quorum_of(settings_.masters)) return true;
  for (MasterIndex m = 0; m < settings_.masters; ++m) {
    if (!sessions_[m].tried()) return false;
  }
  return true;
}

// ---- room -----------------------------------------------------------------------------------------------------

// is_new: the command is a SET of a value that the master was not sent yet, or an extend of one. Where the shared
// memory is full, no master has room.
Masters Post::with_room(Op op, const Names& names, Masters masters, Masters by_script, bool is_new) const {
  const bool sets = is_new && op != Op::extend;
  const size_t plain = command_size(names), sealed = plain + Command::sealed_size(settings_.key_prefix.size);
  size_t bytes = Shared::size_of(Command::caching().size);
  if (!(masters - by_script).empty()) bytes += Shared::size_of(plain);
  if (!(masters & by_script).empty()) bytes += Shared::size_of(sealed);
  Masters out;
  if (!shared_.has_room(bytes)) return out;
  for (MasterIndex m : masters) {
    if (sets && !claims.may_send(m)) continue;
    const Session& session = sessions_[m];
    const bool script = by_script.has(m);
    const unsigned requests = sets ? set_requests : op == Op::extend ? session.extend_requests() : 1;
    const bool apart = (script || !sets) && session.send_script_text(op);
    if (session.room(script ? sealed : plain, places(m, requests), apart)) out.add(m);
  }
  return out;
}

Masters Post::ready(const Lock& lock, Masters votes, Masters by_script) const {
  const bool extends = lock.wants == Wants::extend;
  if (extends) votes &= claims[lock.claim].sent;
  const Op op = extends ? Op::extend : lock.options.fenced ? Op::acquire_fenced : Op::acquire;
  return with_room(op, lock.names, votes, by_script, true);
}

Masters Post::able(Op op, const Lock& lock, Masters masters) const {
  masters &= voting();
  return with_room(op, lock.names, masters, masters, false);
}

int Post::why_unable(const Lock& lock, MasterIndex m) const {
  const Session& session = sessions_[m];
  switch (session.state()) {
    case Session::State::up:
      if (session.guarded()) return session.reason();
      // A master that was never sent the SET is not asked to extend.
      return lock.state == State::held && !claims[lock.claim].sent.has(m) ? REDLOCK_E_GONE : REDLOCK_E_NO_ROOM;
    case Session::State::suspect:
      return REDLOCK_E_SUSPECT;
    default:
      return session.reason() != 0 ? session.reason() : REDLOCK_E_DISCONNECTED;
  }
}

// ---- commands -------------------------------------------------------------------------------------------------

inline Subject Post::subject(uint16_t index, uint32_t ttl_ms, char (&hex)[ValueBytes::hex_size]) const {
  const Claim& c = claims[index];
  return {settings_.key_prefix, c.names, c.value.write_hex(hex), settings_.client_name, ttl_ms};
}

inline Command Post::encode(Space space, const Wording& what, MasterIndex m, bool by_name) const {
  char hex[ValueBytes::hex_size];
  const Subject s = subject(what.request.claim, what.ttl_ms, hex);
  if (!what.sealed) return Command::plain(space, what.op(), s, by_name);
  return Command::sealed(space, what.op(), s, sessions_[m].sealed(), what.token, by_name);
}

Command Post::encode_apart(const Wording& what, MasterIndex m) {
  return encode(sessions_[m].space(), what, m, false);
}

// Which of them need the text of an op's script?
Masters Post::without_script(Op op, Masters masters) const {
  Masters without;
  for (MasterIndex m : masters) {
    if (sessions_[m].send_script_text(op)) without.add(m);
  }
  return without;
}

// Every master gets the same bytes, written once, except for masters that do not know the script: these, `apart`, get
// its text.
void Post::ask(const Wording& what, Masters masters, Masters apart) {
  const Op op = what.op();
  for (MasterIndex m : apart) {
    if (op == Op::extend) sessions_[m].track_next(what.request.sent);
    sessions_[m].ask(what.request, encode_apart(what, m));
  }
  masters -= apart;
  if (masters.empty()) return;
  Masters tracked;
  for (MasterIndex m : op == Op::extend ? masters : Masters()) {
    if (sessions_[m].tracked()) tracked.add(m);
  }
  if (!tracked.empty()) {
    const Bytes caching = Command::caching();
    memcpy(shared_.space().data, caching.data, caching.size);
    shared_.add(caching.size, 0, tracked);
    const Request request = {what.request.sent, 0, 0, Request::look_caching, false};
    for (MasterIndex m : tracked) sessions_[m].ask_shared(request);
  }
  const Command command = encode(shared_.space(), what, *masters.begin(), true);
  shared_.add(command.text_size(), command.seal(), masters);
  for (MasterIndex m : masters) sessions_[m].ask_shared(what.request);
}

void Post::ask_round(const Lock& lock, Masters masters, Masters by_script, const Instant& now) {
  const bool extends = lock.state == State::held;
  ask_more(extends ? Op::extend : Op::acquire, lock, masters - by_script, false, now);
  const Op op = extends ? Op::extend : lock.options.fenced ? Op::acquire_fenced : Op::acquire;
  ask_more(op, lock, masters & by_script, true, now);
}

void Post::ask_more(Op op, const Lock& lock, Masters masters, bool by_script, const Instant& now) {
  if (masters.empty()) return;
  Wording what = wording(op, lock.claim, lock.round.number, lock.round.ttl_ms, now);
  // Without a guard an extend has nothing to compare.
  what.sealed = by_script && (op != Op::extend || settings_.guard != GuardMode::off);
  what.token = op == Op::token ? lock.fence.token : lock.fence.proposal;
  ask(what, masters, what.sealed || op != Op::acquire ? without_script(op, masters) : Masters());
}

// A put-back is no vote: its round number is 0, which no round has. A put-back by script always carries the script's
// text: a master that lost its keys has often lost its scripts, too, and a put-back is not sent again after NOSCRIPT.
// No reading goes ahead of a put-back, so behind a lapse the script compares.
// A put-back is not taken back either, so a slow connection gets none.
bool Post::put_back(const Lock& lock, MasterIndex m, uint32_t ttl_ms, const Instant& now) {
  Session& session = sessions_[m];
  REDLOCK_ASSERT(session.votes());
  if (session.lags() || !claims.may_put_back(lock.claim, m, now)) return false;
  Wording what = wording(Op::acquire, lock.claim, 0, ttl_ms, now);
  what.sealed = lock.names.count() > 1 || session.asked_by_script() || session.guard().lapsed(now);
  const Command command = encode_apart(what, m);
  if (!session.room(command, places(m, set_requests))) return false;
  session.ask(what.request, command);
  claims.put_back_sent(lock.claim, m);
  return true;
}

// Leaves room for a round and its delete: looks are optional.
bool Post::look(const Lock& lock, MasterIndex m, bool holder, const Instant& now) {
  Session& session = sessions_[m];
  const Command read = holder ? Command::holder(session.space(), settings_.key_prefix, lock.names)
                              : Command::look(session.space(), settings_.key_prefix, lock.names);
  if (!session.room(read, places(m, set_requests + Command::look_requests))) return false;
  session.look(lock.slot, static_cast<uint32_t>(lock.generation), read, holder, now);
  return true;
}

// ---- deletes --------------------------------------------------------------------------------------------------

void Post::end(uint16_t index, Masters owed, const Instant& now) {
  claims.end(index, owed, now);
  if (!owed.empty()) ended_.push(&claims[0], index);
}

// A delete is queued behind everything that was sent to the same master before.
bool Post::send_deletes(uint16_t index, Masters masters, const Instant& now) {
  const Claim& claim = claims[index];
  REDLOCK_ASSERT(claim.ended);
  REDLOCK_ASSERT((masters - claim.owed).empty());
  const size_t size = command_size(claim.names);
  Masters sent, apart;
  if (!shared_.has_room(Shared::size_of(size))) return false;
  for (MasterIndex m : masters) {
    const Session& session = sessions_[m];
    if (!session.connected()) continue;
    const bool text = session.send_script_text(Op::release);
    if (!session.room(size, places(m, claim.reserved.has(m) ? 0 : 1), text)) continue;
    sent.add(m);
    if (text) apart.add(m);
  }
  claims.deletes_queued(index, sent);
  ask(wording(Op::release, index, 0, 0, now), sent, apart);
  return true;
}

Post::Paid Post::pay_debts(const Instant& now) {
  Paid paid;
  while (!ended_.empty()) {
    const uint16_t index = ended_.first();
    ended_.remove(&claims[0], index);
    const Masters owed = claims[index].owed;
    if (owed.empty()) {
      claims.unqueued(index);
    } else {
      (send_deletes(index, owed, now) ? paid.queued : paid.full) = true;
    }
  }
  if (!claims.owes()) return paid;
  for (MasterIndex m = 0; m < settings_.masters; ++m) {
    if (!claims.owes(m) || !sessions_[m].connected()) continue;
    for (uint16_t i = claims.next_owed(m, 0); i != no_claim; i = claims.next_owed(m, static_cast<uint16_t>(i + 1))) {
      (send_deletes(i, Masters::of(m), now) ? paid.queued : paid.full) = true;
    }
  }
  return paid;
}

// ---- behind a turn --------------------------------------------------------------------------------------------

bool Post::take_back(MasterIndex m, Request& out, const Instant& now) {
  while (sessions_[m].take_back(out)) {
    if (!Request::is_about_claim(out.kind)) continue;  // ahead of an extend, which was taken back
    const Op op = static_cast<Op>(out.kind);
    if (op == Op::release) claims.delete_unknown(out.claim, m);
    // As after a refusal: the value does not lie there.
    if (op == Op::acquire || op == Op::acquire_fenced) claims.set_answered(out.claim, m, true, now);
    return true;
  }
  return false;
}

bool Post::needs_port() {
  if (!for_port) return false;
  for_port = false;
  for (MasterIndex m = 0; m < settings_.masters; ++m) {
    if (sessions_[m].untold() || sessions_[m].wish() != Session::Wish::none) for_port = true;
  }
  return for_port;
}

}  // namespace redlock
