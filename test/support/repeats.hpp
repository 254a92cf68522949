// SPDX-License-Identifier: MIT
#pragma once

namespace redlock::test {

// How often a test repeats itself with other random numbers. qemu is asked whether another processor does the same, and
// a sanitizer whether memory is used well, not for rare cases: the native builds look for those, much faster.
constexpr unsigned repeats(unsigned natively) {
#if defined(REDLOCK_EMULATED)
  return (natively + 9) / 10;
#elif defined(__SANITIZE_ADDRESS__)
  return (natively + 3) / 4;
#else
  return natively;
#endif
}

}  // namespace redlock::test
