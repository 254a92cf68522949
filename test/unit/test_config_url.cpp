// SPDX-License-Identifier: MIT
#include "config/config.hpp"
#include "config/url.hpp"

#include <gtest/gtest.h>

#include <string>

#include "config_fixture.hpp"

namespace {

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
