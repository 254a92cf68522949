// SPDX-License-Identifier: MIT
#include "base/digits.hpp"

#include "base/quotient.hpp"
namespace redlock {

Bytes to_decimal(uint64_t number, char (&digits)[20]) {
  size_t at = sizeof digits;
  do {
    const uint64_t rest = quotient(number, 10);
    digits[--at] = static_cast<char>('0' + (number - 10 * rest));
    number = rest;
  } while (number != 0);
  return Bytes(digits + at, sizeof digits - at);
}

bool parse_decimal(Bytes text, uint64_t& out) {
  while (text.size > 1 && *text.data == '0') text = Bytes(text.data + 1, text.size - 1);
  uint64_t value = 0;
  for (size_t i = 0; i < text.size; ++i) {
    const unsigned digit = static_cast<unsigned char>(text.data[i]) - unsigned{'0'};
    if (digit > 9) return false;
    value = value * 10 + digit;
  }
  out = text.size <= 19 ? value : UINT64_MAX;
  return text.size != 0;
}

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

void write_hex(uint32_t word, char* out) {
  for (unsigned i = 0; i < 8; ++i, word <<= 4) out[i] = hex_digits[word >> 28];
}

}  // namespace redlock
