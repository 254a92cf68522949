// SPDX-License-Identifier: MIT
//
// May this master vote? The guard is told what the master says and what time it is; here the master is a record, two
// ids and a role, which the test changes.
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
  std::string desc, q, seal, visit;  // empty: absent
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
    const std::string* const fields[] = {&record.desc, &record.q, &record.seal, &record.visit};
    for (unsigned i = 0; i < std::size(fields); ++i) {
      guard.read(static_cast<Field>(i), fields[i]->empty(), bytes(*fields[i]));
    }
  }
  Next read() { return answer(ask()); }

  // What the scripts do.
  void create(const char* q = "aaaaaaaaaaaaaaaa") { record = {"v1 n=3", q, "", ""}; }
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

TEST(Guard, off_admits_everything_and_wants_nothing) {
  Settings settings;
  Guard guard(settings);
  guard.connected();
  guard.withdraw(at(0));
  guard.on_time(at(0));
  EXPECT_TRUE(guard.admitted());
  EXPECT_FALSE(guard.wants_reading(at(0)));
  EXPECT_EQ(guard.deadline(), Instant::never());
}

TEST(Guard, off_is_off_whatever_happens) {
  Settings settings;
  Guard guard(settings);
  guard.clock_jumped(at(0));
  guard.distrust(at(100));
  guard.set_duplicate(true);
  guard.set_duplicate(true);
  EXPECT_TRUE(guard.admitted());
}

TEST(Guard, nothing_votes_before_the_record_was_read) {
  Fixture f;
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNREAD);
  f.ask();
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNREAD);
}

TEST(Guard, a_new_site_is_created_and_watched_for_the_guard_time) {
  Fixture f;
  EXPECT_EQ(f.read(), Next::create);
  f.create();
  f.now = at(5);
  EXPECT_EQ(f.read(), Next::nothing);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNWATCHED);
  EXPECT_EQ(f.guard.watched_at(), at(5 + guard_ms));
  EXPECT_EQ(f.until(5 + guard_ms - 1), Next::nothing);
  EXPECT_EQ(f.until(5 + guard_ms), Next::seal);
  EXPECT_FALSE(f.guard.admitted()) << "the seal is not written yet";
  f.seal();
  EXPECT_EQ(f.read(), Next::nothing);
  EXPECT_TRUE(f.guard.admitted());
}

TEST(Guard, a_seal_that_somebody_wrote_admits_at_once) {
  Fixture f;
  f.create();
  f.record.seal = "1111111111111111:2222222222222222:aaaaaaaaaaaaaaaa";
  EXPECT_EQ(f.read(), Next::nothing);
  EXPECT_TRUE(f.guard.admitted());
}

TEST(Guard, a_seal_of_another_state_does_not) {
  for (const char* seal :
       {"1111111111111111:2222222222222222:bbbbbbbbbbbbbbbb", "x111111111111111:2222222222222222:aaaaaaaaaaaaaaaa",
        "1111111111111111:x222222222222222:aaaaaaaaaaaaaaaa", "1111111111111111:2222222222222222:aaaaaaaaaaaaaaaaa",
        "1111111111111111", "x"}) {
    Fixture f;
    f.create();
    f.record.seal = seal;
    f.read();
    EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNWATCHED) << seal;
  }
}

// ---- the identity of a reading ----------------------------------------------------------------------------------

// The server's data were replaced by a copy that contains the record. The seal still fits what this connection knew.
TEST(Guard, a_seal_that_fits_the_known_replication_id_and_not_the_read_one_admits_nobody) {
  Fixture f;
  f.admit();
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

TEST(Guard, the_run_id_is_of_the_greeting_and_the_replication_id_of_the_reading) {
  Fixture f;
  f.create();
  f.resynchronize("4444444444444444");
  f.read();
  EXPECT_EQ(text(f.guard.seal()), "1111111111111111:4444444444444444:aaaaaaaaaaaaaaaa");
  EXPECT_EQ(text(f.guard.run_id()), "1111111111111111");
}

TEST(Guard, a_replica_loses_its_vote_with_the_reading_that_tells) {
  Fixture f;
  f.admit();
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

TEST(Guard, a_state_that_changes_again_is_told_by_its_last_change) {
  Fixture f;
  f.admit();
  f.resynchronize("4444444444444444");
  f.read();
  f.resynchronize("5555555555555555");
  f.read();
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_REPLID);
  f.create("bbbbbbbbbbbbbbbb");
  f.read();
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNWATCHED);
}

TEST(Guard, the_first_state_of_a_client_has_no_change_of_its_replication_id) {
  Fixture f;
  EXPECT_EQ(f.read(), Next::create);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNWATCHED);
  f.create();
  f.read();
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNWATCHED);
}

TEST(Guard, a_run_id_that_changes_on_a_connection_is_another_server) {
  Fixture f;
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

// ---- watches ------------------------------------------------------------------------------------------------------

TEST(Guard, the_watch_goes_on_over_reconnects_to_the_same_state) {
  Fixture f;
  f.create();
  f.read();
  f.now = at(20'000);
  f.connect();
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNREAD);
  f.read();
  EXPECT_EQ(f.guard.watched_at(), at(guard_ms));
}

TEST(Guard, a_restart_a_role_cycle_and_a_new_quarantine_begin_it_anew) {
  for (const int what : {0, 1, 2}) {
    Fixture f;
    f.create();
    f.read();
    f.now = at(20'000);
    if (what == 0) f.connect("3333333333333333");
    if (what == 1) f.resynchronize("3333333333333333");
    if (what == 2) f.create("bbbbbbbbbbbbbbbb");
    f.read();
    EXPECT_EQ(f.guard.watched_at(), at(20'000 + guard_ms)) << what;
  }
}

// "No seal" long ago and "no seal" now, with a FLUSHALL between that this client did not see.
TEST(Guard, an_old_sight_of_a_blank_state_counts_for_nothing) {
  Fixture f;
  EXPECT_EQ(f.read(), Next::create);
  f.now = at(100'000);
  f.connect();
  EXPECT_EQ(f.read(), Next::create);
  f.create();
  f.read();
  EXPECT_EQ(f.guard.watched_at(), at(100'000 + guard_ms));
}

TEST(Guard, a_jump_of_our_clock_begins_the_watch_anew_and_asks_for_a_reading) {
  Fixture f;
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

// ---- what the server says of itself ---------------------------------------------------------------------------

TEST(Guard, what_the_whole_info_says_can_refuse_it) {
  struct {
    void (*change)(InfoFacts&);
    int reason;
  } const cases[] = {{[](InfoFacts& i) { i.standalone = false; }, REDLOCK_E_MODE},
                     {[](InfoFacts& i) { i.loading = true; }, REDLOCK_E_LOADING},
                     {[](InfoFacts& i) { i.evicts = true; }, REDLOCK_E_MAXMEMORY}};
  for (const auto& c : cases) {
    Fixture f;
    f.admit();
    EXPECT_FALSE(f.guard.wants_info());
    InfoFacts changed = f.facts;
    c.change(changed);
    f.guard.identify(changed, f.now);
    EXPECT_EQ(f.guard.reason(), c.reason);
    EXPECT_EQ(f.guard.forgot(), c.reason == REDLOCK_E_MODE) << c.reason;
    EXPECT_TRUE(f.guard.wants_info()) << "with the next reading: only INFO can mend it";
    EXPECT_EQ(f.read(), Next::nothing);
    EXPECT_EQ(f.guard.reason(), c.reason) << "a reading does not mend it";
    f.guard.identify(f.facts, f.now);
    EXPECT_TRUE(f.guard.admitted()) << c.reason;
    EXPECT_FALSE(f.guard.wants_info());
  }
}

TEST(Guard, strict_wants_both_ids) {
  Fixture f;
  f.admit();
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

TEST(Guard, evicted_keys_are_as_good_as_forgotten) {
  Fixture f;
  f.admit();
  f.facts.evicted_keys = 1;
  f.guard.identify(f.facts, f.now);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_WALL_CLOCK);
  EXPECT_EQ(f.guard.watched_at(), at(guard_ms));
}

TEST(Guard, info_refused_in_the_greeting_is_a_reason_only_when_strict) {
  Fixture f;
  f.guard.connected();
  f.guard.unidentified(REDLOCK_E_NOPERM);
  f.create();
  f.read();
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_NOPERM);
  EXPECT_TRUE(f.guard.wants_info());

  Fixture g(GuardMode::weak);
  g.guard.connected();
  g.guard.unidentified(REDLOCK_E_NOPERM);
  g.info_error = REDLOCK_E_NOPERM;
  g.create();
  g.read();
  EXPECT_EQ(g.guard.reason(), REDLOCK_E_UNWATCHED);
  EXPECT_FALSE(g.guard.wants_info());
  g.seal();
  EXPECT_EQ(g.record.seal, "0000000000000000:0000000000000000:aaaaaaaaaaaaaaaa");
  g.read();
  EXPECT_TRUE(g.guard.admitted());
}

TEST(Guard, info_refused_inside_a_script_is_a_reason_only_when_strict) {
  Fixture f;
  f.admit();
  f.info_error = REDLOCK_E_NOPERM;
  EXPECT_EQ(f.read(), Next::nothing);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_NOPERM);
  f.info_error = 0;
  f.read();
  EXPECT_TRUE(f.guard.admitted());

  Fixture g(GuardMode::weak);
  g.info_error = REDLOCK_E_NOPERM;
  g.create();
  EXPECT_EQ(g.read(), Next::nothing);
  EXPECT_EQ(g.until(guard_ms), Next::seal);
  g.seal();
  EXPECT_EQ(g.record.seal, "1111111111111111:0000000000000000:aaaaaaaaaaaaaaaa") << "what is refused is not compared";
  g.read();
  EXPECT_TRUE(g.guard.admitted());
  EXPECT_FALSE(g.guard.alone()) << "nobody knows, so commands compare the record";
}

TEST(Guard, weak_does_without_ids) {
  Fixture f(GuardMode::weak);
  f.facts.has_run_id = f.facts.has_replid = false;
  f.guard.connected();
  f.guard.identify(f.facts, f.now);
  f.create();
  f.read();
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNWATCHED);
  f.seal();
  f.read();
  EXPECT_TRUE(f.guard.admitted());
}

TEST(Guard, weak_tells_a_replica_as_well) {
  Fixture f(GuardMode::weak);
  f.admit();
  f.facts.master = false;
  f.read();
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_ROLE);
}

TEST(Guard, alone_is_what_the_last_reading_of_this_connection_said) {
  Fixture f;
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
TEST(Guard, alone_is_not_believed_before_the_whole_reading_has_come) {
  Fixture f;
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

// ---- the record -----------------------------------------------------------------------------------------------

TEST(Guard, another_configuration_is_left_alone) {
  Fixture f;
  f.create();
  f.record.desc = "v1 n=5";
  EXPECT_EQ(f.read(), Next::nothing);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_FINGERPRINT);
  f.record.q.clear();
  EXPECT_EQ(f.read(), Next::nothing) << "also when it is broken";
  EXPECT_EQ(f.until(100'000), Next::nothing);
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

TEST(Guard, a_quarantine_id_of_another_length_is_none) {
  Fixture f;
  f.create("aaaa");
  EXPECT_EQ(f.read(), Next::create);
}

TEST(Guard, its_quarantine_is_the_one_last_read_or_none) {
  Fixture f;
  EXPECT_EQ(f.guard.quarantine().size, 0u);
  f.create();
  f.read();
  EXPECT_EQ(text(f.guard.quarantine()), "aaaaaaaaaaaaaaaa");
  f.record.q = "";
  EXPECT_EQ(f.read(), Next::create);
  EXPECT_EQ(f.guard.quarantine().size, 0u);
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
  EXPECT_EQ(text(f).substr(0, 30), "v1 n=3 q=2 max_ttl_ms=30000 id");
  EXPECT_TRUE(f == write_fingerprint(b, 2, two)) << "in any order";
  b.master[0].name = "w";
  EXPECT_TRUE(f != write_fingerprint(b, 2, two));
  b = a;
  b.max_ttl_ms = 20'000;
  EXPECT_TRUE(f != write_fingerprint(b, 2, two));
}

// ---- readings ---------------------------------------------------------------------------------------------------

TEST(Guard, withdrawn_admission_comes_back_by_a_reading) {
  Fixture f;
  f.admit();
  f.now = at(70);
  f.guard.withdraw(f.now);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNREAD);
  EXPECT_EQ(f.guard.deadline(), at(70));
  EXPECT_TRUE(f.guard.wants_reading(f.now));
  f.read();
  EXPECT_TRUE(f.guard.admitted());
}

// The server executed the reading before what withdrew the admission: before FLUSHALL, say.
TEST(Guard, a_reading_that_was_sent_before_a_withdrawal_admits_nobody) {
  Fixture f;
  f.admit();
  const Asked before = f.ask();
  f.guard.withdraw(f.now);
  EXPECT_TRUE(f.guard.wants_reading(f.now)) << "the one under way does not count";
  const Asked behind = f.ask();
  EXPECT_EQ(f.answer(before), Next::nothing);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNREAD);
  f.guard.on_time(f.now);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNREAD);
  EXPECT_FALSE(f.guard.wants_reading(f.now)) << "one that counts is under way";
  f.answer(behind);
  EXPECT_TRUE(f.guard.admitted());
}

TEST(Guard, two_readings_of_before_a_withdrawal_count_for_nothing) {
  Fixture f;
  f.admit();
  const Asked first = f.ask(), second = f.ask();
  f.guard.withdraw(f.now);
  EXPECT_FALSE(f.guard.wants_reading(f.now)) << "two are under way: the third waits for one of them";
  EXPECT_EQ(f.guard.deadline(), Instant::never());
  f.answer(first);
  EXPECT_FALSE(f.guard.admitted());
  EXPECT_TRUE(f.guard.wants_reading(f.now));
  const Asked third = f.ask();
  f.answer(second);
  EXPECT_FALSE(f.guard.admitted());
  f.answer(third);
  EXPECT_TRUE(f.guard.admitted());
}

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

TEST(Guard, an_error_to_a_reading_of_before_a_withdrawal_says_nothing) {
  Fixture f;
  f.admit();
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

TEST(Guard, an_admission_lapses_when_no_reading_follows) {
  Fixture f;
  f.admit();
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
TEST(Guard, of_two_readings_each_is_as_old_as_its_own_question) {
  Fixture f;
  f.admit();
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
TEST(Guard, an_answer_that_comes_too_late_admits_nobody) {
  Fixture f;
  f.admit();
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

TEST(Guard, a_record_that_cannot_be_read_says_why) {
  Fixture f;
  f.admit();
  const Asked asked = f.ask();
  f.guard.reading_failed(asked.number, REDLOCK_E_WRONGTYPE, asked.sent, f.now);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_WRONGTYPE);
  EXPECT_FALSE(f.guard.wants_reading(at(4'999)));
  f.now = at(5'000);
  f.guard.on_time(f.now);
  EXPECT_TRUE(f.guard.wants_reading(f.now));
  f.read();
  EXPECT_TRUE(f.guard.admitted());
}

// Else the timer would fire again at once, for an instant that is over.
TEST(Guard, a_late_error_is_followed_by_a_reading_now) {
  Fixture f;
  const Asked asked = f.ask();
  f.now = at(9'000);
  f.guard.reading_failed(asked.number, REDLOCK_E_LOADING, asked.sent, f.now);
  EXPECT_EQ(f.guard.deadline(), at(9'000));
  EXPECT_TRUE(f.guard.wants_reading(f.now));
}

TEST(Guard, a_duplicate_neither_votes_nor_seals) {
  Fixture f;
  f.create();
  f.guard.set_duplicate(true);
  EXPECT_EQ(f.read(), Next::nothing);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_DUPLICATE);
  EXPECT_EQ(f.until(100'000), Next::nothing);
  f.guard.set_duplicate(false);
  EXPECT_EQ(f.read(), Next::seal);
}

TEST(Guard, distrust_ends_by_itself) {
  Fixture f;
  f.admit();
  f.guard.distrust(at(12'000));
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_WALL_CLOCK);
  EXPECT_EQ(f.guard.watched_at(), at(12'000));
  f.guard.distrust(at(11'000));
  EXPECT_EQ(f.guard.watched_at(), at(12'000)) << "the longer one counts";
  f.until(11'999);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_WALL_CLOCK);
  f.until(12'001);
  EXPECT_TRUE(f.guard.admitted());
}

// ---- the one verdict ----------------------------------------------------------------------------------------------

// All that can stand in the way, one above the other: the reason is always the topmost.
TEST(Guard, the_reason_is_the_first_of_all_that_stand_in_the_way) {
  Fixture f;
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
  f.guard.distrust(at(12'000));
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

TEST(Guard, of_two_faults_of_the_whole_info_the_first_is_told) {
  Fixture f;
  InfoFacts facts = f.facts;
  const auto reason = [&] {
    f.guard.connected();
    f.guard.identify(facts, f.now);
    return f.guard.reason();
  };
  facts.has_run_id = false;
  EXPECT_EQ(reason(), REDLOCK_E_IDENTITY);
  facts.evicts = true;
  EXPECT_EQ(reason(), REDLOCK_E_MAXMEMORY);
  facts.loading = true;
  EXPECT_EQ(reason(), REDLOCK_E_LOADING);
  facts.standalone = false;
  EXPECT_EQ(reason(), REDLOCK_E_MODE);
}

TEST(Guard, a_server_that_keeps_its_time_to_itself_votes_only_when_weak) {
  Fixture f;
  f.admit();
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

// ---- writes -------------------------------------------------------------------------------------------------------

TEST(Guard, a_refused_write_is_the_reason_and_is_tried_again_later_only) {
  Fixture f;
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

TEST(Guard, a_refused_write_is_no_reason_where_somebody_else_has_written) {
  Fixture f;
  f.create();
  f.read();
  f.guard.written(REDLOCK_E_NOPERM);
  f.seal();
  f.read();
  EXPECT_TRUE(f.guard.admitted());
  f.until(5'000);
  f.create("bbbbbbbbbbbbbbbb");
  f.read();
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNWATCHED) << "nothing was refused in this state";
  EXPECT_TRUE(f.guard.forgot());
}

TEST(Guard, what_was_refused_on_the_last_connection_is_tried_at_once_on_the_next) {
  Fixture f;
  EXPECT_EQ(f.read(), Next::create);
  f.guard.written(REDLOCK_E_NOPERM);
  f.connect();
  EXPECT_EQ(f.read(), Next::create);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNWATCHED);
}

TEST(Guard, commissioning_seals_what_is_found_once) {
  Fixture f;
  f.guard.commission(at(1'000));
  EXPECT_EQ(f.read(), Next::create);
  f.create();
  EXPECT_EQ(f.read(), Next::seal);
  f.seal();
  EXPECT_EQ(f.read(), Next::nothing);
  EXPECT_TRUE(f.guard.admitted());
  f.create("cccccccccccccccc");
  EXPECT_EQ(f.read(), Next::nothing) << "what is lost after it is watched";
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNWATCHED);
}

TEST(Guard, commissioning_is_for_what_is_read_before_its_end) {
  Fixture f;
  f.guard.commission(at(1'000));
  f.create();
  f.now = at(999);
  EXPECT_EQ(f.read(), Next::seal);
  f.now = at(1'000);
  EXPECT_EQ(f.read(), Next::nothing);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNWATCHED);
  EXPECT_EQ(f.guard.watched_at(), at(999 + guard_ms));
}

TEST(Guard, commissioning_is_used_up_by_the_seal_that_it_writes) {
  Fixture f;
  f.guard.commission(at(1'000));
  f.create();
  EXPECT_EQ(f.read(), Next::seal);
  f.create("cccccccccccccccc");  // lost before the seal was written
  EXPECT_EQ(f.read(), Next::nothing);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNWATCHED);
}

// Also where the state had its seal already: nothing is left of it for a state that comes later.
TEST(Guard, commissioning_a_sealed_master_says_nothing_of_its_next_state) {
  Fixture f;
  f.admit();
  f.guard.commission(at(1'000));
  f.read();
  f.create("cccccccccccccccc");
  EXPECT_EQ(f.read(), Next::nothing);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNWATCHED);
}

// ---- short visits -------------------------------------------------------------------------------------------------

constexpr int64_t visit_ms = 34'091;  // 1.125 guard times, and a millisecond for what two clock readings lose

struct Visited : Fixture {
  explicit Visited(const std::string& visit = "", GuardMode mode = GuardMode::strict) : Fixture(mode) {
    settings.has_boot_id = true;
    memset(settings.boot_id, 'b', sizeof settings.boot_id);
    create();
    record.visit = visit;
  }
  // A reading, and CLOCK_BOOTTIME behind it.
  Next read_at(int64_t boot_ms) {
    const Next next = read();
    if (next != Next::nothing || !guard.wants_boot_time()) return next;
    return guard.boot_time(boot_ms, now);
  }
};

const std::string state = "2222222222222222:aaaaaaaaaaaaaaaa";

std::string visit_at(int64_t boot_ms) { return state + " " + std::to_string(boot_ms); }

TEST(GuardVisits, boot_time_is_asked_for_behind_each_reading_of_a_state_without_a_seal) {
  Visited f;
  EXPECT_FALSE(f.guard.wants_boot_time());
  f.read();
  EXPECT_TRUE(f.guard.wants_boot_time());
  f.guard.boot_time(1'000, f.now);
  EXPECT_FALSE(f.guard.wants_boot_time()) << "once for each reading";
  f.read();
  EXPECT_TRUE(f.guard.wants_boot_time());
  f.seal();
  f.read();
  EXPECT_FALSE(f.guard.wants_boot_time());
}

TEST(GuardVisits, boot_time_is_not_asked_for_in_vain) {
  Visited no_id, weak("", GuardMode::weak), foreign, blank, replica, refused, duplicate, commissioned, gone;
  no_id.settings.has_boot_id = false;
  weak.info_error = REDLOCK_E_NOPERM;
  foreign.record.desc = "v1 n=5";
  blank.record = {};
  replica.facts.master = false;
  refused.info_error = REDLOCK_E_NOPERM;
  duplicate.guard.set_duplicate(true);
  commissioned.guard.commission(at(1));
  for (Visited* f : {&no_id, &weak, &foreign, &blank, &replica, &refused, &duplicate, &commissioned}) {
    f->read();
    EXPECT_FALSE(f->guard.wants_boot_time());
  }
  gone.read();
  gone.guard.connected();
  EXPECT_FALSE(gone.guard.wants_boot_time());
}

TEST(GuardVisits, word_is_left_once_in_each_state) {
  Visited f;
  EXPECT_EQ(f.read_at(70'000), Next::visit);
  f.record.visit = visit_at(70'000);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(f.read_at(70'000), Next::nothing);
  f.create("bbbbbbbbbbbbbbbb");
  f.record.visit = visit_at(70'000);
  EXPECT_EQ(f.read_at(70'000), Next::visit) << "that was of another quarantine id";
  f.create();
  f.resynchronize("4444444444444444");
  f.record.visit = visit_at(70'000);
  EXPECT_EQ(f.read_at(70'000), Next::visit) << "that was of another replication id";
}

TEST(GuardVisits, the_watch_is_over_when_an_earlier_visit_is_old_enough) {
  {
    Visited f(visit_at(100'000));
    EXPECT_EQ(f.read_at(100'000 + visit_ms), Next::seal);
  }
  {
    Visited f(visit_at(100'000));
    EXPECT_EQ(f.read_at(200'000'000), Next::seal);
  }
  Visited f(visit_at(100'000));
  EXPECT_EQ(f.read_at(100'000 + visit_ms - 500), Next::nothing);
  EXPECT_FALSE(f.guard.admitted());
  EXPECT_EQ(f.guard.watched_at(), at(500)) << "a status tells the shorter wait";
  EXPECT_EQ(f.guard.deadline(), f.guard.watched_at()) << "and a reading is due then";
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

TEST(GuardVisits, the_own_watch_is_over_first_or_the_earlier_visit_is) {
  Visited f(visit_at(100'000));
  EXPECT_EQ(f.read_at(100'000), Next::nothing);
  EXPECT_EQ(f.guard.watched_at(), at(guard_ms)) << "both began just now";
  f.now = at(guard_ms);
  EXPECT_EQ(f.read(), Next::seal) << "the own watch needs no other clock";

  Visited g(visit_at(100'000));
  EXPECT_EQ(g.read_at(130'000), Next::nothing);
  const Instant due = g.guard.watched_at();
  EXPECT_EQ(g.guard.deadline(), due);
  EXPECT_EQ(due, at(visit_ms - 30'000));
  g.now = at(3'000);
  EXPECT_EQ(g.read_at(133'000), Next::nothing);
  EXPECT_EQ(g.guard.watched_at(), due) << "told anew by each reading";
  g.now = due;
  EXPECT_EQ(g.read_at(100'000 + visit_ms), Next::seal);
}

TEST(GuardVisits, a_time_in_the_future_is_not_believed) {
  for (const int64_t visit : {int64_t{100'001}, int64_t{900'000'000'000}, int64_t{999'999'999'999'999'999}}) {
    Visited f(visit_at(visit));
    EXPECT_EQ(f.read_at(100'000), Next::nothing) << "and is not written over";
    EXPECT_EQ(f.guard.watched_at(), at(guard_ms));
  }
  Visited f(visit_at(100'000));
  EXPECT_EQ(f.read_at(100'000), Next::nothing);
  EXPECT_LE(f.guard.watched_at(), at(guard_ms));
}

TEST(GuardVisits, what_is_no_visit_to_this_state_is_none) {
  const std::string long_ago = " 1";
  for (const std::string& visit :
       {state, state + " ", state + "  1", state + "x1", state + " 1x", state + " -1", state + " 1 ", state + " +1",
        state + " 1.5", state + " 0000000000000000001" /* 19 digits */, state + ":1", state.substr(1) + long_ago,
        "x" + state.substr(1) + long_ago, state.substr(0, 32) + "b" + long_ago,
        state.substr(0, 16) + " " + state.substr(17) + long_ago, std::string("1"), std::string(" "),
        std::string(60, ' '), std::string(52, '1')}) {
    Visited f(visit);
    EXPECT_EQ(f.read_at(900'000'000), Next::visit) << visit;
    EXPECT_EQ(f.guard.watched_at(), at(guard_ms)) << visit;
  }
}

TEST(GuardVisits, eighteen_digits_are_a_time) {
  Visited f(state + " 000000000000000001");
  EXPECT_EQ(f.read_at(900'000'000), Next::seal);
  Visited g(state + " 999999999999999998");
  EXPECT_EQ(g.read_at(999'999'999'999'999'999), Next::nothing);
  Visited h(state + " 999999999000000000");
  EXPECT_EQ(h.read_at(999'999'999'999'999'999), Next::seal);
}

TEST(GuardVisits, a_withdrawal_between_a_reading_and_its_boot_time_leaves_nothing_to_write) {
  for (const std::string& visit : {std::string(), visit_at(100'000)}) {
    Visited f(visit);
    f.read();
    f.guard.withdraw(f.now);
    EXPECT_EQ(f.guard.boot_time(900'000, f.now), Next::nothing);
  }
}

TEST(GuardVisits, an_earlier_visit_to_the_last_state_is_not_one_to_the_next) {
  Visited f(visit_at(100'000));
  EXPECT_EQ(f.read_at(130'000), Next::nothing);
  EXPECT_LT(f.guard.watched_at(), at(guard_ms));
  f.create("bbbbbbbbbbbbbbbb");
  EXPECT_EQ(f.read_at(130'000), Next::visit);
  EXPECT_EQ(f.guard.watched_at(), at(guard_ms));
}

TEST(GuardVisits, a_jump_of_our_clock_forgets_when_an_earlier_visit_is_old_enough) {
  Visited f(visit_at(100'000));
  f.read_at(130'000);
  f.now = at(10);
  f.guard.clock_jumped(f.now);
  f.read();
  EXPECT_EQ(f.guard.watched_at(), at(10 + guard_ms));
  EXPECT_EQ(f.guard.boot_time(100'000 + visit_ms, f.now), Next::seal) << "the machine's clock has not jumped";
}

// No word of the visit is ever found there: the script that leaves it is refused.
TEST(GuardVisits, a_refused_write_does_not_block_the_own_watch) {
  Visited f;
  Next next = f.read_at(70'000);
  while (next == Next::visit && f.now < at(40'000)) {
    f.now = later(f.guard.deadline(), f.now + Duration::ms(1));
    f.guard.on_time(f.now);
    if (f.guard.wants_reading(f.now)) next = f.read_at(70'000 + f.now.ns() / 1'000'000);
  }
  EXPECT_EQ(next, Next::seal);
  EXPECT_EQ(f.now, at(guard_ms));
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
  EXPECT_TRUE(f.guard.wants_boot_time());
  f.resynchronize("4444444444444444");
  f.record.q = "bbbbbbbbbbbbbbbb";
  f.say_role();
  f.guard.read(Field::q, false, bytes(f.record.q));
  EXPECT_FALSE(f.guard.wants_boot_time()) << "the seal of a new state would be written, for the age of the old one";
  f.answer(second);
  EXPECT_TRUE(f.guard.wants_boot_time());
}

// ---- no busy loop ---------------------------------------------------------------------------------------------------

// Whatever happened: when a deadline has come, there is something to do, and when that is done the next one is later.
TEST(Guard, a_deadline_that_has_come_is_work_that_can_be_done) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 dice(seed);
    const auto roll = [&](unsigned n) { return static_cast<unsigned>(dice() % n); };
    Visited f("", seed % 3 == 0 ? GuardMode::weak : GuardMode::strict);
    std::deque<Asked> under_way;
    for (unsigned step = 0; step < 300; ++step) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", step " << step);
      switch (roll(13)) {
        case 0:
          f.guard.withdraw(f.now);
          break;
        case 1:
          f.guard.distrust(f.now + Duration::ms(roll(5'000)));
          break;
        case 2:
          f.guard.set_duplicate(roll(4) == 0);
          break;
        case 3:
          f.guard.clock_jumped(f.now);
          break;
        case 4:
          f.create(roll(2) ? "aaaaaaaaaaaaaaaa" : "bbbbbbbbbbbbbbbb");
          break;
        case 5:
          f.seal();
          break;
        case 6:
          f.record.visit = visit_at(roll(100'000));
          break;
        case 7:
          f.guard.written(roll(2) ? int{REDLOCK_E_OOM} : 0);
          break;
        case 8:
          f.facts.master = roll(3) != 0;
          break;
        case 9:
          f.facts.standalone = roll(5) != 0, f.guard.identify(f.facts, f.now);
          break;
        case 10:
          f.guard.commission(f.now + Duration::ms(roll(2'000)));
          break;
        default:
          break;
      }
      if (roll(3) != 0 && !under_way.empty()) {
        if (roll(6) == 0) {
          f.guard.reading_failed(under_way.front().number, REDLOCK_E_LOADING, under_way.front().sent, f.now);
        } else if (f.answer(under_way.front()) != Next::nothing) {
          under_way.push_back(f.ask());  // what is written is read again
        } else if (f.guard.wants_boot_time() && f.guard.boot_time(f.now.ns() / 1'000'000, f.now) == Next::seal) {
          under_way.push_back(f.ask());
        }
        under_way.pop_front();
      }
      f.guard.on_time(f.now);
      if (f.guard.wants_reading(f.now)) {
        if (roll(4) == 0) {
          f.guard.postpone_reading(f.now + Duration::ms(50));
        } else {
          under_way.push_back(f.ask());
        }
      }
      ASSERT_GT(f.guard.deadline(), f.now);
      ASSERT_LE(under_way.size(), 40u);
      const Instant due = earlier(f.guard.deadline(), f.now + Duration::ms(60'000));
      f.now = roll(3) == 0 ? due : f.now + Duration::ms(roll(2'000));
    }
  }
}

}  // namespace
}  // namespace redlock
