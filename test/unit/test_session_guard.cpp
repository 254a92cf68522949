// SPDX-License-Identifier: MIT
//
// What a session says and hears for the guard, byte for byte: readings, INFO, the server's time, the scripts, and the seal
// behind a request where tracking is not confirmed.
#include "master/session.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/space.hpp"
#include "support/session_wire.hpp"

namespace redlock {
namespace {

using State = Session::State;
using Wish = Session::Wish;

Instant at(int64_t ms) { return Instant::from_ns(ms * 1'000'000); }
std::string bulk(std::string_view s) { return "$" + std::to_string(s.size()) + "\r\n" + std::string(s) + "\r\n"; }
std::string list(const std::vector<std::string>& encoded) {
  std::string s = "*" + std::to_string(encoded.size()) + "\r\n";
  for (const std::string& e : encoded) s += e;
  return s;
}

const std::string hello = "%2\r\n" + bulk("mode") + bulk("standalone") + bulk("role") + bulk("master");
const std::string info_text =
    "run_id:1111111111111111aaaa\r\nmaster_replid:2222222222222222bbbb\r\nrole:master\r\nmaxmemory:0\r\n";
const std::string q = "3333333333333333";
const std::string seal = "1111111111111111:2222222222222222:" + q;

struct Fixture : test::SessionWire {
  explicit Fixture(bool resp3 = true, uint64_t seed = 7, size_t tx_size = 4'096) : tracked(resp3), tx(new char[tx_size]) {
    settings.guard = GuardMode::strict;
    settings.max_ttl_ms = 30'000;
    settings.meta_key = "redlock::meta";
    settings.fingerprint = "v1 n=3";
    settings.rx_bytes = 512;
    now = at(0);
    session = std::make_unique<Session>(
        settings, master, Bytes("gw"),
        Session::Memory{tx.get(), tx_size, rx, sizeof rx, requests,
                        static_cast<unsigned>(std::size(requests)), &called});
    session->connecting(now);
    session->connected(now, 1);
    if (seed != 0) session->seed(seed);
  }
  Fixture(const Fixture&) = delete;

  // HELLO, tracking, scripts.
  void greet_up_to_info() {
    sent();
    receive(hello);
    rest = sent();
    receive(std::string(tracked ? "+OK\r\n" : "-ERR unknown subcommand\r\n") + bulk("sha") + bulk("sha"));
  }
  std::string caching() const { return tracked ? "+OK\r\n" : "-ERR not in tracking mode\r\n"; }
  std::string record(const std::string& the_seal = seal) const {
    return list({bulk("v1 n=3"), bulk(q), the_seal.empty() ? "_\r\n" : bulk(the_seal)});
  }
  static std::string time(int64_t seconds = 1'700'000'000) { return list({bulk(std::to_string(seconds)), bulk("5")}); }
  std::string ping() const { return bulk(nonce_of(rest)); }
  void greet(const std::string& the_seal = seal) {
    greet_up_to_info();
    receive(bulk(info_text) + caching() + record(the_seal) + time() + ping());
    ASSERT_EQ(session->state(), State::up);
    replies.clear();
  }
  // A later reading is due and sent; what it says comes back.
  std::string due(int64_t ms) {
    now = at(ms);
    session->on_time(now);
    return sent();
  }
  unsigned told(Reply::Kind kind) const {
    unsigned n = 0;
    for (const Reply& r : replies) n += r.kind == kind;
    return n;
  }
  void ask(Op op) {
    Subject s;
    s.names = "bus";
    s.value_hex = "0011223344556677889900112233445566778899";
    s.client_name = "gw";
    s.ttl_ms = 1'000;
    session->ask(op, 1, 1, Command::plain(test::space(), op, s, true), now);
  }
  void expect_closing(int reason) {
    EXPECT_EQ(session->wish(), Wish::close);
    EXPECT_EQ(session->reason(), reason) << redlock_err_name(session->reason());
  }

  bool tracked;
  Settings settings;
  MasterSettings master;
  std::unique_ptr<char[]> tx;
  char rx[512];
  Session::Request requests[16 + Session::own_requests];
  std::string rest;
};

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(SessionGuard, a_seal_that_fits_lets_it_vote) {
  Fixture f;
  f.greet();
  EXPECT_TRUE(f.session->votes());
  EXPECT_TRUE(holds(f.rest, bulk("HMGET") + bulk("redlock::meta")));
  EXPECT_LT(f.rest.find("TRACKING"), f.rest.find("INFO"));
}

TEST(SessionGuard, its_seal_is_of_the_state_found_on_this_connection) {
  Fixture f;
  f.greet();
  EXPECT_EQ(std::string(f.session->seal().data, f.session->seal().size), seal);
}

TEST(SessionGuard, the_greeting_tells_that_it_is_identified) {
  Fixture f;
  f.greet_up_to_info();
  f.receive(bulk(info_text));
  EXPECT_EQ(f.told(Reply::Kind::identified), 1u);
  EXPECT_EQ(std::string(f.session->guard().run_id().data, 16), "1111111111111111");
}

TEST(SessionGuard, a_blank_record_is_made_and_read_again_before_it_is_up) {
  Fixture f;
  f.greet_up_to_info();
  f.receive(bulk(info_text) + f.caching() + "*3\r\n_\r\n_\r\n_\r\n" + f.time());
  const std::string made = f.sent();
  EXPECT_TRUE(holds(made, "EVAL")) << made;
  EXPECT_TRUE(holds(made, bulk("") + bulk("*") + bulk("v1 n=3"))) << made;
  f.receive(f.ping());
  EXPECT_EQ(f.session->state(), State::greeting);
  f.receive(":1\r\n" + f.caching() + f.record("") + f.time());
  EXPECT_EQ(f.session->state(), State::up);
  EXPECT_EQ(f.session->reason(), REDLOCK_E_UNWATCHED);
  EXPECT_FALSE(f.session->votes());
}

TEST(SessionGuard, without_random_bytes_no_state_is_begun) {
  Fixture f(true, 0);
  f.greet_up_to_info();
  f.receive(bulk(info_text) + f.caching() + "*3\r\n_\r\n_\r\n_\r\n" + f.time() + f.ping());
  EXPECT_EQ(f.sent(), "");
  EXPECT_FALSE(f.session->votes());
}

TEST(SessionGuard, the_watch_ends_with_the_seal_script) {
  Fixture f;
  f.greet("");
  for (int64_t ms = 5'000; ms <= 30'000; ms += 5'000) {
    const std::string reading = f.due(ms);
    ASSERT_TRUE(holds(reading, "HMGET")) << ms;
    EXPECT_EQ(holds(reading, "INFO"), ms == 30'000) << ms << ": from time to time it is asked who it is";
    f.receive((ms == 30'000 ? bulk(info_text) : "") + f.caching() + f.record("") + f.time(1'700'000'000 + ms / 1'000));
  }
  f.due(30'302);
  f.receive(f.caching() + f.record("") + f.time(1'700'000'030));
  EXPECT_TRUE(holds(f.sent(), bulk(q) + bulk(seal)));
  f.receive(":1\r\n" + f.caching() + f.record() + f.time(1'700'000'030));
  EXPECT_TRUE(f.session->votes());
}

TEST(SessionGuard, a_push_about_the_record_withdraws_it_and_the_next_reading_gives_it_back) {
  for (const std::string& push : {std::string(">2\r\n$10\r\ninvalidate\r\n_\r\n"),
                                  ">2\r\n$10\r\ninvalidate\r\n" + list({bulk("redlock::meta")})}) {
    Fixture f;
    f.greet();
    f.receive(push);
    EXPECT_FALSE(f.session->votes());
    EXPECT_EQ(f.told(Reply::Kind::withdrawn), 1u);
    EXPECT_TRUE(holds(f.due(0), "HMGET"));
    f.receive(f.caching() + f.record() + f.time());
    EXPECT_TRUE(f.session->votes());
  }
}

TEST(SessionGuard, a_push_about_another_key_withdraws_nothing) {
  Fixture f;
  f.greet();
  f.receive(">2\r\n$10\r\ninvalidate\r\n" + list({bulk("bus")}));
  EXPECT_TRUE(f.session->votes());
}

// Its SET was executed by a state that is gone.
TEST(SessionGuard, a_grant_that_comes_after_the_push_is_none) {
  Fixture f;
  f.greet();
  f.ask(Op::acquire);
  f.ask(Op::release);
  f.receive(">2\r\n$10\r\ninvalidate\r\n_\r\n+OK\r\n:1\r\n");
  ASSERT_EQ(f.told(Reply::Kind::answer), 2u);
  EXPECT_EQ(f.replies[f.replies.size() - 2].meaning.answer, Answer::error);
  EXPECT_EQ(f.replies[f.replies.size() - 2].meaning.error, REDLOCK_E_UNREAD);
  EXPECT_EQ(f.replies.back().meaning.answer, Answer::yes) << "a delete is a delete";
}

TEST(SessionGuard, a_stepped_clock_is_told_with_its_size) {
  Fixture f;
  f.greet();
  f.due(5'000);
  f.receive(f.caching() + f.record() + f.time(1'700'000'000 + 5 + 3'600));
  ASSERT_EQ(f.told(Reply::Kind::clock_stepped), 1u);
  EXPECT_GT(f.replies.front().by, Duration::ms(3'599'000));
}

// ---- what a server may answer --------------------------------------------------------------------------------------

TEST(SessionGuard, info_refused_is_told_in_its_own_words) {
  Fixture f;
  f.greet_up_to_info();
  f.receive("-NOPERM no\r\n" + f.caching() + f.record() + f.time() + f.ping());
  EXPECT_EQ(f.session->state(), State::up);
  EXPECT_EQ(f.session->reason(), REDLOCK_E_NOPERM);
}

TEST(SessionGuard, an_answer_of_another_type_closes) {
  struct {
    const char* what;
    std::string bytes;
  } const cases[] = {
      {"INFO", ":1\r\n"},
      {"CACHING", bulk(info_text) + ":1\r\n"},
      {"HMGET", bulk(info_text) + "+OK\r\n:1\r\n"},
      {"HMGET of two", bulk(info_text) + "+OK\r\n*2\r\n_\r\n_\r\n"},
      {"TIME of words", bulk(info_text) + "+OK\r\n" + Fixture().record() + list({bulk("now"), bulk("5")})},
      {"TIME of nothing", bulk(info_text) + "+OK\r\n" + Fixture().record() + list({bulk(""), bulk("5")})},
      {"TIME beyond all", bulk(info_text) + "+OK\r\n" + Fixture().record() + list({bulk("99999999999"), bulk("5")})},
      {"TIME too long", bulk(info_text) + "+OK\r\n" + Fixture().record() + list({bulk("123456789012"), bulk("5")})},
      {"TIME of blanks", bulk(info_text) + "+OK\r\n" + Fixture().record() + list({bulk("12 "), bulk("5")})},
  };
  for (const auto& c : cases) {
    Fixture f;
    f.greet_up_to_info();
    f.receive(c.bytes);
    SCOPED_TRACE(c.what);
    f.expect_closing(REDLOCK_E_PROTOCOL);
  }
}

TEST(SessionGuard, time_refused_costs_the_samples_and_no_vote) {
  Fixture f;
  f.greet_up_to_info();
  f.receive(bulk(info_text) + f.caching() + f.record() + "-NOPERM no\r\n" + f.ping());
  EXPECT_TRUE(f.session->votes());
  EXPECT_FALSE(f.session->samples_clock(at(0)));
}

TEST(SessionGuard, half_a_time_is_no_sample) {
  Fixture f;
  f.greet_up_to_info();
  f.receive(bulk(info_text) + f.caching() + f.record() + list({bulk("5")}) + f.ping());
  EXPECT_TRUE(f.session->votes());
  EXPECT_FALSE(f.session->samples_clock(at(0)));
}

TEST(SessionGuard, info_may_be_longer_than_the_buffer) {
  Fixture f;
  f.greet_up_to_info();
  f.receive(bulk(std::string(3'000, '#') + "\r\n" + info_text) + f.caching() + f.record() + f.time() + f.ping());
  EXPECT_TRUE(f.session->votes());
}

TEST(SessionGuard, without_tracking_the_record_is_read_again_all_the_same) {
  Fixture f(false);
  f.greet();
  const std::string reading = f.due(5'000);
  EXPECT_TRUE(holds(reading, "HMGET"));
  EXPECT_FALSE(holds(reading, "CACHING"));
}

TEST(SessionGuard, nobody_quarantines_another_configuration_or_without_room) {
  Fixture f;
  f.greet_up_to_info();
  f.receive(bulk(info_text) + f.caching() + list({bulk("v1 n=5"), bulk(q), bulk(seal)}) + f.time() + f.ping());
  f.session->quarantine(f.now);
  EXPECT_FALSE(holds(f.sent(), "EVAL"));
  Fixture g(true, 7, 1'024);
  g.greet();
  while (g.session->tx().fits(200, 1)) g.ask(Op::release);
  g.session->quarantine(g.now);
  EXPECT_FALSE(holds(g.sent(), bulk(q)));
}

TEST(SessionGuard, a_state_is_not_begun_without_room) {
  Fixture f(true, 7, 1'024);
  f.greet("");
  f.due(5'000);
  while (f.session->tx().fits(200, 1)) f.ask(Op::release);
  f.receive(f.caching() + "*3\r\n_\r\n_\r\n_\r\n" + f.time(1'700'000'005));
  EXPECT_FALSE(holds(f.sent(), bulk("v1 n=3")));
}

TEST(SessionGuard, a_record_that_cannot_be_read_is_the_reason) {
  Fixture f;
  f.greet_up_to_info();
  f.receive(bulk(info_text) + f.caching() + "-WRONGTYPE no\r\n" + f.time() + f.ping());
  EXPECT_EQ(f.session->reason(), REDLOCK_E_WRONGTYPE);
}

TEST(SessionGuard, a_fingerprint_longer_than_the_buffer_is_foreign) {
  Fixture f;
  f.greet_up_to_info();
  f.receive(bulk(info_text) + f.caching() + list({bulk(std::string(2'000, 'x')), bulk(q), bulk(seal)}) + f.time() + f.ping());
  EXPECT_EQ(f.session->reason(), REDLOCK_E_FINGERPRINT);
}

TEST(SessionGuard, a_refused_write_is_the_reason) {
  Fixture f;
  f.greet_up_to_info();
  f.receive(bulk(info_text) + f.caching() + "*3\r\n_\r\n_\r\n_\r\n" + f.time() + f.ping());
  f.receive("-OOM no\r\n" + f.caching() + "*3\r\n_\r\n_\r\n_\r\n" + f.time());
  EXPECT_EQ(f.session->reason(), REDLOCK_E_OOM);
  EXPECT_EQ(f.session->wish(), Wish::none);
}

TEST(SessionGuard, a_write_answered_by_another_type_closes) {
  Fixture f;
  f.greet_up_to_info();
  f.receive(bulk(info_text) + f.caching() + "*3\r\n_\r\n_\r\n_\r\n" + f.time() + f.ping() + "+OK\r\n");
  f.expect_closing(REDLOCK_E_PROTOCOL);
}

// A fenced script compares the seal itself: what it found broken is read anew, and nothing is voted before that.
TEST(SessionGuard, a_script_that_finds_another_seal_withdraws_it) {
  Fixture f;
  f.greet();
  ASSERT_TRUE(f.session->votes());
  f.ask(Op::extend);
  f.receive(":-1\r\n");
  ASSERT_EQ(f.told(Reply::Kind::answer), 1u);
  for (const Reply& r : f.replies) {
    if (r.kind != Reply::Kind::answer) continue;
    EXPECT_EQ(r.meaning.answer, Answer::error);
    EXPECT_EQ(r.meaning.error, REDLOCK_E_SEAL);
  }
  EXPECT_FALSE(f.session->votes());
  EXPECT_EQ(f.session->reason(), REDLOCK_E_UNREAD);
  EXPECT_TRUE(holds(f.due(0), bulk("redlock::meta"))) << "read again at once";
}

// ---- without tracking: the seal behind each request ------------------------------------------------------------------

TEST(SessionGuard, the_seal_is_read_in_the_same_write_and_its_answer_decides) {
  struct {
    const char* reply;
    std::string seal;
    Answer answer;
    int error;
    bool votes;
  } const cases[] = {
      {"+OK\r\n", bulk(seal), Answer::yes, 0, true},
      {"_\r\n", bulk(seal), Answer::no, 0, true},
      {"+OK\r\n", "_\r\n", Answer::error, REDLOCK_E_UNREAD, false},
      {"_\r\n", "_\r\n", Answer::no, 0, false},
      {"+OK\r\n", bulk("another"), Answer::error, REDLOCK_E_UNREAD, false},
      {"+OK\r\n", "-NOPERM no\r\n", Answer::error, REDLOCK_E_NOPERM, false},
      {"+OK\r\n", bulk(std::string(1'000, 'x')), Answer::error, REDLOCK_E_UNREAD, false},
  };
  for (const auto& c : cases) {
    Fixture f(false);
    f.greet();
    f.ask(Op::acquire);
    EXPECT_TRUE(holds(f.sent(), "HGET\r\n" + bulk("redlock::meta") + bulk("seal")));
    EXPECT_EQ(f.session->in_flight(), 1u) << "the two share one place";
    f.receive(c.reply);
    EXPECT_EQ(f.told(Reply::Kind::answer), 0u) << "held until the seal has come";
    f.receive(c.seal);
    ASSERT_EQ(f.told(Reply::Kind::answer), 1u) << c.seal;
    EXPECT_EQ(f.replies.front().meaning.answer, c.answer) << c.seal;
    if (c.answer == Answer::error) {
      EXPECT_EQ(f.replies.front().meaning.error, c.error) << c.seal;
    }
    EXPECT_EQ(f.session->votes(), c.votes) << c.seal;
    EXPECT_EQ(f.session->in_flight(), 0u);
  }
}

TEST(SessionGuard, a_second_request_behind_a_seal_that_failed_is_no_grant_either) {
  Fixture f(false);
  f.greet();
  f.ask(Op::acquire);
  f.ask(Op::acquire);
  f.receive("+OK\r\n_\r\n+OK\r\n" + bulk(seal));
  ASSERT_EQ(f.told(Reply::Kind::answer), 2u);
  for (const Reply& r : f.replies) {
    if (r.kind == Reply::Kind::answer) {
      EXPECT_EQ(r.meaning.answer, Answer::error);
    }
  }
}

// Wherever in its ring the FIFO's end is.
TEST(SessionGuard, the_seal_behind_each_of_many_requests) {
  Fixture f(false);
  f.greet();
  for (unsigned i = 1; i <= 2 * std::size(f.requests); ++i) {
    f.ask(Op::acquire);
    ASSERT_TRUE(holds(f.sent(), "HGET"));
    f.receive("+OK\r\n");
    ASSERT_EQ(f.told(Reply::Kind::answer), i - 1) << "held until the seal has come";
    f.receive(bulk(seal));
    ASSERT_EQ(f.told(Reply::Kind::answer), i);
    ASSERT_EQ(f.replies.back().meaning.answer, Answer::yes);
  }
  EXPECT_TRUE(f.session->votes());
}

TEST(SessionGuard, a_delete_reads_no_seal) {
  Fixture f(false);
  f.greet();
  f.ask(Op::release);
  EXPECT_FALSE(holds(f.sent(), "HGET"));
  f.receive(":1\r\n");
  EXPECT_EQ(f.told(Reply::Kind::answer), 1u);
}

TEST(SessionGuard, a_seal_of_another_type_closes) {
  for (const char* bytes : {":1\r\n", "*1\r\n+OK\r\n"}) {
    Fixture f(false);
    f.greet();
    f.ask(Op::acquire);
    f.receive(std::string("+OK\r\n") + bytes);
    f.expect_closing(REDLOCK_E_PROTOCOL);
  }
}

TEST(SessionGuard, a_readonly_answer_closes_without_waiting_for_the_seal) {
  Fixture f(false);
  f.greet();
  f.ask(Op::acquire);
  f.receive("-READONLY no\r\n");
  f.expect_closing(REDLOCK_E_READONLY);
  EXPECT_EQ(f.told(Reply::Kind::answer), 1u);
}

// ---- the client's part ------------------------------------------------------------------------------------------------

TEST(SessionGuard, a_quarantine_is_written_only_over_a_seal) {
  Fixture f;
  f.greet();
  f.session->quarantine(f.now);
  EXPECT_TRUE(holds(f.sent(), bulk("v1 n=3") + bulk(q) + bulk("v1 n=3")));
  f.receive(":1\r\n" + f.caching() + list({bulk("v1 n=3"), bulk("4444444444444444"), "_\r\n"}) + f.time());
  EXPECT_EQ(f.session->reason(), REDLOCK_E_UNWATCHED);
  f.session->quarantine(f.now);
  EXPECT_EQ(f.sent(), "") << "nobody trusts it any more";
}

TEST(SessionGuard, a_quarantine_waits_for_a_connection) {
  Fixture f;
  f.session->quarantine(f.now);
  EXPECT_FALSE(holds(f.sent(), "EVAL"));
}

TEST(SessionGuard, commissioning_reads_at_once_where_it_is_up_and_later_else) {
  Fixture f;
  f.session->commission(at(30'302), f.now);
  f.greet_up_to_info();
  f.receive(bulk(info_text) + f.caching() + f.record("") + f.time());
  EXPECT_TRUE(holds(f.sent(), bulk(q) + bulk(seal)));

  Fixture g;
  g.greet("");
  g.session->commission(at(30'302), g.now);
  EXPECT_TRUE(holds(g.due(0), "HMGET"));
}

TEST(SessionGuard, distrust_duplicate_and_a_jump_end_the_votes) {
  Fixture f;
  f.greet();
  f.session->take_changed();
  f.session->distrust(at(100));
  EXPECT_EQ(f.session->reason(), REDLOCK_E_WALL_CLOCK);
  EXPECT_TRUE(f.session->take_changed());
  f.due(100);
  EXPECT_TRUE(f.session->votes());
  f.session->set_duplicate(true, f.now);
  EXPECT_EQ(f.session->reason(), REDLOCK_E_DUPLICATE);
  f.session->set_duplicate(false, f.now);
  EXPECT_TRUE(f.session->votes());
  f.session->clock_jumped(f.now);
  EXPECT_EQ(f.session->reason(), REDLOCK_E_UNREAD);
  EXPECT_FALSE(f.session->samples_clock(at(0)));
}

TEST(SessionGuard, a_record_is_moved_by_one_script_at_a_time) {
  Fixture f;
  const auto move = [](Fixture& g) { return g.session->move("v1 n=3", "v1 n=5", "4444444444444444", "enter", g.now); };
  EXPECT_FALSE(move(f)) << "it is not up";
  EXPECT_FALSE(holds(f.sent(), "v1 n=5"));
  f.greet();
  ASSERT_TRUE(move(f));
  EXPECT_TRUE(holds(f.sent(), bulk("v1 n=3") + bulk("v1 n=5") + bulk("4444444444444444") + bulk("enter")));
  EXPECT_EQ(f.session->moved(), Session::Moved::asked);
  EXPECT_FALSE(move(f)) << "the first is not answered";
  EXPECT_EQ(f.sent(), "");
  f.receive(":1\r\n");
  EXPECT_EQ(f.session->moved(), Session::Moved::yes);
  ASSERT_TRUE(move(f));
  f.receive(":0\r\n");
  EXPECT_EQ(f.session->moved(), Session::Moved::foreign);
  ASSERT_TRUE(move(f));
  f.receive("-NOPERM no\r\n");
  EXPECT_EQ(f.session->moved(), Session::Moved::failed);
  EXPECT_EQ(f.session->move_error(), REDLOCK_E_NOPERM);
}

TEST(SessionGuard, a_move_answered_by_another_type_closes) {
  Fixture f;
  f.greet();
  ASSERT_TRUE(f.session->move("v1 n=3", "v1 n=5", "4444444444444444", "enter", f.now));
  f.sent();
  f.receive("+OK\r\n");
  f.expect_closing(REDLOCK_E_PROTOCOL);
  f.receive(":1\r\n");
  EXPECT_EQ(f.session->moved(), Session::Moved::asked) << "nothing is heard any more";
}

TEST(SessionGuard, nothing_is_moved_on_a_connection_that_closes_or_without_room) {
  Fixture f;
  f.greet();
  f.receive(":1\r\n");  // nobody asked
  ASSERT_EQ(f.session->wish(), Wish::close);
  ASSERT_EQ(f.session->state(), State::up);
  EXPECT_FALSE(f.session->move("v1 n=3", "v1 n=5", "4444444444444444", "enter", f.now));
  EXPECT_EQ(f.session->moved(), Session::Moved::no);

  Fixture g(true, 7, 1'024);
  g.greet();
  while (g.session->tx().fits(200, 1)) g.ask(Op::release);
  EXPECT_FALSE(g.session->move("v1 n=3", "v1 n=5", "4444444444444444", "enter", g.now));
  EXPECT_FALSE(holds(g.sent(), "v1 n=5"));
}

// A transmit buffer that is full of requests: the reading waits, and the admission lapses in time.
TEST(SessionGuard, a_reading_that_finds_no_room_waits) {
  Fixture f(true, 7, 1'024);
  f.greet();
  while (f.session->room(300, 1)) f.ask(Op::acquire);
  f.now = at(5'000);
  f.session->on_time(f.now);
  EXPECT_FALSE(holds(f.sent(), "HMGET"));
  EXPECT_GT(f.session->deadline(), at(5'000));
}

// No reading of the seal follows a delete, so it needs no room for one.
TEST(SessionGuard, a_delete_takes_the_last_room_on_a_connection_without_tracking) {
  Fixture f(false, 7, 1'024);
  f.greet();
  while (f.session->room(110, 1)) f.ask(Op::acquire);
  const size_t size = 130;  // of a delete
  ASSERT_FALSE(f.session->room(size, 1));
  ASSERT_TRUE(f.session->room_for_kept(size));
  f.ask(Op::release);
  EXPECT_TRUE(holds(f.sent(), "EVALSHA"));
}

TEST(SessionGuard, a_seal_that_finds_no_room_waits_for_the_next_reading) {
  Fixture f(true, 7, 1'024);
  f.greet("");
  f.session->commission(at(30'302), f.now);
  f.due(0);
  while (f.session->tx().fits(200, 1)) f.ask(Op::release);
  f.receive(f.caching() + f.record("") + f.time());
  EXPECT_FALSE(holds(f.sent(), bulk(seal)));
}

}  // namespace
}  // namespace redlock
