// SPDX-License-Identifier: MIT
//
// May this master vote? The guard is told what the master says and what time it is; here the master is a record, two
// ids and a role, which the test changes. Then what counts of the guard's readings, and what the guard writes.
#include "master/guard.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <string>
#include <string_view>

namespace redlock {
namespace {

using Next = Guard::Next;
using Field = Guard::Field;

Instant at(int64_t ms) { return Instant::from_ns(ms * 1'000'000); }
Bytes bytes(const std::string& s) { return Bytes(s.data(), s.size()); }
std::string text(Bytes b) { return std::string(b.data, b.size); }

struct Record {
  std::string desc, q, seal, visit, left;  // empty: absent
};

// A reading that was sent, and is not answered yet.
struct Asked {
  uint32_t number;
  Instant sent;
};

constexpr int64_t guard_ms = 30'302;  // max_ttl + 1 % + 2 ms

struct Fixture {
  explicit Fixture(GuardMode mode = GuardMode::strict) {
    settings.guard = mode;
    settings.max_ttl_ms = 30'000;
    settings.fingerprint = "v1 n=3";
    connect();
  }
  Fixture(const Fixture&) = delete;
  void connect(const char* run = "1111111111111111", const char* repl = "2222222222222222") {
    guard.connected();
    facts = {};
    facts.has_run_id = facts.has_replid = facts.standalone = facts.master = facts.alone = true;
    memcpy(facts.run_id, run, sizeof facts.run_id);
    resynchronize(repl);
    guard.identify(facts, now);
  }
  void resynchronize(const char* repl) { memcpy(facts.replid, repl, sizeof facts.replid); }

  Asked ask() { return {guard.begin_reading(), now}; }
  // What the master is now is the answer.
  Next answer(const Asked& asked) {
    say_role();
    say_fields();
    return guard.end_reading(asked.number, asked.sent, now);
  }
  void say_role() {
    if (info_error != 0) {
      guard.read_no_role(info_error);
    } else {
      guard.read_role(facts);
    }
  }
  void say_fields() {
    const std::pair<Field, const std::string*> fields[] = {{Field::desc, &record.desc}, {Field::q, &record.q},
                                                           {Field::seal, &record.seal}, {Field::left, &record.left},
                                                           {Field::visit, &record.visit}};
    for (const auto& [field, text] : fields) guard.read(field, text->empty(), bytes(*text));
  }
  Next read() { return answer(ask()); }

  // What the scripts do.
  void create(const char* q = "aaaaaaaaaaaaaaaa") { record = {"v1 n=3", q, "", "", ""}; }
  void seal() {
    record.seal = text(guard.seal());
    record.visit.clear();
  }
  void admit() {
    create();
    read();
    seal();
    ASSERT_EQ(read(), Next::nothing);
    ASSERT_TRUE(guard.admitted());
  }
  // Time goes on in steps, with a reading whenever the guard wants one; the first answer other than nothing.
  Next until(int64_t ms) {
    Next next = Next::nothing;
    while (next == Next::nothing && now < at(ms)) {
      now = earlier(later(guard.deadline(), now + Duration::ms(1)), at(ms));
      guard.on_time(now);
      if (guard.wants_reading(now)) next = read();
    }
    return next;
  }

  Settings settings;
  Guard guard{settings};
  InfoFacts facts;     // all that INFO says
  int info_error = 0;  // INFO is refused inside scripts
  Record record;
  Instant now = at(0);
};

struct AnyGuard : ::testing::Test {
  Fixture f;
};
struct AdmittedGuard : AnyGuard {
  AdmittedGuard() { f.admit(); }
};

// ---- watches ------------------------------------------------------------------------------------------------------

TEST_F(AnyGuard, a_jump_of_our_clock_begins_the_watch_anew_and_asks_for_a_reading) {
  f.create();
  f.read();
  f.now = at(20'000);
  f.guard.clock_jumped(f.now);
  EXPECT_TRUE(f.guard.wants_reading(f.now));
  f.read();
  EXPECT_EQ(f.guard.watched_at(), at(20'000 + guard_ms));

  Fixture g;
  g.admit();
  g.guard.clock_jumped(g.now);
  EXPECT_EQ(g.guard.reason(), REDLOCK_E_UNREAD);
}

// ---- the record -----------------------------------------------------------------------------------------------

// What a change of masters writes beside the fingerprint of the new set, on a master that was entered: which set it has
// left. Until more stands behind that, the change may fail.
TEST_F(AnyGuard, a_record_of_another_set_says_whether_a_change_has_left_ours) {
  const std::string ours = "v1 n=3", theirs = "v1 n=5 q=3 max_ttl_ms=30000 ids=0011223344556677", arrow = " > ";
  const struct {
    std::string desc, left;
    int reason;
    Guard::Outlook outlook;
  } cases[] = {
      {theirs, "", REDLOCK_E_FINGERPRINT, Guard::Outlook::foreign},
      {theirs, "left " + ours + arrow + theirs + " 1764341760", REDLOCK_E_LEFT, Guard::Outlook::never},
      {theirs, "left " + ours, REDLOCK_E_FINGERPRINT, Guard::Outlook::moving},
      {theirs, "left " + theirs + arrow + ours + " 1764341760", REDLOCK_E_FINGERPRINT, Guard::Outlook::foreign},
      {theirs, "left ", REDLOCK_E_FINGERPRINT, Guard::Outlook::foreign},
      {theirs, "left v1 n=4", REDLOCK_E_FINGERPRINT, Guard::Outlook::foreign},
      {"left " + ours + arrow + theirs, "", REDLOCK_E_LEFT, Guard::Outlook::never},
      {"left " + theirs + arrow + ours, "left " + ours, REDLOCK_E_FINGERPRINT, Guard::Outlook::moving},
      {"moving " + ours + arrow + theirs, "left " + ours + arrow + theirs, REDLOCK_E_FINGERPRINT,
       Guard::Outlook::moving},
  };
  for (const auto& c : cases) {
    f.record = {c.desc, std::string(16, 'a'), "", "", c.left};
    EXPECT_EQ(f.read(), Next::nothing);
    EXPECT_EQ(f.guard.reason(), c.reason) << c.desc << "; " << c.left;
    EXPECT_EQ(f.guard.outlook(), c.outlook) << c.desc << "; " << c.left;
  }
  f.create();
  f.record.left = "left " + ours + arrow + theirs + " 1764341760";
  EXPECT_NE(f.read(), Next::create) << "of no use in a record of ours";
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNWATCHED);
}

TEST_F(AnyGuard, another_configuration_is_remembered_while_it_is_the_reason) {
  f.create();
  f.record.desc = "v1 n=1 q=1 max_ttl_ms=20000 ids=0011223344556677";
  f.read();
  EXPECT_EQ(f.guard.theirs().masters, 1u);
  EXPECT_EQ(f.guard.theirs().max_ttl_ms, 20'000u);
  f.guard.set_duplicate(true);
  EXPECT_EQ(f.guard.theirs().masters, 0u) << "another reason";
  f.guard.set_duplicate(false);
  f.record.desc = "v2, whatever that says";
  f.read();
  EXPECT_EQ(f.guard.theirs().masters, 0u) << "no fingerprint of ours";
  f.record.desc = "v1 n=3";
  f.read();
  EXPECT_EQ(f.guard.theirs().masters, 0u);
}

TEST(Guard, what_a_fingerprint_says) {
  Settings s;
  s.masters = 15;
  s.max_ttl_ms = REDLOCK_MAX_TTL_MS_MAX;
  char written[fingerprint_max];
  const Fingerprint ours = read_fingerprint(write_fingerprint(s, 8, written));
  EXPECT_EQ(ours.masters, 15u);
  EXPECT_EQ(ours.max_ttl_ms, uint32_t{REDLOCK_MAX_TTL_MS_MAX});
  for (const char* none : {"", "v1", "v1 n=", "v1 n=3", "v1 n=3 q=2", "v1 n=3 q=2 max_ttl_ms=",
                           "v1 n=0 q=1 max_ttl_ms=9",
                           "v1 n=16 q=9 max_ttl_ms=9", "v1 n=3 q=2 max_ttl_ms=86400001", "v1 n=3 q=2 max_ttl_ms=x",
                           "v1 n=3 q=2 max_ttl_ms=99999999999999999999999",
                           "moving v1 n=3 q=2 max_ttl_ms=9 ids=0 > v1 n=5 q=3 max_ttl_ms=9 ids=1"}) {
    const Fingerprint read = read_fingerprint(Bytes(none, strlen(none)));
    EXPECT_EQ(read.masters, 0u) << none;
    EXPECT_EQ(read.max_ttl_ms, 0u) << none;
  }
}

TEST(Guard, a_record_that_lacks_one_field_is_made_anew) {
  for (const int missing : {0, 1}) {
    Fixture f;
    f.admit();
    (missing == 0 ? f.record.desc : f.record.q).clear();
    EXPECT_EQ(f.read(), Next::create) << missing;
    EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNWATCHED) << missing;
  }
}

TEST(Guard, off_is_off_whatever_happens) {
  Settings settings;
  Guard guard(settings);
  guard.clock_jumped(at(0));
  guard.set_duplicate(true);
  EXPECT_TRUE(guard.admitted());
}

TEST_F(AnyGuard, a_quarantine_id_of_another_length_is_none) {
  f.create("aaaa");
  EXPECT_EQ(f.read(), Next::create);
}

// Names are for a person: which master stands in one file and not in the other?
TEST(Guard, which_master_differs) {
  Settings s;
  const char* const names[] = {"pump", "roof", "cellar"};
  s.masters = 3;
  for (MasterIndex m = 0; m < 3; ++m) s.master[m].name = Bytes(names[m], strlen(names[m]));
  char list[names_max];
  EXPECT_EQ(text(write_names(s, list)), "cellar,pump,roof") << "in any order of the file";
  const Bytes ours("cellar,pump,roof");
  EXPECT_EQ(text(first_missing(Bytes("attic,pump,roof"), ours)), "attic");
  EXPECT_EQ(text(first_missing(ours, Bytes("attic,pump,roof"))), "cellar");
  EXPECT_EQ(text(first_missing(ours, Bytes("cellar,pump,roofs"))), "roof");
  EXPECT_EQ(text(first_missing(ours, ours)), "");
  EXPECT_EQ(text(first_missing(ours, Bytes())), "") << "an older record";
  EXPECT_EQ(text(first_missing(ours, Bytes("cellar,..."))), "") << "who knows what else";
  EXPECT_EQ(text(first_missing(Bytes("attic,..."), ours)), "");
  const std::string longest(REDLOCK_MASTER_NAME_MAX, 'x');
  for (MasterIndex m = 0; m < 3; ++m) s.master[m].name = Bytes(longest.data(), longest.size());
  EXPECT_EQ(text(write_names(s, list)), longest + "," + longest + ",...");
}

// Anybody may have written the names.
TEST_F(AnyGuard, a_name_that_is_too_long_is_not_told) {
  f.settings.names = Bytes("m1,m2,m3");
  for (const size_t size : {size_t{REDLOCK_MASTER_NAME_MAX}, size_t{REDLOCK_MASTER_NAME_MAX + 1}}) {
    const std::string name(size, 'x'), names = "m1,m2," + name;
    const Asked asked = f.ask();
    f.guard.read_role(f.facts);
    f.guard.read(Guard::Field::desc, false, Bytes("v1 n=3 q=2 max_ttl_ms=20000 ids=0"));
    f.guard.read(Guard::Field::names, false, Bytes(names.data(), names.size()));
    f.guard.end_reading(asked.number, asked.sent, f.now);
    EXPECT_EQ(f.guard.their_name().size, size <= REDLOCK_MASTER_NAME_MAX ? size : 0);
  }
}

TEST(Guard, its_keys_are_named_and_the_fingerprint_says_what_must_agree) {
  Settings a;
  a.masters = 3;
  a.key_prefix = "plant:";
  a.master[0].name = "x";
  a.master[1].name = "y";
  a.master[2].name = "z";
  Settings b = a;
  b.master[0].name = "z";
  b.master[2].name = "x";
  char key[meta_key_max], seen[meta_key_max], one[fingerprint_max], two[fingerprint_max];
  EXPECT_EQ(text(write_meta_key(a, key)), "redlock:plant::meta");
  EXPECT_EQ(text(write_seen_key(a, seen)), "redlock:plant::seen");
  const Bytes f = write_fingerprint(a, 2, one);
  // The sum of the mixed hashes of "x", "y" and "z". Clients of every version must write the same.
  EXPECT_EQ(text(f), "v1 n=3 q=2 max_ttl_ms=30000 ids=89df22add9bf70bc");
  EXPECT_TRUE(f == write_fingerprint(b, 2, two)) << "in any order";
  b.master[0].name = "w";
  EXPECT_TRUE(f != write_fingerprint(b, 2, two));
  b = a;
  b.max_ttl_ms = 20'000;
  EXPECT_TRUE(f != write_fingerprint(b, 2, two));
}

// ---- the one verdict ----------------------------------------------------------------------------------------------

// All that can stand in the way, one above the other: the reason is always the topmost.
TEST_F(AnyGuard, the_reason_is_the_first_of_all_that_stand_in_the_way) {
  f.create();
  f.read();
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNWATCHED);
  f.resynchronize("4444444444444444");
  f.read();
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_REPLID);
  f.guard.written(REDLOCK_E_OOM);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_OOM);
  f.record.desc = "v1 n=5";
  f.read();
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_FINGERPRINT);
  f.guard.withdraw(f.now);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNREAD);
  const Asked asked = f.ask();
  f.guard.reading_failed(asked.number, REDLOCK_E_WRONGTYPE, asked.sent, f.now);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_WRONGTYPE);
  f.guard.step_clock(f.now);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_WALL_CLOCK);
  f.guard.set_duplicate(true);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_DUPLICATE);
  f.guard.read_clock(REDLOCK_E_NOPERM);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_NOPERM);
  InfoFacts cluster = f.facts;
  cluster.standalone = false;
  f.guard.identify(cluster, f.now);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_MODE);
  f.facts.master = false;
  f.read();
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_ROLE);
  for (int i = 0; i < 3; ++i) {
    f.guard.on_time(f.now);
    EXPECT_EQ(f.guard.reason(), REDLOCK_E_ROLE) << "asked again, it says the same";
  }
}

TEST_F(AdmittedGuard, a_server_that_keeps_its_time_to_itself_votes_only_when_weak) {
  f.guard.read_clock(REDLOCK_E_NOPERM);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_NOPERM);
  f.read();
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_NOPERM) << "a reading does not mend it";
  f.guard.read_clock(0);
  EXPECT_TRUE(f.guard.admitted());
  f.guard.read_clock(REDLOCK_E_NOPERM);
  f.connect();
  f.read();
  EXPECT_TRUE(f.guard.admitted()) << "it was of the last connection";

  Fixture g(GuardMode::weak);
  g.admit();
  g.guard.read_clock(REDLOCK_E_NOPERM);
  EXPECT_TRUE(g.guard.admitted());
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
      {"the run id", "1111111111111112", "2222222222222222", "aaaaaaaaaaaaaaaa", REDLOCK_E_UNWATCHED},
      {"the quarantine id", "1111111111111111", "2222222222222222", "aaaaaaaaaaaaaaab", REDLOCK_E_UNWATCHED},
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

// ---- what the server says of itself ---------------------------------------------------------------------------

TEST_F(AdmittedGuard, another_mode_forgets_and_another_run_id_is_another_server) {
  InfoFacts other = f.facts;
  other.standalone = false;
  EXPECT_TRUE(f.guard.identify(other, f.now)) << "as in the greeting";
  EXPECT_TRUE(f.guard.forgot());
  other.run_id[15] = 'x';
  EXPECT_FALSE(f.guard.identify(other, f.now));
  Fixture g;
  other.has_run_id = false;
  EXPECT_FALSE(g.guard.identify(other, g.now)) << "nor is it known to be the same";
  EXPECT_EQ(g.guard.quarantine().size, 0u) << "of no record";
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

// Whoever reads once a minute may not have read them before the connection was lost. A new process has evicted keys of
// its own alone.
TEST_F(AdmittedGuard, keys_evicted_before_a_reconnect_are_as_good_as_forgotten) {
  Fixture g;
  g.admit();
  g.facts.evicted_keys = 1;
  g.facts.run_id[0] = '6';
  f.facts.evicted_keys = 1;
  for (Fixture* one : {&f, &g}) {
    one->guard.connected();
    one->guard.identify(one->facts, one->now);
    one->read();
  }
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_EVICTED);
  EXPECT_EQ(g.guard.reason(), REDLOCK_E_UNWATCHED);
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

// ---- readings ---------------------------------------------------------------------------------------------------

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

// A write is followed by a reading of its own, perhaps while another is under way.
TEST_F(AdmittedGuard, of_two_readings_each_is_as_old_as_its_own_question) {
  f.now = at(5'000);
  const Asked first = f.ask();
  f.now = at(5'100);
  const Asked second = f.ask();
  f.answer(first);
  EXPECT_TRUE(f.guard.counts(at(14'999)));
  EXPECT_FALSE(f.guard.counts(at(15'000)));
  f.now = at(5'200);
  f.answer(second);
  EXPECT_TRUE(f.guard.counts(at(15'099)));
  EXPECT_FALSE(f.guard.counts(at(15'100)));
  EXPECT_TRUE(f.guard.admitted()) << "it may be asked, behind another reading";
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

TEST_F(AnyGuard, a_duplicate_neither_votes_nor_seals) {
  f.create();
  f.guard.set_duplicate(true);
  EXPECT_EQ(f.read(), Next::nothing);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_DUPLICATE);
  EXPECT_EQ(f.until(100'000), Next::nothing);
  f.guard.set_duplicate(false);
  EXPECT_EQ(f.read(), Next::seal);
}

// ---- writes -------------------------------------------------------------------------------------------------------

TEST_F(AnyGuard, a_refused_write_is_the_reason_and_is_tried_again_later_only) {
  EXPECT_EQ(f.read(), Next::create);
  f.guard.written(REDLOCK_E_OOM);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_OOM);
  EXPECT_EQ(f.read(), Next::nothing);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_OOM);
  EXPECT_FALSE(f.guard.wants_reading(at(4'999)));
  for (const int64_t ms : {0, 1, 4'999}) {
    f.guard.on_time(at(ms));
    EXPECT_EQ(f.guard.reason(), REDLOCK_E_OOM) << ms;
  }
  EXPECT_EQ(f.until(5'000), Next::create);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_OOM) << "until a write is done";
  f.guard.written(0);
  f.create();
  EXPECT_EQ(f.read(), Next::nothing);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNWATCHED);
}

TEST_F(AnyGuard, commissioning_is_used_up_by_the_seal_that_it_writes) {
  f.guard.commission(at(1'000));
  f.create();
  EXPECT_EQ(f.read(), Next::seal);
  f.create("cccccccccccccccc");  // lost before the seal was written
  EXPECT_EQ(f.read(), Next::nothing);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNWATCHED);
}

// Also where the state had its seal already: nothing is left of it for a state that comes later.
TEST_F(AdmittedGuard, commissioning_a_sealed_master_says_nothing_of_its_next_state) {
  f.guard.commission(at(1'000));
  f.read();
  f.create("cccccccccccccccc");
  EXPECT_EQ(f.read(), Next::nothing);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNWATCHED);
}

// ---- short visits -------------------------------------------------------------------------------------------------

constexpr int64_t visit_ms = 34'091;  // 1.125 guard times, and a millisecond for what two clock readings lose
constexpr int64_t epoch_ms = 1'700'000'000'000;  // the server's TIME when the machine was started

struct Visited : Fixture {
  explicit Visited(const std::string& visit = "", GuardMode mode = GuardMode::strict) : Fixture(mode) {
    settings.has_boot_id = true;
    memset(settings.boot_id, 'b', sizeof settings.boot_id);
    create();
    record.visit = visit;
  }
  // A reading, TIME and CLOCK_BOOTTIME behind it.
  Next read_at(int64_t boot_ms) { return read_at(boot_ms, epoch_ms + boot_ms); }
  Next read_at(int64_t boot_ms, int64_t server_ms) {
    const Next next = read();
    guard.read_time(server_ms);
    if (next != Next::nothing || !guard.wants_boot_time()) return next;
    return guard.boot_time(boot_ms, now);
  }
};

const std::string state = "2222222222222222:aaaaaaaaaaaaaaaa";

std::string visit_at(int64_t boot_ms, int64_t server_ms) {
  return state + " " + std::to_string(boot_ms) + " " + std::to_string(server_ms);
}
std::string visit_at(int64_t boot_ms) { return visit_at(boot_ms, epoch_ms + boot_ms); }

TEST(GuardVisits, boot_time_is_not_asked_for_without_both_ids) {
  Visited no_id, weak("", GuardMode::weak);
  no_id.settings.has_boot_id = false;
  weak.info_error = REDLOCK_E_NOPERM;
  for (Visited* f : {&no_id, &weak}) {
    f->read();
    f->guard.read_time(epoch_ms);
    EXPECT_FALSE(f->guard.wants_boot_time());
  }
}

// The clock is slewed by up to a tenth, and both times were rounded to milliseconds.
TEST(GuardVisits, an_earlier_visit_is_believed_at_no_less_than_an_eighth_more) {
  for (const uint32_t max_ttl_ms : {20u, 27u, 30'000u, 30'007u, 86'399'999u}) {
    Visited f(visit_at(100'000));
    f.settings.max_ttl_ms = max_ttl_ms;
    const int64_t watch_ns = guard_time(max_ttl_ms, f.settings.drift_ppm, f.settings.drift_fixed_ms).ns();
    const int64_t least_ms = (watch_ns * 9 / 8 + 999'999) / 1'000'000;
    EXPECT_EQ(f.read_at(100'000 + least_ms), Next::nothing) << "the first was a millisecond younger, perhaps";
    EXPECT_EQ(f.read_at(100'000 + least_ms + 2), Next::seal) << max_ttl_ms;
  }
}

// Two machines with one boot id, one of them up for an hour longer, or less: the visit's age by the boot time is wrong.
// The visit stays until it would be old enough, for the clients of the machine that has left the visit.
TEST(GuardVisits, the_boot_time_of_a_machine_with_the_same_boot_id_ends_no_watch) {
  constexpr int64_t hour = 3'600'000;
  for (const int64_t up : {hour, hour + visit_ms, -hour, int64_t{900'000'000'000}}) {
    Visited f(visit_at(1'000'000'000'000, epoch_ms));
    for (const int64_t age : {0, 1'000, 30'000}) {
      const bool would_end = up > 0;  // by the boot time
      EXPECT_EQ(f.read_at(1'000'000'000'000 + up + age, epoch_ms + age), would_end ? Next::visit : Next::nothing) << up;
      EXPECT_EQ(f.guard.watched_at(), at(guard_ms));
    }
    EXPECT_EQ(f.read_at(1'000'000'000'000 + up + visit_ms, epoch_ms + visit_ms), Next::visit) << "never a seal";
  }
  Visited f(visit_at(1'000, epoch_ms));
  EXPECT_EQ(f.read_at(1'000 + 60'000, epoch_ms + 30'000), Next::visit) << "old enough by the boot time alone";
}

TEST(GuardVisits, a_visit_of_a_later_time_of_the_server_is_replaced) {
  Visited f(visit_at(100'000, epoch_ms));
  EXPECT_EQ(f.read_at(100'000 + 10, epoch_ms - 60'000), Next::visit);
  EXPECT_EQ(f.read_at(100'000 + visit_ms, epoch_ms - 60'000), Next::visit);
  EXPECT_EQ(f.read_at(90'000, epoch_ms - 60'000), Next::visit) << "of another machine's, too";
  EXPECT_EQ(f.read_at(100'000 + 10, epoch_ms - 1'000), Next::nothing) << "a little earlier is a slow answer";
}

// A slow answer, or a slewed clock, on the way to a visit that is old enough by both.
TEST(GuardVisits, ages_may_differ_by_an_eighth) {
  struct {
    int64_t boot, server;
    Next next;
  } const cases[] = {{visit_ms, visit_ms + visit_ms / 8, Next::seal},
                     {visit_ms + visit_ms / 8, visit_ms, Next::seal},
                     {visit_ms, visit_ms * 8 / 7 + 2, Next::visit},
                     {visit_ms * 8 / 7 + 2, visit_ms, Next::visit},
                     {visit_ms - 1, visit_ms + 1'000, Next::nothing},
                     {visit_ms + 1'000, visit_ms - 1, Next::nothing},
                     {0, visit_ms / 8, Next::nothing},
                     {0, visit_ms - 1, Next::nothing},
                     {86'400'000, 77'000'000, Next::seal}};
  for (const auto& c : cases) {
    Visited f(visit_at(100'000, epoch_ms));
    EXPECT_EQ(f.read_at(100'000 + c.boot, epoch_ms + c.server), c.next) << c.boot << " " << c.server;
  }
  Visited f(visit_at(100'000, epoch_ms));
  EXPECT_EQ(f.read_at(130'000, epoch_ms + 28'000), Next::nothing);
  EXPECT_EQ(f.guard.watched_at(), at(visit_ms - 28'000)) << "the younger age counts";
}

TEST(GuardVisits, what_is_no_visit_to_this_state_is_none) {
  const std::string long_ago = " 1 " + std::to_string(epoch_ms);
  for (const std::string& visit :
       {state, state + " ", state + " 1" /* as 0.2.0 left it */, state + "  1", state + " 1 ", state + " 1 1 ",
        state + " 1x 1", state + " 1 1x", state + " -1 1", state + " 1 -1", state + " +1 1", state + " 1.5 1",
        state + " 1 1 1", state + "x1 1", state + ":1 1", state + " 2305843009213693952 1",
        state + " 1 2305843009213693952", state + " 99999999999999999999 1", state.substr(1) + long_ago,
        "x" + state.substr(1) + long_ago, state.substr(0, 32) + "b" + long_ago,
        state.substr(0, 16) + " " + state.substr(17) + long_ago, std::string("1 1"), std::string(" "),
        std::string(60, ' '), std::string(52, '1')}) {
    Visited f(visit);
    EXPECT_EQ(f.read_at(900'000'000), Next::visit) << visit;
    EXPECT_EQ(f.guard.watched_at(), at(guard_ms)) << visit;
  }
}

TEST(GuardVisits, a_withdrawal_between_a_reading_and_its_boot_time_leaves_nothing_to_write) {
  for (const std::string& visit : {std::string(), visit_at(100'000)}) {
    Visited f(visit);
    f.read();
    f.guard.read_time(epoch_ms + 900'000);
    f.guard.withdraw(f.now);
    EXPECT_EQ(f.guard.boot_time(900'000, f.now), Next::nothing);
  }
}

TEST(GuardVisits, a_clock_that_cannot_be_read_leaves_no_word) {
  Visited f;
  EXPECT_EQ(f.read_at(-1), Next::nothing);
  EXPECT_EQ(f.read_at(0), Next::visit);
}

// Half of the next reading has come: what is known of the state is of two instants.
TEST(GuardVisits, boot_time_is_for_the_reading_that_asked_and_not_for_half_of_the_next_one) {
  Visited f(visit_at(100'000));
  const Asked first = f.ask(), second = f.ask();
  f.answer(first);
  f.guard.read_time(epoch_ms);
  EXPECT_TRUE(f.guard.wants_boot_time());
  f.resynchronize("4444444444444444");
  f.record.q = "bbbbbbbbbbbbbbbb";
  f.say_role();
  f.guard.read(Field::q, false, bytes(f.record.q));
  EXPECT_FALSE(f.guard.wants_boot_time()) << "the seal of a new state would be written, for the age of the old one";
  f.answer(second);
  f.guard.read_time(epoch_ms);
  EXPECT_TRUE(f.guard.wants_boot_time());
}

}  // namespace
}  // namespace redlock
