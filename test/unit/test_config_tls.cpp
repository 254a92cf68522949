// SPDX-License-Identifier: MIT
//
// tls.*, of all masters and of one, and rediss://. The last part is for builds without TLS.
#include "config/config.hpp"
#include "config/tls.hpp"
#include "lock/quorum.hpp"
#include "master/guard.hpp"

#include <gtest/gtest.h>

#include <string>

#include "config_fixture.hpp"

namespace {

using redlock::test::AConfig;
using redlock::test::Config;
using redlock::test::make;
using redlock::test::why;

int load(const Config& cfg, const std::string& json) {
  return redlock_config_load_json(cfg.get(), json.data(), json.size());
}

int set(const Config& cfg, const char* key, const std::string& value) {
  return redlock_config_set_str(cfg.get(), key, value.c_str());
}

std::string error(const Config& cfg) { return redlock_config_error(cfg.get()); }

// What finish() says; "": nothing.
std::string checked(const Config& cfg) {
  redlock::Settings settings;
  const int result = redlock::finish(*cfg, settings);
  EXPECT_TRUE(result == 0 || result == REDLOCK_E_CONFIG);
  return result == 0 ? "" : error(cfg);
}

#ifdef REDLOCK_TLS

// The record that a client of this configuration writes on its masters.
std::string fingerprint(const Config& cfg) {
  redlock::Settings settings;
  EXPECT_EQ(redlock::finish(*cfg, settings), 0) << error(cfg);
  char text[redlock::fingerprint_max];
  const redlock::Bytes record = redlock::write_fingerprint(settings, redlock::quorum_of(settings.masters), text);
  return std::string(record.data, record.size);
}

std::string text(redlock::Bytes bytes) { return std::string(bytes.data, bytes.size); }

const std::string pin_of(char digit) { return "sha256:" + std::string(64, digit); }

// "ca|cert|key|name|version|pins", each pin by its first byte.
std::string tls_of(const Config& cfg, unsigned master = 0) {
  redlock::TlsSettings tls;
  redlock::tls_settings(cfg->values, master, tls);
  EXPECT_EQ(checked(cfg), "");
  std::string out = (tls.wanted ? "" : "plain|") + text(tls.ca_file) + "|" + text(tls.cert_file) + "|" +
                    text(tls.key_file) + "|" + text(tls.server_name) + "|" + (tls.tls13 ? "1.3" : "1.2") + "|";
  EXPECT_EQ(tls.pins.size % 32, 0u);
  for (size_t at = 0; at < tls.pins.size; at += 32) {
    out += std::to_string(static_cast<unsigned char>(tls.pins.data[at])) + ",";
  }
  return out;
}

std::string loaded(const std::string& json, unsigned master = 0) {
  const Config cfg = make();
  EXPECT_EQ(load(cfg, json), 0) << error(cfg);
  return tls_of(cfg, master);
}

std::string refused(const std::string& json) {
  const Config cfg = make();
  EXPECT_EQ(load(cfg, json), REDLOCK_E_CONFIG);
  return error(cfg);
}

// A value of "tls" that is refused, by the setter and in JSON, for all masters and for one: the same sentence.
std::string refused_value(const std::string& name, const std::string& value) {
  const Config cfg = make();
  EXPECT_EQ(set(cfg, ("tls." + name).c_str(), value), REDLOCK_E_CONFIG) << name << value;
  const std::string why = error(cfg);
  EXPECT_EQ(why.rfind("tls." + name + ": ", 0), 0u) << why;
  const std::string section = "\"tls\":{\"" + name + "\":\"" + value + "\"}";
  EXPECT_EQ(refused("{" + section + "}"), why);
  EXPECT_EQ(refused("{\"masters\":[\"redis://a\",{\"url\":\"rediss://b\"," + section + "}]}"), "masters[1]." + why);
  return why.substr(name.size() + 6);
}

TEST_F(AConfig, AllFieldsBySetterAndByJson) {
  ASSERT_EQ(redlock_config_add_master(cfg.get(), "rediss://a"), 0);
  EXPECT_EQ(set(cfg, "tls.ca_file", "ca.pem"), 0) << error(cfg);
  EXPECT_EQ(set(cfg, "tls.cert_file", "/c.pem"), 0);
  EXPECT_EQ(set(cfg, "tls.key_file", "/k.pem"), 0);
  EXPECT_EQ(set(cfg, "tls.server_name", "locks.example"), 0);
  EXPECT_EQ(set(cfg, "tls.min_version", "1.3"), 0);
  EXPECT_EQ(set(cfg, "tls.pin", pin_of('1') + "," + pin_of('a')), 0) << error(cfg);
  const std::string all = "ca.pem|/c.pem|/k.pem|locks.example|1.3|17,170,";
  EXPECT_EQ(tls_of(cfg), all);
  char told[200];
  redlock::TextWriter out(told, sizeof told);
  for (const redlock::TlsKey& key : redlock::tls_keys) EXPECT_TRUE(write_tls(out.raw("|"), key, cfg->values.tls));
  EXPECT_STREQ(told, "|ca.pem|/c.pem|/k.pem|locks.example|1.3|sha256:11111111...,sha256:aaaaaaaa...");
  const std::string section = R"("tls":{"ca_file":"ca.pem","cert_file":"/c.pem","key_file":"/k.pem",)"
                              R"("server_name":"locks.example","min_version":"1.3","pin":[")" +
                              pin_of('1') + "\",\"" + pin_of('A') + "\"]}";
  EXPECT_EQ(loaded("{\"masters\":[\"rediss://a\"]," + section + "}"), all);
  EXPECT_EQ(loaded("{" + section + ",\"masters\":[\"rediss://a\"]}"), all) << "the order does not matter";
  EXPECT_EQ(loaded("{\"masters\":[{\"url\":\"rediss://a\"," + section + "}]}"), all);
  EXPECT_EQ(loaded("{\"masters\":[{" + section + ",\"url\":\"rediss://a\"}]}"), all);
  ASSERT_EQ(load(cfg, "{\"tls\":{\"pin\":[\"" + pin_of('3') + "\"]}}"), 0);
  const std::string replaced = "ca.pem|/c.pem|/k.pem|locks.example|1.3|51,";
  EXPECT_EQ(tls_of(cfg), replaced);
  EXPECT_EQ(load(cfg, "{\"tls\":{\"ca_file\":\"/other\",\"pin\":[\"" + pin_of('4') + "\",\"x\"]}}"), REDLOCK_E_CONFIG);
  EXPECT_EQ(tls_of(cfg), replaced) << "a load that fails changes nothing";
}

TEST(ConfigTls, AMastersValueReplacesTheCommonOne) {
  const std::string common = R"("tls":{"ca_file":"/ca","cert_file":"/c","key_file":"/k","server_name":"n",)"
                             R"("min_version":"1.3","pin":")" + pin_of('1') + "\"}";
  const auto with = [&](const std::string& own) {
    return loaded("{" + common + R"(,"masters":["rediss://a",{"url":"rediss://b","tls":{)" + own + "}}]}", 1);
  };
  EXPECT_EQ(with(""), "/ca|/c|/k|n|1.3|17,");
  EXPECT_EQ(with(R"("ca_file":"/o")"), "/o|/c|/k|n|1.3|17,");
  EXPECT_EQ(with(R"("cert_file":"/o","key_file":"/p")"), "/ca|/o|/p|n|1.3|17,");
  EXPECT_EQ(with(R"("server_name":"10.0.0.1")"), "/ca|/c|/k|10.0.0.1|1.3|17,");
  EXPECT_EQ(with(R"("min_version":"1.2")"), "/ca|/c|/k|n|1.2|17,");
  EXPECT_EQ(with("\"pin\":[\"" + pin_of('2') + "\",\"" + pin_of('3') + "\"]"), "/ca|/c|/k|n|1.3|34,51,");
}

TEST_F(AConfig, RedissNeedsSomethingToTrust) {
  ASSERT_EQ(redlock_config_add_master(cfg.get(), "redis://a"), 0);
  ASSERT_EQ(redlock_config_add_master(cfg.get(), "rediss://b"), 0);
  EXPECT_EQ(checked(cfg), "masters[1].url: rediss:// needs tls.ca_file or tls.pin");
  ASSERT_EQ(set(cfg, "tls.cert_file", "/c"), 0);
  ASSERT_EQ(set(cfg, "tls.key_file", "/k"), 0);
  ASSERT_EQ(set(cfg, "tls.min_version", "1.3"), 0);
  EXPECT_EQ(checked(cfg), "masters[1].url: rediss:// needs tls.ca_file or tls.pin");
  EXPECT_EQ(set(cfg, "tls.pin", pin_of('1')), 0);
  EXPECT_EQ(checked(cfg), "");
  EXPECT_EQ(loaded("{\"masters\":[{\"url\":\"rediss://a\",\"tls\":{\"pin\":\"" + pin_of('7') + "\"}}]}"),
            "|||a|1.2|119,");
  EXPECT_EQ(loaded(R"({"masters":[{"url":"rediss://a","tls":{"ca_file":"/x"}}]})"), "/x|||a|1.2|");
}

TEST(ConfigTls, CertificateAndKeyBelongTogether) {
  Config cfg = make();
  ASSERT_EQ(redlock_config_add_master(cfg.get(), "redis://a"), 0);
  ASSERT_EQ(set(cfg, "tls.cert_file", "/c"), 0);
  EXPECT_EQ(checked(cfg), "tls.cert_file: given without key_file");
  cfg = make();
  ASSERT_EQ(redlock_config_add_master(cfg.get(), "redis://a"), 0);
  ASSERT_EQ(set(cfg, "tls.key_file", "/k"), 0);
  EXPECT_EQ(checked(cfg), "tls.key_file: given without cert_file");
  const std::string common = R"("tls":{"ca_file":"/ca","cert_file":"/c","key_file":"/k"})";
  for (const char* field : {"cert_file", "key_file"}) {
    cfg = make();
    ASSERT_EQ(load(cfg, "{" + common + R"(,"masters":["redis://a",{"url":"rediss://b","tls":{")" + field +
                            R"(":"/o"}}]})"), 0) << error(cfg);
    EXPECT_EQ(checked(cfg), std::string("masters[1].tls.") + field + ": given without " +
                                (std::string(field) == "key_file" ? "cert_file" : "key_file"));
  }
}

TEST(ConfigTls, WrongValues) {
  for (const char* file : {"ca_file", "cert_file", "key_file"}) {
    EXPECT_EQ(refused_value(file, ""), "0 bytes are not in 1..128");
    EXPECT_EQ(refused_value(file, std::string(129, 'p')), "129 bytes are not in 1..128");
  }
  EXPECT_EQ(refused_value("server_name", ""), "0 bytes are not in 1..107");
  EXPECT_EQ(refused_value("server_name", std::string(108, 'p')), "108 bytes are not in 1..107");
  for (const char* name : {"a b", "[::1]", "127.1", "a:1", "*.example"}) {
    EXPECT_EQ(refused_value("server_name", name),
              "\"" + std::string(name) + "\" is neither a host name nor a numeric address");
  }
  for (const char* version : {"", "1.1", "1.4", "TLSv1.2", "12"}) {
    EXPECT_EQ(refused_value("min_version", version), "\"" + std::string(version) + "\" is not 1.2 or 1.3");
  }
}

TEST(ConfigTls, WrongPins) {
  const std::string form = "is not sha256: and 64 hexadecimal digits";
  EXPECT_EQ(refused_value("pin", ""), "\"\" " + form);
  EXPECT_EQ(refused_value("pin", pin_of('1') + ","), "\"\" " + form);
  EXPECT_EQ(refused_value("pin", "sha1:00"), "\"sha1:00\" " + form);
  for (const std::string& pin : {std::string(64, '1'), pin_of('g'), pin_of('1') + "1", "sha256:" + std::string(63, '1'),
                                 "SHA256:" + std::string(64, '1'), "sha256/" + std::string(64, '1')}) {
    EXPECT_EQ(refused_value("pin", pin), "\"" + pin.substr(0, 40) + "...\" " + form) << pin;
  }
  std::string four = pin_of('1');
  for (char c : {'2', '3', '4'}) four += "," + pin_of(c);
  const Config cfg = make();
  EXPECT_EQ(set(cfg, "tls.pin", four), 0);
  EXPECT_EQ(refused_value("pin", four + "," + pin_of('5')), "more than 4 pins");
}

TEST(ConfigTls, WrongKindsAndKeys) {
  EXPECT_EQ(refused(R"({"tls":true})"), "tls: true is not an object");
  EXPECT_EQ(refused(R"({"masters":[{"url":"rediss://a","tls":"x"}]})"), "masters[0].tls: a string is not an object");
  EXPECT_EQ(refused(R"({"tls":{"verify":"no"}})"), "tls.verify: no such key");
  EXPECT_EQ(refused(R"({"tls":{"ca_file":["/a"]}})"), "tls.ca_file: an array is not a string");
  EXPECT_EQ(refused(R"({"tls":{"pin":[]}})"), "tls.pin: holds no pin");
  EXPECT_EQ(refused(R"({"tls":{"pin":[5]}})"), "tls.pin: a number is not a string");
  EXPECT_EQ(refused(R"({"tls":{"ca_file":"/a","key_file":"/k","ca_file":"/a"}})"), "tls.ca_file: given twice");
  EXPECT_EQ(refused(R"({"masters":[{"url":"rediss://a","tls":{},"tls":{}}]})"), "masters[0].tls: given twice");
  const Config cfg = make();
  EXPECT_EQ(why(cfg, set(cfg, "tls.verify", "no")), "tls.verify: no such key");
  EXPECT_EQ(why(cfg, set(cfg, "tls", "no")), "tls: no such key");
  EXPECT_EQ(why(cfg, redlock_config_set_u32(cfg.get(), "tls.min_version", 13)), "tls.min_version: takes a string");
}

// A site moves to TLS without a new record: its gateways may be changed one after the other.
TEST(ConfigTls, TheRecordOnTheMastersStays) {
  const Config plain = make(), tls = make();
  for (const char* host : {"10.0.0.1", "lock-b:7000", "[fd00::1]"}) {
    ASSERT_EQ(redlock_config_add_master(plain.get(), ("redis://" + std::string(host)).c_str()), 0);
    ASSERT_EQ(redlock_config_add_master(tls.get(), ("rediss://" + std::string(host)).c_str()), 0);
  }
  ASSERT_EQ(set(tls, "tls.ca_file", "/ca"), 0);
  ASSERT_EQ(set(tls, "tls.server_name", "x"), 0);
  EXPECT_EQ(fingerprint(plain), fingerprint(tls));
}

TEST_F(AConfig, OneServerInBothWaysIsOneMaster) {
  ASSERT_EQ(redlock_config_add_master(cfg.get(), "redis://10.0.0.1"), 0);
  EXPECT_EQ(why(cfg, redlock_config_add_master(cfg.get(), "rediss://10.0.0.1:6379")),
            "masters[1].url: 10.0.0.1:6379 is the address of masters[0]");
}

// Which password leaves this machine in the clear; "": none.
std::string shown(const std::string& json) {
  const Config cfg = make();
  EXPECT_EQ(load(cfg, json), 0) << error(cfg);
  char line[redlock::error_text_max];
  redlock::TextWriter out(line, sizeof line);
  return redlock::shows_password(cfg->values, out) ? line : "";
}

TEST(ConfigTls, APasswordInTheClearIsNamed) {
  const std::string rest = " in the clear; rediss:// would encrypt it";
  EXPECT_EQ(shown(R"({"masters":["redis://:pw@10.0.0.1:7000"]})"),
            "masters[0].url: the password goes to 10.0.0.1:7000" + rest);
  EXPECT_EQ(shown(R"({"password":"pw","masters":["rediss://a","redis://b","redis://c"]})"),
            "masters[1].url: the password goes to b:6379" + rest);
  EXPECT_EQ(shown(R"({"masters":["redis://a",{"url":"redis://[fd00::1]","password":"pw"}]})"),
            "masters[1].url: the password goes to [fd00::1]:6379" + rest);
  for (const char* host : {"128.0.0.1", "[::2]", "[::ffff:10.0.0.1]", "localhost.example", "0.0.0.0"}) {
    EXPECT_NE(shown("{\"masters\":[\"redis://:pw@" + std::string(host) + "\"]}"), "") << host;
  }
  EXPECT_EQ(shown(R"({"masters":["redis://a","rediss://:pw@b","unix:///run/x"]})"), "");
  for (const char* host : {"127.0.0.1", "127.9.9.9", "[::1]", "[::ffff:127.0.0.1]", "LocalHost"}) {
    EXPECT_EQ(shown("{\"masters\":[\"redis://:pw@" + std::string(host) + "\"]}"), "") << host;
  }
  EXPECT_EQ(shown(R"({"password":"pw","masters":["unix:///run/x"]})"), "");
}

#else

TEST(ConfigTls, ABuildWithoutTlsSaysSo) {
  const std::string none = ": this build has no TLS (REDLOCK_TLS=off)";
  const Config cfg = make();
  for (const char* url : {"rediss://h", "rediss://u:secret@h:6379", "rediss://"}) {
    EXPECT_EQ(redlock_config_add_master(cfg.get(), url), REDLOCK_E_NOTSUP);
    EXPECT_EQ(error(cfg), "masters[0].url" + none);
  }
  EXPECT_EQ(set(cfg, "tls.ca_file", "/ca.pem"), REDLOCK_E_NOTSUP);
  EXPECT_EQ(error(cfg), "tls.ca_file" + none);
  EXPECT_EQ(redlock_config_set_u32(cfg.get(), "tls.x", 1), REDLOCK_E_NOTSUP);
  EXPECT_EQ(load(cfg, R"({"tls":{"ca_file":"/ca.pem"}})"), REDLOCK_E_NOTSUP);
  EXPECT_EQ(error(cfg), "tls" + none);
  EXPECT_EQ(load(cfg, R"({"masters":[{"url":"redis://a","tls":true}]})"), REDLOCK_E_NOTSUP);
  EXPECT_EQ(error(cfg), "masters[0].tls" + none);
  EXPECT_EQ(load(cfg, R"({"masters":["rediss://a"]})"), REDLOCK_E_NOTSUP);
  EXPECT_EQ(error(cfg), "masters[0].url" + none);
  EXPECT_EQ(cfg->values.masters, 0u);
  EXPECT_TRUE(checked(cfg).rfind("masters: 0 ", 0) == 0);
}

TEST(ConfigTls, ABuildWithoutTlsKeepsNothingOfIt) {
  struct Plain {
    redlock::Text texts[4];
    uint16_t port;
    bool flag;
    void* file;
  };
  EXPECT_EQ(sizeof(redlock::Master), sizeof(Plain));
}

#endif

}  // namespace
