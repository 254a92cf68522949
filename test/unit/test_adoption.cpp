// SPDX-License-Identifier: MIT
//
// Adoption on a stage: gateways of this configuration and of another one want one resource all the time, masters of the
// other one are taken over, and the stage looks at every instant whether two of the gateways hold the resource.
#include "site/adoption.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "change_site.hpp"
#include "site/move_script.hpp"
#include "test/support/lock_scripts.hpp"

namespace redlock {
namespace {

using test::ChangeSite;
using test::Gateway;
using test::longest_ms;
using test::Range;
using test::RedisDouble;
using test::set_of;
using test::Unread;
using test::Way;

constexpr double wait_ms = 1'000 + 200 + 1'000;  // a reading's lifetime, 20 % of it, and a second

using Report = redlock_adopt_report_t;

// One call of redlock_adopt().
struct Call {
  Gateway* gateway;
  std::optional<Adoption> adoption;
  bool stopped = false;

  bool over() const { return adoption->over(); }
  Report report() {
    Report out = {};
    gateway->act([&](Instant now) { adoption->tell(out, now); });
    return out;
  }
  void stop() {  // SIGSTOP, or for good
    stopped = true;
    gateway->pause();
  }
  void go_on() {
    stopped = false;
    gateway->resume();
  }
};

// One call of redlock_reconfigure().
struct Change {
  Gateway *from, *to;
  std::optional<Reconfiguration> change;
  bool over() const { return change->over(); }
};

struct Site : ChangeSite {
  explicit Site(unsigned masters, uint64_t seed = 1) : ChangeSite(masters), seed_(seed) {}

  Gateway& add(const std::string& name, Range set, bool commission = false) {
    Gateway& gateway = stage.add(name, set_of(set, GuardMode::strict), 0, true, commission);
    stage.advance_ms(500);
    return gateway;
  }
  Call& begin(Range set, bool rest_is_gone = false) {
    Gateway& gateway = stage.add("op" + std::to_string(number_++), set_of(set, GuardMode::off));
    Call& call = calls.emplace_back(Call{&gateway, {}});
    const uint64_t seed = seed_ + 1'000 * number_;
    gateway.act([&](Instant now) { call.adoption.emplace(gateway.client(), rest_is_gone, seed, now); });
    return call;
  }
  Change& begin_change(Range before, Range after) {
    const std::string name = "op" + std::to_string(number_++);
    Gateway& from = stage.add(name + "f", set_of(before, GuardMode::off));
    Gateway& to = stage.add(name + "t", set_of(after, GuardMode::off));
    Change& change = changes.emplace_back(Change{&from, &to, {}});
    const uint64_t seed = seed_ + 1'000 * number_;
    from.act([&](Instant now) { change.change.emplace(from.client(), to.client(), seed, now); });
    return change;
  }
  void advance(double ms, double grain = 1) {
    expect_an_end();
    for (double done = 0; done < ms; done += grain) {
      stage.advance_ms(grain);
      for (Call& call : calls) {
        if (call.stopped || call.over()) continue;
        call.gateway->act([&](Instant now) { call.adoption->step(now); });
      }
      for (Change& change : changes) {
        if (change.over()) continue;
        change.from->act([&](Instant now) { change.change->step(now); });
        change.to->act([](Instant) {});
      }
    }
  }
  void until(Call& call, uint32_t step) {
    while (call.report().step != step && !call.over()) advance(1);
    EXPECT_EQ(call.report().step, step);
  }
  int finish(Call& call) {
    for (int turns = 0; turns < 6'000 && !call.over(); ++turns) advance(10);
    EXPECT_TRUE(call.over());
    return call.adoption->result();
  }
  int finish(Change& change) {
    for (int turns = 0; turns < 6'000 && !change.over(); ++turns) advance(10);
    EXPECT_TRUE(change.over());
    return change.change->result();
  }
  int adopt(Range set, bool rest_is_gone = false) { return finish(begin(set, rest_is_gone)); }

  std::string all_records() {
    std::string out;
    for (unsigned m = 1; m <= stage.masters(); ++m) {
      out += desc(m) + "/" + field(m, "q") + "/" + field(m, "seal") + "\n";
    }
    return out;
  }
  // Everybody wants the bus, and has had the time to get it.
  void try_all(std::initializer_list<Gateway*> gateways) {
    for (Gateway* gateway : gateways) want(*gateway);
    advance(4 * longest_ms, 50);
    EXPECT_EQ(stage.violations(), 0u) << stage.take_story();
  }

  std::deque<Call> calls;
  std::deque<Change> changes;

 private:
  uint64_t seed_;
  unsigned number_ = 0;
};

// ---- what is taken over ---------------------------------------------------------------------------------------------

// Master 3 serves a test program alone. Our gateways need it, since master 1 is down.
TEST(Adoption, a_test_programs_master) {
  Site site(3);
  Gateway& test_program = site.add("t", {3, 3}, true);
  Gateway& gateway = site.add("g", {1, 3});
  site.stage.set_way(1, Way::down);
  site.want(test_program, longest_ms);
  site.advance(2 * longest_ms, 10);
  EXPECT_TRUE(test_program.holds("bus"));
  site.want(gateway);
  EXPECT_EQ(gateway.client().session(2).reason(), REDLOCK_E_FINGERPRINT);
  Call& call = site.begin({1, 3});
  EXPECT_EQ(site.finish(call), 1) << "master 1 could not be read";
  const Report report = call.report();
  EXPECT_EQ(report.step, uint32_t{REDLOCK_ADOPT_DONE});
  EXPECT_EQ(report.adopted, 1u);
  EXPECT_EQ(report.their_masters, 1u);
  EXPECT_EQ(report.their_needed, 1u);
  EXPECT_EQ(report.their_found, 1u);
  EXPECT_EQ(report.their_max_ttl_ms, longest_ms);
  EXPECT_NE(report.err[0], 0);
  EXPECT_EQ(report.err[1], 0);
  EXPECT_EQ(report.err[2], 0);
  EXPECT_FALSE(gateway.holds("bus")) << "the guard time begins now";
  site.advance(2 * longest_ms, 10);
  EXPECT_EQ(test_program.outcome("bus"), "LOST");
  EXPECT_TRUE(gateway.holds("bus"));
  site.want(test_program);
  site.advance(2 * longest_ms, 10);
  EXPECT_FALSE(test_program.holds("bus"));
  EXPECT_EQ(site.stage.violations(), 0u) << site.stage.take_story();
}

// A lock of theirs that is won by the last admission, and that is longer than our guard time.
TEST(Adoption, their_last_lock_has_ended_before_our_first) {
  Site site(1);
  constexpr Range theirs = {1, 1, 3 * longest_ms}, ours = {1, 1, longest_ms};
  Gateway& test_program = site.add("t", theirs, true);
  Gateway& gateway = site.add("g", ours);
  Call& call = site.begin(ours);
  site.stage.set_way(1, Way::frozen);
  site.want(test_program, 3 * longest_ms, false);
  site.stage.set_way(1, Way::answering);
  site.until(call, REDLOCK_ADOPT_WAIT);
  EXPECT_TRUE(test_program.holds("bus"));
  EXPECT_EQ(site.finish(call), 0);
  site.want(gateway);  // before, its acquire would have failed at once
  site.advance(2 * longest_ms, 10);
  EXPECT_TRUE(gateway.holds("bus"));
  EXPECT_EQ(site.stage.violations(), 0u) << site.stage.take_story();
}

TEST(Adoption, waits_by_their_longest_ttl_and_the_largest_drift) {
  Site site(1);
  site.add("t", {1, 1, 6'000}, true);
  Call& call = site.begin({1, 1});
  site.until(call, REDLOCK_ADOPT_WAIT);
  const double began = site.stage.now_ms();
  const double all = 2'000 * 1.2 + 3'000 * 1.2 + 1'000;
  EXPECT_NEAR(call.report().to_go_ms, all, 5);
  site.until(call, REDLOCK_ADOPT_ENTER);
  EXPECT_GE(site.stage.now_ms() - began, all);
  EXPECT_EQ(site.finish(call), 0);
}

TEST(Adoption, a_jump_of_the_clock_begins_the_wait_anew) {
  Site site(1);
  site.add("t", {1, 1}, true);
  Call& call = site.begin({1, 1, 2'999});
  site.until(call, REDLOCK_ADOPT_WAIT);
  site.advance(wait_ms - 100);
  call.gateway->act([&](Instant now) { call.adoption->clock_jumped(now); });
  site.advance(wait_ms - 100);
  EXPECT_EQ(call.report().step, uint32_t{REDLOCK_ADOPT_WAIT});
  EXPECT_EQ(site.finish(call), 0);
}

// Masters that are ours and vote are not disturbed, and where nothing is foreign nothing is written.
TEST(Adoption, our_own_masters_stay_as_they_are) {
  Site site(4);
  site.add("t", {3, 3}, true);
  Gateway& gateway = site.add("g", {1, 3}, true);
  site.want(gateway);
  site.advance(500);
  EXPECT_TRUE(gateway.holds("bus"));
  std::string before = site.desc(1) + site.field(1, "q") + site.desc(2) + site.field(2, "q");
  EXPECT_EQ(site.adopt({1, 3}), 0);
  EXPECT_EQ(site.desc(1) + site.field(1, "q") + site.desc(2) + site.field(2, "q"), before);
  site.advance(2 * longest_ms, 10);
  before = site.all_records();
  Call& nothing = site.begin({1, 3});
  EXPECT_EQ(site.finish(nothing), 0);
  EXPECT_EQ(nothing.report().their_masters, 0u);
  EXPECT_EQ(site.all_records(), before);
  EXPECT_TRUE(gateway.holds("bus"));
  EXPECT_EQ(gateway.told_count("bus", REDLOCK_EV_LOST), 0u);
  EXPECT_EQ(site.stage.violations(), 0u) << site.stage.take_story();
}

// Their masters 1 to 3 are all in our set of five, but one was away. It follows later, without disturbing anybody.
TEST(Adoption, a_whole_site) {
  Site site(5);
  Gateway& other = site.add("t", {1, 3}, true);
  Gateway& gateway = site.add("g", {1, 5});
  site.want(other);
  site.advance(500);
  EXPECT_TRUE(other.holds("bus"));
  site.want(gateway);
  site.stage.set_way(3, Way::down);
  Call& call = site.begin({1, 5});
  EXPECT_EQ(site.finish(call), 1);
  EXPECT_EQ(call.report().adopted, 2u);
  site.try_all({&gateway, &other});
  EXPECT_TRUE(gateway.holds("bus"));
  EXPECT_FALSE(other.holds("bus"));
  site.stage.set_way(3, Way::answering);
  const std::string q = site.field(1, "q") + site.field(2, "q");
  Call& again = site.begin({1, 5});
  const double began = site.stage.now_ms();
  EXPECT_EQ(site.finish(again), 0);
  EXPECT_LT(site.stage.now_ms() - began, wait_ms) << "a quorum of theirs has gone before";
  EXPECT_EQ(again.report().adopted, 1u);
  EXPECT_EQ(site.field(1, "q") + site.field(2, "q"), q);
  EXPECT_EQ(site.desc(3), site.desc(1));
  EXPECT_TRUE(gateway.holds("bus"));
}

// Two test programs had a master each.
TEST(Adoption, several_configurations_one_after_the_other) {
  Site site(3);
  Gateway &one = site.add("one", {2, 2}, true), &two = site.add("two", {3, 3, 6'000}, true);
  Gateway& gateway = site.add("g", {1, 3});
  site.stage.set_way(1, Way::down);
  Call& call = site.begin({1, 3});
  site.until(call, REDLOCK_ADOPT_WAIT);
  EXPECT_EQ(call.report().their_max_ttl_ms, longest_ms);
  EXPECT_FALSE(site.marked(3));
  EXPECT_EQ(call.report().err[2], REDLOCK_E_FINGERPRINT);
  EXPECT_EQ(site.finish(call), 1);
  EXPECT_EQ(call.report().adopted, 2u);
  EXPECT_EQ(call.report().their_max_ttl_ms, 6'000u);
  site.try_all({&gateway, &one, &two});
  EXPECT_TRUE(gateway.holds("bus"));
}

// Their site came from a change of masters itself: where it was entered from says nothing about us.
TEST(Adoption, masters_that_have_moved_before) {
  Site site(3);
  Gateway& first = site.add("t", {1, 1}, true);
  EXPECT_EQ(site.finish(site.begin_change({1, 1}, {3, 3})), 0);
  Gateway& second = site.add("u", {3, 3});
  Call& call = site.begin({2, 3});
  EXPECT_EQ(site.finish(call), 0);
  EXPECT_EQ(call.report().adopted, 1u);
  Gateway& gateway = site.add("g", {2, 3});
  site.try_all({&gateway, &first, &second});
  EXPECT_TRUE(gateway.holds("bus"));
}

// ---- what is refused ------------------------------------------------------------------------------------------------

// One of their three masters is not enough, unless the operator knows more.
TEST(Adoption, too_few_of_theirs_are_refused) {
  Site site(5);
  Gateway& other = site.add("t", {3, 5}, true);
  const std::string before = site.all_records();
  Call& call = site.begin({1, 3});
  EXPECT_EQ(site.finish(call), REDLOCK_E_NO_QUORUM);
  const Report report = call.report();
  EXPECT_EQ(report.step, uint32_t{REDLOCK_ADOPT_READ});
  EXPECT_EQ(report.their_masters, 3u);
  EXPECT_EQ(report.their_needed, 2u);
  EXPECT_EQ(report.their_found, 1u);
  EXPECT_EQ(report.err[0], 0);
  EXPECT_EQ(report.err[2], REDLOCK_E_FINGERPRINT);
  EXPECT_EQ(site.all_records(), before);
  site.stage.set_way(4, Way::down);
  site.stage.set_way(5, Way::down);
  Call& stated = site.begin({1, 3}, true);
  EXPECT_EQ(site.finish(stated), 0);
  EXPECT_EQ(stated.report().adopted, 1u);
  Gateway& gateway = site.add("g", {1, 3});
  site.try_all({&gateway, &other});
  EXPECT_TRUE(gateway.holds("bus"));
}

// Of two configurations one would do, and the other has too few masters here: both are left alone.
TEST(Adoption, all_is_judged_before_anything_is_written) {
  for (const bool first : {false, true}) {
    Site site(5);
    site.add("one", first ? Range{3, 5} : Range{2, 2}, true);
    site.add("two", first ? Range{2, 2} : Range{3, 5}, true);
    const std::string before = site.all_records();
    EXPECT_EQ(site.adopt({1, 3}), REDLOCK_E_NO_QUORUM);
    EXPECT_EQ(site.calls.back().report().their_masters, 3u);
    EXPECT_EQ(site.all_records(), before);
  }
}

// A backup of their first master was restored into the second: that is one master, as the quarantine id says.
TEST(Adoption, a_copy_is_no_master_of_its_own) {
  Site site(5);
  site.add("t", {3, 5}, true);
  site.stage.redis(2).put_fields("redlock::meta", site.stage.redis(3).peek("redlock::meta", site.stage.now())->fields);
  Call& call = site.begin({1, 3});
  EXPECT_EQ(site.finish(call), REDLOCK_E_NO_QUORUM);
  EXPECT_EQ(call.report().their_found, 1u);
  EXPECT_EQ(site.finish(site.begin({1, 3}, true)), 1) << "and it is not written";
  EXPECT_EQ(site.calls.back().report().err[2], REDLOCK_E_DUPLICATE);
}

TEST(Adoption, records_that_are_not_understood) {
  for (const char* desc :
       {"v2 n=1 q=1 max_ttl_ms=3000 ids=0123456789abcdef", "v1 n=3 q=1 max_ttl_ms=3000 ids=0123456789abcdef",
        "v1 n=16 q=9 max_ttl_ms=3000 ids=0123456789abcdef", "v1 n=1 q=1 max_ttl_ms=0 ids=0123456789abcdef",
        "v1 n=1 q=1 max_ttl_ms=3000 ids=0123456789abcdef and more", "v1 n=1 q=1", "x"}) {
    Site site(1);
    site.stage.redis(1).put_fields("redlock::meta", {{"desc", desc}, {"q", "0123456789abcdef"}});
    for (const bool gone : {false, true}) {
      Call& call = site.begin({1, 1}, gone);
      EXPECT_EQ(site.finish(call), REDLOCK_E_FINGERPRINT) << desc;
      EXPECT_EQ(call.report().err[0], REDLOCK_E_FINGERPRINT);
      EXPECT_EQ(site.desc(1), desc);
    }
  }
}

TEST(Adoption, nobody_answers) {
  Site site(3);
  site.add("t", {1, 1}, true);
  for (unsigned m = 1; m <= 3; ++m) site.stage.set_way(m, Way::down);
  EXPECT_EQ(site.adopt({1, 3}), REDLOCK_E_NO_QUORUM);
}

// What answers no letter of the script's is no master of ours: the connection is closed, and nothing counts.
TEST(Adoption, an_answer_that_is_no_letter) {
  Site site(2);
  site.add("t", {1, 1}, true);
  for (const char* answer : {"x0123456789abcdef", "o0123"}) {
    site.stage.redis(1).register_script(test::text_of(owner_script),
                                        [=](test::ScriptCall&) { return test::Reply::make_bulk(answer); });
    Call& call = site.begin({1, 2});
    site.advance(100);
    EXPECT_EQ(call.gateway->client().session(0).reason(), REDLOCK_E_PROTOCOL);
    EXPECT_EQ(site.finish(call), 1);
    EXPECT_FALSE(site.marked(1));
  }
}

TEST(Adoption, a_master_that_refuses_the_script) {
  Site site(2);
  site.add("t", {1, 1}, true);
  Call& call = site.begin({1, 2});
  site.stage.redis(1).fail_next("NOPERM this user has no permissions", "EVAL");
  EXPECT_EQ(site.finish(call), 1);
  EXPECT_EQ(call.report().err[0], REDLOCK_E_NOPERM);
  EXPECT_FALSE(site.marked(1));
}

// The text of a record comes in pieces. A connection that breaks between two of them, and a record that changes, begin
// it anew.
TEST(Adoption, pieces_of_one_record) {
  Site site(1);
  site.add("t", {1, 1}, true);
  site.stage.set_delay_ms(1, 10);
  Call& broken = site.begin({1, 1, 2'999});
  while (site.stage.executed("EVAL").empty()) site.advance(1);
  site.advance(25);
  site.stage.reset(1, Unread::dropped);
  EXPECT_EQ(site.finish(broken), 0);
  EXPECT_EQ(broken.report().adopted, 1u);

  Call& changed = site.begin({1, 1, 2'998});
  site.advance(55);
  const std::string foreign = "v1 n=1 q=1 max_ttl_ms=2990 ids=0123456789abcdef";
  site.stage.redis(1).put_fields("redlock::meta", {{"desc", foreign}, {"q", "0123456789abcdef"}});
  const int result = site.finish(changed);
  EXPECT_TRUE(result == 0 || result == REDLOCK_E_FINGERPRINT) << result;
  EXPECT_EQ(site.desc(1) == foreign, result != 0);
}

// ---- calls that are broken off, and overlap -------------------------------------------------------------------------

// kill -9 while it waits: the masters are marked, and the next call begins with those marks.
TEST(Adoption, a_call_that_died_in_its_wait) {
  Site site(3);
  Gateway& other = site.add("t", {1, 3}, true);
  Call& dead = site.begin({1, 3, 2'000});
  site.until(dead, REDLOCK_ADOPT_WAIT);
  dead.stop();
  EXPECT_TRUE(site.marked(1));
  site.try_all({&other});
  EXPECT_FALSE(other.holds("bus"));
  Call& again = site.begin({1, 3, 2'000});
  site.until(again, REDLOCK_ADOPT_WAIT);
  const double began = site.stage.now_ms();
  EXPECT_EQ(again.report().their_found, 3u);
  EXPECT_EQ(site.finish(again), 0);
  EXPECT_GE(site.stage.now_ms() - began, wait_ms) << "the whole time again";
  dead.go_on();
  EXPECT_EQ(site.finish(dead), REDLOCK_E_CHANGING);
  Gateway& gateway = site.add("g", {1, 3, 2'000});
  site.try_all({&gateway, &other});
  EXPECT_TRUE(gateway.holds("bus"));
}

// ... and while it enters: what it has entered counts as theirs, together with what it has only marked.
TEST(Adoption, a_call_that_died_while_it_entered) {
  Site site(3);
  Gateway& other = site.add("t", {1, 3}, true);
  site.stage.set_way(3, Way::down);
  Call& dead = site.begin({1, 3, 2'000});
  site.until(dead, REDLOCK_ADOPT_WAIT);
  site.stage.set_delay_ms(1, 60);  // it answers the second look when master 2 has answered, and reads no more
  site.stage.set_delay_ms(2, 30);
  while (dead.report().to_go_ms > 1) site.advance(1);
  site.advance(45);
  site.stage.set_way(2, Way::frozen);
  while (site.marked(1)) site.advance(1);
  dead.stop();
  site.stage.reset(2, Unread::dropped);
  site.stage.set_way(2, Way::answering);
  EXPECT_TRUE(site.marked(2));
  Call& again = site.begin({1, 3, 2'000});
  EXPECT_EQ(site.finish(again), 1);
  EXPECT_EQ(again.report().their_found, 2u);
  EXPECT_EQ(site.desc(1), site.desc(2));
  site.all_well();
  EXPECT_EQ(site.adopt({1, 3, 2'000}), 0);
  Gateway& gateway = site.add("g", {1, 3, 2'000});
  site.try_all({&gateway, &other});
  EXPECT_TRUE(gateway.holds("bus"));
}

TEST(Adoption, of_two_calls_the_later_one_goes_on) {
  Site site(1);
  site.add("t", {1, 1}, true);
  Call& one = site.begin({1, 1, 2'000});
  site.advance(700);
  Call& other = site.begin({1, 1, 2'000});
  EXPECT_EQ(site.finish(one), REDLOCK_E_CHANGING);
  EXPECT_EQ(one.report().step, uint32_t{REDLOCK_ADOPT_WAIT});
  EXPECT_EQ(one.report().err[0], REDLOCK_E_CHANGING);
  EXPECT_EQ(site.finish(other), 0);
}

// Two operators adopt one master into two configurations: one of them has it.
TEST(Adoption, two_calls_to_two_configurations) {
  for (const int later : {0, 1, 3, 700, 2'230}) {
    Site site(3);
    Gateway& other = site.add("t", {2, 2}, true);
    site.stage.set_delay_ms(2, 2);
    Call& one = site.begin({1, 2});
    site.advance(later);
    Call& two = site.begin({2, 3});
    const int first = site.finish(one), second = site.finish(two);
    EXPECT_NE(first == 0, second == 0) << later;
    Gateway &gateway = site.add("g", {1, 2}), &third = site.add("h", {2, 3});
    site.try_all({&gateway, &third, &other});
    EXPECT_TRUE((first == 0 ? gateway : third).holds("bus")) << later << ": " << first << ", " << second;
  }
}

// redlock_reconfigure() between the same two configurations. It marks masters that were never theirs, so its marks do
// not count for an adoption; an adoption's marks are a change's like any others.
TEST(Adoption, against_a_change_of_masters) {
  for (const int later : {0, 5, 20, 700, 1'100}) {
    Site site(4);
    Gateway& other = site.add("t", {1, 3}, true);
    for (unsigned m = 1; m <= 4; ++m) site.stage.set_delay_ms(m, m);
    Change& change = site.begin_change({1, 3}, {2, 4});
    site.advance(later);
    Call& call = site.begin({2, 4});
    const int adopted = site.finish(call), changed = site.finish(change);
    EXPECT_TRUE(adopted == 0 || adopted == REDLOCK_E_CHANGING) << adopted;
    EXPECT_TRUE(changed == 0 || changed == REDLOCK_E_CHANGING) << changed;
    EXPECT_TRUE(adopted == 0 || changed == 0) << later;
    Gateway& gateway = site.add("g", {2, 4});
    site.try_all({&gateway, &other});
    EXPECT_TRUE(gateway.holds("bus"));
  }
}

TEST(Adoption, the_marks_of_a_change_do_not_count) {
  Site site(5);
  Gateway& other = site.add("t", {3, 5}, true);
  Change& change = site.begin_change({3, 5}, {1, 3});
  while (change.change->stage() == Reconfiguration::Stage::look) site.advance(0.1, 0.1);
  for (const unsigned m : {3u, 4u, 5u}) {
    for (Gateway* half : {change.from, change.to}) site.stage.block(*half, m, true);
  }
  while (!site.marked(1) || !site.marked(2)) site.advance(1);
  EXPECT_EQ(site.finish(change), REDLOCK_E_NO_QUORUM);
  const std::string before = site.all_records();
  for (const bool gone : {false, true}) {
    Call& call = site.begin({1, 3}, gone);
    EXPECT_EQ(site.finish(call), REDLOCK_E_CHANGING);
    EXPECT_EQ(call.report().err[0], REDLOCK_E_CHANGING);
    EXPECT_EQ(call.report().step, uint32_t{REDLOCK_ADOPT_READ});
  }
  EXPECT_EQ(site.all_records(), before);
  site.try_all({&other});
  EXPECT_TRUE(other.holds("bus"));
}

// Masters that a change has entered were perhaps never theirs: they do not count either.
TEST(Adoption, what_a_change_has_entered_does_not_count) {
  Site site(5);
  Gateway& other = site.add("t", {1, 3}, true);
  EXPECT_EQ(site.finish(site.begin_change({1, 3}, {3, 5})), 0);
  site.stage.set_way(5, Way::down);
  EXPECT_EQ(site.finish(site.begin_change({3, 5}, {1, 3})), 0);
  site.all_well();
  site.stage.redis(4).flush_all();  // it bore the mark of the way back
  Call& call = site.begin({3, 5});
  EXPECT_EQ(site.finish(call), REDLOCK_E_NO_QUORUM);
  EXPECT_EQ(call.report().their_found, 1u);
  site.try_all({&other});
  EXPECT_TRUE(other.holds("bus"));
}

TEST(Adoption, a_lost_mark_does_not_count) {
  for (const unsigned lost : {1u, 2u}) {
    Site site(3);
    Gateway& other = site.add("t", {1, 3}, true);
    Call& call = site.begin({1, 3, 2'000});
    site.until(call, REDLOCK_ADOPT_WAIT);
    for (unsigned m = 1; m <= lost; ++m) site.stage.restart(m, RedisDouble::Keep::none);
    EXPECT_EQ(site.finish(call), lost == 1 ? 1 : REDLOCK_E_RECORD_LOST);
    EXPECT_EQ(call.report().err[0], REDLOCK_E_RECORD_LOST);
    Gateway& gateway = site.add("g", {1, 3, 2'000});
    site.try_all({&gateway, &other});
    EXPECT_EQ(gateway.holds("bus"), lost == 1);
    EXPECT_EQ(other.holds("bus"), lost == 2);
  }
}

// ---- anything -------------------------------------------------------------------------------------------------------

// Anything may happen to the masters meanwhile, two operators adopt and change as they like, and in the end one of them
// repeats the adoption until it has succeeded. Ours needs a master of theirs in every quorum.
void any_life(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  static constexpr Range all_theirs[] = {{1, 3}, {1, 3, 4'000}, {1, 1}, {1, 5}, {1, 4}};
  static constexpr Range all_ours[] = {{1, 3, 2'000}, {1, 4}, {1, 1, 2'000}, {2, 5}, {1, 5}};
  const unsigned kind = below(5);
  const Range theirs = all_theirs[kind], ours = all_ours[kind];
  Site site(6, seed);
  for (unsigned m = 1; m <= 6; ++m) site.stage.set_delay_ms(m, below(20));
  Gateway& other = site.add("t", theirs, true);
  Gateway* fresh = nullptr;
  const auto live = [&] {
    if (below(3) == 0) site.want(other, 1'000 + below(2) * 1'000, below(2));
    site.advance(20 + below(300), 5);
    site.disturb(below);
    if (fresh == nullptr && below(8) == 0) fresh = &site.stage.add("g", set_of(ours, GuardMode::strict));
    if (fresh != nullptr) site.want(*fresh);
  };
  for (int turn = 0; turn < 4; ++turn) {
    Call& one = site.begin(ours);
    for (unsigned turns = below(12); turns > 0 && !one.over(); --turns) live();
    Call* second = below(2) ? &site.begin(ours) : nullptr;
    Change* change = second == nullptr && below(3) == 0 ? &site.begin_change(theirs, ours) : nullptr;
    if (below(3) == 0) one.stop();
    for (unsigned turns = 0; turns < 30; ++turns) live();
    one.go_on();
    site.finish(one);
    if (second != nullptr) site.finish(*second);
    if (change != nullptr) site.finish(*change);
    site.all_well();
  }
  int result = -1;
  for (int call = 0; call < 3 && result != 0; ++call) {
    result = site.adopt(ours);
    // What a change has left is a matter for the change.
    const bool for_the_change =
        result == REDLOCK_E_CHANGING || (result == REDLOCK_E_NO_QUORUM && !site.changes.empty());
    if (for_the_change) result = site.finish(site.begin_change(theirs, ours));
  }
  if (fresh == nullptr) fresh = &site.stage.add("g", set_of(ours, GuardMode::strict));
  site.advance(2 * longest_ms, 100);
  site.want(*fresh);
  site.want(other);
  site.advance(4 * longest_ms, 100);
  EXPECT_EQ(result, 0) << "seed " << seed;
  EXPECT_TRUE(fresh->holds("bus")) << "seed " << seed;
  EXPECT_EQ(site.stage.violations(), 0u) << "seed " << seed << "\n" << site.stage.take_story();
}

TEST(Adoption, whatever_happens_to_the_masters) {
  for (uint64_t seed = 1; seed <= 8 && !HasFailure(); ++seed) any_life(seed);
}

}  // namespace
}  // namespace redlock
