// SPDX-License-Identifier: MIT
//
// Text: a line that is put together, in a fixed buffer. What a server, a file or a writer of a value says is escaped,
// so that it can neither move a terminal's cursor nor pretend to be a line of ours.
#pragma once
#include <string.h>

#include "tool/words/format.hpp"

namespace redlock::tool {

class Text {
 public:
  Text() { text_[0] = '\0'; }
  REDLOCK_TOOL_FORMAT(2) explicit Text(const char* format, ...);
  REDLOCK_TOOL_FORMAT(2) Text& add(const char* format, ...);
  // The one spelling of names in all that is written; JSON and Prometheus quote it once more. Printable ASCII as it is,
  // any other byte and the backslash as \xNN; at most `limit` bytes, then "...".
  Text& escaped(const char* data, size_t size, size_t limit = 80);
  Text& escaped(const char* text) { return escaped(text, strlen(text)); }
  // As a word of a shell's command, in quotes if it needs them. What is not printed stands as \\xNN, which the shell
  // reads.
  Text& word(const char* data, size_t size);
  Text& word(const char* text) { return word(text, strlen(text)); }
  // A number of thousandths, with one digit behind the point: 6240 is "6.2".
  Text& thousandths(int64_t number);
  const char* c_str() const { return text_; }
  operator const char*() const { return text_; }  // for a call that takes a text
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  size_t size_ = 0;
  char text_[1536];
};

// A master's name. One that has none is called by its address, which the library has escaped already.
inline Text name_of_master(const char* name, const char* address) {
  return strcmp(name, address) == 0 ? Text("%s", address) : Text().escaped(name);
}

// Writes one JSON object to stdout, piece by piece. In its texts stands \xNN for what is not printed.
class Json {
 public:
  Json& open(const char* bracket, const char* key = nullptr);
  Json& close(const char* bracket);
  Json& text(const char* key, const char* value);  // value nullptr: null
  Json& number(const char* key, int64_t value);
  Json& boolean(const char* key, bool value) { return item(key, value ? "true" : "false"); }
  void end();  // the line is complete

 private:
  Json& item(const char* key, const char* value);
  void quoted(const char* text);
  bool comma_ = false;
};

}  // namespace redlock::tool
