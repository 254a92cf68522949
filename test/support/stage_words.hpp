// SPDX-License-Identifier: MIT
//
// What the parts of the stage share: commands and replies on their way, and how a story names them.
#pragma once
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "lua_scripts.hpp"
#include "master/scripts.hpp"
#include "stage.hpp"

namespace redlock::test::stage_words {

inline constexpr TrueTime ns_per_ms = 1'000'000;
inline constexpr TrueTime never = INT64_MAX;
inline constexpr int64_t local_at_zero = 1'000'000 * ns_per_ms;  // a gateway's clock has run for a while
inline constexpr unsigned inputs_max = 200'000;                  // at one instant: more is a loop without end

inline std::string text_in(Bytes bytes) { return std::string(bytes.data, bytes.size); }
inline std::string sha_of(const Script& script) { return std::string(script.sha.data, script.sha.size); }

inline std::string short_name(int err) { return std::string(redlock_err_name(err)).substr(sizeof "REDLOCK_E_" - 1); }

inline uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// The first whole command of `bytes`, or nothing.
inline std::optional<size_t> command_end(const std::string& bytes, std::vector<std::string>& words) {
  words.clear();
  size_t at = 0;
  const auto number = [&](char mark) -> std::optional<size_t> {
    const size_t end = bytes.find("\r\n", at);
    if (end == std::string::npos) return std::nullopt;
    if (bytes[at] != mark) std::abort();  // the client never sends anything else
    const size_t value = std::stoul(bytes.substr(at + 1, end - at - 1));
    at = end + 2;
    return value;
  };
  const std::optional<size_t> count = number('*');
  if (!count) return std::nullopt;
  for (size_t i = 0; i < *count; ++i) {
    const std::optional<size_t> size = at < bytes.size() ? number('$') : std::nullopt;
    if (!size || bytes.size() < at + *size + 2) return std::nullopt;
    words.push_back(bytes.substr(at, *size));
    at += *size + 2;
  }
  return at;
}

// "invalidate" and a list of keys, or null: "bus changed", "all keys changed".
inline std::string push_in_words(const std::string& bytes) {
  const size_t list = bytes.find("\r\n*1\r\n$");
  if (list == std::string::npos) return "all keys changed";
  const size_t key = bytes.find("\r\n", list + 7) + 2;
  return bytes.substr(key, bytes.find("\r\n", key) - key) + " changed";
}

inline std::string reply_in_words(const std::string& bytes) {
  if (bytes.empty()) return "no answer";
  const std::string line = bytes.substr(1, bytes.find('\r') - 1);
  switch (bytes[0]) {
    case '+':
    case ':':
      return line;
    case '-': {
      const std::string word = line.substr(0, line.find(' '));
      return "-" + (word == "ERR" ? line.substr(0, 40) : word);
    }
    case '_':
      return "nil";
    case '>':
      return push_in_words(bytes);
    case '$': {
      const size_t start = bytes.find('\n') + 1;
      if (line == "-1") return "nil";
      return bytes.find('\n', start) + 1 < bytes.size() ? "(bytes)" : bytes.substr(start, bytes.size() - start - 2);
    }
    case '%':
    case '*':
      return "(" + line + " items)";
    default:
      return "(bytes)";
  }
}

inline bool is_greeting(const std::vector<std::string>& words) {
  const std::string& word = words[0];
  return word == "HELLO" || word == "AUTH" || word == "ROLE" || word == "SCRIPT" || word == "PING" ||
         word == "CLIENT" || word == "TIME" || (word == "EVAL" && words[1] == text_of(reading_script)) ||
         (word == "EVALSHA" && Bytes(words[1].data(), words[1].size()) == reading_script.sha);
}

inline bool is_caching(const std::vector<std::string>& words) { return words[0] == "CLIENT" && words[1] == "CACHING"; }

}  // namespace redlock::test::stage_words
