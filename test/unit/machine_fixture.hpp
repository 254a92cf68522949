// SPDX-License-Identifier: MIT
//
// One lock and its machine, which does at once what an action asks for.
#pragma once
#include "lock/machine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "lock/backoff.hpp"

namespace redlock::machine_test {

inline constexpr unsigned masters = 5;
inline constexpr unsigned node_timeout_ms = 50;
inline constexpr uint32_t sleep_max_ms = 5'000;
inline constexpr uint32_t wait_ms = 10'000;  // the budgets of REDLOCK_WAIT_DEFAULT
inline constexpr uint32_t guard_wait_ms = 60'000;
inline constexpr Drift drift = {10'000, 2};

inline Instant at(int64_t ms) { return Instant::from_ns(ms * 1'000'000); }

inline Instant a_third_after(int64_t ms) { return at(ms) + Duration::ns(10'000'000'000 / 3); }

inline Options usual() { return {10'000, REDLOCK_TRY_ONCE, 0, 0, 100, true}; }
inline Options with_wait(int32_t ms) {
  Options o = usual();
  o.wait_ms = ms;
  return o;
}
inline Options urgent(int32_t ms) {
  Options o = with_wait(ms);
  o.urgent = true;
  return o;
}
inline Options no_renew() {
  Options o = usual();
  o.renew = false;
  return o;
}
inline Options with_hold(uint32_t max_hold_ms, uint32_t ttl_ms = 10'000) {
  Options o = usual();
  o.max_hold_ms = max_hold_ms;
  o.ttl_ms = ttl_ms;
  return o;
}

inline Machine::Rules rules(unsigned of_masters = masters) {
  return {.masters = of_masters,
          .drift = drift,
          .node_timeout = Duration::ms(node_timeout_ms),
          .max_ttl_ms = 30'000,
          .sleep_max_ms = sleep_max_ms,
          .local_turns = 1,
          .wait = Duration::ms(wait_ms),
          .guard_wait = Duration::ms(guard_wait_ms)};
}

// One lock and its client: it does at once what an Action asks for, as far as the machine is concerned.
struct Life {
  explicit Life(const Options& options = usual()) {
    machine.init(rules());
    ++lock.generation;
    machine.accept(lock, options);
    machine.see(lock, false, now);
  }

  bool begin(int64_t ms) {
    now = at(ms);
    return machine.begin(lock, Masters::all(masters), now);
  }
  Action vote(MasterIndex m, Vote v, int error = 0) { return machine.vote(lock, m, v, error, now); }
  Action votes(unsigned from, unsigned n, Vote v, int error = 0) {
    Action action = Action::none;
    for (unsigned i = 0; i < n; ++i) action = vote(from + i, v, error);
    return action;
  }
  Action time(int64_t ms) { return time(at(ms)); }
  Action time(Instant t) {
    now = t;
    return machine.on_time(lock, now, now);
  }
  // The owner is told what is to be told.
  int told() {
    const int event = lock.tell.event;
    lock.tell.event = 0;
    return event;
  }
  Held held(Instant t) const { return judge(lock.cell, lock.generation, true, t, Duration()).held; }

  // A lock that is held since `ms`, and ACQUIRED told.
  static Life holding(const Options& options = usual(), int64_t ms = 0) {
    Life l(options);
    l.begin(ms);
    l.votes(0, 3, Vote::granted);
    EXPECT_EQ(l.lock.state, State::held);
    EXPECT_EQ(l.told(), REDLOCK_EV_ACQUIRED);
    return l;
  }
  // The same with an extend round open that began at `ms`.
  static Life extending(int64_t ms, const Options& options = usual()) {
    Life l = holding(options);
    l.now = at(ms);
    EXPECT_EQ(l.machine.extend(l.lock, 10'000), 0);
    EXPECT_TRUE(l.begin(ms));
    return l;
  }

  Machine machine;
  Lock lock;
  Instant now = at(0);
};

inline void expect_over(Life& l, int event, int err) {
  EXPECT_EQ(l.lock.state, State::over);
  EXPECT_EQ(l.lock.tell.event, event);
  EXPECT_EQ(l.lock.tell.err, err);
  EXPECT_FALSE(l.lock.round.open);
  EXPECT_EQ(l.lock.wants, Wants::nothing);
  EXPECT_TRUE(l.lock.cell.expired(l.lock.generation)) << "a check may still find it held";
  EXPECT_EQ(l.machine.deadline(l.lock), Instant::never());
}

struct AnyLife : ::testing::Test {
  Life l;
};
struct BegunLife : AnyLife {
  BegunLife() { l.begin(0); }
};
struct HeldLife : ::testing::Test {
  Life l = Life::holding();
};

}  // namespace redlock::machine_test
