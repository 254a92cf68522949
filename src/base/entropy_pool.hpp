// SPDX-License-Identifier: MIT
//
// EntropyPool: random bytes for values. The driver fills the pool from the system, and never blocks. Each byte is used
// once, and then wiped. If the pool is empty, rounds wait for random bytes; no weaker source takes their place.
#pragma once
#include "base/digits.hpp"

namespace redlock {

// The random part of a value: as it was drawn, and as masters get it, in hexadecimal. The order of the digits does not
// matter.
struct ValueBytes {
  static constexpr size_t hex_size = 2 * REDLOCK_VALUE_RANDOM;

  Bytes write_hex(char (&out)[hex_size]) const {
    size_t at = 0;
    for (; at + sizeof(size_t) <= sizeof random; at += sizeof(size_t)) {
      write_random_hex<size_t>(random + at, out + 2 * at);
    }
    static_assert(sizeof random % sizeof(uint64_t) == sizeof(uint32_t));
    if (at != sizeof random) write_random_hex<uint32_t>(random + at, out + 2 * at);
    return Bytes(out, hex_size);
  }

  unsigned char random[REDLOCK_VALUE_RANDOM];
};

class EntropyPool {
 public:
  // The pool is filled again when it has fewer bytes than `enough`.
  void init(unsigned char* bytes, size_t capacity, size_t enough) {
    REDLOCK_ASSERT(enough <= capacity);
    bytes_ = bytes;
    capacity_ = capacity;
    enough_ = enough;
  }
  size_t room() const { return capacity_ - size_; }
  // How many bytes to fetch now. A pool that has enough wants none, so that one system call serves several values.
  size_t wanted() const { return size_ < enough_ ? room() : 0; }
  bool has(size_t size) const { return size_ >= size; }

  void add(const void* bytes, size_t size) {
    REDLOCK_ASSERT(size <= room());
    memcpy(bytes_ + size_, bytes, size);
    size_ += size;
  }

  void take(unsigned char* out, size_t size) {
    REDLOCK_ASSERT(has(size));
    size_ -= size;
    memcpy(out, bytes_ + size_, size);
    memset(bytes_ + size_, 0, size);
  }

 private:
  unsigned char* bytes_ = nullptr;
  size_t capacity_ = 0;
  size_t enough_ = 0;
  size_t size_ = 0;
};

}  // namespace redlock
