// SPDX-License-Identifier: MIT
//
// Session without a guard: what is written is compared byte by byte with what a server must be asked; what a server may
// answer is fed whole and in pieces; silence, and what is told of the master. The server here only says what a test
// tells it to.
#include "master/session.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/password_file.hpp"
#include "support/lua_scripts.hpp"
#include "support/session_wire.hpp"
#include "support/space.hpp"

namespace redlock {
namespace {

using State = Session::State;
using Wish = Session::Wish;

Instant at(int64_t ms) { return Instant::from_ns(ms * 1'000'000); }
Bytes bytes(std::string_view s) { return Bytes(s.data(), s.size()); }
std::string text(Bytes b) { return std::string(b.data, b.size); }

std::string bulk(std::string_view s) {
  return "$" + std::to_string(s.size()) + "\r\n" + std::string(s) + "\r\n";
}
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
  using SessionWire::ask;
  explicit Fixture(unsigned in_flight = 16, size_t rx_size = 256)
      : tx(new char[1'024]), rx(new char[rx_size]), requests(new Fifo::Request[in_flight + Session::own_requests]) {
    settings.node_timeout = Duration::ms(50);
    settings.suspect_close = Duration::ms(2'000);
    settings.connect_timeout = Duration::ms(500);
    settings.ping_interval = Duration::ms(5'000);
    settings.reconnect_min_ms = 100;
    settings.reconnect_max_ms = 5'000;
    now = at(1'000);
    shared.init(shared_memory, sizeof shared_memory);
    session = std::make_unique<Session>(settings, master, bytes("gw-17"),
                                        Session::Memory{tx.get(), 1'024, rx.get(), rx_size, requests.get(),
                                                        in_flight + Session::own_requests, &shared, 0, &called,
                                                        &has_news, &begins, &awake});
  }
  Fixture(const Fixture&) = delete;

  void connect(uint32_t nonce = 1) {
    if (session->wish() == Wish::none) on_time(later(now, session->deadline()));
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
    session->take_untold();
  }
  void ask(uint16_t claim, Op op = Op::acquire) { SessionWire::ask(op, claim, claim, any_command()); }
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
  std::unique_ptr<Fifo::Request[]> requests;
};

struct Connected : Fixture {
  Connected() { connect(); }
};
struct Greeted : Fixture {
  Greeted() { greet(); }
};

struct Refusal {
  const char* what;
  std::string reply;
  int reason;
};

void look(Fixture& f, uint16_t who) {
  f.session->look(who, 70u + who, Command::look(test::space(), "a:", "valve"), false, f.now);
}

struct AnySession : ::testing::Test {
  Fixture f;
};
struct ConnectedSession : ::testing::Test {
  Connected f;
};
struct GreetedSession : ::testing::Test {
  Greeted f;
};

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
      {"cluster", hello("master", "cluster"), REDLOCK_E_MODE},
      {"sentinel", hello("master", "sentinel"), REDLOCK_E_MODE},
      {"wrong password", "-WRONGPASS invalid username-password pair or user is disabled.\r\n", REDLOCK_E_AUTH},
      {"no password", "-NOAUTH HELLO must be called with the client already authenticated\r\n", REDLOCK_E_AUTH_MISSING},
      {"loading", "-LOADING Redis is loading the dataset in memory\r\n", REDLOCK_E_LOADING},
      {"protected", "-DENIED Redis is running in protected mode\r\n", REDLOCK_E_DENIED},
      {"too many", "-ERR max number of clients reached\r\n", REDLOCK_E_MAXCLIENTS},
      {"not a map", ":1\r\n", REDLOCK_E_PROTOCOL},
      {"not a map", bulk("hello"), REDLOCK_E_PROTOCOL},
      {"not RESP", "HTTP/1.1 400 Bad Request\r\n", REDLOCK_E_PROTOCOL},
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

// ---- ends and beginnings --------------------------------------------------------------------------------------

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

// ---- replies --------------------------------------------------------------------------------------------------

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

// The server has forgotten a login that this client has.
TEST_F(AnySession, a_login_that_is_lost_is_not_missing) {
  f.master.password = "secret";
  f.greet();
  f.ask(1);
  f.receive("-NOAUTH Authentication required.\r\n");
  f.expect_closing(REDLOCK_E_AUTH);
}

// ---- time -----------------------------------------------------------------------------------------------------

TEST_F(AnySession, a_connection_that_does_not_come) {
  f.session->connecting(f.now);
  f.on_time(at(1'499));
  EXPECT_EQ(f.session->wish(), Wish::none);
  f.on_time(at(1'500));
  f.expect_closing(REDLOCK_E_CONNECT_TIMEOUT);
  f.session->connected(at(1'500), 1);  // the two met
  EXPECT_EQ(f.sent(), "");
  f.expect_closing(REDLOCK_E_CONNECT_TIMEOUT);
}

TEST_F(GreetedSession, that_it_is_down_is_told_once) {
  f.break_off();
  EXPECT_TRUE(f.session->take_untold());
  f.break_off();
  EXPECT_FALSE(f.session->take_untold());
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

// The process was stopped. The answer may wait in the socket, so nobody is judged before the socket was read.
TEST_F(GreetedSession, a_pause_of_our_own_is_not_the_masters) {
  f.ask(1);
  f.now = at(60'000);
  f.session->on_time(f.now, at(1'049));
  EXPECT_TRUE(f.session->votes());
  EXPECT_LE(f.session->deadline(), at(1'050)) << "the timer fires at once: the port looks, and does not wait";
  f.receive("+OK\r\n");
  EXPECT_TRUE(f.session->votes());

  f.ask(2);
  f.now = at(120'000);
  f.session->on_time(f.now, at(60'049));
  EXPECT_EQ(f.session->state(), State::up);
  f.session->on_time(f.now, at(60'050));
  EXPECT_EQ(f.session->state(), State::suspect) << "it was looked for, and nothing had come";
  f.session->on_time(f.now, at(119'000));
  f.expect_closing(REDLOCK_E_NODE_TIMEOUT);
}

// ---- what is told of a master ---------------------------------------------------------------------------------

TEST_F(GreetedSession, the_last_error_is_of_this_connection_and_no_missing_script) {
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
TEST_F(GreetedSession, a_delete_that_is_not_permitted_is_told_as_long_as_it_is) {
  const auto answer = [this](Op op, const char* bytes) {
    f.ask(1, op);
    f.sent();
    f.receive(bytes);
    return f.session->take_untold();
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
TEST_F(GreetedSession, a_connection_that_is_closed_before_its_first_answer_has_a_reason_of_its_own) {
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
  f.on_time(f.session->deadline());
  f.session->connecting(f.now);
  f.break_off();
  EXPECT_EQ(f.session->reason(), REDLOCK_E_DISCONNECTED) << "nobody was asked";
}

}  // namespace
}  // namespace redlock
