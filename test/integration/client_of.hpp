// SPDX-License-Identifier: MIT
//
// What most tests begin with: so many masters, and a client on a loop that reaches all of them.
#pragma once
#include <gtest/gtest.h>

#include <utility>

#include "client_harness.hpp"
#include "support/redis_server.hpp"

namespace redlock::test {

template <size_t N>
class ClientOf : public ::testing::Test {
 protected:
  // The settings name no masters.
  explicit ClientOf(Settings settings = {}) : client(loop, with_urls(std::move(settings))) {}

  // Another program has the resource.
  void taken_by_somebody(const std::string& resource, size_t on_masters = N) {
    for (size_t m = 0; m < on_masters; ++m) masters[m].command({"SET", resource, "somebody"});
  }
  // Until nothing of it is left on any master.
  void expect_gone(const std::string& resource) {
    EXPECT_TRUE(loop.run_until([&] { return masters.holders(resource) == 0; })) << resource;
  }

  Loop loop;
  Cluster masters{N};
  RedisServer& master = masters[0];
  UpClient client;

 private:
  Settings with_urls(Settings settings) {
    settings.urls = masters.urls();
    return settings;
  }
};

}  // namespace redlock::test
