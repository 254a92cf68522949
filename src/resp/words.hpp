// SPDX-License-Identifier: MIT
//
// Words: the fixed words of a command, encoded when the library is compiled. So a greeting is copied, not computed.
//
//     static constexpr auto eval = words<6>("EVAL");   // an array of 7, of which 6 follow
#pragma once
#include "base/digits.hpp"

namespace redlock::resp {

template <size_t size>
struct Words {
  char text[size] = {};
  constexpr operator Bytes() const { return Bytes(text, size); }
};

constexpr size_t header_size(size_t value) { return decimal_size(value) + 3; }

constexpr char* put_header(char* at, char type, size_t value) {
  *at++ = type;
  at = write_decimal(at, value, decimal_size(value));
  *at++ = '\r';
  *at++ = '\n';
  return at;
}

template <size_t n>
constexpr char* put_word(char* at, const char (&word)[n]) {
  at = put_header(at, '$', n - 1);
  for (size_t i = 0; i + 1 < n; ++i) *at++ = word[i];
  *at++ = '\r';
  *at++ = '\n';
  return at;
}

// The header counts these words and `more` arguments, which follow.
template <size_t more = 0, size_t... n>
constexpr auto words(const char (&...word)[n]) {
  constexpr size_t count = sizeof...(n) + more;
  Words<header_size(count) + ((header_size(n - 1) + (n - 1) + 2) + ...)> out;
  char* at = put_header(out.text, '*', count);
  ((at = put_word(at, word)), ...);
  return out;
}

}  // namespace redlock::resp
