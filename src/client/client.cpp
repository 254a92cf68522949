// SPDX-License-Identifier: MIT
#include "client/client.hpp"

#include "lock/quorum.hpp"

namespace redlock {

// ---- inputs ---------------------------------------------------------------------------------------------------

void Client::run_due(Instant now) {
  deadline_ = Instant::never();
  for (unsigned page = 0; page < agenda_.pages(); ++page) {
    if (now >= agenda_.due(page)) run_locks(page, now);
    soon(agenda_.due(page));
  }
  const Masters votes = voting();
  for (MasterIndex m = 0; m < settings_.masters; ++m) soon(sessions_[m].on_time(now));
  take_news(now);
  for (MasterIndex m : voting() - votes) wake_waiters(m, now);
  soon(claims_.on_time(now));
  soon(close_by_);
  // Between two callbacks an event or a wish may have come of it. Not while the client closes: close_by_ then stays due
  // until all is told, and has the timer.
  if (phase_ == Phase::open) again_ = true;
}

void Client::run_locks(unsigned page, Instant now) {
  agenda_.clear(page);
  for (unsigned i = agenda_.begin(page); i < agenda_.end(page); ++i) {
    Lock& lock = table_[i];
    if (lock.state == State::free) continue;
    if (now >= machine_.deadline(lock)) perform(lock, machine_.on_time(lock, now), now);
    plan(lock);
  }
}

void Client::clock_jumped(Instant now) {
  ++counters_.clock_jumps;
  for (unsigned i = 0; i < table_.capacity(); ++i) {
    if (table_[i].state != State::free && table_[i].state != State::over) {
      perform(table_[i], machine_.jumped(table_[i], now), now);
    }
  }
  for (MasterIndex m = 0; m < settings_.masters; ++m) sessions_[m].clock_jumped(now);
  agenda_.all_due(now);  // every deadline is judged anew
  soon(now);
}

void Client::add_entropy(const void* bytes, size_t size) {
  pool_.add(bytes, size);
  uint64_t seed;
  if (!seeded_ && take_seed(seed)) {
    machine_.seed(seed);
    seeded_ = true;
  }
  for (MasterIndex m = 0; m < settings_.masters; ++m) {
    if (sessions_[m].wants_seed() && take_seed(seed)) sessions_[m].seed(seed);
  }
}

bool Client::take_seed(uint64_t& seed) {
  if (!pool_.has(sizeof seed)) return false;
  pool_.take(reinterpret_cast<unsigned char*>(&seed), sizeof seed);
  return true;
}

void Client::connecting(MasterIndex m, Instant now) {
  sessions_[m].connecting(now);
  soon(sessions_[m].deadline());
}

void Client::connected(MasterIndex m, Instant now) {
  on_time(now);
  sessions_[m].connected(now, machine_.draw());
  soon(sessions_[m].deadline());
}

void Client::closed(MasterIndex m, int reason, Instant now) {
  on_time(now);
  sessions_[m].closed(now, reason, machine_.draw());
  sessions_[m].leave_strays(claims_.broke(m));
  soon(claims_.deadline());
  if (sessions_[m].reason() == REDLOCK_E_READONLY) withdrawn(m, now);
  identified();
  take_news(now);
  for (unsigned i = 0; i < table_.capacity(); ++i) {
    Lock& lock = table_[i];
    if (lock.state != State::free && lock.round.open) perform(lock, fail_votes(lock, Masters::of(m), now), now);
    if (lock.state == State::waiting || lock.state == State::acquiring) {
      machine_.master_left(lock, m, now);
      plan(lock);
    }
  }
  if (phase_ == Phase::disconnecting) sessions_[m].close_quietly();
  soon(sessions_[m].deadline());
  again_ = true;
}

void Client::received(MasterIndex m, size_t size, Instant now) {
  on_time(now);
  Session& session = sessions_[m];
  const bool was_up = session.votes();
  bool plain = session.plain();
  bool plain_only = plain;
  session.received(size);
  for (Reply reply;;) {
    if (!plain || !session.plain_yes(now, reply)) {
      if (!session.unread()) break;
      plain_only = false;
      if (!session.next_item(now, reply)) break;
      plain = session.plain();
    }
    if (reply.kind == Reply::Kind::answer) {
      route_answer(m, reply, now);
    } else {
      hear_news(m, reply, now);
    }
  }
  if (!plain_only) {
    take_news(now);
    if (!stepped_.empty()) quarantine_stepped(now);
    if (!was_up && session.votes()) wake_waiters(m, now);
    if (!session.idle()) again_ = true;
    soon(session.deadline());
  } else if (session.in_flight() == 0) {
    soon(session.ping_at());
  }
  soon(claims_.deadline());
  if (!starts_.empty() || looks_ || claims_.owes(m) || phase_ != Phase::open) again_ = true;
}

void Client::turn(Instant now) {
  on_time(now);
  again_ = false;
  pay_debts(now);
  start_rounds(now);
  if (looks_) send_looks(now);
}

// ---- what follows from a step ---------------------------------------------------------------------------------

void Client::perform(Lock& lock, Action action, Instant now) {
  while (action == Action::store) action = store_token(lock, now);
  carry_out(lock, action, now);
  if (lock.state == State::over) hand_on(lock, now);
}

// The lock is over: the next in line for its resources may begin.
void Client::hand_on(Lock& lock, Instant now) {
  starts_.remove(&table_[0], table_.index(lock));
  uint16_t first[Names::max];
  const unsigned n = queue_.leave(lock, first);
  for (unsigned i = 0; i < n; ++i) carry_out(table_[first[i]], machine_.first(table_[first[i]], lock), now);
}

void Client::carry_out(Lock& lock, Action action, Instant now) {
  switch (action) {
    case Action::none:
    case Action::store:  // done by perform()
      break;
    case Action::start:
      starts_.push(&table_[0], table_.index(lock));
      again_ = true;
      break;
    case Action::drop:
      end_claim(lock, true, now);
      break;
    case Action::watch:
      end_claim(lock, true, now);
      watch(lock, now);
      break;
    case Action::release:
      end_claim(lock, false, now);
      break;
    case Action::put_back:
      put_back(lock, now);
      break;
    case Action::linger:
      claims_.linger(lock.claim, lock.valid_until);
      lock.claim = no_slot;
      soon(lock.valid_until);
      break;
  }
  tell(lock);
  if (lock.state != State::over) plan(lock);
}

void Client::end_claim(Lock& lock, bool spare_refused, Instant now) {
  const uint16_t index = lock.claim;
  if (index == no_slot) return;
  lock.claim = no_slot;
  const Claim& claim = claims_[index];
  const Masters owed = spare_refused ? claim.sent - claim.refused : claim.sent;
  claims_.end(index, owed, now);
  if (!owed.empty()) ended_.push(&claims_[0], index);
  soon(claims_.deadline());
  again_ = true;
}

// ---- answers and news -----------------------------------------------------------------------------------------

void Client::hear_news(MasterIndex m, const Reply& reply, Instant now) {
  again_ = true;
  switch (reply.kind) {
    case Reply::Kind::answer:  // no news: route_answer()
      break;
    case Reply::Kind::looked: {
      Lock& lock = table_[reply.claim];
      if (static_cast<uint32_t>(lock.generation) != reply.round) return;
      machine_.looked(lock, m, reply.ttl, now);
      return plan(lock);
    }
    case Reply::Kind::key_changed: {
      const Bytes prefix = settings_.key_prefix;
      if (reply.key.size < prefix.size || Bytes(reply.key.data, prefix.size) != prefix) return;
      return changed(m, Bytes(reply.key.data + prefix.size, reply.key.size - prefix.size), now);
    }
    case Reply::Kind::all_changed:
      for (unsigned i = 0; i < table_.capacity(); ++i) change(table_[i], m, now);
      alarm_all(m, now);
      break;
  }
}

inline void Client::route_answer(MasterIndex m, const Reply& reply, Instant now) {
  if (reply.op == Op::release) {
    route_delete(m, reply, now);
  } else {
    route_round(m, reply, now);
  }
}

// Does the master have the key? What this tells is more than a vote: it is true whatever round asked.
inline bool Client::hear_of_key(MasterIndex m, const Reply& reply, Lock& lock, Instant now) {
  if (reply.meaning.answer == Answer::yes) machine_.has(lock, m);
  return reply.meaning.answer == Answer::no && lacks_key(m, reply, lock, now);
}

inline void Client::route_round(MasterIndex m, const Reply& reply, Instant now) {
  const uint16_t slot = claims_[reply.claim].slot;
  const bool unknown = reply.meaning.error == REDLOCK_E_NOSCRIPT;
  if (reply.op == Op::acquire || reply.op == Op::acquire_fenced) {
    // Asked again, the SET is as unanswered as before.
    if (unknown && slot != no_slot && ask_again(m, reply, table_[slot], now)) return;
    claims_.set_answered(reply.claim, m, reply.meaning.answer == Answer::no, now);
  }
  if (slot == no_slot || table_[slot].claim != reply.claim) return;
  Lock& lock = table_[slot];
  if (hear_of_key(m, reply, lock, now)) return;
  const bool extends = reply.op == Op::extend || reply.op == Op::token;
  if (unknown && extends && ask_again(m, reply, lock, now)) return;
  if (lock.round.number == reply.round && lock.round.open) route_vote(m, reply, lock, now);
  if (reply.op == Op::acquire_fenced && lock.options.fenced) route_late_grant(m, reply, lock, now);
}

// NOSCRIPT of a round that is still wanted: the same with the script's text.
bool Client::ask_again(MasterIndex m, const Reply& reply, Lock& lock, Instant now) {
  if (lock.claim != reply.claim || lock.round.number != reply.round) return false;
  if (reply.op == Op::acquire && !by_script(lock, m)) return false;  // a SET, which is no script
  const bool wanted = reply.op == Op::token ? lock.state == State::held || lock.fence.storing
                                            : lock.round.open && !lock.fence.storing;
  if (!wanted) return false;
  // It may have said nonsense right behind this answer, or have lost its vote.
  if (!sessions_[m].votes() || !sessions_[m].room(round_size(lock, m), claims_.reserved(m) + 1)) return false;
  sessions_[m].ask(reply.op, reply.claim, reply.round, round_command(reply.op, lock, m, false), now);
  again_ = true;
  return true;
}

inline void Client::route_vote(MasterIndex m, const Reply& reply, Lock& lock, Instant now) {
  if (lock.state == State::acquiring && lock.fence.storing != (reply.op == Op::token)) return;  // of the first part, late
  if (reply.op == Op::acquire_fenced && lock.options.fenced) hear(lock, m, reply.meaning.counter);
  const Vote vote = reply.meaning.answer == Answer::yes  ? Vote::granted
                    : reply.meaning.answer == Answer::no ? Vote::refused
                                                         : Vote::failed;
  const Action action = machine_.vote(lock, m, vote, reply.meaning.error, now);
  if (!lock.round.open || action != Action::none) perform(lock, action, now);
}

inline void Client::route_delete(MasterIndex m, const Reply& reply, Instant now) {
  if (reply.meaning.error == REDLOCK_E_NOSCRIPT) {
    claims_.delete_unknown(reply.claim, m);
    send_deletes(reply.claim, Masters::of(m), now);
    return;
  }
  const Claims::Deleted how = reply.meaning.answer == Answer::yes  ? Claims::Deleted::yes
                              : reply.meaning.answer == Answer::no ? Claims::Deleted::absent
                                                                   : Claims::Deleted::error;
  // The server does not tell us of changes that we made ourselves.
  if (how == Claims::Deleted::yes && watched_) {
    for (Bytes name : claims_[reply.claim].names) changed(m, name, now);
  }
  claims_.delete_answered(reply.claim, m, how, now);
}

// ---- the API --------------------------------------------------------------------------------------------------

int Client::acquire(const Names& names, const Options& options, redlock_event_fn callback, void* user, uint64_t& handle) {
  if (phase_ != Phase::open) return REDLOCK_E_CLOSED;
  Lock* lock = table_.take();
  if (lock == nullptr) return REDLOCK_E_TABLE_FULL;
  lock->callback = callback;
  lock->user = user;
  REDLOCK_ASSERT(names.bytes() <= settings_.resource_bytes);
  lock->names.assign(names_ + size_t{table_.index(*lock)} * settings_.resource_bytes, names);
  machine_.accept(*lock, options);
  queue_.enter(*lock);
  starts_.push(&table_[0], table_.index(*lock));
  again_ = true;
  handle = table_.handle(*lock);
  return 0;
}

int Client::cancel(uint64_t handle) {
  Lock* lock = nullptr;
  const Table::Found found = table_.find(handle, lock);
  if (found != Table::Found::present) return found == Table::Found::past ? 0 : REDLOCK_E_STALE;
  if (lock->state == State::over) return 0;
  if (lock->state == State::held && lock->tell.event != REDLOCK_EV_ACQUIRED) return REDLOCK_E_BUSY;
  perform(*lock, machine_.cancel(*lock, REDLOCK_E_CANCELED), now_);
  again_ = true;
  return 0;
}

int Client::extend(uint64_t handle, uint32_t ttl_ms) {
  Lock* lock = nullptr;
  if (table_.find(handle, lock) != Table::Found::present) return REDLOCK_E_STALE;
  if (phase_ != Phase::open) return REDLOCK_E_CLOSED;
  const int err = machine_.extend(*lock, ttl_ms != 0 ? ttl_ms : lock->options.ttl_ms);
  if (err == 0) perform(*lock, Action::start, now_);
  return err;
}

int Client::release(uint64_t handle) {
  Lock* lock = nullptr;
  const Table::Found found = table_.find(handle, lock);
  if (found != Table::Found::present) return found == Table::Found::past ? 0 : REDLOCK_E_STALE;
  if (lock->state == State::over) return 0;
  perform(*lock, machine_.release(*lock), now_);
  again_ = true;
  return 0;
}

int Client::close(Duration grace, Instant now) {
  if (phase_ != Phase::open) return REDLOCK_E_CLOSED;
  phase_ = Phase::draining;
  close_by_ = now + grace;
  soon(close_by_);
  for (unsigned i = 0; i < table_.capacity(); ++i) {
    Lock& lock = table_[i];
    if (lock.state != State::free && lock.state != State::over) perform(lock, machine_.release(lock), now);
  }
  again_ = true;
  return 0;
}

int Client::suspended(Instant now) {
  if (phase_ != Phase::open) return REDLOCK_E_CLOSED;
  clock_jumped(now);
  again_ = true;
  return 0;
}

void Client::flushed(Instant now) {
  if (phase_ != Phase::draining || events_ != 0 || again_) return;
  if (claims_.debts() != 0 && now < close_by_) return;
  phase_ = Phase::disconnecting;
  close_by_ = Instant::never();
  for (MasterIndex m = 0; m < settings_.masters; ++m) sessions_[m].close_quietly();
}

bool Client::is_closed() const {
  if (phase_ != Phase::disconnecting) return false;
  for (MasterIndex m = 0; m < settings_.masters; ++m) {
    if (sessions_[m].state() != Session::State::down) return false;
  }
  return true;
}

}  // namespace redlock
