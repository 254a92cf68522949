// SPDX-License-Identifier: MIT
//
// What the tests of configurations share: a configuration that is freed at the end of its scope.
#pragma once
#include <gtest/gtest.h>
#include <redlock/redlock.h>

#include <memory>
#include <string>

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

// The sentence of a call that had to be refused.
inline std::string why(const Config& cfg, int result) {
  EXPECT_EQ(result, REDLOCK_E_CONFIG);
  return redlock_config_error(cfg.get());
}

struct AConfig : ::testing::Test {
  const Config cfg = make();
};

}  // namespace redlock::test
