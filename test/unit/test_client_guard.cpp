// SPDX-License-Identifier: MIT
//
// What the client does for the guard, over all its masters: the operator's statement that nothing is held, by its time
// and for the masters that it names; and how commands are chosen, plain or by a script that compares.
#include <gtest/gtest.h>

#include "support/stage.hpp"

namespace redlock {
namespace {

using test::Gateway;
using test::Stage;
using test::Way;

constexpr double connect_ms = 500;

void quick(Settings& s) {
  s.guard = GuardMode::strict;
  s.max_ttl_ms = 10'000;
  s.connect_timeout = Duration::ms(static_cast<int64_t>(connect_ms));
  s.reconnect_min_ms = s.reconnect_max_ms = 10;
}

int error_of(const Gateway& gateway, unsigned master) {
  redlock_master_status_t status = {};
  status.size = sizeof status;
  gateway.client().notices().master_status(master - 1, status, gateway.client().now());
  return status.err;
}

bool sealed(const Stage& stage, unsigned master) {
  for (const test::Executed& e : stage.executed("EVAL", master)) {
    if (e.text == "EVAL record seal") return true;
  }
  return false;
}

int commission(Gateway& gateway, MasterIndex m) {
  int err = 0;
  gateway.act([&](Instant now) { err = gateway.client().commission(m, now); });
  return err;
}

// Whoever states that nothing is held on a master may not vouch for what happens to it until it is reached.
TEST(ClientGuard, commissioning_is_for_masters_that_are_read_within_twice_the_connect_timeout) {
  for (const bool in_time : {true, false}) {
    Stage stage(1);
    stage.set_way(1, Way::down);
    Gateway& a = stage.add("a", quick);
    stage.advance_ms(100);
    EXPECT_EQ(commission(a, 1), 0);
    stage.advance_ms(2 * connect_ms - (in_time ? 20 : 0));
    stage.set_way(1, Way::answering);
    stage.advance_ms(20);  // a connection is tried each 10 ms at least
    EXPECT_EQ(error_of(a, 1), in_time ? 0 : REDLOCK_E_UNWATCHED);
    EXPECT_EQ(sealed(stage, 1), in_time);
    stage.advance_ms(10'000);
    EXPECT_EQ(sealed(stage, 1), in_time) << "the watch is longer than that";
    stage.advance_ms(200);
    EXPECT_TRUE(sealed(stage, 1));
  }
}

TEST(ClientGuard, a_closed_client_commissions_nothing) {
  Stage stage(1);
  Gateway& a = stage.add("a", quick);
  a.close(100);
  EXPECT_EQ(commission(a, 0), REDLOCK_E_CLOSED);
}

}  // namespace
}  // namespace redlock
