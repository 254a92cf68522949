// SPDX-License-Identifier: MIT
#include "tool/words/text.hpp"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>

#include "tool/words/say.hpp"

namespace redlock::tool {

// ---- a line -----------------------------------------------------------------------------------------------------

void Text::put(char c) {
  if (size_ + 1 >= sizeof text_) return;
  text_[size_++] = c;
  text_[size_] = '\0';
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
    if (byte >= 0x20 && byte < 0x7f && byte != '\\') {
      put(data[i]);
    } else {
      add("\\x%02x", byte);
    }
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
    if (c == '\'') {
      add(prints ? "'\\''" : "\\'");
    } else if (c == '\\' && !prints) {
      add("\\\\");
    } else if (c >= 0x20 && c < 0x7f) {
      put(c);
    } else {
      add("\\x%02x", static_cast<unsigned char>(c));
    }
  }
  put('\'');
  return *this;
}

Text& Text::thousandths(int64_t number) {
  const uint64_t tenths = (static_cast<uint64_t>(number < 0 ? -number : number) + 50) / 100;
  return add("%s%llu.%u", number <= -50 ? "-" : "", static_cast<unsigned long long>(tenths / 10),
             static_cast<unsigned>(tenths % 10));
}

// ---- JSON -------------------------------------------------------------------------------------------------------

void Json::begin(const char* key) {
  if (comma_) put(",");
  comma_ = true;
  if (key == nullptr) return;
  quoted(key);
  put(":");
}

void Json::quoted(const char* text) {
  put("\"");
  for (const char* c = text; *c != '\0'; ++c) {
    const bool prints = *c >= 0x20 && *c < 0x7f;
    putf(!prints ? "\\\\x%02x" : *c == '"' || *c == '\\' ? "\\%c" : "%c", static_cast<unsigned char>(*c));
  }
  put("\"");
}

Json& Json::open(char bracket, const char* key) {
  begin(key);
  putf("%c", bracket);
  comma_ = false;
  return *this;
}

Json& Json::close(char bracket) {
  putf("%c", bracket);
  comma_ = true;
  return *this;
}

Json& Json::text(const char* key, const char* value) {
  begin(key);
  value == nullptr ? put("null") : quoted(value);
  return *this;
}

Json& Json::number(const char* key, int64_t value) {
  begin(key);
  putf("%lld", static_cast<long long>(value));
  return *this;
}

Json& Json::boolean(const char* key, bool value) {
  begin(key);
  put(value ? "true" : "false");
  return *this;
}

void Json::end() {
  put("\n");
  flush();
}

}  // namespace redlock::tool
