// SPDX-License-Identifier: MIT
#include "resp/writer.hpp"

namespace redlock::resp {

// size_t is the machine's word: no 64-bit division on a 32-bit gateway.
unsigned Writer::digits_of(size_t value) {
  unsigned n = 1;
  for (; value >= 1000; value /= 1000) n += 3;
  return value >= 100 ? n + 2 : value >= 10 ? n + 1 : n;
}

char* Writer::put_long(char* at, size_t value, unsigned digits) {
  char* const end = at + digits;
  for (char* p = end - 1; p != at; value /= 10) *p-- = static_cast<char>('0' + value % 10);
  *at = static_cast<char>('0' + value);
  return end;
}

Writer& Writer::number(uint32_t value) {
  const unsigned digits = digits_of(value);
  if (char* at = open_bulk(digits)) put_long(at, value, digits);
  return *this;
}

}  // namespace redlock::resp
