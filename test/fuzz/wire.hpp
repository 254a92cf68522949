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

namespace redlock::test {

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
    require(count >= 1 && count <= 8, "a command has 1 to 8 words");
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
      require(words.size() == 5 || words.size() == 6, "a script has a key, a value and perhaps a ttl");
      require(name == "EVAL" || words[1].size() == 40, "a digest has 40 digits");
      require(words[2] == "1" && is_value(words[4]), "a script about a value of ours");
      require(words.size() == 5 || is_number(words[5]), "a ttl is a number");
    } else if (name == "PING") {
      require(words.size() == 2 && words[1].size() == 8, "a ping has a nonce");
    } else if (name == "HELLO") {
      require(words.size() == 4 || words.size() == 7, "HELLO 3 [AUTH user password] SETNAME name");
    } else if (name == "CLIENT") {
      const bool tracking = words.size() == 5 && words[1] == "TRACKING" && words[2] == "on" && words[3] == "OPTIN" &&
                            words[4] == "NOLOOP";
      const bool caching = words.size() == 3 && words[1] == "CACHING" && words[2] == "yes";
      require(tracking || caching, "CLIENT TRACKING on OPTIN NOLOOP, or CLIENT CACHING yes");
    } else if (name == "PTTL") {
      require(words.size() == 2 && !words[1].empty(), "PTTL key");
    } else if (name == "SCRIPT") {
      require(words.size() == 3 && words[1] == "LOAD", "SCRIPT LOAD text");
    } else {
      require((name == "AUTH" && words.size() <= 3) || (name == "ROLE" && words.size() == 1), "a command we know");
    }
  }

  std::string rest_;
  uint64_t commands_ = 0;
};

}  // namespace redlock::test
