// SPDX-License-Identifier: MIT
//
// May this master vote? The guard is told what the master says and what time it is; here the master is a record, two
// ids and a role, which the test changes.
#include "guard_fixture.hpp"

namespace redlock {
namespace {

using namespace guard_test;

TEST(Guard, off_is_off_whatever_happens) {
  Settings settings;
  Guard guard(settings);
  guard.clock_jumped(at(0));
  guard.distrust(at(100));
  guard.set_duplicate(true);
  guard.set_duplicate(true);
  EXPECT_TRUE(guard.admitted());
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

// ---- watches ------------------------------------------------------------------------------------------------------

TEST_F(AnyGuard, the_watch_goes_on_over_reconnects_to_the_same_state) {
  f.create();
  f.read();
  f.now = at(20'000);
  f.connect();
  EXPECT_EQ(f.guard.reason(), REDLOCK_E_UNREAD);
  f.read();
  EXPECT_EQ(f.guard.watched_at(), at(guard_ms));
}

// "No seal" long ago and "no seal" now, with a FLUSHALL between that this client did not see.
TEST_F(AnyGuard, an_old_sight_of_a_blank_state_counts_for_nothing) {
  EXPECT_EQ(f.read(), Next::create);
  f.now = at(100'000);
  f.connect();
  EXPECT_EQ(f.read(), Next::create);
  f.create();
  f.read();
  EXPECT_EQ(f.guard.watched_at(), at(100'000 + guard_ms));
}

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

TEST_F(AnyGuard, a_quarantine_id_of_another_length_is_none) {
  f.create("aaaa");
  EXPECT_EQ(f.read(), Next::create);
}

TEST_F(AnyGuard, its_quarantine_is_the_one_last_read_or_none) {
  EXPECT_EQ(f.guard.quarantine().size, 0u);
  f.create();
  f.read();
  EXPECT_EQ(text(f.guard.quarantine()), "aaaaaaaaaaaaaaaa");
  f.record.q = "";
  EXPECT_EQ(f.read(), Next::create);
  EXPECT_EQ(f.guard.quarantine().size, 0u);
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

}  // namespace
}  // namespace redlock
