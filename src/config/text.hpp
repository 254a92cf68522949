// SPDX-License-Identifier: MIT
//
// TextWriter writes error texts and JSON into a buffer of fixed size. Text that does not fit is counted and not
// written, so the caller learns how much room was needed. The buffer always ends with a NUL. Text from outside is
// escaped as in JSON strings: neither control characters nor broken UTF-8 leave the library, not even in an error text.
#pragma once
#include "base/types.hpp"

namespace redlock {

// The length in bytes (1..4) of the UTF-8 sequence at the start of `text`; 0: the text does not start with one.
size_t utf8_sequence(Bytes text);

// For a string in a larger array: Bytes(array) would take the whole array.
inline Bytes bytes_of(const char* text) { return Bytes(text, strlen(text)); }

bool has_control_character(Bytes text);

class TextWriter {
 public:
  TextWriter(char* buffer, size_t capacity);

  TextWriter& raw(Bytes text);
  TextWriter& raw(const char* text);  // which ends with a NUL
  TextWriter& number(uint64_t value);
  // A sentence by its pattern: %s a text that ends with a NUL, %u a number of 32 bits. One call is less code than a
  // call for each piece.
  [[gnu::format(printf, 2, 3)]] TextWriter& print(const char* pattern, ...);
  // Writes at most `limit` bytes of the text, then "...". quoted() puts quotes around them.
  TextWriter& escaped(Bytes text, size_t limit = SIZE_MAX);
  TextWriter& quoted(Bytes text, size_t limit = SIZE_MAX);

  // Bytes needed for all that was written, with the NUL.
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
int fail(TextWriter& why, const char* sentence);

}  // namespace redlock
