// SPDX-License-Identifier: MIT
#include "resp/writer.hpp"

namespace redlock::resp {
namespace {

constexpr unsigned digits_max = sizeof(size_t) == 8 ? 20 : 10;

// size_t is the machine's word: no 64-bit division on a 32-bit gateway.
unsigned digits_of(size_t value) {
  unsigned n = 1;
  for (size_t bound = 10; value >= bound; bound *= 10) {
    if (++n == digits_max) break;
  }
  return n;
}

// The `digits` decimal digits of value from `at` on; returns what follows them.
char* put_number(char* at, size_t value, unsigned digits) {
  char* const end = at + digits;
  char* p = end;
  for (; value >= 10; value /= 10) *--p = static_cast<char>('0' + value % 10);
  *--p = static_cast<char>('0' + value);
  return end;
}

char* put_bytes(char* at, Bytes bytes) {
  if (bytes.size != 0) memcpy(at, bytes.data, bytes.size);  // data may be null when there are none
  return at + bytes.size;
}

char* put_crlf(char* at) {
  at[0] = '\r';
  at[1] = '\n';
  return at + 2;
}

}  // namespace

Writer& Writer::header(char type, size_t value) {
  const unsigned digits = digits_of(value);
  if (char* at = take(1 + digits + 2)) {
    *at = type;
    put_crlf(put_number(at + 1, value, digits));
  }
  return *this;
}

char* Writer::open_bulk(size_t size) {
  const unsigned digits = digits_of(size);
  char* at = take(1 + digits + 2 + size + 2);
  if (at == nullptr) return nullptr;
  *at = '$';
  at = put_crlf(put_number(at + 1, size, digits));
  put_crlf(at + size);
  return at;
}

Writer& Writer::bulk(Bytes head, Bytes tail) {
  if (char* at = open_bulk(head.size + tail.size)) put_bytes(put_bytes(at, head), tail);
  return *this;
}

Writer& Writer::number(uint32_t value) {
  const unsigned digits = digits_of(value);
  if (char* at = open_bulk(digits)) put_number(at, value, digits);
  return *this;
}

}  // namespace redlock::resp
