// SPDX-License-Identifier: MIT
#include "tool/words/text.hpp"

#include <ctype.h>
#include <stdarg.h>

#include "tool/words/say.hpp"

namespace redlock::tool {

// ---- a line -----------------------------------------------------------------------------------------------------

Text::Text(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  size_ = format_list(text_, sizeof text_, format, arguments);
  va_end(arguments);
}

Text& Text::add(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  size_ += format_list(text_ + size_, sizeof text_ - size_, format, arguments);
  va_end(arguments);
  return *this;
}

Text& Text::escaped(const char* data, size_t size, size_t limit) {
  for (size_t i = 0; i < size && i < limit; ++i) {
    const unsigned char byte = static_cast<unsigned char>(data[i]);
    add(byte >= 0x20 && byte < 0x7f && byte != '\\' ? "%c" : "\\x%02x", byte);
  }
  return size > limit ? add("...") : *this;
}

Text& Text::word(const char* data, size_t size) {
  bool prints = true, is_plain = size > 0;
  for (size_t i = 0; i < size; ++i) {
    const char c = data[i];
    prints = prints && c >= 0x20 && c < 0x7f;
    is_plain = is_plain && prints && (isalnum(c) || strchr("%+,-./=@_", c) != nullptr);
  }
  if (is_plain) return add("%.*s", static_cast<int>(size), data);
  add(prints ? "'" : "$'");
  for (size_t i = 0; i < size; ++i) {
    const char c = data[i];
    if (c == '\'') add(prints ? "'\\'" : "\\");
    if (c == '\\' && !prints) add("\\");
    add(c >= 0x20 && c < 0x7f ? "%c" : "\\x%02x", static_cast<unsigned char>(c));
  }
  return add("'");
}

Text& Text::thousandths(int64_t number) {
  const uint64_t tenths = (static_cast<uint64_t>(number < 0 ? -number : number) + 50) / 100;
  return add("%s%llu.%u", number <= -50 ? "-" : "", static_cast<unsigned long long>(tenths / 10),
             static_cast<unsigned>(tenths % 10));
}

// ---- JSON -------------------------------------------------------------------------------------------------------

Json& Json::item(const char* key, const char* value) {
  if (comma_) put(",");
  comma_ = true;
  if (key != nullptr) {
    quoted(key);
    put(":");
  }
  put(value);
  return *this;
}

void Json::quoted(const char* text) {
  put("\"");
  for (const char* c = text; *c != '\0'; ++c) {
    const bool prints = *c >= 0x20 && *c < 0x7f;
    put(Text(!prints ? "\\\\x%02x" : *c == '"' || *c == '\\' ? "\\%c" : "%c", static_cast<unsigned char>(*c)));
  }
  put("\"");
}

Json& Json::open(const char* bracket, const char* key) {
  item(key, bracket);
  comma_ = false;
  return *this;
}

Json& Json::close(const char* bracket) {
  put(bracket);
  comma_ = true;
  return *this;
}

Json& Json::text(const char* key, const char* value) {
  if (value == nullptr) return item(key, "null");
  item(key, "");
  quoted(value);
  return *this;
}

Json& Json::number(const char* key, int64_t value) {
  return item(key, Text("%lld", static_cast<long long>(value)));
}

void Json::end() {
  put("\n");
  flush();
}

}  // namespace redlock::tool
