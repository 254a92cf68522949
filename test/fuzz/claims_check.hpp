// SPDX-License-Identifier: MIT
//
// Claims that check themselves, and the places that sessions keep for their deletes.
#pragma once
#include "bare_driver.hpp"

namespace redlock::test {

inline void check_claims(const Client& client) {
  const Claims& claims = client.claims();
  const CommonSettings& settings = client.settings();
  claims.check();
  for (MasterIndex m = 0; m < settings.masters; ++m) {
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
