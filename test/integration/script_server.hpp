// SPDX-License-Identifier: MIT
//
// Our scripts on a real server. The double runs the same Lua (support/lua_scripts.hpp), so what is asked here is what
// only a server shows: another identity behind the same data, what a user may not do, a full memory, keys of other
// types, and the server's time.
#pragma once
#include <gtest/gtest.h>

#include <cctype>
#include <string>

#include "master/scripts.hpp"
#include "support/lua_scripts.hpp"
#include "support/redis_server.hpp"
#include "support/server_kind.hpp"

namespace redlock::test {

inline const std::string meta = "redlock::meta";
inline const std::string seen = "redlock::seen";
inline const std::string counters = "redlock::fence";

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

class ScriptServer : public ::testing::Test {
 protected:
  std::string say(const Args& request) {
    conn_.send(resp_command(request));
    size_t at = 0;
    return said(conn_.receive(1), at);
  }
  std::string run(const Script& script, const Args& keys, const Args& argv) {
    Args request = {"EVAL", text_of(script), std::to_string(keys.size())};
    request.insert(request.end(), keys.begin(), keys.end());
    request.insert(request.end(), argv.begin(), argv.end());
    return say(request);
  }
  void speak_resp3() {
    conn_.send(resp_command({"HELLO", "3"}));
    conn_.receive(1);
  }

  int64_t real_ms() {
    const std::string time = real.command({"TIME"});
    const size_t blank = time.find(' ');
    return std::stoll(time.substr(0, blank)) * 1'000 + std::stoll(time.substr(blank + 1)) / 1'000;
  }
  std::string long_replid() { return info_field(real.command({"INFO", "replication"}), "master_replid"); }
  std::string replid() { return long_replid().substr(0, 16); }
  // The seal of the server's present identity, with this word in the quarantine id.
  std::string seal_of(const std::string& word) { return seal_of(word, replid()); }
  static std::string seal_of(const std::string& word, const std::string& replid) {
    return "00112233445566ff:" + replid + ":" + quarantine_of(word);
  }
  static std::string quarantine_of(const std::string& word) { return std::string(16 - word.size(), '0') + word; }
  // Another server's data are taken over, and back: the same data, another replication id.
  void cycle_roles() {
    become_replica();
    real.command({"REPLICAOF", "NO", "ONE"});
  }
  void become_replica() { real.command({"REPLICAOF", "127.0.0.1", "1"}); }
  void deny(const std::string& command) { real.command({"ACL", "SETUSER", "default", "-" + command}); }

  RedisServer real;

 private:
  RedisConnection conn_ = real.connect();
};

}  // namespace redlock::test
