// SPDX-License-Identifier: MIT
#include "port/posix/entropy.hpp"

#include <stdint.h>
#include <sys/random.h>
#include <sys/types.h>

#include "base/types.hpp"

namespace redlock {

size_t fill_random(void* out, size_t n) {
  constexpr size_t piece = 256;  // no signal interrupts getrandom() up to this size
  uint8_t* bytes = static_cast<uint8_t*>(out);
  size_t filled = 0;
  while (filled < n) {
    const size_t want = n - filled < piece ? n - filled : piece;
    const ssize_t got = getrandom(bytes + filled, want, GRND_NONBLOCK);
    if (got <= 0) break;
    filled += static_cast<size_t>(got);
  }
  REDLOCK_ASSERT(filled <= n);
  return filled;
}

}  // namespace redlock
