// SPDX-License-Identifier: MIT
//
// What a server may answer to the guard's requests, and what a session writes for the guard.
#include "session_guard_fixture.hpp"

namespace redlock {
namespace {

using namespace session_guard_test;

// ---- what a server may answer --------------------------------------------------------------------------------------

// Inside a script the refusal has no word of its own.
TEST(SessionGuard, info_refused_inside_the_script_is_one_of_its_answers) {
  const std::string refused = whole(no_info(), {bulk(fingerprint), bulk(q), bulk(seal), Fixture::null(),
                                                Fixture::null(), Fixture::null(), bulk(tag)});
  Fixture f;
  f.greet_up_to_reading();
  f.receive(f.caching() + refused + f.time() + f.ping());
  EXPECT_EQ(f.session->reason(), REDLOCK_E_NOPERM);
  EXPECT_EQ(f.session->wish(), Wish::none);
  EXPECT_EQ(f.due(5'000), f.reading());
  f.reads(f.record(), 5);
  EXPECT_TRUE(f.session->votes());

  Fixture weak;
  weak.settings.guard = GuardMode::weak;
  weak.session->commission(at(1'000), weak.now);
  weak.greet_up_to_reading();
  weak.receive(weak.caching() + refused + weak.time() + weak.ping());
  EXPECT_EQ(weak.sent(),
            Fixture::write(fingerprint, q, q, "0000000000000000:0000000000000000:" + q, "0000000000000000") +
                weak.reading())
      << "an id of zeros is compared by nobody";
}

TEST(SessionGuard, an_answer_of_another_type_closes) {
  const std::string first = "+OK\r\n", third = first + Fixture::record();
  const std::string info = info_of(), n = Fixture::null();
  struct {
    const char* what;
    std::string bytes;
  } const cases[] = {
      {"CACHING", ":1\r\n"},
      {"CACHING, and the next answer in one", "+O-LOADING\r\n"},
      {"a reading of a number", first + ":1\r\n"},
      {"a reading of a string", first + bulk("1")},
      {"a reading of nothing", first + n},
      {"a reading of a map", first + "%9\r\n" + info + n + n + n + n + n + n},
      {"a reading of no fields", first + "*0\r\n"},
      {"a field too few", first + whole(info, {n, n, n, n, n, n})},
      {"a field too many", first + whole(info, {n, n, n, n, n, n, n, n})},
      {"a number for INFO", first + "*17\r\n:1\r\n"},
      {"a list for INFO", first + "*17\r\n" + list({n})},
      {"an empty list for INFO", first + "*17\r\n*0\r\n"},
      {"an error behind the first of INFO", first + "*17\r\n" + bulk(run_id) + "-ERR no\r\n"},
      {"a list for a field", first + whole(info, {list({bulk(fingerprint)}), n, n, n, n, n, n})},
      {"an empty list for a field", first + whole(info, {"*0\r\n", n, n, n, n, n, n})},
      {"a list for the last field", first + whole(info, {n, n, n, n, n, n, list({n})})},
      {"a number for a field", first + whole(info, {n, ":1\r\n", n, n, n, n, n})},
      {"an error for a field", first + whole(info, {n, n, "-ERR no\r\n", n, n, n, n})},
      {"a word for a field", first + whole(info, {n, n, "+OK\r\n", n, n, n, n})},
      {"TIME of words", third + list({bulk("now"), bulk("5")})},
      {"TIME of nothing", third + list({bulk(""), bulk("5")})},
      {"TIME beyond all", third + list({bulk("99999999999"), bulk("5")})},
      {"TIME too long", third + list({bulk("123456789012"), bulk("5")})},
      {"TIME of blanks", third + list({bulk("12 "), bulk("5")})},
  };
  for (const auto& c : cases) {
    Fixture f;
    f.greet_up_to_reading();
    f.receive(c.bytes);
    SCOPED_TRACE(c.what);
    f.expect_closing(REDLOCK_E_PROTOCOL);
  }
}

TEST_F(GreetedUpToReading, half_a_time_is_no_sample) {
  f.receive(f.caching() + f.record() + list({bulk("5")}) + f.ping());
  EXPECT_TRUE(f.session->votes());
  EXPECT_FALSE(f.session->samples_clock(at(0)));
}

TEST(SessionGuard, without_tracking_the_record_is_read_again_all_the_same) {
  for (const Link link : {Link::untracked, Link::resp2}) {
    Fixture f(link);
    f.greet();
    EXPECT_EQ(f.due(5'000), f.recheck());
  }
}

// Only the library writes the record; but whoever else does, the last piece of what was written is not the field. What
// is left of a string is given out whole as soon as that fits the buffer: here it is just the text that is looked for.
TEST(SessionGuard, a_field_longer_than_the_buffer_is_foreign_whatever_its_last_piece_says) {
  const std::string visit = replid + ":" + q + " 1 1699100000000";
  for (const unsigned field : {0u, 1u, 2u, 5u}) {
    SCOPED_TRACE(Message() << "field " << field);
    Fixture f;
    f.settings.has_boot_id = true;
    memcpy(f.settings.boot_id, boot_id.data(), boot_id.size());
    f.greet_up_to_reading();
    const std::string fields[] = {fingerprint, q, field == 5 ? "" : seal, "", "", field >= 2 ? visit : ""};
    const std::string filler(sizeof f.rx, 'x');
    f.receive(f.caching() + "*17\r\n" + info_of());
    for (unsigned i = 0; i < 6; ++i) {
      if (i == field) {
        f.receive("$" + std::to_string(filler.size() + fields[i].size()) + "\r\n");
        f.receive(filler);
        f.receive(fields[i] + "\r\n");
      } else {
        f.receive(fields[i].empty() ? Fixture::null() : bulk(fields[i]));
      }
    }
    f.receive(bulk(tag) + f.time() + f.ping());
    EXPECT_EQ(f.session->wish(), Wish::none);
    EXPECT_FALSE(f.session->votes());
    const std::string said = f.sent();
    if (field == 0) {
      EXPECT_EQ(f.session->reason(), REDLOCK_E_FINGERPRINT);
      EXPECT_EQ(said, "");
    } else if (field == 1) {
      EXPECT_TRUE(holds(said, test::text_of(record_script))) << "a new state begins";
    } else if (field == 2) {
      EXPECT_EQ(f.session->reason(), REDLOCK_E_UNWATCHED);
      f.session->boot_time(900'000'000, f.now);
      EXPECT_TRUE(holds(f.sent(), test::text_of(record_script))) << "the field behind it is what it says";
    } else {
      ASSERT_TRUE(f.news.back().wants_boot_time);
      f.session->boot_time(900'000'000, f.now);
      EXPECT_TRUE(holds(f.sent(), test::text_of(visit_script))) << "and no seal";
    }
  }
}

TEST(SessionGuard, a_field_longer_than_the_buffer_is_foreign_however_it_comes) {
  for (const size_t more : {513u, 600u, 1'024u, 2'000u}) {
    Fixture f;
    f.greet_up_to_reading();
    f.receive(f.caching() +
              whole(info_of(), {bulk(std::string(more, 'x') + fingerprint), bulk(q), bulk(seal), Fixture::null(),
                                Fixture::null(), Fixture::null(), bulk(tag)}) +
              f.time() + f.ping());
    EXPECT_EQ(f.session->reason(), REDLOCK_E_FINGERPRINT) << more;
    f.due(5'000);
    f.reads(f.record(), 5);
    EXPECT_TRUE(f.session->votes()) << "the next reading is another";
  }
}

// A field that fits the buffer is whole, however it is cut on its way.
TEST(SessionGuard, a_reading_may_come_in_any_two_pieces) {
  const std::string whole = Fixture::record();
  for (size_t split = 0; split <= whole.size(); ++split) {
    Greeted f;
    f.receive(null_push);
    f.due(0);
    f.receive(f.caching() + whole.substr(0, split));
    f.on_time(f.now);
    EXPECT_FALSE(split < whole.size() && f.session->votes()) << "split at " << split;
    f.receive(whole.substr(split) + f.time());
    ASSERT_TRUE(f.session->votes()) << "split at " << split;
  }
}

// ---- writes -------------------------------------------------------------------------------------------------------

TEST_F(GreetedUpToReading, a_write_answered_by_another_type_closes) {
  f.receive(f.caching() + f.blank() + f.time() + f.ping() + "+OK\r\n");
  f.expect_closing(REDLOCK_E_PROTOCOL);
}

// With the longest keys and fingerprint: what the guard says at one time fits the room that it asks for.
TEST(SessionGuard, what_the_guard_says_at_one_time_fits_its_room) {
  const std::string prefix(REDLOCK_KEY_PREFIX_MAX, 'p'),
      record_key = "redlock:" + prefix + ":meta", seen_key = "redlock:" + prefix + ":seen",
      words(own_fingerprint_max, 'f');
  Greeted f;
  f.settings.meta_key = Bytes(record_key.data(), record_key.size());
  f.settings.seen_key = Bytes(seen_key.data(), seen_key.size());
  f.settings.fingerprint = Bytes(words.data(), words.size());
  f.settings.has_boot_id = true;
  f.settings.key_prefix = Bytes(prefix.data(), prefix.size());
  f.session->commission(at(10'000), f.now);
  f.due(0);
  f.reads(whole(info_of(), {bulk(words), bulk(q), Fixture::null(), Fixture::null(), Fixture::null(), Fixture::null(),
                            bulk(tag)}));
  const std::string said = f.sent();
  const size_t by_reference = record_script.size() + reading_script.size();
  ASSERT_GT(said.size(), by_reference);
  EXPECT_LE(said.size() - by_reference, Record::bytes_max(f.settings));
}

TEST_F(AnyUnderGuard, nobody_quarantines_another_configuration_or_without_room) {
  f.greet(whole(info_of(), {bulk("v1 n=5"), bulk(q), bulk(seal), Fixture::null(), Fixture::null(), Fixture::null(),
                            bulk(tag)}));
  f.session->quarantine(f.now);
  EXPECT_EQ(f.sent(), "");
  Fixture g(Link::tracked, 7, 1'024);
  g.greet();
  while (g.session->tx().fits(200, 1)) g.ask(Op::release);
  g.session->quarantine(g.now);
  EXPECT_FALSE(holds(g.sent(), bulk(q)));
}

TEST(SessionGuard, a_state_is_not_begun_without_room) {
  Fixture f(Link::tracked, 7, 1'024);
  f.greet(Fixture::record(""));
  f.due(5'000);
  while (f.session->tx().fits(200, 1)) f.ask(Op::release);
  f.reads(f.blank(), 5);
  EXPECT_FALSE(holds(f.sent(), bulk(fingerprint)));
}

TEST(SessionGuard, a_seal_that_finds_no_room_waits_for_the_next_reading) {
  Fixture f(Link::tracked, 7, 1'024);
  f.greet(Fixture::record(""));
  f.session->commission(at(30'302), f.now);
  f.due(0);
  while (f.session->tx().fits(200, 1)) f.ask(Op::release);
  f.reads(f.record(""));
  EXPECT_FALSE(holds(f.sent(), bulk(seal)));
  EXPECT_GT(f.session->deadline(), at(0));
}

// A transmit buffer that is full of requests: the reading waits, and the admission lapses in time.
TEST(SessionGuard, a_reading_that_finds_no_room_waits) {
  Fixture f(Link::tracked, 7, 1'024);
  f.greet();
  f.now = at(4'999);
  while (f.session->room(300, 1, true)) f.ask(Op::acquire);
  f.now = at(5'000);
  f.on_time(f.now);
  EXPECT_FALSE(holds(f.sent(), "EVAL"));
  EXPECT_GT(f.session->deadline(), at(5'000));
}

// Requests of its own that a silent master does not answer take no more places than were kept for them.
TEST_F(AnyUnderGuard, it_asks_no_more_than_it_has_places_for) {
  f.settings.node_timeout = Duration::ms(60'000);
  f.greet();
  for (int64_t ms = 1; ms < 2'000; ++ms) {
    f.receive(null_push);
    f.due(ms);
    f.session->quarantine(f.now);
    f.sent();
    ASSERT_LE(f.session->in_flight(), Session::own_requests);
  }
  EXPECT_EQ(f.session->state(), State::up);
  EXPECT_TRUE(f.session->room(1, 16, true)) << "the client's places are the client's";
}

// ---- short visits -------------------------------------------------------------------------------------------------

struct Visits : Fixture {
  explicit Visits(GuardMode mode = GuardMode::strict) {
    settings.guard = mode;
    settings.has_boot_id = true;
    memcpy(settings.boot_id, boot_id.data(), boot_id.size());
  }
};

TEST(SessionGuard, boot_time_that_comes_behind_a_withdrawal_writes_nothing) {
  Visits f;
  f.greet(Fixture::record(""));
  f.receive(null_push);
  f.session->boot_time(1'000, f.now);
  EXPECT_EQ(f.sent(), "");
}

TEST(SessionGuard, without_room_no_word_is_left_and_the_next_reading_asks_again) {
  Visits f;
  f.greet(Fixture::record(""));
  while (f.session->tx().fits(500, 2)) f.ask(Op::release);
  f.session->boot_time(1'000, f.now);
  EXPECT_FALSE(holds(f.sent(), test::text_of(visit_script)));
}

TEST(SessionGuard, a_visit_that_is_refused_costs_nothing) {
  for (const char* refusal :
       {"-OOM no\r\n", "-NOPERM no\r\n", ":0\r\n", "-READONLY no\r\n", "+OK\r\n", "*1\r\n:1\r\n"}) {
    Visits f;
    f.greet(Fixture::record(""));
    f.session->boot_time(1'000, f.now);
    f.sent();
    f.receive(refusal);
    EXPECT_EQ(f.session->reason(), REDLOCK_E_UNWATCHED) << refusal;
    EXPECT_EQ(f.session->wish(), Wish::none) << refusal;
    EXPECT_EQ(f.session->guard().watched_at(), at(30'302)) << "the own watch goes on: " << refusal;
  }
}

TEST_F(AnyUnderGuard, without_a_boot_id_nothing_is_asked_for) {
  f.greet(Fixture::record(""));
  EXPECT_TRUE(holds(f.rest, f.reading("")));
  EXPECT_EQ(f.told(&News::wants_boot_time), 0u);
}

}  // namespace
}  // namespace redlock
