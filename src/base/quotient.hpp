// SPDX-License-Identifier: MIT
//
// A division of 64 bits by at most 31 bits, toward zero as `/` does. Small gateways of 32 bits have no instruction for
// it, and the compiler's function takes 440 bytes. Where small code is asked for there, one short loop divides instead:
// an acquire needs only a few divisions.
#pragma once
#include "base/types.hpp"

namespace redlock {

uint64_t quotient_by_steps(uint64_t n, uint32_t by);
int64_t quotient_by_steps(int64_t n, uint32_t by);

template <class Number> constexpr Number quotient(Number n, uint32_t by) {
  static_assert(sizeof n == sizeof(uint64_t));
  if constexpr (for_speed || sizeof(size_t) == sizeof(uint64_t)) {
    return static_cast<Number>(n / static_cast<Number>(by));
  } else {
    return quotient_by_steps(n, by);
  }
}

}  // namespace redlock
