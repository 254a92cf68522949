// SPDX-License-Identifier: MIT
//
// Writer: a command (an array of bulk strings) into the caller's buffer. Only multi-bulk requests are written, so no
// byte of a name or value can ever be read as a command by the server. When the buffer is too small nothing is to be
// sent: fits() turns false for good and no byte is written past the end.
#pragma once
#include "types.hpp"

namespace redlock::resp {

class Writer {
 public:
  Writer(char* buffer, size_t capacity) : begin_(buffer), at_(buffer), end_(buffer + capacity) {}

  // The header of a command of `count` arguments; that many calls below must follow.
  Writer& array(unsigned count) { return header('*', count); }
  Writer& bulk(Bytes text) { return bulk(text, Bytes()); }
  // One bulk string from two pieces, e.g. key prefix and resource.
  Writer& bulk(Bytes head, Bytes tail);
  Writer& number(uint32_t value);
  // The length line of a bulk string whose bytes and final CR LF are sent from elsewhere (by reference).
  Writer& bulk_header(size_t size) { return header('$', size); }
  Writer& crlf() { return raw(Bytes("\r\n")); }
  // Bytes that are RESP already. In line, so that a literal is a few stores.
  Writer& raw(Bytes bytes) {
    char* at = take(bytes.size);
    if (at != nullptr && bytes.size != 0) memcpy(at, bytes.data, bytes.size);  // data may be null when there are none
    return *this;
  }

  bool fits() const { return at_ != nullptr; }
  size_t size() const { return fits() ? static_cast<size_t>(at_ - begin_) : 0; }
  Bytes written() const { return Bytes(begin_, size()); }

 private:
  Writer& header(char type, size_t value);
  // Space for the `size` bytes of a bulk string, its length line and final CR LF written; nullptr if that does not fit.
  char* open_bulk(size_t size);
  // Space for n bytes, or nullptr for ever after.
  char* take(size_t n) {
    if (n > static_cast<size_t>(end_ - at_)) {
      at_ = end_ = nullptr;
      return nullptr;
    }
    char* const space = at_;
    at_ += n;
    return space;
  }

  char* begin_;
  char* at_;
  char* end_;
};

}  // namespace redlock::resp
