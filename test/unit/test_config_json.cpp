// SPDX-License-Identifier: MIT
//
// JSON and files. Sentences are compared literally; after every error the configuration must be what it was.
#include "config/config.hpp"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "config/keys.hpp"
#include "config/report.hpp"
#include "config_fixture.hpp"

namespace {

using redlock::Values;
using redlock::test::AConfig;
using redlock::test::Config;
using redlock::test::make;
using redlock::test::why;

int load(const Config& cfg, const std::string& json) {
  // Exactly as many bytes as there are, so that a sanitizer sees a read past them.
  const std::unique_ptr<char[]> bytes(new char[json.size()]);
  memcpy(bytes.get(), json.data(), json.size());
  return redlock_config_load_json(cfg.get(), bytes.get(), json.size());
}

std::string text(const redlock::Text& t) { return std::string(t.data, t.size); }

// The error of a text that must be refused.
std::string refused(const std::string& json, int expected = REDLOCK_E_CONFIG) {
  const Config cfg = make();
  EXPECT_EQ(redlock_config_add_master(cfg.get(), "unix:///first"), 0);
  EXPECT_EQ(redlock_config_set_u32(cfg.get(), "limits.locks", 7), 0);
  const auto before = std::make_unique<Values>(cfg->values);
  EXPECT_EQ(load(cfg, json), expected) << json;
  EXPECT_EQ(memcmp(before.get(), &cfg->values, sizeof(Values)), 0) << "changed by " << json;
  return redlock_config_error(cfg.get());
}

std::string error_of_masters(const std::string& masters) { return refused("{\"masters\":" + masters + "}"); }

// A directory that is gone with its files at the end of the test.
class Directory {
 public:
  Directory() {
    char name[] = "/tmp/redlock-config-XXXXXX";
    EXPECT_NE(mkdtemp(name), nullptr);
    path_ = name;
  }
  ~Directory() {
    for (const std::string& file : files_) unlink(file.c_str());
    rmdir(path_.c_str());
  }
  std::string path(const std::string& name) {
    files_.push_back(path_ + "/" + name);
    return files_.back();
  }
  std::string file(const std::string& name, const std::string& content, mode_t mode = 0600) {
    const std::string full = path(name);
    std::ofstream(full, std::ios::binary) << content;
    EXPECT_EQ(chmod(full.c_str(), mode), 0);
    return full;
  }

 private:
  std::string path_;
  std::vector<std::string> files_;
};

// ---- what is accepted

TEST_F(AConfig, WholeNumbersInAnySpelling) {
  EXPECT_EQ(load(cfg, R"({"limits":{"locks":1e2,"rx_bytes":512.0,"debts":20480E-1,"tx_bytes":0}})"), 0);
  EXPECT_EQ(cfg->values.locks, 100u);
  EXPECT_EQ(cfg->values.rx_bytes, 512u);
  EXPECT_EQ(cfg->values.debts, 2048u);
}

TEST_F(AConfig, MastersAddUp) {
  ASSERT_EQ(load(cfg, R"({"masters":["redis://a",)"
                      R"({"url":"redis://b:7","name":"b","username":"u","password":"p\u00e9"}]})"),
            0) << redlock_config_error(cfg.get());
  ASSERT_EQ(load(cfg, R"({"masters":["unix:///c"]})"), 0);
  ASSERT_EQ(cfg->values.masters, 3u);
  const redlock::Master* m = cfg->values.master;
  EXPECT_EQ(text(m[0].host) + "|" + text(m[0].name), "a|a:6379");
  EXPECT_EQ(text(m[1].name) + "|" + text(m[1].user) + "|" + text(m[1].password), "b|u|p\xC3\xA9");
  EXPECT_EQ(m[1].port, 7);
  EXPECT_TRUE(m[2].unix_socket);
  EXPECT_EQ(why(cfg, load(cfg, R"({"masters":["redis://d","redis://B:7"]})")),
            "masters[4].url: B:7 is the address of masters[1]");
  EXPECT_EQ(cfg->values.masters, 3u);
}

// ---- numbers: the same table as the setters', so its ends are enough

TEST(ConfigJson, NumbersAtBelowAndAboveTheirRange) {
  for (const redlock::Key& key : redlock::keys) {
    if (key.is_text()) continue;
    const std::string name = key.name;
    const size_t dot = name.find('.');
    const auto with = [&](const std::string& value) {
      if (dot == std::string::npos) return "{\"" + name + "\":" + value + "}";
      return "{\"" + name.substr(0, dot) + "\":{\"" + name.substr(dot + 1) + "\":" + value + "}}";
    };
    const std::string range =
        std::string(key.or_zero ? "0 or in " : "in ") + std::to_string(key.min) + ".." + std::to_string(key.max);
    for (const uint32_t good : {key.min, key.max}) {
      const Config cfg = make();
      EXPECT_EQ(load(cfg, with(std::to_string(good))), 0) << redlock_config_error(cfg.get());
      EXPECT_EQ(cfg->values.*key.number, good);
    }
    for (const int64_t bad : {int64_t{key.min} - 1, int64_t{key.max} + 1, int64_t{-1}, int64_t{5000000000}}) {
      if (bad == 0 && key.or_zero) continue;
      EXPECT_EQ(refused(with(std::to_string(bad))), name + ": " + std::to_string(bad) + " is not " + range);
    }
    EXPECT_EQ(refused(with("\"50\"")), name + ": \"50\" is not an integer " + range);
  }
}

std::string node_timeout(const std::string& value) {
  return refused("{\"timing\":{\"node_timeout_ms\":" + value + "}}");
}

TEST(ConfigJson, NumbersThatAreNone) {
  const std::string path = "timing.node_timeout_ms: ", range = " is not an integer in 5..10000";
  EXPECT_EQ(node_timeout("50.5"), path + "50.5" + range);
  EXPECT_EQ(node_timeout("4.5"), path + "4.5 is not in 5..10000");
  EXPECT_EQ(node_timeout("1e400"), path + "1e15 or more is not in 5..10000");
  EXPECT_EQ(node_timeout("-1e400"), path + "-1e15 or less is not in 5..10000");
  EXPECT_EQ(node_timeout("999999999999999"), path + "999999999999999 is not in 5..10000");
  EXPECT_EQ(node_timeout("3.9999999"), path + "4 is not in 5..10000");
  EXPECT_EQ(node_timeout("4294967346"), path + "4294967346 is not in 5..10000") << "50 in 32 bits";
  EXPECT_EQ(node_timeout("true"), path + "true" + range);
  EXPECT_EQ(node_timeout("null"), path + "null" + range);
  EXPECT_EQ(node_timeout("[50]"), path + "an array" + range);
  EXPECT_EQ(node_timeout("{}"), path + "an object" + range);
  EXPECT_EQ(node_timeout("\"fifty\\n\""), path + "\"fifty\\n\"" + range);
  EXPECT_EQ(node_timeout("\"" + std::string(1000, 'x') + "\""), path + "\"" + std::string(40, 'x') + "...\"" + range);
}

// ---- strings

TEST(ConfigJson, Strings) {
  EXPECT_EQ(refused(R"({"client_name":""})"), "client_name: 0 bytes are not in 1..16");
  EXPECT_EQ(refused(R"({"client_name":"12345678901234567"})"), "client_name: 17 bytes are not in 1..16");
  EXPECT_EQ(refused(R"({"client_name":"a b"})"), "client_name: \"a b\" is not of A-Z a-z 0-9 . _ -");
  EXPECT_EQ(refused(R"({"client_name":17})"), "client_name: a number is not a string");
  EXPECT_EQ(refused(R"({"password":["s3cret"]})"), "password: an array is not a string");
  EXPECT_EQ(refused("{\"key_prefix\":\"" + std::string(33, 'k') + "\"}"), "key_prefix: 33 bytes are not in 0..32");
  EXPECT_EQ(refused("{\"password\":\"" + std::string(60000, 'k') + "\"}"), "password: 60000 bytes are not in 0..128");
}

// ---- keys

TEST(ConfigJson, UnknownKeys) {
  EXPECT_EQ(refused(R"({"client":"x"})"), "client: no such key");
  EXPECT_EQ(refused(R"({"master":["redis://10.0.0.11"]})"), "master: it is masters");
  EXPECT_EQ(refused(R"({"":"x"})"), ": no such key");
  EXPECT_EQ(refused(R"({"timing.node_timeout_ms":50})"), "timing.node_timeout_ms: no such key");
  EXPECT_EQ(refused(R"({"timing":{"node_timeout":50}})"), "timing.node_timeout: no such key");
  EXPECT_EQ(refused(R"({"timing":{"ttl_ms":50}})"), "timing.ttl_ms: no such key");
  EXPECT_EQ(refused(R"({"a\nb":1})"), "a\\nb: no such key");
  EXPECT_EQ(refused("{\"limits\":{\"" + std::string(5000, 'k') + "\":1}}"),
            "limits." + std::string(40, 'k') + "...: no such key");
  EXPECT_EQ(refused(R"({"masters":[{"uri":"x"}]})"), "masters[1].uri: no such key");
}

TEST(ConfigJson, DuplicateKeys) {
  EXPECT_EQ(refused(R"({"username":"a","username":"a"})"), "username: given twice");
  EXPECT_EQ(refused(R"({"limits":{},"masters":[],"limits":{}})"), "limits: given twice");
  EXPECT_EQ(refused(R"({"masters":[],"masters":[]})"), "masters: given twice");
  EXPECT_EQ(refused(R"({"limits":{"locks":1,"rx_bytes":512,"locks":2}})"), "limits.locks: given twice");
  EXPECT_EQ(refused(R"({"masters":[{"url":"redis://a","url":"redis://b"}]})"), "masters[1].url: given twice");
}

TEST(ConfigJson, Sections) {
  EXPECT_EQ(refused(R"({"limits":5})"), "limits: a number is not an object");
  EXPECT_EQ(refused(R"({"timing":[]})"), "timing: an array is not an object");
  EXPECT_EQ(refused("[]"), "configuration: an array is not an object");
}

// ---- masters (the refused configuration holds one already)

TEST(ConfigJson, Masters) {
  EXPECT_EQ(error_of_masters("\"redis://a\""), "masters: a string is not an array");
  EXPECT_EQ(error_of_masters("{}"), "masters: an object is not an array");
  EXPECT_EQ(error_of_masters("[5]"), "masters[1]: a number is not a URL or an object");
  EXPECT_EQ(error_of_masters("[\"redis://a:70000\"]"), "masters[1].port: not a number in 1..65535");
  EXPECT_EQ(error_of_masters("[{}]"), "masters[1].url: is missing");
  EXPECT_EQ(error_of_masters(R"([{"url":5}])"), "masters[1].url: a number is not a string");
  EXPECT_EQ(error_of_masters(R"([{"url":"redis://a:0","name":"n"}])"), "masters[1].port: not a number in 1..65535");
  EXPECT_EQ(error_of_masters(R"(["redis://a","unix:///first"])"),
            "masters[2].url: /first is the address of masters[0]");
}

TEST(ConfigJson, MoreThanFifteenMasters) {
  std::string list = "[";
  for (int i = 1; i <= 15; ++i) list += (i > 1 ? ",\"redis://h" : "\"redis://h") + std::to_string(i) + "\"";
  EXPECT_EQ(error_of_masters(list + "]"), "masters: 16 is not in 1..15");
}

std::string error_of_field(const std::string& field) {
  return error_of_masters("[{\"url\":\"redis://a\"," + field + "}]");
}

TEST(ConfigJson, FieldsOfMasters) {
  EXPECT_EQ(error_of_field(R"("name":"")"), "masters[1].name: 0 bytes are not in 1..32");
  EXPECT_EQ(error_of_field("\"name\":\"" + std::string(33, 'n') + "\""), "masters[1].name: 33 bytes are not in 1..32");
  EXPECT_EQ(error_of_field(R"("name":"a\nb")"), "masters[1].name: holds a control character");
  EXPECT_EQ(error_of_field(R"("name":"/first")"), "masters[1].name: \"/first\" is the name of masters[0]");
  EXPECT_EQ(error_of_field("\"username\":\"" + std::string(65, 'n') + "\""),
            "masters[1].username: 65 bytes are not in 1..64");
  EXPECT_EQ(error_of_field(R"("password":"")"), "masters[1].password: 0 bytes are not in 1..128");
  EXPECT_EQ(error_of_masters(R"([{"url":"redis://u@a","username":"u"}])"),
            "masters[1].username: given in the url, too");
  EXPECT_EQ(error_of_masters(R"([{"url":"redis://:p@a","password":"p"}])"),
            "masters[1].password: given in the url, too");
}

// ---- text that is not JSON, or more than JSON

TEST_F(AConfig, LinesThatBeginWithTwoSlashesAreComments) {
  ASSERT_EQ(load(cfg, "// \"no string\n{ // }\n"), REDLOCK_E_CONFIG) << "only at the start of a line";
  ASSERT_EQ(load(cfg, "// {\n{\r\n\t//\n  \"key_prefix\": \"//x\",\n // \xff\n\"limits\": {\n//\n}\n}\n//"), 0)
      << redlock_config_error(cfg.get());
  EXPECT_EQ(text(cfg->values.key_prefix), "//x");
  EXPECT_EQ(refused("{\"key_prefix\": \"a\n//b\"}"), "line 1, column 18: a control character in a string");
}

TEST(ConfigJson, NotJson) {
  EXPECT_EQ(refused(""), "line 1, column 1: not JSON");
  EXPECT_EQ(refused("   "), "line 1, column 4: not JSON");
  EXPECT_EQ(refused("{\n  \"limits\": oops\n}"), "line 2, column 13: not JSON");
  EXPECT_EQ(refused("{} trailing"), "line 1, column 4: not JSON");
  EXPECT_EQ(refused("{}\n{}"), "line 2, column 1: a comma or colon is missing");
  EXPECT_EQ(refused("{\"limits\":{}"), "line 1, column 13: not JSON");
  EXPECT_EQ(refused("{\n // {\n / }"), "line 3, column 2: not JSON");
  EXPECT_EQ(refused("{\"limits\":{\"locks\":1,}}"), "line 1, column 22: a comma too many");
  EXPECT_EQ(refused("{\"masters\":[\"x\",\n // y\n ]}"), "line 3, column 2: a comma too many");
  EXPECT_EQ(refused("{\"limits\":{},,}"), "line 1, column 15: a comma too many");
  const std::string missing = "line 2, column 2: a comma or colon is missing";
  for (const std::string before : {"{\"username\":\"gateway\"\n", "{\"limits\":{}\n", "{\"masters\":[]\n",
                                   "{\"limits\":{\"locks\":1\n", "{\"limits\":{\"locks\":true\n",
                                   "{\"masters\":[{}\n"}) {
    EXPECT_EQ(refused(before + " \"password\""), missing) << before;
    EXPECT_EQ(refused(before + " {}]"), missing) << before;
  }
  EXPECT_EQ(refused("{\"masters\" []}"), "line 1, column 12: a comma or colon is missing");
  EXPECT_EQ(refused("{\"key_prefix\": \",\"]}"), "line 1, column 19: not JSON");
}

TEST(ConfigJson, TextThatCjsonWouldLetPass) {
  EXPECT_EQ(refused("\xEF\xBB\xBF{}"), "line 1, column 1: a byte order mark");
  EXPECT_EQ(refused(std::string("{}\0", 3)), "line 1, column 3: not JSON");
  EXPECT_EQ(refused("{\x0B}"), "line 1, column 2: not JSON");
  EXPECT_EQ(refused(std::string("{\"username\":\"a\0b\"}", 18)), "line 1, column 15: a control character in a string");
  EXPECT_EQ(refused("{\n\"username\":\"a\nb\"}"), "line 2, column 14: a control character in a string");
  EXPECT_EQ(refused("{\"username\":\"a\\u0000b\"}"), "line 1, column 15: \\u0000 in a string");
  EXPECT_EQ(refused("{\"user\\u0000name\":\"a\"}"), "line 1, column 7: \\u0000 in a string");
  EXPECT_EQ(refused("{\"username\":\"\\\"\\u0000\"}"), "line 1, column 16: \\u0000 in a string");
  EXPECT_EQ(refused("{\"username\":\"a\\uZZZZb\"}"), "line 1, column 15: \\u without four hex digits");
  EXPECT_EQ(refused("{\"username\":\"a\\u004\"}"), "line 1, column 15: \\u without four hex digits");
  EXPECT_EQ(refused("{\"username\":\"a\\u00"), "line 1, column 15: \\u without four hex digits");
  EXPECT_EQ(refused("{\"username\":\"\xFF\"}"), "line 1, column 14: a byte that is not UTF-8");
  EXPECT_EQ(refused("{\"limits\":{\"locks\":01}}"), "line 1, column 20: a number with a leading zero");
  EXPECT_EQ(refused("{\"limits\":{\"locks\":-01}}"), "line 1, column 21: a number with a leading zero");
  EXPECT_EQ(refused("{\"x\":[[[[[[[[1]]]]]]]]}"), "line 1, column 13: nested too deep");
  EXPECT_EQ(refused("{\"x\":[[[[[[[1]]]]]]]}"), "x: no such key");
}

TEST_F(AConfig, TextThatOnlyLooksSuspicious) {
  EXPECT_EQ(load(cfg, R"({"username":"\\u0000","password":"01 [[[[[[[[[ \"\u00001"})"), REDLOCK_E_CONFIG);
  EXPECT_EQ(load(cfg, R"({"username":"\\u0000","password":"01 [[[[[[[[[ \"","limits":{"locks":100,"tx_bytes":0}})"), 0)
      << redlock_config_error(cfg.get());
  EXPECT_EQ(text(cfg->values.username), "\\u0000");
  EXPECT_EQ(load(cfg, R"({"key_prefix":"\u0041\u00e9\u0100\u1000\uD83D\uDE00"})"), 0)
      << redlock_config_error(cfg.get());
  EXPECT_EQ(text(cfg->values.key_prefix), "A\u00e9\u0100\u1000\U0001F600");
}

TEST_F(AConfig, Size) {
  std::string json(65536, ' ');
  json[0] = '{';
  json[65535] = '}';
  EXPECT_EQ(load(cfg, json), 0) << redlock_config_error(cfg.get());
  EXPECT_EQ(refused(json + " "), "configuration: 65537 bytes are more than 65536");
}

TEST_F(AConfig, NoErrorTellsAPassword) {
  for (const char* json :
       {R"({"password":"hunter2","x":1})", R"({"masters":["redis://:hunter2@h:0"]})", R"({"password":"hunter2)",
        R"({"masters":[{"url":"redis://a","password":"hunter2","x":1}]})",
        R"({"masters":[{"url":"redis://a","password_file":"hunter2"}]})", R"({"masters":["hunter2"]})"}) {
    EXPECT_NE(load(cfg, json), 0) << json;
    EXPECT_EQ(std::string(redlock_config_error(cfg.get())).find("hunter2"), std::string::npos) << json;
  }
}

int allocations_left = 0;
void* scarce_malloc(size_t size) {
  if (allocations_left-- > 0) return malloc(size);
  errno = ENOMEM;
  return nullptr;
}

TEST(ConfigJson, NoMemoryInCjson) {
  const std::string json = R"({"username":"a","limits":{"locks":3},"masters":["redis://a"]})";
  int needed = 0;
  for (int result = REDLOCK_E_NOMEM; result != 0; ++needed) {
    ASSERT_LT(needed, 100);
    const Config cfg = make();
    cJSON_Hooks hooks = {scarce_malloc, free};
    allocations_left = needed;
    cJSON_InitHooks(&hooks);
    result = load(cfg, json);
    cJSON_InitHooks(nullptr);
    ASSERT_TRUE(result == 0 || result == REDLOCK_E_NOMEM) << result;
    EXPECT_STREQ(redlock_config_error(cfg.get()), result == 0 ? "" : "no memory");
    EXPECT_EQ(cfg->values.masters, result == 0 ? 1u : 0u);
  }
  EXPECT_GT(needed, 5);
}

// Memory that is handed out again may hold a password of this test's own texts, which nobody wipes.
void* cleared_malloc(size_t size) { return calloc(1, size); }

unsigned frees = 0, leaks = 0;
void watched_free(void* memory) {
  if (memory == nullptr) return;
  ++frees;
  if (memmem(memory, malloc_usable_size(memory), "hunter2", 7) != nullptr) ++leaks;
  free(memory);
}

// Where cJSON frees memory, no password stands in it any more: of texts that are well, and of texts with an error.
TEST(ConfigJson, NoPasswordIsFreedUnwiped) {
  cJSON_Hooks hooks = {cleared_malloc, watched_free};
  cJSON_InitHooks(&hooks);
  for (const char* json :
       {R"({"password":"hunter2","masters":["redis://:hunter2@a"]})", R"({"password":"hunter2","x":1})",
        R"({"password":"hunter2")", R"({"password":"hunter2" 1})", R"({"password":"hunter2","x":})",
        R"({"masters":[{"url":"redis://a","password":"hunter2"}}])", R"({"password":"hunter2"}})",
        R"({"password":"hunter2)", R"({"password":"\"hunter2\q"})", R"({"password":"hunter2\ud800"})",
        R"({"password":"hunter2\\"x})"}) {
    frees = leaks = 0;
    const Config cfg = make();
    load(cfg, json);
    EXPECT_EQ(leaks, 0u) << json;
    EXPECT_GT(frees, 0u) << json;
  }
  cJSON_InitHooks(nullptr);
}

// ---- files

struct ConfigFolder : ::testing::Test {
  Directory directory;
};

// The error behind the path; "": it was read.
std::string error_of_file(const std::string& json, mode_t mode) {
  Directory directory;
  const Config cfg = make();
  EXPECT_EQ(redlock_config_set_str(cfg.get(), "password", "of-the-setter"), 0);
  const std::string path = directory.file("a", json, mode);
  if (redlock_config_load_file(cfg.get(), path.c_str()) == 0) return "";
  const std::string error = redlock_config_error(cfg.get());
  EXPECT_EQ(cfg->values.masters, 0u) << "nothing of it is taken";
  EXPECT_EQ(error.find(path + ": "), 0u) << error;
  EXPECT_NE(error.find("; type: chmod o-r " + path), std::string::npos) << error;
  return error.substr(path.size() + 2, error.find(';') - path.size() - 2);
}

TEST_F(ConfigFolder, APasswordThatOthersCanReadIsNotTaken) {
  const std::string of_its_own = directory.file("p", "hunter2");
  EXPECT_EQ(error_of_file(R"({"password":"hunter2"})", 0644), "others can read its password");
  EXPECT_EQ(error_of_file(R"({"masters":["redis://a","redis://:hunter2@b"]})", 0604),
            "others can read its password");
  EXPECT_EQ(error_of_file(R"({"masters":[{"url":"redis://a","password":"hunter2"}]})", 0644),
            "others can read its password");
  EXPECT_EQ(error_of_file(R"({"password":"hunter2"})", 0640), "") << "for the group it may be meant";
  EXPECT_EQ(error_of_file(R"({"masters":["redis://a"]})", 0644), "") << "no secret";
  EXPECT_EQ(error_of_file(R"({"masters":[{"url":"redis://a","password_file":")" + of_its_own + "\"}]}", 0644), "");
}

TEST_F(ConfigFolder, APasswordThatIsReplacedIsWiped) {
  const Config cfg = make();
  const auto holds = [&](const std::string& secret) {
    return memmem(cfg.get(), sizeof *cfg, secret.data(), secret.size()) != nullptr;
  };
  ASSERT_EQ(load(cfg, R"({"password":"first-secret"})"), 0);
  EXPECT_TRUE(holds("first-secret"));
  ASSERT_EQ(load(cfg, R"({"password":"2nd"})"), 0);
  EXPECT_FALSE(holds("secret"));
  ASSERT_EQ(redlock_config_set_str(cfg.get(), "password", "third-secret"), 0);
  ASSERT_EQ(redlock_config_set_str(cfg.get(), "password", ""), 0);
  EXPECT_FALSE(holds("secret"));
  EXPECT_EQ(load(cfg, R"({"masters":["redis://:fourth-secret@a"],"limits":{"locks":0}})"), REDLOCK_E_CONFIG);
  EXPECT_FALSE(holds("secret"));
}

// ---- password files (test_config_files.cpp)

TEST(PasswordFile, IsTheOnlyPassword) {
  EXPECT_EQ(error_of_field(R"("password":"p","password_file":"/x")"),
            "masters[1].password_file: given besides a password");
  EXPECT_EQ(error_of_masters(R"([{"url":"redis://:p@a","password_file":"/x"}])"),
            "masters[1].password_file: given besides a password in the url");
}

// Status as JSON: literally once, and read back by cJSON for what is hard to write.
using Tree = std::unique_ptr<cJSON, decltype(&cJSON_Delete)>;

redlock_status_t some_status() {
  redlock_status_t s{};
  s.size = sizeof s;
  s.masters = 2, s.masters_up = 1, s.quorum = 2, s.even = 1;
  s.locks_held = 3, s.locks_pending = 4, s.locks_max = 32, s.debts = 5, s.debts_max = 64;
  s.acquired = 6, s.failed_locked = 7, s.failed_no_quorum = 8, s.failed_other = 9, s.rounds = 10;
  s.renewed = 11, s.renew_failed = 12, s.released = 13, s.lost = 14, s.clock_jumps = UINT64_MAX;
  s.clock_steps = 15, s.guard_ms = 30'302;
  s.wait = {16, 17, 18, {19, 20, 21, 22, 23, 24, 25, UINT32_MAX}};
  s.hold = {26, UINT64_MAX, 27, {}};
  return s;
}

redlock_master_status_t some_master(const std::string& name, const std::string& address) {
  redlock_master_status_t m{};
  m.size = sizeof m;
  m.state = REDLOCK_MASTER_UP;
  m.in_flight = 1, m.owed = 2, m.connects = 3, m.resp3 = 1, m.tracked = 1, m.replies = 9007199254740993u, m.errors = 5;
  memcpy(m.name, name.data(), std::min(name.size(), sizeof m.name));
  memcpy(m.address, address.data(), std::min(address.size(), sizeof m.address));
  return m;
}

std::string write(const redlock_status_t& status, const std::vector<redlock_master_status_t>& masters) {
  std::string buffer(16384, '#');
  const size_t needed = redlock::write_status_json(buffer.data(), buffer.size(), status, masters.data(),
                                                   static_cast<unsigned>(masters.size()));
  EXPECT_LE(needed, buffer.size());
  EXPECT_EQ(buffer[needed - 1], '\0');
  EXPECT_EQ(buffer[needed], '#') << "wrote behind the NUL";
  buffer.resize(needed - 1);
  EXPECT_EQ(buffer.find('\0'), std::string::npos);
  return buffer;
}

Tree parse(const std::string& json) {
  const char* end = nullptr;
  Tree tree(cJSON_ParseWithLengthOpts(json.c_str(), json.size() + 1, &end, 1), cJSON_Delete);
  EXPECT_NE(tree, nullptr) << json;
  return tree;
}

std::string name_read_back(const std::string& name) {
  const Tree tree = parse(write(some_status(), {some_master(name, "a")}));
  const cJSON* master = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(tree.get(), "masters"), 0);
  return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(master, "name"));
}

TEST(Report, Literally) {
  redlock_master_status_t down = some_master("b", "[fe80::1]:6379");
  down.state = REDLOCK_MASTER_DOWN;
  down.err = REDLOCK_E_CONNECT;
  down.guard_ms = REDLOCK_GUARD_UNKNOWN;
  down.resp3 = down.tracked = 0;
  EXPECT_EQ(write(some_status(), {some_master("a", "10.0.0.1:6379"), down}),
            "{\"schema\":\"redlock.status/1\",\"version\":\"" + std::string(redlock_version_string()) +
                R"(","quorum":2,"even":true,"masters_up":1,"guard_ms":30302,"masters":[)"
                R"({"name":"a","address":"10.0.0.1:6379","state":"up","err":null,"guard_ms":0,"in_flight":1,"owed":2,)"
                R"("connects":3,"resp3":true,"tracked":true,"replies":"9007199254740993","errors":"5"},)"
                R"({"name":"b","address":"[fe80::1]:6379","state":"down","err":"REDLOCK_E_CONNECT","guard_ms":null,)"
                R"("in_flight":1,"owed":2,"connects":3,"resp3":false,"tracked":false,"replies":"9007199254740993",)"
                R"("errors":"5"}],)"
                R"("locks":{"held":3,"pending":4,"max":32},"debts":{"open":5,"max":64},)"
                R"("counters":{"acquired":"6","failed_locked":"7","failed_no_quorum":"8","failed_other":"9",)"
                R"("rounds":"10","renewed":"11","renew_failed":"12","released":"13","lost":"14",)"
                R"("clock_jumps":"18446744073709551615","clock_steps":"15"},)"
                R"("wait":{"count":"16","sum_ms":"17","max_ms":"18","buckets":[19,20,21,22,23,24,25,4294967295]},)"
                R"("hold":{"count":"26","sum_ms":"18446744073709551615","max_ms":"27",)"
                R"("buckets":[0,0,0,0,0,0,0,0]}})");
}

// ---- the schema in redlock.h ----------------------------------------------------------------------------------------

// Every name in the tree, in the order in which it is written; of the masters, the first one's.
void names_of(const cJSON* object, std::vector<std::string>& names) {
  for (const cJSON* item = object->child; item != nullptr; item = item->next) {
    if (item->string != nullptr) names.push_back(item->string);
    if (cJSON_IsObject(item)) names_of(item, names);
    if (cJSON_IsArray(item) && item->child != nullptr) names_of(item->child, names);
  }
}

// The fields that the comment of redlock_status_json() describes: the words before the first column of two spaces.
std::vector<std::string> names_in_header() {
  std::ifstream file(std::string(REDLOCK_SOURCE_DIR) + "/include/redlock/redlock.h");
  std::vector<std::string> names;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.find("fields, as in the structs;") != std::string::npos) {
      inside = true;
    } else if (inside && !line.starts_with(" *   ")) {
      return names;
    } else if (inside) {
      const size_t begin = line.find_first_not_of(" *");
      if (begin > 7) continue;  // the line before goes on
      std::istringstream words(line.substr(begin, line.find("  ", begin) - begin));
      for (std::string word; std::getline(words, word, ',');) names.push_back(word.substr(word.find_first_not_of(' ')));
    }
  }
  return names;
}

TEST(Report, EachFieldIsDescribedInTheHeader) {
  std::vector<std::string> written;
  names_of(parse(write(some_status(), {some_master("a", "b"), some_master("c", "d")})).get(), written);
  EXPECT_EQ(written, names_in_header());
  EXPECT_GT(written.size(), 30u);
}

TEST(Report, States) {
  const char* const names[] = {"unknown", "down", "connecting", "greeting", "up", "suspect", "guarded", "unknown"};
  for (int state = 0; state <= 6; ++state) {
    redlock_master_status_t master = some_master("a", "a");
    master.state = state;
    const std::string json = write(some_status(), {master});
    EXPECT_NE(json.find(std::string("\"state\":\"") + names[state] + "\""), std::string::npos) << state;
  }
}

TEST(Report, BytesThatAreNotUtf8AreReplaced) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(name_read_back("a\xFFz"), "a" + r + "z");
  EXPECT_EQ(name_read_back("a\xC3"), "a" + r) << "cut short";
  EXPECT_EQ(name_read_back("\xC3z"), r + "z");
  EXPECT_EQ(name_read_back("\x80"), r) << "a continuation alone";
  EXPECT_EQ(name_read_back("\xC0\xAF"), r + r) << "overlong";
  EXPECT_EQ(name_read_back("\xE0\x80\xAF"), r + r + r) << "overlong";
  EXPECT_EQ(name_read_back("\xE0\x9F\xBF"), r + r + r) << "overlong, the last of its kind";
  EXPECT_EQ(name_read_back("\xF0\x80\x80\xAF"), r + r + r + r) << "overlong";
  EXPECT_EQ(name_read_back("\xF0\x8F\xBF\xBF"), r + r + r + r) << "overlong, the last of its kind";
  EXPECT_EQ(name_read_back("\xED\xA0\x80"), r + r + r) << "a surrogate";
  EXPECT_EQ(name_read_back("\xF4\x90\x80\x80"), r + r + r + r) << "beyond U+10FFFF";
}

TEST(Report, EveryByteGivesAJsonText) {
  for (int c = 1; c < 256; ++c) {
    const std::string byte(1, static_cast<char>(c));
    EXPECT_EQ(name_read_back(byte), c < 0x80 ? byte : "\xEF\xBF\xBD") << c;
    for (const char ch : write(some_status(), {some_master(byte, byte)})) {
      ASSERT_GE(static_cast<unsigned char>(ch), 0x20) << c;
      ASSERT_LT(static_cast<unsigned char>(ch), 0x7F) << c;
    }
  }
}

TEST(Report, NameThatFillsItsArrayEndsThere) {
  const std::string name(REDLOCK_MASTER_NAME_MAX + 1, 'n');  // no room for a NUL
  EXPECT_EQ(name_read_back(name), name);
}

TEST(Report, BufferTooSmallHoldsAnEmptyString) {
  const redlock_status_t status = some_status();
  const redlock_master_status_t master = some_master("a\n", "b");
  const size_t needed = redlock::write_status_json(nullptr, 0, status, &master, 1);
  ASSERT_GT(needed, 100u);
  for (size_t capacity = 1; capacity <= needed + 1; ++capacity) {
    const std::unique_ptr<char[]> buffer(new char[capacity]);  // its exact size: a sanitizer sees one byte more
    memset(buffer.get(), '#', capacity);
    EXPECT_EQ(redlock::write_status_json(buffer.get(), capacity, status, &master, 1), needed);
    EXPECT_EQ(strlen(buffer.get()), capacity < needed ? 0 : needed - 1) << capacity;
  }
}

}  // namespace
