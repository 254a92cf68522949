// SPDX-License-Identifier: MIT
//
// A site of real masters whose clients have the guard, with a guard time short enough to see how it ends.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "client_harness.hpp"
#include "support/redis_server.hpp"
#include "support/server_kind.hpp"

namespace redlock::test {

struct Site {
  explicit Site(unsigned n, uint32_t max_ttl = 1'000, RedisServer::Options options = {}) : max_ttl_ms(max_ttl) {
    for (unsigned i = 0; i < n; ++i) masters.push_back(std::make_unique<RedisServer>(options));
  }
  RedisServer& operator[](unsigned m) { return *masters.at(m); }
  std::vector<std::string> urls() const {
    std::vector<std::string> all;
    for (const auto& master : masters) all.push_back(master->url());
    return all;
  }
  Settings settings(bool commission = true) const {
    Settings s;
    s.urls = urls();
    s.strings = {{"guard", "strict"}};
    s.numbers = {{"defaults.ttl_ms", max_ttl_ms},
                 {"timing.max_ttl_ms", max_ttl_ms},
                 {"timing.node_timeout_ms", std::min(max_ttl_ms / 10 * 9, 2'000u)},
                 {"timing.suspect_close_ms", 5'000},
                 {"timing.ping_interval_ms", 500}};
    s.commission = commission;
    return s;
  }
  redlock_acquire_opts_t longest(int32_t wait_ms = REDLOCK_TRY_ONCE, uint32_t flags = 0) const {
    return options(max_ttl_ms, wait_ms, REDLOCK_F_NO_RENEW | flags);
  }
  // Every lock granted before has ended after so long.
  int64_t guard_ns() const { return int64_t{max_ttl_ms} * 1'010'000 + 2'000'000; }
  std::string record(unsigned m, const std::string& field) {
    return (*this)[m].command({"HGET", "redlock::meta", field});
  }

  uint32_t max_ttl_ms;
  std::vector<std::unique_ptr<RedisServer>> masters;
  Loop loop;
};

// Runs until this master is guarded for this reason.
inline void wait_guarded(Loop& loop, Client& client, uint32_t index, int err) {
  EXPECT_TRUE(loop.run_until([&] {
    return client.master(index).state == REDLOCK_MASTER_GUARDED && client.master(index).err == err;
  })) << client.master(index).state << " " << redlock_err_name(client.master(index).err);
}

// A user with every permission but these: "-info", "-client|tracking".
inline void deny(RedisServer& server, const std::vector<std::string>& permissions) {
  std::vector<std::string> rules = {"reset", "on", ">secret", "~*", "&*", "+@all"};
  rules.insert(rules.end(), permissions.begin(), permissions.end());
  EXPECT_EQ(set_user(server, "locker", rules), "OK");
}
inline void log_in(Settings& settings) {
  settings.strings.push_back({"username", "locker"});
  settings.strings.push_back({"password", "secret"});
}

}  // namespace redlock::test
