// SPDX-License-Identifier: MIT
//
// Causes: what does an acquire wait for? Most causes follow from the masters' states alone, and are the same for every
// acquire of the client. Only while a quorum votes does the acquire's own last round tell.
#include "client/client.hpp"
#include "lock/quorum.hpp"

namespace redlock {
namespace {

constexpr Duration tell_again = Duration::ms(5'000);  // WAITING is repeated so often

}  // namespace

Client::Outlooks Client::outlooks() const {
  Outlooks out;
  for (MasterIndex m = 0; m < settings_.masters; ++m) {
    if (session(m).votes()) {
      ++out.voting;
    } else {
      ++out.others[static_cast<unsigned>(session(m).outlook())];
    }
  }
  return out;
}

// While a reading is under way its outcome is awaited: each write to a record makes all clients read it again, and no
// cause changes for this moment.
int Client::common_cause() const {
  const Outlooks now = outlooks();
  const unsigned quorum = quorum_of(settings_.masters);
  if (now.voting >= quorum) return REDLOCK_CAUSE_HELD;
  if (settings_.masters - now.never() < quorum) return REDLOCK_CAUSE_NEVER;
  if (!introduced_ && !introduced()) return REDLOCK_CAUSE_NONE;  // a master that was never tried may vote at once
  unsigned sum = now.voting + now.of(Guard::Outlook::watched);
  if (sum >= quorum) return REDLOCK_CAUSE_GUARD;
  sum += now.of(Guard::Outlook::soon);
  if (sum >= quorum) return cause_ != REDLOCK_CAUSE_NEVER ? cause_ : REDLOCK_CAUSE_NONE;
  if (now.changing()) sum += now.of(Guard::Outlook::moving) + now.of(Guard::Outlook::foreign);
  if (sum >= quorum) return REDLOCK_CAUSE_CHANGE;
  return REDLOCK_CAUSE_TOO_FEW;
}

// A master's state has changed, or an acquire was asked for while no quorum votes.
void Client::judge_waits(const Instant& now) {
  const int before = cause_;
  cause_ = common_cause();
  if (cause_ == REDLOCK_CAUSE_NEVER) return give_up(now);
  if (cause_ == before) return;
  for (unsigned i = 0; i < table_.capacity(); ++i) {
    Lock& lock = table_[i];
    if (!is_pending(lock)) continue;
    machine_.charge(lock, cause_ == REDLOCK_CAUSE_GUARD, now);
    plan(lock);
    note_wait(lock, false);
  }
}

// Masters that can never vote as things stand leave no quorum of others.
void Client::give_up(const Instant& now) {
  const bool changing = outlooks().changing();
  Masters guarded;
  MasterIndex first = 0;
  for (MasterIndex m = settings_.masters; m-- > 0;) {
    if (sessions_[m].guarded() && is_guards(sessions_[m].reason())) guarded.add(m);
    if (Outlooks::is_never(sessions_[m].outlook(), changing)) first = m;
  }
  const int error = sessions_[first].reason();
  const Masters failed = Masters::all(settings_.masters) - voting();
  for (unsigned i = 0; i < table_.capacity(); ++i) {
    Lock& lock = table_[i];
    if (is_pending(lock)) perform(lock, machine_.give_up(lock, failed, guarded, first, error), now);
  }
}

// The cause of an acquire that waits, or has just failed. NONE: its first round is open.
int Client::cause_of(const Lock& lock) const {
  if (lock.tell.err == REDLOCK_E_LOCKED) return REDLOCK_CAUSE_HELD;
  if (cause_ != REDLOCK_CAUSE_HELD && cause_ != REDLOCK_CAUSE_NONE) return cause_;
  switch (lock.wait.last_cause) {
    case REDLOCK_E_LOCKED:
      return REDLOCK_CAUSE_HELD;
    case REDLOCK_E_GUARD:
      return REDLOCK_CAUSE_GUARD;
    case REDLOCK_E_NO_QUORUM:
      return REDLOCK_CAUSE_TOO_FEW;
    default:
      return cause_ == REDLOCK_CAUSE_HELD ? REDLOCK_CAUSE_NONE : REDLOCK_CAUSE_TOO_FEW;
  }
}

// ---- the event WAITING ------------------------------------------------------------------------------------------

// A WAITING uses no place of the events that must be told: a bit of the lock says that a WAITING is due.
void Client::note_wait(Lock& lock, bool again) {
  if (!lock.options.tell_waiting || !is_pending(lock) || cause_ == REDLOCK_CAUSE_NONE) return;
  const int cause = cause_of(lock);
  if (cause == REDLOCK_CAUSE_NONE || (cause == lock.wait.told && !again)) return;
  if (cause == REDLOCK_CAUSE_NEVER) return;  // an acquire that has just come: it fails in this turn
  lock.wait.told = static_cast<uint8_t>(cause);
  if (!lock.wait.untold) ++events_;
  lock.wait.untold = true;
}

void Client::repeat_waits(const Instant& now) {
  if (now >= tell_at_) {
    tell_at_ = Instant::never();
    for (unsigned i = 0; i < table_.capacity(); ++i) note_wait(table_[i], true);
  }
  soon(tell_at_);
}

Lock& Client::take_waiting(Telling& tell, Event& out, const Instant& now) {
  uint16_t slot = 0;
  while (!table_[slot].wait.untold) ++slot;
  Lock& lock = table_[slot];
  forget_waiting(lock);
  tell.event = REDLOCK_EV_WAITING;
  tell.cause = lock.wait.told;
  if (tell.cause == REDLOCK_CAUSE_GUARD) out.event.guard_ms = guard_ms(now);
  bring_forward(tell_at_, now + tell_again);
  soon(tell_at_);
  return lock;
}

}  // namespace redlock
