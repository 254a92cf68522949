// SPDX-License-Identifier: MIT
#include "base/quotient.hpp"

namespace redlock {

// As by hand, in binary: the quotient's bits come in where those of `n` go out.
uint64_t quotient_by_steps(uint64_t n, uint32_t by) {
  REDLOCK_ASSERT(by != 0 && by <= INT32_MAX);
  uint32_t rest = 0;
  for (unsigned bit = 0; bit < 64; ++bit) {
    rest = rest << 1 | static_cast<uint32_t>(n >> 63);
    n <<= 1;
    if (rest < by) continue;
    rest -= by;
    ++n;
  }
  return n;
}

int64_t quotient_by_steps(int64_t n, uint32_t by) {
  const uint64_t size = n < 0 ? 0 - static_cast<uint64_t>(n) : static_cast<uint64_t>(n);
  const uint64_t quotient = quotient_by_steps(size, by);
  return static_cast<int64_t>(n < 0 ? 0 - quotient : quotient);
}

}  // namespace redlock
