// SPDX-License-Identifier: MIT
#pragma once

namespace redlock::test {

// How often a test repeats itself with other random numbers. qemu is asked whether another processor does the same, not
// for rare cases: the native builds look for those, a hundred times faster.
constexpr unsigned repeats(unsigned natively) {
#ifdef REDLOCK_EMULATED
  return (natively + 9) / 10;
#else
  return natively;
#endif
}

}  // namespace redlock::test
