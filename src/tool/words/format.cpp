// SPDX-License-Identifier: MIT
#include "tool/words/format.hpp"

#include <string.h>

namespace redlock::tool {
namespace {

// How an argument is written.
struct Field {
  bool left = false;
  char fill = ' ';
  size_t width = 0;
};

struct Line {
  char* at;
  char* const end;

  void put(char c) {
    if (at != end) *at++ = c;
  }
  void put(const char* text, size_t size, const Field& field) {
    const size_t fill = field.width > size ? field.width - size : 0;
    for (size_t i = 0; i < fill && !field.left; ++i) put(field.fill);
    for (size_t i = 0; i < size; ++i) put(text[i]);
    for (size_t i = 0; i < fill && field.left; ++i) put(' ');
  }
};

void put_number(Line& line, uint64_t number, char letter, const Field& field) {
  const unsigned base = letter == 'x' ? 16 : 10;
  const bool is_negative = letter == 'd' && static_cast<int64_t>(number) < 0;
  if (is_negative) number = -number;
  char room[24];  // 64 bits in base 10, with a sign
  char* const end = room + sizeof room;
  char* begin = end;
  do {
    *--begin = "0123456789abcdef"[number % base];
  } while ((number /= base) != 0);
  if (is_negative) *--begin = '-';
  line.put(begin, static_cast<size_t>(end - begin), field);
}

}  // namespace

size_t format_list(char* out, size_t size, const char* format, va_list arguments) {
  Line line{out, out + size - 1};
  for (const char* c = format; *c != '\0'; ++c) {
    if (*c != '%' || *++c == '%') {
      line.put(*c);
      continue;
    }
    Field field;
    int most = -1;  // bytes of a text; -1: all
    unsigned longs = 0;
    for (; *c == '-' || *c == '0'; ++c) *c == '-' ? field.left = true : field.fill = '0';
    for (; *c >= '0' && *c <= '9'; ++c) field.width = 10 * field.width + static_cast<size_t>(*c - '0');
    if (*c == '.') {
      most = va_arg(arguments, int);
      c += 2;
    }
    for (; *c == 'l'; ++c) ++longs;
    if (*c == 's') {
      const char* const text = va_arg(arguments, const char*);
      line.put(text, most < 0 ? strlen(text) : strnlen(text, static_cast<size_t>(most)), field);
    } else if (*c == 'c') {
      const char one = static_cast<char>(va_arg(arguments, int));
      line.put(&one, 1, field);
    } else if (*c == 'd') {
      const int64_t number = longs == 2   ? va_arg(arguments, long long)
                             : longs == 1 ? va_arg(arguments, long)
                                          : va_arg(arguments, int);
      put_number(line, static_cast<uint64_t>(number), *c, field);
    } else {
      const uint64_t number = longs == 2   ? va_arg(arguments, unsigned long long)
                              : longs == 1 ? va_arg(arguments, unsigned long)
                                           : va_arg(arguments, unsigned);
      put_number(line, number, *c, field);
    }
  }
  *line.at = '\0';
  return static_cast<size_t>(line.at - out);
}

size_t format_text(char* out, size_t size, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const size_t written = format_list(out, size, format, arguments);
  va_end(arguments);
  return written;
}

}  // namespace redlock::tool
