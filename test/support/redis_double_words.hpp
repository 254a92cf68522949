// SPDX-License-Identifier: MIT
//
// What the parts of RedisDouble share: words and numbers of the protocol, and what Redis says when it refuses.
#pragma once
#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "redis_double.hpp"
#include "sha1.hpp"

namespace redlock::test::redis_words {

constexpr char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }

inline std::string lower(std::string_view text) {
  std::string small(text);
  for (char& c : small) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
  return small;
}

// Is the text this word, which is given in capitals?
inline bool is(std::string_view text, std::string_view word) {
  if (text.size() != word.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (upper(text[i]) != word[i]) return false;
  }
  return true;
}

// The name of a command as a number: none that the double knows is longer. 0: too long.
constexpr uint64_t number_of(std::string_view name) {
  if (name.size() > 8) return 0;
  uint64_t number = 0;
  for (const char c : name) number = number << 8 | static_cast<unsigned char>(upper(c));
  return number;
}

inline void append(std::string& out, int64_t number) {
  char digits[20];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

inline void append_line(std::string& out, char mark, int64_t number) {
  out += mark;
  append(out, number);
  out.append("\r\n", 2);
}

inline void append_line(std::string& out, std::string_view text) { out.append(text).append("\r\n", 2); }

// Redis string2ll: no blanks, no plus sign, no leading zero.
inline std::optional<int64_t> to_int(std::string_view text) {
  const bool negative = !text.empty() && text[0] == '-';
  const std::string_view digits = negative ? text.substr(1) : text;
  if (digits.empty() || digits.size() > 19) return std::nullopt;
  if (digits[0] == '0' && (digits.size() > 1 || negative)) return std::nullopt;
  uint64_t value = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + static_cast<uint64_t>(c - '0');
  }
  const uint64_t limit = static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) + (negative ? 1 : 0);
  if (value > limit) return std::nullopt;
  return negative ? static_cast<int64_t>(~value + 1) : static_cast<int64_t>(value);
}

inline Reply err(std::string text) { return Reply::make_error(std::move(text)); }
inline Reply not_an_integer() { return err("ERR value is not an integer or out of range"); }
inline Reply syntax_error() { return err("ERR syntax error"); }
inline Reply wrong_type() { return err("WRONGTYPE Operation against a key holding the wrong kind of value"); }

// The same few texts again and again.
inline const std::string& sha_of(std::string_view text) {
  static thread_local std::unordered_map<std::string, std::string> known;
  std::string& sha = known[std::string(text)];
  if (sha.empty()) sha = Sha1::hex(text);
  return sha;
}

inline constexpr char kNoScript[] = "NOSCRIPT No matching script. Please use EVAL.";
inline constexpr char kWrongPass[] = "WRONGPASS invalid username-password pair or user is disabled.";
inline constexpr char kMisconf[] =
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that "
    "may "
    "modify the data set are disabled, because this instance is configured to report errors during writes if RDB "
    "snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB "
    "error.";
inline constexpr char kMasterDown[] =
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";
inline constexpr char kDenied[] =
    "-DENIED Redis is running in protected mode because protected mode is enabled and no password is set for the "
    "default user. In this mode connections are only accepted from the loopback interface. If you want to connect from "
    "external computers to Redis you may adopt one of the following solutions: 1) Just disable protected mode sending "
    "the command 'CONFIG SET protected-mode no' from the loopback interface by connecting to Redis from the same host "
    "the server is running, however MAKE SURE Redis is not publicly accessible from internet if you do so. Use CONFIG "
    "REWRITE to make this change permanent. 2) Alternatively you can just disable the protected mode by editing the "
    "Redis configuration file, and setting the protected mode option to 'no', and then restarting the server. 3) If "
    "you started the server manually just for testing, restart it with the '--protected-mode no' option. 4) Set up an "
    "authentication password for the default user. NOTE: You only need to do one of the above things in order for the "
    "server to start accepting connections from the outside.\r\n";

}  // namespace redlock::test::redis_words
