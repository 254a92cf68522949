// SPDX-License-Identifier: MIT
//
// What a session says and hears for the guard, byte for byte: readings, the server's time, the scripts that write; and
// how the greeting ends what an older connection has left behind.
#include "session_guard_fixture.hpp"

namespace redlock {
namespace {

using namespace session_guard_test;

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

TEST(SessionGuard, the_greeting_has_places_and_references_enough) {
  for (const Link link : {Link::tracked, Link::untracked, Link::resp2}) {
    Fixture f(link, 7, 1'024);
    f.greet_up_to_reading();
    f.break_off(true);
    f.connect();
    f.greet_up_to_reading();
    f.receive(f.caching() + Fixture::blank() + f.time());
    EXPECT_EQ(f.session->wish(), Wish::none);
  }
}

TEST_F(GreetedUpToReading, the_greeting_tells_that_it_is_identified) {
  f.receive(f.caching() + f.record());
  EXPECT_EQ(f.told(&News::identified), 1u);
  EXPECT_EQ(std::string(f.session->guard().run_id().data, 16), run_id);
}

TEST_F(AnyUnderGuard, a_blank_record_is_made_only_when_the_client_allows_it) {
  f.begins = false;
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

TEST_F(AnyUnderGuard, a_master_whose_record_is_not_begun_comes_up_when_all_is_answered) {
  f.begins = false;
  f.greet_up_to_reading();
  f.receive(f.caching() + f.blank());
  f.session->begin_state(false, f.now);
  EXPECT_EQ(f.session->state(), State::greeting) << "TIME and PING are not answered";
  f.receive(f.time() + f.ping());
  f.session->begin_state(false, f.now);
  EXPECT_EQ(f.session->state(), State::up);

  Fixture other;
  other.begins = false;
  other.greet_up_to_reading();
  other.receive(other.caching() + other.blank() + other.time() + other.ping());
  other.session->begin_state(true, other.now);
  EXPECT_EQ(other.session->state(), State::greeting) << "the new record is not answered";
}

TEST_F(AnyUnderGuard, no_state_is_begun_after_a_connection_or_in_the_middle_of_a_reading) {
  f.begins = false;
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
  closing.begins = false;
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
  f.due(30'302);
  f.reads(f.record(""), 30);
  EXPECT_EQ(f.sent(), Fixture::write(fingerprint, q, q, seal) + f.reading());
  f.receive(":1\r\n" + f.caching() + f.record() + f.time(1'700'000'030));
  EXPECT_TRUE(f.session->votes());
}

// Another client's state, or another master's copy: the record's words are compared by the script, with the id as read.
TEST_F(AnyUnderGuard, a_seal_is_of_the_replication_id_as_it_was_read) {
  f.session->commission(at(1'000), f.now);
  f.greet_up_to_reading();
  f.receive(f.caching() + f.record(seal, info_of(run_id, "4444444444444444")) + f.time() + f.ping());
  EXPECT_EQ(f.sent(),
            Fixture::write(fingerprint, q, q, run_id + ":4444444444444444:" + q, "4444444444444444") + f.reading());
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
  f.due(19'999);
  EXPECT_TRUE(f.session->votes());
  f.due(20'000);
  EXPECT_EQ(f.session->reason(), REDLOCK_E_UNREAD) << "a lifetime behind the last reading that was answered";
  f.now = at(24'999);
  f.receive(":1\r\n" + f.time(1'700'000'015));
  EXPECT_TRUE(f.session->votes());
  f.due(25'000);
  EXPECT_EQ(f.session->reason(), REDLOCK_E_UNREAD) << "a lifetime behind the sending";
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

TEST_F(GreetedUnderGuard, a_stepped_clock_is_told_with_its_size) {
  f.due(5'000);
  f.news.clear();
  f.reads(f.record(), 5 + 3'600);
  ASSERT_EQ(f.told(&News::stepped), 1u);
  EXPECT_GT(f.news.front().by, Duration::ms(3'599'000));
}

TEST(SessionGuard, news_are_told_once_and_are_of_one_connection) {
  Fixture g;
  g.greet_up_to_reading();
  const std::string info = g.caching() + g.record();
  size_t room = 0;
  memcpy(g.session->rx_room(room), info.data(), info.size());
  g.session->received(info.size());
  Reply reply;
  while (g.next(reply)) {
  }
  g.break_off();
  EXPECT_FALSE(g.session->take_news().identified);

  Greeted f;
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
      {"a replica", Link::tracked, GuardMode::strict, Fixture::record(seal, info_of(run_id, replid, 1, 1)), true},
      {"a backlog", Link::tracked, GuardMode::strict, Fixture::record(seal, info_of(run_id, replid, 0, 1)), true},
      {"no such lines", Link::tracked, GuardMode::strict,
       Fixture::record(seal, bulk(run_id) + bulk(replid) + bulk("master") + "_\r\n_\r\n" + bulk("standalone") +
                               "_\r\n_\r\n_\r\n_\r\n"), true},
      {"tracking refused", Link::untracked, GuardMode::strict, Fixture::record(), true},
      {"RESP2", Link::resp2, GuardMode::strict, Fixture::record(), true},
      {"INFO refused", Link::tracked, GuardMode::weak,
       whole(no_info(), {bulk(fingerprint), bulk(q), bulk("0000000000000000:0000000000000000:" + q), Fixture::null(),
                         Fixture::null(), Fixture::null(), bulk(tag)}),
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

}  // namespace
}  // namespace redlock
