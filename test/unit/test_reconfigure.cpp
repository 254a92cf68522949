// SPDX-License-Identifier: MIT
//
// Reconfiguration on a stage: gateways of the old set and of the new one want one resource all the time, the masters are
// slow, frozen, broken, or away, and the stage looks at every instant whether two of them hold it.
#include "reconfigure.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "test/support/stage.hpp"

namespace redlock {
namespace {

using test::Gateway;
using test::RedisDouble;
using test::Stage;
using test::Unread;
using test::Way;
using Step = Reconfiguration::Stage;

constexpr uint32_t longest_ms = 3'000;

// The masters from `first` to `last` of the stage.
std::function<void(Settings&)> set_of(unsigned first, unsigned last, GuardMode guard, uint32_t max_ttl_ms = longest_ms,
                                      bool commission = false) {
  return [=](Settings& s) {
    s.masters = last - first + 1;
    for (unsigned m = 0; m < s.masters; ++m) s.master[m] = s.master[first - 1 + m];
    s.guard = guard;
    s.max_ttl_ms = max_ttl_ms;
    s.ttl_ms = 1'000;
    s.commission = commission;
  };
}

struct Range {
  unsigned first, last;
  uint32_t max_ttl_ms = longest_ms;
};

// Old gateways that are at work, new ones that were started too early, and the two clients of the call.
struct Site {
  Site(unsigned masters, Range old_range, Range new_range, uint64_t seed = 1)
      : stage(masters), old_set(old_range), new_set(new_range), seed_(seed) {
    old_a = &stage.add("a", set_of(old_set.first, old_set.last, GuardMode::strict, old_set.max_ttl_ms, true));
    stage.advance_ms(500);
    old_b = &stage.add("b", set_of(old_set.first, old_set.last, GuardMode::strict, old_set.max_ttl_ms), -5'000);
    stage.advance_ms(500);
  }
  Gateway& add_new(const std::string& name, int64_t rate_ppm = 5'000) {
    return stage.add(name, set_of(new_set.first, new_set.last, GuardMode::strict, new_set.max_ttl_ms), rate_ppm);
  }
  // A lock that is renewed, or as long as may be: one that somebody else gets only when it ends.
  static void want(Gateway& gateway, uint32_t ttl_ms, bool renew) {
    Options o = Gateway::options(ttl_ms, REDLOCK_WAIT_FOREVER);
    o.renew = renew;
    gateway.acquire("bus", o);
  }
  void begin() { begin(old_set, new_set); }
  void begin_back() { begin(new_set, old_set); }
  void begin(Range before, Range after) {
    from = &stage.add("op-old", set_of(before.first, before.last, GuardMode::off, before.max_ttl_ms));
    to = &stage.add("op-new", set_of(after.first, after.last, GuardMode::off, after.max_ttl_ms));
    from->act([&](Instant now) { change.emplace(from->client(), to->client(), seed_, now); });
  }
  // A change that never ends would be waited for without end.
  void advance(double ms, double grain = 1) {
    if (stage.now_ms() > 300'000) {
      ADD_FAILURE() << "the change did not end within five minutes";
      std::abort();
    }
    for (double done = 0; done < ms; done += grain) {
      stage.advance_ms(grain);
      if (!change || change->over()) continue;
      from->act([&](Instant now) { change->step(now); });
      to->act([](Instant) {});
      for (unsigned m = new_set.first; m <= new_set.last && first_entered_ms == 0; ++m) {
        if (entered(m)) first_entered_ms = stage.now_ms();
      }
      if (left_ms == 0 && left() >= needed()) left_ms = stage.now_ms();
    }
  }
  void all_well() {
    for (unsigned m = 1; m <= stage.masters(); ++m) stage.set_way(m, Way::answering);
  }
  int finish() {
    for (int turns = 0; turns < 6'000 && !change->over(); ++turns) advance(10);
    EXPECT_TRUE(change->over());
    from->close(0);
    to->close(0);
    return change->result();
  }
  std::string field(unsigned m, const std::string& name) {
    const auto meta = stage.redis(m).peek("redlock::meta", stage.now());
    return meta && meta->fields.count(name) != 0 ? meta->fields.at(name) : "";
  }
  std::string desc(unsigned m) { return field(m, "desc"); }
  bool entered(unsigned m) { return field(m, "from") != "" && desc(m).rfind("v1 ", 0) == 0; }
  unsigned left() {
    unsigned n = 0;
    for (unsigned m = old_set.first; m <= old_set.last; ++m) n += field(m, "from") != "" ? 1u : 0u;
    return n;
  }
  unsigned needed() const {
    const unsigned n = old_set.last - old_set.first + 1;
    return n - (n / 2 + 1) + 1;
  }

  Stage stage;
  Range old_set, new_set;
  uint64_t seed_;
  Gateway *old_a = nullptr, *old_b = nullptr, *from = nullptr, *to = nullptr;
  std::optional<Reconfiguration> change;
  double left_ms = 0, first_entered_ms = 0;
};

TEST(Reconfigure, three_become_five) {
  Site site(5, {1, 3}, {1, 5});
  Gateway& fresh = site.add_new("n");
  Site::want(*site.old_a, 1'000, true);
  site.advance(500);
  EXPECT_TRUE(site.old_a->holds("bus"));
  Site::want(fresh, 1'000, true);
  site.begin();
  EXPECT_EQ(site.finish(), 0);
  EXPECT_FALSE(site.old_a->holds("bus")) << "it could not be renewed";
  EXPECT_EQ(site.old_a->outcome("bus"), "LOST");
  EXPECT_FALSE(fresh.holds("bus")) << "the guard time begins with the change";
  site.advance(longest_ms + 100);
  EXPECT_TRUE(fresh.holds("bus"));
  Site::want(*site.old_b, 1'000, false);
  site.advance(2 * longest_ms);
  EXPECT_FALSE(site.old_b->holds("bus"));
  EXPECT_EQ(site.stage.violations(), 0u);
}

// The sets have no master in common, and clients of the new one were started with the change: nothing but the order keeps
// them apart from the old ones, whose masters are slow to leave.
TEST(Reconfigure, the_new_masters_come_last) {
  Site site(6, {1, 3}, {4, 6});
  for (unsigned m = 1; m <= 3; ++m) site.stage.set_way(m, Way::frozen);
  Gateway& fresh = site.add_new("n");
  Site::want(fresh, 1'000, true);
  site.begin();
  site.advance(1'000);
  for (unsigned m = 1; m <= 3; ++m) site.stage.set_way(m, Way::answering);
  Site::want(*site.old_a, longest_ms, false);
  site.advance(10);
  EXPECT_EQ(site.finish(), 0);
  EXPECT_GT(site.left_ms, 0);
  EXPECT_GE(site.first_entered_ms, site.left_ms + longest_ms / 3);
  site.advance(2 * longest_ms);
  EXPECT_TRUE(fresh.holds("bus"));
  EXPECT_EQ(site.stage.violations(), 0u) << site.stage.take_story();
}

// A master that was left serves neither set: else the new clients would have it, and what is new, while the change has
// failed and the old ones still have a quorum.
TEST(Reconfigure, what_was_left_is_in_between) {
  Site site(5, {1, 3}, {1, 5});
  Gateway& fresh = site.add_new("n");
  site.advance(2 * longest_ms);
  site.begin();
  site.stage.set_delay_ms(2, 30);
  site.stage.set_delay_ms(3, 30);
  const auto looked = [&](unsigned at) { return site.change->old_side().asked[at] == Step::look; };
  while (!looked(1) || !looked(2)) site.advance(1);
  site.stage.set_way(2, Way::frozen);  // it will not read the next step
  site.stage.set_way(3, Way::frozen);
  while (site.left() == 0) site.advance(1);
  site.advance(100);
  ASSERT_EQ(site.left(), 1u);
  site.stage.set_way(2, Way::down);
  site.stage.set_way(3, Way::down);
  EXPECT_EQ(site.finish(), REDLOCK_E_NO_QUORUM);
  EXPECT_EQ(site.change->new_side().step, Step::look) << "no new master was written";
  EXPECT_EQ(site.desc(1).rfind("moving ", 0), 0u);
  site.stage.set_way(2, Way::answering);
  site.stage.set_way(3, Way::answering);
  Site::want(*site.old_a, 1'000, true);
  Site::want(fresh, 1'000, true);
  site.advance(5 * longest_ms);
  EXPECT_TRUE(site.old_a->holds("bus")) << "two of three are a quorum";
  EXPECT_FALSE(fresh.holds("bus")) << "and two of five are none";

  site.begin();  // the repeated call
  EXPECT_EQ(site.finish(), 0);
  site.advance(2 * longest_ms);
  EXPECT_FALSE(site.old_a->holds("bus"));
  EXPECT_TRUE(fresh.holds("bus"));
  EXPECT_EQ(site.stage.violations(), 0u);
}

// A client whose connection tells it of nothing keeps its admission until the reading lapses. That is waited for.
TEST(Reconfigure, an_admission_that_lapses_is_waited_for) {
  Site site(6, {1, 3}, {4, 6});
  site.begin();
  site.advance(3);
  while (site.left() < site.needed()) site.advance(1);
  EXPECT_EQ(site.first_entered_ms, 0);
  const double left = site.stage.now_ms();
  EXPECT_EQ(site.finish(), 0);
  EXPECT_GE(site.first_entered_ms - left, longest_ms / 3 + longest_ms / 300);
}

TEST(Reconfigure, the_wait_is_the_lapse_and_what_the_old_ttl_is_longer) {
  Settings before, after;
  before.max_ttl_ms = after.max_ttl_ms = 30'000;
  EXPECT_EQ(Reconfiguration::wait_between(before, after), Duration::ms(10'000 + 100 + 2));
  before.drift_ppm = 20'000;
  after.drift_fixed_ms = 5;
  EXPECT_EQ(Reconfiguration::wait_between(before, after), Duration::ms(10'000 + 200 + 5));
  EXPECT_EQ(Reconfiguration::wait_between(after, before), Duration::ms(10'000 + 200 + 5));
  before = after = Settings();
  before.max_ttl_ms = 60'000;
  after.max_ttl_ms = 20'000;
  EXPECT_EQ(Reconfiguration::wait_between(before, after), Duration::ms(20'000 + 200 + 40'000 + 400 + 2));
  EXPECT_EQ(Reconfiguration::wait_between(after, before), Duration::ms(6'666 + 2) + Duration::us(66'660));
}

TEST(Reconfigure, a_jump_of_the_clock_begins_the_wait_anew) {
  Site site(2, {1, 1}, {2, 2});
  site.begin();
  while (site.change->stage() != Step::wait) site.advance(1);
  site.advance(longest_ms / 3 - 100);
  site.from->act([&](Instant now) { site.change->clock_jumped(now); });
  site.advance(longest_ms / 3 - 100);
  EXPECT_EQ(site.change->stage(), Step::wait);
  site.advance(200);
  EXPECT_EQ(site.finish(), 0);
}

TEST(Reconfigure, too_few_write_nothing) {
  for (const unsigned away : {2u, 5u}) {  // of the old set, of the new one
    Site site(6, {1, 3}, {4, 6});
    site.stage.set_way(away, Way::down);
    site.stage.set_way(away + 1, Way::down);
    site.begin();
    EXPECT_EQ(site.finish(), REDLOCK_E_NO_QUORUM);
    EXPECT_EQ(site.change->old_side().step, Step::look);
    EXPECT_EQ(site.left(), 0u);
    EXPECT_EQ(site.first_entered_ms, 0);
  }
}

TEST(Reconfigure, a_third_configuration_is_not_touched) {
  Site site(4, {1, 2}, {3, 4});
  site.stage.add("x", set_of(4, 4, GuardMode::strict, longest_ms, true));
  site.stage.advance_ms(100);
  site.begin();
  EXPECT_EQ(site.finish(), REDLOCK_E_FINGERPRINT);
  EXPECT_EQ(site.change->new_side().answer[1], Reconfiguration::Answer::foreign);
  EXPECT_EQ(site.left(), 0u);
}

TEST(Reconfigure, a_master_that_refuses_has_not_left) {
  Site site(2, {1, 1}, {2, 2});
  site.begin();
  site.stage.redis(1).knobs.misconf = true;
  EXPECT_EQ(site.finish(), REDLOCK_E_NO_QUORUM);
  EXPECT_EQ(site.change->old_side().answer[0], Reconfiguration::Answer::failed);
  EXPECT_EQ(site.from->client().session(0).move_error(), REDLOCK_E_MISCONF);
  EXPECT_EQ(site.left(), 0u);
}

// The answer of a step that was given up is not the answer of the next: the old master reads everything much later.
TEST(Reconfigure, a_late_answer_is_not_the_next_steps) {
  Site site(4, {1, 3}, {4, 4});
  site.stage.set_way(3, Way::silent);
  site.begin();
  site.stage.set_delay_ms(2, 4);
  site.advance(4);
  site.stage.set_way(3, Way::answering);
  EXPECT_EQ(site.finish(), 0);
  EXPECT_EQ(site.left(), 3u);
  EXPECT_EQ(site.stage.violations(), 0u);
}

// A call is given up while the new master has not read its last step, and undone by the opposite change. Then that is read.
void a_latecomer(bool left_before) {
  Site site(2, {1, 1}, {2, 2});
  if (left_before) {
    site.begin_back();
    EXPECT_EQ(site.finish(), 0);
  }
  site.begin();
  const auto found = [&] { return site.to->client().session(0).guard().quarantine(); };
  while (site.change->stage() != Step::enter || (left_before && found().size == 0)) {
    if (site.change->stage() == Step::wait && !left_before) site.stage.set_way(2, Way::frozen);
    site.advance(1);
  }
  site.stage.set_way(2, Way::frozen);
  site.advance(10);
  site.stage.reset(2, Unread::stalled);
  EXPECT_EQ(site.finish(), REDLOCK_E_NO_QUORUM);
  site.all_well();
  site.begin_back();
  EXPECT_EQ(site.finish(), 0);
  site.stage.drain(2);
  site.advance(100);
  EXPECT_EQ(site.desc(2).rfind("moving ", 0), 0u);
  Gateway& fresh = site.add_new("n");
  Site::want(fresh, 1'000, true);
  Site::want(*site.old_a, 1'000, true);
  site.advance(3 * longest_ms);
  EXPECT_TRUE(site.old_a->holds("bus"));
  EXPECT_FALSE(fresh.holds("bus"));
  EXPECT_EQ(site.stage.violations(), 0u) << site.stage.take_story();
}

TEST(Reconfigure, what_a_call_that_was_given_up_has_sent_does_nothing) { a_latecomer(false); }

// The opposite change finds the master as it is to be, and leaves a new id there all the same.
TEST(Reconfigure, what_it_has_sent_to_a_master_that_had_left_already_does_nothing) { a_latecomer(true); }

// Another client has begun a new state on the new master, between two steps of the call.
TEST(Reconfigure, a_record_that_has_changed_is_written_all_the_same) {
  Site site(2, {1, 1}, {2, 2});
  site.begin();
  while (site.change->stage() != Step::enter) {
    if (site.change->stage() == Step::wait && site.desc(2).empty()) site.add_new("n");
    site.advance(1);
  }
  EXPECT_EQ(site.finish(), 0);
  EXPECT_TRUE(site.entered(2));
}

// Anything may happen to the masters meanwhile, and the call is repeated until it has succeeded.
void any_life(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  static constexpr Range olds[] = {{1, 3}, {1, 3}, {1, 1}, {1, 5}, {1, 3, 4'000}};
  static constexpr Range news[] = {{1, 5}, {4, 6}, {1, 3}, {3, 5}, {2, 4, 2'000}};
  const unsigned kind = below(5);
  Site site(6, olds[kind], news[kind], seed);
  const bool overlapping = news[kind].first <= olds[kind].last;
  for (unsigned m = 1; m <= 6; ++m) site.stage.set_delay_ms(m, below(20));
  Gateway* fresh = overlapping ? &site.add_new("n") : nullptr;
  for (int call = 0; call < 6; ++call) {
    site.begin();
    while (!site.change->over()) {
      if (site.old_a->outcome("bus").rfind("ACQUIRED", 0) != 0) Site::want(*site.old_a, 1'000 + below(2) * 1'000, below(2));
      site.advance(20 + below(300), 5);
      const unsigned m = 1 + below(6);
      switch (below(6)) {
        case 0: site.stage.reset(m, below(2) ? Unread::kept : Unread::dropped); break;
        case 1: site.stage.set_way(m, Way::frozen); break;
        case 2: site.stage.set_way(m, Way::down); break;
        case 3: site.stage.set_delay_ms(m, below(40)); break;
        default: site.all_well();
      }
    }
    if (site.finish() == 0) break;
    site.all_well();
  }
  site.all_well();
  if (fresh == nullptr) fresh = &site.add_new("n");
  Site::want(*fresh, 1'000, true);
  Site::want(*site.old_b, 1'000, true);
  site.advance(4 * longest_ms, 100);
  EXPECT_EQ(site.change->result(), 0) << "seed " << seed;
  EXPECT_TRUE(fresh->holds("bus")) << "seed " << seed;
  EXPECT_EQ(site.stage.violations(), 0u) << "seed " << seed << "\n" << site.stage.take_story();
}

TEST(Reconfigure, whatever_happens_to_the_masters) {
  for (uint64_t seed = 1; seed <= 24 && !HasFailure(); ++seed) any_life(seed);
}

}  // namespace
}  // namespace redlock
