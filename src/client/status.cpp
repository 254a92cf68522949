// SPDX-License-Identifier: MIT
//
// The status of a client's locks and masters.
#include "client/fleet.hpp"
#include "client/notices.hpp"
#include "lock/quorum.hpp"
#include "lock/validity.hpp"

namespace redlock {
namespace {

int64_t ms_until(Instant until, const Instant& now) {
  if (until == Instant::never()) return REDLOCK_GUARD_UNKNOWN;
  return remaining_ms(until + Duration::ns(999'999), now);  // a wait is rounded up
}

}  // namespace

void Notices::status(redlock_status_t& out, const Instant& now) const {
  out = counters;
  out.size = sizeof out;
  out.masters = settings_.masters;
  out.masters_up = post_.voting().count();
  out.quorum = quorum_of(settings_.masters);
  out.locks_max = settings_.locks;
  for (unsigned i = 0; i < table_.capacity(); ++i) {
    if (table_[i].state == State::held) ++out.locks_held;
    if (is_pending(table_[i])) ++out.locks_pending;
  }
  out.debts = post_.claims.debts();
  out.debts_max = post_.claims.capacity();
  out.even = settings_.masters % 2 == 0 ? 1 : 0;
  out.guard_ms = guard_ms(now);
}

void Notices::master_status(MasterIndex m, redlock_master_status_t& out, const Instant& now) const {
  const Session& session = post_[m];
  out.index = m;
  out.state = shown_state(m);
  out.err = session.last_error();
  out.in_flight = session.in_flight();
  out.owed = post_.claims.debts_of(m);
  out.connects = session.connects();
  out.resp3 = session.resp3() ? 1 : 0;
  out.tracked = session.tracked() ? 1 : 0;
  out.replies = session.replies();
  out.errors = session.errors();
  out.guard_ms = guard_ms_of(m, now);
}

int64_t Notices::guard_ms(const Instant& now) const {
  if (settings_.guard == GuardMode::off) return 0;
  Instant watched_at[REDLOCK_MASTERS_MAX];
  for (MasterIndex m = 0; m < settings_.masters; ++m) {
    watched_at[m] = post_[m].guarded() ? post_[m].guard().watched_at() : Instant::never();
  }
  return ms_until(Fleet(settings_.masters).guarded_until(post_.voting(), watched_at), now);
}

int64_t Notices::guard_ms_of(MasterIndex m, const Instant& now) const {
  return post_[m].guarded() ? ms_until(post_[m].guard().watched_at(), now) : 0;
}

int32_t Notices::shown_state(MasterIndex m) const {
  if (post_[m].guarded()) return REDLOCK_MASTER_GUARDED;
  return static_cast<int32_t>(post_[m].state()) + REDLOCK_MASTER_DOWN;
}

}  // namespace redlock
