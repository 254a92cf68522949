// SPDX-License-Identifier: MIT
//
// Wire: what one connection of the client has sent, as a master reads it: an array of bulk strings for each command,
// in Redis' one spelling, and only commands that the client has reason to say. Anything else is a bug of the writer, of
// the transmit buffer or of the order in which they are used.
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "bare_driver.hpp"
#include "master/scripts.hpp"

namespace redlock::test {

// The script that a command calls, by its text or its name; null: it calls none.
inline const Script* script_of(const std::vector<std::string>& words) {
  static constexpr const Script* all[] = {&acquire_script, &extend_script,  &release_script, &token_script,
                                          &look_script,    &reading_script, &record_script,  &visit_script};
  if (words.size() < 3 || (words[0] != "EVAL" && words[0] != "EVALSHA")) return nullptr;
  for (const Script* const script : all) {
    std::string text(script->common.data, script->common.size);
    text.append(script->body.data, script->body.size);
    if (words[1] == (words[0] == "EVAL" ? text : std::string(script->sha.data, script->sha.size))) return script;
  }
  return nullptr;
}

class Wire {
 public:
  using Command = std::vector<std::string>;

  void clear() {
    rest_.clear();
    commands_ = 0;
  }
  uint64_t commands() const { return commands_; }  // complete ones
  bool at_boundary() const { return rest_.empty(); }

  // Bytes arrive; complete commands are added to `out`.
  void arrive(std::string_view bytes, std::deque<Command>& out) {
    rest_ += bytes;
    Command words;
    for (size_t used = one(rest_, words); used > 0; used = one(rest_, words)) {
      rest_.erase(0, used);
      check(words);
      out.push_back(words);
      ++commands_;
    }
  }

 private:
  // Bytes of the first complete command, or 0.
  static size_t one(std::string_view bytes, Command& words) {
    words.clear();
    size_t at = 0;
    uint64_t count = 0;
    if (!number(bytes, at, '*', count)) return 0;
    require(count >= 1 && count <= 12, "a command has 1 to 12 words");
    for (uint64_t i = 0; i < count; ++i) {
      uint64_t size = 0;
      if (!number(bytes, at, '$', size)) return 0;
      require(size <= 4096, "a word has at most 4096 bytes");
      const size_t length = static_cast<size_t>(size);
      if (bytes.size() < at + length + 2) return 0;
      words.emplace_back(bytes.substr(at, length));
      require(bytes.substr(at + length, 2) == "\r\n", "a word ends with CR LF");
      at += length + 2;
    }
    return at;
  }

  static bool number(std::string_view bytes, size_t& at, char mark, uint64_t& value) {
    if (at >= bytes.size()) return false;
    require(bytes[at] == mark, "a header begins with its mark");
    const size_t end = bytes.find("\r\n", at);
    if (end == std::string_view::npos) {
      require(bytes.size() - at < 12, "a header is short");
      return false;
    }
    const std::string_view digits = bytes.substr(at + 1, end - at - 1);
    require(is_number(digits), "a length is a decimal number");
    value = 0;
    for (const char c : digits) value = value * 10 + static_cast<uint64_t>(c - '0');
    at = end + 2;
    return true;
  }

  static bool is_number(std::string_view digits) {
    if (digits.empty() || digits.size() > 10 || (digits.size() > 1 && digits[0] == '0')) return false;
    return digits.find_first_not_of("0123456789") == std::string_view::npos;
  }

  static bool is_value(const std::string& word) {
    return word.size() > 41 && word[40] == ':' && word.find_first_not_of("0123456789abcdef") == 40;
  }

  static void check(const Command& words) {
    const std::string& name = words[0];
    if (name == "SET") {
      require(words.size() == 6 && words[3] == "NX" && words[4] == "PX", "SET key value NX PX ttl");
      require(!words[1].empty() && is_value(words[2]) && is_number(words[5]), "SET of a value of ours");
    } else if (name == "EVALSHA" || name == "EVAL") {
      check_script(words);
    } else if (name == "PING") {
      require(words.size() == 2 && words[1].size() == 8, "a ping has a nonce");
    } else if (name == "HELLO") {
      require(words.size() == 4 || words.size() == 7, "HELLO 3 [AUTH user password] SETNAME name");
    } else if (name == "CLIENT") {
      const bool tracking = words.size() == 5 && words[1] == "TRACKING" && words[2] == "on" && words[3] == "OPTIN" &&
                            words[4] == "NOLOOP";
      const bool caching = words.size() == 3 && words[1] == "CACHING" && words[2] == "yes";
      const bool id = words.size() == 2 && words[1] == "ID";
      const bool kill = words.size() == 4 && words[1] == "KILL" && words[2] == "ID" && is_number(words[3]);
      require(tracking || caching || id || kill, "CLIENT TRACKING on OPTIN NOLOOP, CACHING yes, ID, or KILL ID");
    } else if (name == "PTTL" || name == "GET") {
      require(words.size() == 2 && !words[1].empty(), "PTTL key, GET key");
    } else if (name == "SCRIPT") {
      require(words.size() == 3 && words[1] == "LOAD", "SCRIPT LOAD text");
    } else {
      const bool alone = name == "ROLE" || name == "TIME";
      require((name == "AUTH" && words.size() <= 3) || (alone && words.size() == 1), "a command we know");
    }
  }

  static bool is_seal(const std::string& word) { return word.size() == 50 && word[16] == ':' && word[33] == ':'; }

  static void check_script(const Command& words) {
    const Script* const script = script_of(words);
    require(script != nullptr, "a script of ours");
    if (script == &reading_script && words[0] == "EVALSHA") {
      return require(words.size() == 5 && words[2] == "1" && words[4].size() == 16, "the record and a tag");
    }
    if (script == &reading_script || script == &record_script || script == &visit_script) {
      const size_t arguments = script == &reading_script ? 1 : script == &record_script ? 7 : 4;
      require(words[0] == "EVAL" && words[2] == "2" && words.size() == 5 + arguments, "a script about the record");
      require(words[3].size() >= 13 && words[4].size() == words[3].size(), "the record and the visits");
      if (script == &reading_script) require(words[5].empty() || words[5].size() == 36, "a boot id");
      if (script == &visit_script)
        require(is_seal(words[6]) && is_number(words[7]) && is_number(words[8]), "a state and two times");
      if (script == &record_script) require(words[10].empty() || is_seal(words[10]), "a seal or none");
      return;
    }
    const bool sealed = words[2] == "2";
    const size_t value = sealed ? 5 : 4, ttl = script == &release_script ? 0 : 1;
    require(words.size() == value + 1 + ttl + (sealed ? 1 : 0), "a key, a value, perhaps a ttl and a seal");
    require(is_value(words[value]), "a script about a value of ours");
    require(ttl == 0 || is_number(words[value + 1]), "a ttl is a number");
    require(!sealed || (is_seal(words.back()) && script != &release_script), "a state to be compared");
    require(sealed || script != &acquire_script, "an acquire of one name without a state is a SET");
  }

  std::string rest_;
  uint64_t commands_ = 0;
};

}  // namespace redlock::test
