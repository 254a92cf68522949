// SPDX-License-Identifier: MIT
#include "master/scripts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <string_view>

#include "site/move_script.hpp"
#include "test/support/lua_scripts.hpp"
#include "test/support/sha1.hpp"

namespace redlock {
namespace {

using test::Sha1;

std::string_view sha(const Script& script) { return {script.sha.data, script.sha.size}; }

struct Named {
  const char* name;
  const Script& script;
  bool common;  // the text of common.lua stands in front
};
const Named all[] = {
    {"acquire", acquire_script, true}, {"extend", extend_script, true}, {"release", release_script, false},
    {"token", token_script, true},     {"look", look_script, false},    {"reading", reading_script, false},
    {"record", record_script, true},   {"visit", visit_script, true},   {"move", move_script, false}};

// A file's lines without comments and white space in front.
std::string source(const std::string& name) {
  const std::string room = name == "move" ? "site" : "master";
  std::ifstream file(REDLOCK_SOURCE_DIR "/src/" + room + "/scripts/" + name + ".lua");
  EXPECT_TRUE(file.good()) << name;
  std::string text;
  for (std::string line; std::getline(file, line);) {
    line.erase(0, line.find_first_not_of(" \t"));
    if (!line.empty() && line.compare(0, 2, "--") != 0) text += line + '\n';
  }
  return text;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) text.replace(at, from.size(), to);
  return text;
}

TEST(Sha1, known_digests) {
  EXPECT_EQ(Sha1::hex(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(Sha1::hex("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
}

// EVALSHA names all that EVAL sends.
TEST(Scripts, digests_are_those_of_the_texts) {
  for (const Named& n : all) {
    const std::string text = test::text_of(n.script);
    EXPECT_EQ(sha(n.script), Sha1::hex(text)) << n.name;
    EXPECT_EQ(n.script.size(), text.size()) << n.name;
    EXPECT_EQ(text.find("\r"), text.npos) << n.name;
  }
  EXPECT_NE(sha(release_script), sha(extend_script));
}

// What a reviewer reads is what the server runs.
TEST(Scripts, texts_are_the_files_without_comments) {
  for (const Named& n : all) {
    EXPECT_EQ(test::text_of(n.script) + '\n', (n.common ? source("common") : "") + source(n.name)) << n.name;
  }
}

// In the program once, whoever sends it.
TEST(Scripts, the_common_text_is_one) {
  for (const Named& n : all) {
    EXPECT_EQ(n.script.common.data, n.common ? acquire_script.common.data : nullptr) << n.name;
    const bool uses = source(n.name).find("other_s") != std::string::npos;
    EXPECT_EQ(uses, n.common) << n.name << ": a function that is not there, or bytes for nothing";
  }
}

// This test must know every script: one that it does not look at has no digest to be wrong.
TEST(Scripts, none_is_forgotten_here) {
  size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(REDLOCK_SOURCE_DIR "/src")) {
    files += entry.path().extension() == ".lua";
  }
  EXPECT_EQ(files, std::size(all) + 1) << "and common.lua";
}

// The calls of a script in the order in which they are made, as far as a text can tell: what a function does is done
// where the function is called, and an acquire without a token ends before one with a token goes on.
std::string in_order(const Named& n, bool fenced) {
  std::string text = source(n.name);
  const std::string set = "local function set()\n";
  const size_t from = text.find(set);
  if (from != text.npos) {
    const std::string end = "end\nend\n";
    const size_t to = text.find(end, from) + end.size();
    const std::string what = text.substr(from + set.size(), to - from - set.size() - 4);
    text = replaced(text.substr(0, from) + text.substr(to), "set()", what);
  }
  const size_t plain = text.find("if not fenced then\n");
  if (plain != text.npos) {
    const std::string end = "return redis.status_reply('OK')\nend\n";
    const size_t behind = text.find(end) + end.size();
    text = fenced ? text.substr(0, plain) + text.substr(behind) : text.substr(0, behind);
  }
  text = replaced(text, "other_state(", "redis.call('HGET',KEYS[1])redis.call('INFO',");
  return replaced(text, "other_server(", "redis.call('INFO',");
}

TEST(Scripts, no_shebang_and_reads_before_writes) {
  for (const Named& n : all) {
    EXPECT_NE(test::text_of(n.script).substr(0, 1), "#")
        << n.name << ": Redis refuses a script with a shebang at maxmemory";
    for (const bool fenced : {false, true}) {
      const std::string text = in_order(n, fenced);
      const std::regex first("redis\\.p?call\\('(GET|EXISTS|HGET|HMGET|PTTL)',KEYS\\[(1|i)\\][,)]");
      std::smatch found;
      ASSERT_TRUE(std::regex_search(text, found, first)) << n.name;
      EXPECT_EQ(std::min(text.find("redis.call"), text.find("redis.pcall")), static_cast<size_t>(found.position(0)))
          << n.name;
      size_t first_write = text.size(), last_read = 0;
      for (const char* write : {"'SET'", "'HSET'", "'HDEL'", "'DEL'", "'PEXPIRE'"}) {
        first_write = std::min(first_write, text.find(write));
      }
      // No write is left alone because a later call is refused.
      for (const char* read : {"'GET'", "'EXISTS'", "'HGET'", "'HLEN'", "'HMGET'", "'TIME'", "'INFO'"}) {
        if (text.rfind(read) != text.npos) last_read = std::max(last_read, text.rfind(read));
      }
      EXPECT_LT(last_read, first_write) << n.name;
      const bool goes_on = n.script.body == release_script.body || n.script.body == reading_script.body ||
                           n.script.body == move_script.body;
      EXPECT_EQ(text.find("pcall") != text.npos, goes_on) << n.name << ": an error ends the others";
    }
  }
}

}  // namespace
}  // namespace redlock
