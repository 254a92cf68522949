// SPDX-License-Identifier: MIT
//
// A session without a guard, and a server that only says what a test tells it to.
#pragma once
#include "master/session.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/lua_scripts.hpp"
#include "support/session_wire.hpp"
#include "support/space.hpp"

namespace redlock::session_test {

using State = Session::State;
using Wish = Session::Wish;

inline Instant at(int64_t ms) { return Instant::from_ns(ms * 1'000'000); }
inline Bytes bytes(std::string_view s) { return Bytes(s.data(), s.size()); }
inline std::string text(Bytes b) { return std::string(b.data, b.size); }

inline std::string bulk(std::string_view s) {
  return "$" + std::to_string(s.size()) + "\r\n" + std::string(s) + "\r\n";
}
inline std::string command(const std::vector<std::string>& words) {
  std::string s = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& w : words) s += bulk(w);
  return s;
}
inline std::string map(const std::vector<std::string>& encoded) {
  std::string s = "%" + std::to_string(encoded.size() / 2) + "\r\n";
  for (const std::string& e : encoded) s += e;
  return s;
}

inline std::string hello(const char* role = "master", const char* mode = "standalone") {
  return map({bulk("server"), bulk("redis"), bulk("version"), bulk("7.0.15"), bulk("proto"), ":3\r\n", bulk("id"),
              ":10\r\n", bulk("mode"), bulk(mode), bulk("role"), bulk(role), bulk("modules"), "*0\r\n"});
}
inline const std::string loads = command({"SCRIPT", "LOAD", test::text_of(release_script)}) +
                          command({"SCRIPT", "LOAD", test::text_of(extend_script)});
inline const std::string loaded = bulk(text(release_script.sha)) + bulk(text(extend_script.sha));
inline const std::string tracking_command = command({"CLIENT", "TRACKING", "on", "OPTIN", "NOLOOP"});
inline const std::string ready = "+OK\r\n" + loaded;  // tracking is on, the scripts are known
inline const std::string hello_command = command({"HELLO", "3", "SETNAME", "gw-17"});

inline Command any_command(Space space = test::space()) {
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
                                                        &has_news, &begins});
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

inline void look(Fixture& f, uint16_t who) {
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

}  // namespace redlock::session_test
