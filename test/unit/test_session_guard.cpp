// SPDX-License-Identifier: MIT
//
// What a session says and hears for the guard, byte for byte: readings, the server's time, the scripts that write;
// what a server may answer to these; and how the greeting ends what an older connection has left behind.
#include "master/session.hpp"

#include <gtest/gtest.h>

#include <deque>
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
const std::string tag = "0123456789abcdef";
const std::string run_id = "1111111111111111";
const std::string seal = run_id + ":" + replid + ":" + q;
const std::string boot_id(Settings::boot_id_size, 'b');
const std::string null_push = ">2\r\n$10\r\ninvalidate\r\n_\r\n";

// What the server says of itself in a reading: the values of INFO, encoded, in the order of InfoReader::Line.
std::string info_of(const std::string& run = run_id, const std::string& id = replid, int replicas = 0, int backlog = 0,
                    const char* policy = "noeviction") {
  return bulk(run + "aaaa") + bulk(id + "bbbb") + bulk("master") + bulk(std::to_string(replicas)) +
         bulk(std::to_string(backlog)) + bulk("standalone") + "_\r\n" + bulk("1000000") + bulk(policy) + bulk("0");
}
std::string whole(const std::string& info, const std::vector<std::string>& fields) {
  std::string s = "*" + std::to_string(InfoReader::lines + fields.size()) + "\r\n" + info;
  for (const std::string& field : fields) s += field;
  return s;
}

enum class Link { tracked, untracked, resp2 };

struct Fixture : test::SessionWire {
  using SessionWire::ask;
  explicit Fixture(Link how = Link::tracked, uint64_t seed = 7, size_t tx_size = 4'096)
      : link(how), tx(new char[tx_size]) {
    settings.guard = GuardMode::strict;
    settings.max_ttl_ms = 30'000;
    settings.ping_interval = Duration::ms(5'000);
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
                                                  &has_news, &begins, &awake});
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
  std::string before_reading(int64_t id = 10) const {
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
  static std::string record(const std::string& the_seal = seal, const std::string& info = info_of(),
                            const std::string& visit = "") {
    return whole(info, {bulk(fingerprint), bulk(q), the_seal.empty() ? null() : bulk(the_seal), null(), null(),
                        visit.empty() ? null() : bulk(visit), bulk(tag)});
  }
  static std::string blank() { return whole(info_of(), std::vector<std::string>(7, null())); }
  static std::string time(int64_t seconds = 1'700'000'000) { return list({bulk(std::to_string(seconds)), bulk("5")}); }
  std::string ping() const { return bulk(nonce_of(rest)); }

  void greet_up_to_reading(int64_t id = 10) {
    sent();
    receive(hello(id));
    rest = sent();
    receive(before_reading(id));
  }
  void greet(const std::string& the_record = record(), int64_t id = 10) {
    greet_up_to_reading(id);
    receive(caching() + the_record + time() + ping());
    ASSERT_EQ(session->state(), State::up);
    replies.clear();
  }
  // A later reading is due and sent; what it says comes back.
  std::string due(int64_t ms) {
    now = at(ms);
    on_time(now);
    take_news();
    const std::string said = sent();
    if (holds(said, "EVAL")) under_tracking.push_back(holds(said, "CACHING"));
    return said;
  }
  void reads(const std::string& the_record, int64_t seconds = 0) {
    const bool tracked = under_tracking.empty() || under_tracking.front();
    if (!under_tracking.empty()) under_tracking.pop_front();
    receive((tracked ? caching_later() : "") + the_record + time(1'700'000'000 + seconds));
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
  // Of a server that votes: is all as in the last reading?
  static std::string recheck() {
    const Bytes sha = reading_script.sha;
    return command({"EVALSHA", std::string(sha.data, sha.size), "1", meta, tag}) + command({"TIME"});
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
  Fifo::Request requests[17 + Session::own_requests];
  std::string rest;
  std::deque<bool> under_tracking;  // of each reading that due() has seen and reads() has not answered
};

struct Greeted : Fixture {
  Greeted() { greet(); }
};

struct AnyUnderGuard : ::testing::Test {
  Fixture f;
};
struct GreetedUpToReading : AnyUnderGuard {
  GreetedUpToReading() { f.greet_up_to_reading(); }
};
struct GreetedUnderGuard : ::testing::Test {
  Greeted f;
};

// ---- the greeting -------------------------------------------------------------------------------------------------

TEST_F(GreetedUnderGuard, the_greeting_reads_under_tracking) {
  EXPECT_EQ(f.rest, command({"CLIENT", "TRACKING", "on", "OPTIN", "NOLOOP"}) +
                        command({"SCRIPT", "LOAD", test::text_of(release_script)}) +
                        command({"SCRIPT", "LOAD", test::text_of(extend_script)}) + f.reading() +
                        command({"PING", Fixture::nonce_of(f.rest)}));
  EXPECT_TRUE(f.session->votes());
}

// Where nothing is told unasked, each acquire is a script. The first acquire brings the script's text.
TEST(SessionGuard, the_greeting_on_resp2_asks_for_the_id) {
  Fixture f(Link::resp2);
  f.greet();
  EXPECT_EQ(f.rest, command({"ROLE"}) + command({"CLIENT", "ID"}) +
                        command({"SCRIPT", "LOAD", test::text_of(release_script)}) +
                        command({"SCRIPT", "LOAD", test::text_of(extend_script)}) + f.reading() +
                        command({"PING", Fixture::nonce_of(f.rest)}));
  EXPECT_TRUE(f.session->votes());
  EXPECT_TRUE(f.session->send_script_text(Op::acquire));
}

TEST_F(AnyUnderGuard, a_blank_record_is_made_only_when_the_client_allows_it) {
  f.begins = at(0);
  f.greet_up_to_reading();
  f.receive(f.caching() + f.blank() + f.time() + f.ping());
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
  f.begins = at(0);
  f.greet_up_to_reading();
  f.receive(f.caching() + f.blank() + f.time() + f.ping());
  f.session->begin_state(false, f.now);
  f.due(5'000);
  f.receive(f.caching() + "*17\r\n" + info_of());
  f.session->begin_state(true, f.now);
  EXPECT_EQ(f.sent(), "") << "half of the state is of another reading";
  f.break_off();
  f.session->begin_state(true, f.now);
  EXPECT_EQ(f.sent(), "");

  Fixture closing;
  closing.begins = at(0);
  closing.greet_up_to_reading();
  closing.receive(closing.caching() + closing.blank() + closing.time() + closing.ping());
  closing.session->close_quietly();
  closing.session->begin_state(true, closing.now);
  EXPECT_EQ(closing.session->wish(), Wish::close);
  EXPECT_EQ(closing.sent(), "");
}

// Redis before 6.2.8 tells a script's own write in spite of NOLOOP; a stranger's write is told by every server.
TEST(SessionGuard, a_push_in_the_greeting_is_followed_by_another_reading_before_it_is_up) {
  for (const std::string& push : {null_push, ">2\r\n$10\r\ninvalidate\r\n" + list({bulk(meta)})}) {
    Fixture f;
    f.greet_up_to_reading();
    f.receive(f.caching() + f.blank() + f.time());
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
    ASSERT_EQ(said, f.reading()) << ms << ": what does not vote is read as a whole";
    f.reads(f.record(""), ms / 1'000);
  }
  f.due(31'000);
  f.reads(f.record(""), 31);
  EXPECT_EQ(f.sent(), Fixture::write(fingerprint, q, q, seal) + f.reading());
  f.receive(":1\r\n" + f.caching() + f.record() + f.time(1'700'000'031));
  EXPECT_TRUE(f.session->votes());
}

TEST_F(GreetedUpToReading, what_info_refuses_the_next_reading_can_mend) {
  f.receive(f.caching() + f.record(seal, info_of(run_id, replid, 0, 0, "allkeys-lru")) + f.time() + f.ping());
  EXPECT_EQ(f.session->reason(), REDLOCK_E_MAXMEMORY);
  EXPECT_EQ(f.due(5'000), f.reading());
  f.receive(f.caching() + f.record() + f.time(1'700'000'005));
  EXPECT_TRUE(f.session->votes());
  EXPECT_EQ(f.due(10'000), f.recheck());
}

// The tag stands for all that was found. So its confirmation is a reading like another, and counts from its sending.
TEST_F(GreetedUnderGuard, a_master_that_votes_is_only_asked_whether_all_is_as_it_was) {
  for (const int64_t ms : {5'000, 10'000}) {
    EXPECT_EQ(f.due(ms), f.recheck());
    f.now = at(ms + 100);
    f.receive(":1\r\n" + f.time(1'700'000'000 + ms / 1'000));
    EXPECT_TRUE(f.session->votes());
  }
  f.settings.node_timeout = Duration::ms(60'000);
  EXPECT_EQ(f.due(15'000), f.recheck());
  EXPECT_TRUE(f.session->guard().counts(at(19'999)));
  EXPECT_FALSE(f.session->guard().counts(at(20'000))) << "a lifetime behind the last reading that was answered";
  f.now = at(24'999);
  f.receive(":1\r\n" + f.time(1'700'000'025));
  EXPECT_TRUE(f.session->guard().counts(f.now));
  EXPECT_FALSE(f.session->guard().counts(at(25'000))) << "a lifetime behind the sending";
  EXPECT_TRUE(f.session->votes()) << "it may be asked, behind another reading";
}

// ---- looking ahead ------------------------------------------------------------------------------------------------

TEST_F(GreetedUnderGuard, a_reading_goes_ahead_of_a_command_unless_the_last_one_is_young) {
  f.now = at(4'999);
  EXPECT_FALSE(f.session->look_ahead(f.now));
  f.now = at(5'000);
  EXPECT_TRUE(f.session->look_ahead(f.now));
  EXPECT_FALSE(f.session->look_ahead(f.now)) << "one is under way";
  EXPECT_EQ(f.sent(), f.recheck());
  f.receive(":1\r\n" + f.time(1'700'000'005));
  EXPECT_FALSE(f.session->look_ahead(f.now));
}

// A client that slept asks at once, and what the reading in the same write finds decides whether the replies are votes.
TEST(SessionGuard, a_vote_behind_a_lapse_counts_where_the_reading_ahead_of_it_finds_all_as_it_was) {
  const struct {
    const char* what;
    std::string read;
    int error;  // of the vote
  } answers[] = {
      {"as it was", ":1\r\n" + Fixture::time(1'700'000'060), 0},
      {"another state", Fixture::record("", info_of(run_id, "4444444444444444")) + Fixture::time(1'700'000'060),
       REDLOCK_E_REPLID},
      {"another set's", whole(info_of(), {bulk("v1 n=5"), bulk(q), bulk(seal), "_\r\n", "_\r\n", "_\r\n", bulk(tag)}) +
       Fixture::time(1'700'000'060), REDLOCK_E_FINGERPRINT},
      {"its clock was stepped", ":1\r\n" + Fixture::time(1'700'000'063), REDLOCK_E_WALL_CLOCK},
      {"it forgot the script", "-NOSCRIPT No matching script.\r\n" + Fixture::time(1'700'000'060), REDLOCK_E_UNREAD},
  };
  for (const auto& answer : answers) {
    for (const Op op : {Op::acquire, Op::extend}) {
      SCOPED_TRACE(answer.what);
      Greeted f;
      f.now = at(60'000);
      EXPECT_TRUE(f.session->votes()) << "it may be asked";
      EXPECT_TRUE(f.session->look_ahead(f.now));
      f.ask(op);
      const std::string said = f.sent();
      EXPECT_EQ(said.rfind(f.recheck(), 0), 0u) << "ahead, in one write";
      f.receive(answer.read + (op == Op::acquire ? "+OK\r\n" : ":1\r\n"));
      ASSERT_EQ(f.replies.size(), 1u);
      EXPECT_EQ(f.replies[0].meaning.error, answer.error);
      EXPECT_EQ(f.replies[0].meaning.answer, answer.error == 0 ? Answer::yes : Answer::error);
    }
  }
}

// Without a reading ahead, and with one that is answered too late.
TEST_F(GreetedUnderGuard, a_vote_that_is_answered_behind_the_lapse_is_none) {
  f.ask(Op::acquire);
  f.ask(Op::extend);
  f.now = at(9'999);
  f.receive("+OK\r\n");
  f.now = at(10'000);
  f.receive(":1\r\n");
  EXPECT_TRUE(f.session->look_ahead(f.now));
  f.ask(Op::acquire);
  f.now = at(20'000);
  f.receive(":1\r\n" + f.time(1'700'000'020) + "+OK\r\n");
  ASSERT_EQ(f.replies.size(), 3u);
  EXPECT_EQ(f.replies[0].meaning.answer, Answer::yes);
  EXPECT_EQ(f.replies[1].meaning.error, REDLOCK_E_UNREAD);
  EXPECT_EQ(f.replies[2].meaning.error, REDLOCK_E_UNREAD);
}

// The command carried the seal of before. Where others have sealed the new state meanwhile, it is asked again.
TEST_F(GreetedUnderGuard, a_script_that_carried_an_older_seal_than_the_reading_ahead_of_it_is_asked_again) {
  const std::string other = "5555555555555555", new_seal = run_id + ":" + replid + ":" + other;
  f.now = at(60'000);
  f.session->look_ahead(f.now);
  f.ask(Op::extend);
  f.now = at(60'001);
  f.receive(whole(info_of(), {bulk(fingerprint), bulk(other), bulk(new_seal), "_\r\n", "_\r\n", "_\r\n", bulk(tag)}) +
            f.time(1'700'000'060) + ":-1\r\n");
  EXPECT_TRUE(f.session->votes());
  ASSERT_EQ(f.replies.size(), 1u);
  EXPECT_EQ(f.replies[0].meaning.error, REDLOCK_E_NOSCRIPT);
  f.ask(Op::extend);
  f.receive(":-1\r\n");
  EXPECT_EQ(f.session->reason(), REDLOCK_E_UNREAD) << "of the seal that it knows";
}

TEST_F(GreetedUnderGuard, where_something_has_changed_the_answer_is_the_whole_reading) {
  f.due(5'000);
  f.receive(f.record("", info_of(run_id, "4444444444444444")) + f.time(1'700'000'005));
  EXPECT_EQ(f.session->reason(), REDLOCK_E_REPLID);
  EXPECT_EQ(f.told(&News::withdrawn), 1u);
  EXPECT_EQ(f.due(10'000), f.reading());
}

// SCRIPT FLUSH, or a server that keeps few scripts. Nothing is known to have changed.
TEST_F(GreetedUnderGuard, a_script_that_the_server_has_forgotten_is_sent_again_while_the_master_votes) {
  f.due(5'000);
  f.receive("-NOSCRIPT No matching script. Please use EVAL.\r\n");
  EXPECT_TRUE(f.session->votes());
  f.under_tracking.clear();
  EXPECT_EQ(f.due(5'000), f.reading());
  f.receive(f.time(1'700'000'005));
  f.reads(f.record(), 5);
  EXPECT_TRUE(f.session->votes());
  EXPECT_EQ(f.due(10'000), f.recheck());
}

TEST(SessionGuard, a_recheck_that_a_push_has_overtaken_admits_nobody) {
  Greeted f;
  f.due(5'000);
  f.receive(null_push);
  f.under_tracking.clear();
  EXPECT_EQ(f.due(5'000), f.reading()) << "at once, and whole";
  f.receive(":1\r\n" + f.time(1'700'000'005));
  EXPECT_EQ(f.session->reason(), REDLOCK_E_UNREAD);
  f.reads(f.record(), 5);
  EXPECT_TRUE(f.session->votes());
}

TEST(SessionGuard, a_recheck_answered_by_anything_else_is_no_reading) {
  for (const char* answer : {":0\r\n", ":2\r\n", "+OK\r\n", "_\r\n", "*0\r\n"}) {
    Greeted f;
    f.due(5'000);
    f.receive(answer);
    SCOPED_TRACE(answer);
    f.expect_closing(REDLOCK_E_PROTOCOL);
  }
  Greeted f;
  f.due(5'000);
  f.receive("-ERR no\r\n" + f.time(1'700'000'005));
  EXPECT_EQ(f.session->reason(), REDLOCK_E_SERVER);
}

TEST_F(GreetedUpToReading, another_run_id_on_the_same_connection_closes_it) {
  f.receive(f.caching() + f.record() + f.time() + f.ping());
  f.due(5'000);
  f.receive(f.record(seal, info_of("9999999999999999")));
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
      EXPECT_TRUE(holds(f.due(0), f.recheck()));
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
  f.reads(Fixture::record(seal, info_of(run_id, replid, 1, 1)), 5);
  EXPECT_TRUE(f.session->votes() && f.session->asked_by_script()) << "the first replica, with the backlog of before";
  f.due(10'000);
  f.reads(Fixture::record(), 10);
  EXPECT_FALSE(f.session->asked_by_script());
  f.receive(null_push);
  f.due(10'000);
  f.receive("-NOPERM no\r\n" + f.record() + f.time(1'700'000'010));
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
  const size_t reading = said.find(std::string(Command::caching().data, Command::caching().size));
  ASSERT_NE(reading, std::string::npos);
  EXPECT_LE(said.size() - reading - reading_script.size(), Record::reading_max(f.settings));
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

TEST(SessionStrays, the_old_connection_is_ended_behind_the_reading_and_before_it_is_up) {
  for (const Link link : {Link::tracked, Link::untracked, Link::resp2}) {
    for (const char* answer : {":1\r\n", ":0\r\n"}) {
      SCOPED_TRACE(Message() << static_cast<int>(link) << answer);
      Broken f(link);
      EXPECT_FALSE(holds(f.sent(), "KILL"));
      f.receive(f.hello(11));
      f.rest = f.sent();
      EXPECT_FALSE(holds(f.rest, "KILL")) << "not before it is known to be the same process";
      f.receive(f.before_reading(11));
      EXPECT_EQ(f.sent(), "");
      const std::string reading = f.caching() + f.record();
      f.receive(reading.substr(0, reading.size() - 1));
      EXPECT_EQ(f.sent(), "");
      f.receive(reading.substr(reading.size() - 1));
      EXPECT_EQ(f.sent(), kill_10);
      f.receive(f.time() + f.ping());
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
    f.greet_up_to_reading(11);
    f.receive(f.caching() + f.record() + f.time() + f.ping());
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
  f.greet_up_to_reading(11);
  f.receive(f.caching() + f.record(seal, info_of("9999999999999999")) + f.time() + f.ping());
  EXPECT_FALSE(holds(f.sent(), "KILL"));
  EXPECT_EQ(f.session->state(), State::up);
  EXPECT_EQ(f.strays(), std::vector<Strays>{Strays::at_large});
}

// The server tells no id in its reply to HELLO, and the connection breaks when the master is up.
void break_off_without_id(Fixture& f) {
  f.sent();
  f.receive("%2\r\n" + bulk("mode") + bulk("standalone") + bulk("role") + bulk("master"));
  f.rest = f.sent();
  f.receive(f.before_reading() + f.caching() + f.record() + f.time() + f.ping());
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
            f.record() + f.time() + f.ping());
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
    if (how_far > 1) f.receive(f.before_reading(11) + f.caching() + f.record());
    if (how_far > 2) f.receive(f.time() + f.ping());
    EXPECT_EQ(f.sent(), how_far > 1 ? kill_10 : "");
    f.break_off(true);
    EXPECT_TRUE(f.strays().empty());
    f.connect();
    f.greet_up_to_reading(12);
    f.receive(f.caching() + f.record());
    EXPECT_EQ(f.sent(), kill_10);
    f.receive(f.time() + f.ping() + ":1\r\n");
    EXPECT_EQ(f.session->state(), State::up);
    EXPECT_EQ(f.strays(), std::vector<Strays>{Strays::ended});
  }
}

// The rest of the greeting takes longer: a new state is begun, and read again.
TEST(SessionStrays, an_end_is_told_when_it_is_known_and_is_not_taken_back) {
  for (const bool breaks : {false, true}) {
    Broken f;
    f.greet_up_to_reading(11);
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
