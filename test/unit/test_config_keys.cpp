// SPDX-License-Identifier: MIT
//
// Keys by setter: kinds, words, and what is refused; the relations that finish() checks; every sentence literally. Each
// key at, below and above its range stands in test_config_json.cpp, whose values take the same way.
#include "config/config.hpp"
#include "config/keys.hpp"

#include <gtest/gtest.h>

#include <string>

#include "config_fixture.hpp"

namespace {

using redlock::Bytes;
using redlock::guard_wait_not_given;
using redlock::Settings;
using redlock::test::AConfig;
using redlock::test::Config;
using redlock::test::make;
using redlock::test::why;

Config make_with_master() {
  Config cfg = make();
  EXPECT_EQ(redlock_config_add_master(cfg.get(), "redis://10.0.0.1"), 0) << redlock_config_error(cfg.get());
  return cfg;
}

std::string text(Bytes bytes) { return std::string(bytes.data, bytes.size); }

TEST(ConfigKeys, GuardIsOneOfThreeWords) {
  const Config cfg = make_with_master();
  redlock::Settings settings;
  using redlock::GuardMode;
  ASSERT_EQ(redlock::finish(*cfg, settings), 0);
  EXPECT_EQ(settings.guard, GuardMode::strict) << "by default";
  for (const auto& [word, mode] : {std::pair<const char*, GuardMode>{"strict", GuardMode::strict},
                                   {"weak", GuardMode::weak},
                                   {"off", GuardMode::off}}) {
    ASSERT_EQ(redlock_config_set_str(cfg.get(), "guard", word), 0) << word;
    ASSERT_EQ(redlock::finish(*cfg, settings), 0);
    EXPECT_EQ(settings.guard, mode) << word;
  }
  for (const char* word : {"", "Strict", "strict ", "on", "true", "or", "off,", ", ", "weak or strict", "wea"}) {
    EXPECT_EQ(redlock_config_set_str(cfg.get(), "guard", word), REDLOCK_E_CONFIG) << word;
    EXPECT_EQ(redlock_config_error(cfg.get()), "guard: \"" + std::string(word) + "\" is not off, weak or strict");
  }
}

TEST_F(AConfig, FenceIsFloorOrStrict) {
  EXPECT_EQ(redlock_config_add_master(cfg.get(), "redis://10.0.0.1"), 0);
  redlock::Settings settings;
  ASSERT_EQ(redlock::finish(*cfg, settings), 0);
  EXPECT_FALSE(settings.fence_strict);
  EXPECT_EQ(redlock_config_set_str(cfg.get(), "fence", "strict"), 0);
  ASSERT_EQ(redlock::finish(*cfg, settings), 0);
  EXPECT_TRUE(settings.fence_strict);
  EXPECT_EQ(redlock_config_set_str(cfg.get(), "fence", "strict "), REDLOCK_E_CONFIG);
  EXPECT_STREQ(redlock_config_error(cfg.get()), "fence: \"strict \" is not floor or strict");
  ASSERT_EQ(redlock::finish(*cfg, settings), 0);
  EXPECT_TRUE(settings.fence_strict);
}

TEST_F(AConfig, ABufferHoldsTheLongestErrorOfAServerThatStillTakesCommands) {
  EXPECT_EQ(why(cfg, redlock_config_set_u32(cfg.get(), "limits.rx_bytes", 511)),
            "limits.rx_bytes: 511 is not in 512..65536");
}

TEST_F(AConfig, ClientNameIsPlain) {
  EXPECT_EQ(redlock_config_set_str(cfg.get(), "client_name", "AZaz09._-"), 0);
  EXPECT_EQ(why(cfg, redlock_config_set_str(cfg.get(), "client_name", "gw\n\xFFx\xC3\xA9")),
            "client_name: \"gw\\n\\ufffdx\xC3\xA9\" is not of A-Z a-z 0-9 . _ -");
  EXPECT_EQ(text(cfg->values.client_name.bytes()), "AZaz09._-");
}

TEST_F(AConfig, ClientNameBeginsAsSomethingPlain) {
  const std::string name = text(cfg->values.client_name.bytes());
  EXPECT_GE(name.size(), 1u);
  EXPECT_LE(name.size(), 16u);
  EXPECT_EQ(redlock_config_set_str(cfg.get(), "client_name", name.c_str()), 0);
}

TEST_F(AConfig, UnknownKeysAndWrongKinds) {
  EXPECT_EQ(why(cfg, redlock_config_set_u32(cfg.get(), "timing.node_timeout", 50)), "timing.node_timeout: no such key");
  EXPECT_EQ(why(cfg, redlock_config_set_u32(cfg.get(), "timing", 50)), "timing: no such key");
  EXPECT_EQ(why(cfg, redlock_config_set_str(cfg.get(), "masters", "x")), "masters: no such key");
  EXPECT_EQ(why(cfg, redlock_config_set_str(cfg.get(), "", "x")), ": no such key");
  EXPECT_EQ(why(cfg, redlock_config_set_u32(cfg.get(), "client_name", 5)), "client_name: takes a string");
  EXPECT_EQ(why(cfg, redlock_config_set_str(cfg.get(), "defaults.ttl_ms", "500")), "defaults.ttl_ms: takes a number");
  EXPECT_EQ(why(cfg, redlock_config_set_u32(cfg.get(), std::string(5000, 'k').c_str(), 1)),
            std::string(64, 'k') + "...: no such key");
  EXPECT_EQ(why(cfg, redlock_config_set_u32(cfg.get(), "tls", 1)), "tls: no such key");
}

TEST_F(AConfig, NullArguments) {
  EXPECT_EQ(redlock_config_new(nullptr), REDLOCK_E_INVAL);
  redlock_config_free(nullptr);
  EXPECT_STREQ(redlock_config_error(nullptr), "");
  EXPECT_EQ(redlock_config_set_u32(nullptr, "limits.locks", 1), REDLOCK_E_INVAL);
  EXPECT_EQ(redlock_config_set_u32(cfg.get(), nullptr, 1), REDLOCK_E_INVAL);
  EXPECT_STREQ(redlock_config_error(cfg.get()), "an argument is NULL");
  EXPECT_EQ(redlock_config_set_str(cfg.get(), "username", nullptr), REDLOCK_E_INVAL);
  EXPECT_EQ(redlock_config_set_str(nullptr, "username", "x"), REDLOCK_E_INVAL);
  EXPECT_EQ(redlock_config_add_master(cfg.get(), nullptr), REDLOCK_E_INVAL);
  EXPECT_EQ(redlock_config_add_master(nullptr, "redis://a"), REDLOCK_E_INVAL);
  EXPECT_EQ(redlock_config_load_json(nullptr, "{}", 2), REDLOCK_E_INVAL);
  EXPECT_EQ(redlock_config_load_json(cfg.get(), nullptr, 0), REDLOCK_E_INVAL);
  EXPECT_EQ(redlock_config_load_file(nullptr, "/x"), REDLOCK_E_INVAL);
  EXPECT_EQ(redlock_config_load_file(cfg.get(), nullptr), REDLOCK_E_INVAL);
  redlock_config_set_event(nullptr, nullptr, nullptr);
  redlock_config_set_log(nullptr, nullptr, nullptr, 3);
}

TEST_F(AConfig, ErrorStaysUntilTheNextFailure) {
  EXPECT_EQ(redlock_config_set_u32(cfg.get(), "limits.locks", 0), REDLOCK_E_CONFIG);
  EXPECT_EQ(redlock_config_set_u32(cfg.get(), "limits.locks", 5), 0);
  EXPECT_STREQ(redlock_config_error(cfg.get()), "limits.locks: 0 is not in 1..4096");
}

TEST_F(AConfig, Callbacks) {
  int user = 0;
  const redlock_event_fn event = [](redlock_t*, const redlock_event_t*, void*) {};
  const redlock_log_fn log = [](int, const char*, void*) {};
  redlock_config_set_event(cfg.get(), event, &user);
  redlock_config_set_log(cfg.get(), log, &user, 6);
  EXPECT_TRUE(cfg->event == event && cfg->event_user == &user);
  EXPECT_TRUE(cfg->log == log && cfg->log_user == &user && cfg->log_level == 6);
}

// ---- finish

struct Setting {
  const char* key;
  uint32_t value;
};

// What finish() says of these settings with one master; "" when they are valid.
std::string verdict(std::initializer_list<Setting> settings, Settings* out = nullptr) {
  const Config cfg = make_with_master();
  for (const Setting& s : settings) {
    EXPECT_EQ(redlock_config_set_u32(cfg.get(), s.key, s.value), 0) << redlock_config_error(cfg.get());
  }
  Settings local;
  const int result = redlock::finish(*cfg, out != nullptr ? *out : local);
  EXPECT_TRUE(result == 0 || result == REDLOCK_E_CONFIG) << result;
  EXPECT_EQ(result == 0, redlock_config_error(cfg.get())[0] == '\0');
  return redlock_config_error(cfg.get());
}

TEST_F(AConfig, NoMaster) {
  Settings settings;
  EXPECT_EQ(redlock::finish(*cfg, settings), REDLOCK_E_CONFIG);
  EXPECT_STREQ(redlock_config_error(cfg.get()), "masters: 0 is not in 1..15");
}

TEST(ConfigFinish, TtlAndMaxTtl) {
  EXPECT_EQ(verdict({{"defaults.ttl_ms", 30000}}), "");
  EXPECT_EQ(verdict({{"defaults.ttl_ms", 30001}}), "defaults.ttl_ms: 30001 is not in 20..30000 (timing.max_ttl_ms)");
  EXPECT_EQ(verdict({{"timing.max_ttl_ms", 9999}, {"defaults.ttl_ms", 10000}}),
            "defaults.ttl_ms: 10000 is not in 20..9999 (timing.max_ttl_ms)");
  EXPECT_EQ(verdict({{"timing.max_ttl_ms", 9999}}), "") << "the default follows";
}

TEST(ConfigFinish, NodeTimeoutAndTtl) {
  EXPECT_EQ(verdict({{"defaults.ttl_ms", 51}}), "");
  EXPECT_EQ(verdict({{"defaults.ttl_ms", 50}}),
            "timing.node_timeout_ms: 50 is not in 5..49 (defaults.ttl_ms - 1)");
}

TEST(ConfigFinish, SuspectCloseAndNodeTimeout) {
  EXPECT_EQ(verdict({{"timing.node_timeout_ms", 2000}}), "");
  EXPECT_EQ(verdict({{"timing.node_timeout_ms", 2001}}),
            "timing.suspect_close_ms: 2000 is not in 2001..600000 (timing.node_timeout_ms)");
}

TEST(ConfigFinish, ReconnectMinAndMax) {
  EXPECT_EQ(verdict({{"timing.reconnect_min_ms", 5000}}), "");
  EXPECT_EQ(verdict({{"timing.reconnect_min_ms", 5001}}),
            "timing.reconnect_max_ms: 5000 is not in 5001..600000 (timing.reconnect_min_ms)");
}

TEST(ConfigFinish, DebtsAndLocks) {
  EXPECT_EQ(verdict({{"limits.debts", 33}}), "");
  EXPECT_EQ(verdict({{"limits.debts", 32}}), "limits.debts: 32 is not in 33..16384 (limits.locks + 1)");
}

TEST(ConfigFinish, InFlightAndLocks) {
  EXPECT_EQ(verdict({{"limits.in_flight", 64}}), "");
  EXPECT_EQ(verdict({{"limits.in_flight", 63}}), "limits.in_flight: 63 is not in 64..16384 (2 * limits.locks)");
  EXPECT_EQ(verdict({{"limits.locks", 4096}, {"limits.in_flight", 8191}}),
            "limits.in_flight: 8191 is not in 8192..16384 (2 * limits.locks)");
}

TEST(ConfigFinish, SomeValidityIsLeft) {
  constexpr Setting ttl{"defaults.ttl_ms", 1250}, ppm{"timing.drift_ppm", 200000};
  EXPECT_EQ(verdict({ttl, ppm, {"timing.drift_fixed_ms", 999}}), "");
  EXPECT_EQ(verdict({ttl, ppm, {"timing.drift_fixed_ms", 1000}}),
            "defaults.ttl_ms: 1250 leaves no validity after a drift of 1250 ms (timing.drift_ppm, "
            "timing.drift_fixed_ms)");
  EXPECT_EQ(verdict({{"defaults.ttl_ms", 20}, {"timing.node_timeout_ms", 5}}), "");
  EXPECT_EQ(verdict({{"defaults.ttl_ms", 999}, {"timing.drift_fixed_ms", 1000}}),
            "defaults.ttl_ms: 999 leaves no validity after a drift of 1010 ms (timing.drift_ppm, "
            "timing.drift_fixed_ms)");
}

TEST(ConfigFinish, CapacitiesFollowLocksUnlessGiven) {
  struct Case {
    std::initializer_list<Setting> settings;
    uint32_t in_flight, debts;
  };
  const Case cases[] = {
      {{}, 64, 64},
      {{{"limits.locks", 33}}, 132, 66},
      {{{"limits.locks", 4096}}, 16384, 8192},
      {{{"limits.locks", 100}, {"limits.debts", 101}}, 400, 101},
      {{{"limits.locks", 4}, {"limits.in_flight", 8}}, 8, 64},
      {{{"limits.locks", 100}, {"limits.in_flight", 200}}, 200, 200},
  };
  for (const Case& c : cases) {
    Settings out;
    EXPECT_EQ(verdict(c.settings, &out), "");
    EXPECT_EQ(out.in_flight, c.in_flight);
    EXPECT_EQ(out.debts, c.debts);
  }
}

// Each alone, as keys may forbid each other. The value is one that is no default.
TEST(ConfigFinish, EverySettingArrives) {
  using redlock::Duration;
  const auto other = [](uint32_t min, uint32_t max, uint32_t initial) {
    return initial >= max ? min : initial < min ? min + 1 : initial + 1;
  };
#define ARRIVES(section, name, min, max, initial, member, value)                \
  {                                                                             \
    Settings s;                                                                 \
    const uint32_t set = other(min, max, initial);                              \
    EXPECT_EQ(verdict({{#section "." #name, set}}, &s), "");                    \
    EXPECT_EQ(s.member, value) << #name;                                        \
    EXPECT_NE(s.member, Settings().member) << #name;                            \
  }
#define NUMBER_ARRIVES(section, name, min, max, initial, text) ARRIVES(section, name, min, max, initial, name, set)
#define TIME_ARRIVES(section, name, min, max, initial, text) \
  ARRIVES(section, name##_ms, min, max, initial, name, Duration::ms(set))
  REDLOCK_KEY_MAP(REDLOCK_NO_KEY, REDLOCK_NO_KEY, NUMBER_ARRIVES, TIME_ARRIVES)
  const Config cfg = make_with_master();
  ASSERT_EQ(redlock_config_set_str(cfg.get(), "client_name", "gw-17"), 0);
  ASSERT_EQ(redlock_config_set_str(cfg.get(), "key_prefix", "plant:"), 0);
  Settings s;
  ASSERT_EQ(redlock::finish(*cfg, s), 0) << redlock_config_error(cfg.get());
  EXPECT_EQ(text(s.client_name), "gw-17");
  EXPECT_EQ(text(s.key_prefix), "plant:");
  EXPECT_EQ(s.client_name.data, cfg->values.client_name.data) << "points into the configuration";
}

TEST_F(AConfig, CredentialsOfMasters) {
  for (const char* url : {"redis://a", "redis://u1@b", "redis://:p2@c", "redis://u3:p3@d"}) {
    ASSERT_EQ(redlock_config_add_master(cfg.get(), url), 0) << redlock_config_error(cfg.get());
  }
  Settings s;
  EXPECT_EQ(redlock::finish(*cfg, s), REDLOCK_E_CONFIG);
  EXPECT_STREQ(redlock_config_error(cfg.get()), "masters[1].username: given without a password");
  ASSERT_EQ(redlock_config_set_str(cfg.get(), "username", "user"), 0);
  ASSERT_EQ(redlock_config_set_str(cfg.get(), "password", "pass"), 0);
  ASSERT_EQ(redlock::finish(*cfg, s), 0);
  ASSERT_EQ(s.masters, 4u);
  const char* const expected[][2] = {{"user", "pass"}, {"u1", "pass"}, {"user", "p2"}, {"u3", "p3"}};
  for (unsigned i = 0; i < 4; ++i) {
    EXPECT_EQ(text(s.master[i].user), expected[i][0]) << i;
    EXPECT_EQ(text(s.master[i].password), expected[i][1]) << i;
  }
}

}  // namespace
