// SPDX-License-Identifier: MIT
//
// Status as JSON: literally once, and read back by cJSON for what is hard to write.
#include "config/report.hpp"

#include <cjson/cJSON.h>
#include <gtest/gtest.h>
#include <string.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace {

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
