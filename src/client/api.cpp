// SPDX-License-Identifier: MIT
//
// The calls of the API on the loop's thread. A call only notes what is wanted, and the next turn carries the wish out.
#include "client/client.hpp"

namespace redlock {

int Client::acquire(const Names& names, const Options& options, redlock_event_fn callback, void* user,
                    uint64_t& handle) {
  if (phase_ != Phase::open) return REDLOCK_E_CLOSED;
  Lock* lock = table_.take();
  if (lock == nullptr) return REDLOCK_E_TABLE_FULL;
  lock->callback = callback;
  lock->user = user;
  REDLOCK_ASSERT(names.bytes() <= settings_.resource_bytes);
  lock->names.assign(names_ + size_t{table_.index(*lock)} * settings_.resource_bytes, names);
  machine_.accept(*lock, options);
  queue_.enter(*lock);
  if (options.urgent) hurry_before(*lock);
  want_round(*lock);
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
  want_turn();
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
  want_turn();
  return 0;
}

int Client::close(Duration grace, const Instant& now) {
  if (phase_ != Phase::open) return REDLOCK_E_CLOSED;
  phase_ = Phase::draining;
  close_by_ = now + grace;
  soon(close_by_);
  for (unsigned i = 0; i < table_.capacity(); ++i) {
    Lock& lock = table_[i];
    if (lock.state != State::free && lock.state != State::over) perform(lock, machine_.release(lock), now);
  }
  post_.claims.end_lingering(now);
  soon(post_.claims.deadline());
  tell_kept_back();
  want_turn();
  return 0;
}

int Client::suspended(const Instant& now) {
  if (phase_ != Phase::open) return REDLOCK_E_CLOSED;
  clock_jumped(now);
  want_turn();
  return 0;
}

// The caller says that no lock is held now. The statement ends after two connect timeouts: of a master that is reached
// only later, the caller cannot know what others hold there by then.
int Client::commission(MasterIndex m, const Instant& now) {
  if (phase_ != Phase::open) return REDLOCK_E_CLOSED;
  const Instant until = now + settings_.connect_timeout + settings_.connect_timeout;
  for (MasterIndex k = 0; k < settings_.masters; ++k) {
    if (m != settings_.masters && m != k) continue;
    post_[k].commission(until, now);
    plan(post_[k]);
  }
  want_turn();
  return 0;
}

int Client::fence_init(Bytes resource) {
  if (phase_ != Phase::open) return REDLOCK_E_CLOSED;
  return proposals_.allow_floor(resource) ? 0 : REDLOCK_E_TABLE_FULL;
}

void Client::go_on_closing(const Instant& now) {
  if (notices_.of_locks()) want_turn();  // events are delivered behind the turn, and nothing else may follow them
  if (wants_turn()) return;
  if (post_.claims.debts() != 0 && now < close_by_) return;
  phase_ = Phase::disconnecting;
  close_by_ = Instant::never();
  for (MasterIndex m = 0; m < settings_.masters; ++m) post_[m].close_quietly();
}

bool Client::is_closed() const {
  if (phase_ != Phase::disconnecting) return false;
  for (MasterIndex m = 0; m < settings_.masters; ++m) {
    if (post_[m].state() != Session::State::down) return false;
  }
  return true;
}

}  // namespace redlock
