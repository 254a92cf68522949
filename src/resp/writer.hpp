// SPDX-License-Identifier: MIT
//
// Writer: writes a command (an array of bulk strings) into the caller's buffer. Only multi-bulk requests are written,
// so the server can never read a byte of a name or value as a command. When the buffer is too small, fits() turns false
// for good and no byte is written past the end; then the command must not be sent.
#pragma once
#include "base/digits.hpp"

namespace redlock::resp {

class Writer {
 public:
  Writer(char* buffer, size_t capacity) : begin_(buffer), at_(buffer), end_(buffer + capacity) {}

  // The header of a command of `count` arguments; that many calls below must follow.
  Writer& array(unsigned count) { return header('*', count); }
  // One bulk string, from one piece or from several, for example key prefix and resource.
  Writer& bulk(Bytes bytes) {
    if (char* at = open_bulk(bytes.size)) put_bytes(at, bytes);
    return *this;
  }
  Writer& bulk(Bytes head, Bytes tail) {
    if (char* at = open_bulk(head.size + tail.size)) put_bytes(put_bytes(at, head), tail);
    return *this;
  }
  Writer& bulk(Bytes head, Bytes middle, Bytes tail) {
    if (char* at = open_bulk(head.size + middle.size + tail.size)) {
      put_bytes(put_bytes(put_bytes(at, head), middle), tail);
    }
    return *this;
  }
  Writer& number(uint32_t value);
  // The length line of a bulk string whose bytes and final CR LF are sent from elsewhere (by reference).
  Writer& bulk_header(size_t size) { return header('$', size); }
  Writer& crlf() { return raw(Bytes("\r\n")); }
  // Bytes that are RESP already. Inline, so that a literal becomes a few stores.
  Writer& raw(Bytes bytes) {
    if (make_room(bytes.size)) at_ = put_bytes(at_, bytes);
    return *this;
  }

  bool fits() const { return at_ != nullptr; }
  size_t size() const { return fits() ? static_cast<size_t>(at_ - begin_) : 0; }
  Bytes written() const { return Bytes(begin_, size()); }

 private:
  // Writes the `digits` decimal digits of a number; returns the place behind them. Lengths of names and values have one
  // or two digits, which are written without a call.
  static char* put_number(char* at, size_t value, unsigned digits) {
    if (digits > 2) return write_decimal(at, value, digits);
    const size_t tens = tenth(value);
    if (digits == 2) *at++ = static_cast<char>('0' + tens);
    *at++ = static_cast<char>('0' + value - 10 * tens);
    return at;
  }
  static char* put_bytes(char* at, Bytes bytes) {
    if (bytes.size != 0) memcpy(at, bytes.data, bytes.size);  // data may be null when there are none
    return at + bytes.size;
  }
  static char* put_crlf(char* at) {
    at[0] = '\r';
    at[1] = '\n';
    return at + 2;
  }

  Writer& header(char type, size_t value) {
    const unsigned digits = value < 10 ? 1 : value < 100 ? 2 : decimal_size(value);
    if (make_room(1 + digits + 2)) {
      *at_ = type;
      at_ = put_crlf(put_number(at_ + 1, value, digits));
    }
    return *this;
  }
  // Space for the `size` bytes of a bulk string, its length line and final CR LF written; nullptr if that does not fit.
  char* open_bulk(size_t size) {
    const unsigned digits = size < 10 ? 1 : size < 100 ? 2 : decimal_size(size);
    const size_t whole = 1 + digits + 2 + size + 2;
    if (!make_room(whole)) return nullptr;
    char* at = at_;
    at_ += whole;
    *at = '$';
    at = put_crlf(put_number(at + 1, size, digits));
    put_crlf(at + size);
    return at;
  }
  // Do n bytes fit? If not, no byte fits any more.
  bool make_room(size_t n) {
    if (n <= static_cast<size_t>(end_ - at_)) return true;
    at_ = end_ = nullptr;
    return false;
  }

  char* begin_;
  char* at_;
  char* end_;
};

}  // namespace redlock::resp
