// SPDX-License-Identifier: MIT
//
// What a session says and hears for the guard, byte for byte: readings, INFO, the server's time, the scripts that
// write; what a server may answer to these; and how the greeting ends what an older connection has left behind.
#include "master/session.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/lua_scripts.hpp"
#include "support/session_wire.hpp"
#include "support/space.hpp"

namespace redlock {
namespace {

using testing::Message;
using State = Session::State;
using Wish = Session::Wish;

Instant at(int64_t ms) { return Instant::from_ns(ms * 1'000'000); }
std::string bulk(std::string_view s) {
  return "$" + std::to_string(s.size()) + "\r\n" + std::string(s) + "\r\n";
}
std::string list(const std::vector<std::string>& encoded) {
  std::string s = "*" + std::to_string(encoded.size()) + "\r\n";
  for (const std::string& e : encoded) s += e;
  return s;
}
std::string command(const std::vector<std::string>& words) {
  std::vector<std::string> encoded;
  for (const std::string& w : words) encoded.push_back(bulk(w));
  return list(encoded);
}
bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

const std::string meta = "redlock::meta", seen = "redlock::seen", fingerprint = "v1 n=3",
                         names = "a,b,c";
const std::string replid = "2222222222222222", q = "3333333333333333";
const std::string run_id = "1111111111111111";
const std::string seal = run_id + ":" + replid + ":" + q;
const std::string boot_id(Settings::boot_id_size, 'b');
const std::string null_push = ">2\r\n$10\r\ninvalidate\r\n_\r\n";

std::string info_text(const std::string& run = run_id) {
  return "redis_mode:standalone\r\nrun_id:" + run + "aaaa\r\nmaxmemory:0\r\nrole:master\r\nmaster_replid:" + replid +
         "bbbb\r\n";
}
std::string replication(const std::string& id = replid, const std::string& role = "master", int replicas = 0,
                        int backlog = 0) {
  return "# Replication\r\nrole:" + role + "\r\nconnected_slaves:" + std::to_string(replicas) +
         "\r\nmaster_replid:" + id + "bbbb\r\nrepl_backlog_active:" + std::to_string(backlog) + "\r\n";
}

enum class Link { tracked, untracked, resp2 };

struct Fixture : test::SessionWire {
  using SessionWire::ask;
  explicit Fixture(Link how = Link::tracked, uint64_t seed = 7, size_t tx_size = 4'096)
      : link(how), tx(new char[tx_size]) {
    settings.guard = GuardMode::strict;
    settings.max_ttl_ms = 30'000;
    settings.meta_key = Bytes(meta.data(), meta.size());
    settings.seen_key = Bytes(seen.data(), seen.size());
    settings.fingerprint = Bytes(fingerprint.data(), fingerprint.size());
    settings.names = Bytes(names.data(), names.size());
    settings.rx_bytes = 512;
    now = at(0);
    shared.init(shared_memory, sizeof shared_memory);
    session =
        std::make_unique<Session>(settings, master, Bytes("gw"),
                                  Session::Memory{tx.get(), tx_size, rx, sizeof rx, requests,
                                                  static_cast<unsigned>(std::size(requests)), &shared, 0, &called,
                                                  &has_news, &begins});
    if (seed != 0) session->seed(seed);
    connect();
  }
  Fixture(const Fixture&) = delete;

  void connect() {
    if (session->wish() == Wish::none) on_time(later(now, session->deadline()));
    ASSERT_EQ(session->wish(), Wish::connect);
    session->connecting(now);
    session->connected(now, 1);
  }
  void break_off(bool strays = false) {
    session->closed(now, REDLOCK_E_DISCONNECTED, 0);
    session->leave_strays(strays);
  }

  // ---- the answers of the greeting, in order
  std::string hello(int64_t id = 10) const {
    if (link == Link::resp2) return "-ERR unknown command 'HELLO'\r\n";
    return "%3\r\n" + bulk("id") + ":" + std::to_string(id) + "\r\n" + bulk("mode") + bulk("standalone") +
           bulk("role") + bulk("master");
  }
  std::string before_info(int64_t id = 10) const {
    if (link == Link::resp2) {
      return list({bulk("master"), ":0\r\n", "*0\r\n"}) + ":" + std::to_string(id) + "\r\n" + bulk("sha") +
             bulk("sha");
    }
    return (link == Link::tracked ? "+OK\r\n" : "-ERR unknown subcommand\r\n") + bulk("sha") + bulk("sha");
  }
  std::string caching() const {
    return link == Link::tracked ? "+OK\r\n" : link == Link::untracked ? "-ERR not in tracking mode\r\n" : "";
  }
  // Behind the greeting no tracking is asked for where it was refused.
  std::string caching_later() const { return link == Link::tracked ? "+OK\r\n" : ""; }
  static std::string null() { return "_\r\n"; }
  static std::string record(const std::string& the_seal = seal, const std::string& info = replication(),
                            const std::string& visit = "") {
    return list({bulk(info), bulk(fingerprint), bulk(q), the_seal.empty() ? null() : bulk(the_seal),
                 visit.empty() ? null() : bulk(visit), null(), null()});
  }
  static std::string blank() { return list({bulk(replication()), null(), null(), null(), null(), null(), null()}); }
  static std::string time(int64_t seconds = 1'700'000'000) { return list({bulk(std::to_string(seconds)), bulk("5")}); }
  std::string ping() const { return bulk(nonce_of(rest)); }

  void greet_up_to_info(int64_t id = 10) {
    sent();
    receive(hello(id));
    rest = sent();
    receive(before_info(id));
  }
  void greet(const std::string& the_record = record(), int64_t id = 10) {
    greet_up_to_info(id);
    receive(bulk(info_text()) + caching() + the_record + time() + ping());
    ASSERT_EQ(session->state(), State::up);
    replies.clear();
  }
  // A later reading is due and sent; what it says comes back.
  std::string due(int64_t ms) {
    now = at(ms);
    on_time(now);
    take_news();
    return sent();
  }
  void reads(const std::string& the_record, int64_t seconds = 0) {
    receive(caching_later() + the_record + time(1'700'000'000 + seconds));
  }
  unsigned told(bool News::*what) const {
    unsigned n = 0;
    for (const News& one : news) n += one.*what;
    return n;
  }
  void ask(Op op) {
    Subject s;
    s.names = "bus";
    s.value_hex = "0011223344556677889900112233445566778899";
    s.client_name = "gw";
    s.ttl_ms = 1'000;
    SessionWire::ask(op, 1, 1, Command::plain(test::space(), op, s, true));
  }
  std::string reading(const std::string& machine = "") const {
    return (link == Link::tracked ? command({"CLIENT", "CACHING", "yes"}) : "") +
           command({"EVAL", test::text_of(reading_script), "2", meta, seen, machine}) + command({"TIME"});
  }
  static std::string write(const std::string& desc, const std::string& old_q, const std::string& new_q,
                           const std::string& new_seal, const std::string& id = replid) {
    return command(
        {"EVAL", test::text_of(record_script), "2", meta, seen, desc, old_q, id, fingerprint, new_q, new_seal, names});
  }
  void expect_closing(int reason) {
    EXPECT_EQ(session->wish(), Wish::close);
    EXPECT_EQ(session->reason(), reason) << redlock_err_name(session->reason());
  }

  Link link;
  Settings settings;
  MasterSettings master;
  std::unique_ptr<char[]> tx;
  char rx[512];
  Fifo::Request requests[16 + Session::own_requests];
  std::string rest;
};

struct Greeted : Fixture {
  Greeted() { greet(); }
};

struct AnyUnderGuard : ::testing::Test {
  Fixture f;
};
struct GreetedUpToInfo : AnyUnderGuard {
  GreetedUpToInfo() { f.greet_up_to_info(); }
};
struct GreetedUnderGuard : ::testing::Test {
  Greeted f;
};

// ---- the greeting -------------------------------------------------------------------------------------------------

TEST_F(GreetedUnderGuard, the_greeting_reads_under_tracking) {
  EXPECT_EQ(f.rest, command({"CLIENT", "TRACKING", "on", "OPTIN", "NOLOOP"}) +
                        command({"SCRIPT", "LOAD", test::text_of(release_script)}) +
                        command({"SCRIPT", "LOAD", test::text_of(extend_script)}) + command({"INFO"}) + f.reading() +
                        command({"PING", Fixture::nonce_of(f.rest)}));
  EXPECT_TRUE(f.session->votes());
}

// Where nothing is told unasked, each acquire is a script. The first acquire brings the script's text.
TEST(SessionGuard, the_greeting_on_resp2_asks_for_the_id) {
  Fixture f(Link::resp2);
  f.greet();
  EXPECT_EQ(f.rest, command({"ROLE"}) + command({"CLIENT", "ID"}) +
                        command({"SCRIPT", "LOAD", test::text_of(release_script)}) +
                        command({"SCRIPT", "LOAD", test::text_of(extend_script)}) + command({"INFO"}) + f.reading() +
                        command({"PING", Fixture::nonce_of(f.rest)}));
  EXPECT_TRUE(f.session->votes());
  EXPECT_TRUE(f.session->send_script_text(Op::acquire));
}

TEST_F(AnyUnderGuard, a_blank_record_is_made_only_when_the_client_allows_it) {
  f.begins = false;
  f.greet_up_to_info();
  f.receive(bulk(info_text()) + f.caching() + f.blank() + f.time() + f.ping());
  EXPECT_EQ(f.session->state(), State::greeting) << "the client decides first";
  f.session->begin_state(false, f.now);
  EXPECT_EQ(f.session->state(), State::up);
  EXPECT_EQ(f.session->reason(), REDLOCK_E_UNWATCHED);
  EXPECT_TRUE(f.session->guard().is_ours());
  EXPECT_EQ(f.sent(), "");
  f.session->begin_state(true, f.now);
  const std::string made = f.sent();
  EXPECT_NE(made.find(bulk(fingerprint)), std::string::npos) << made;
  f.session->begin_state(true, f.now);
  EXPECT_EQ(f.sent(), "") << "once for each reading";
}

TEST_F(AnyUnderGuard, no_state_is_begun_after_a_connection_or_in_the_middle_of_a_reading) {
  f.begins = false;
  f.greet_up_to_info();
  f.receive(bulk(info_text()) + f.caching() + f.blank() + f.time() + f.ping());
  f.session->begin_state(false, f.now);
  f.due(5'000);
  f.receive(f.caching() + "*7\r\n" + bulk(replication()));
  f.session->begin_state(true, f.now);
  EXPECT_EQ(f.sent(), "") << "half of the state is of another reading";
  f.break_off();
  f.session->begin_state(true, f.now);
  EXPECT_EQ(f.sent(), "");

  Fixture closing;
  closing.begins = false;
  closing.greet_up_to_info();
  closing.receive(bulk(info_text()) + closing.caching() + closing.blank() + closing.time() + closing.ping());
  closing.session->close_quietly();
  closing.session->begin_state(true, closing.now);
  EXPECT_EQ(closing.session->wish(), Wish::close);
  EXPECT_EQ(closing.sent(), "");
}

// Redis before 6.2.8 tells a script's own write in spite of NOLOOP; a stranger's write is told by every server.
TEST(SessionGuard, a_push_in_the_greeting_is_followed_by_another_reading_before_it_is_up) {
  for (const std::string& push : {null_push, ">2\r\n$10\r\ninvalidate\r\n" + list({bulk(meta)})}) {
    Fixture f;
    f.greet_up_to_info();
    f.receive(bulk(info_text()) + f.caching() + f.blank() + f.time());
    f.sent();
    f.receive(f.ping() + push + ":1\r\n" + f.caching() + f.record(""));
    EXPECT_EQ(f.session->state(), State::greeting);
    f.receive(f.time());
    EXPECT_EQ(f.sent(), f.reading());
    f.receive(f.caching() + f.record(""));
    EXPECT_EQ(f.session->state(), State::greeting) << "who comes and goes leaves a visit, with the server's time";
    f.receive(f.time());
    EXPECT_EQ(f.session->state(), State::up);
    EXPECT_EQ(f.session->reason(), REDLOCK_E_UNWATCHED);
    EXPECT_EQ(f.session->outlook(), Guard::Outlook::watched) << "whoever asks now hears for how long";
    EXPECT_EQ(f.session->wish(), Wish::none);
  }
}

// ---- readings -----------------------------------------------------------------------------------------------------

TEST_F(AnyUnderGuard, the_watch_ends_with_the_script_that_writes_the_seal) {
  f.greet(Fixture::record(""));
  for (int64_t ms = 5'000; ms <= 30'000; ms += 5'000) {
    const std::string said = f.due(ms);
    ASSERT_EQ(said, (ms == 30'000 ? command({"INFO"}) : "") + f.reading())
        << ms << ": from time to time the whole INFO";
    f.receive((ms == 30'000 ? bulk(info_text()) : "") + f.caching() + f.record("") +
              f.time(1'700'000'000 + ms / 1'000));
  }
  f.due(30'302);
  f.reads(f.record(""), 30);
  EXPECT_EQ(f.sent(), Fixture::write(fingerprint, q, q, seal) + f.reading());
  f.receive(":1\r\n" + f.caching() + f.record() + f.time(1'700'000'030));
  EXPECT_TRUE(f.session->votes());
}

TEST_F(GreetedUpToInfo, what_only_the_whole_info_can_mend_is_asked_for_with_the_next_reading) {
  f.receive(bulk(info_text() + "loading:1\r\n") + f.caching() + f.record() + f.time() + f.ping());
  EXPECT_EQ(f.session->reason(), REDLOCK_E_LOADING);
  EXPECT_EQ(f.due(5'000), command({"INFO"}) + f.reading());
  f.receive(bulk(info_text()) + f.caching() + f.record() + f.time(1'700'000'005));
  EXPECT_TRUE(f.session->votes());
  EXPECT_EQ(f.due(10'000), f.reading());
}

TEST_F(GreetedUpToInfo, another_run_id_on_the_same_connection_closes_it) {
  f.receive(bulk(info_text() + "loading:1\r\n") + f.caching() + f.record() + f.time() + f.ping());
  f.due(5'000);
  f.receive(bulk(info_text("9999999999999999")));
  f.expect_closing(REDLOCK_E_DISCONNECTED);
}

TEST(SessionGuard, a_push_about_the_record_withdraws_it_and_the_next_reading_gives_it_back) {
  for (const std::string& push : {null_push, ">2\r\n$10\r\ninvalidate\r\n" + list({bulk(meta)}),
                                  ">2\r\n$10\r\ninvalidate\r\n" + list({bulk("bus"), bulk(meta)})}) {
    Greeted f;
    f.receive(push);
    EXPECT_FALSE(f.session->votes());
    EXPECT_EQ(f.told(&News::withdrawn), 1u);
    EXPECT_EQ(f.due(0), f.reading());
    f.reads(f.record());
    EXPECT_TRUE(f.session->votes());
    EXPECT_EQ(f.told(&News::withdrawn), 1u);
  }
}

TEST(SessionGuard, a_push_about_another_key_withdraws_nothing) {
  for (const std::string& key : {std::string("bus"), seen, meta + "x", std::string("redlock::met")}) {
    Greeted f;
    f.receive(">2\r\n$10\r\ninvalidate\r\n" + list({bulk(key)}));
    EXPECT_TRUE(f.session->votes()) << key;
  }
}

// The server may have answered that reading before its data were replaced.
TEST(SessionGuard, a_reading_that_was_sent_before_a_withdrawal_admits_nobody) {
  struct {
    const char* what;
    std::string bytes;  // up to the answer of the extend
  } const withdrawals[] = {
      {"a null push", null_push + ":1\r\n"},
      {"the record has changed", ">2\r\n$10\r\ninvalidate\r\n" + list({bulk(meta)}) + ":1\r\n"},
      {"LOADING", "-LOADING Redis is loading the dataset in memory\r\n"},
      {"another state", ":-1\r\n"},
  };
  for (const auto& w : withdrawals) {
    for (const bool asked_at_once : {true, false}) {
      SCOPED_TRACE(Message() << w.what << (asked_at_once ? ", read again before the first answer" : ""));
      Greeted f;
      f.ask(Op::extend);
      f.session->read_now(f.now);
      EXPECT_TRUE(holds(f.due(0), f.reading()));
      f.receive(w.bytes);
      EXPECT_FALSE(f.session->votes());
      EXPECT_EQ(f.told(&News::withdrawn), 1u);
      if (asked_at_once) {
        EXPECT_EQ(f.due(0), f.reading());
      }
      f.reads(f.record());
      EXPECT_EQ(f.session->reason(), REDLOCK_E_UNREAD);
      if (!asked_at_once) {
        EXPECT_EQ(f.due(0), f.reading());
      }
      f.reads(f.record());
      EXPECT_TRUE(f.session->votes());
    }
  }
}

// Its SET was executed by a state that is gone.
TEST_F(GreetedUnderGuard, a_grant_that_comes_after_the_push_is_none) {
  f.ask(Op::acquire);
  f.ask(Op::release);
  f.receive(null_push + "+OK\r\n:1\r\n");
  ASSERT_EQ(f.replies.size(), 3u);
  EXPECT_EQ(f.replies[1].meaning.answer, Answer::error);
  EXPECT_EQ(f.replies[1].meaning.error, REDLOCK_E_UNREAD);
  EXPECT_EQ(f.replies[2].meaning.answer, Answer::yes) << "a delete is a delete";
}

// ---- by script or plain ---------------------------------------------------------------------------------------------

TEST_F(GreetedUnderGuard, by_script_follows_the_last_reading) {
  EXPECT_FALSE(f.session->asked_by_script());
  f.due(5'000);
  f.reads(Fixture::record(seal, replication(replid, "master", 1, 1)), 5);
  EXPECT_TRUE(f.session->votes() && f.session->asked_by_script()) << "the first replica, with the backlog of before";
  f.due(10'000);
  f.reads(Fixture::record(), 10);
  EXPECT_FALSE(f.session->asked_by_script());
  f.due(15'000);
  f.receive("-NOPERM no\r\n" + f.record() + f.time(1'700'000'015));
  EXPECT_TRUE(f.session->votes() && f.session->asked_by_script()) << "nobody tells of the next change";
}

// ---- the client's part ----------------------------------------------------------------------------------------------

TEST_F(AnyUnderGuard, a_quarantine_waits_for_a_connection) {
  f.session->quarantine(f.now);
  EXPECT_FALSE(holds(f.sent(), "EVAL"));
}

// Asks, and notes what it hears.
struct Asker : Listener {
  Asker() : Listener{[](Listener& self, const resp::Item& item) { static_cast<Asker&>(self).take(item); }} {}
  void take(const resp::Item& item) {
    heard += (heard.empty() ? "" : "|") + std::string(item.text.data, item.text.size) + (item.last ? "." : "");
  }
  bool ask(Fixture& f, size_t more = 0) {
    const std::string end(more, 'x');
    const Bytes word(end.data(), end.size());
    return f.session->ask(Bytes(begin.data(), begin.size()), &word, more != 0, *this, f.now);
  }
  const std::string begin = command({"INFO", "memory"});
  std::string heard;
};

TEST_F(AnyUnderGuard, one_question_is_asked_at_a_time) {
  Asker asker, other;
  EXPECT_FALSE(asker.ask(f)) << "it is not up";
  EXPECT_FALSE(holds(f.sent(), "INFO"));
  f.greet();
  f.sent();
  EXPECT_FALSE(f.session->asked());
  ASSERT_TRUE(asker.ask(f, 3));
  EXPECT_EQ(f.sent(), command({"CLIENT", "CACHING", "yes"}) + asker.begin + bulk("xxx"));
  EXPECT_TRUE(f.session->asked());
  EXPECT_FALSE(other.ask(f)) << "the first is not answered";
  EXPECT_EQ(f.sent(), "");
  f.receive("+OK\r\n*2\r\n" + bulk("a"));
  EXPECT_FALSE(other.ask(f)) << "half of the answer is there";
  f.receive(bulk("b"));
  EXPECT_EQ(asker.heard, "a|b.");
  EXPECT_FALSE(f.session->asked());
  EXPECT_EQ(f.session->guard().quarantine(), Bytes(q.data(), q.size()));
  ASSERT_TRUE(other.ask(f));
  f.receive("+OK\r\n-NOPERM no\r\n");
  EXPECT_EQ(other.heard, "NOPERM no.");
  EXPECT_EQ(f.session->last_error(), REDLOCK_E_NOPERM);
  EXPECT_EQ(f.session->state(), State::up);
}

TEST_F(GreetedUnderGuard, a_question_whose_connection_breaks_is_not_heard_any_more) {
  Asker asker;
  ASSERT_TRUE(asker.ask(f));
  f.session->disconnect(REDLOCK_E_PROTOCOL);
  f.receive("+OK\r\n" + bulk("n"));
  EXPECT_TRUE(f.session->asked());
  f.session->closed(f.now, REDLOCK_E_DISCONNECTED, 0);
  EXPECT_FALSE(f.session->asked());
  EXPECT_EQ(asker.heard, "");
}

TEST_F(GreetedUnderGuard, no_question_on_a_connection_that_closes_or_without_room) {
  Asker asker;
  f.receive(":1\r\n");  // nobody asked
  ASSERT_EQ(f.session->wish(), Wish::close);
  ASSERT_EQ(f.session->state(), State::up);
  EXPECT_FALSE(asker.ask(f));
  EXPECT_FALSE(f.session->asked());

  Fixture g(Link::tracked, 7, 1'024);
  g.greet();
  while (g.session->tx().fits(200, 1)) g.ask(Op::release);
  EXPECT_FALSE(asker.ask(g, 300));
  EXPECT_FALSE(holds(g.sent(), "INFO"));
}

// ---- what a server may answer --------------------------------------------------------------------------------------

TEST(SessionGuard, an_answer_of_another_type_closes) {
  const std::string first = bulk(info_text()) + "+OK\r\n", third = first + Fixture::record();
  const std::string info = bulk(replication()), n = Fixture::null();
  struct {
    const char* what;
    std::string bytes;
  } const cases[] = {
      {"INFO", ":1\r\n"},
      {"CACHING", bulk(info_text()) + ":1\r\n"},
      {"CACHING, and the next answer in one", bulk(info_text()) + "+O-LOADING\r\n"},
      {"a reading of a number", first + ":1\r\n"},
      {"a reading of a string", first + bulk(replication())},
      {"a reading of nothing", first + n},
      {"a reading of a map", first + "%3\r\n" + info + n + n + n + n + n + n},
      {"a reading of no fields", first + "*0\r\n"},
      {"a reading of six", first + list({info, n, n, n, n, n})},
      {"a reading of eight", first + list({info, n, n, n, n, n, n, n})},
      {"no INFO", first + list({n, n, n, n, n, n, n})},
      {"a number for INFO", first + list({":1\r\n", n, n, n, n, n, n})},
      {"a list for INFO", first + list({list({info}), n, n, n, n, n, n})},
      {"an empty list for INFO", first + list({"*0\r\n", n, n, n, n, n, n})},
      {"a list for a field", first + list({info, list({bulk(fingerprint)}), n, n, n, n, n})},
      {"an empty list for a field", first + list({info, "*0\r\n", n, n, n, n, n})},
      {"a list for the last field", first + list({info, n, n, n, n, n, list({n})})},
      {"a number for a field", first + list({info, n, ":1\r\n", n, n, n, n})},
      {"an error for a field", first + list({info, n, n, "-ERR no\r\n", n, n, n})},
      {"a word for a field", first + list({info, n, n, "+OK\r\n", n, n, n})},
      {"TIME of words", third + list({bulk("now"), bulk("5")})},
      {"TIME of nothing", third + list({bulk(""), bulk("5")})},
      {"TIME beyond all", third + list({bulk("99999999999"), bulk("5")})},
      {"TIME too long", third + list({bulk("123456789012"), bulk("5")})},
      {"TIME of blanks", third + list({bulk("12 "), bulk("5")})},
  };
  for (const auto& c : cases) {
    Fixture f;
    f.greet_up_to_info();
    f.receive(c.bytes);
    SCOPED_TRACE(c.what);
    f.expect_closing(REDLOCK_E_PROTOCOL);
  }
}

TEST_F(GreetedUpToInfo, half_a_time_is_no_sample) {
  f.receive(bulk(info_text()) + f.caching() + f.record() + list({bulk("5")}) + f.ping());
  EXPECT_TRUE(f.session->votes());
  EXPECT_FALSE(f.session->samples_clock(at(0)));
}

TEST_F(GreetedUpToInfo, info_may_be_longer_than_the_buffer) {
  const std::string noise = std::string(3'000, '#') + "\r\n";
  f.receive(bulk(noise + info_text()) + f.caching() + f.record(seal, noise + replication()) + f.time() + f.ping());
  EXPECT_TRUE(f.session->votes());
}

// Only the library writes the record; but whoever else does, the last piece of what was written is not the field. What
// is left of a string is given out whole as soon as that fits the buffer: here it is just the text that is looked for.
TEST(SessionGuard, a_field_longer_than_the_buffer_is_foreign_whatever_its_last_piece_says) {
  const std::string visit = replid + ":" + q + " 1 1699100000000";
  for (unsigned field = 0; field < 4; ++field) {
    SCOPED_TRACE(Message() << "field " << field);
    Fixture f;
    f.settings.has_boot_id = true;
    memcpy(f.settings.boot_id, boot_id.data(), boot_id.size());
    f.greet_up_to_info();
    const std::string whole[] = {fingerprint, q, field == 3 ? "" : seal, field >= 2 ? visit : ""};
    const std::string filler(sizeof f.rx, 'x');
    f.receive(bulk(info_text()) + f.caching() + "*7\r\n" + bulk(replication()));
    for (unsigned i = 0; i < 4; ++i) {
      if (i == field) {
        f.receive("$" + std::to_string(filler.size() + whole[i].size()) + "\r\n");
        f.receive(filler);
        f.receive(whole[i] + "\r\n");
      } else {
        f.receive(whole[i].empty() ? Fixture::null() : bulk(whole[i]));
      }
    }
    f.receive(Fixture::null() + Fixture::null() + f.time() + f.ping());
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

TEST_F(GreetedUpToInfo, a_write_answered_by_another_type_closes) {
  f.receive(bulk(info_text()) + f.caching() + f.blank() + f.time() + f.ping() + "+OK\r\n");
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
  f.reads(list({bulk(replication()), bulk(words), bulk(q), Fixture::null(), Fixture::null(), Fixture::null(),
                Fixture::null()}));
  const std::string said = f.sent();
  const size_t by_reference = record_script.size() + reading_script.size();
  ASSERT_GT(said.size(), by_reference);
  EXPECT_LE(said.size() - by_reference, Record::bytes_max(f.settings));
}

TEST_F(AnyUnderGuard, nobody_quarantines_another_configuration_or_without_room) {
  f.greet(list({bulk(replication()), bulk("v1 n=5"), bulk(q), bulk(seal), Fixture::null(), Fixture::null(),
                Fixture::null()}));
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
  f.session->boot_time(1'000, f.now);
  EXPECT_EQ(f.sent(), "") << "nobody has asked for the boot time";
  f.due(5'000);
  while (f.session->tx().fits(200, 1)) f.ask(Op::release);
  f.reads(f.blank(), 5);
  EXPECT_FALSE(holds(f.sent(), bulk(fingerprint)));
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

// ---- strays -------------------------------------------------------------------------------------------------------

const std::string kill_10 = command({"CLIENT", "KILL", "ID", "10"});

// The connection with the id 10 has left SETs unanswered.
struct Broken : Fixture {
  explicit Broken(Link how = Link::tracked, int64_t first_id = 10) : Fixture(how) {
    greet(record(), first_id);
    ask(Op::acquire);
    sent();
    break_off(true);
    news.clear();
    connect();
  }
  std::vector<Strays> strays() const {
    std::vector<Strays> all;
    for (const News& one : news) {
      if (one.strays != Strays::none) all.push_back(one.strays);
    }
    return all;
  }
};

TEST(SessionStrays, the_old_connection_is_ended_behind_info_and_before_it_is_up) {
  for (const Link link : {Link::tracked, Link::untracked, Link::resp2}) {
    for (const char* answer : {":1\r\n", ":0\r\n"}) {
      SCOPED_TRACE(Message() << static_cast<int>(link) << answer);
      Broken f(link);
      EXPECT_FALSE(holds(f.sent(), "KILL"));
      f.receive(f.hello(11));
      f.rest = f.sent();
      EXPECT_FALSE(holds(f.rest, "KILL")) << "not before it is known to be the same process";
      f.receive(f.before_info(11));
      EXPECT_EQ(f.sent(), "");
      const std::string info = bulk(info_text());
      f.receive(info.substr(0, info.size() - 1));
      EXPECT_EQ(f.sent(), "");
      f.receive(info.substr(info.size() - 1));
      EXPECT_EQ(f.sent(), kill_10);
      f.receive(f.caching() + f.record() + f.time() + f.ping());
      EXPECT_EQ(f.session->state(), State::greeting) << "nothing about a claim leaves before the answer";
      EXPECT_FALSE(f.session->votes() || f.session->connected());
      EXPECT_TRUE(f.strays().empty());
      f.receive(answer);
      EXPECT_EQ(f.session->state(), State::up);
      EXPECT_EQ(f.strays(), std::vector<Strays>{Strays::ended});
      EXPECT_EQ(f.session->take_news().strays, Strays::none) << "told once";
    }
  }
}

TEST(SessionStrays, they_stay_at_large_where_the_server_ends_no_connection) {
  for (const char* answer : {"-NOPERM this user has no permissions to run the 'client|kill' command\r\n",
                             "-ERR unknown subcommand 'KILL'\r\n", "_\r\n", "+OK\r\n"}) {
    Broken f;
    f.greet_up_to_info(11);
    f.receive(bulk(info_text()) + f.caching() + f.record() + f.time() + f.ping());
    EXPECT_EQ(f.sent(), kill_10);
    f.receive(answer);
    EXPECT_EQ(f.session->state(), State::up) << answer;
    EXPECT_TRUE(f.session->votes()) << answer;
    EXPECT_EQ(f.strays(), std::vector<Strays>{Strays::at_large}) << answer;
  }
}

struct BrokenSession : ::testing::Test {
  Broken f;
};

// Its ids have begun anew: 10 may be anybody's.
TEST_F(BrokenSession, nobody_is_ended_in_another_process) {
  f.greet_up_to_info(11);
  f.receive(bulk(info_text("9999999999999999")) + f.caching() + f.record() + f.time() + f.ping());
  EXPECT_FALSE(holds(f.sent(), "KILL"));
  EXPECT_EQ(f.session->state(), State::up);
  EXPECT_EQ(f.strays(), std::vector<Strays>{Strays::at_large});
}

// The server tells no id in its reply to HELLO, and the connection breaks when the master is up.
void break_off_without_id(Fixture& f) {
  f.sent();
  f.receive("%2\r\n" + bulk("mode") + bulk("standalone") + bulk("role") + bulk("master"));
  f.rest = f.sent();
  f.receive(f.before_info() + bulk(info_text()) + f.caching() + f.record() + f.time() + f.ping());
  ASSERT_EQ(f.session->state(), State::up);
  f.break_off(true);
}

// An older connection's id is not that of one which has told none.
TEST(SessionStrays, an_id_is_of_one_connection) {
  Greeted f;
  f.break_off(false);
  f.connect();
  break_off_without_id(f);
  f.news.clear();
  f.connect();
  f.greet(Fixture::record(), 12);
  EXPECT_FALSE(holds(f.sent(), "KILL"));
  EXPECT_EQ(f.news.back().strays, Strays::at_large);
}

TEST(SessionStrays, on_resp2_the_id_may_be_refused) {
  Fixture f(Link::resp2);
  f.sent();
  f.receive(f.hello());
  f.rest = f.sent();
  f.receive(list({bulk("master"), ":0\r\n", "*0\r\n"}) + "-NOPERM no\r\n" + bulk("sha") + bulk("sha") +
            bulk(info_text()) + f.record() + f.time() + f.ping());
  ASSERT_EQ(f.session->state(), State::up);
  f.break_off(true);
  f.connect();
  f.greet(Fixture::record(), 11);
  EXPECT_FALSE(holds(f.sent(), "KILL"));
  EXPECT_EQ(f.news.back().strays, Strays::at_large);
}

// Nothing about a claim was sent on a connection that never was up: the strays are those of the older one.
TEST(SessionStrays, a_break_before_the_answer_keeps_the_old_id) {
  for (const int how_far : {0, 1, 2, 3}) {
    SCOPED_TRACE(how_far);
    Broken f;
    f.sent();
    if (how_far > 0) f.receive(f.hello(11));
    f.rest = f.sent();
    if (how_far > 1) f.receive(f.before_info(11) + bulk(info_text()));
    if (how_far > 2) f.receive(f.caching() + f.record() + f.time() + f.ping());
    EXPECT_EQ(f.sent(), how_far > 1 ? kill_10 : "");
    f.break_off(true);
    EXPECT_TRUE(f.strays().empty());
    f.connect();
    f.greet_up_to_info(12);
    f.receive(bulk(info_text()));
    EXPECT_EQ(f.sent(), kill_10);
    f.receive(f.caching() + f.record() + f.time() + f.ping() + ":1\r\n");
    EXPECT_EQ(f.session->state(), State::up);
    EXPECT_EQ(f.strays(), std::vector<Strays>{Strays::ended});
  }
}

// The rest of the greeting takes longer: a new state is begun, and read again.
TEST(SessionStrays, an_end_is_told_when_it_is_known_and_is_not_taken_back) {
  for (const bool breaks : {false, true}) {
    Broken f;
    f.greet_up_to_info(11);
    f.receive(bulk(info_text()));
    f.receive(f.caching() + f.blank() + f.time() + f.ping() + ":1\r\n");
    EXPECT_EQ(f.session->state(), State::greeting) << "the new state is not read yet";
    EXPECT_EQ(f.strays(), std::vector<Strays>{Strays::ended});
    if (breaks) {
      f.break_off(false);  // the client knows of no strays any more
      f.connect();
      f.greet(Fixture::record(), 12);
      EXPECT_FALSE(holds(f.sent(), "KILL"));
    } else {
      f.receive(":1\r\n" + f.caching() + f.record("") + f.time());
    }
    EXPECT_EQ(f.session->state(), State::up);
    EXPECT_EQ(f.strays(), std::vector<Strays>{Strays::ended});
  }
}

}  // namespace
}  // namespace redlock
