// SPDX-License-Identifier: MIT
//
// May this master vote? The guard is told what the master says and what time it is; here the master is a record of three
// fields that the test changes.
#include "master/guard.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace redlock {
namespace {

using Next = Guard::Next;

Instant at(int64_t ms) { return Instant::from_ns(ms * 1'000'000); }

struct Record {
  std::string desc, q, seal;  // empty: absent
};

struct Fixture {
  Fixture() {
    settings.guard = GuardMode::strict;
    settings.max_ttl_ms = 30'000;
    settings.fingerprint = "v1 n=3";
    connect();
  }
  void connect(const char* run = "1111111111111111", const char* repl = "2222222222222222") {
    guard.connected();
    facts = {};
    facts.has_run_id = facts.has_replid = facts.standalone = true;
    memcpy(facts.run_id, run, sizeof facts.run_id);
    memcpy(facts.replid, repl, sizeof facts.replid);
    guard.identify(facts, now);
  }
  Next read() {
    guard.begin_reading(now);
    const std::string* fields[] = {&record.desc, &record.q, &record.seal};
    for (unsigned i = 0; i < 3; ++i) guard.read(i, fields[i]->empty(), Bytes(fields[i]->data(), fields[i]->size()));
    return guard.end_reading(now);
  }
  // What the scripts do.
  void create(const char* q = "aaaaaaaaaaaaaaaa") { record = {"v1 n=3", q, ""}; }
  void seal() { record.seal = std::string(guard.seal().data, guard.seal().size); }
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
  InfoFacts facts;
  Record record;
  Instant now = at(0);
};

constexpr int64_t guard_ms = 30'302;  // max_ttl + 1 % + 2 ms

TEST(Guard, off_admits_everything_and_wants_nothing) {
  Settings settings;
  Guard guard(settings);
  guard.connected();
  guard.withdraw(REDLOCK_E_UNREAD, at(0));
  guard.on_time(at(0));
  EXPECT_TRUE(guard.admitted());
  EXPECT_FALSE(guard.wants_reading(at(0)));
  EXPECT_EQ(guard.deadline(), Instant::never());
}

TEST(Guard, nothing_votes_before_the_record_was_read) {
  Fixture f;
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNREAD);
  f.guard.begin_reading(f.now);
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
  for (const char* seal : {"1111111111111111:2222222222222222:bbbbbbbbbbbbbbbb", "x111111111111111:2222222222222222:aaaaaaaaaaaaaaaa",
                           "1111111111111111:x222222222222222:aaaaaaaaaaaaaaaa", "1111111111111111:2222222222222222:aaaaaaaaaaaaaaaaa",
                           "1111111111111111", "x"}) {
    Fixture f;
    f.create();
    f.record.seal = seal;
    f.read();
    EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNWATCHED) << seal;
  }
}

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
    if (what == 1) f.connect("1111111111111111", "3333333333333333");
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

TEST(Guard, what_the_server_says_of_itself_can_refuse_it) {
  struct {
    void (*change)(InfoFacts&);
    int reason;
  } const cases[] = {{[](InfoFacts& i) { i.replica = true; }, REDLOCK_E_ROLE},
                     {[](InfoFacts& i) { i.standalone = false; }, REDLOCK_E_MODE},
                     {[](InfoFacts& i) { i.loading = true; }, REDLOCK_E_LOADING},
                     {[](InfoFacts& i) { i.evicts = true; }, REDLOCK_E_MAXMEMORY},
                     {[](InfoFacts& i) { i.has_run_id = false; }, REDLOCK_E_IDENTITY},
                     {[](InfoFacts& i) { i.has_replid = false; }, REDLOCK_E_IDENTITY}};
  for (const auto& c : cases) {
    Fixture f;
    f.admit();
    InfoFacts changed = f.facts;
    c.change(changed);
    f.guard.identify(changed, f.now);
    EXPECT_EQ(f.guard.reason(), c.reason);
    EXPECT_EQ(f.guard.forgot(), c.reason == REDLOCK_E_ROLE || c.reason == REDLOCK_E_MODE) << c.reason;
    EXPECT_EQ(f.read(), Next::nothing);
    EXPECT_EQ(f.guard.reason(), c.reason) << "a reading does not mend it";
    f.guard.identify(f.facts, f.now);
    EXPECT_TRUE(f.guard.admitted()) << c.reason;
  }
}

TEST(Guard, an_identity_that_changes_on_a_connection_is_read_again) {
  Fixture f;
  f.admit();
  memcpy(f.facts.replid, "4444444444444444", 16);
  EXPECT_FALSE(f.guard.forgot());
  f.guard.identify(f.facts, f.now);
  EXPECT_FALSE(f.guard.admitted());
  EXPECT_FALSE(f.guard.forgot()) << "not before it was read";
  EXPECT_TRUE(f.guard.wants_reading(f.now));
  f.read();
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNWATCHED);
  EXPECT_TRUE(f.guard.forgot());
}

TEST(Guard, evicted_keys_are_as_good_as_forgotten) {
  Fixture f;
  f.admit();
  f.facts.evicted_keys = 1;
  f.guard.identify(f.facts, f.now);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_WALL_CLOCK);
  EXPECT_EQ(f.guard.watched_at(), at(guard_ms));
}

TEST(Guard, info_refused_is_a_reason_only_when_strict) {
  Fixture f;
  f.guard.connected();
  f.guard.unidentified(REDLOCK_E_NOPERM);
  f.create();
  f.read();
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_NOPERM);

  f.settings.guard = GuardMode::weak;
  f.guard.connected();
  f.guard.unidentified(REDLOCK_E_NOPERM);
  f.read();
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNWATCHED);
  f.seal();
  EXPECT_EQ(f.record.seal, "0000000000000000:0000000000000000:aaaaaaaaaaaaaaaa");
  f.read();
  EXPECT_TRUE(f.guard.admitted());
}

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

TEST(Guard, weak_does_without_ids) {
  Fixture f;
  f.settings.guard = GuardMode::weak;
  f.facts.has_run_id = f.facts.has_replid = false;
  f.guard.connected();
  f.guard.identify(f.facts, f.now);
  f.create();
  f.read();
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNWATCHED);

  f.settings.guard = GuardMode::strict;
  f.facts.has_run_id = true;
  f.guard.connected();
  f.guard.identify(f.facts, f.now);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_IDENTITY) << "one of the two is not enough";
}

TEST(Guard, the_record_is_named_and_the_fingerprint_says_what_must_agree) {
  Settings a;
  a.masters = 3;
  a.key_prefix = "plant:";
  a.master[0].name = "x";
  a.master[1].name = "y";
  a.master[2].name = "z";
  Settings b = a;
  b.master[0].name = "z";
  b.master[2].name = "x";
  char key[meta_key_max], one[fingerprint_max], two[fingerprint_max];
  const Bytes k = write_meta_key(a, key);
  EXPECT_EQ(std::string(k.data, k.size), "redlock:plant::meta");
  const Bytes f = write_fingerprint(a, 2, one);
  EXPECT_EQ(std::string(f.data, f.size).substr(0, 30), "v1 n=3 q=2 max_ttl_ms=30000 id");
  EXPECT_TRUE(f == write_fingerprint(b, 2, two)) << "in any order";
  b.master[0].name = "w";
  EXPECT_TRUE(f != write_fingerprint(b, 2, two));
  b = a;
  b.max_ttl_ms = 20'000;
  EXPECT_TRUE(f != write_fingerprint(b, 2, two));
}

TEST(Guard, off_is_off_whatever_happens) {
  Settings settings;
  Guard guard(settings);
  guard.clock_jumped(at(0));
  guard.distrust(at(100));
  guard.set_duplicate(true, at(0));
  guard.set_duplicate(true, at(0));
  EXPECT_TRUE(guard.admitted());
}

TEST(Guard, withdrawn_admission_comes_back_by_a_reading) {
  Fixture f;
  f.admit();
  f.now = at(70);
  f.guard.withdraw(REDLOCK_E_UNREAD, f.now);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNREAD);
  EXPECT_EQ(f.guard.deadline(), at(70));
  EXPECT_TRUE(f.guard.wants_reading(f.now));
  f.read();
  EXPECT_TRUE(f.guard.admitted());
}

TEST(Guard, an_admission_lapses_when_no_reading_follows) {
  Fixture f;
  f.admit();
  EXPECT_EQ(f.guard.deadline(), at(5'000)) << "read again at half its life";
  f.now = at(5'000);
  EXPECT_TRUE(f.guard.wants_reading(f.now));
  f.guard.begin_reading(f.now);
  EXPECT_EQ(f.guard.deadline(), at(10'000));
  f.guard.on_time(at(9'999));
  EXPECT_TRUE(f.guard.admitted());
  f.guard.on_time(at(10'000));
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNREAD);
}

// A write that takes the seal away is followed by a reading of its own, while another is under way.
TEST(Guard, of_two_readings_the_first_answer_is_as_old_as_the_first_question) {
  Fixture f;
  f.admit();
  f.guard.begin_reading(at(5'000));
  f.now = at(5'100);
  EXPECT_EQ(f.read(), Next::nothing);
  f.guard.on_time(at(14'999));
  EXPECT_TRUE(f.guard.admitted());
  f.guard.on_time(at(15'000));
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNREAD);
}

// It is as old as its question: what the master said is true of some instant after that was asked, no later one.
TEST(Guard, an_answer_that_comes_too_late_admits_nobody) {
  Fixture f;
  f.admit();
  f.guard.begin_reading(at(5'000));
  f.guard.read(0, false, Bytes("v1 n=3"));
  f.guard.read(1, false, Bytes("aaaaaaaaaaaaaaaa"));
  f.guard.read(2, false, f.guard.seal());
  f.guard.end_reading(at(15'000));
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNREAD);
  EXPECT_TRUE(f.guard.wants_reading(at(15'000)));
}

TEST(Guard, a_reading_lives_a_third_of_the_longest_ttl_and_never_less_than_a_second) {
  EXPECT_EQ(reading_lifetime(30'000), Duration::ms(10'000));
  EXPECT_EQ(reading_lifetime(3'000), Duration::ms(1'000));
  EXPECT_EQ(reading_lifetime(20), Duration::ms(1'000));
  EXPECT_EQ(guard_time(30'000, 10'000, 2), Duration::ms(guard_ms));
}

TEST(Guard, a_refused_write_is_the_reason_and_is_tried_again_later_only) {
  Fixture f;
  EXPECT_EQ(f.read(), Next::create);
  f.guard.write_failed(REDLOCK_E_OOM);
  EXPECT_EQ(f.read(), Next::nothing);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_OOM);
  EXPECT_FALSE(f.guard.wants_reading(at(4'999)));
  EXPECT_EQ(f.until(5'000), Next::create);
}

TEST(Guard, a_record_that_cannot_be_read_says_why) {
  Fixture f;
  f.admit();
  f.guard.begin_reading(f.now);
  f.guard.reading_failed(REDLOCK_E_WRONGTYPE);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_WRONGTYPE);
  f.now = at(5'000);
  f.guard.on_time(f.now);
  EXPECT_TRUE(f.guard.wants_reading(f.now));
  f.read();
  EXPECT_TRUE(f.guard.admitted());
}

TEST(Guard, a_duplicate_neither_votes_nor_seals) {
  Fixture f;
  f.create();
  f.guard.set_duplicate(true, f.now);
  EXPECT_EQ(f.read(), Next::nothing);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_DUPLICATE);
  EXPECT_EQ(f.until(100'000), Next::nothing);
  f.guard.set_duplicate(false, f.now);
  EXPECT_EQ(f.read(), Next::seal);
}

TEST(Guard, distrust_ends_by_itself) {
  Fixture f;
  f.admit();
  f.guard.distrust(at(12'000));
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_WALL_CLOCK);
  EXPECT_EQ(f.guard.watched_at(), at(12'000));
  f.until(11'999);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_WALL_CLOCK);
  f.until(12'001);
  EXPECT_TRUE(f.guard.admitted());
}

TEST(Guard, commissioning_seals_what_is_found_once) {
  Fixture f;
  f.guard.commission(at(guard_ms));
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

TEST(Guard, commissioning_is_over_after_the_guard_time) {
  Fixture f;
  f.guard.commission(at(guard_ms));
  f.create();
  f.now = at(guard_ms);
  EXPECT_EQ(f.read(), Next::nothing);
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNWATCHED);
}

TEST(Guard, its_quarantine_is_the_one_last_read_or_none) {
  Fixture f;
  EXPECT_EQ(f.guard.quarantine().size, 0u);
  f.create();
  f.read();
  EXPECT_EQ(std::string(f.guard.quarantine().data, f.guard.quarantine().size), "aaaaaaaaaaaaaaaa");
  f.record.q = "";
  EXPECT_EQ(f.read(), Next::create);
  EXPECT_EQ(f.guard.quarantine().size, 0u);
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

}  // namespace
}  // namespace redlock
