// SPDX-License-Identifier: MIT
//
// Random: a small generator for jitter, seeded once from the entropy pool. Values that mark ownership never come from
// this generator, since its numbers can be guessed.
#pragma once
#include <stdint.h>

namespace redlock {

class Random {
 public:
  void seed(uint64_t seed) { state_ ^= seed; }
  uint32_t next() {  // splitmix64
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return static_cast<uint32_t>((z ^ (z >> 31)) >> 32);
  }

 private:
  uint64_t state_ = 0;
};

}  // namespace redlock
