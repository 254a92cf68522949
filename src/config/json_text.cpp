// SPDX-License-Identifier: MIT
#include "config/json_text.hpp"

#include "base/digits.hpp"

namespace redlock {
namespace {

// A configuration needs three levels.
constexpr unsigned nesting_max = 8;

bool continues_number(char c) { return is_digit(c) || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E'; }

class Scanner {
 public:
  Scanner(Bytes json, char* masked) : json_(json), masked_(masked) {}

  TextFault run() {
    if (json_.size >= 3 && memcmp(json_.data, "\xEF\xBB\xBF", 3) == 0) return {0, "a byte order mark"};
    while (at_ < json_.size) {
      const size_t step = utf8_sequence(rest());
      if (step == 0) return {at_, "a byte that is not UTF-8"};
      const char* what = in_string_ ? inside_string() : between_strings();
      if (what != nullptr) return {at_, what};
      const bool hidden = in_string_ && escape_ == 0 && at(at_) != '"';
      const size_t end = at_ + (escape_ != 0 ? escape_ : step);
      for (; at_ < end && at_ < json_.size; ++at_) *masked_++ = hidden ? 'x' : json_.data[at_];
      escape_ = 0;
    }
    *masked_ = '\0';
    return {};
  }

 private:
  Bytes rest() const { return Bytes(json_.data + at_, json_.size - at_); }
  char at(size_t i) const { return i < json_.size ? json_.data[i] : ' '; }

  const char* inside_string() {
    const char c = at(at_);
    if (static_cast<unsigned char>(c) < 0x20) return "a control character in a string";
    if (c == '"') in_string_ = false;
    if (c != '\\') return nullptr;
    // What belongs to the escape is skipped: by itself it might look like the end of the string, or like an escape.
    escape_ = at(at_ + 1) == 'u' ? 6 : 2;
    return escape_ == 6 ? unicode_escape() : nullptr;
  }

  // cJSON reads \u with wrong digits as a NUL, and ends the string there.
  const char* unicode_escape() const {
    int any = 0;
    for (size_t i = 2; i < 6; ++i) any |= hex_value(at(at_ + i));
    if (any < 0) return "\\u without four hex digits";
    return any == 0 ? "\\u0000 in a string" : nullptr;
  }

  const char* between_strings() {
    const char c = at(at_);
    const bool is_control = static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t';
    if (is_control || c == '/') return "not JSON";  // what follows a comment there is no fault of its own
    if (c == '"') in_string_ = true;
    const bool nests = c == '{' || c == '[';
    const bool begins_value = nests || in_string_;
    if (begins_value && memchr("{[:,", last_, 4) == nullptr) return "a comma or colon is missing";
    if (nests && ++depth_ > nesting_max) return "nested too deep";
    const bool closes = c == '}' || c == ']';
    if (closes && last_ == ',') return "a comma too many";
    depth_ -= closes && depth_ > 0;
    if (c > ' ') last_ = c;
    const char before = at_ > 0 ? at(at_ - 1) : ' ';
    const bool begins = before == '-' || !continues_number(before);
    if (c == '0' && begins && is_digit(at(at_ + 1))) return "a number with a leading zero";
    return nullptr;
  }

  Bytes json_;
  char* masked_;
  size_t at_ = 0;
  unsigned depth_ = 0;
  char last_ = ':';  // but for blanks; a value follows, as it does first of all
  bool in_string_ = false;
  uint8_t escape_ = 0;  // bytes of the escape that begins here
};

}  // namespace

TextFault find_text_fault(Bytes json, char* masked) { return Scanner(json, masked).run(); }

// No string reaches into a second line: find_text_fault() refuses that.
void blank_comments(char* json, size_t size) {
  bool is_comment = false;
  bool is_begin = true;  // nothing but blanks was seen of this line
  for (size_t i = 0; i < size; ++i) {
    if (json[i] == '\n') {
      is_comment = false;
      is_begin = true;
      continue;
    }
    if (is_begin && json[i] == '/' && i + 1 < size && json[i + 1] == '/') is_comment = true;
    if (json[i] != ' ' && json[i] != '\t') is_begin = false;
    if (is_comment) json[i] = ' ';
  }
}

void write_position(TextWriter& why, Bytes json, size_t offset) {
  unsigned line = 1;
  unsigned column = 1;
  for (size_t i = 0; i < offset && i < json.size; ++i) {
    const bool newline = json.data[i] == '\n';
    line += newline ? 1 : 0;
    column = newline ? 1 : column + 1;
  }
  why.print("line %u, column %u: ", line, column);
}

}  // namespace redlock
