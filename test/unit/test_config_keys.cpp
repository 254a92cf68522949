// SPDX-License-Identifier: MIT
//
// Keys by setter: kinds, words, and what is refused; the relations that finish() checks; every sentence literally. Each
// key at, below and above its range stands in test_config_json.cpp, whose values take the same way.
#include "config/config.hpp"

#include <gtest/gtest.h>

#include <string>

#include "config/keys.hpp"
#include "config/url.hpp"
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

using redlock::test::AConfig;
using redlock::test::Config;
using redlock::test::make;

std::string text(const redlock::Text& t) { return std::string(t.data, t.size); }

// host|port|user|password|name, or the error.
std::string parsed(const std::string& url, int expected = 0) {
  const Config cfg = make();
  EXPECT_EQ(redlock_config_add_master(cfg.get(), url.c_str()), expected) << url;
  if (expected != 0) {
    EXPECT_EQ(cfg->values.masters, 0u) << url;
    return redlock_config_error(cfg.get());
  }
  EXPECT_EQ(cfg->values.masters, 1u) << url << " " << redlock_config_error(cfg.get());
  const redlock::Master& m = cfg->values.master[0];
  return text(m.host) + "|" + (m.unix_socket ? "socket" : std::to_string(m.port)) + "|" + text(m.user) + "|" +
         text(m.password) + "|" + text(m.name);
}

std::string refused(const std::string& url) { return parsed(url, REDLOCK_E_CONFIG); }

TEST(Url, HostAndPort) {
  EXPECT_EQ(parsed("redis://10.0.0.11"), "10.0.0.11|6379|||10.0.0.11:6379");
  EXPECT_EQ(parsed("redis://lock-a.Plant_1.example:65535"),
            "lock-a.Plant_1.example|65535|||lock-a.Plant_1.example:65535");
  EXPECT_EQ(parsed("redis://[::1]"), "::1|6379|||[::1]:6379");
  EXPECT_EQ(parsed("redis://[fd00::1:2]:6380"), "fd00::1:2|6380|||[fd00::1:2]:6380");
}

TEST(Url, NameWithoutRoomForTheAddress) {
  EXPECT_EQ(parsed("redis://" + std::string(27, 'h') + ":6379"),
            std::string(27, 'h') + "|6379|||" + std::string(27, 'h') + ":6379");
  EXPECT_EQ(parsed("redis://" + std::string(28, 'h') + ":6379"), std::string(28, 'h') + "|6379|||master-0");
}

TEST(Url, Credentials) {
  EXPECT_EQ(parsed("redis://user@h"), "h|6379|user||h:6379");
  EXPECT_EQ(parsed("redis://user:pass@h:7"), "h|7|user|pass|h:7");
  EXPECT_EQ(parsed("redis://:pass@h"), "h|6379||pass|h:6379");
  EXPECT_EQ(parsed("redis://u%40x:p%3a%2F%25%c3%A9:!@h"), "h|6379|u@x|p:/%\xC3\xA9:!|h:6379");
}

TEST(Url, CredentialsOfTheLongestSize) {
  const std::string user(64, 'u'), password(128, 'p');
  EXPECT_EQ(parsed("redis://" + user + ":" + password + "@h"), "h|6379|" + user + "|" + password + "|h:6379");
  EXPECT_EQ(refused("redis://" + user + "u:x@h"), "masters[0].username: 65 bytes are not in 1..64");
  EXPECT_EQ(refused("redis://:" + password + "p@h"), "masters[0].password: 129 bytes are not in 1..128");
  std::string escapes;
  for (int i = 0; i < 128; ++i) escapes += "%70";
  EXPECT_EQ(parsed("redis://:" + escapes + "@h"), "h|6379||" + password + "|h:6379");
}

TEST(Url, WrongCredentials) {
  const std::string literal = "holds a character that must be written as %XX";
  const std::string escape = "% is not followed by two hex digits other than 00";
  EXPECT_EQ(refused("redis://@h"), "masters[0].username: 0 bytes are not in 1..64");
  EXPECT_EQ(refused("redis://u:@h"), "masters[0].password: 0 bytes are not in 1..128");
  EXPECT_EQ(refused("redis://u:p@ss@h"), "masters[0].password: " + literal);
  EXPECT_EQ(refused("redis://u:p\xC3\xA9@h"), "masters[0].password: " + literal);
  EXPECT_EQ(refused("redis://u[:p@h"), "masters[0].username: " + literal);
  EXPECT_EQ(refused("redis://u:p%@h"), "masters[0].password: " + escape);
  EXPECT_EQ(refused("redis://u:p%4g@h"), "masters[0].password: " + escape);
  EXPECT_EQ(refused("redis://u:p%00@h"), "masters[0].password: " + escape);
}

TEST(Url, WrongPort) {
  EXPECT_EQ(refused("redis://h:0"), "masters[0].port: not a number in 1..65535");
  EXPECT_EQ(refused("redis://h:65536"), "masters[0].port: not a number in 1..65535");
  for (const char* url : {"redis://h:", "redis://h:100000", "redis://h:06379", "redis://h:63x9", "redis://h:+63",
                          "redis://h: 63", "redis://[::1]:"}) {
    EXPECT_EQ(refused(url), "masters[0].port: not a number in 1..65535") << url;
  }
}

TEST(Url, WrongHost) {
  const std::string neither =
      "masters[0].host: neither a host name nor an IP address (IPv6: in brackets)";
  for (const char* host : {"256.0.0.1", "10.0.0", "127.1", "1", "10.0.0.01", "a.0x7f", "a..b", ".a", "a.", "-a", "a-",
                           "a b", "a%41", "\xC3\xA9"}) {
    EXPECT_EQ(refused(std::string("redis://") + host), neither) << host;
  }
  EXPECT_EQ(refused("redis://" + std::string(64, 'a')), neither);
  EXPECT_EQ(refused("redis://"), "masters[0].host: is missing");
  EXPECT_EQ(refused("redis://:6379"), "masters[0].host: is missing");
  EXPECT_EQ(refused("redis://::1"), "masters[0].host: is missing");
  EXPECT_EQ(refused("redis://fe80::1"), "masters[0].host: an IPv6 address must stand in brackets");
  EXPECT_EQ(refused("redis://[::1"), "masters[0].host: the bracket is not closed");
  EXPECT_EQ(refused("redis://[::1]6379"), "masters[0].host: only a port may follow the bracket");
  EXPECT_EQ(refused("redis://[127.0.0.1]"), "masters[0].host: not an IPv6 address in brackets");
  EXPECT_EQ(refused("redis://[fe80::1%25eth0]"), "masters[0].host: not an IPv6 address in brackets");
}

TEST(Url, HostOfTheLongestSize) {
  const std::string label(53, 'a'), host = label + "." + label;
  ASSERT_EQ(host.size(), 107u);
  EXPECT_EQ(parsed("redis://" + host), host + "|6379|||master-0");
  EXPECT_EQ(refused("redis://" + host + "a"), "masters[0].host: 108 bytes are not in 1..107");
}

// As redis-cli and other clients write a URL. The keys are in database 0.
TEST(Url, DatabaseZeroAloneMayFollowThePort) {
  const std::string plain = parsed("redis://u:p@h:7000");
  for (const char* end : {"/", "/0"}) EXPECT_EQ(parsed(std::string("redis://u:p@h:7000") + end), plain) << end;
  EXPECT_EQ(parsed("redis://[::1]/"), parsed("redis://[::1]"));
  EXPECT_EQ(parsed("redis://h0"), "h0|6379|||h0:6379");
  for (const char* url : {"redis://h:6379/1", "redis://h/00", "redis://h//", "redis://h/0/", "redis://h/x",
                          "redis://h?db=0", "redis://h/0?db=0", "redis://h#0", "redis:///"}) {
    const bool has_host = std::string(url) != "redis:///";
    EXPECT_EQ(refused(url), has_host ? "masters[0].url: only /0 may follow host and port"
                                     : "masters[0].host: is missing")
        << url;
  }
}

TEST(Url, Sockets) {
  EXPECT_EQ(parsed("unix:///run/redis.sock"), "/run/redis.sock|socket|||/run/redis.sock");
  const std::string path = "/" + std::string(106, 'p');
  EXPECT_EQ(parsed("unix://" + path), path + "|socket|||master-0");
  EXPECT_EQ(refused("unix://" + path + "p"), "masters[0].url: 108 bytes are not in 1..107");
  const std::string absolute = "masters[0].url: unix:// wants an absolute path";
  for (const char* url : {"unix://", "unix:///", "unix://run/x", "unix://u:p@/run/x"}) {
    EXPECT_EQ(refused(url), absolute);
  }
  EXPECT_EQ(refused("unix:///run/x\n"), "masters[0].url: the path holds a control character");
  EXPECT_EQ(refused("unix:///run/x?db=1"), "masters[0].url: %, ? and # may not stand in a socket path");
}

TEST(Url, ErrorsTellNothingOfThePassword) {
  for (const char* url : {"redis://u:hunter2@h:70000", "redis://u:hunter2@", "redis://u:hunter2",
                          "redis://:hunter2@a b", "redis://u:hunter2/@h", "redis://u:hun%zzter2@h",
                          "redis://u:hunter2@h/1", "redis://u:hunter2/0", "u:hunter2@h",
                          "rediss://u:hunter2@h//", "redis://hunter2@[::1", "redis://u@hunter2!"}) {
    const Config cfg = make();
    EXPECT_NE(redlock_config_add_master(cfg.get(), url), 0) << url;
    EXPECT_EQ(std::string(redlock_config_error(cfg.get())).find("hun"), std::string::npos) << url;
    EXPECT_EQ(std::string(redlock_config_error(cfg.get())).find("ter2"), std::string::npos) << url;
  }
}

// ---- the same address twice

std::string pair(const std::string& first, const std::string& second) {
  const Config cfg = make();
  EXPECT_EQ(redlock_config_add_master(cfg.get(), "redis://other"), 0);
  EXPECT_EQ(redlock_config_add_master(cfg.get(), first.c_str()), 0) << redlock_config_error(cfg.get());
  const int result = redlock_config_add_master(cfg.get(), second.c_str());
  EXPECT_EQ(cfg->values.masters, result == 0 ? 3u : 2u);
  EXPECT_TRUE(result == 0 || result == REDLOCK_E_CONFIG);
  return result == 0 ? "" : redlock_config_error(cfg.get());
}

TEST(Url, SameAddressIsAnErrorThatNamesBoth) {
  EXPECT_EQ(pair("redis://10.0.0.1", "redis://u:p@10.0.0.1:6379"),
            "masters[2].url: 10.0.0.1:6379 is the address of masters[1]");
  EXPECT_EQ(pair("redis://[::1]", "redis://[0:0:0:0:0:0:0:1]"),
            "masters[2].url: [0:0:0:0:0:0:0:1]:6379 is the address of masters[1]");
  EXPECT_EQ(pair("redis://10.0.0.1", "redis://[::ffff:10.0.0.1]"),
            "masters[2].url: [::ffff:10.0.0.1]:6379 is the address of masters[1]");
  EXPECT_EQ(pair("redis://Lock-A.Plant", "redis://lock-a.pLANT:6379"),
            "masters[2].url: lock-a.pLANT:6379 is the address of masters[1]");
  EXPECT_EQ(pair("unix:///run/a", "unix:///run/a"), "masters[2].url: /run/a is the address of masters[1]");
  EXPECT_EQ(pair("redis://10.0.0.1", "redis://10.0.0.1:6380"), "");
}

TEST_F(AConfig, FifteenMastersAndNoMore) {
  for (int i = 1; i <= 15; ++i) {
    EXPECT_EQ(redlock_config_add_master(cfg.get(), ("redis://10.0.0." + std::to_string(i)).c_str()), 0) << i;
  }
  EXPECT_EQ(redlock_config_add_master(cfg.get(), "redis://10.0.0.16"), REDLOCK_E_CONFIG);
  EXPECT_STREQ(redlock_config_error(cfg.get()), "masters: 16 is not in 1..15");
  EXPECT_EQ(cfg->values.masters, 15u);
}

TEST_F(AConfig, NothingOfARefusedMasterStays) {
  EXPECT_EQ(redlock_config_add_master(cfg.get(), "redis://u:hunter2@h:0"), REDLOCK_E_CONFIG);
  EXPECT_TRUE(cfg->values.master[0].password.empty());
  EXPECT_EQ(cfg->values.master[0].password.data[0], '\0');
}

}  // namespace
