// SPDX-License-Identifier: MIT
//
// The detail of an event: what a person needs beside the numbers, at the instant of the delivery.
#include "client/client.hpp"
#include "lock/quorum.hpp"
#include "lock/validity.hpp"

namespace redlock {

void Client::detail(Event& event, Detail& out) const {
  redlock_detail_t& d = out.detail;
  d = {};
  d.size = sizeof d;
  d.masters = settings_.masters;
  d.quorum = quorum_of(settings_.masters);
  d.voting = voting().count();
  for (MasterIndex m = 0; m < settings_.masters; ++m) d.watched += guard_ms_of(m, now_) > 0 ? 1 : 0;
  d.max_ttl_ms = settings_.max_ttl_ms;
  d.to_go_ms = REDLOCK_GUARD_UNKNOWN;
  d.name = d.address = d.holder = "";
  if (event.slot != no_slot) {
    detail_lock(event, out);
  } else {
    detail_master(event.event.master, event.event.err, d);
  }
  event.event.detail = &d;
}

void Client::detail_master(MasterIndex m, int err, redlock_detail_t& out) const {
  out.name = settings_.master[m].name.data;
  out.address = address(m);
  if (err != REDLOCK_E_FINGERPRINT) return;
  const Fingerprint theirs = sessions_[m].guard().theirs();
  out.their_masters = theirs.masters;
  out.their_max_ttl_ms = theirs.max_ttl_ms;
}

void Client::detail_lock(const Event& given, Detail& out) const {
  const Lock& lock = table_[given.slot];
  const redlock_event_t& event = given.event;
  // The first master that failed. Another master, if the event names the reason of another one.
  MasterIndex m = lock.round.first_failed;
  if (event.master_err != lock.round.first_error) {
    for (m = 0; m < settings_.masters && sessions_[m].reason() != event.master_err;) ++m;
  }
  if (event.master_err != 0 && m < settings_.masters) detail_master(m, event.master_err, out.detail);
  if (event.cause == REDLOCK_CAUSE_GUARD || event.err == REDLOCK_E_GUARD) out.detail.to_go_ms = event.guard_ms;
  if (event.cause != REDLOCK_CAUSE_HELD && event.err != REDLOCK_E_LOCKED) return;
  const Instant until = lock.forecast.held_until();
  if (until != Instant::never()) out.detail.to_go_ms = remaining_ms(until, now_);
  if (!is_holder_of(lock) || holder_.known == Holder::Known::nothing) return;
  if (holder_.known == Holder::Known::foreign) {
    out.detail.holder = "a foreign value";
  } else {
    escape_name(holder_.name, holder_.size, out.holder);
    out.detail.holder = out.holder;
  }
}

}  // namespace redlock
