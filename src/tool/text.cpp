// SPDX-License-Identifier: MIT
#include "tool/text.hpp"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
  const int wanted = vsnprintf(text_ + size_, sizeof text_ - size_, format, arguments);
  va_end(arguments);
  if (wanted > 0) size_ += strnlen(text_ + size_, static_cast<size_t>(wanted));
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

Text& Text::escaped(const char* text) { return escaped(text, strlen(text)); }

// ---- JSON -------------------------------------------------------------------------------------------------------

void Json::begin(const char* key) {
  if (comma_) putchar(',');
  comma_ = true;
  if (key == nullptr) return;
  quoted(key);
  putchar(':');
}

void Json::quoted(const char* text) {
  putchar('"');
  for (const char* c = text; *c != '\0'; ++c) {
    if (*c == '"' || *c == '\\') putchar('\\');
    putchar(*c);
  }
  putchar('"');
}

Json& Json::open(char bracket, const char* key) {
  begin(key);
  putchar(bracket);
  comma_ = false;
  return *this;
}

Json& Json::close(char bracket) {
  putchar(bracket);
  comma_ = true;
  return *this;
}

Json& Json::text(const char* key, const char* value) {
  begin(key);
  if (value == nullptr) {
    fputs("null", stdout);
  } else {
    quoted(value);
  }
  return *this;
}

Json& Json::number(const char* key, int64_t value) {
  begin(key);
  printf("%lld", static_cast<long long>(value));
  return *this;
}

Json& Json::boolean(const char* key, bool value) {
  begin(key);
  fputs(value ? "true" : "false", stdout);
  return *this;
}

void Json::end() {
  putchar('\n');
  fflush(stdout);
}

}  // namespace redlock::tool
