// SPDX-License-Identifier: MIT
//
// Digits: numbers as text, text as numbers, and a hash of a text. All rooms use these functions to print and parse.
#pragma once
#include "base/types.hpp"

namespace redlock {

// ---- decimal ----------------------------------------------------------------------------------------------------

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

// value / 10. Many 32-bit gateways have no instruction for a division. A compiler that is asked for small code calls a
// function of its library for each one. So a word of 32 bits is multiplied by 2^35 / 10 instead.
constexpr size_t tenth(size_t value) {
  return sizeof value == sizeof(uint32_t) ? static_cast<size_t>(uint64_t{value} * 0xCCCCCCCDu >> 35) : value / 10;
}

// How many decimal digits a number has.
constexpr unsigned decimal_size(size_t value) {
  constexpr unsigned most = sizeof value == sizeof(uint32_t) ? 10 : 20;
  unsigned n = 1;
  for (size_t next = 10; value >= next && ++n != most;) next *= 10;
  return n;
}

// Writes the `size` decimal digits of a number to `at`. Returns the end of the digits.
constexpr char* write_decimal(char* at, size_t value, unsigned size) {
  char* const end = at + size;
  for (char* p = end; p != at;) {
    const size_t rest = tenth(value);
    *--p = static_cast<char>('0' + value - 10 * rest);
    value = rest;
  }
  return end;
}

// The decimal digits of a 64-bit number. They are written to the end of `digits`.
Bytes to_decimal(uint64_t number, char (&digits)[20]);

// Reads a text of digits only. False: the text is empty, or has another character. Leading zeros are ignored. A number
// of more than 19 digits becomes UINT64_MAX, since only 19 digits surely fit into 64 bits.
bool parse_decimal(Bytes text, uint64_t& out);

// ---- hexadecimal ------------------------------------------------------------------------------------------------

inline constexpr char hex_digits[] = "0123456789abcdef";

// The value of a hexadecimal digit; -1: the character is no such digit.
int hex_value(char c);

// 32 bits as eight digits, the highest first.
void write_hex(uint32_t word, char* out);

// The hexadecimal digits of random bytes, in any order. Each step makes half of a word's digits at once, one digit in
// each byte. A digit above 9 is a letter, and 'a' is 39 characters behind the place that follows '9'.
template <class Word>
REDLOCK_IN_LINE_FOR_SPEED inline void write_random_hex(const unsigned char* random, char* out) {
  constexpr Word each = static_cast<Word>(0x0101010101010101u);
  Word word;
  memcpy(&word, random, sizeof word);
  const Word halves[] = {word & 0x0F * each, word >> 4 & 0x0F * each};
  for (const Word nibbles : halves) {
    const Word letters = (nibbles + 6 * each) >> 4 & each;
    const Word digits = nibbles + '0' * each + letters * ('a' - '0' - 10);
    memcpy(out, &digits, sizeof digits);
    out += sizeof digits;
  }
}

// ---- hash -------------------------------------------------------------------------------------------------------

// FNV-1a of 64 bits. Masters keep what is made of it, so it stays the same.
inline uint64_t fnv_of(Bytes text) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (size_t i = 0; i < text.size; ++i) hash = (hash ^ static_cast<unsigned char>(text.data[i])) * 0x100000001B3u;
  return hash;
}

// A hash that only this client sees, of four bytes at a time. The last four are those at the end, whatever the size.
inline uint32_t hash_of(Bytes text) {
  uint32_t hash = static_cast<uint32_t>(text.size), word = 0;
  const auto mix = [&] {
    hash = (hash ^ word) * 0x9E3779B1u;
    hash ^= hash >> 15;
  };
  const char* at = text.data;
  const char* const end = at + text.size;
  if (text.size >= sizeof word) {
    for (; end - at > static_cast<ptrdiff_t>(sizeof word); at += sizeof word) {
      memcpy(&word, at, sizeof word);
      mix();
    }
    memcpy(&word, end - sizeof word, sizeof word);
  } else {
    for (; at != end; ++at) word = word << 8 | static_cast<unsigned char>(*at);
  }
  mix();
  return hash;
}

}  // namespace redlock
