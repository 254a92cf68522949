// SPDX-License-Identifier: MIT
//
// A waiter that masters tell of changes: when it looks, when it tries, and when it sleeps.
#include "machine_fixture.hpp"

namespace redlock {
namespace {

using namespace machine_test;
using machine_test::Life;

// A lock that lost its first round to a holder on all five masters, has looked, and knows that the key lives.
struct Watcher : Life {
  explicit Watcher(uint64_t seed = 1, const Options& options = with_wait(REDLOCK_WAIT_FOREVER)) : Life(options) {
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
    EXPECT_EQ(votes(0, 3, Vote::refused), Action::look);
    look();
  }
  // Sends the looks and answers them.
  void look(int64_t ttl = 9'000) {
    machine.begin_looking(lock, Masters::all(masters), Masters::all(masters), now);
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
    return machine.on_time(lock, now, now);
  }
  // Another waiter is faster. True: this one looked before it tried.
  bool pass() {
    push();
    const bool looked = lock.wait.unsure;
    if (wait_until_due() == Action::look) {
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
    EXPECT_EQ(w.lock.wait.stance, Stance::listens);
    w.lock.wants = Wants::acquire;
    w.machine.begin(w.lock, Masters::all(masters), w.now);
    w.votes(0, 1, Vote::granted);
    w.votes(1, 4, Vote::refused);
    w.machine.begin_looking(w.lock, Masters::all(masters), Masters::all(masters), w.now);
    EXPECT_EQ(w.lock.forecast.look().count(), 1u);
    EXPECT_FALSE(w.lock.forecast.look().has(0)) << "the key there was this waiter's own";
  }
}

// ---- urgent ----------------------------------------------------------------------------------------------------

struct Alarm : Watcher {
  explicit Alarm(uint64_t seed = 1) : Watcher(seed, urgent(REDLOCK_WAIT_FOREVER)) {}
};

TEST(Urgent, watches_a_set_that_blocks_a_quorum_and_draws_no_pause) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Alarm w(seed);
    EXPECT_EQ(w.looks, 3u);
    EXPECT_EQ(w.lock.wait.stance, Stance::armed);
    w.push();
    EXPECT_EQ(w.pause(), Duration());
    EXPECT_EQ(w.wait_until_due(), Action::start);
  }
}

// A round took 0.5 ms. The SETs of an urgent waiter are underway for half of that.
TEST(Urgent, all_others_leave_it_two_fifths_of_a_round) {
  Duration least = Duration::ms(1'000);
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Watcher w(seed);
    w.push();
    if (!w.lock.wait.unsure) least = std::min(least, w.pause());
  }
  EXPECT_GE(least, Duration::us(200));
  EXPECT_LT(least, Duration::us(300));
}

// A grant, and the next acquire of this client right behind the release.
void again(Watcher& w, const Options& options) {
  w.lock.wants = Wants::acquire;
  ASSERT_TRUE(w.machine.begin(w.lock, Masters::all(masters), w.now));
  w.votes(0, 3, Vote::granted);
  ASSERT_EQ(w.lock.state, State::held);
  w.now = w.now + Duration::ms(10);
  w.machine.let_go(w.lock, w.now);
  w.machine.release(w.lock);
  w.lock.state = State::free;
  ++w.lock.generation;
  w.machine.accept(w.lock, options);
  w.machine.see(w.lock, false, w.now);
}

TEST(Urgent, who_asks_without_a_pause_leaves_the_others_a_round_and_a_half) {
  Duration least = Duration::ms(1'000);
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Alarm w(seed);
    for (unsigned i = 0; i < 5; ++i) again(w, urgent(REDLOCK_WAIT_FOREVER));
    w.lose();
    w.push();
    if (!w.lock.wait.unsure) least = std::min(least, w.pause());
  }
  EXPECT_GE(least, Duration::us(800));
  EXPECT_LT(least, Duration::us(900));
}

TEST(Urgent, who_has_lost_many_races_is_among_many_of_its_kind) {
  Alarm w;
  while (w.lock.wait.passed < 23) w.lose();
  w.push();
  EXPECT_EQ(w.pause(), Duration());
  w.wait_until_due();
  w.lose();
  EXPECT_EQ(w.lock.wait.passed, 24u);
  w.push();
  EXPECT_GT(w.pause(), Duration());
}

// It had to wait, so a client of others would give way after one grant.
TEST(Urgent, gives_way_after_more_grants_in_a_row) {
  for (const bool is_urgent : {false, true}) {
    Alarm w;
    w.lock.options.urgent = is_urgent;
    w.lock.wait.crowd = Crowds::name_of(w.lock.names, is_urgent);
    w.lock.wants = Wants::acquire;
    unsigned grants = 0;
    for (bool yields = false; !yields; ++grants) {
      ASSERT_TRUE(w.machine.begin(w.lock, Masters::all(masters), w.now));
      w.votes(0, 3, Vote::granted);
      ASSERT_EQ(w.lock.state, State::held);
      w.machine.release(w.lock);
      w.lock.state = State::free;
      ++w.lock.generation;
      w.machine.accept(w.lock, is_urgent ? urgent(1'000) : with_wait(1'000));
      yields = w.lock.line.yields && w.lock.line.in_a_row != 0;
    }
    EXPECT_EQ(grants, is_urgent ? 6u : 2u);
  }
}

TEST(Urgent, the_one_before_it_wakes_and_hurries) {
  Watcher w;
  w.lock.wait.nap = Duration::ms(500);
  w.lock.wait.stance = Stance::peeks;
  w.lock.wait.planned_for = Instant();
  w.machine.looked(w.lock, *w.lock.round.refused.begin(), 8'000, w.now);
  ASSERT_EQ(w.lock.wait.stance, Stance::sleeps);
  w.machine.hurry(w.lock, w.now);
  EXPECT_EQ(w.pause(), Duration());
  EXPECT_EQ(w.wait_until_due(), Action::look);
  w.look();
  EXPECT_NE(w.lock.wait.stance, Stance::sleeps);
  w.push();
  EXPECT_EQ(w.pause(), Duration());
}

TEST(Urgent, a_turn_goes_to_it_a_few_times_more) {
  Life before = Life::holding(), next(urgent(1'000));
  for (const unsigned in_a_row : {1u, 4u, 5u}) {
    before.lock.line.in_a_row = static_cast<uint16_t>(in_a_row);
    next.lock.wants = Wants::nothing;
    EXPECT_EQ(next.machine.came_first(next.lock, before.lock), Action::start);
    EXPECT_EQ(next.lock.line.yields, in_a_row == 5);
  }
}

struct AnyWatcher : ::testing::Test {
  Watcher w;
};

TEST_F(AnyWatcher, who_hears_nothing_for_a_plain_pause_watches_a_set_that_blocks_a_quorum) {
  EXPECT_EQ(w.pause(), Duration::ms(200)) << "the master it listens to may stand still";
  w.looks = 0;
  EXPECT_EQ(w.wait_until_due(), Action::look);
  w.look();
  EXPECT_EQ(w.looks, 3u);
  EXPECT_EQ(w.lock.wait.stance, Stance::armed);
  EXPECT_GE(w.pause(), Duration::ms(sleep_max_ms / 2)) << "it hears of every release";
  w.pass();
  EXPECT_EQ(w.lock.wait.stance, Stance::listens) << "there was news";
}

TEST_F(AnyWatcher, who_listens_tries_when_the_key_has_expired) {
  w.lock.forecast.round_begins();
  w.look(100);
  EXPECT_LT(w.pause(), Duration::ms(200));
  EXPECT_EQ(w.wait_until_due(), Action::start);
}

TEST_F(AnyWatcher, where_a_master_cannot_tell_of_changes_one_of_the_others_is_not_enough) {
  w.machine.begin_looking(w.lock, Masters::all(masters), Masters::all(masters) - Masters::of(0), w.now);
  EXPECT_EQ(w.lock.forecast.look().count(), 3u);
}

TEST_F(AnyWatcher, a_quorum_that_was_free_already_draws_no_new_pause) {
  w.lock.wait.stance = Stance::armed;
  w.machine.begin_looking(w.lock, Masters::all(masters), Masters::all(masters), w.now);
  const MasterIndex first = *w.lock.forecast.look().begin();
  for (int64_t ttl = 9'000; !w.lock.forecast.look().empty(); ttl += 100) {
    const MasterIndex m = *w.lock.forecast.look().begin();
    w.machine.look_sent(w.lock, m, w.now);
    w.machine.looked(w.lock, m, ttl, w.now);
  }
  const Instant planned = w.lock.wait.planned_for, wake_at = w.lock.wake_at;
  w.now = w.now + Duration::ms(9'150);
  w.machine.master_disconnected(w.lock, first, w.now);
  EXPECT_NE(w.lock.forecast.quorum_at(), planned) << "another master's key ends later";
  EXPECT_LE(w.lock.forecast.quorum_at(), w.now);
  EXPECT_EQ(w.lock.wake_at, wake_at);
}

TEST(Watcher, a_short_pause_is_followed_by_a_round_and_a_long_one_by_a_look_at_one_master) {
  unsigned rounds = 0, looks = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Watcher w(seed);
    w.push();
    const bool is_short = !w.lock.wait.unsure;  // and followed by two fifths of a round for urgent waiters
    EXPECT_TRUE(is_short ? w.pause() <= Duration::us(700) : w.pause() > Duration::us(500));
    EXPECT_LE(w.pause(), Duration::us(5'000)) << "five times two rounds";
    if (w.wait_until_due() == Action::start) {
      EXPECT_TRUE(is_short);
      ++rounds;
      continue;
    }
    EXPECT_FALSE(is_short);
    w.looks = 0;
    w.machine.begin_looking(w.lock, Masters::all(masters), Masters::all(masters), w.now);
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

TEST_F(AnyWatcher, news_without_end_is_acted_on_a_few_times_for_each_plain_pause) {
  unsigned sleeps = 0, steps = 0;
  const Instant end = w.now + Duration::ms(2'000);
  for (; w.now < end && steps < 10'000; ++steps) {
    if (w.lock.wait.stance == Stance::sleeps) {
      ++sleeps;
      EXPECT_LE(w.pause(), Duration::ms(200));
      w.push();
      EXPECT_EQ(w.wait_until_due(), Action::look) << "a sleeper is deaf, and looks before it tries";
      w.look();
    } else {
      w.pass();
    }
  }
  EXPECT_GT(sleeps, 5u);
  EXPECT_LT(steps, 200u);
}

TEST_F(AnyWatcher, news_that_comes_seldom_puts_nobody_to_sleep) {
  for (unsigned i = 0; i < 50; ++i) {
    w.now = w.now + Duration::ms(3'333);
    w.pass();
    EXPECT_EQ(w.lock.wait.stance, Stance::listens) << i << ": a holder that renews";
  }
}

TEST_F(AnyWatcher, a_client_that_had_to_wait_looks_first_and_one_that_had_not_does_not) {
  for (unsigned i = 0; i < 3; ++i) w.pass();
  w.lock.wants = Wants::acquire;
  w.machine.begin(w.lock, Masters::all(masters), w.now);
  w.votes(0, 3, Vote::granted);
  ASSERT_EQ(w.lock.state, State::held);
  const auto again = [this](const char* name, int32_t wait_ms) {
    w.lock.names = Names(Bytes(name, strlen(name)));
    w.lock.state = State::free;
    w.machine.accept(w.lock, with_wait(wait_ms));
    return w.lock.line.yields;
  };
  const std::string name(w.lock.names.first().data, w.lock.names.first().size);
  EXPECT_TRUE(again(name.c_str(), REDLOCK_WAIT_FOREVER));
  EXPECT_FALSE(again("another", REDLOCK_WAIT_FOREVER));
  EXPECT_FALSE(again(name.c_str(), 0)) << "one try is a try";
  ASSERT_TRUE(again(name.c_str(), REDLOCK_WAIT_FOREVER));
  EXPECT_EQ(w.machine.yield(w.lock, w.now), Action::look);
  w.machine.begin_looking(w.lock, Masters::all(masters), Masters::all(masters), w.now);
  EXPECT_EQ(w.lock.forecast.look().count(), 1u);
  EXPECT_LE(w.pause(), Duration::ms(200)) << "a master that does not answer must not hold the waiter up";
  w.answer(ttl_gone);
  EXPECT_EQ(w.wait_until_due(), Action::start);
  w.machine.begin(w.lock, Masters::all(masters), w.now);
  w.votes(0, 3, Vote::granted);
  ASSERT_EQ(w.lock.state, State::held);
  EXPECT_TRUE(again(name.c_str(), REDLOCK_WAIT_FOREVER)) << "it did not have to wait, and gives way to who had";
  EXPECT_NE(w.lock.line.in_a_row, 0);
}

// Two names with one place among those that the client remembers: the one that others want stays for one grant.
TEST_F(AnyWatcher, what_is_known_of_a_name_that_others_want_outlives_one_grant_of_another) {
  for (unsigned i = 0; i < 3; ++i) w.pass();
  const Names wanted = w.lock.names;
  std::string other;
  const auto place_of = [](const Bytes& name) { return hash_of(name) % 4; };
  do {
    other += 'x';
  } while (place_of(Bytes(other.data(), other.size())) != place_of(wanted.first()));
  const auto accept = [this](const Names& names) {
    w.lock.names = names;
    w.lock.state = State::free;
    w.machine.accept(w.lock, with_wait(REDLOCK_WAIT_FOREVER));
    return w.lock.wait.round_took;
  };
  const auto is_granted = [this] {
    w.lock.wants = Wants::acquire;
    ASSERT_TRUE(w.machine.begin(w.lock, Masters::all(masters), w.now));
    w.now = w.now + Duration::ms(2);
    w.votes(0, 3, Vote::granted);
    ASSERT_EQ(w.lock.state, State::held);
  };
  is_granted();
  const Duration round = accept(wanted);
  EXPECT_GT(round, Duration());
  accept(Names(Bytes(other.data(), other.size())));
  is_granted();
  EXPECT_EQ(accept(wanted), round);
  accept(Names(Bytes(other.data(), other.size())));
  is_granted();
  EXPECT_EQ(accept(wanted), Duration()) << "the other name has the place now";
}

// The usual loop of a firmware: acquire, use, release, and acquire again. Its SET is the first one at each master.
TEST(Watcher, a_loop_without_a_pause_leaves_others_the_first_try) {
  Life l(with_wait(REDLOCK_WAIT_FOREVER));
  const auto acquire = [&l] {
    EXPECT_TRUE(l.machine.begin(l.lock, Masters::all(masters), l.now));
    l.now = l.now + Duration::us(500);
    l.votes(0, 3, Vote::granted);
    EXPECT_EQ(l.lock.state, State::held);
    l.lock.state = State::free;
    l.machine.accept(l.lock, with_wait(REDLOCK_WAIT_FOREVER));
  };
  Instant free_at[masters];
  l.lock.forecast.use(free_at, masters);
  unsigned given = 0;
  for (unsigned i = 0; i < 100; ++i) {
    acquire();
    if (!l.lock.line.yields) continue;
    ++given;
    EXPECT_EQ(l.machine.yield(l.lock, l.now), Action::look);
    const Duration first_try = left(l.lock.wait.not_before, l.now);
    EXPECT_EQ(first_try, Duration::us(4'000)) << "another hears of the release, looks, and tries";
    ASSERT_EQ(l.machine.wake(l.lock), Action::start);
  }
  EXPECT_EQ(given, 4u) << "after 4, 8, 16, 32 grants";
}

// Others pass the lock four times before it is granted, so the client learns to sleep.
void learn(Watcher& w, int64_t share_ms = 4, int64_t waited_ms = 3'000) {
  for (unsigned i = 0; i < 4; ++i) w.pass();
  w.now = w.now + Duration::ms(100'000);
  w.lock.wait.since = w.now + Duration::ms(-waited_ms);
  w.lock.wait.heard_since = w.now + Duration::ms(-(w.lock.wait.passed + 1) * share_ms);
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
  ASSERT_EQ(w.machine.yield(w.lock, w.now), Action::look);
  w.look();
  ASSERT_EQ(w.lock.wait.stance, Stance::sleeps);
}

TEST_F(AnyWatcher, a_nap_is_at_most_half_of_the_budget) {
  learn(w);
  for (const int32_t wait_ms : {400, 60'000}) {
    sleep(w, wait_ms);
    EXPECT_LE(w.pause(), Duration::ms(wait_ms / 2));
    if (wait_ms > 10'000) {
      EXPECT_GT(w.pause(), Duration::ms(500)) << "as long as it has learned";
    }
  }
}

// The local timer cuts a long nap. The waiter looks then, and sleeps again.
TEST(Watcher, a_learned_nap_may_take_several_sleeps) {
  for (const int64_t share_ms : {100, 1'300}) {  // six plain pauses are 1,200 ms
    Watcher w;
    learn(w, share_ms, 30'000);
    sleep(w, REDLOCK_WAIT_FOREVER);
    const Instant end = w.lock.wait.since + Duration::ms((30'000 - 3 * share_ms) / 2);
    unsigned sleeps = 0;
    while (w.lock.wait.stance == Stance::sleeps) {
      ++sleeps;
      EXPECT_LE(w.lock.wake_at, end);
      ASSERT_EQ(w.wait_until_due(), Action::look);
      w.look();
    }
    EXPECT_EQ(w.lock.wait.stance, Stance::listens);
    if (share_ms > 1'200) {
      EXPECT_EQ(sleeps, 1u) << "the news may be that its holder renews";
    } else {
      EXPECT_GE(sleeps, 3u);
      EXPECT_GE(w.now, end + Duration::ms(-200)) << "what is left is less than a plain pause";
    }
  }
}

// An urgent acquire of its client waits behind this lock. Only a sleeper that wants no round yet has to be woken.
TEST_F(AnyWatcher, who_is_hurried_sleeps_no_longer) {
  w.machine.hurry(w.lock, w.now + Duration::ms(-1));
  EXPECT_GT(w.lock.wake_at, w.now) << "it listens";
  learn(w, 100, 30'000);
  sleep(w, REDLOCK_WAIT_FOREVER);
  w.lock.wants = Wants::acquire;
  w.machine.hurry(w.lock, w.now);
  EXPECT_GT(w.lock.wake_at, w.now);
  w.lock.wants = Wants::nothing;
  w.lock.state = State::acquiring;
  w.machine.hurry(w.lock, w.now);
  EXPECT_GT(w.lock.wake_at, w.now);
  w.lock.state = State::waiting;
  w.machine.hurry(w.lock, w.now);
  EXPECT_EQ(w.lock.wake_at, w.now);
  EXPECT_TRUE(w.lock.line.urgent);
}

// Some masters tell of changes, and those that are looked at have no key. The others are asked as often as the plain
// timer says: one of three masters that vote, where one look is enough, and two of five, where it takes three.
TEST(Watcher, nobody_sleeps_where_no_master_that_is_looked_at_has_the_key) {
  const Masters two = Masters::of(0) | Masters::of(1), three = two | Masters::of(2);
  for (const auto& [votes, tracked] : {std::pair(three, two), std::pair(Masters::all(masters), three)}) {
    for (const int64_t ttl : {ttl_gone, int64_t{9'000}}) {
      Watcher w;
      learn(w, 100, 30'000);
      sleep(w, REDLOCK_WAIT_FOREVER);
      ASSERT_EQ(w.wait_until_due(), Action::look);
      w.machine.begin_looking(w.lock, votes, tracked, w.now);
      w.answer(ttl);
      EXPECT_EQ(w.lock.wait.stance == Stance::sleeps, ttl != ttl_gone);
      if (ttl != ttl_gone) continue;
      EXPECT_LE(w.pause(), Duration::ms(200));
      EXPECT_EQ(w.wait_until_due(), Action::start);
    }
  }
}

// One that has tried in vain five times sleeps all the same: others fail, and its rounds would go on at their own pace.
TEST_F(AnyWatcher, who_is_tired_sleeps_also_where_no_master_that_is_looked_at_has_the_key) {
  const Masters tracked = Masters::of(0) | Masters::of(1);
  for (unsigned i = 1; i < 5; ++i) {  // the first was lost before
    EXPECT_NE(w.lock.wait.stance, Stance::sleeps) << i;
    w.now = w.now + Duration::ms(100);
    w.lock.wants = Wants::acquire;
    ASSERT_TRUE(w.machine.begin(w.lock, Masters::all(masters), w.now));
    ASSERT_EQ(w.votes(0, 3, Vote::refused), Action::look);
    w.machine.begin_looking(w.lock, tracked | Masters::of(2), tracked, w.now);
    w.answer(ttl_gone);
  }
  EXPECT_EQ(w.lock.wait.stance, Stance::sleeps);
}

// The key is on the last of them.
TEST_F(AnyWatcher, the_last_look_that_is_answered_decides_about_the_nap) {
  learn(w, 100, 30'000);
  sleep(w, REDLOCK_WAIT_FOREVER);
  ASSERT_EQ(w.wait_until_due(), Action::look);
  w.machine.begin_looking(w.lock, Masters::all(masters), Masters::of(0) | Masters::of(1) | Masters::of(2), w.now);
  for (MasterIndex m = 0; m < 3; ++m) w.machine.look_sent(w.lock, m, w.now);
  for (MasterIndex m = 0; m < 3; ++m) {
    EXPECT_NE(w.lock.wait.stance, Stance::sleeps);
    w.machine.looked(w.lock, m, m == 2 ? 9'000 : ttl_gone, w.now);
  }
  EXPECT_EQ(w.lock.wait.stance, Stance::sleeps);
}

// Passes come 250 ms apart, and a plain pause is 200 ms.
TEST_F(AnyWatcher, a_spell_of_passes_is_followed_by_a_sleep_of_some_shares) {
  Duration longest;
  unsigned sleeps = 0;
  for (unsigned i = 0; i < 200; ++i) {
    if (w.lock.wait.stance == Stance::sleeps) {
      ++sleeps;
      const Duration share = Duration::ns(left(w.now, w.lock.wait.heard_since).ns() / (w.lock.wait.passed + 1));
      EXPECT_LE(w.pause(), Duration::ns(share.ns() * 6));
      longest = longest < w.pause() ? w.pause() : longest;
      ASSERT_EQ(w.wait_until_due(), Action::look);
      w.look();
      continue;
    }
    w.now = w.now + Duration::ms(250);
    w.pass();
  }
  EXPECT_GT(sleeps, 10u);
  EXPECT_GT(longest, Duration::ms(800)) << "longer than a plain pause";
}

TEST_F(AnyWatcher, passes_are_counted_as_far_as_two_bytes_go) {
  w.lock.wait.passed = UINT16_MAX;
  w.lose();
  EXPECT_EQ(w.lock.wait.passed, UINT16_MAX);
}

TEST(Watcher, masters_that_leave_wake_whom_nobody_tells_any_more_but_no_sleeper) {
  for (const bool sleeps : {false, true}) {
    Watcher w;
    if (sleeps) {
      learn(w);
      sleep(w, REDLOCK_WAIT_FOREVER);
    }
    const Instant before = w.lock.wake_at;
    for (MasterIndex m = 0; m < masters; ++m) w.machine.master_disconnected(w.lock, m, w.now);
    EXPECT_EQ(w.lock.wake_at < before, !sleeps);
  }
  Watcher due;  // its round is put off, for want of room or of random bytes: the timer does not help
  due.push();
  ASSERT_EQ(due.machine.wake(due.lock), Action::start);
  for (MasterIndex m = 0; m < masters; ++m) due.machine.master_disconnected(due.lock, m, due.now);
  EXPECT_EQ(due.lock.wake_at, Instant::never());
  Watcher w;  // its round is open: nothing is to be woken
  w.lock.wants = Wants::acquire;
  w.machine.begin(w.lock, Masters::all(masters), w.now);
  const Instant before = w.lock.wake_at;
  w.machine.master_disconnected(w.lock, 0, w.now);
  EXPECT_EQ(w.lock.wake_at, before);
  w.votes(0, 3, Vote::failed);  // it waits, but not for others
  ASSERT_EQ(w.lock.state, State::waiting);
  const Instant plain = w.lock.wake_at;
  w.machine.master_disconnected(w.lock, 0, w.now);
  EXPECT_EQ(w.lock.wake_at, plain);
}

TEST_F(AnyWatcher, who_is_granted_the_lock_out_of_its_sleep_had_to_wait) {
  learn(w);
  sleep(w, REDLOCK_WAIT_FOREVER);
  w.lock.wants = Wants::acquire;  // masters came back
  w.machine.begin(w.lock, Masters::all(masters), w.now);
  w.votes(0, 3, Vote::granted);
  ASSERT_EQ(w.lock.state, State::held);
  w.lock.state = State::free;
  w.machine.accept(w.lock, with_wait(REDLOCK_WAIT_FOREVER));
  EXPECT_TRUE(w.lock.line.yields);
}

}  // namespace
}  // namespace redlock
