// SPDX-License-Identifier: MIT
//
// Session: what is written is compared byte by byte with what a server must be asked; what a server may answer is fed
// whole and in every two pieces. The server here only says what a test tells it to.
#include "master/session.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/lock_scripts.hpp"
#include "support/session_wire.hpp"
#include "support/space.hpp"

namespace redlock {
namespace {

using State = Session::State;
using Wish = Session::Wish;

Instant at(int64_t ms) { return Instant::from_ns(ms * 1'000'000); }
Bytes bytes(std::string_view s) { return Bytes(s.data(), s.size()); }
std::string text(Bytes b) { return std::string(b.data, b.size); }

std::string bulk(std::string_view s) { return "$" + std::to_string(s.size()) + "\r\n" + std::string(s) + "\r\n"; }
std::string command(const std::vector<std::string>& words) {
  std::string s = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& w : words) s += bulk(w);
  return s;
}
std::string map(const std::vector<std::string>& encoded) {
  std::string s = "%" + std::to_string(encoded.size() / 2) + "\r\n";
  for (const std::string& e : encoded) s += e;
  return s;
}

std::string hello(const char* role = "master", const char* mode = "standalone") {
  return map({bulk("server"), bulk("redis"), bulk("version"), bulk("7.0.15"), bulk("proto"), ":3\r\n", bulk("id"),
              ":10\r\n", bulk("mode"), bulk(mode), bulk("role"), bulk(role), bulk("modules"), "*0\r\n"});
}
const std::string loads = command({"SCRIPT", "LOAD", test::text_of(release_script)}) +
                          command({"SCRIPT", "LOAD", test::text_of(extend_script)});
const std::string loaded = bulk(text(release_script.sha)) + bulk(text(extend_script.sha));
const std::string tracking_command = command({"CLIENT", "TRACKING", "on", "OPTIN", "NOLOOP"});
const std::string ready = "+OK\r\n" + loaded;  // tracking is on, the scripts are known
const std::string hello_command = command({"HELLO", "3", "SETNAME", "gw-17"});

Command any_command(Space space = test::space()) {
  Subject s;
  s.names = "valve";
  s.value_hex = "0011223344556677889900112233445566778899";
  s.client_name = "gw-17";
  s.ttl_ms = 1'000;
  return Command::plain(space, Op::acquire, s, true);
}

struct Fixture : test::SessionWire {
  explicit Fixture(unsigned in_flight = 16, size_t rx_size = 256)
      : tx(new char[1'024]), rx(new char[rx_size]), requests(new Session::Request[in_flight + Session::own_requests]) {
    settings.node_timeout = Duration::ms(50);
    settings.suspect_close = Duration::ms(2'000);
    settings.connect_timeout = Duration::ms(500);
    settings.ping_interval = Duration::ms(5'000);
    settings.reconnect_min_ms = 100;
    settings.reconnect_max_ms = 5'000;
    now = at(1'000);
    session = std::make_unique<Session>(settings, master, bytes("gw-17"),
                                        Session::Memory{tx.get(), 1'024, rx.get(), rx_size, requests.get(),
                                                        in_flight + Session::own_requests, &called, &has_news});
  }
  Fixture(const Fixture&) = delete;

  void connect(uint32_t nonce = 1) {
    if (session->wish() == Wish::none) session->on_time(later(now, session->deadline()));
    ASSERT_EQ(session->wish(), Wish::connect);
    session->connecting(now);
    session->connected(now, nonce);
  }
  void greet() {
    connect();
    sent();
    receive(hello());
    receive(ready + bulk(nonce_of(sent())));
    ASSERT_EQ(session->state(), State::up);
    session->take_changed();
  }
  void ask(uint16_t claim, Op op = Op::acquire) { session->ask(op, claim, claim, any_command(), now); }
  void break_off(int reason = REDLOCK_E_DISCONNECTED, uint32_t random = UINT32_MAX) {
    session->closed(now, reason, random);
  }
  void expect_closing(int reason, const char* what = "") {
    EXPECT_EQ(session->wish(), Wish::close) << what;
    EXPECT_EQ(session->reason(), reason) << what << ": " << redlock_err_name(session->reason());
    EXPECT_EQ(session->deadline(), Instant::never()) << what;
  }

  Settings settings;
  MasterSettings master;
  std::unique_ptr<char[]> tx, rx;
  std::unique_ptr<Session::Request[]> requests;
};

// ---- greeting -------------------------------------------------------------------------------------------------

TEST(Session, begins_with_a_wish_to_connect) {
  Fixture f;
  EXPECT_EQ(f.session->state(), State::down);
  EXPECT_EQ(f.session->wish(), Wish::connect);
  EXPECT_FALSE(f.session->tried());
  f.session->connecting(f.now);
  EXPECT_EQ(f.session->state(), State::connecting);
  EXPECT_EQ(f.session->wish(), Wish::none);
  EXPECT_EQ(f.session->deadline(), at(1'500));
  EXPECT_EQ(f.sent(), "");
}

TEST(Session, greeting_on_resp3) {
  Fixture f;
  f.connect();
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

TEST(Session, greeting_with_a_password) {
  Fixture f;
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

TEST(Session, greeting_with_user_and_password) {
  Fixture f;
  const std::string user(REDLOCK_USER_MAX, 'u');
  f.master.user = bytes(user);
  f.master.password = "secret";
  f.connect();
  EXPECT_EQ(f.sent(), command({"HELLO", "3", "AUTH", user, "secret", "SETNAME", "gw-17"}));
}

TEST(Session, greeting_on_resp2) {
  for (const char* refusal : {"-ERR unknown command 'HELLO'\r\n", "-NOPROTO unsupported protocol version\r\n",
                              "-NOPERM this user has no permissions to run the 'hello' command\r\n"}) {
    Fixture f;
    f.connect();
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
    Fixture f;
    f.connect();
    f.sent();
    f.receive(shape);
    EXPECT_EQ(f.session->wish(), Wish::none) << shape;
    EXPECT_EQ(f.sent().rfind(tracking_command + loads, 0), 0u) << shape;
  }
}

struct Refusal {
  const char* what;
  std::string reply;
  int reason;
};

TEST(Session, refused_at_hello) {
  const Refusal refusals[] = {
      {"replica", hello("slave"), REDLOCK_E_ROLE},
      {"replica, new word", hello("replica"), REDLOCK_E_ROLE},
      {"cluster", hello("master", "cluster"), REDLOCK_E_MODE},
      {"sentinel", hello("master", "sentinel"), REDLOCK_E_MODE},
      {"wrong password", "-WRONGPASS invalid username-password pair or user is disabled.\r\n", REDLOCK_E_AUTH},
      {"no password", "-NOAUTH HELLO must be called with the client already authenticated\r\n", REDLOCK_E_AUTH},
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
    Fixture f;
    f.connect();
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
      {"none is set", "-ERR Client sent AUTH, but no password is set\r\n", REDLOCK_E_AUTH},
      {"not an answer", ":1\r\n", REDLOCK_E_PROTOCOL},
      {"not an answer", "$-1\r\n", REDLOCK_E_PROTOCOL},
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
      {"no password", "-NOAUTH Authentication required.\r\n", REDLOCK_E_AUTH},
      {"loading", "-LOADING\r\n", REDLOCK_E_LOADING},
  };
  for (const Refusal& r : refusals) {
    Fixture f;
    f.connect();
    f.receive("-ERR unknown command 'HELLO'\r\n");
    f.sent();
    f.receive(r.reply);
    f.expect_closing(r.reason, r.what);
  }
  for (const char* tolerated :
       {"-NOPERM no permissions to run the 'role' command\r\n", "-ERR unknown command 'ROLE'\r\n"}) {
    Fixture f;
    f.connect();
    f.receive("-ERR unknown command 'HELLO'\r\n");
    const std::string rest = f.sent();
    f.receive(tolerated + loaded + bulk(Fixture::nonce_of(rest)));
    EXPECT_EQ(f.session->state(), State::up) << tolerated;
  }
}

TEST(Session, scripts_that_cannot_be_loaded_are_no_refusal) {
  for (const char* error : {"-NOPERM no permissions\r\n", "-ERR unknown command 'SCRIPT'\r\n", "-OOM\r\n"}) {
    Fixture f;
    f.connect();
    f.receive(hello());
    const std::string nonce = Fixture::nonce_of(f.sent());
    f.receive("+OK\r\n" + std::string(error) + error + bulk(nonce));
    EXPECT_EQ(f.session->state(), State::up) << error;
    EXPECT_EQ(f.session->errors(), 2u);
  }
  const Refusal refusals[] = {{"loading", "-LOADING\r\n", REDLOCK_E_LOADING},
                              {"no digest", ":1\r\n", REDLOCK_E_PROTOCOL}};
  for (const Refusal& r : refusals) {
    Fixture f;
    f.connect();
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
    Fixture f;
    f.connect();
    f.receive(hello() + ready + r.reply);
    f.expect_closing(r.reason, r.what);
    EXPECT_NE(f.session->state(), State::up) << r.what;
  }
  Fixture f;
  f.connect();
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

// ---- replies --------------------------------------------------------------------------------------------------

TEST(Session, answers_come_in_the_order_of_the_requests) {
  Fixture f(8);
  f.greet();
  uint16_t asked = 0, answered = 0;
  for (int round = 0; round < 20; ++round) {  // around the FIFO, several times
    std::string wire;
    for (int i = 0; i < 5; ++i, ++asked) {
      f.ask(asked, static_cast<Op>(asked % 3));
      wire += asked % 3 == 0 ? "+OK\r\n" : ":1\r\n";
    }
    EXPECT_EQ(f.sent().size(), 5 * any_command().text_size());
    f.receive(wire);
    ASSERT_EQ(f.replies.size(), asked);
    for (; answered < asked; ++answered) {
      EXPECT_EQ(f.replies[answered].claim, answered);
      EXPECT_EQ(f.replies[answered].round, answered);
      EXPECT_EQ(f.replies[answered].op, static_cast<Op>(answered % 3));
      EXPECT_EQ(f.replies[answered].meaning.answer, Answer::yes);
    }
  }
  EXPECT_EQ(f.session->in_flight(), 0u);
}

TEST(Session, room) {
  Fixture f(8);
  f.greet();
  const size_t size = any_command().text_size();
  EXPECT_TRUE(f.session->room(size, 8));
  EXPECT_FALSE(f.session->room(size, 9));
  EXPECT_TRUE(f.session->room(1'024, 1));
  EXPECT_FALSE(f.session->room(1'025, 1));
  EXPECT_TRUE(f.session->room(any_command(), 8));
  EXPECT_FALSE(f.session->room(any_command(), 9));
  for (uint16_t i = 0; i < 8; ++i) f.ask(i);
  EXPECT_FALSE(f.session->room(1, 1));
  f.sent();
  EXPECT_FALSE(f.session->room(1, 1)) << "sent is not answered";
  f.receive("+OK\r\n");
  EXPECT_TRUE(f.session->room(1, 1));
  EXPECT_FALSE(f.session->room(1, 2));
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

TEST(Session, votes_of_each_kind) {
  Fixture f;
  f.greet();
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

TEST(Session, pushes_and_attributes_answer_nothing) {
  Fixture f;
  f.greet();
  f.ask(1);
  f.receive(">1\r\n+OK\r\n" + std::string("|1\r\n+a\r\n:1\r\n") + "_\r\n>0\r\n");
  ASSERT_EQ(f.replies.size(), 1u);
  EXPECT_EQ(f.replies[0].meaning.answer, Answer::no);
  EXPECT_EQ(f.session->in_flight(), 0u);
  EXPECT_EQ(f.session->wish(), Wish::none);
}

TEST(Session, tracking_that_is_refused_costs_no_vote) {
  for (const char* refusal : {"-ERR unknown subcommand 'TRACKING'. Try CLIENT HELP.\r\n",
                              "-NOPERM this user has no permissions to run the 'client|tracking' command\r\n"}) {
    Fixture f;
    f.connect();
    f.sent();
    f.receive(hello());
    f.receive(refusal + loaded + bulk(Fixture::nonce_of(f.sent())));
    EXPECT_TRUE(f.session->votes()) << refusal;
    EXPECT_FALSE(f.session->tracked()) << refusal;
  }
  for (const char* nonsense : {":1\r\n", "$2\r\nOK\r\n", "+YES\r\n", "*0\r\n"}) {
    Fixture f;
    f.connect();
    f.receive(hello());
    f.receive(nonsense);
    f.expect_closing(REDLOCK_E_PROTOCOL, nonsense);
  }
}

TEST(Session, tracking_is_of_one_connection) {
  Fixture f;
  f.greet();
  EXPECT_TRUE(f.session->tracked());
  f.break_off();
  EXPECT_FALSE(f.session->tracked());
  f.connect();
  f.receive(hello());
  EXPECT_FALSE(f.session->tracked());
}

TEST(Session, changed_keys_are_told_in_their_place_between_answers) {
  const std::string wire = "+OK\r\n>2\r\n" + bulk("invalidate") + "*2\r\n" + bulk("a:valve") + bulk("a:bus") + "_\r\n" +
                           ">2\r\n" + bulk("invalidate") + "_\r\n";
  for (size_t split = 0; split <= wire.size(); ++split) {
    Fixture f;
    f.greet();
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

void look(Fixture& f, uint16_t who) {
  f.session->look(who, 70u + who, Command::look(test::space(), "a:", "valve"), f.now);
}

TEST(Session, a_look_is_two_requests_and_one_answer) {
  Fixture f;
  f.greet();
  f.ask(1);
  look(f, 5);
  EXPECT_EQ(f.sent(),
            text(any_command().head()) + command({"CLIENT", "CACHING", "yes"}) + command({"PTTL", "a:valve"}));
  EXPECT_EQ(f.session->in_flight(), 3u);
  f.receive("_\r\n+OK\r\n:700\r\n");
  ASSERT_EQ(f.replies.size(), 2u);
  EXPECT_EQ(f.replies[1].kind, Reply::Kind::looked);
  EXPECT_EQ(f.replies[1].claim, 5);
  EXPECT_EQ(f.replies[1].round, 75u);
  EXPECT_EQ(f.replies[1].ttl, 700);
  EXPECT_EQ(f.session->in_flight(), 0u);
}

TEST(Session, a_look_at_several_keys_takes_its_script_along) {
  Fixture f;
  f.greet();
  f.sent();
  char memory[8];
  const Bytes both[] = {"bus", "valve"};
  Names names;
  names.assign(memory, both, 2);
  f.session->look(5, 75, Command::look(test::space(), "a:", names), f.now);
  EXPECT_EQ(f.session->in_flight(), 2u);
  EXPECT_EQ(f.sent(), command({"CLIENT", "CACHING", "yes"}) +
                          command({"EVAL", test::text_of(look_script), "2", "a:bus", "a:valve"}));
}

TEST(Session, what_a_look_may_say) {
  for (const auto& [said, ttl] : {std::pair<const char*, int64_t>{":-2\r\n", -2},
                                  {":-1\r\n", -1},
                                  {":0\r\n", 0},
                                  {"-NOPERM no\r\n", -3},
                                  {"-LOADING now\r\n", -3}}) {
    Fixture f;
    f.greet();
    look(f, 1);
    f.receive(std::string("+OK\r\n") + said);
    ASSERT_EQ(f.replies.size(), 1u) << said;
    EXPECT_EQ(f.replies[0].ttl, ttl) << said;
    EXPECT_EQ(f.session->wish(), Wish::none) << said;
  }
  for (const char* nonsense : {":-3\r\n", "+OK\r\n", "$1\r\n7\r\n", "_\r\n", "*1\r\n:1\r\n"}) {
    Fixture f;
    f.greet();
    look(f, 1);
    f.receive(std::string("+OK\r\n") + nonsense);
    f.expect_closing(REDLOCK_E_PROTOCOL, nonsense);
    EXPECT_TRUE(f.replies.empty()) << nonsense;
  }
}

TEST(Session, a_look_that_registers_nothing_is_no_tracking) {
  Fixture f;
  f.greet();
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
    Fixture f;
    f.greet();
    f.receive(other);
    EXPECT_TRUE(f.replies.empty()) << other;
    EXPECT_EQ(f.session->wish(), Wish::none) << other;
    f.receive(">2\r\n" + bulk("invalidate") + "*1\r\n" + bulk("k"));
    EXPECT_EQ(f.replies.size(), 1u) << "after " << other;
  }
}

TEST(Session, the_rest_of_a_long_word_is_not_the_word) {
  Fixture f;
  f.greet();
  f.receive(">2\r\n$264\r\n");
  f.receive(std::string(254, 'x'));  // comes out as a part, since the whole does not fit
  f.receive("invalidate\r\n*1\r\n" + bulk("k"));
  EXPECT_TRUE(f.replies.empty());
  EXPECT_EQ(f.session->wish(), Wish::none);
}

TEST(Session, without_a_guard_there_is_no_seal) {
  Fixture f;
  f.settings.guard = GuardMode::off;
  f.greet();
  EXPECT_EQ(f.session->sealed().seal.size, 0u);
  EXPECT_FALSE(f.session->asked_by_script()) << "there is nothing to compare";
}

TEST(Session, a_reply_that_nobody_asked_for_closes) {
  const Refusal refusals[] = {
      {"OK", "+OK\r\n", REDLOCK_E_PROTOCOL},
      {"an error", "-ERR Protocol error: too big mbulk count string\r\n", REDLOCK_E_SERVER},
      {"max clients", "-ERR max number of clients reached\r\n", REDLOCK_E_MAXCLIENTS},
      {"an aggregate", "*1\r\n:1\r\n", REDLOCK_E_PROTOCOL},
  };
  for (const Refusal& r : refusals) {
    Fixture f;
    f.greet();
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
    Fixture f;
    f.greet();
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
    Fixture f;
    f.connect();
    f.sent();
    f.receive(r.reply + std::string(1'000, 'x') + "\r\n");
    f.expect_closing(r.reason, r.what);
    Fixture up;
    up.greet();
    up.ask(1);
    up.receive(r.reply + std::string(1'000, 'x') + "\r\n");
    up.expect_closing(r.reason, r.what);
    EXPECT_TRUE(up.replies.empty());
  }
}

TEST(Session, a_reply_of_an_impossible_type_closes_and_is_not_told) {
  for (const std::string& reply :
       {std::string(":1\r\n"), std::string("*0\r\n"), bulk("OK"), std::string("*2\r\n+OK\r\n+OK\r\n"),
        std::string("#t\r\n"), std::string("+QUEUED\r\n"), std::string("OK\r\n"), std::string("+OK\r?")}) {
    Fixture f;
    f.greet();
    f.ask(1);
    f.ask(2);
    f.receive(reply + "+OK\r\n");
    f.expect_closing(REDLOCK_E_PROTOCOL, reply.c_str());
    EXPECT_TRUE(f.replies.empty()) << reply;
  }
  Fixture f;
  f.greet();
  f.ask(1, Op::release);
  f.receive("+OK\r\n");
  f.expect_closing(REDLOCK_E_PROTOCOL);
}

TEST(Session, a_master_that_became_another_is_greeted_again) {
  for (const auto& [error, reason] :
       {std::pair("-READONLY You can't write against a read only replica.\r\n", REDLOCK_E_READONLY),
        std::pair("-MASTERDOWN Link is down\r\n", REDLOCK_E_READONLY),
        std::pair("-NOAUTH Authentication required.\r\n", REDLOCK_E_AUTH)}) {
    Fixture f;
    f.greet();
    f.ask(1);
    f.ask(2);
    f.receive(std::string(error) + "+OK\r\n");
    ASSERT_EQ(f.replies.size(), 1u) << "the vote is told, then nothing more";
    EXPECT_EQ(f.replies[0].meaning.error, reason);
    f.expect_closing(reason, error);
  }
}

TEST(Session, scripts_are_spelled_out_until_they_are_known) {
  Fixture f;
  f.greet();
  EXPECT_FALSE(f.session->spell_out());
  f.ask(1, Op::release);
  f.receive("-NOSCRIPT No matching script.\r\n");
  EXPECT_TRUE(f.session->spell_out());
  ASSERT_EQ(f.replies.size(), 1u);
  EXPECT_EQ(f.replies[0].meaning.error, REDLOCK_E_NOSCRIPT);
  f.ask(2, Op::release);
  f.receive(":1\r\n");
  EXPECT_FALSE(f.session->spell_out());
  for (const char* answer : {"+OK\r\n", "_\r\n", "-OOM no\r\n"}) {
    f.ask(3);
    f.receive("-NOSCRIPT none\r\n");
    EXPECT_TRUE(f.session->spell_out());
    f.ask(3);
    f.receive(answer);
    EXPECT_FALSE(f.session->spell_out()) << "an acquire may be a script, too: " << answer;
  }
  f.ask(4, Op::extend);
  f.receive("-NOSCRIPT\r\n");
  EXPECT_TRUE(f.session->spell_out());
  f.break_off();
  f.greet();
  EXPECT_FALSE(f.session->spell_out()) << "the greeting loads them";
}

TEST(Session, a_command_with_its_script_by_reference) {
  Fixture f;
  f.greet();
  Subject s;
  s.names = "valve";
  s.value_hex = "0011223344556677889900112233445566778899";
  s.client_name = "gw-17";
  const Command release = Command::plain(test::space(), Op::release, s, false);
  f.session->ask(Op::release, 1, 0, release, f.now);
  f.ask(2);
  EXPECT_EQ(f.sent(),
            text(release.head()) + test::text_of(release_script) + text(release.tail()) + text(any_command().head()));
  const Command extend = Command::plain(test::space(), Op::extend, s, false);
  f.session->ask(Op::extend, 1, 0, extend, f.now);
  f.ask(2);
  EXPECT_EQ(f.sent(),
            text(extend.head()) + test::text_of(extend_script) + text(extend.tail()) + text(any_command().head()))
      << "of two texts";
}

// One connection's whole life, its input cut in two at every place, and byte by byte.
TEST(Session, any_pieces_of_input_are_the_same) {
  const auto run = [](const std::function<void(Fixture&, const std::string&)>& feed) {
    Fixture f;
    f.connect();
    std::string wire = f.sent();
    feed(f, hello());
    wire += f.sent();
    feed(f, ">2\r\n" + bulk("invalidate") + "_\r\n" + ready + bulk(Fixture::nonce_of(wire)));
    EXPECT_EQ(f.session->state(), State::up);
    for (uint16_t i = 0; i < 5; ++i) f.ask(i, i < 3 ? Op::acquire : Op::release);
    wire += f.sent();
    feed(f, "+OK\r\n_\r\n-OOM no\r\n|1\r\n+x\r\n+y\r\n:1\r\n-NOSCRIPT none\r\n");
    EXPECT_EQ(f.session->wish(), Wish::none);
    for (const Reply& r : f.replies) {
      wire += std::to_string(r.claim) + ' ' + std::to_string(static_cast<int>(r.meaning.answer)) + ' ' +
              std::to_string(r.meaning.error) + '\n';
    }
    EXPECT_EQ(f.replies.size(), 6u) << "and the push";
    EXPECT_EQ(f.session->in_flight(), 0u);
    return wire;
  };
  const std::string whole = run([](Fixture& f, const std::string& s) { f.receive(s); });
  for (size_t split = 0; split < hello().size(); ++split) {
    const std::string two = run([&](Fixture& f, const std::string& s) {
      f.receive(s.substr(0, split));
      if (split < s.size()) f.receive(s.substr(split));
    });
    ASSERT_EQ(two, whole) << "split at " << split;
  }
  const std::string byte_by_byte = run([](Fixture& f, const std::string& s) {
    for (const char c : s) f.receive(std::string(1, c));
  });
  EXPECT_EQ(byte_by_byte, whole);
}

// ---- time -----------------------------------------------------------------------------------------------------

TEST(Session, a_connection_that_does_not_come) {
  Fixture f;
  f.session->connecting(f.now);
  f.session->on_time(at(1'499));
  EXPECT_EQ(f.session->wish(), Wish::none);
  f.session->on_time(at(1'500));
  f.expect_closing(REDLOCK_E_CONNECT);
  f.session->connected(at(1'500), 1);  // the two met
  EXPECT_EQ(f.sent(), "");
  f.expect_closing(REDLOCK_E_CONNECT);
}

TEST(Session, a_greeting_that_does_not_end) {
  Fixture f;
  f.session->connecting(f.now);
  f.now = at(1'400);
  f.session->connected(f.now, 1);
  EXPECT_EQ(f.session->deadline(), at(1'900)) << "connect and greeting, each";
  f.receive(hello() + ready);
  f.session->on_time(at(1'899));
  EXPECT_EQ(f.session->wish(), Wish::none);
  f.session->on_time(at(1'900));
  f.expect_closing(REDLOCK_E_NODE_TIMEOUT);
}

TEST(Session, suspect_and_back) {
  Fixture f;
  f.greet();
  f.ask(1);
  f.now = at(1'030);
  f.ask(2);
  EXPECT_EQ(f.session->deadline(), at(1'050));
  f.session->on_time(at(1'049));
  EXPECT_TRUE(f.session->votes());
  EXPECT_FALSE(f.session->changed());
  f.session->on_time(at(1'050));
  EXPECT_EQ(f.session->state(), State::suspect);
  EXPECT_TRUE(f.session->take_changed());
  EXPECT_FALSE(f.session->changed());
  EXPECT_FALSE(f.session->votes());
  EXPECT_TRUE(f.session->connected()) << "deletes still go to it";
  EXPECT_EQ(f.session->wish(), Wish::none);
  f.now = at(1'060);
  f.ask(1, Op::release);
  f.receive("+OK\r\n_\r\n");
  EXPECT_FALSE(f.session->votes()) << "not before it has answered everything";
  f.receive(":1\r\n");
  EXPECT_TRUE(f.session->votes());
  EXPECT_EQ(f.session->state(), State::up);
  EXPECT_TRUE(f.session->take_changed());
  ASSERT_EQ(f.replies.size(), 3u);
  EXPECT_EQ(f.session->deadline(), at(1'060 + 5'000)) << "the next ping";
}

TEST(Session, the_oldest_request_counts) {
  Fixture f;
  f.greet();
  f.ask(1);
  f.now = at(1'040);
  f.ask(2);
  f.receive("+OK\r\n");
  EXPECT_EQ(f.session->deadline(), at(1'090));
  f.session->on_time(at(1'089));
  EXPECT_TRUE(f.session->votes());
  f.session->on_time(at(1'090));
  EXPECT_FALSE(f.session->votes());
}

TEST(Session, a_suspect_is_closed_in_the_end) {
  Fixture f;
  f.greet();
  f.ask(1);
  f.now = at(1'500);
  f.session->on_time(at(1'050));
  EXPECT_EQ(f.session->deadline(), at(3'000));
  f.ask(1, Op::release);
  f.session->on_time(at(2'999));
  EXPECT_EQ(f.session->wish(), Wish::none);
  f.session->on_time(at(3'000));
  f.expect_closing(REDLOCK_E_NODE_TIMEOUT);
}

TEST(Session, a_suspect_that_answers_slowly_is_given_its_time_for_each) {
  Fixture f;
  f.greet();
  f.ask(1);
  f.now = at(1'500);
  f.session->on_time(at(1'050));
  f.ask(2, Op::release);
  f.now = at(2'900);
  f.receive("+OK\r\n");
  EXPECT_EQ(f.session->state(), State::suspect);
  EXPECT_EQ(f.session->deadline(), at(3'500)) << "from the oldest that is unanswered";
  f.session->on_time(at(3'499));
  EXPECT_EQ(f.session->wish(), Wish::none);
  f.session->on_time(at(3'500));
  f.expect_closing(REDLOCK_E_NODE_TIMEOUT);
}

// The process was stopped: the answer may be waiting unread, so the connection is not closed before it can be read.
TEST(Session, a_stall_of_our_own_is_not_the_masters) {
  Fixture f;
  f.greet();
  f.ask(1);
  f.now = at(60'000);
  f.session->on_time(f.now);
  EXPECT_EQ(f.session->state(), State::suspect);
  EXPECT_EQ(f.session->wish(), Wish::none);
  EXPECT_EQ(f.session->deadline(), at(60'050));
  f.receive("+OK\r\n");
  EXPECT_TRUE(f.session->votes());

  f.ask(2);
  f.now = at(120'000);
  f.session->on_time(f.now);
  f.session->on_time(at(120'050));
  f.expect_closing(REDLOCK_E_NODE_TIMEOUT);
}

TEST(Session, an_idle_connection_is_tried) {
  Fixture f;
  f.greet();
  EXPECT_EQ(f.session->deadline(), at(6'000));
  f.session->on_time(at(5'999));
  EXPECT_EQ(f.sent(), "");
  f.now = at(6'000);
  f.session->on_time(f.now);
  const std::string first = f.sent();
  EXPECT_EQ(first, command({"PING", Fixture::nonce_of(first)}));
  EXPECT_EQ(f.session->deadline(), at(6'050));
  f.session->on_time(at(6'001));
  EXPECT_EQ(f.sent(), "") << "once";
  f.now = at(6'010);
  f.receive(bulk(Fixture::nonce_of(first)));
  EXPECT_EQ(f.session->deadline(), at(11'010));
  f.now = at(11'010);
  f.session->on_time(f.now);
  const std::string second = f.sent();
  EXPECT_NE(Fixture::nonce_of(second), Fixture::nonce_of(first));
  f.receive(bulk(Fixture::nonce_of(first)));
  f.expect_closing(REDLOCK_E_PROTOCOL, "an old nonce");
}

TEST(Session, a_connection_in_use_is_not_tried) {
  Fixture f;
  f.greet();
  f.now = at(5'999);
  f.ask(1);
  f.receive("+OK\r\n");
  f.sent();
  f.session->on_time(at(6'000));
  EXPECT_EQ(f.sent(), "");
  EXPECT_EQ(f.session->deadline(), at(10'999));
}

// ---- strays, where no run id is known -----------------------------------------------------------------------------

TEST(Session, without_a_guard_strays_stay_at_large) {
  for (const bool resp3 : {true, false}) {
    Fixture f;
    f.greet();
    f.ask(1);
    f.break_off();
    f.session->leave_strays(true);
    f.news.clear();
    f.connect();
    std::string said = f.sent();
    f.receive(resp3 ? hello() : "-ERR unknown command 'HELLO'\r\n");
    const std::string rest = f.sent();
    f.receive(resp3 ? ready : "*1\r\n" + bulk("master") + loaded);
    f.take_news();
    EXPECT_TRUE(f.news.empty()) << "not before it is up";
    f.receive(bulk(Fixture::nonce_of(rest)));
    EXPECT_EQ(f.session->state(), State::up);
    said += rest + f.sent();
    for (const char* word : {"KILL", "INFO", "ID"}) EXPECT_EQ(said.find(bulk(word)), std::string::npos) << word;
    ASSERT_EQ(f.news.size(), 1u);
    EXPECT_EQ(f.news[0].strays, Strays::at_large);
    EXPECT_FALSE(f.news[0].identified || f.news[0].withdrawn || f.news[0].stepped || f.news[0].wants_boot_time);
    EXPECT_EQ(f.session->take_news().strays, Strays::none) << "told once";
  }
}

TEST(Session, without_strays_nothing_is_told_of_them) {
  Fixture f;
  f.greet();
  f.break_off();
  f.session->leave_strays(false);
  f.greet();
  f.take_news();
  EXPECT_TRUE(f.news.empty());
}

TEST(Session, strays_are_told_of_when_a_connection_is_up_at_last) {
  Fixture f;
  f.greet();
  f.ask(1);
  f.break_off();
  f.session->leave_strays(true);
  for (int i = 0; i < 3; ++i) {
    f.connect();
    f.receive(hello());
    f.sent();
    f.break_off();
    f.session->leave_strays(true);
    EXPECT_TRUE(f.news.empty());
  }
  f.greet();
  ASSERT_EQ(f.news.size(), 1u);
  EXPECT_EQ(f.news[0].strays, Strays::at_large);
}

// ---- what is told of a master ---------------------------------------------------------------------------------

TEST(Session, the_last_error_is_of_this_connection_and_no_missing_script) {
  Fixture f;
  f.greet();
  EXPECT_EQ(f.session->last_error(), 0);
  f.ask(1);
  f.receive("-OOM no\r\n");
  EXPECT_EQ(f.session->last_error(), REDLOCK_E_OOM);
  f.ask(2, Op::release);
  f.receive("-NOSCRIPT no\r\n");
  EXPECT_EQ(f.session->last_error(), REDLOCK_E_OOM);
  f.ask(3);
  f.receive("+OK\r\n");
  EXPECT_EQ(f.session->last_error(), REDLOCK_E_OOM) << "the last one, not one of now";
  EXPECT_EQ(f.session->reason(), 0);
  EXPECT_EQ(f.session->errors(), 2u);
  f.break_off();
  EXPECT_EQ(f.session->last_error(), REDLOCK_E_DISCONNECTED) << "why it is not up";
  f.greet();
  EXPECT_EQ(f.session->last_error(), 0);
}

// A user who may acquire and not delete leaves keys behind: this must not happen without a word.
TEST(Session, a_delete_that_is_not_permitted_is_told_as_long_as_it_is) {
  Fixture f;
  f.greet();
  const auto answer = [&f](Op op, const char* bytes) {
    f.ask(1, op);
    f.sent();
    f.receive(bytes);
    return f.session->take_changed();
  };
  EXPECT_FALSE(answer(Op::acquire, "-NOPERM no\r\n")) << "that is a vote";
  EXPECT_EQ(f.session->reason(), 0);
  EXPECT_TRUE(answer(Op::release, "-NOPERM no\r\n"));
  EXPECT_EQ(f.session->reason(), REDLOCK_E_NOPERM);
  EXPECT_TRUE(f.session->votes()) << "and it is up all the same";
  EXPECT_FALSE(answer(Op::release, "-NOPERM no\r\n")) << "told once";
  EXPECT_FALSE(answer(Op::acquire, "+OK\r\n"));
  EXPECT_FALSE(answer(Op::release, "-NOSCRIPT no\r\n")) << "says nothing of permissions";
  EXPECT_EQ(f.session->reason(), REDLOCK_E_NOPERM);
  EXPECT_TRUE(answer(Op::release, ":1\r\n"));
  EXPECT_EQ(f.session->reason(), 0);
  EXPECT_TRUE(answer(Op::release, "-NOPERM no\r\n"));
  EXPECT_TRUE(answer(Op::release, ":0\r\n")) << "deleted or not: it is permitted";
  EXPECT_FALSE(answer(Op::release, "-OOM no\r\n"));
  EXPECT_TRUE(answer(Op::release, "-NOPERM no\r\n"));
  f.break_off();
  EXPECT_EQ(f.session->reason(), REDLOCK_E_DISCONNECTED);
}

// A port that speaks TLS only closes, or says what is no RESP.
TEST(Session, a_connection_that_is_closed_before_its_first_answer_has_a_reason_of_its_own) {
  Fixture f;
  f.greet();
  f.break_off();
  EXPECT_EQ(f.session->reason(), REDLOCK_E_DISCONNECTED) << "it has answered";
  f.connect();
  f.break_off();
  EXPECT_EQ(f.session->reason(), REDLOCK_E_NO_GREETING);
  f.connect();
  f.receive(hello());
  f.break_off();
  EXPECT_EQ(f.session->reason(), REDLOCK_E_DISCONNECTED);
  f.master.password = "secret";
  f.connect();
  f.receive("-ERR unknown command 'HELLO'\r\n");  // and AUTH is alone in flight
  f.break_off();
  EXPECT_EQ(f.session->reason(), REDLOCK_E_DISCONNECTED);
  f.connect();
  f.break_off(REDLOCK_E_NODE_TIMEOUT);
  EXPECT_EQ(f.session->reason(), REDLOCK_E_NODE_TIMEOUT);
  f.session->on_time(f.session->deadline());
  f.session->connecting(f.now);
  f.break_off();
  EXPECT_EQ(f.session->reason(), REDLOCK_E_DISCONNECTED) << "nobody was asked";
}

TEST(Session, owes_an_answer_about_a_claim_until_all_are_there_deletes_apart) {
  Fixture f(8);
  f.greet();
  for (int round = 0; round < 10; ++round) {  // around the FIFO
    EXPECT_FALSE(f.session->owes_answer(5));
    f.ask(5);
    f.ask(6, Op::extend);
    f.ask(7, Op::release);
    look(f, 8);
    f.ask(5, Op::extend);
    EXPECT_TRUE(f.session->owes_answer(5));
    EXPECT_TRUE(f.session->owes_answer(6));
    EXPECT_FALSE(f.session->owes_answer(7)) << "a delete";
    EXPECT_FALSE(f.session->owes_answer(8)) << "a look is about a waiter, and has numbers of its own";
    EXPECT_FALSE(f.session->owes_answer(0)) << "nor are the session's own requests about the first claim";
    f.receive("+OK\r\n:1\r\n");
    EXPECT_TRUE(f.session->owes_answer(5));
    EXPECT_FALSE(f.session->owes_answer(6));
    f.receive(":1\r\n+OK\r\n:5\r\n:1\r\n");
    f.sent();
  }
  f.ask(5);
  f.break_off();
  EXPECT_FALSE(f.session->owes_answer(5));
}

// ---- ends and beginnings --------------------------------------------------------------------------------------

TEST(Session, all_is_forgotten_when_it_breaks) {
  Fixture f;
  f.greet();
  f.ask(1);
  f.receive("+O");  // half a reply
  f.break_off();
  EXPECT_EQ(f.session->state(), State::down);
  EXPECT_TRUE(f.session->take_changed());
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

TEST(Session, resp2_is_not_for_ever) {
  Fixture f;
  f.connect();
  f.receive("-ERR unknown command 'HELLO'\r\n");
  f.break_off();
  EXPECT_FALSE(f.session->resp3());
  f.connect();
  EXPECT_EQ(f.sent(), hello_command) << "it may have been updated";
}

// The pause before the next attempt lies between half of a ceiling and all of it; the ceiling doubles up to its cap.
TEST(Session, reconnects_with_growing_pauses) {
  for (const uint32_t random : {0u, 0x80000000u, UINT32_MAX}) {
    Fixture f;
    int64_t ceiling = 100;
    for (int i = 0; i < 40; ++i) {
      ASSERT_EQ(f.session->wish(), Wish::connect);
      f.session->connecting(f.now);
      f.break_off(REDLOCK_E_CONNECT, random);
      EXPECT_EQ(f.session->wish(), Wish::none);
      const Instant next = f.session->deadline();
      EXPECT_GT(next, f.now + Duration::ms(ceiling / 2));
      EXPECT_LE(next, f.now + Duration::ms(ceiling));
      EXPECT_TRUE(random != 0 || next < f.now + Duration::ms(ceiling / 2 + 1)) << "the whole range is reached";
      EXPECT_TRUE(random != UINT32_MAX || next + Duration::ms(1) > f.now + Duration::ms(ceiling));
      f.session->on_time(next + Duration::ns(-1));
      EXPECT_EQ(f.session->wish(), Wish::none);
      f.now = next;
      f.session->on_time(f.now);
      ceiling = std::min<int64_t>(2 * ceiling, 5'000);
    }
  }
}

TEST(Session, pauses_begin_anew_after_it_was_up) {
  Fixture f;
  for (int i = 0; i < 6; ++i) {
    f.connect();
    f.break_off();
    f.now = f.session->deadline();
    f.session->on_time(f.now);
  }
  f.greet();
  f.break_off();
  EXPECT_LE(f.session->deadline(), f.now + Duration::ms(100));
}

TEST(Session, nothing_is_tried_quickly_that_only_a_human_can_mend) {
  for (const int reason : {REDLOCK_E_AUTH, REDLOCK_E_NOPERM, REDLOCK_E_ROLE, REDLOCK_E_MODE, REDLOCK_E_DUPLICATE,
                           REDLOCK_E_DENIED, REDLOCK_E_PROTOCOL}) {
    Fixture f;
    f.connect();
    f.session->disconnect(reason);
    f.break_off();
    EXPECT_GT(f.session->deadline(), f.now + Duration::ms(2'500)) << redlock_err_name(reason);
  }
  for (const int reason : {REDLOCK_E_LOADING, REDLOCK_E_CONNECT, REDLOCK_E_NODE_TIMEOUT, REDLOCK_E_MAXCLIENTS}) {
    Fixture f;
    f.connect();
    f.session->disconnect(reason);
    f.break_off();
    EXPECT_LE(f.session->deadline(), f.now + Duration::ms(100)) << redlock_err_name(reason);
  }
}

TEST(Session, disconnected_for_the_first_reason) {
  Fixture f;
  f.greet();
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
  up.session->on_time(at(1'000'000));
  EXPECT_EQ(up.session->wish(), Wish::none) << "not even once more";
  up.session->close_quietly();  // as the client does, so that nothing is due any more
  up.session->on_time(at(1'000'000'000));
  EXPECT_EQ(up.session->wish(), Wish::none);
  EXPECT_EQ(up.session->deadline(), Instant::never());

  Fixture down;
  down.session->close_quietly();
  EXPECT_EQ(down.session->wish(), Wish::none);
  down.session->on_time(at(1'000'000'000));
  EXPECT_EQ(down.session->wish(), Wish::none);
  EXPECT_EQ(down.session->deadline(), Instant::never());
}

TEST(Session, changes_are_told_once) {
  Fixture f;
  EXPECT_TRUE(f.session->take_changed()) << "the first state is news";
  EXPECT_FALSE(f.session->take_changed());
  f.session->connecting(f.now);
  EXPECT_TRUE(f.session->take_changed());
  f.session->connected(f.now, 1);
  EXPECT_TRUE(f.session->take_changed());
  EXPECT_FALSE(f.session->changed());
}

TEST(Session, a_hello_as_an_array_serves_as_well) {
  Fixture f;
  f.connect();
  f.sent();
  f.receive("*4\r\n" + bulk("mode") + bulk("standalone") + bulk("role") + bulk("master"));
  EXPECT_EQ(f.session->wish(), Wish::none);
  EXPECT_EQ(f.sent().rfind(tracking_command, 0), 0u);
}

TEST(Session, a_hello_with_a_text_longer_than_the_buffer) {
  Fixture f;
  f.connect();
  f.sent();
  f.receive(map({bulk("version"), bulk(std::string(1'000, 'v')), bulk("role"), bulk("master")}));
  EXPECT_EQ(f.session->wish(), Wish::none);
  EXPECT_EQ(f.sent().rfind(tracking_command, 0), 0u);
}

TEST(Session, a_hello_whose_last_word_is_the_refusal) {
  Fixture f;
  f.connect();
  f.sent();
  f.receive(map({bulk("mode"), bulk("standalone"), bulk("role"), bulk("replica")}));
  f.expect_closing(REDLOCK_E_ROLE);
  EXPECT_EQ(f.sent(), "");
}

TEST(Session, a_hello_without_a_role) {
  Fixture f;
  f.connect();
  f.sent();
  f.receive(map({bulk("mode"), bulk("standalone")}));
  f.expect_closing(REDLOCK_E_PROTOCOL);
}

TEST(Session, a_ping_waits_for_room) {
  Fixture f;
  f.greet();
  f.session->tx().append(bytes(std::string(1'000, '.')));  // what the socket has not taken
  f.now = f.session->deadline();
  f.session->on_time(f.now);
  EXPECT_EQ(f.session->in_flight(), 0u);
  EXPECT_EQ(f.sent().size(), 1'000u);
  f.session->on_time(f.now);
  EXPECT_EQ(f.session->in_flight(), 1u);
  EXPECT_NE(Fixture::nonce_of(f.sent()), "");
}

TEST(Session, nothing_is_told_while_it_is_down) {
  Fixture f;
  Reply reply;
  EXPECT_FALSE(f.session->next(f.now, reply));
  f.greet();
  f.break_off();
  EXPECT_TRUE(f.session->take_changed());
  f.break_off();
  EXPECT_FALSE(f.session->take_changed()) << "it was down already";
  EXPECT_FALSE(f.session->next(f.now, reply));
}

}  // namespace
}  // namespace redlock
