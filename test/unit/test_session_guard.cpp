// SPDX-License-Identifier: MIT
//
// What a session says and hears for the guard, byte for byte: readings, INFO, the server's time, the scripts that
// write; and how the greeting ends what an older connection has left behind.
#include "session_guard_fixture.hpp"

namespace redlock {
namespace {

using namespace session_guard_test;

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

TEST_F(GreetedUpToInfo, the_greeting_tells_that_it_is_identified) {
  f.receive(bulk(info_text()));
  EXPECT_EQ(f.told(&News::identified), 1u);
  EXPECT_EQ(std::string(f.session->guard().run_id().data, 16), run_id);
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

TEST_F(AnyUnderGuard, a_master_whose_record_is_not_begun_comes_up_when_all_is_answered) {
  f.begins = false;
  f.greet_up_to_info();
  f.receive(bulk(info_text()) + f.caching() + f.blank());
  f.session->begin_state(false, f.now);
  EXPECT_EQ(f.session->state(), State::greeting) << "TIME and PING are not answered";
  f.receive(f.time() + f.ping());
  f.session->begin_state(false, f.now);
  EXPECT_EQ(f.session->state(), State::up);

  Fixture other;
  other.begins = false;
  other.greet_up_to_info();
  other.receive(bulk(info_text()) + other.caching() + other.blank() + other.time() + other.ping());
  other.session->begin_state(true, other.now);
  EXPECT_EQ(other.session->state(), State::greeting) << "the new record is not answered";
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

// Another client's state, or another master's copy: the record's words are compared by the script, with the id as read.
TEST_F(AnyUnderGuard, a_seal_is_of_the_replication_id_as_it_was_read) {
  f.session->commission(at(1'000), f.now);
  f.greet_up_to_info();
  f.receive(bulk(info_text()) + f.caching() + f.record(seal, replication("4444444444444444")) + f.time() + f.ping());
  EXPECT_EQ(f.sent(),
            Fixture::write(fingerprint, q, q, run_id + ":4444444444444444:" + q, "4444444444444444") + f.reading());
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

TEST_F(GreetedUnderGuard, a_stepped_clock_is_told_with_its_size) {
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
      {"a replica", Link::tracked, GuardMode::strict, Fixture::record(seal, replication(replid, "master", 1, 1)), true},
      {"a backlog", Link::tracked, GuardMode::strict, Fixture::record(seal, replication(replid, "master", 0, 1)), true},
      {"no such lines", Link::tracked, GuardMode::strict,
       Fixture::record(seal, "role:master\r\nmaster_replid:" + replid + "\r\n"), true},
      {"tracking refused", Link::untracked, GuardMode::strict, Fixture::record(), true},
      {"RESP2", Link::resp2, GuardMode::strict, Fixture::record(), true},
      {"INFO refused", Link::tracked, GuardMode::weak,
       list({"-ERR The user executing the script can't run this command or subcommand\r\n", bulk(fingerprint), bulk(q),
             bulk(run_id + ":0000000000000000:" + q), Fixture::null(), Fixture::null(), Fixture::null()}),
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

}  // namespace
}  // namespace redlock
