// SPDX-License-Identifier: MIT
//
// Reconfiguration on a stage: gateways of the old set and of the new one want one resource all the time, the masters
// are slow, frozen, broken, or away, one or two calls change the set, and the stage looks at every instant whether two
// of the gateways hold the resource.
#include "site/reconfiguration.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "site/move_script.hpp"
#include "test/support/lua_scripts.hpp"
#include "test/support/stage.hpp"

namespace redlock {
namespace {

using test::Gateway;
using test::RedisDouble;
using test::Unread;
using test::Way;
using Step = Reconfiguration::Stage;

// A stage on which operators change the records of masters while gateways want one resource, "bus", all the time.
constexpr uint32_t longest_ms = 3'000;

// The masters from `first` to `last` of the stage are a configuration.
struct Range {
  unsigned first, last;
  uint32_t max_ttl_ms = longest_ms;
};

std::function<void(Settings&)> set_of(Range set, GuardMode guard) {
  return [=](Settings& s) {
    s.masters = set.last - set.first + 1;
    for (unsigned m = 0; m < s.masters; ++m) s.master[m] = s.master[set.first - 1 + m];
    s.guard = guard;
    s.max_ttl_ms = set.max_ttl_ms;
    s.ttl_ms = 1'000;
    s.ping_interval = Duration::ms(5'000);
  };
}

struct ChangeSite {
  explicit ChangeSite(unsigned masters) : stage(masters) {}

  // A lock that is renewed, or as long as may be: one that somebody else gets only when it ends. Once at a time.
  void want(Gateway& gateway, uint32_t ttl_ms = 1'000, bool renew = true) {
    unsigned& asked = wanted_[&gateway];
    const unsigned decided =
        gateway.told_count("bus", REDLOCK_EV_ACQUIRED) + gateway.told_count("bus", REDLOCK_EV_FAILED);
    if (asked > decided || (asked != 0 && gateway.holds("bus"))) return;
    ++asked;
    Options o = Gateway::options(ttl_ms, REDLOCK_WAIT_FOREVER);
    o.renew = renew;
    gateway.acquire("bus", o);
  }
  // A call that never ends would be waited for without end.
  void expect_an_end() const {
    if (stage.now_ms() <= 300'000) return;
    ADD_FAILURE() << "the call did not end within five minutes";
    std::abort();
  }
  std::string field(unsigned m, const std::string& name) {
    const auto meta = stage.redis(m).peek("redlock::meta", stage.now());
    return meta && meta->fields.count(name) != 0 ? meta->fields.at(name) : "";
  }
  std::string desc(unsigned m) { return field(m, "desc"); }
  bool marked(unsigned m) { return desc(m).rfind("moving ", 0) == 0; }
  void all_well() {
    for (unsigned m = 1; m <= stage.masters(); ++m) stage.set_way(m, Way::answering);
  }

  test::Stage stage;

 private:
  std::map<Gateway*, unsigned> wanted_;
};

// One call: its two clients, and what takes its steps.
struct Call {
  Gateway *from, *to;
  Range before, after;
  std::optional<Reconfiguration> change;
  bool stopped = false;

  Step stage() const { return change->stage(); }
  bool over() const { return change->over(); }
  void stop() {  // SIGSTOP
    stopped = true;
    from->pause();
    to->pause();
  }
  void go_on() {
    stopped = false;
    from->resume();
    to->resume();
  }
};

// Old gateways that are at work, new ones that were started too early, and calls.
struct Site : ChangeSite {
  Site(unsigned masters, Range old_range, Range new_range, uint64_t seed = 1)
      : ChangeSite(masters), old_set(old_range), new_set(new_range), seed_(seed) {
    old_a = &stage.add("a", set_of(old_set, GuardMode::strict), 0, true, true);
    stage.advance_ms(500);
    old_b = &stage.add("b", set_of(old_set, GuardMode::strict), -5'000);
    stage.advance_ms(500);
  }
  Gateway& add(const std::string& name, Range set, int64_t rate_ppm = 5'000) {
    return stage.add(name, set_of(set, GuardMode::strict), rate_ppm);
  }
  Gateway& add_new(const std::string& name) { return add(name, new_set); }
  Call& begin() { return begin(old_set, new_set); }
  Call& begin_back() { return begin(new_set, old_set); }
  Call& begin(Range before, Range after) {
    const std::string name = "op" + std::to_string(calls.size());
    Gateway& from = stage.add(name + "f", set_of(before, GuardMode::off));
    Gateway& to = stage.add(name + "t", set_of(after, GuardMode::off), to_ppm);
    Call& call = calls.emplace_back(Call{&from, &to, before, after, {}});
    const uint64_t seed = seed_ + 1'000 * calls.size();
    const bool there = before.first == old_set.first && before.last == old_set.last;
    old_text_ = text_of((there ? from : to).client().settings().fingerprint);
    new_text_ = text_of((there ? to : from).client().settings().fingerprint);
    from.act([&](Instant now) { call.change.emplace(from.client(), to.client(), seed, now); });
    return call;
  }
  void advance(double ms, double grain = 1) {
    expect_an_end();
    for (double done = 0; done < ms; done += grain) {
      stage.advance_ms(grain);
      for (Call& call : calls) {
        if (call.stopped || call.over()) continue;
        call.from->act([&](Instant now) { call.change->step(now, call.to->now()); });
        call.to->act([](Instant) {});
      }
      for (unsigned m = 1; m <= stage.masters(); ++m) {
        if (marked(m)) were_marked_.insert(m);
      }
      for (unsigned m = new_set.first; m <= new_set.last && first_entered_ms == 0; ++m) {
        if (entered(m)) first_entered_ms = stage.now_ms();
      }
      if (left_ms == 0 && left() >= needed()) left_ms = stage.now_ms();
    }
  }
  void until(Call& call, Step step) {
    while (call.stage() != step && !call.over()) advance(1);
    EXPECT_EQ(call.stage(), step);
  }
  int finish(Call& call) {
    for (int turns = 0; turns < 6'000 && !call.over(); ++turns) advance(10, call.stage() == Step::wait ? 5 : 1);
    EXPECT_TRUE(call.over());
    call.from->close(0);
    call.to->close(0);
    return call.change->result();
  }
  int change() { return finish(begin()); }
  int change_back() { return finish(begin_back()); }
  bool entered(unsigned m) { return were_marked_.count(m) != 0 && desc(m) == new_text_; }
  unsigned left() {  // old masters that bear a mark, or another record
    unsigned n = 0;
    for (unsigned m = old_set.first; m <= old_set.last; ++m) n += desc(m) != "" && desc(m) != old_text_ ? 1u : 0u;
    return n;
  }
  unsigned needed() const { return (old_set.last - old_set.first + 1) / 2 + 1; }
  // Everybody wants the bus, and has had the time to get it.
  void try_all(std::initializer_list<Gateway*> gateways) {
    for (Gateway* gateway : gateways) want(*gateway, 1'000, true);
    advance(4 * longest_ms, 50);
    EXPECT_EQ(stage.violations(), 0u) << stage.take_story();
  }

  static std::string text_of(Bytes bytes) { return std::string(bytes.data, bytes.size); }

  Range old_set, new_set;
  uint64_t seed_;
  std::string old_text_, new_text_;
  std::set<unsigned> were_marked_;
  int64_t to_ppm = 0;  // the clock of a call's second client
  Gateway *old_a = nullptr, *old_b = nullptr;
  std::deque<Call> calls;
  double left_ms = 0, first_entered_ms = 0;
};

struct ThreeToOthers : ::testing::Test {
  Site site{6, {1, 3}, {4, 6}};
};

// The sets have no master in common, and clients of the new one were started with the change: nothing but the order
// keeps them apart from the old ones, whose masters are slow to leave.
TEST_F(ThreeToOthers, the_new_masters_come_last) {
  for (unsigned m = 1; m <= 3; ++m) site.stage.set_way(m, Way::frozen);
  Gateway& fresh = site.add_new("n");
  site.want(fresh, 1'000, true);
  Call& call = site.begin();
  site.advance(1'000);
  for (unsigned m = 1; m <= 3; ++m) site.stage.set_way(m, Way::answering);
  site.want(*site.old_a, longest_ms, false);
  site.advance(10);
  EXPECT_EQ(site.finish(call), 0);
  EXPECT_GT(site.left_ms, 0);
  EXPECT_GE(site.first_entered_ms, site.left_ms + longest_ms / 3);
  site.advance(2 * longest_ms);
  EXPECT_TRUE(fresh.holds("bus"));
  EXPECT_EQ(site.stage.violations(), 0u) << site.stage.take_story();
}

// A client whose connection tells it of nothing keeps its admission until the reading lapses. That is waited for.
TEST_F(ThreeToOthers, an_admission_that_lapses_is_waited_for) {
  Call& call = site.begin();
  site.advance(3);
  while (site.left() < site.needed()) site.advance(1);
  EXPECT_EQ(site.first_entered_ms, 0);
  const double left = site.stage.now_ms();
  EXPECT_EQ(site.finish(call), 0);
  EXPECT_GE(site.first_entered_ms - left, longest_ms / 3 + longest_ms / 300);
}

// The second look is asked for behind a PING that has no answer yet. A session asserts the order of its requests.
TEST(Reconfigure, what_a_call_sends_is_timed_by_the_client_that_sends_it) {
  Site site(6, {1, 3, 14'800}, {4, 6, 14'800});  // it waits for 4,985 ms, and a PING leaves after 5,000 ms
  site.to_ppm = 5'000;
  Call& call = site.begin();
  site.until(call, Step::wait);
  site.advance(4'900);
  for (unsigned m = 4; m <= 6; ++m) site.stage.set_way(m, Way::silent);
  site.until(call, Step::again);
  site.advance(60);  // the session looks at its requests when the PING has waited for too long
  const auto last = site.stage.executed("EVAL", 4).back().at_ms, ping = site.stage.executed("PING", 4).back().at_ms;
  EXPECT_TRUE(ping < last && last < ping + 50) << ping << " " << last;
  site.all_well();
  EXPECT_EQ(site.finish(call), 0);
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

struct OneToAnother : ::testing::Test {
  Site site{2, {1, 1}, {2, 2}};
  Call& call = site.begin();
};

TEST_F(OneToAnother, a_jump_of_the_clock_begins_the_wait_anew) {
  site.until(call, Step::wait);
  site.advance(longest_ms / 3 - 100);
  call.from->act([&](Instant now) { call.change->clock_jumped(now); });
  site.advance(longest_ms / 3 - 100);
  EXPECT_EQ(call.stage(), Step::wait);
  site.advance(200);
  EXPECT_EQ(site.finish(call), 0);
}

// What is asked after a jump stands behind what the clients have sent meanwhile, so it is asked at its step's time.
// Session::check() aborts otherwise.
TEST_F(OneToAnother, what_is_asked_after_a_jump_is_no_older_than_what_was_sent) {
  site.until(call, Step::check);
  site.stage.advance_ms(5);  // both have answered
  for (const unsigned m : {1u, 2u}) site.stage.set_way(m, Way::frozen);
  const Session& session = call.to->client().session(0);
  for (int ms = 0; ms < 10'000 && session.in_flight() == 0; ++ms) site.stage.advance_ms(1);
  ASSERT_EQ(session.in_flight(), 1u) << "no PING";
  call.from->act([&](Instant now) {
    call.change->clock_jumped(now);
    call.change->step(now, call.to->now());
  });
  call.to->act([](Instant) {});
  site.stage.advance_ms(5);
  for (const unsigned m : {1u, 2u}) site.stage.set_way(m, Way::answering);
  EXPECT_EQ(call.stage(), Step::check);
  EXPECT_EQ(site.finish(call), 0);
}

TEST(Reconfigure, too_few_write_nothing) {
  for (const unsigned away : {2u, 5u}) {  // of the old set, of the new one
    Site site(6, {1, 3}, {4, 6});
    site.stage.set_way(away, Way::down);
    site.stage.set_way(away + 1, Way::down);
    Call& call = site.begin();
    EXPECT_EQ(site.finish(call), REDLOCK_E_NO_QUORUM);
    EXPECT_EQ(call.change->written(), uint32_t{REDLOCK_WRITTEN_NOTHING});
    EXPECT_EQ(site.left(), 0u);
    EXPECT_EQ(site.first_entered_ms, 0);
  }
}

TEST_F(OneToAnother, a_master_that_refuses_is_not_marked) {
  site.stage.redis(1).knobs.misconf = true;
  EXPECT_EQ(site.finish(call), REDLOCK_E_NO_QUORUM);
  EXPECT_EQ(call.change->old_side().err[0], REDLOCK_E_MISCONF);
  EXPECT_EQ(site.left(), 0u);
}

// What answers no letter of the script's is no master of ours: the connection is closed, and nothing counts.
TEST(Reconfigure, an_answer_that_is_no_letter_is_not_counted) {
  Site site(2, {1, 1}, {2, 2});
  site.stage.redis(2).register_script(test::text_of(move_script), [](test::ScriptCall&) {
    return test::Reply::make_bulk("z0123456789abcdef");
  });
  Call& call = site.begin();
  site.advance(100);
  EXPECT_EQ(call.to->client().session(0).reason(), REDLOCK_E_PROTOCOL);
  EXPECT_EQ(site.finish(call), REDLOCK_E_NO_QUORUM);
  EXPECT_EQ(site.left(), 0u);
}

// A call is given up while a master has not read its last write, and undone by the opposite change. Then that is read.
void a_latecomer(Step step) {
  Site site(2, {1, 1}, {2, 2});
  Call& call = site.begin();
  site.stage.set_delay_ms(2, 5);
  while (call.stage() != step) {
    if (step == Step::mark_new && call.stage() == Step::look && site.stage.now_ms() > 1'008) {
      site.stage.set_way(2, Way::silent);  // it has answered the look, and that is all
    }
    site.advance(0.5, 0.5);
  }
  site.stage.set_way(2, Way::frozen);
  site.advance(10);
  site.stage.reset(2, Unread::stalled);
  EXPECT_NE(site.finish(call), 0);
  site.all_well();
  EXPECT_EQ(site.change_back(), 0);
  const std::string desc = site.desc(2);
  site.stage.drain(2);
  site.advance(100);
  EXPECT_EQ(site.desc(2), desc);
  Gateway& fresh = site.add_new("n");
  site.try_all({&fresh, site.old_a});
  EXPECT_TRUE(site.old_a->holds("bus"));
  EXPECT_FALSE(fresh.holds("bus"));
}

TEST(Reconfigure, a_late_mark_does_nothing) { a_latecomer(Step::mark_new); }
TEST(Reconfigure, a_late_entry_does_nothing) { a_latecomer(Step::enter); }

// ---- two calls ------------------------------------------------------------------------------------------------------

// The opposite call begins at any moment of the first one. Never do both sets serve, and whoever is to have the site in
// the end gets it by a call that is repeated.
TEST(Reconfigure, opposite_calls_that_overlap) {
  static constexpr Range sets[][2] = {
      {{1, 1}, {2, 2}}, {{1, 3}, {3, 5}}, {{1, 2}, {3, 4}}, {{1, 4}, {2, 5}}, {{1, 3, 3'000}, {1, 3, 2'000}}};
  static constexpr int later[] = {0, 1, 2, 3, 4, 5, 7, 700, 1'020, 1'025, 1'030, 1'035, 1'040};
  for (size_t i = 0; i < std::size(later) && !HasFailure(); ++i) {
    const auto& pair = sets[i % std::size(sets)];
    Site site(5, pair[0], pair[1]);
    Gateway& fresh = site.add_new("n");
    for (unsigned m = 1; m <= 5; ++m) site.stage.set_delay_ms(m, m);
    site.want(*site.old_a, 1'000, true);
    site.want(fresh, 1'000, true);
    Call& one = site.begin();
    site.advance(later[i]);
    Call& other = site.begin_back();
    const int first = site.finish(one), second = site.finish(other);
    EXPECT_TRUE(first == 0 || first == REDLOCK_E_CHANGING);
    EXPECT_TRUE(second == 0 || second == REDLOCK_E_CHANGING);
    EXPECT_FALSE(first == 0 && second == 0 && later[i] < 1'000) << "not one after the other";
    site.try_all({site.old_a, &fresh});
    if (first != 0 && second != 0) {
      EXPECT_EQ(site.change_back(), 0);
      site.try_all({site.old_a, &fresh});
    }
    EXPECT_TRUE((first == 0 && second != 0 ? fresh : *site.old_a).holds("bus"));
    EXPECT_FALSE(HasFailure()) << later[i] << " ms later: " << first << ", " << second;
  }
}

// Two equal calls: the later one takes over, and the site is changed once.
TEST(Reconfigure, equal_calls_that_overlap) {
  Site site(5, {1, 3}, {3, 5});
  Call& one = site.begin();
  site.advance(700);
  Call& other = site.begin();
  EXPECT_EQ(site.finish(one), REDLOCK_E_CHANGING);
  EXPECT_EQ(one.change->written(), uint32_t{REDLOCK_WRITTEN_OLD}) << "the other's marks are not its own";
  EXPECT_EQ(site.finish(other), 0);
  Gateway& fresh = site.add_new("n");
  site.try_all({site.old_a, &fresh});
  EXPECT_TRUE(fresh.holds("bus"));
}

// ---- old records ----------------------------------------------------------------------------------------------------

// A site went to the new set and came back, and then the new masters bring back what they said in between.
void come_back(Site& site, const std::map<unsigned, test::RedisDouble::Fields>& records) {
  for (const auto& [m, fields] : records) {
    site.stage.restart(m, RedisDouble::Keep::none);
    site.stage.redis(m).put_fields("redlock::meta", fields);
  }
}
test::RedisDouble::Fields record_of(Site& site, unsigned m) {
  return site.stage.redis(m).peek("redlock::meta", site.stage.now())->fields;
}

// An old master is as it was before the change, when the new ones are entered: the call does not say that it is done.
TEST(Reconfigure, an_old_master_that_serves_again_is_found_out) {
  Site site(2, {1, 1}, {2, 2});
  const auto before = record_of(site, 1);
  Call& call = site.begin();
  site.until(call, Step::enter);
  come_back(site, {{1, before}});
  EXPECT_EQ(site.finish(call), REDLOCK_E_RECORD_LOST);
  EXPECT_EQ(call.change->written(), uint32_t{REDLOCK_WRITTEN_BOTH});
  EXPECT_EQ(call.change->old_side().err[0], REDLOCK_E_RECORD_LOST);
  EXPECT_EQ(site.change(), 0);
  Gateway& fresh = site.add_new("n");
  site.try_all({&fresh, site.old_a});
  EXPECT_TRUE(fresh.holds("bus"));
}

// The mark stands there when the call looks again, but in between the connection broke, or the server told of a change:
// the master may have served its set meanwhile.
TEST(Reconfigure, a_mark_that_was_broken_does_not_count) {
  for (const bool by_push : {false, true}) {
    Site site(2, {1, 1}, {2, 2});
    Call& call = site.begin();
    site.until(call, Step::wait);
    const auto mark = record_of(site, 1);
    if (by_push) {
      site.stage.redis(1).flush_all();
      site.stage.redis(1).put_fields("redlock::meta", mark);
    } else {
      site.stage.reset(1, Unread::kept);
    }
    EXPECT_EQ(site.finish(call), REDLOCK_E_RECORD_LOST) << by_push;
    EXPECT_EQ(call.change->old_side().err[0], REDLOCK_E_RECORD_LOST);
    EXPECT_TRUE(site.marked(1));
    EXPECT_EQ(site.first_entered_ms, 0);
    EXPECT_EQ(site.change(), 0);
  }
}

// A master of both sets comes back as it was, is used, and comes back to what this call has written.
TEST(Reconfigure, a_master_of_both_sets_that_was_away_does_not_count) {
  for (const Step at : {Step::enter, Step::check}) {
    Site site(1, {1, 1, 3'000}, {1, 1, 1'000});
    Call& call = site.begin();
    site.stage.set_delay_ms(1, 20);
    site.until(call, at);
    if (at == Step::check) site.advance(5, 1);
    const auto then = record_of(site, 1);
    come_back(site, {{1, then}});
    EXPECT_EQ(site.finish(call), REDLOCK_E_RECORD_LOST) << static_cast<int>(at);
    EXPECT_EQ(call.change->old_side().err[0], REDLOCK_E_RECORD_LOST);
    EXPECT_EQ(site.change(), 0);
  }
}

// Behind the third look a call stands still, and an old master comes back as it was: the look is too old to count.
TEST(Reconfigure, a_call_that_stood_still_looks_again) {
  for (const bool comes_back : {false, true}) {
    Site site(2, {1, 1}, {2, 2});
    const auto before = record_of(site, 1);
    Call& call = site.begin();
    site.stage.set_delay_ms(1, 20);
    site.until(call, Step::leave);
    call.stop();
    site.advance(5, 1);
    if (comes_back) come_back(site, {{1, before}});
    site.advance(30'000, 100);
    call.go_on();
    EXPECT_EQ(site.finish(call), comes_back ? REDLOCK_E_RECORD_LOST : 0);
  }
}

// What a mark tells, and what is told when the change is done. Nothing of an entered record tells of a change.
TEST(Reconfigure, a_mark_tells_who_and_a_finished_change_says_so) {
  Site site(4, {1, 3}, {2, 4});
  Call& call = site.begin();
  site.until(call, Step::wait);
  EXPECT_EQ(site.field(1, "by"), "op0f");
  EXPECT_EQ(site.field(1, "names"), "m1,m2,m3 > m2,m3,m4");
  EXPECT_NE(site.field(1, "begun"), "");
  EXPECT_EQ(site.finish(call), 0);
  EXPECT_EQ(site.desc(1).rfind("left v1 n=3 ", 0), 0u) << site.desc(1);
  EXPECT_EQ(site.field(2, "names"), "m2,m3,m4");
  for (const char* name : {"by", "begun", "at", "from", "seal"}) EXPECT_EQ(site.field(4, name), "") << name;
  site.want(*site.old_a);
  site.advance(100);
  EXPECT_EQ(site.old_a->outcome("bus"), "FAILED GUARD") << "it does not wait for a change that is over";
  EXPECT_EQ(site.old_a->client().session(0).reason(), REDLOCK_E_LEFT);
  EXPECT_EQ(site.change_back(), 0) << "a mark that is over is marked anew by the opposite change";
}

// All masters stay, so no record says "left". What is entered may fail yet: until the third look is over, and where the
// call ends before, nobody is told that the change is done. The opposite change takes it back.
TEST(Reconfigure, a_record_tells_of_a_finished_change_only_behind_the_third_look) {
  for (const bool dies : {false, true}) {
    constexpr size_t npos = std::string::npos;
    Site site(5, {1, 3}, {1, 5});
    Call& call = site.begin();
    site.until(call, Step::wait);
    site.want(*site.old_a);
    for (unsigned m = 1; m <= 5; ++m) site.stage.set_delay_ms(m, 20);
    site.until(call, dies ? Step::check : Step::leave);
    if (dies) call.stop();
    for (unsigned m = 1; m <= 5 && dies; ++m) EXPECT_EQ(site.field(m, "left").find(" > "), npos) << m;
    site.advance(dies ? 1'000 : 10);
    EXPECT_EQ(site.old_a->outcome("bus"), "") << "the change is not done, as far as the masters know";
    EXPECT_EQ(site.old_a->client().session(0).reason(), REDLOCK_E_FINGERPRINT);
    if (dies) continue;
    EXPECT_EQ(site.finish(call), 0);
    site.advance(100);
    EXPECT_EQ(site.old_a->outcome("bus"), "FAILED GUARD");
    for (unsigned m = 0; m < 3; ++m) EXPECT_EQ(site.old_a->client().session(m).reason(), REDLOCK_E_LEFT) << m;
    for (unsigned m = 1; m <= 5; ++m) EXPECT_NE(site.field(m, "left").find(" > "), npos) << m;
    EXPECT_EQ(site.change_back(), 0);
    site.try_all({site.old_a});
    EXPECT_EQ(site.old_a->client().session(0).reason(), 0);
  }
}

// One master of strangers ends the call; those that had no time to answer are not blamed.
TEST_F(ThreeToOthers, who_is_not_at_fault_is_not_blamed) {
  site.stage.add("x", set_of({4, 4}, GuardMode::strict), 0, true, true);
  site.stage.advance_ms(100);
  for (const unsigned m : {1u, 2u, 3u, 5u, 6u}) site.stage.set_delay_ms(m, 30);
  Call& call = site.begin();
  EXPECT_EQ(site.finish(call), REDLOCK_E_FINGERPRINT);
  for (MasterIndex m = 0; m < 3; ++m) {
    EXPECT_EQ(call.change->old_side().why_not(m), 0) << m;
    EXPECT_EQ(call.change->new_side().why_not(m), m == 0 ? REDLOCK_E_FINGERPRINT : 0) << m;
  }
}

// ---- lost records ---------------------------------------------------------------------------------------------------

// The call is stopped when it has begun a step. When it goes on, the time of the step is over before an answer is read.
TEST(Reconfigure, a_call_that_stood_still_hears_the_masters_first) {
  for (const Step step : {Step::mark_new, Step::mark_old, Step::again}) {
    Site site(2, {1, 1}, {2, 2});
    Call& call = site.begin();
    site.until(call, step);
    call.stop();
    site.advance(60'000, 100);
    call.go_on();
    EXPECT_EQ(site.finish(call), 0) << static_cast<int>(step);
  }
}

// A mark was asked for twice, since a connection broke, and one of the two arrives when the master has lost the mark
// and clients have begun a new state there: it was not meant for that.
TEST_F(OneToAnother, a_mark_does_not_come_twice) {
  site.until(call, Step::mark_new);
  site.stage.block(*call.from, 1, true);
  site.until(call, Step::mark_old);
  site.advance(5);
  site.stage.reset(1, Unread::stalled);
  site.stage.block(*call.from, 1, false);
  site.until(call, Step::wait);
  EXPECT_TRUE(site.marked(1));
  call.stop();
  site.stage.restart(1, RedisDouble::Keep::none);
  site.try_all({site.old_a});
  EXPECT_TRUE(site.old_a->holds("bus"));
  site.stage.drain(1);
  site.advance(10);
  EXPECT_FALSE(site.marked(1));
  call.go_on();
  EXPECT_EQ(site.finish(call), REDLOCK_E_RECORD_LOST);
  EXPECT_TRUE(site.old_a->holds("bus"));
}

}  // namespace
}  // namespace redlock
