// SPDX-License-Identifier: MIT
//
// Session: what is written is compared byte by byte with what a server must be asked; what a server may answer is fed
// whole and in every two pieces. The server here only says what a test tells it to.
#include "base/password_file.hpp"
#include "session_fixture.hpp"

namespace redlock {
namespace {

using namespace session_test;

// ---- greeting -------------------------------------------------------------------------------------------------

TEST_F(ConnectedSession, greeting_on_resp3) {
  EXPECT_EQ(f.session->state(), State::greeting);
  EXPECT_EQ(f.sent(), hello_command);
  EXPECT_EQ(f.sent(), "") << "alone in flight until it is answered";
  f.receive(hello());
  const std::string rest = f.sent();
  const std::string nonce = Fixture::nonce_of(rest);
  EXPECT_EQ(rest, tracking_command + loads + command({"PING", nonce}));
  EXPECT_EQ(f.session->in_flight(), 4u);
  EXPECT_FALSE(f.session->tracked()) << "until the server has said so";
  f.receive(ready);
  EXPECT_TRUE(f.session->tracked());
  EXPECT_EQ(f.session->state(), State::greeting);
  EXPECT_FALSE(f.session->votes() || f.session->connected());
  f.receive(bulk(nonce));
  EXPECT_EQ(f.session->state(), State::up);
  EXPECT_TRUE(f.session->votes() && f.session->connected() && f.session->tried() && f.session->resp3());
  EXPECT_EQ(f.session->in_flight(), 0u);
  EXPECT_EQ(f.session->connects(), 1u);
  EXPECT_EQ(f.session->replies(), 5u);
  EXPECT_EQ(f.session->errors(), 0u);
  EXPECT_EQ(f.session->reason(), 0);
}

TEST_F(AnySession, greeting_with_a_password) {
  const std::string password(REDLOCK_PASSWORD_MAX, 'p');
  f.master.password = bytes(password);
  f.connect();
  Bytes chunk[Tx::chunks_max];
  const unsigned n = f.session->tx().gather(chunk, Tx::chunks_max);
  bool by_reference = false;
  for (unsigned i = 0; i < n; ++i) by_reference |= chunk[i].data == password.data();
  EXPECT_TRUE(by_reference) << "a copy would stay in the buffer";
  EXPECT_EQ(f.sent(), command({"HELLO", "3", "AUTH", "default", password, "SETNAME", "gw-17"}));
  f.receive(hello());
  EXPECT_EQ(f.sent().find(password), std::string::npos);
}

TEST(Session, greeting_on_resp2) {
  for (const char* refusal : {"-ERR unknown command 'HELLO'\r\n", "-NOPROTO unsupported protocol version\r\n",
                              "-NOPERM this user has no permissions to run the 'hello' command\r\n"}) {
    Connected f;
    f.sent();
    f.receive(refusal);
    const std::string rest = f.sent();
    const std::string nonce = Fixture::nonce_of(rest);
    EXPECT_EQ(rest, command({"ROLE"}) + loads + command({"PING", nonce})) << refusal;
    f.receive("*3\r\n" + bulk("master") + ":3129\r\n*1\r\n*3\r\n" + bulk("10.0.0.2") + bulk("6379") + bulk("3129"));
    f.receive(loaded + bulk(nonce));
    EXPECT_EQ(f.session->state(), State::up) << refusal;
    EXPECT_FALSE(f.session->resp3() || f.session->tracked());
    EXPECT_EQ(f.session->errors(), 1u);
  }
}

TEST(Session, greeting_on_resp2_with_a_password) {
  for (const bool with_user : {false, true}) {
    Fixture f;
    if (with_user) f.master.user = "gateway";
    f.master.password = "secret";
    f.connect();
    f.sent();
    f.receive("-ERR unknown command 'HELLO'\r\n");
    EXPECT_EQ(f.sent(), with_user ? command({"AUTH", "gateway", "secret"}) : command({"AUTH", "secret"}));
    EXPECT_EQ(f.sent(), "") << "nothing is sent behind an AUTH that can fail";
    f.receive("+OK\r\n");
    const std::string rest = f.sent();
    EXPECT_EQ(rest.rfind(command({"ROLE"}), 0), 0u);
    f.receive("*3\r\n" + bulk("master") + ":0\r\n*0\r\n" + loaded + bulk(Fixture::nonce_of(rest)));
    EXPECT_EQ(f.session->state(), State::up);
  }
}

// HELLO says more on newer servers, in other orders and with nested aggregates.
TEST(Session, a_hello_of_another_shape) {
  const std::string modules = "*1\r\n" + map({bulk("name"), bulk("vectorset"), bulk("ver"), ":1\r\n", bulk("role"),
                                              bulk("slave"), bulk("args"), "*2\r\n" + bulk("mode") + bulk("cluster")});
  const std::string shapes[] = {
      map({bulk("role"), bulk("master"), bulk("mode"), bulk("standalone"), bulk("modules"), modules}),
      map({bulk("modules"), modules, "+mode\r\n", "+standalone\r\n", bulk("role"), bulk("master")}),
      map({bulk("availability_zone"), bulk(""), bulk("role"), bulk("master"), bulk("more"), "_\r\n"}),
      "|1\r\n" + bulk("role") + bulk("slave") + hello(),
      ">2\r\n" + bulk("invalidate") + "_\r\n" + hello(),
  };
  for (const std::string& shape : shapes) {
    Connected f;
    f.sent();
    f.receive(shape);
    EXPECT_EQ(f.session->wish(), Wish::none) << shape;
    EXPECT_EQ(f.sent().rfind(tracking_command + loads, 0), 0u) << shape;
  }
}

// The port looks whether the file has another password now, and says then that this one was refused.
TEST(Session, a_refused_password_of_a_file_counts_behind_the_port) {
  PasswordFile file = {};
  Connected f;
  f.master.file = &file;
  f.sent();
  f.receive("-LOADING Redis is loading the dataset in memory\r\n");
  EXPECT_FALSE(file.refused);
  Connected again;
  again.master.file = &file;
  again.sent();
  again.receive("-WRONGPASS invalid\r\n");
  again.expect_closing(REDLOCK_E_DISCONNECTED);
  EXPECT_TRUE(file.refused);
}

TEST(Session, refused_at_hello) {
  const Refusal refusals[] = {
      {"replica", hello("slave"), REDLOCK_E_ROLE},
      {"replica, new word", hello("replica"), REDLOCK_E_ROLE},
      {"cluster", hello("master", "cluster"), REDLOCK_E_MODE},
      {"sentinel", hello("master", "sentinel"), REDLOCK_E_MODE},
      {"wrong password", "-WRONGPASS invalid username-password pair or user is disabled.\r\n", REDLOCK_E_AUTH},
      {"no password", "-NOAUTH HELLO must be called with the client already authenticated\r\n", REDLOCK_E_AUTH_MISSING},
      {"loading", "-LOADING Redis is loading the dataset in memory\r\n", REDLOCK_E_LOADING},
      {"busy", "-BUSY Redis is busy running a script.\r\n", REDLOCK_E_SCRIPT_BUSY},
      {"master down", "-MASTERDOWN Link with MASTER is down\r\n", REDLOCK_E_READONLY},
      {"protected", "-DENIED Redis is running in protected mode\r\n", REDLOCK_E_DENIED},
      {"too many", "-ERR max number of clients reached\r\n", REDLOCK_E_MAXCLIENTS},
      {"moved", "-MOVED 1 10.0.0.1:6379\r\n", REDLOCK_E_CLUSTER},
      {"not a map", ":1\r\n", REDLOCK_E_PROTOCOL},
      {"not a map", "+OK\r\n", REDLOCK_E_PROTOCOL},
      {"not a map", bulk("hello"), REDLOCK_E_PROTOCOL},
      {"not a map", "_\r\n", REDLOCK_E_PROTOCOL},
      {"not RESP", "HTTP/1.1 400 Bad Request\r\n", REDLOCK_E_PROTOCOL},
      {"not RESP", std::string("\0\0\0\0", 4), REDLOCK_E_PROTOCOL},
      {"a TLS alert", "\x15\x03\x01\x00\x02\x02\x46", REDLOCK_E_PROTOCOL},
  };
  for (const Refusal& r : refusals) {
    Connected f;
    f.sent();
    f.receive(r.reply);
    f.expect_closing(r.reason, r.what);
    EXPECT_EQ(f.sent(), "") << r.what;
    f.break_off();
    EXPECT_EQ(f.session->reason(), r.reason) << r.what << ": it knows better than the driver";
    EXPECT_EQ(f.session->state(), State::down);
    EXPECT_TRUE(f.session->tried());
  }
}

TEST(Session, refused_at_auth_on_resp2) {
  const Refusal refusals[] = {
      {"wrong password", "-WRONGPASS invalid\r\n", REDLOCK_E_AUTH},
      {"Redis 5", "-ERR invalid password\r\n", REDLOCK_E_AUTH},
      {"a password that is no use", "-NOAUTH Authentication required.\r\n", REDLOCK_E_AUTH},
      {"none is set", "-ERR Client sent AUTH, but no password is set\r\n", REDLOCK_E_AUTH},
      {"not an answer", ":1\r\n", REDLOCK_E_PROTOCOL},
      {"not an answer", "$-1\r\n", REDLOCK_E_PROTOCOL},
      {"an answer, and another in one", "+O-LOADING\r\n", REDLOCK_E_PROTOCOL},
  };
  for (const Refusal& r : refusals) {
    Fixture f;
    f.master.password = "secret";
    f.connect();
    f.receive("-ERR unknown command 'HELLO'\r\n");
    f.sent();
    f.receive(r.reply);
    f.expect_closing(r.reason, r.what);
    EXPECT_EQ(f.sent(), "") << r.what;
  }
}

TEST(Session, refused_at_role_on_resp2) {
  const Refusal refusals[] = {
      {"replica", "*5\r\n" + bulk("slave") + bulk("10.0.0.1") + ":6379\r\n" + bulk("connected") + ":1\r\n",
       REDLOCK_E_ROLE},
      {"sentinel", "*2\r\n" + bulk("sentinel") + "*0\r\n", REDLOCK_E_MODE},
      {"no password", "-NOAUTH Authentication required.\r\n", REDLOCK_E_AUTH_MISSING},
      {"loading", "-LOADING\r\n", REDLOCK_E_LOADING},
  };
  for (const Refusal& r : refusals) {
    Connected f;
    f.receive("-ERR unknown command 'HELLO'\r\n");
    f.sent();
    f.receive(r.reply);
    f.expect_closing(r.reason, r.what);
  }
  for (const char* tolerated :
       {"-NOPERM no permissions to run the 'role' command\r\n", "-ERR unknown command 'ROLE'\r\n"}) {
    Connected f;
    f.receive("-ERR unknown command 'HELLO'\r\n");
    const std::string rest = f.sent();
    f.receive(tolerated + loaded + bulk(Fixture::nonce_of(rest)));
    EXPECT_EQ(f.session->state(), State::up) << tolerated;
  }
}

TEST(Session, scripts_that_cannot_be_loaded_are_no_refusal) {
  for (const char* error : {"-NOPERM no permissions\r\n", "-ERR unknown command 'SCRIPT'\r\n", "-OOM\r\n"}) {
    Connected f;
    f.receive(hello());
    const std::string nonce = Fixture::nonce_of(f.sent());
    f.receive("+OK\r\n" + std::string(error) + error + bulk(nonce));
    EXPECT_EQ(f.session->state(), State::up) << error;
    EXPECT_EQ(f.session->errors(), 2u);
  }
  const Refusal refusals[] = {{"loading", "-LOADING\r\n", REDLOCK_E_LOADING},
                              {"no digest", ":1\r\n", REDLOCK_E_PROTOCOL}};
  for (const Refusal& r : refusals) {
    Connected f;
    f.receive(hello());
    f.receive("+OK\r\n" + std::string(r.reply));
    f.expect_closing(r.reason, r.what);
  }
}

TEST(Session, refused_at_ping) {
  const Refusal refusals[] = {
      {"another nonce", bulk("00000000"), REDLOCK_E_PROTOCOL},
      {"PONG", "+PONG\r\n", REDLOCK_E_PROTOCOL},
      {"nothing", "$-1\r\n", REDLOCK_E_PROTOCOL},
      {"too long", bulk("0000000000"), REDLOCK_E_PROTOCOL},
      {"master down", "-MASTERDOWN Link with MASTER is down\r\n", REDLOCK_E_READONLY},
      {"loading", "-LOADING\r\n", REDLOCK_E_LOADING},
  };
  for (const Refusal& r : refusals) {
    Connected f;
    f.receive(hello() + ready + r.reply);
    f.expect_closing(r.reason, r.what);
    EXPECT_NE(f.session->state(), State::up) << r.what;
  }
  Connected f;
  f.receive(hello() + ready + "-NOPERM no permissions to run the 'ping' command\r\n");
  EXPECT_EQ(f.session->state(), State::up) << "a user without PING answers in order all the same";
}

TEST(Session, nonces_differ) {
  Fixture a, b;
  a.connect(1);
  b.connect(2);
  a.receive(hello());
  b.receive(hello());
  EXPECT_NE(Fixture::nonce_of(a.sent()), Fixture::nonce_of(b.sent()));
}

// ---- ends and beginnings --------------------------------------------------------------------------------------

TEST_F(GreetedSession, all_is_forgotten_when_it_breaks) {
  f.ask(1);
  f.receive("+O");  // half a reply
  f.break_off();
  EXPECT_EQ(f.session->state(), State::down);
  EXPECT_TRUE(f.session->take_untold());
  EXPECT_EQ(f.session->reason(), REDLOCK_E_DISCONNECTED);
  EXPECT_EQ(f.session->in_flight(), 0u);
  EXPECT_EQ(f.sent(), "") << "what was not sent is not sent later";
  EXPECT_FALSE(f.session->votes() || f.session->connected());
  f.greet();
  EXPECT_EQ(f.session->connects(), 2u);
  EXPECT_EQ(f.session->reason(), 0);
  f.ask(2);
  f.receive("_\r\n");
  ASSERT_EQ(f.replies.size(), 1u);
  EXPECT_EQ(f.replies[0].claim, 2u);

  f.receive(">3\r\n+a\r\n$5\r\nhal");  // half a push
  f.break_off();
  f.greet();

  for (const char* word : {"role", "mode"}) {  // half a HELLO, just before the word that matters
    f.break_off();
    f.connect();
    f.sent();
    f.receive("%7\r\n" + bulk(word));
    f.break_off();
    f.greet();
  }
}

TEST_F(ConnectedSession, resp2_is_not_for_ever) {
  f.receive("-ERR unknown command 'HELLO'\r\n");
  f.break_off();
  EXPECT_FALSE(f.session->resp3());
  f.connect();
  EXPECT_EQ(f.sent(), hello_command) << "it may have been updated";
}

TEST(Session, nothing_is_tried_quickly_that_only_a_human_can_mend) {
  for (const int reason : {REDLOCK_E_AUTH, REDLOCK_E_AUTH_MISSING, REDLOCK_E_NOPERM, REDLOCK_E_ROLE, REDLOCK_E_MODE,
                           REDLOCK_E_DUPLICATE, REDLOCK_E_DENIED, REDLOCK_E_PROTOCOL}) {
    Connected f;
    f.session->disconnect(reason);
    f.break_off();
    EXPECT_GT(f.session->deadline(), f.now + Duration::ms(2'500)) << redlock_err_name(reason);
  }
  for (const int reason : {REDLOCK_E_LOADING, REDLOCK_E_CONNECT, REDLOCK_E_REFUSED, REDLOCK_E_CONNECT_TIMEOUT,
                           REDLOCK_E_UNREACHABLE, REDLOCK_E_NODE_TIMEOUT, REDLOCK_E_MAXCLIENTS}) {
    Connected f;
    f.session->disconnect(reason);
    f.break_off();
    EXPECT_LE(f.session->deadline(), f.now + Duration::ms(100)) << redlock_err_name(reason);
  }
}

TEST_F(GreetedSession, disconnected_for_the_first_reason) {
  f.ask(1);
  f.session->disconnect(REDLOCK_E_DUPLICATE);
  f.session->disconnect(REDLOCK_E_SYSTEM);
  f.expect_closing(REDLOCK_E_DUPLICATE);
  EXPECT_FALSE(f.session->votes() || f.session->connected()) << "nothing is given to it any more";
  f.receive("+OK\r\n");
  EXPECT_TRUE(f.replies.empty()) << "nothing is read any more";
  f.break_off();
  EXPECT_EQ(f.session->reason(), REDLOCK_E_DUPLICATE);
  f.session->disconnect(REDLOCK_E_SYSTEM);
  EXPECT_EQ(f.session->wish(), Wish::none) << "it is down already";
  EXPECT_EQ(f.session->reason(), REDLOCK_E_DUPLICATE);
}

TEST(Session, closed_for_good) {
  Fixture up;
  up.greet();
  up.session->close_quietly();
  up.expect_closing(REDLOCK_E_CLOSED);
  up.break_off();
  up.on_time(at(1'000'000));
  EXPECT_EQ(up.session->wish(), Wish::none) << "not even once more";
  up.session->close_quietly();  // as the client does, so that nothing is due any more
  up.on_time(at(1'000'000'000));
  EXPECT_EQ(up.session->wish(), Wish::none);
  EXPECT_EQ(up.session->deadline(), Instant::never());

  Fixture down;
  down.session->close_quietly();
  EXPECT_EQ(down.session->wish(), Wish::none);
  down.on_time(at(1'000'000'000));
  EXPECT_EQ(down.session->wish(), Wish::none);
  EXPECT_EQ(down.session->deadline(), Instant::never());
}

TEST(Session, a_hello_may_be_an_array_or_longer_than_the_buffer) {
  const std::string version = bulk("version"), role = bulk("role"), master = bulk("master");
  for (const std::string& hello : {"*4\r\n" + bulk("mode") + bulk("standalone") + role + master,
                                   map({version, bulk(std::string(1'000, 'v')), role, master})}) {
    Connected f;
    f.sent();
    f.receive(hello);
    EXPECT_EQ(f.session->wish(), Wish::none);
    EXPECT_EQ(f.sent().rfind(tracking_command, 0), 0u);
  }
}

TEST_F(ConnectedSession, a_hello_without_a_role) {
  f.sent();
  f.receive(map({bulk("mode"), bulk("standalone")}));
  f.expect_closing(REDLOCK_E_PROTOCOL);
}

TEST_F(GreetedSession, a_ping_waits_for_room) {
  f.session->tx().append(bytes(std::string(1'000, '.')));  // what the socket has not taken
  f.now = f.session->deadline();
  f.on_time(f.now);
  EXPECT_EQ(f.session->in_flight(), 0u);
  EXPECT_EQ(f.sent().size(), 1'000u);
  f.on_time(f.now);
  EXPECT_EQ(f.session->in_flight(), 1u);
  EXPECT_NE(Fixture::nonce_of(f.sent()), "");
}

TEST_F(AnySession, nothing_is_told_while_it_is_down) {
  Reply reply;
  EXPECT_FALSE(f.next(reply));
  f.greet();
  f.break_off();
  EXPECT_TRUE(f.session->take_untold());
  f.break_off();
  EXPECT_FALSE(f.session->take_untold()) << "it was down already";
  EXPECT_FALSE(f.next(reply));
}

}  // namespace
}  // namespace redlock
