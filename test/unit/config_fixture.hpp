// SPDX-License-Identifier: MIT
//
// What the tests of configurations share: a configuration that is freed at the end of its scope.
#pragma once
#include <gtest/gtest.h>
#include <redlock/redlock.h>

#include <memory>

namespace redlock::test {

struct FreeConfig {
  void operator()(redlock_config_t* cfg) const { redlock_config_free(cfg); }
};
using Config = std::unique_ptr<redlock_config_t, FreeConfig>;

inline Config make() {
  redlock_config_t* cfg = nullptr;
  EXPECT_EQ(redlock_config_new(&cfg), 0);
  return Config(cfg);
}

struct AConfig : ::testing::Test {
  const Config cfg = make();
};

}  // namespace redlock::test
