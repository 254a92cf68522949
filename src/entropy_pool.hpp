// SPDX-License-Identifier: MIT
//
// EntropyPool: random bytes for values. The driver fills it from the system without ever blocking; each byte is used
// once and wiped. When it is empty rounds wait for it; nothing weaker takes its place.
#pragma once
#include "types.hpp"

namespace redlock {

class EntropyPool {
 public:
  void init(unsigned char* bytes, size_t capacity) { bytes_ = bytes, capacity_ = capacity; }
  size_t room() const { return capacity_ - size_; }
  // How much to fetch now: nothing while it is half full, so that the system is asked once for many values.
  size_t wanted() const { return size_ < capacity_ / 2 ? room() : 0; }
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

  // A value's random part in hexadecimal. Which digit stands for which bits of it is all the same.
  void take_hex(char (&out)[2 * REDLOCK_VALUE_RANDOM]) {
    unsigned char random[REDLOCK_VALUE_RANDOM];
    static_assert(sizeof random % sizeof(uint32_t) == 0);
    take(random, sizeof random);
    for (size_t i = 0; i < sizeof random; i += sizeof(uint32_t)) {
      uint32_t word;
      memcpy(&word, random + i, sizeof word);
      write_digits(out + 2 * i, word & 0x0F0F0F0Fu);
      write_digits(out + 2 * i + sizeof word, word >> 4 & 0x0F0F0F0Fu);
    }
  }

 private:
  // Four digits at once: 0 .. 9 are '0' .. '9', and those above are 39 further on.
  static void write_digits(char* out, uint32_t nibbles) {
    const uint32_t letters = (nibbles + 0x06060606u) >> 4 & 0x01010101u;
    const uint32_t digits = nibbles + 0x30303030u + letters * ('a' - '0' - 10);
    memcpy(out, &digits, sizeof digits);
  }

  unsigned char* bytes_ = nullptr;
  size_t capacity_ = 0;
  size_t size_ = 0;
};

}  // namespace redlock
