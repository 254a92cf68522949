// SPDX-License-Identifier: MIT
//
// Servers whose record a maintenance call changes, and the settings of the clients and calls that use some of them.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "client_harness.hpp"
#include "support/redis_server.hpp"

namespace redlock::test {

constexpr uint32_t max_ttl_ms = 1'000;
using Members = std::vector<unsigned>;

struct Servers {
  explicit Servers(unsigned n) {
    for (unsigned i = 0; i < n; ++i) all.push_back(std::make_unique<RedisServer>());
  }
  RedisServer& operator[](unsigned i) { return *all.at(i); }
  std::string field(unsigned i, const std::string& name) {
    return all.at(i)->running() ? all.at(i)->command({"HGET", "redlock::meta", name}) : "";
  }
  bool marked(unsigned i) { return field(i, "desc").rfind("moving ", 0) == 0; }
  std::vector<std::unique_ptr<RedisServer>> all;
};

// A client's or a call's settings for these of the servers.
inline Settings of(Servers& servers, const Members& members, bool commission = false) {
  Settings s;
  for (const unsigned i : members) s.urls.push_back(servers[i].url());
  s.strings = {{"guard", "strict"}};
  s.numbers = {{"defaults.ttl_ms", 1'000},         {"timing.max_ttl_ms", max_ttl_ms},
               {"timing.node_timeout_ms", 500},    {"timing.suspect_close_ms", 1'000},
               {"timing.connect_timeout_ms", 250}};
  s.commission = commission;
  return s;
}

}  // namespace redlock::test
