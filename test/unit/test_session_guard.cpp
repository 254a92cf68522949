// SPDX-License-Identifier: MIT
//
// What a session says and hears for the guard, byte for byte: readings, INFO, the server's time, the scripts that
// write; and how the greeting ends what an older connection has left behind.
#include "master/session.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/lock_scripts.hpp"
#include "support/session_wire.hpp"
#include "support/space.hpp"

namespace redlock {
namespace {

using testing::Message;
using State = Session::State;
using Wish = Session::Wish;

Instant at(int64_t ms) { return Instant::from_ns(ms * 1'000'000); }
std::string bulk(std::string_view s) { return "$" + std::to_string(s.size()) + "\r\n" + std::string(s) + "\r\n"; }
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

const std::string meta = "redlock::meta", seen = "redlock::seen", fingerprint = "v1 n=3";
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
  explicit Fixture(Link how = Link::tracked, uint64_t seed = 7, size_t tx_size = 4'096)
      : link(how), tx(new char[tx_size]) {
    settings.guard = GuardMode::strict;
    settings.max_ttl_ms = 30'000;
    settings.meta_key = Bytes(meta.data(), meta.size());
    settings.seen_key = Bytes(seen.data(), seen.size());
    settings.fingerprint = Bytes(fingerprint.data(), fingerprint.size());
    settings.rx_bytes = 512;
    now = at(0);
    session =
        std::make_unique<Session>(settings, master, Bytes("gw"),
                                  Session::Memory{tx.get(), tx_size, rx, sizeof rx, requests,
                                                  static_cast<unsigned>(std::size(requests)), &called, &has_news});
    if (seed != 0) session->seed(seed);
    connect();
  }
  Fixture(const Fixture&) = delete;

  void connect() {
    if (session->wish() == Wish::none) session->on_time(later(now, session->deadline()));
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
             bulk("sha") + bulk("sha");
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
                 visit.empty() ? null() : bulk(visit)});
  }
  static std::string blank() { return list({bulk(replication()), null(), null(), null(), null()}); }
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
    session->on_time(now);
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
    session->ask(op, 1, 1, Command::plain(test::space(), op, s, true), now);
  }
  std::string reading(const std::string& machine = "") const {
    return (link == Link::tracked ? command({"CLIENT", "CACHING", "yes"}) : "") +
           command({"EVAL", test::text_of(reading_script), "2", meta, seen, machine}) + command({"TIME"});
  }
  static std::string write(const std::string& desc, const std::string& old_q, const std::string& new_q,
                           const std::string& new_seal, const std::string& id = replid) {
    return command(
        {"EVAL", test::text_of(record_script), "2", meta, seen, desc, old_q, id, fingerprint, new_q, new_seal});
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
  Session::Request requests[16 + Session::own_requests];
  std::string rest;
};

// ---- the greeting -------------------------------------------------------------------------------------------------

TEST(SessionGuard, the_greeting_reads_under_tracking) {
  Fixture f;
  f.greet();
  EXPECT_EQ(f.rest, command({"CLIENT", "TRACKING", "on", "OPTIN", "NOLOOP"}) +
                        command({"SCRIPT", "LOAD", test::text_of(release_script)}) +
                        command({"SCRIPT", "LOAD", test::text_of(extend_script)}) + command({"INFO"}) + f.reading() +
                        command({"PING", Fixture::nonce_of(f.rest)}));
  EXPECT_TRUE(f.session->votes());
}

// Where nothing is told unasked, each acquire is a script.
TEST(SessionGuard, the_greeting_on_resp2_asks_for_the_id_and_loads_the_acquire) {
  Fixture f(Link::resp2);
  f.greet();
  EXPECT_EQ(f.rest, command({"ROLE"}) + command({"CLIENT", "ID"}) +
                        command({"SCRIPT", "LOAD", test::text_of(release_script)}) +
                        command({"SCRIPT", "LOAD", test::text_of(extend_script)}) +
                        command({"SCRIPT", "LOAD", test::text_of(acquire_script)}) + command({"INFO"}) + f.reading() +
                        command({"PING", Fixture::nonce_of(f.rest)}));
  EXPECT_TRUE(f.session->votes());
}

TEST(SessionGuard, the_greeting_has_places_and_references_enough) {
  for (const Link link : {Link::tracked, Link::untracked, Link::resp2}) {
    Fixture f(link, 7, 1'024);
    f.greet_up_to_info();
    f.break_off(true);
    f.connect();
    f.greet_up_to_info();
    f.receive(bulk(info_text()) + f.caching() + Fixture::blank() + f.time());
    EXPECT_EQ(f.session->wish(), Wish::none);
  }
}

TEST(SessionGuard, its_state_is_the_one_found_on_this_connection) {
  Fixture f;
  f.greet();
  const Sealed state = f.session->sealed();
  EXPECT_EQ(std::string(state.seal.data, state.seal.size), seal);
  EXPECT_EQ(std::string(state.meta_key.data, state.meta_key.size), meta);
}

TEST(SessionGuard, the_greeting_tells_that_it_is_identified) {
  Fixture f;
  f.greet_up_to_info();
  f.receive(bulk(info_text()));
  EXPECT_EQ(f.told(&News::identified), 1u);
  EXPECT_EQ(std::string(f.session->guard().run_id().data, 16), run_id);
}

TEST(SessionGuard, a_blank_record_is_made_and_read_again_before_it_is_up) {
  Fixture f;
  f.greet_up_to_info();
  f.receive(bulk(info_text()) + f.caching() + f.blank() + f.time());
  const std::string made = f.sent();
  const size_t at_q = made.find(bulk(fingerprint)) + bulk(fingerprint).size() + 5;
  const std::string fresh = made.substr(at_q, 16);
  EXPECT_EQ(fresh.find_first_not_of("0123456789abcdef"), std::string::npos) << fresh;
  EXPECT_EQ(made, Fixture::write("", "*", fresh, "") + f.reading());
  f.receive(f.ping());
  EXPECT_EQ(f.session->state(), State::greeting);
  f.receive(":1\r\n" + f.caching() + f.record("") + f.time());
  EXPECT_EQ(f.session->state(), State::up);
  EXPECT_EQ(f.session->reason(), REDLOCK_E_UNWATCHED);
  EXPECT_FALSE(f.session->votes());
}

TEST(SessionGuard, without_random_bytes_no_state_is_begun) {
  Fixture f(Link::tracked, 0);
  f.greet_up_to_info();
  f.receive(bulk(info_text()) + f.caching() + f.blank() + f.time() + f.ping());
  EXPECT_EQ(f.sent(), "");
  EXPECT_FALSE(f.session->votes());
  EXPECT_EQ(f.session->reason(), REDLOCK_E_SYSTEM);
}

// ---- readings -----------------------------------------------------------------------------------------------------

TEST(SessionGuard, the_watch_ends_with_the_script_that_writes_the_seal) {
  Fixture f;
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

// Another client's state, or another master's copy: the record's words are compared by the script, with the id as read.
TEST(SessionGuard, a_seal_is_of_the_replication_id_as_it_was_read) {
  Fixture f;
  f.session->commission(at(1'000), f.now);
  f.greet_up_to_info();
  f.receive(bulk(info_text()) + f.caching() + f.record(seal, replication("4444444444444444")) + f.time() + f.ping());
  EXPECT_EQ(f.sent(),
            Fixture::write(fingerprint, q, q, run_id + ":4444444444444444:" + q, "4444444444444444") + f.reading());
}

TEST(SessionGuard, a_seal_that_fits_what_this_connection_knew_and_not_what_was_read_ends_the_vote) {
  Fixture f;
  f.greet();
  f.due(5'000);
  f.reads(Fixture::record(seal, replication("4444444444444444")), 5);
  EXPECT_FALSE(f.session->votes());
  EXPECT_EQ(f.session->reason(), REDLOCK_E_REPLID);
  EXPECT_EQ(f.told(&News::withdrawn), 1u);
}

TEST(SessionGuard, a_replica_s_reading_ends_the_vote) {
  Fixture f;
  f.greet();
  f.due(5'000);
  f.reads(Fixture::record(seal, replication(replid, "slave")), 5);
  EXPECT_EQ(f.session->reason(), REDLOCK_E_ROLE);
  EXPECT_EQ(f.session->wish(), Wish::none) << "it is read again, for it may become a master";
  EXPECT_EQ(f.told(&News::withdrawn), 1u);
}

TEST(SessionGuard, what_only_the_whole_info_can_mend_is_asked_for_with_the_next_reading) {
  Fixture f;
  f.greet_up_to_info();
  f.receive(bulk(info_text() + "loading:1\r\n") + f.caching() + f.record() + f.time() + f.ping());
  EXPECT_EQ(f.session->reason(), REDLOCK_E_LOADING);
  EXPECT_EQ(f.due(5'000), command({"INFO"}) + f.reading());
  f.receive(bulk(info_text()) + f.caching() + f.record() + f.time(1'700'000'005));
  EXPECT_TRUE(f.session->votes());
  EXPECT_EQ(f.due(10'000), f.reading());
}

TEST(SessionGuard, another_run_id_on_the_same_connection_closes_it) {
  Fixture f;
  f.greet_up_to_info();
  f.receive(bulk(info_text() + "loading:1\r\n") + f.caching() + f.record() + f.time() + f.ping());
  f.due(5'000);
  f.receive(bulk(info_text("9999999999999999")));
  f.expect_closing(REDLOCK_E_DISCONNECTED);
}

TEST(SessionGuard, a_push_about_the_record_withdraws_it_and_the_next_reading_gives_it_back) {
  for (const std::string& push : {null_push, ">2\r\n$10\r\ninvalidate\r\n" + list({bulk(meta)}),
                                  ">2\r\n$10\r\ninvalidate\r\n" + list({bulk("bus"), bulk(meta)})}) {
    Fixture f;
    f.greet();
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
    Fixture f;
    f.greet();
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
      Fixture f;
      f.greet();
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
TEST(SessionGuard, a_grant_that_comes_after_the_push_is_none) {
  Fixture f;
  f.greet();
  f.ask(Op::acquire);
  f.ask(Op::release);
  f.receive(null_push + "+OK\r\n:1\r\n");
  ASSERT_EQ(f.replies.size(), 3u);
  EXPECT_EQ(f.replies[1].meaning.answer, Answer::error);
  EXPECT_EQ(f.replies[1].meaning.error, REDLOCK_E_UNREAD);
  EXPECT_EQ(f.replies[2].meaning.answer, Answer::yes) << "a delete is a delete";
}

// A script compares the state by itself: what it found to be another is read anew, and nothing is voted before that.
TEST(SessionGuard, a_script_that_finds_another_state_withdraws_it) {
  for (const Op op : {Op::acquire, Op::extend, Op::acquire_fenced, Op::token}) {
    Fixture f;
    f.greet();
    ASSERT_TRUE(f.session->votes());
    Subject s;
    s.names = "bus";
    s.value_hex = "0011223344556677889900112233445566778899";
    f.session->ask(op, 1, 1, Command::sealed(test::space(), op, s, f.session->sealed(), 0, true), f.now);
    f.sent();
    f.receive(":-1\r\n");
    ASSERT_EQ(f.replies.size(), 1u);
    EXPECT_EQ(f.replies[0].meaning.answer, Answer::error);
    EXPECT_EQ(f.replies[0].meaning.error, REDLOCK_E_SEAL);
    EXPECT_FALSE(f.session->votes());
    EXPECT_EQ(f.session->reason(), REDLOCK_E_UNREAD);
    EXPECT_EQ(f.told(&News::withdrawn), 1u);
    EXPECT_EQ(f.due(0), f.reading()) << "read again at once";
  }
}

TEST(SessionGuard, a_stepped_clock_is_told_with_its_size) {
  Fixture f;
  f.greet();
  f.due(5'000);
  f.news.clear();
  f.reads(f.record(), 5 + 3'600);
  ASSERT_EQ(f.told(&News::stepped), 1u);
  EXPECT_GT(f.news.front().by, Duration::ms(3'599'000));
}

TEST(SessionGuard, news_are_told_once_and_are_of_one_connection) {
  Fixture g;
  g.greet_up_to_info();
  const std::string info = bulk(info_text());
  size_t room = 0;
  memcpy(g.session->rx_room(room), info.data(), info.size());
  g.session->received(info.size());
  Reply reply;
  while (g.session->next(g.now, reply)) {
  }
  g.break_off();
  EXPECT_FALSE(g.session->take_news().identified);

  Fixture f;
  f.greet();
  f.receive(null_push);
  EXPECT_EQ(f.told(&News::withdrawn), 1u);
  EXPECT_FALSE(f.session->take_news().withdrawn);
  f.break_off();
  const News none = f.session->take_news();
  EXPECT_FALSE(none.withdrawn || none.identified || none.stepped || none.wants_boot_time);
}

// ---- by script or plain ---------------------------------------------------------------------------------------------

TEST(SessionGuard, only_a_tracked_master_without_replicas_is_asked_without_a_script) {
  struct {
    const char* what;
    Link link;
    GuardMode mode;
    std::string record;
    bool by_script;
  } const cases[] = {
      {"alone", Link::tracked, GuardMode::strict, Fixture::record(), false},
      {"weak and alone", Link::tracked, GuardMode::weak, Fixture::record(), false},
      {"a replica", Link::tracked, GuardMode::strict, Fixture::record(seal, replication(replid, "master", 1, 1)), true},
      {"a backlog", Link::tracked, GuardMode::strict, Fixture::record(seal, replication(replid, "master", 0, 1)), true},
      {"no such lines", Link::tracked, GuardMode::strict,
       Fixture::record(seal, "role:master\r\nmaster_replid:" + replid + "\r\n"), true},
      {"tracking refused", Link::untracked, GuardMode::strict, Fixture::record(), true},
      {"RESP2", Link::resp2, GuardMode::strict, Fixture::record(), true},
      {"INFO refused", Link::tracked, GuardMode::weak,
       list({"-ERR The user executing the script can't run this command or subcommand\r\n", bulk(fingerprint), bulk(q),
             bulk(run_id + ":0000000000000000:" + q), Fixture::null()}),
       true},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    Fixture f(c.link);
    f.settings.guard = c.mode;
    f.greet(c.record);
    EXPECT_TRUE(f.session->votes());
    EXPECT_EQ(f.session->asked_by_script(), c.by_script);
  }
}

TEST(SessionGuard, by_script_follows_the_last_reading) {
  Fixture f;
  f.greet();
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

// ---- what a server may answer --------------------------------------------------------------------------------------

TEST(SessionGuard, info_refused_is_told_in_its_own_words) {
  Fixture f;
  f.greet_up_to_info();
  f.receive("-NOPERM no\r\n" + f.caching() + f.record() + f.time() + f.ping());
  EXPECT_EQ(f.session->state(), State::up);
  EXPECT_EQ(f.session->reason(), REDLOCK_E_NOPERM);
}

// Inside a script the refusal has no word of its own.
TEST(SessionGuard, info_refused_inside_the_script_is_one_of_its_answers) {
  const std::string refused = list({"-ERR The user executing the script can't run this command or subcommand\r\n",
                                    bulk(fingerprint), bulk(q), bulk(seal), Fixture::null()});
  Fixture f;
  f.greet_up_to_info();
  f.receive(bulk(info_text()) + f.caching() + refused + f.time() + f.ping());
  EXPECT_EQ(f.session->reason(), REDLOCK_E_NOPERM);
  EXPECT_EQ(f.session->wish(), Wish::none);
  EXPECT_EQ(f.due(5'000), f.reading());
  f.reads(f.record(), 5);
  EXPECT_TRUE(f.session->votes());

  Fixture weak;
  weak.settings.guard = GuardMode::weak;
  weak.session->commission(at(1'000), weak.now);
  weak.greet_up_to_info();
  weak.receive(bulk(info_text()) + weak.caching() + refused + weak.time() + weak.ping());
  EXPECT_EQ(weak.sent(),
            Fixture::write(fingerprint, q, q, run_id + ":0000000000000000:" + q, "0000000000000000") + weak.reading())
      << "an id of zeros is compared by nobody";
}

TEST(SessionGuard, an_answer_of_another_type_closes) {
  const std::string first = bulk(info_text()) + "+OK\r\n", third = first + Fixture::record();
  const std::string info = bulk(replication()), n = Fixture::null();
  struct {
    const char* what;
    std::string bytes;
  } const cases[] = {
      {"INFO", ":1\r\n"},
      {"CACHING", bulk(info_text()) + ":1\r\n"},
      {"a reading of a number", first + ":1\r\n"},
      {"a reading of a string", first + bulk(replication())},
      {"a reading of nothing", first + n},
      {"a reading of a map", first + "%2\r\n" + info + n + n + n},
      {"a reading of no fields", first + "*0\r\n"},
      {"a reading of four", first + list({info, n, n, n})},
      {"a reading of six", first + list({info, n, n, n, n, n})},
      {"no INFO", first + list({n, n, n, n, n})},
      {"a number for INFO", first + list({":1\r\n", n, n, n, n})},
      {"a list for INFO", first + list({list({info}), n, n, n, n})},
      {"an empty list for INFO", first + list({"*0\r\n", n, n, n, n})},
      {"a list for a field", first + list({info, list({bulk(fingerprint)}), n, n, n})},
      {"an empty list for a field", first + list({info, "*0\r\n", n, n, n})},
      {"a list for the last field", first + list({info, n, n, n, list({n})})},
      {"a number for a field", first + list({info, n, ":1\r\n", n, n})},
      {"an error for a field", first + list({info, n, n, "-ERR no\r\n", n})},
      {"a word for a field", first + list({info, n, n, "+OK\r\n", n})},
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

TEST(SessionGuard, time_refused_costs_the_vote_when_strict) {
  Fixture f;
  f.greet_up_to_info();
  f.receive(bulk(info_text()) + f.caching() + f.record() + "-NOPERM no\r\n" + f.ping());
  EXPECT_EQ(f.session->reason(), REDLOCK_E_NOPERM) << "nobody sees its clock";
  EXPECT_FALSE(f.session->samples_clock(at(0)));
  f.due(5'000);
  f.reads(f.record(), 5);
  EXPECT_TRUE(f.session->votes());

  Fixture weak;
  weak.settings.guard = GuardMode::weak;
  weak.greet_up_to_info();
  weak.receive(bulk(info_text()) + weak.caching() + weak.record() + "-NOPERM no\r\n" + weak.ping());
  EXPECT_TRUE(weak.session->votes());
}

TEST(SessionGuard, half_a_time_is_no_sample) {
  Fixture f;
  f.greet_up_to_info();
  f.receive(bulk(info_text()) + f.caching() + f.record() + list({bulk("5")}) + f.ping());
  EXPECT_TRUE(f.session->votes());
  EXPECT_FALSE(f.session->samples_clock(at(0)));
}

TEST(SessionGuard, info_may_be_longer_than_the_buffer) {
  Fixture f;
  f.greet_up_to_info();
  const std::string noise = std::string(3'000, '#') + "\r\n";
  f.receive(bulk(noise + info_text()) + f.caching() + f.record(seal, noise + replication()) + f.time() + f.ping());
  EXPECT_TRUE(f.session->votes());
}

TEST(SessionGuard, without_tracking_the_record_is_read_again_all_the_same) {
  for (const Link link : {Link::untracked, Link::resp2}) {
    Fixture f(link);
    f.greet();
    EXPECT_EQ(f.due(5'000), f.reading());
  }
}

TEST(SessionGuard, a_record_that_cannot_be_read_is_the_reason) {
  Fixture f;
  f.greet_up_to_info();
  f.receive(bulk(info_text()) + f.caching() + "-WRONGTYPE no\r\n" + f.time() + f.ping());
  EXPECT_EQ(f.session->state(), State::up);
  EXPECT_EQ(f.session->reason(), REDLOCK_E_WRONGTYPE);
}

// Only the library writes the record; but whoever else does, the last piece of what was written is not the field. What
// is left of a string is given out whole as soon as that fits the buffer: here it is just the text that is looked for.
TEST(SessionGuard, a_field_longer_than_the_buffer_is_foreign_whatever_its_last_piece_says) {
  const std::string visit = replid + ":" + q + " 1";
  for (unsigned field = 0; field < 4; ++field) {
    SCOPED_TRACE(Message() << "field " << field);
    Fixture f;
    f.settings.has_boot_id = true;
    memcpy(f.settings.boot_id, boot_id.data(), boot_id.size());
    f.greet_up_to_info();
    const std::string whole[] = {fingerprint, q, field == 3 ? "" : seal, field >= 2 ? visit : ""};
    const std::string filler(sizeof f.rx, 'x');
    f.receive(bulk(info_text()) + f.caching() + "*5\r\n" + bulk(replication()));
    for (unsigned i = 0; i < 4; ++i) {
      if (i == field) {
        f.receive("$" + std::to_string(filler.size() + whole[i].size()) + "\r\n");
        f.receive(filler);
        f.receive(whole[i] + "\r\n");
      } else {
        f.receive(whole[i].empty() ? Fixture::null() : bulk(whole[i]));
      }
    }
    f.receive(f.time() + f.ping());
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
    f.greet_up_to_info();
    f.receive(
        bulk(info_text()) + f.caching() +
        list({bulk(replication()), bulk(std::string(more, 'x') + fingerprint), bulk(q), bulk(seal), Fixture::null()}) +
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
    Fixture f;
    f.greet();
    f.receive(null_push);
    f.due(0);
    f.receive(f.caching() + whole.substr(0, split));
    f.session->on_time(f.now);
    EXPECT_FALSE(split < whole.size() && f.session->votes()) << "split at " << split;
    f.receive(whole.substr(split) + f.time());
    ASSERT_TRUE(f.session->votes()) << "split at " << split;
  }
}

// ---- writes -------------------------------------------------------------------------------------------------------

TEST(SessionGuard, a_refused_write_is_the_reason) {
  Fixture f;
  f.greet_up_to_info();
  f.receive(bulk(info_text()) + f.caching() + f.blank() + f.time() + f.ping());
  f.receive("-OOM no\r\n" + f.caching() + f.blank() + f.time());
  EXPECT_EQ(f.session->reason(), REDLOCK_E_OOM);
  EXPECT_EQ(f.session->wish(), Wish::none);
  f.sent();
  EXPECT_EQ(f.due(5'000), f.reading());
  f.reads(f.blank(), 5);
  EXPECT_TRUE(holds(f.sent(), test::text_of(record_script)));
  f.receive(":1\r\n" + f.caching() + f.record("") + f.time(1'700'000'005));
  EXPECT_EQ(f.session->reason(), REDLOCK_E_UNWATCHED);
}

TEST(SessionGuard, a_write_answered_by_another_type_closes) {
  Fixture f;
  f.greet_up_to_info();
  f.receive(bulk(info_text()) + f.caching() + f.blank() + f.time() + f.ping() + "+OK\r\n");
  f.expect_closing(REDLOCK_E_PROTOCOL);
}

// With the longest keys and fingerprint: what the guard says at one time fits the room that it asks for.
TEST(SessionGuard, what_the_guard_says_at_one_time_fits_its_room) {
  const std::string prefix(REDLOCK_KEY_PREFIX_MAX, 'p'),
      record_key = "redlock:" + prefix + ":meta", seen_key = "redlock:" + prefix + ":seen", words(fingerprint_max, 'f');
  Fixture f;
  f.greet();
  f.settings.meta_key = Bytes(record_key.data(), record_key.size());
  f.settings.seen_key = Bytes(seen_key.data(), seen_key.size());
  f.settings.fingerprint = Bytes(words.data(), words.size());
  f.settings.has_boot_id = true;
  f.session->commission(at(10'000), f.now);
  f.due(0);
  f.reads(list({bulk(replication()), bulk(words), bulk(q), Fixture::null(), Fixture::null()}));
  const std::string said = f.sent();
  const size_t by_reference = record_script.size() + reading_script.size();
  ASSERT_GT(said.size(), by_reference);
  EXPECT_LE(said.size() - by_reference, 768u);
}

TEST(SessionGuard, nobody_quarantines_another_configuration_or_without_room) {
  Fixture f;
  f.greet(list({bulk(replication()), bulk("v1 n=5"), bulk(q), bulk(seal), Fixture::null()}));
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
  while (f.session->room(300, 1)) f.ask(Op::acquire);
  f.now = at(5'000);
  f.session->on_time(f.now);
  EXPECT_FALSE(holds(f.sent(), "EVAL"));
  EXPECT_GT(f.session->deadline(), at(5'000));
}

constexpr Script question = {Bytes(), Bytes("return 1\n"), Bytes()};

bool ask_record(Fixture& f) {
  const Bytes arguments[] = {"v1 n=3", "look"};
  return f.session->ask_record(question, arguments, 2, f.now);
}

// Requests of its own that a silent master does not answer take no more places than were kept for them.
TEST(SessionGuard, it_asks_no_more_than_it_has_places_for) {
  Fixture f;
  f.settings.node_timeout = Duration::ms(60'000);
  f.greet();
  for (int64_t ms = 1; ms < 2'000; ++ms) {
    f.receive(null_push);
    f.due(ms);
    f.session->quarantine(f.now);
    ask_record(f);
    f.sent();
    ASSERT_LE(f.session->in_flight(), Session::own_requests);
  }
  EXPECT_EQ(f.session->state(), State::up);
  EXPECT_TRUE(f.session->room(1, 16)) << "the client's places are the client's";
}

// ---- short visits -------------------------------------------------------------------------------------------------

struct Visits : Fixture {
  explicit Visits(GuardMode mode = GuardMode::strict) {
    settings.guard = mode;
    settings.has_boot_id = true;
    memcpy(settings.boot_id, boot_id.data(), boot_id.size());
  }
  std::string visit(int64_t ms) const {
    return command({"EVAL", test::text_of(visit_script), "2", meta, seen, boot_id, seal, std::to_string(ms)});
  }
  bool wants_boot_time() const { return !news.empty() && news.back().wants_boot_time; }
};

TEST(SessionGuard, a_visit_to_a_state_without_a_seal_leaves_word) {
  Visits f;
  f.greet(Fixture::record(""));
  EXPECT_TRUE(holds(f.rest, f.reading(boot_id)));
  ASSERT_TRUE(f.wants_boot_time());
  EXPECT_EQ(f.sent(), "");
  f.session->boot_time(123'456'789, f.now);
  EXPECT_EQ(f.sent(), f.visit(123'456'789));
  f.session->boot_time(123'456'789, f.now);
  EXPECT_EQ(f.sent(), "") << "once for each reading";
  f.receive(":1\r\n");
  EXPECT_EQ(f.session->wish(), Wish::none);
  EXPECT_EQ(f.session->in_flight(), 0u);
}

// Nothing else may be new: the reason is the one that was told before.
TEST(SessionGuard, boot_time_is_news_behind_each_reading) {
  Visits f;
  f.greet(Fixture::record(""));
  f.session->boot_time(1'000, f.now);
  f.receive(":1\r\n");
  for (const int64_t ms : {5'000, 10'000}) {
    f.news.clear();
    f.due(ms);
    f.reads(f.record(""), ms / 1'000);
    ASSERT_EQ(f.told(&News::wants_boot_time), 1u);
    f.session->boot_time(ms, f.now);
    f.receive(":0\r\n");
  }
}

TEST(SessionGuard, an_earlier_visit_that_is_old_enough_ends_the_watch) {
  Visits f;
  f.greet(Fixture::record("", replication(), replid + ":" + q + " 1000"));
  ASSERT_TRUE(f.wants_boot_time());
  f.session->boot_time(1'000 + 40'000, f.now);
  EXPECT_EQ(f.sent(), Fixture::write(fingerprint, q, q, seal) + f.reading(boot_id));
}

TEST(SessionGuard, a_sealed_state_is_visited_without_a_word) {
  Visits f;
  f.greet();
  EXPECT_FALSE(f.wants_boot_time());
  f.session->boot_time(1'000, f.now);
  EXPECT_EQ(f.sent(), "");
}

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
  while (f.session->tx().fits(700, 1)) f.ask(Op::release);
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

TEST(SessionGuard, without_a_boot_id_nothing_is_asked_for) {
  Fixture f;
  f.greet(Fixture::record(""));
  EXPECT_TRUE(holds(f.rest, f.reading("")));
  EXPECT_EQ(f.told(&News::wants_boot_time), 0u);
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

// Its ids have begun anew: 10 may be anybody's.
TEST(SessionStrays, nobody_is_ended_in_another_process) {
  Broken f;
  f.greet_up_to_info(11);
  f.receive(bulk(info_text("9999999999999999")) + f.caching() + f.record() + f.time() + f.ping());
  EXPECT_FALSE(holds(f.sent(), "KILL"));
  EXPECT_EQ(f.session->state(), State::up);
  EXPECT_EQ(f.strays(), std::vector<Strays>{Strays::at_large});
}

TEST(SessionStrays, nobody_is_ended_without_a_run_id_then_and_now) {
  Broken f;
  f.greet_up_to_info(11);
  f.receive("-NOPERM no\r\n" + f.caching() + f.record() + f.time() + f.ping());
  EXPECT_FALSE(holds(f.sent(), "KILL"));
  EXPECT_EQ(f.strays(), std::vector<Strays>{Strays::at_large});
  f.break_off(true);
  f.news.clear();
  f.connect();
  f.greet(Fixture::record(), 12);
  EXPECT_FALSE(holds(f.sent(), "KILL")) << "of the last connection no process was known";
  EXPECT_EQ(f.strays(), std::vector<Strays>{Strays::at_large});
}

TEST(SessionStrays, nobody_is_ended_whose_id_is_not_known) {
  for (const int64_t id : {int64_t{0}, int64_t{-1}}) {
    Broken f(Link::tracked, id);
    f.greet(Fixture::record(), 11);
    EXPECT_FALSE(holds(f.sent(), "KILL"));
    EXPECT_EQ(f.strays(), std::vector<Strays>{Strays::at_large});
  }
  Fixture f;  // HELLO tells no id
  f.sent();
  f.receive("%2\r\n" + bulk("mode") + bulk("standalone") + bulk("role") + bulk("master"));
  f.rest = f.sent();
  f.receive(f.before_info() + bulk(info_text()) + f.caching() + f.record() + f.time() + f.ping());
  ASSERT_EQ(f.session->state(), State::up);
  f.break_off(true);
  f.connect();
  f.greet(Fixture::record(), 11);
  EXPECT_FALSE(holds(f.sent(), "KILL"));
}

// An older connection's id is not that of one which has told none.
TEST(SessionStrays, an_id_is_of_one_connection) {
  Fixture f;
  f.greet();
  f.break_off(false);
  f.connect();
  f.sent();
  f.receive("%2\r\n" + bulk("mode") + bulk("standalone") + bulk("role") + bulk("master"));
  f.rest = f.sent();
  f.receive(f.before_info() + bulk(info_text()) + f.caching() + f.record() + f.time() + f.ping());
  ASSERT_EQ(f.session->state(), State::up);
  f.break_off(true);
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
  f.receive(list({bulk("master"), ":0\r\n", "*0\r\n"}) + "-NOPERM no\r\n" + bulk("sha") + bulk("sha") + bulk("sha") +
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

TEST(SessionStrays, each_connection_that_was_up_is_ended_by_its_own_id) {
  for (const bool suspect : {false, true}) {
    Broken f;
    f.greet_up_to_info(11);
    f.receive(bulk(info_text()) + f.caching() + f.record() + f.time() + f.ping() + ":1\r\n");
    f.sent();
    f.ask(Op::acquire);
    if (suspect) {
      f.now = at(100);
      f.session->on_time(f.now);
      ASSERT_EQ(f.session->state(), State::suspect);
    }
    f.sent();
    f.break_off(true);
    f.connect();
    f.greet_up_to_info(12);
    f.receive(bulk(info_text()));
    EXPECT_EQ(f.sent(), command({"CLIENT", "KILL", "ID", "11"}));
  }
}

TEST(SessionStrays, where_none_are_left_nobody_is_ended) {
  Fixture f;
  f.greet();
  f.break_off(false);
  f.connect();
  f.greet(Fixture::record(), 11);
  EXPECT_FALSE(holds(f.sent(), "KILL"));
  EXPECT_EQ(f.session->take_news().strays, Strays::none);
}

TEST(SessionStrays, a_later_info_ends_nobody) {
  Broken f;
  f.greet_up_to_info(11);
  f.receive(bulk(info_text() + "loading:1\r\n") + f.caching() + f.record() + f.time() + f.ping() + "-NOPERM no\r\n");
  ASSERT_EQ(f.session->state(), State::up);
  f.sent();
  EXPECT_EQ(f.due(5'000), command({"INFO"}) + f.reading());
  f.receive(bulk(info_text()) + f.caching() + f.record() + f.time(1'700'000'005));
  EXPECT_EQ(f.sent(), "");
}

// ---- the client's part
// ------------------------------------------------------------------------------------------------

TEST(SessionGuard, a_quarantine_is_written_only_over_a_seal) {
  Fixture f;
  f.greet();
  f.session->quarantine(f.now);
  const std::string said = f.sent();
  EXPECT_TRUE(holds(said, bulk(fingerprint) + bulk(q) + bulk(replid) + bulk(fingerprint))) << said;
  EXPECT_FALSE(holds(said, bulk(seal)));
  f.receive(":1\r\n" + f.caching() +
            list({bulk(replication()), bulk(fingerprint), bulk("4444444444444444"), Fixture::null(), Fixture::null()}) +
            f.time());
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
  f.session->commission(at(1'000), f.now);
  f.greet_up_to_info();
  f.receive(bulk(info_text()) + f.caching() + f.record("") + f.time());
  EXPECT_TRUE(holds(f.sent(), bulk(q) + bulk(seal)));

  Fixture g;
  g.greet(Fixture::record(""));
  g.session->commission(at(1'000), g.now);
  EXPECT_EQ(g.due(0), g.reading());
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
  f.session->set_duplicate(true);
  EXPECT_EQ(f.session->reason(), REDLOCK_E_DUPLICATE);
  f.session->set_duplicate(false);
  EXPECT_TRUE(f.session->votes());
  f.session->clock_jumped(f.now);
  EXPECT_EQ(f.session->reason(), REDLOCK_E_UNREAD);
  EXPECT_FALSE(f.session->samples_clock(at(0)));
}

TEST(SessionGuard, a_record_is_asked_about_by_one_script_at_a_time) {
  Fixture f;
  EXPECT_FALSE(ask_record(f)) << "it is not up";
  EXPECT_FALSE(holds(f.sent(), "return 1"));
  f.greet();
  EXPECT_EQ(f.session->said(), Session::not_asked);
  ASSERT_TRUE(ask_record(f));
  EXPECT_EQ(f.sent(), command({"EVAL", "return 1\n", "2", meta, seen, "v1 n=3", "look"}));
  EXPECT_EQ(f.session->said(), Session::not_answered);
  EXPECT_FALSE(ask_record(f)) << "the first is not answered";
  EXPECT_EQ(f.sent(), "");
  for (const char letter : {'n', 'm', '\xff', '\0'}) {
    const std::string id = letter == 'n' ? "" : "123456789abcdefm";
    f.sent();
    f.receive(bulk(letter + id));
    EXPECT_EQ(f.session->said(), static_cast<unsigned char>(letter)) << letter;
    EXPECT_EQ(std::string(f.session->guard().quarantine().data, f.session->guard().quarantine().size), id);
    ASSERT_TRUE(ask_record(f));
  }
  f.receive("-NOPERM no\r\n");
  EXPECT_EQ(f.session->said(), REDLOCK_E_NOPERM);
}

TEST(SessionGuard, a_question_that_another_type_answers_closes) {
  for (const char* answer : {"+OK\r\n", ":1\r\n", "$0\r\n\r\n"}) {
    Fixture f;
    f.greet();
    ASSERT_TRUE(ask_record(f));
    f.sent();
    f.receive(answer);
    f.expect_closing(REDLOCK_E_PROTOCOL);
    f.receive(bulk("n"));
    EXPECT_EQ(f.session->said(), Session::not_answered) << "nothing is heard any more";
    f.session->closed(f.now, REDLOCK_E_DISCONNECTED, 0);
    EXPECT_EQ(f.session->said(), Session::not_asked);
  }
}

TEST(SessionGuard, no_question_on_a_connection_that_closes_or_without_room) {
  Fixture f;
  f.greet();
  f.receive(":1\r\n");  // nobody asked
  ASSERT_EQ(f.session->wish(), Wish::close);
  ASSERT_EQ(f.session->state(), State::up);
  EXPECT_FALSE(ask_record(f));
  EXPECT_EQ(f.session->said(), Session::not_asked);

  Fixture g(Link::tracked, 7, 1'024);
  g.greet();
  while (g.session->tx().fits(200, 1)) g.ask(Op::release);
  EXPECT_FALSE(ask_record(g));
  EXPECT_FALSE(holds(g.sent(), "return 1"));
}

}  // namespace
}  // namespace redlock
