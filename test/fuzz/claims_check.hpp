// SPDX-License-Identifier: MIT
//
// The counters of the claims against the claims themselves.
#pragma once
#include "bare_driver.hpp"

namespace redlock::test {

inline void check_claims(const Client& client) {
  const Claims& claims = client.claims();
  const Settings& settings = client.settings();
  const Masters all = Masters::all(settings.masters);
  unsigned used = 0, debts = 0;
  unsigned reserved[REDLOCK_MASTERS_MAX] = {}, open[REDLOCK_MASTERS_MAX] = {}, owed[REDLOCK_MASTERS_MAX] = {};
  for (uint16_t i = 0; i < claims.capacity(); ++i) {
    const Claim& c = claims[i];
    if (!c.used) continue;
    ++used;
    debts += c.ended ? 1u : 0u;
    require(c.names.first().size >= 1 && c.names.bytes() <= settings.resource_bytes, "a claim has a resource");
    const Masters any = c.refused | c.pending | c.stray | c.owed | c.deleting | c.resting | c.reserved;
    require((any - c.sent).empty() && (c.sent - all).empty(), "a claim is about masters that were sent it");
    require((c.pending & c.stray).empty() && (c.owed & c.deleting).empty(), "one state each");
    require(c.ended || (c.owed | c.deleting | c.resting).empty(), "only a value that has ended is deleted");
    for (MasterIndex m = 0; m < settings.masters; ++m) {
      reserved[m] += c.reserved.has(m) ? 1u : 0u;
      open[m] += (c.pending | c.stray | c.owed | c.deleting | c.resting).has(m) ? 1u : 0u;
      owed[m] += c.owed.has(m) ? 1u : 0u;
    }
  }
  require(debts == claims.debts(), "debts are counted");
  require((used == claims.capacity()) == claims.full(), "full means that all are used");
  const unsigned minority = settings.masters - (settings.masters / 2 + 1);
  const unsigned share = std::max((settings.debts - settings.locks) / std::max(minority, 1u), 1u);
  for (MasterIndex m = 0; m < settings.masters; ++m) {
    require(reserved[m] == claims.reserved(m), "places kept for deletes are counted");
    require((open[m] < share) == claims.may_send(m), "what a master owes answers about is counted");
    require((owed[m] != 0) == claims.owes(m), "owed deletes are counted");
    const Session& session = client.session(m);
    const unsigned places = settings.in_flight + Session::own_requests;
    require(session.in_flight() + (session.connected() ? claims.reserved(m) : 0) <= places,
            "there is a place for each delete");
  }
}

// A lock that can end by time alone has a deadline.
inline void check_deadline(const Client& client, uint32_t held, bool closing) {
  if (held != 0 || closing) require(client.deadline() != Instant::never(), "a held lock has a deadline");
}

}  // namespace redlock::test
