// SPDX-License-Identifier: MIT
#include "tool/words/format.hpp"

#include <stdlib.h>
#include <string.h>

namespace redlock::tool {
namespace {

// Writes the digits to the end of `room`, and returns the first: 64 bits in base 10 have room there, with a sign.
const char* digits(char (&room)[24], uint64_t number, char letter) {
  const unsigned base = letter == 'x' ? 16 : 10;
  const bool is_negative = letter == 'd' && static_cast<int64_t>(number) < 0;
  if (is_negative) number = -number;
  char* begin = room + sizeof room;
  do {
    *--begin = "0123456789abcdef"[number % base];
  } while ((number /= base) != 0);
  if (is_negative) *--begin = '-';
  return begin;
}

}  // namespace

size_t format_list(char* out, size_t size, const char* format, va_list arguments) {
  size_t written = 0;
  const auto put = [&](char c) {
    if (written + 1 < size) out[written++] = c;
  };
  for (const char* c = format; *c != '\0'; ++c) {
    if (*c != '%' || *++c == '%') {
      put(*c);
      continue;
    }
    bool is_left = false;
    char fill = ' ';
    size_t width = 0;
    int most = -1;  // bytes of a text; -1: all
    unsigned longs = 0;
    for (; *c == '-' || *c == '0'; ++c) *c == '-' ? is_left = true : fill = '0';
    for (; *c >= '0' && *c <= '9'; ++c) width = 10 * width + static_cast<size_t>(*c - '0');
    if (*c == '.') {
      most = va_arg(arguments, int);
      c += 2;
    }
    for (; *c == 'l'; ++c) ++longs;
    char room[24];
    const char* text = room;
    size_t length = 1;
    if (*c == 's') {
      text = va_arg(arguments, const char*);
      length = most < 0 ? strlen(text) : strnlen(text, static_cast<size_t>(most));
    } else if (*c == 'c') {
      room[0] = static_cast<char>(va_arg(arguments, int));
    } else {
      const bool is_signed = *c == 'd';
      const int64_t number = is_signed && longs == 2   ? va_arg(arguments, long long)
                             : is_signed && longs == 1 ? va_arg(arguments, long)
                             : is_signed               ? va_arg(arguments, int)
                             : longs == 2 ? static_cast<int64_t>(va_arg(arguments, unsigned long long))
                             : longs == 1 ? static_cast<int64_t>(va_arg(arguments, unsigned long))
                                          : va_arg(arguments, unsigned);
      text = digits(room, static_cast<uint64_t>(number), *c);
      length = static_cast<size_t>(room + sizeof room - text);
    }
    for (size_t i = length; i < width && !is_left; ++i) put(fill);
    for (size_t i = 0; i < length; ++i) put(text[i]);
    for (size_t i = length; i < width && is_left; ++i) put(' ');
  }
  out[written] = '\0';
  return written;
}

size_t format_text(char* out, size_t size, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const size_t written = format_list(out, size, format, arguments);
  va_end(arguments);
  return written;
}

int64_t number_within(int64_t most, const char* text, char** behind) {
  const int64_t number = strtoll(text, behind, 10);
  return number < -most ? -most : number > most ? most : number;
}

}  // namespace redlock::tool
