// SPDX-License-Identifier: MIT
//
// A waiter that masters tell of changes: when it looks, when it tries, and when it sleeps.
#include "machine_fixture.hpp"

namespace redlock {
namespace {

using namespace machine_test;
using machine_test::Life;  // not the part of a lock

// A lock that lost its first round to a holder on all five masters, has looked, and knows that the key lives.
struct Watcher : Life {
  explicit Watcher(uint64_t seed = 1) : Life(with_wait(REDLOCK_WAIT_FOREVER)) {
    machine.seed(seed);
    lock.options.retry_delay_ms = 200;
    lock.forecast.use(free_at, masters);
    now = now + Duration::ms(1'000);  // zero would be: has not waited
    lose();
  }
  void lose() {
    lock.wants = Wants::acquire;
    EXPECT_TRUE(machine.begin(lock, Masters::all(masters), now));
    now = now + Duration::us(500);
    EXPECT_EQ(votes(0, 3, Vote::refused), Action::watch);
    look();
  }
  // Sends the looks and answers them.
  void look(int64_t ttl = 9'000) {
    machine.watch(lock, Masters::all(masters), Masters::all(masters), now);
    answer(ttl);
  }
  void answer(int64_t ttl) {
    while (!lock.forecast.look().empty()) {
      const MasterIndex m = *lock.forecast.look().begin();
      machine.look_sent(lock, m, now);
      ++looks;
      machine.looked(lock, m, ttl, now);
    }
  }
  // The holder lets go, and the pushes of all masters come.
  void push() {
    for (MasterIndex m = 0; m < masters; ++m) machine.changed(lock, m, now);
  }
  Duration pause() const { return left(lock.wake_at, now); }
  Action wait_until_due() {
    now = lock.wake_at;
    return machine.on_time(lock, now);
  }
  // Another waiter is faster. True: this one looked before it tried.
  bool pass() {
    push();
    const bool looked = lock.wait.unsure;
    if (wait_until_due() == Action::watch) {
      look();
    } else {
      lose();
    }
    return looked;
  }
  Instant free_at[masters];
  unsigned looks = 0;
};

TEST(Watcher, a_lost_round_is_followed_by_a_look_at_one_master_that_has_the_key) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Watcher w(seed);
    EXPECT_EQ(w.looks, 1u);
    EXPECT_EQ(w.lock.wait.watch, Watch::listens);
    w.lock.wants = Wants::acquire;
    w.machine.begin(w.lock, Masters::all(masters), w.now);
    w.votes(0, 1, Vote::granted);
    w.votes(1, 4, Vote::refused);
    w.machine.watch(w.lock, Masters::all(masters), Masters::all(masters), w.now);
    EXPECT_EQ(w.lock.forecast.look().count(), 1u);
    EXPECT_FALSE(w.lock.forecast.look().has(0)) << "the key there was this waiter's own";
  }
}

TEST(Watcher, who_hears_nothing_for_a_plain_pause_watches_a_set_that_blocks_a_quorum) {
  Watcher w;
  EXPECT_EQ(w.pause(), Duration::ms(200)) << "the master it listens to may stand still";
  w.looks = 0;
  EXPECT_EQ(w.wait_until_due(), Action::watch);
  w.look();
  EXPECT_EQ(w.looks, 3u);
  EXPECT_EQ(w.lock.wait.watch, Watch::armed);
  EXPECT_GE(w.pause(), Duration::ms(sleep_max_ms / 2)) << "it hears of every release";
  w.pass();
  EXPECT_EQ(w.lock.wait.watch, Watch::listens) << "there was news";
}

TEST(Watcher, who_listens_tries_when_the_key_has_expired) {
  Watcher w;
  w.lock.forecast.round_begins();
  w.look(100);
  EXPECT_LT(w.pause(), Duration::ms(200));
  EXPECT_EQ(w.wait_until_due(), Action::start);
}

TEST(Watcher, where_a_master_cannot_tell_of_changes_one_of_the_others_is_not_enough) {
  Watcher w;
  w.machine.watch(w.lock, Masters::all(masters), Masters::all(masters) - Masters::of(0), w.now);
  EXPECT_EQ(w.lock.forecast.look().count(), 3u);
}

TEST(Watcher, a_quorum_that_was_free_already_draws_no_new_pause) {
  Watcher w;
  w.lock.wait.watch = Watch::armed;
  w.machine.watch(w.lock, Masters::all(masters), Masters::all(masters), w.now);
  const MasterIndex first = *w.lock.forecast.look().begin();
  for (int64_t ttl = 9'000; !w.lock.forecast.look().empty(); ttl += 100) {
    const MasterIndex m = *w.lock.forecast.look().begin();
    w.machine.look_sent(w.lock, m, w.now);
    w.machine.looked(w.lock, m, ttl, w.now);
  }
  const Instant planned = w.lock.wait.planned_for, wake_at = w.lock.wake_at;
  w.now = w.now + Duration::ms(9'150);
  w.machine.master_left(w.lock, first, w.now);
  EXPECT_NE(w.lock.forecast.quorum_at(), planned) << "another master's key ends later";
  EXPECT_LE(w.lock.forecast.quorum_at(), w.now);
  EXPECT_EQ(w.lock.wake_at, wake_at);
}

TEST(Watcher, a_short_pause_is_followed_by_a_round_and_a_long_one_by_a_look_at_one_master) {
  unsigned rounds = 0, looks = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Watcher w(seed);
    w.push();
    const bool is_short = w.pause() <= Duration::us(500);
    EXPECT_LE(w.pause(), Duration::us(5'000)) << "five times two rounds";
    if (w.wait_until_due() == Action::start) {
      EXPECT_TRUE(is_short);
      ++rounds;
      continue;
    }
    EXPECT_FALSE(is_short);
    w.looks = 0;
    w.machine.watch(w.lock, Masters::all(masters), Masters::all(masters), w.now);
    EXPECT_EQ(w.lock.forecast.look().count(), 1u);
    w.answer(seed % 2 == 0 ? ttl_gone : 9'000);
    EXPECT_EQ(w.looks, 1u) << "held: it listens again";
    EXPECT_EQ(w.pause() <= Duration::us(1'000), seed % 2 == 0);
    if (seed % 2 == 0) {
      EXPECT_EQ(w.wait_until_due(), Action::start) << "nobody was faster";
    }
    ++looks;
  }
  EXPECT_GT(rounds, 5u);
  EXPECT_GT(looks, 100u);
}

TEST(Watcher, who_has_seen_the_resource_go_by_draws_from_a_shorter_window_that_overlaps) {
  Duration longest[2], shortest[2] = {Duration::ms(1'000), Duration::ms(1'000)};
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Watcher w(seed);
    for (const unsigned i : {0u, 1u}) {
      w.lock.wait.passed = i == 0 ? 1 : 4;
      w.lock.wait.planned_for = w.now + Duration::ms(9'000);
      w.push();
      longest[i] = w.pause() > longest[i] ? w.pause() : longest[i];
      shortest[i] = w.pause() < shortest[i] ? w.pause() : shortest[i];
      w.lock.wait.unsure = false;
      w.lose();
    }
  }
  EXPECT_GT(longest[0], longest[1] + longest[1]);
  EXPECT_LT(shortest[0], longest[1]) << "two with the same window would split for ever";
}

TEST(Watcher, news_without_end_is_acted_on_a_few_times_for_each_plain_pause) {
  Watcher w;
  unsigned sleeps = 0, steps = 0;
  const Instant end = w.now + Duration::ms(2'000);
  for (; w.now < end && steps < 10'000; ++steps) {
    if (w.lock.wait.watch == Watch::sleeps) {
      ++sleeps;
      EXPECT_LE(w.pause(), Duration::ms(200));
      w.push();
      EXPECT_EQ(w.wait_until_due(), Action::watch) << "a sleeper is deaf, and looks before it tries";
      w.look();
    } else {
      w.pass();
    }
  }
  EXPECT_GT(sleeps, 5u);
  EXPECT_LT(steps, 200u);
}

TEST(Watcher, news_that_comes_seldom_puts_nobody_to_sleep) {
  Watcher w;
  for (unsigned i = 0; i < 50; ++i) {
    w.now = w.now + Duration::ms(300);
    w.pass();
    EXPECT_EQ(w.lock.wait.watch, Watch::listens) << i << ": a holder that renews";
  }
}

TEST(Watcher, a_client_that_had_to_wait_looks_first_and_one_that_had_not_does_not) {
  Watcher w;
  for (unsigned i = 0; i < 3; ++i) w.pass();
  w.lock.wants = Wants::acquire;
  w.machine.begin(w.lock, Masters::all(masters), w.now);
  w.votes(0, 3, Vote::granted);
  ASSERT_EQ(w.lock.state, State::held);
  const auto again = [&w](const char* name, int32_t wait_ms) {
    w.lock.names = Names(Bytes(name, strlen(name)));
    w.lock.state = State::free;
    w.machine.accept(w.lock, with_wait(wait_ms));
    return w.lock.turn.yields;
  };
  const std::string name(w.lock.names.first().data, w.lock.names.first().size);
  EXPECT_TRUE(again(name.c_str(), REDLOCK_WAIT_FOREVER));
  EXPECT_FALSE(again("another", REDLOCK_WAIT_FOREVER));
  EXPECT_FALSE(again(name.c_str(), 0)) << "one try is a try";
  ASSERT_TRUE(again(name.c_str(), REDLOCK_WAIT_FOREVER));
  EXPECT_EQ(w.machine.yield(w.lock, w.now), Action::watch);
  w.machine.watch(w.lock, Masters::all(masters), Masters::all(masters), w.now);
  EXPECT_EQ(w.lock.forecast.look().count(), 1u);
  EXPECT_LE(w.pause(), Duration::ms(200)) << "a master that does not answer must not hold the waiter up";
  w.answer(ttl_gone);
  EXPECT_EQ(w.wait_until_due(), Action::start);
  w.machine.begin(w.lock, Masters::all(masters), w.now);
  w.votes(0, 3, Vote::granted);
  ASSERT_EQ(w.lock.state, State::held);
  EXPECT_FALSE(again(name.c_str(), REDLOCK_WAIT_FOREVER)) << "it did not have to wait";
}

// Others pass the lock four times before it is granted, so the client learns to sleep.
void learn(Watcher& w) {
  w.now = w.now + Duration::ms(3'000);
  for (unsigned i = 0; i < 4; ++i) w.pass();
  w.lock.wait.heard_since = w.now + Duration::ms(-20);
  w.lock.wants = Wants::acquire;
  w.machine.begin(w.lock, Masters::all(masters), w.now);
  w.votes(0, 3, Vote::granted);
  ASSERT_EQ(w.lock.state, State::held);
}

// The next acquire of a client that has learned to sleep: it looks, finds the key, and sleeps.
void sleep(Watcher& w, int32_t wait_ms) {
  w.lock.state = State::free;
  w.machine.accept(w.lock, with_wait(wait_ms));
  w.machine.see(w.lock, false, w.now);
  ASSERT_EQ(w.machine.yield(w.lock, w.now), Action::watch);
  w.look();
  ASSERT_EQ(w.lock.wait.watch, Watch::sleeps);
}

TEST(Watcher, a_nap_is_at_most_half_of_the_budget) {
  Watcher w;
  learn(w);
  for (const int32_t wait_ms : {400, 60'000}) {
    sleep(w, wait_ms);
    EXPECT_LE(w.pause(), Duration::ms(wait_ms / 2));
    if (wait_ms > 10'000) {
      EXPECT_GT(w.pause(), Duration::ms(500)) << "as long as it has learned";
    }
  }
}

TEST(Watcher, passes_are_counted_as_far_as_a_byte_goes) {
  Watcher w;
  w.lock.wait.passed = UINT8_MAX;
  w.lose();
  EXPECT_EQ(w.lock.wait.passed, UINT8_MAX);
}

TEST(Watcher, masters_that_leave_wake_whom_nobody_tells_any_more_but_no_sleeper) {
  for (const bool sleeps : {false, true}) {
    Watcher w;
    if (sleeps) {
      learn(w);
      sleep(w, REDLOCK_WAIT_FOREVER);
    }
    const Instant before = w.lock.wake_at;
    for (MasterIndex m = 0; m < masters; ++m) w.machine.master_left(w.lock, m, w.now);
    EXPECT_EQ(w.lock.wake_at < before, !sleeps);
  }
  Watcher due;  // its round is put off, for want of room or of random bytes: the timer does not help
  due.push();
  ASSERT_EQ(due.machine.wake(due.lock), Action::start);
  for (MasterIndex m = 0; m < masters; ++m) due.machine.master_left(due.lock, m, due.now);
  EXPECT_EQ(due.lock.wake_at, Instant::never());
  Watcher w;  // its round is open: nothing is to be woken
  w.lock.wants = Wants::acquire;
  w.machine.begin(w.lock, Masters::all(masters), w.now);
  const Instant before = w.lock.wake_at;
  w.machine.master_left(w.lock, 0, w.now);
  EXPECT_EQ(w.lock.wake_at, before);
  w.votes(0, 3, Vote::failed);  // it waits, but not for others
  ASSERT_EQ(w.lock.state, State::waiting);
  const Instant plain = w.lock.wake_at;
  w.machine.master_left(w.lock, 0, w.now);
  EXPECT_EQ(w.lock.wake_at, plain);
}

TEST(Watcher, who_is_granted_the_lock_out_of_its_sleep_had_to_wait) {
  Watcher w;
  learn(w);
  sleep(w, REDLOCK_WAIT_FOREVER);
  w.lock.wants = Wants::acquire;  // masters came back
  w.machine.begin(w.lock, Masters::all(masters), w.now);
  w.votes(0, 3, Vote::granted);
  ASSERT_EQ(w.lock.state, State::held);
  w.lock.state = State::free;
  w.machine.accept(w.lock, with_wait(REDLOCK_WAIT_FOREVER));
  EXPECT_TRUE(w.lock.turn.yields);
}

}  // namespace
}  // namespace redlock
