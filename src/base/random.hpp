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
  uint32_t next();

 private:
  uint64_t state_ = 0;
};

}  // namespace redlock
