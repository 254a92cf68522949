// SPDX-License-Identifier: MIT
#include "config/text.hpp"

#include <stdarg.h>

#include "base/digits.hpp"

namespace redlock {
namespace {

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0u) == 0x80u; }

}  // namespace

size_t utf8_sequence(Bytes text) {
  if (text.size == 0) return 0;
  const unsigned first = static_cast<unsigned char>(text.data[0]);
  if (first < 0x80) return 1;
  const size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if (!is_continuation(text.data[i])) return 0;
  }
  // The second byte shows overlong forms, surrogates, and code points above U+10FFFF.
  const unsigned second = static_cast<unsigned char>(text.data[1]);
  if (first == 0xE0 && second < 0xA0) return 0;
  if (first == 0xED && second > 0x9F) return 0;
  if (first == 0xF0 && second < 0x90) return 0;
  if (first == 0xF4 && second > 0x8F) return 0;
  return size;
}

bool has_control_character(Bytes text) {
  for (size_t i = 0; i < text.size; ++i) {
    const unsigned char c = static_cast<unsigned char>(text.data[i]);
    if (c < 0x20 || c == 0x7F) return true;
  }
  return false;
}

TextWriter::TextWriter(char* buffer, size_t capacity) : buffer_(buffer), capacity_(capacity) {
  if (capacity_ > 0) buffer_[0] = '\0';
}

void TextWriter::put(char c) {
  if (size_ + 1 < capacity_) {
    buffer_[size_] = c;
    buffer_[size_ + 1] = '\0';
  }
  ++size_;
}

TextWriter& TextWriter::raw(Bytes text) {
  for (size_t i = 0; i < text.size; ++i) put(text.data[i]);
  return *this;
}

TextWriter& TextWriter::raw(const char* text) { return raw(bytes_of(text)); }

TextWriter& TextWriter::number(uint64_t value) {
  char digits[20];
  return raw(to_decimal(value, digits));
}

TextWriter& TextWriter::print(const char* at, ...) {
  va_list arguments;
  va_start(arguments, at);
  for (; *at != '\0'; ++at) {
    if (*at != '%') {
      put(*at);
    } else if (*++at == 's') {
      raw(va_arg(arguments, const char*));
    } else {
      REDLOCK_ASSERT(*at == 'u');
      number(va_arg(arguments, unsigned));
    }
  }
  va_end(arguments);
  return *this;
}

void TextWriter::put_escape(unsigned char c) {
  switch (c) {
    case '"': raw("\\\""); return;
    case '\\': raw("\\\\"); return;
    case '\n': raw("\\n"); return;
    case '\r': raw("\\r"); return;
    case '\t': raw("\\t"); return;
    default: break;
  }
  if (c >= 0x80) {  // not UTF-8: write the replacement character
    raw("\\ufffd");
    return;
  }
  raw("\\u00");
  put(hex_digits[c >> 4]);
  put(hex_digits[c & 15]);
}

TextWriter& TextWriter::escaped(Bytes text, size_t limit) {
  for (size_t at = 0; at < text.size;) {
    const size_t size = utf8_sequence(Bytes(text.data + at, text.size - at));
    const size_t step = size == 0 ? 1 : size;
    if (at + step > limit) return raw("...");
    const unsigned char c = static_cast<unsigned char>(text.data[at]);
    if (size == 0 || c < 0x20 || c == 0x7F || c == '"' || c == '\\') {
      put_escape(c);
    } else {
      raw(Bytes(text.data + at, size));
    }
    at += step;
  }
  return *this;
}

TextWriter& TextWriter::quoted(Bytes text, size_t limit) {
  put('"');
  escaped(text, limit);
  put('"');
  return *this;
}

int fail(TextWriter& why, const char* sentence) {
  why.raw(sentence);
  return REDLOCK_E_CONFIG;
}

}  // namespace redlock
