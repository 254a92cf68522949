// SPDX-License-Identifier: MIT
//
// TextWriter: text into a buffer of fixed size, for error texts and for JSON. What does not fit is counted but not
// written, so the caller learns how much was needed; the buffer always ends with a NUL. Text from outside is escaped
// as in JSON strings: no control character and no broken UTF-8 leaves the library, in an error text neither.
#pragma once
#include "base/types.hpp"

namespace redlock {

// Bytes of the UTF-8 sequence (1..4) at the start of `text`; 0 when there is none.
size_t utf8_sequence(Bytes text);

// Not for arrays that hold a shorter string: Bytes(array) takes the array's size.
inline Bytes bytes_of(const char* text) { return Bytes(text, strlen(text)); }

class TextWriter {
 public:
  TextWriter(char* buffer, size_t capacity);

  TextWriter& raw(Bytes text);
  TextWriter& number(uint64_t value);
  // At most `limit` bytes of the text, then "..."; without and with quotes around.
  TextWriter& escaped(Bytes text, size_t limit = SIZE_MAX);
  TextWriter& quoted(Bytes text, size_t limit = SIZE_MAX);

  // With the NUL.
  size_t needed() const { return size_ + 1; }
  bool fits() const { return needed() <= capacity_; }

 private:
  void put(char c);
  void put_escape(unsigned char c);

  char* buffer_;
  size_t capacity_;
  size_t size_ = 0;
};

// Ends the sentence about what is wrong; returns REDLOCK_E_CONFIG.
int fail(TextWriter& why, Bytes sentence);

}  // namespace redlock
