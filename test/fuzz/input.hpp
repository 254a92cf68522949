// SPDX-License-Identifier: MIT
//
// Input: a fuzzer's bytes as decisions. When they are used up every further decision is 0.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <string>

namespace redlock::test {

class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool empty() const { return size_ == 0; }
  uint8_t byte() {
    if (size_ == 0) return 0;
    --size_;
    return *data_++;
  }
  bool flip() { return (byte() & 1) != 0; }
  unsigned below(unsigned n) { return byte() % n; }
  uint32_t number() {
    uint32_t n = 0;
    for (int i = 0; i < 4; ++i) n = n << 8 | byte();
    return n;
  }
  std::string bytes(size_t n) {
    std::string text;
    while (n-- > 0 && size_ > 0) text += static_cast<char>(byte());
    return text;
  }

 private:
  const uint8_t* data_;
  size_t size_;
};

}  // namespace redlock::test
