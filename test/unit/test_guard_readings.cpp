// SPDX-License-Identifier: MIT
//
// The guard's readings: whose identity they tell, what the whole INFO says, and which of them count.
#include "guard_fixture.hpp"

namespace redlock {
namespace {

using namespace guard_test;

// An answer may come in pieces, and the guard may be asked about its deadline in between.
TEST_F(AdmittedGuard, half_an_answer_changes_nothing) {
  const Asked asked = f.ask();
  f.say_role();
  const std::string* const fields[] = {&f.record.desc, &f.record.q, &f.record.seal, &f.record.visit};
  for (unsigned i = 0; i < std::size(fields); ++i) {
    f.guard.read(static_cast<Field>(i), fields[i]->empty(), bytes(*fields[i]));
    f.guard.on_time(f.now);
    EXPECT_TRUE(f.guard.admitted()) << i;
  }
  EXPECT_EQ(f.guard.end_reading(asked.number, asked.sent, f.now), Next::nothing);
  EXPECT_TRUE(f.guard.admitted());
}

// What others see of the master is of one whole reading.
TEST_F(AdmittedGuard, a_reading_of_another_state_is_put_in_place_at_its_end) {
  const std::string seal = text(f.guard.seal());
  const auto expect_as_before = [&](const char* when) {
    f.guard.on_time(f.now);
    EXPECT_EQ(text(f.guard.seal()), seal) << when;
    EXPECT_EQ(text(f.guard.desc()), "v1 n=3") << when;
    EXPECT_TRUE(f.guard.is_ours()) << when;
    EXPECT_TRUE(f.guard.sealed()) << when;
    EXPECT_TRUE(f.guard.alone()) << when;
    EXPECT_TRUE(f.guard.admitted()) << when;
  };
  const Asked asked = f.ask();
  f.facts.master = f.facts.alone = false;
  f.resynchronize("4444444444444444");
  f.record = {"v1 n=5", "bbbbbbbbbbbbbbbb", "", "", ""};
  f.say_role();
  expect_as_before("behind the role");
  f.say_fields();
  expect_as_before("behind the fields");
  EXPECT_EQ(f.guard.end_reading(asked.number, asked.sent, f.now), Next::nothing);
  EXPECT_EQ(text(f.guard.seal()), "1111111111111111:4444444444444444:bbbbbbbbbbbbbbbb");
  EXPECT_EQ(f.guard.desc().size, 0u);
  EXPECT_FALSE(f.guard.is_ours() || f.guard.sealed() || f.guard.alone());
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_ROLE);
}

// ---- the identity of a reading ----------------------------------------------------------------------------------

// The server's data were replaced by a copy that contains the record. The seal still fits what this connection knew.
TEST_F(AdmittedGuard, a_seal_that_fits_the_known_replication_id_and_not_the_read_one_admits_nobody) {
  f.resynchronize("4444444444444444");
  EXPECT_EQ(f.read(), Next::nothing);
  EXPECT_FALSE(f.guard.admitted());
  EXPECT_TRUE(f.guard.forgot());
  EXPECT_EQ(text(f.guard.replid()), "4444444444444444");

  Fixture g;  // the same, and the connection knows another id from the greeting's INFO
  g.create();
  g.record.seal = "1111111111111111:2222222222222222:aaaaaaaaaaaaaaaa";
  g.resynchronize("4444444444444444");
  g.read();
  EXPECT_FALSE(g.guard.admitted());
}

TEST_F(AnyGuard, the_run_id_is_of_the_greeting_and_the_replication_id_of_the_reading) {
  f.create();
  f.resynchronize("4444444444444444");
  f.read();
  EXPECT_EQ(text(f.guard.seal()), "1111111111111111:4444444444444444:aaaaaaaaaaaaaaaa");
  EXPECT_EQ(text(f.guard.run_id()), "1111111111111111");
}

TEST_F(AdmittedGuard, a_replica_loses_its_vote_with_the_reading_that_tells) {
  f.facts.master = false;
  EXPECT_EQ(f.read(), Next::nothing);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_ROLE);
  EXPECT_TRUE(f.guard.forgot());
  f.record.seal.clear();
  EXPECT_EQ(f.until(100'000), Next::nothing) << "a replica is neither sealed nor visited";
  f.seal();
  f.facts.master = true;
  f.until(110'000);
  EXPECT_TRUE(f.guard.admitted()) << "a master again, in the very same state";
}

// What only the replication id tells may be a backup, or a first replica: an operator is told so.
TEST(Guard, replid_is_the_reason_exactly_when_nothing_else_has_changed) {
  struct {
    const char* what;
    const char* run;
    const char* repl;
    const char* q;
    int reason;
  } const cases[] = {
      {"nothing", "1111111111111111", "2222222222222222", "aaaaaaaaaaaaaaaa", 0},
      {"the replication id", "1111111111111111", "4444444444444444", "aaaaaaaaaaaaaaaa", REDLOCK_E_REPLID},
      {"its last digit", "1111111111111111", "2222222222222223", "aaaaaaaaaaaaaaaa", REDLOCK_E_REPLID},
      {"the run id", "1111111111111112", "2222222222222222", "aaaaaaaaaaaaaaaa", REDLOCK_E_UNWATCHED},
      {"the run id's first digit", "2111111111111111", "2222222222222222", "aaaaaaaaaaaaaaaa", REDLOCK_E_UNWATCHED},
      {"the quarantine id", "1111111111111111", "2222222222222222", "aaaaaaaaaaaaaaab", REDLOCK_E_UNWATCHED},
      {"the quarantine id's first digit", "1111111111111111", "2222222222222222", "baaaaaaaaaaaaaaa",
       REDLOCK_E_UNWATCHED},
      {"a restart", "3333333333333333", "4444444444444444", "aaaaaaaaaaaaaaaa", REDLOCK_E_UNWATCHED},
      {"new data", "1111111111111111", "4444444444444444", "bbbbbbbbbbbbbbbb", REDLOCK_E_UNWATCHED},
  };
  for (const bool reconnected : {false, true}) {
    for (const auto& c : cases) {
      const bool other_process = std::string_view(c.run) != "1111111111111111";
      if (other_process && !reconnected) continue;
      SCOPED_TRACE(c.what);
      Fixture f;
      f.admit();
      f.now = at(1'000);
      if (reconnected) f.connect(c.run, c.repl);
      f.resynchronize(c.repl);
      f.record.q = c.q;
      f.read();
      EXPECT_EQ(f.guard.reason(), c.reason);
      if (c.reason == 0) continue;
      EXPECT_TRUE(f.guard.forgot());
      EXPECT_EQ(f.guard.watched_at(), at(1'000 + guard_ms));
      EXPECT_EQ(f.until(1'000 + guard_ms - 1), Next::nothing);
      EXPECT_EQ(f.guard.reason(), c.reason) << "as long as it is watched";
      EXPECT_EQ(f.until(1'000 + guard_ms), Next::seal);
    }
  }
}

TEST_F(AnyGuard, a_run_id_that_changes_on_a_connection_is_another_server) {
  EXPECT_TRUE(f.guard.identify(f.facts, f.now)) << "as in the greeting";
  InfoFacts other = f.facts;
  other.run_id[15] = 'x';
  EXPECT_FALSE(f.guard.identify(other, f.now));
  Fixture g;
  other = g.facts;
  other.has_run_id = false;
  EXPECT_FALSE(g.guard.identify(other, g.now)) << "nor is it known to be the same";
  Fixture h;
  h.connect("3333333333333333");
  EXPECT_EQ(text(h.guard.run_id()), "3333333333333333") << "a new connection may be to another one";
}

// ---- what the server says of itself ---------------------------------------------------------------------------

TEST(Guard, what_the_whole_info_says_can_refuse_it) {
  struct {
    void (*change)(InfoFacts&);
    int reason;
  } const cases[] = {{[](InfoFacts& i) { i.standalone = false; }, REDLOCK_E_MODE},
                     {[](InfoFacts& i) { i.evicts = true; }, REDLOCK_E_MAXMEMORY}};
  for (const auto& c : cases) {
    Fixture f;
    f.admit();
    InfoFacts changed = f.facts;
    c.change(changed);
    f.guard.identify(changed, f.now);
    EXPECT_EQ(f.guard.reason(), c.reason);
    EXPECT_EQ(f.guard.forgot(), c.reason == REDLOCK_E_MODE) << c.reason;
    f.guard.identify(f.facts, f.now);
    EXPECT_TRUE(f.guard.admitted()) << c.reason;
  }
}

TEST_F(AdmittedGuard, strict_wants_both_ids) {
  f.facts.has_replid = false;
  EXPECT_EQ(f.read(), Next::nothing);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_IDENTITY);
  f.record.seal = "1111111111111111:0000000000000000:aaaaaaaaaaaaaaaa";
  f.read();
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_IDENTITY) << "nor does a seal without it help";

  Fixture g;
  g.guard.connected();
  g.facts.has_run_id = false;
  g.guard.identify(g.facts, g.now);
  g.create();
  EXPECT_EQ(g.read(), Next::nothing);
  EXPECT_EQ(g.guard.reason(), REDLOCK_E_IDENTITY);
}

TEST_F(AdmittedGuard, evicted_keys_are_as_good_as_forgotten) {
  f.facts.evicted_keys = 1;
  f.guard.identify(f.facts, f.now);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_EVICTED) << "and no clock is blamed";
  EXPECT_EQ(f.guard.outlook(), Guard::Outlook::watched);
  EXPECT_EQ(f.guard.watched_at(), at(guard_ms));
}

// One that restarts has a new run id each time. One that comes back has been there while the other one answered.
TEST_F(AdmittedGuard, two_servers_of_one_name_have_no_vote) {
  f.connect("3333333333333333");
  f.connect("3333333333333333");
  f.connect("4444444444444444");
  EXPECT_NE(f.guard.reason(), REDLOCK_E_TWO_SERVERS);
  f.now = at(1'000);
  f.connect("3333333333333333");
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_TWO_SERVERS);
  EXPECT_EQ(f.guard.outlook(), Guard::Outlook::watched);
  EXPECT_EQ(f.guard.watched_at(), at(guard_ms + 1'000));
  f.connect("3333333333333333");
  EXPECT_EQ(f.guard.watched_at(), at(guard_ms + 1'000)) << "not anew with each connection";
}

TEST_F(AnyGuard, alone_is_what_the_last_reading_of_this_connection_said) {
  EXPECT_FALSE(f.guard.alone());
  f.read();
  EXPECT_TRUE(f.guard.alone());
  f.facts.alone = false;
  f.read();
  EXPECT_FALSE(f.guard.alone());
  f.facts.alone = true;
  f.read();
  EXPECT_TRUE(f.guard.alone());
  f.guard.connected();
  EXPECT_FALSE(f.guard.alone());
  f.read();
  f.info_error = REDLOCK_E_NOPERM;
  f.read();
  EXPECT_FALSE(f.guard.alone());
}

// The rest of the reading may tell of another state, in which a plain command would be executed without being compared.
TEST_F(AnyGuard, alone_is_not_believed_before_the_whole_reading_has_come) {
  f.facts.alone = false;
  f.admit();
  f.facts.alone = true;
  f.resynchronize("4444444444444444");
  const Asked asked = f.ask();
  f.say_role();
  EXPECT_FALSE(f.guard.admitted() && f.guard.alone());
  f.say_fields();
  EXPECT_FALSE(f.guard.admitted() && f.guard.alone());
  f.guard.end_reading(asked.number, asked.sent, f.now);
  EXPECT_FALSE(f.guard.admitted());
  EXPECT_TRUE(f.guard.alone());
}

// ---- readings ---------------------------------------------------------------------------------------------------

TEST(Guard, a_reading_of_before_a_withdrawal_writes_nothing) {
  struct {
    void (*change)(Fixture&);
    Next next;
  } const cases[] = {{[](Fixture& f) { f.record = {}; }, Next::create},
                     {[](Fixture& f) { f.create(), f.guard.commission(at(1'000)); }, Next::seal}};
  for (const auto& c : cases) {
    Fixture f;
    c.change(f);
    const Asked before = f.ask();
    f.guard.withdraw(f.now);
    EXPECT_EQ(f.answer(before), Next::nothing);
    EXPECT_EQ(f.read(), c.next);
  }
}

TEST_F(AdmittedGuard, an_error_to_a_reading_of_before_a_withdrawal_says_nothing) {
  const Asked before = f.ask();
  f.guard.withdraw(f.now);
  f.guard.reading_failed(before.number, REDLOCK_E_LOADING, before.sent, f.now);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNREAD);
  EXPECT_TRUE(f.guard.wants_reading(f.now));
}

// Every order of questions, answers and withdrawals, beside the rule itself.
TEST(Guard, only_a_reading_sent_after_the_last_withdrawal_admits) {
  constexpr unsigned steps = 9;
  unsigned schedules = 1, admissions = 0;
  for (unsigned i = 0; i < steps; ++i) schedules *= 3;
  for (unsigned schedule = 0; schedule < schedules; ++schedule) {
    Fixture f;
    f.create();
    f.record.seal = "1111111111111111:2222222222222222:aaaaaaaaaaaaaaaa";
    std::deque<std::pair<Asked, unsigned>> under_way;  // with the step in which each was sent
    unsigned withdrawn_in = 0;
    bool admitted = false;
    unsigned choice = schedule;
    for (unsigned step = 1; step <= steps; ++step, choice /= 3) {
      if (choice % 3 == 0) {
        under_way.push_back({f.ask(), step});
      } else if (choice % 3 == 1) {
        f.guard.withdraw(f.now);
        withdrawn_in = step;
        admitted = false;
      } else if (!under_way.empty()) {
        const auto [asked, sent_in] = under_way.front();
        under_way.pop_front();
        f.answer(asked);
        admitted = admitted || sent_in > withdrawn_in;
      }
      f.guard.on_time(f.now);
      ASSERT_EQ(f.guard.admitted(), admitted) << "schedule " << schedule << ", step " << step;
      admissions += admitted;
    }
  }
  EXPECT_GT(admissions, 1'000u);
}

TEST_F(AdmittedGuard, an_admission_lapses_when_no_reading_follows) {
  EXPECT_EQ(f.guard.deadline(), at(5'000)) << "read again at half its life";
  f.now = at(5'000);
  EXPECT_TRUE(f.guard.wants_reading(f.now));
  f.ask();
  EXPECT_EQ(f.guard.deadline(), at(10'000));
  f.guard.on_time(at(9'999));
  EXPECT_TRUE(f.guard.admitted());
  f.guard.on_time(at(10'000));
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNREAD);
}

// A write is followed by a reading of its own, perhaps while another is under way.
TEST_F(AdmittedGuard, of_two_readings_each_is_as_old_as_its_own_question) {
  f.now = at(5'000);
  const Asked first = f.ask();
  f.now = at(5'100);
  const Asked second = f.ask();
  f.answer(first);
  f.guard.on_time(at(14'999));
  EXPECT_TRUE(f.guard.admitted());
  f.now = at(5'200);
  f.answer(second);
  f.guard.on_time(at(15'099));
  EXPECT_TRUE(f.guard.admitted());
  f.guard.on_time(at(15'100));
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNREAD);
}

// What the master said is true of some instant after the question was asked, of no later one.
TEST_F(AdmittedGuard, an_answer_that_comes_too_late_admits_nobody) {
  f.now = at(5'000);
  const Asked asked = f.ask();
  f.now = at(15'000);
  f.answer(asked);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNREAD);
  EXPECT_TRUE(f.guard.wants_reading(f.now));
}

TEST(Guard, a_reading_lives_a_third_of_the_longest_ttl_and_never_less_than_a_second) {
  EXPECT_EQ(reading_lifetime(30'000), Duration::ms(10'000));
  EXPECT_EQ(reading_lifetime(3'000), Duration::ms(1'000));
  EXPECT_EQ(reading_lifetime(20), Duration::ms(1'000));
  EXPECT_EQ(guard_time(30'000, 10'000, 2), Duration::ms(guard_ms));
}

// Else the timer would fire again at once, for an instant that is over.
TEST_F(AnyGuard, a_late_error_is_followed_by_a_reading_now) {
  const Asked asked = f.ask();
  f.now = at(9'000);
  f.guard.reading_failed(asked.number, REDLOCK_E_LOADING, asked.sent, f.now);
  EXPECT_EQ(f.guard.deadline(), at(9'000));
  EXPECT_TRUE(f.guard.wants_reading(f.now));
}

TEST_F(AnyGuard, a_duplicate_neither_votes_nor_seals) {
  f.create();
  f.guard.set_duplicate(true);
  EXPECT_EQ(f.read(), Next::nothing);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_DUPLICATE);
  EXPECT_EQ(f.until(100'000), Next::nothing);
  f.guard.set_duplicate(false);
  EXPECT_EQ(f.read(), Next::seal);
}

}  // namespace
}  // namespace redlock
