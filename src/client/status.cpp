// SPDX-License-Identifier: MIT
//
// The status of a client's locks and masters.
#include "client/client.hpp"
#include "lock/quorum.hpp"

namespace redlock {

void Client::status(redlock_status_t& out, const Instant& now) const {
  out = counters_;
  out.size = sizeof out;
  out.masters = settings_.masters;
  out.masters_up = voting().count();
  out.quorum = quorum_of(settings_.masters);
  out.locks_max = settings_.locks;
  for (unsigned i = 0; i < table_.capacity(); ++i) {
    const State state = table_[i].state;
    if (state == State::held) ++out.locks_held;
    if (state == State::waiting || state == State::acquiring) ++out.locks_pending;
  }
  out.debts = claims_.debts();
  out.debts_max = claims_.capacity();
  out.even = settings_.masters % 2 == 0 ? 1 : 0;
  out.guard_ms = guard_ms(now);
}

void Client::master_status(MasterIndex m, redlock_master_status_t& out, const Instant& now) const {
  const Session& session = sessions_[m];
  out.index = m;
  out.state = shown_state(m);
  out.err = session.last_error();
  out.in_flight = session.in_flight();
  out.owed = claims_.debts_of(m);
  out.connects = session.connects();
  out.resp3 = session.resp3() ? 1 : 0;
  out.tracked = session.tracked() ? 1 : 0;
  out.replies = session.replies();
  out.errors = session.errors();
  out.guard_ms = guard_ms_of(m, now);
}

}  // namespace redlock
