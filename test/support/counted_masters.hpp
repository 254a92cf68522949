// SPDX-License-Identifier: MIT
//
// What the tests that count calls of the heap have in common: three masters, two by TCP and one by unix socket, and a
// configuration that is patient with a loaded machine and quick to connect again.
#pragma once
#include <gtest/gtest.h>
#include <redlock/redlock.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "support/redis_server.hpp"

namespace redlock::test {

struct CountedMasters {
  static constexpr uint32_t count = 3;
  std::vector<std::unique_ptr<RedisServer>> servers;
  std::string password_file;  // of the last

  void start() {
    RedisServer::Options unix_socket;
    unix_socket.unix_socket = true;
    unix_socket.password = "first";
    for (uint32_t m = 0; m < count; ++m) {
      servers.push_back(std::make_unique<RedisServer>(m == 2 ? unix_socket : RedisServer::Options{}));
    }
    password_file = servers[2]->dir() + "/password";
    write_password("first");
  }
  void write_password(const std::string& password) const {
    const std::string next = password_file + ".new";
    std::ofstream(next) << password;
    std::filesystem::permissions(next, std::filesystem::perms(0640));
    std::filesystem::rename(next, password_file);
  }

  void configure(redlock_config_t*& cfg) const {
    ASSERT_EQ(redlock_config_new(&cfg), 0);
    const std::string json = R"({"masters":[{"url":"unix://)" + servers[2]->socket_path() +
                             R"(","password_file":")" + password_file + "\"}]}";
    for (uint32_t m = 0; m < 2; ++m) ASSERT_EQ(redlock_config_add_master(cfg, servers[m]->url().c_str()), 0);
    ASSERT_EQ(redlock_config_load_json(cfg, json.data(), json.size()), 0) << redlock_config_error(cfg);
    // What a restarted master may have forgotten cannot be held for longer than max_ttl.
    const struct {
      const char* field;
      uint32_t value;
    } fields[] = {{"timing.max_ttl_ms", 3'000},
                  {"defaults.ttl_ms", 3'000},
                  {"timing.suspect_close_ms", 10'000},
                  {"timing.node_timeout_ms", 2'000},
                  {"timing.reconnect_min_ms", 10},
                  {"timing.reconnect_max_ms", 20}};
    for (const auto& f : fields) ASSERT_EQ(redlock_config_set_u32(cfg, f.field, f.value), 0) << f.field;
  }
};

}  // namespace redlock::test
