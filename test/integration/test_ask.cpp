// SPDX-License-Identifier: MIT
//
// redlock_site_ask() on real servers: logins, permissions, roles, replies that are too long, servers that stand still.
#include <gtest/gtest.h>
#include <netdb.h>
#include <redlock/site.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "client_harness.hpp"
#include "support/redis_server.hpp"

// In front of libc: a name under .invalid exists nowhere (RFC 6761, section 6.4), and no question leaves this machine.
extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints, addrinfo** result) {
  if (std::strstr(name, ".invalid") != nullptr) return EAI_NONAME;
  static const auto libc_getaddrinfo = redlock::test::real(&getaddrinfo, "getaddrinfo");
  return libc_getaddrinfo(name, service, hints, result);
}

namespace redlock::test {
namespace {

struct Answer {
  int err = 0;
  std::string text;  // of the first item
  int64_t number = 0;
  unsigned items = 0;
  uint32_t rtt_us = 0;
};

struct Asked {
  int result = 0;
  std::vector<Answer> answers;
};

Asked ask(const std::string& url, const std::vector<std::vector<std::string>>& commands, size_t size = 64 * 1'024,
          uint32_t master = 0) {
  Settings settings;
  settings.urls = {url};
  // Only a server that stands still waits for these times: a busy machine must not pass for one.
  settings.numbers = {
      {"timing.node_timeout_ms", 500}, {"timing.connect_timeout_ms", 1'500}, {"timing.suspect_close_ms", 1'500}};
  redlock_config_t* cfg = configure(settings);
  std::vector<std::vector<redlock_resource_t>> words;
  std::vector<redlock_question_t> questions;
  for (const auto& command : commands) {
    auto& list = words.emplace_back();
    for (const auto& word : command) list.push_back({word.data(), static_cast<uint32_t>(word.size())});
  }
  for (const auto& list : words) {
    questions.push_back({list.data(), static_cast<uint32_t>(list.size()), 0, nullptr, 0, 0, 0});
  }
  std::vector<char> buf(size);
  Asked out;
  const uint32_t count = static_cast<uint32_t>(questions.size());
  out.result = redlock_site_ask(cfg, master, questions.data(), count, buf.data(), size);
  for (const redlock_question_t& q : questions) {
    const bool text = q.items != 0 && (q.item->type == REDLOCK_ITEM_TEXT || q.item->type == REDLOCK_ITEM_ERROR);
    out.answers.push_back({q.err, text ? std::string(q.item->text, static_cast<size_t>(q.item->number)) : "",
                           q.items != 0 ? q.item->number : 0, q.items, q.rtt_us});
  }
  redlock_config_free(cfg);
  return out;
}

TEST(Ask, a_server_and_fifty_round_trips) {
  RedisServer server;
  std::vector<std::vector<std::string>> commands(50, {"PING"});
  commands.push_back({"INFO"});
  commands.push_back({"CONFIG", "GET", "maxmemory*"});
  for (const std::string& url : {server.url(), server.url_for_host("localhost")}) {
    const Asked asked = ask(url, commands);
    ASSERT_EQ(asked.result, 0) << redlock_err_name(asked.result);
    for (unsigned i = 0; i < 50; ++i) {
      EXPECT_EQ(asked.answers[i].text, "PONG");
      EXPECT_GT(asked.answers[i].rtt_us, 0u);
    }
    EXPECT_NE(asked.answers[50].text.find("run_id:"), std::string::npos);
    EXPECT_GT(asked.answers[50].text.size(), 2'000u) << "longer than the receive buffer";
    EXPECT_EQ(asked.answers[51].items, 1u + static_cast<unsigned>(asked.answers[51].number));
  }
}

TEST(Ask, servers_that_stand_still_or_are_gone) {
  RedisServer server;
  const Asked blocked = ask(server.url(), {{"PING"}, {"BLPOP", "none", "0"}, {"PING"}});
  EXPECT_EQ(blocked.result, REDLOCK_E_NODE_TIMEOUT);
  EXPECT_EQ(blocked.answers[0].text, "PONG");
  EXPECT_EQ(blocked.answers[1].err, REDLOCK_E_NODE_TIMEOUT);
  server.freeze();
  EXPECT_EQ(ask(server.url(), {{"PING"}}).result, REDLOCK_E_NODE_TIMEOUT);
  server.kill_hard();
  EXPECT_EQ(ask(server.url(), {{"PING"}}).result, REDLOCK_E_REFUSED);
  EXPECT_EQ(ask("redis://no-such-host.invalid", {{"PING"}}).result, REDLOCK_E_RESOLVE);
  EXPECT_EQ(ask(server.url(), {{"SET", "k", std::string(REDLOCK_TX_BYTES_MAX, 'x')}}).result, REDLOCK_E_INVAL);
}

// redlock_site_left() on records as scripts/move.lua writes them.
TEST(Ask, what_masters_say_of_a_finished_change) {
  std::vector<std::unique_ptr<RedisServer>> servers;
  Settings old_set, new_set, other_set;
  for (int i = 0; i < 3; ++i) old_set.urls.push_back(servers.emplace_back(std::make_unique<RedisServer>())->url());
  new_set.urls = {"redis://127.0.0.1:1"};
  other_set.urls = {"redis://127.0.0.1:1", "redis://127.0.0.1:2"};
  redlock_config_t* const before = configure(old_set);
  redlock_config_t* const after = configure(new_set);
  redlock_config_t* const other = configure(other_set);
  const auto text = [](const redlock_config_t* cfg) {
    redlock_site_facts_t facts{};
    facts.size = sizeof facts;
    EXPECT_EQ(redlock_site_facts(cfg, 0, &facts), 0);
    return std::string(facts.record);
  };
  const std::string q = "0123456789abcdef", left = "left " + text(before) + " > ", to = text(after);
  using Record = std::vector<std::string>;  // desc, q, left
  const Record none, marked = {left + to, q, ""}, entered = {to, q, q + left + to + " 1790000000"},
                     strange = {left + text(other), q, ""}, early = {to, q, q + "left " + text(before)},
                     void_one = {to, q, "fedcba9876543210" + left + to};
  const struct {
    std::vector<Record> masters;
    const redlock_config_t* wanted;
    int result;
    uint32_t say;
    int64_t done_s;
  } rows[] = {
      {{marked, none, marked}, after, 1, 2, 0},
      {{marked, entered, marked}, after, 1, 2, 1'790'000'000},
      {{entered, entered, none}, nullptr, 1, 2, 1'790'000'000},
      {{none, marked, none}, after, 0, 1, 0},
      {{none, marked, none}, nullptr, 0, 1, 0},
      {{marked, marked, marked}, other, 0, 0, 0},
      {{marked, strange, none}, nullptr, 0, 1, 0},
      {{strange, marked, marked}, after, 1, 2, 0},
      {{early, early, early}, after, 0, 0, 0},
      {{void_one, void_one, void_one}, after, 0, 0, 0},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(&row - rows);
    for (size_t m = 0; m < 3; ++m) {
      servers[m]->command({"DEL", "redlock::meta"});
      const Record& r = row.masters[m];
      if (!r.empty()) servers[m]->command({"HSET", "redlock::meta", "desc", r[0], "q", r[1], "left", r[2]});
    }
    redlock_site_left_t out{};
    out.size = sizeof out;
    EXPECT_EQ(redlock_site_left(before, row.wanted, &out), row.result);
    EXPECT_EQ(out.say, row.say);
    EXPECT_EQ(out.done_s, row.done_s);
    EXPECT_EQ(out.masters, row.say != 0 ? 1u : 0u);
  }
  for (redlock_config_t* cfg : {before, after, other}) redlock_config_free(cfg);
}

}  // namespace
}  // namespace redlock::test
