// SPDX-License-Identifier: MIT
//
// Claims of three masters and four locks.
#pragma once
#include "client/claims.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace redlock::claims_test {

using Deleted = Claims::Deleted;

inline constexpr uint32_t ttl = 1'000;
inline constexpr unsigned resource_bytes = 12;
inline constexpr int64_t lifetime_ms = 1'012;  // ttl + drift

inline Instant at(int64_t ms) { return Instant::from_ns(ms * 1'000'000); }

struct Fixture {
  explicit Fixture(unsigned masters = 3, unsigned locks = 4, unsigned capacity = 10)
      : table(capacity), names(capacity * resource_bytes) {
    claims.init({.masters = masters,
                 .quorum = masters / 2 + 1,
                 .locks = locks,
                 .drift_ppm = 10'000,
                 .drift_fixed_ms = 2,
                 .resource_bytes = resource_bytes},
                table.data(), capacity, names.data());
  }
  uint16_t make() { return claims.make(7, "valve", ttl); }
  // A claim whose SET was sent to masters 0 and 1 and granted there.
  uint16_t granted() {
    const uint16_t c = make();
    for (const MasterIndex m : {0u, 1u}) {
      claims.set_sent(c, m);
      claims.set_answered(c, m, false, at(0));
    }
    return c;
  }
  // One whose SET to master 0 was unanswered when its connection broke.
  uint16_t stray() {
    const uint16_t c = make();
    claims.set_sent(c, 0);
    claims.broke(0);
    return c;
  }
  // That one, given up at 0 ms.
  uint16_t stray_debt() {
    const uint16_t c = stray();
    claims.end(c, Masters::of(0), at(0));
    return c;
  }
  void remove(uint16_t c, MasterIndex m, Deleted how, Instant when) {
    claims.deletes_queued(c, Masters::of(m));
    claims.delete_answered(c, m, how, when);
  }
  bool freed(uint16_t c) const { return !claims[c].used; }

  std::vector<Claim> table;
  std::vector<char> names;
  Claims claims;
};

struct AnyClaims : ::testing::Test {
  Fixture f;
};
struct NewClaim : AnyClaims {
  const uint16_t c = f.make();
};
struct GrantedClaim : AnyClaims {
  const uint16_t c = f.granted();
};
struct StrayDebt : AnyClaims {
  const uint16_t c = f.stray_debt();
};

}  // namespace redlock::claims_test
