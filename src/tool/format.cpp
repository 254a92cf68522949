// SPDX-License-Identifier: MIT
#include "tool/format.hpp"

#include <string.h>

namespace redlock::tool {
namespace {

struct Arguments {
  va_list list;  // in a struct, so that it can be handed on by reference
};

// What stands between '%' and the letter.
struct Field {
  bool left = false;
  char fill = ' ';
  size_t width = 0;
  int most = -1;  // bytes of a text; -1: all
  unsigned longs = 0;
};

const char* read_field(const char* c, Arguments& arguments, Field& out) {
  for (; *c == '-' || *c == '0'; ++c) *c == '-' ? out.left = true : out.fill = '0';
  for (; *c >= '0' && *c <= '9'; ++c) out.width = 10 * out.width + static_cast<size_t>(*c - '0');
  if (*c == '.') {
    out.most = va_arg(arguments.list, int);
    c += 2;
  }
  for (; *c == 'l'; ++c) ++out.longs;
  return c;
}

uint64_t read_number(const Field& field, bool is_signed, Arguments& arguments) {
  if (field.longs == 2) return va_arg(arguments.list, unsigned long long);
  if (field.longs == 1) {
    const long number = va_arg(arguments.list, long);
    return is_signed ? static_cast<uint64_t>(number) : static_cast<unsigned long>(number);
  }
  const int number = va_arg(arguments.list, int);
  return is_signed ? static_cast<uint64_t>(number) : static_cast<unsigned>(number);
}

// From the end of `room` on; where the digits begin.
char* write_digits(char* end, uint64_t number, unsigned base) {
  do {
    *--end = "0123456789abcdef"[number % base];
  } while ((number /= base) != 0);
  return end;
}

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

void put_argument(Line& line, char letter, const Field& field, Arguments& arguments) {
  char room[24];  // a number of 64 bits in base 8, or in base 10 with its sign
  char* const end = room + sizeof room;
  char* begin = end - 1;
  if (letter == 's') {
    const char* const text = va_arg(arguments.list, const char*);
    return line.put(text, field.most < 0 ? strlen(text) : strnlen(text, static_cast<size_t>(field.most)), field);
  }
  if (letter == 'c') {
    *begin = static_cast<char>(va_arg(arguments.list, int));
  } else if (letter == '%') {
    *begin = letter;
  } else {
    uint64_t number = read_number(field, letter == 'd', arguments);
    const bool is_negative = letter == 'd' && static_cast<int64_t>(number) < 0;
    if (is_negative) number = -number;
    begin = write_digits(end, number, letter == 'x' ? 16 : letter == 'o' ? 8 : 10);
    if (is_negative) *--begin = '-';
  }
  line.put(begin, static_cast<size_t>(end - begin), field);
}

}  // namespace

size_t format_list(char* out, size_t size, const char* format, va_list given) {
  Arguments arguments;
  va_copy(arguments.list, given);
  Line line{out, out + size - 1};
  for (const char* c = format; *c != '\0'; ++c) {
    if (*c != '%') {
      line.put(*c);
      continue;
    }
    Field field;
    c = read_field(c + 1, arguments, field);
    put_argument(line, *c, field, arguments);
  }
  va_end(arguments.list);
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
