// SPDX-License-Identifier: MIT
//
// A real server and the double, told the same on one connection each, and compared: the bytes of each reply, and then
// what is left of it. Both have the same replication id, so one seal is right for both. Only what must differ is
// masked: the server's time, which is held against TIME, the script's line in an error, and of INFO all but what the
// guard reads.
#pragma once
#include <gtest/gtest.h>

#include <cctype>
#include <string>
#include <utility>

#include "master/scripts.hpp"
#include "support/guard_scripts.hpp"
#include "support/lock_scripts.hpp"
#include "support/redis_double.hpp"
#include "support/redis_server.hpp"
#include "support/server_kind.hpp"

namespace redlock::test {

inline const std::string meta = "redlock::meta";
inline const std::string seen = "redlock::seen";
inline const std::string counters = "redlock::fence";

inline std::string readable(const std::string& bytes) {
  std::string text;
  for (const char c : bytes)
    text += c == '\r' ? std::string("\\r") : c == '\n' ? std::string("\\n") : std::string(1, c);
  return text;
}

// The value of a field of INFO.
inline std::string info_field(const std::string& info, const std::string& name) {
  const size_t at = info.find("\n" + name + ":");
  if (at == std::string::npos) return "";
  const size_t value = at + name.size() + 2;
  return info.substr(value, info.find('\r', value) - value);
}

// A reply as text: of an error its first word; an array's elements separated by blanks.
inline std::string said(const std::string& bytes, size_t& at) {
  const size_t line = bytes.find("\r\n", at);
  const std::string first = bytes.substr(at, line - at);
  at = line + 2;
  if (first[0] == ':' || first[0] == '+') return first.substr(1);
  if (first[0] == '-') return first_word(first);
  if (first == "$-1" || first == "_") return "(nil)";
  if (first[0] == '*') {
    std::string words;
    for (int left = std::stoi(first.substr(1)); left > 0; --left) words += (words.empty() ? "" : " ") + said(bytes, at);
    return words;
  }
  const std::string text = bytes.substr(at, std::stoul(first.substr(1)));
  at += text.size() + 2;
  return text;
}
inline std::string said(const std::string& bytes) {
  size_t at = 0;
  return said(bytes, at);
}

class Twins : public ::testing::Test {
 protected:
  Twins() : twin_(redis.open(0)) {
    register_lock_scripts(redis);
    register_guard_scripts(redis);
    same_identity();
    if (!kind.is_seven()) speak_as(kind, redis);
  }

  // The same request to both, answered by the same bytes; this is what they said.
  std::string both(const Args& request) {
    const std::string bytes = resp_command(request);
    const int64_t before = real_ms();
    conn_.send(bytes);
    const std::string reply = masked(conn_.receive(1), before, [this] { return real_ms(); });
    redis.receive(twin_, bytes, 0);
    const std::string twin = masked(take(), redis.wall_ms(0), [this] { return redis.wall_ms(0); });
    EXPECT_EQ(comparable(reply), comparable(twin)) << readable(bytes);
    return said(reply);
  }
  std::string run(const Script& script, const Args& keys, const Args& argv) {
    Args request = {"EVAL", text_of(script), std::to_string(keys.size())};
    request.insert(request.end(), keys.begin(), keys.end());
    request.insert(request.end(), argv.begin(), argv.end());
    return both(request);
  }
  // From here on both are spoken to in RESP3.
  void speak_resp3() {
    const std::string hello = resp_command({"HELLO", "3"});
    conn_.send(hello);
    conn_.receive(1);
    redis.receive(twin_, hello, 0);
    take();
  }
  // One answer of each to requests that read only, for what must be compared in another way.
  std::pair<std::string, std::string> answers(const std::string& requests, size_t replies) {
    conn_.send(requests);
    redis.receive(twin_, requests, 0);
    const std::string real_bytes = conn_.receive(replies);
    return {real_bytes, take()};
  }

  std::string comparable(const std::string& bytes) const { return readable(kind.is_seven() ? bytes : outline(bytes)); }

  // The double gets the replication id that the real server has now.
  void same_identity() { redis.set_replid(info_field(real.command({"INFO", "replication"}), "master_replid")); }
  std::string replid() const { return redis.replid().substr(0, 16); }
  // The seal of both servers' present identity, with this word in the quarantine id.
  std::string seal_of(const std::string& word) const { return seal_of(word, replid()); }
  static std::string seal_of(const std::string& word, const std::string& replid) {
    return "00112233445566ff:" + replid + ":" + quarantine_of(word);
  }
  static std::string quarantine_of(const std::string& word) { return std::string(16 - word.size(), '0') + word; }
  // Another server's data are taken over, and back: the same data, another replication id.
  void cycle_roles() {
    real.command({"REPLICAOF", "127.0.0.1", "1"});
    real.command({"REPLICAOF", "NO", "ONE"});
    redis.become_replica();
    redis.become_master();
    same_identity();
  }
  void deny(const std::string& command) {
    std::string small = command;
    for (char& c : small) c = static_cast<char>(std::tolower(c));
    real.command({"ACL", "SETUSER", "default", "-" + small});
    redis.knobs.noperm.insert(command);
  }

  RedisServer real;
  const ServerKind kind = kind_of(real);
  RedisDouble redis{1, WallClock(1'700'000'000'012)};  // a time whose microseconds begin with a zero

 private:
  std::string take() { return std::exchange(redis.out(twin_), {}); }

  int64_t real_ms() {
    const std::string time = real.command({"TIME"});
    const size_t blank = time.find(' ');
    return std::stoll(time.substr(0, blank)) * 1'000 + std::stoll(time.substr(blank + 1)) / 1'000;
  }

  template <typename Clock>
  static std::string masked(const std::string& bytes, int64_t before, Clock&& clock) {
    return without_line(without_info(take_time(bytes, before, clock)));
  }

  // An error names the script's line, and the double has none.
  static std::string without_line(std::string bytes) {
    static const std::string mark = "@user_script:";
    const size_t at = bytes.find(mark);
    if (at == std::string::npos) return bytes;
    const size_t line = at + mark.size();
    if (!std::isdigit(static_cast<unsigned char>(bytes[line]))) return bytes;
    return bytes.replace(line, bytes.find_first_not_of("0123456789", line) - line, "1");
  }

  // Of INFO the four fields that the guard reads are left.
  static std::string without_info(std::string bytes) {
    const size_t at = bytes.find("\r\n# Replication\r\n");
    if (at == std::string::npos) return bytes;
    const size_t head = bytes.rfind('$', at);
    const size_t size = std::stoul(bytes.substr(head + 1));
    const std::string info = bytes.substr(at + 2, size);
    std::string left = "INFO";
    for (const char* field : {"role", "connected_slaves", "master_replid", "repl_backlog_active"}) {
      left += std::string(",") + field + "=" + info_field(info, field);
    }
    return bytes.replace(head, at + 2 + size - head, "$" + std::to_string(left.size()) + "\r\n" + left);
  }

  // "known 41 1700000000000" becomes "known 41 now", if it was.
  template <typename Clock>
  static std::string take_time(std::string bytes, int64_t before, Clock&& clock) {
    if (bytes[0] != '$' || bytes[1] == '-') return bytes;
    const std::string text = said(bytes);
    if (!text.starts_with("known ") && !text.starts_with("hint ")) return bytes;
    const size_t at = bytes.rfind(' ') + 1;
    const std::string ms = bytes.substr(at, bytes.size() - at - 2);
    EXPECT_EQ(ms.find_first_not_of("0123456789"), std::string::npos) << ms;
    EXPECT_GE(std::stoll(ms), before);
    EXPECT_LE(std::stoll(ms), clock());
    const std::string left = text.substr(0, text.rfind(' ')) + " now";
    return bytes.replace(0, bytes.size(), "$" + std::to_string(left.size()) + "\r\n" + left + "\r\n");
  }

  RedisConnection conn_ = real.connect();
  int twin_;
};

}  // namespace redlock::test
