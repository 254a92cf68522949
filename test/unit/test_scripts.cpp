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

#include "test/support/sha1.hpp"

namespace redlock {
namespace {

using test::Sha1;

std::string_view body(const Script& script) { return {script.body.data, script.body.size}; }
std::string_view sha(const Script& script) { return {script.sha.data, script.sha.size}; }

struct Named {
  const char* name;
  const Script& script;
};
const Named all[] = {{"release", release_script},
                     {"release_several", release_several_script},
                     {"look", look_script},
                     {"extend", extend_script},
                     {"seal", seal_script},
                     {"quarantine", quarantine_script},
                     {"move", move_script},
                     {"acquire_fenced", acquire_fenced_script},
                     {"token", token_script},
                     {"extend_fenced", extend_fenced_script}};

TEST(Sha1, known_digests) {
  EXPECT_EQ(Sha1::hex(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(Sha1::hex("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
}

TEST(Scripts, digests_are_those_of_the_texts) {
  for (const Named& n : all) {
    EXPECT_EQ(sha(n.script), Sha1::hex(body(n.script))) << n.name;
  }
  EXPECT_NE(sha(release_script), sha(extend_script));
}

// Every line of the text stands in the file, in order; what is left out are comments and blank lines.
TEST(Scripts, texts_are_the_files_without_comments) {
  for (const Named& n : all) {
    std::ifstream file(std::string(REDLOCK_SOURCE_DIR "/src/master/scripts/") + n.name + ".lua");
    ASSERT_TRUE(file.good()) << n.name;
    std::string expected;
    for (std::string line; std::getline(file, line);) {
      line.erase(0, line.find_first_not_of(" \t"));
      if (!line.empty() && line.compare(0, 2, "--") != 0) expected += line + '\n';
    }
    EXPECT_EQ(body(n.script), expected) << n.name;
  }
}

// This test must know every script: one that it does not look at has no digest to be wrong.
TEST(Scripts, none_is_forgotten_here) {
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(REDLOCK_SOURCE_DIR "/src/master/scripts")) {
    files += entry.path().extension() == ".lua";
  }
  EXPECT_EQ(files, std::size(all));
}

TEST(Scripts, no_shebang_and_reads_before_writes) {
  for (const Named& n : all) {
    EXPECT_NE(body(n.script).substr(0, 1), "#") << n.name << ": Redis refuses a script with a shebang at maxmemory";
    const std::regex first("redis\\.call\\('(GET|EXISTS|HGET|HMGET|PTTL|MGET)',(unpack\\(KEYS\\)|KEYS\\[(1|i)\\])[,)]");
    std::cmatch found;
    const std::string_view text = body(n.script);
    ASSERT_TRUE(std::regex_search(text.data(), text.data() + text.size(), found, first)) << n.name;
    EXPECT_EQ(text.find("redis.call"), static_cast<size_t>(found.position(0))) << n.name;
    size_t first_write = text.size(), last_read = 0;
    for (const char* write : {"'SET'", "'HSET'", "'HDEL'", "'DEL'", "'PEXPIRE'"}) first_write = std::min(first_write, text.find(write));
    for (const char* read : {"'GET'", "'MGET'", "'EXISTS'", "'HGET'", "'HMGET'", "'TIME'"}) {
      if (text.rfind(read) != std::string_view::npos) last_read = std::max(last_read, text.rfind(read));
    }
    EXPECT_LT(last_read, first_write) << n.name;
    EXPECT_EQ(body(n.script).find("pcall"), std::string_view::npos) << n.name;
  }
}

// A value or a token that went through a Lua number would lose digits.
TEST(Scripts, a_value_never_becomes_a_number) {
  const std::regex tonumber("tonumber\\(([^()]*)\\)");
  for (const Named& n : all) {
    const std::string text(body(n.script));
    for (std::sregex_iterator it(text.begin(), text.end(), tonumber), end; it != end; ++it) {
      EXPECT_EQ((*it)[1], "ARGV[2]") << n.name << ": only the ttl is a number";
    }
    size_t words = 0;
    for (size_t at = 0; (at = text.find("tonumber", at)) != std::string::npos; ++at) ++words;
    const auto matches =
        std::distance(std::sregex_iterator(text.begin(), text.end(), tonumber), std::sregex_iterator());
    EXPECT_EQ(static_cast<long>(words), matches) << n.name << ": a tonumber that the pattern does not understand";
    // Arithmetic, or a comparison with < or >, would convert it as well.
    const std::string other = n.script.body == extend_fenced_script.body ? "[13]" : "[^2]";
    const std::string argument = "ARGV\\[" + other + "\\]";
    EXPECT_FALSE(std::regex_search(text, std::regex(argument + "\\s*[-+*/%<>]|[-+*/%<>]\\s*" + argument))) << n.name;
    EXPECT_EQ(text.find("..token+"), std::string::npos) << n.name;
  }
}

TEST(Scripts, never_lower_the_expiry_and_never_make_a_key) {
  EXPECT_NE(body(extend_script).find("PTTL"), std::string_view::npos);
  EXPECT_EQ(body(extend_script).find("SET"), std::string_view::npos);
  EXPECT_EQ(body(release_script).find("SET"), std::string_view::npos);
}

}  // namespace
}  // namespace redlock
