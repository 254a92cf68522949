// SPDX-License-Identifier: MIT
//
// What a session makes of replies and pushes, whole and in pieces.
#include "session_fixture.hpp"

namespace redlock {
namespace {

using namespace session_test;

// ---- replies --------------------------------------------------------------------------------------------------

TEST(Session, room) {
  Fixture f(8);
  f.greet();
  const size_t size = any_command().text_size(), caching = Command::caching().size;
  EXPECT_TRUE(f.session->room(size, 8, true));
  EXPECT_FALSE(f.session->room(size, 9, true));
  EXPECT_TRUE(f.session->room(1'024 - caching, 1, true));
  EXPECT_FALSE(f.session->room(1'025 - caching, 1, true));
  EXPECT_TRUE(f.session->room(any_command(), 8));
  EXPECT_FALSE(f.session->room(any_command(), 9));
  for (uint16_t i = 0; i < 8; ++i) f.ask(i);
  EXPECT_FALSE(f.session->room(1, 1, true));
  f.sent();
  EXPECT_FALSE(f.session->room(1, 1, true)) << "sent is not answered";
  f.receive("+OK\r\n");
  EXPECT_TRUE(f.session->room(1, 1, true));
  EXPECT_FALSE(f.session->room(1, 2, true));
}

// Encoded behind what waits to be sent, it can be too long for what is left; its size says nothing then.
TEST(Session, a_command_that_did_not_fit_has_no_room) {
  Fixture f(100);
  f.greet();
  uint16_t asked = 0;
  while (f.session->room(any_command(), 1)) f.ask(asked++);
  const Command command = any_command(f.session->space());
  EXPECT_GT(f.session->space().size, 0u);
  EXPECT_FALSE(command.fits());
  EXPECT_EQ(command.text_size(), 0u);
  EXPECT_FALSE(f.session->room(command, 1));
  f.sent();
  EXPECT_TRUE(f.session->room(any_command(f.session->space()), 1));
}

TEST_F(GreetedSession, votes_of_each_kind) {
  for (uint16_t i = 0; i < 4; ++i) f.ask(i);
  f.receive("+OK\r\n_\r\n$-1\r\n-OOM command not allowed\r\n");
  ASSERT_EQ(f.replies.size(), 4u);
  EXPECT_EQ(f.replies[0].meaning.answer, Answer::yes);
  EXPECT_EQ(f.replies[1].meaning.answer, Answer::no);
  EXPECT_EQ(f.replies[2].meaning.answer, Answer::no);
  EXPECT_EQ(f.replies[3].meaning.answer, Answer::error);
  EXPECT_EQ(f.replies[3].meaning.error, REDLOCK_E_OOM);
  EXPECT_EQ(f.session->errors(), 1u);
  EXPECT_EQ(f.session->state(), State::up);
}

TEST(Session, tracking_that_is_refused_costs_no_vote) {
  for (const char* refusal : {"-ERR unknown subcommand 'TRACKING'. Try CLIENT HELP.\r\n",
                              "-NOPERM this user has no permissions to run the 'client|tracking' command\r\n"}) {
    Connected f;
    f.sent();
    f.receive(hello());
    f.receive(refusal + loaded + bulk(Fixture::nonce_of(f.sent())));
    EXPECT_TRUE(f.session->votes()) << refusal;
    EXPECT_FALSE(f.session->tracked()) << refusal;
  }
  for (const char* nonsense : {":1\r\n", "$2\r\nOK\r\n", "+YES\r\n", "*0\r\n"}) {
    Connected f;
    f.receive(hello());
    f.receive(nonsense);
    f.expect_closing(REDLOCK_E_PROTOCOL, nonsense);
  }
}

TEST(Session, changed_keys_are_told_in_their_place_between_answers) {
  const std::string wire = "+OK\r\n>2\r\n" + bulk("invalidate") + "*2\r\n" + bulk("a:valve") + bulk("a:bus") + "_\r\n" +
                           ">2\r\n" + bulk("invalidate") + "_\r\n";
  for (size_t split = 0; split <= wire.size(); ++split) {
    Greeted f;
    f.ask(1);
    f.ask(2);
    f.receive(wire.substr(0, split));
    f.receive(wire.substr(split));
    std::string told;
    for (size_t i = 0; i < f.replies.size(); ++i) {
      const Reply& r = f.replies[i];
      told += r.kind == Reply::Kind::answer        ? std::to_string(r.claim) + " "
              : r.kind == Reply::Kind::key_changed ? f.keys[i] + " "
                                                   : "all ";
    }
    ASSERT_EQ(told, "1 a:valve a:bus 2 all ") << "split at " << split;
    EXPECT_EQ(f.session->in_flight(), 0u);
    EXPECT_EQ(f.session->wish(), Wish::none);
  }
}

// ---- looks ----------------------------------------------------------------------------------------------------

TEST(Session, what_a_look_may_say) {
  for (const auto& [said, ttl] : {std::pair<const char*, int64_t>{":-2\r\n", -2},
                                  {":-1\r\n", -1},
                                  {":0\r\n", 0},
                                  {"-NOPERM no\r\n", -3},
                                  {"-LOADING now\r\n", -3}}) {
    Greeted f;
    look(f, 1);
    f.receive(std::string("+OK\r\n") + said);
    ASSERT_EQ(f.replies.size(), 1u) << said;
    EXPECT_EQ(f.replies[0].ttl, ttl) << said;
    EXPECT_EQ(f.session->wish(), Wish::none) << said;
  }
  for (const char* nonsense : {":-3\r\n", "+OK\r\n", "$1\r\n7\r\n", "_\r\n", "*1\r\n:1\r\n"}) {
    Greeted f;
    look(f, 1);
    f.receive(std::string("+OK\r\n") + nonsense);
    f.expect_closing(REDLOCK_E_PROTOCOL, nonsense);
    EXPECT_TRUE(f.replies.empty()) << nonsense;
  }
}

// ---- whose value a key has ------------------------------------------------------------------------------------------

void ask_holder(Fixture& f, uint16_t who) {
  f.session->look(who, 70u + who, Command::holder(test::space(), "a:", "valve"), true, f.now);
}

const std::string our_digits = "00112233445566778899aabbccddeeff00112233";

TEST(Session, what_the_holder_may_be) {
  struct Case {
    std::string reply;
    Answer answer;
    std::string name;
  };
  const Case cases[] = {
      {bulk(our_digits + ":gw-03"), Answer::yes, "gw-03"},
      {bulk(our_digits + ":"), Answer::yes, ""},
      {bulk(our_digits + ":" + std::string(REDLOCK_CLIENT_NAME_MAX, 'n')), Answer::yes,
       std::string(REDLOCK_CLIENT_NAME_MAX, 'n')},
      {bulk(our_digits + ":" + std::string(REDLOCK_CLIENT_NAME_MAX + 1, 'n')), Answer::no, ""},
      {bulk(our_digits), Answer::no, ""},
      {bulk(our_digits + "x"), Answer::no, ""},
      {bulk(our_digits.substr(1) + ":gw-03"), Answer::no, ""},
      {bulk("A" + our_digits.substr(1) + ":gw-03"), Answer::no, ""},
      {bulk(""), Answer::no, ""},
      {bulk(std::string(200, 'x')), Answer::no, ""},
      {"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n", Answer::no, ""},
      {"-NOPERM no\r\n", Answer::error, ""},
      {"_\r\n", Answer::error, ""},
      {"$-1\r\n", Answer::error, ""},
  };
  for (const Case& c : cases) {
    Greeted f;
    ask_holder(f, 1);
    f.receive(c.reply);
    ASSERT_EQ(f.replies.size(), 1u) << c.reply;
    EXPECT_EQ(f.replies[0].meaning.answer, c.answer) << c.reply;
    EXPECT_EQ(f.keys[0], c.name) << c.reply;
    EXPECT_EQ(f.session->wish(), Wish::none) << c.reply;
  }
  for (const char* reply : {":1\r\n", "+OK\r\n", "*1\r\n$1\r\na\r\n"}) {
    Greeted f;
    ask_holder(f, 1);
    f.receive(reply);
    f.expect_closing(REDLOCK_E_PROTOCOL, reply);
    EXPECT_TRUE(f.replies.empty()) << reply;
  }
}

// Its first part alone would look like a value of ours, and so would its last one.
TEST(Session, a_part_of_a_value_names_no_holder) {
  const std::string ours = our_digits + ":gw-03";
  const std::string value = ours + std::string(1'000, 'x') + ours;
  const std::string wire = bulk(value) + "+OK\r\n";
  for (size_t cut = 1; cut < wire.size(); ++cut) {
    Greeted f;
    ask_holder(f, 1);
    f.ask(9);
    f.receive(wire.substr(0, cut));
    f.receive(wire.substr(cut));
    ASSERT_GE(f.replies.size(), 3u) << cut;
    EXPECT_EQ(f.replies[0].meaning.answer, Answer::no) << "the first part decides: " << cut;
    EXPECT_EQ(f.replies.back().claim, 9u) << "each reply has its request";
    EXPECT_EQ(f.session->in_flight(), 0u);
  }
}

TEST_F(GreetedSession, a_look_that_registers_nothing_is_no_tracking) {
  look(f, 1);
  f.receive("-NOPERM this user has no permissions to run the 'client|caching' command\r\n:700\r\n");
  EXPECT_FALSE(f.session->tracked());
  ASSERT_EQ(f.replies.size(), 1u);
  EXPECT_EQ(f.replies[0].ttl, -3) << "nobody will tell when that changes";
  EXPECT_EQ(f.session->wish(), Wish::none);
  Fixture broken;
  broken.greet();
  look(broken, 1);
  broken.receive(":1\r\n");
  broken.expect_closing(REDLOCK_E_PROTOCOL);
}

TEST(Session, other_pushes_say_nothing) {
  const std::string others[] = {
      ">3\r\n" + bulk("message") + bulk("invalidate") + bulk("k"),
      ">2\r\n" + bulk("message") + "*1\r\n" + bulk("k"),
      ">2\r\n" + bulk("tracking-redir-broken") + ":7\r\n",
      ">2\r\n" + bulk("message") + "_\r\n",
      ">2\r\n" + bulk("invalidate") + "*1\r\n*1\r\n" + bulk("k"),
      ">2\r\n" + bulk("invalidate") + "*1\r\n" + bulk(std::string(1'000, 'k')),  // longer than any key of ours
      ">2\r\n" + bulk("invalidate") + "*1\r\n:1\r\n",
      ">1\r\n_\r\n",
  };
  for (const std::string& other : others) {
    Greeted f;
    f.receive(other);
    EXPECT_TRUE(f.replies.empty()) << other;
    EXPECT_EQ(f.session->wish(), Wish::none) << other;
    f.receive(">2\r\n" + bulk("invalidate") + "*1\r\n" + bulk("k"));
    EXPECT_EQ(f.replies.size(), 1u) << "after " << other;
  }
}

TEST_F(GreetedSession, the_rest_of_a_long_word_is_not_the_word) {
  f.receive(">2\r\n$264\r\n");
  f.receive(std::string(254, 'x'));  // comes out as a part, since the whole does not fit
  f.receive("invalidate\r\n*1\r\n" + bulk("k"));
  EXPECT_TRUE(f.replies.empty());
  EXPECT_EQ(f.session->wish(), Wish::none);
}

TEST(Session, a_reply_that_nobody_asked_for_closes) {
  const Refusal refusals[] = {
      {"OK", "+OK\r\n", REDLOCK_E_PROTOCOL},
      {"an error", "-ERR Protocol error: too big mbulk count string\r\n", REDLOCK_E_SERVER},
      {"max clients", "-ERR max number of clients reached\r\n", REDLOCK_E_MAXCLIENTS},
      {"an aggregate", "*1\r\n:1\r\n", REDLOCK_E_PROTOCOL},
  };
  for (const Refusal& r : refusals) {
    Greeted f;
    f.receive(r.reply);
    f.expect_closing(r.reason, r.what);
    Fixture behind;
    behind.greet();
    behind.ask(1);
    behind.receive("+OK\r\n" + r.reply);
    behind.expect_closing(r.reason, r.what);
    EXPECT_EQ(behind.replies.size(), 1u) << r.what;
  }
}

// What stands in the buffer behind the last byte received is of an older reply, or of nobody.
TEST(Session, nonsense_in_the_last_bytes_received_is_looked_at_no_further) {
  for (const size_t size : {64u, 255u, 256u}) {
    Greeted f;
    size_t room = 0;
    memset(f.session->rx_room(room), '-', 256);
    ASSERT_EQ(room, 256u);
    const std::string nonsense = "$-2\r\n";
    f.receive(">1\r\n+" + std::string(size - nonsense.size() - 7, 'x') + "\r\n" + nonsense);
    f.expect_closing(REDLOCK_E_PROTOCOL);
  }
}

// As protected mode says it, in a thousand bytes.
TEST(Session, an_error_longer_than_the_buffer_closes_with_its_own_reason) {
  const Refusal refusals[] = {
      {"protected", "-DENIED Redis is running in protected mode because", REDLOCK_E_DENIED},
      {"a replica", "-READONLY You can't write against a read only replica.", REDLOCK_E_READONLY},
      {"anything", "-ERR and so on", REDLOCK_E_PROTOCOL},
      {"no error", "+OK and so on", REDLOCK_E_PROTOCOL},
  };
  for (const Refusal& r : refusals) {
    Connected f;
    f.sent();
    f.receive(r.reply + std::string(1'000, 'x') + "\r\n");
    f.expect_closing(r.reason, r.what);
    Fixture up;
    up.greet();
    up.ask(1);
    up.receive(r.reply + std::string(1'000, 'x') + "\r\n");
    up.expect_closing(r.reason, r.what);
    EXPECT_TRUE(up.replies.empty());
    Fixture behind;  // another reply, and cut off
    behind.greet();
    behind.ask(1);
    behind.ask(2);
    behind.receive("+OK\r\n" + r.reply + "\r?");
    behind.expect_closing(r.reason, r.what);
    EXPECT_EQ(behind.replies.size(), 1u);
  }
}

TEST(Session, a_reply_of_an_impossible_type_closes_and_is_not_told) {
  for (const std::string& reply :
       {std::string(":1\r\n"), std::string("*0\r\n"), bulk("OK"), std::string("*2\r\n+OK\r\n+OK\r\n"),
        std::string("#t\r\n"), std::string("+QUEUED\r\n"), std::string("OK\r\n"), std::string("+OK\r?")}) {
    Greeted f;
    f.ask(1);
    f.ask(2);
    f.receive(reply + "+OK\r\n");
    f.expect_closing(REDLOCK_E_PROTOCOL, reply.c_str());
    EXPECT_TRUE(f.replies.empty()) << reply;
  }
  Greeted f;
  f.ask(1, Op::release);
  f.receive("+OK\r\n");
  f.expect_closing(REDLOCK_E_PROTOCOL);
}

TEST(Session, a_master_that_became_another_is_greeted_again) {
  for (const auto& [error, reason] :
       {std::pair("-READONLY You can't write against a read only replica.\r\n", REDLOCK_E_READONLY),
        std::pair("-MASTERDOWN Link is down\r\n", REDLOCK_E_READONLY),
        std::pair("-NOAUTH Authentication required.\r\n", REDLOCK_E_AUTH_MISSING)}) {
    Greeted f;
    f.ask(1);
    f.ask(2);
    f.receive(std::string(error) + "+OK\r\n");
    ASSERT_EQ(f.replies.size(), 1u) << "the vote is told, then nothing more";
    EXPECT_EQ(f.replies[0].meaning.error, reason);
    f.expect_closing(reason, error);
  }
}

// The server has forgotten a login that this client has.
TEST_F(AnySession, a_login_that_is_lost_is_not_missing) {
  f.master.password = "secret";
  f.greet();
  f.ask(1);
  f.receive("-NOAUTH Authentication required.\r\n");
  f.expect_closing(REDLOCK_E_AUTH);
}

TEST_F(GreetedSession, a_command_with_its_script_by_reference) {
  Subject s;
  s.names = "valve";
  s.value_hex = "0011223344556677889900112233445566778899";
  s.client_name = "gw-17";
  const Command release = Command::plain(test::space(), Op::release, s, false);
  f.ask(Op::release, 1, 0, release);
  f.ask(2);
  EXPECT_EQ(f.sent(),
            text(release.head()) + test::text_of(release_script) + text(release.tail()) + text(any_command().head()));
  const Command extend = Command::plain(test::space(), Op::extend, s, false);
  f.ask(Op::extend, 1, 0, extend);
  f.ask(2);
  EXPECT_EQ(f.sent(),
            text(extend.head()) + test::text_of(extend_script) + text(extend.tail()) + text(any_command().head()))
      << "of two texts";
}

}  // namespace
}  // namespace redlock
