// SPDX-License-Identifier: MIT
//
// A session with a guard, and the answers of a server.
#pragma once
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

namespace redlock::session_guard_test {

using testing::Message;
using State = Session::State;
using Wish = Session::Wish;

inline Instant at(int64_t ms) { return Instant::from_ns(ms * 1'000'000); }
inline std::string bulk(std::string_view s) {
  return "$" + std::to_string(s.size()) + "\r\n" + std::string(s) + "\r\n";
}
inline std::string list(const std::vector<std::string>& encoded) {
  std::string s = "*" + std::to_string(encoded.size()) + "\r\n";
  for (const std::string& e : encoded) s += e;
  return s;
}
inline std::string command(const std::vector<std::string>& words) {
  std::vector<std::string> encoded;
  for (const std::string& w : words) encoded.push_back(bulk(w));
  return list(encoded);
}
inline bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

inline const std::string meta = "redlock::meta", seen = "redlock::seen", fingerprint = "v1 n=3",
                         names = "a,b,c";
inline const std::string replid = "2222222222222222", q = "3333333333333333";
inline const std::string tag = "0123456789abcdef";
inline const std::string run_id = "1111111111111111";
inline const std::string seal = run_id + ":" + replid + ":" + q;
inline const std::string boot_id(Settings::boot_id_size, 'b');
inline const std::string null_push = ">2\r\n$10\r\ninvalidate\r\n_\r\n";

// What the server says of itself in a reading: the values of INFO, encoded, in the order of InfoReader::Line.
inline std::string info_of(const std::string& run = run_id, const std::string& id = replid, int replicas = 0,
                           int backlog = 0, const char* policy = "noeviction") {
  return bulk(run + "aaaa") + bulk(id + "bbbb") + bulk("master") + bulk(std::to_string(replicas)) +
         bulk(std::to_string(backlog)) + bulk("standalone") + "_\r\n" + bulk("1000000") + bulk(policy) + bulk("0");
}
// ... where INFO is refused.
inline std::string no_info() {
  std::string s = "-ERR The user executing the script can't run this command or subcommand\r\n";
  for (unsigned i = 1; i < InfoReader::lines; ++i) s += "_\r\n";
  return s;
}
inline std::string whole(const std::string& info, const std::vector<std::string>& fields) {
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
    return command({"EVALSHA", std::string(sha.data, sha.size), "2", meta, seen, "", tag}) + command({"TIME"});
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

}  // namespace redlock::session_guard_test
