// SPDX-License-Identifier: MIT
//
// Holder: the name of who holds what one lock of this client waits for, or was refused. A client remembers one name, so
// that a lock needs no memory for it. While the place belongs to a lock that is not decided yet, other locks are told
// without a name.
#pragma once
#include "base/digits.hpp"
#include "base/queue.hpp"
#include "base/time.hpp"
#include "base/types.hpp"

namespace redlock {

struct Holder {
  enum class Known : uint8_t { nothing, name, foreign };

  // A FAILED that waits for the answer is told then at the latest; never(): none waits.
  Instant until = Instant::never();
  uint32_t generation = 0;  // of the lock, its lower half
  uint16_t slot = no_slot;  // the lock that asked
  Known known = Known::nothing;
  uint8_t size = 0;
  char name[REDLOCK_CLIENT_NAME_MAX];
};

// Printable ASCII as it is, anything else as \xNN: the name is what some other client claims. A backslash is escaped,
// too, so that no name looks like another one. Ends with a NUL.
inline void escape_name(const char* name, size_t size, char* out) {
  for (size_t i = 0; i < size; ++i) {
    const unsigned char c = static_cast<unsigned char>(name[i]);
    if (c >= 0x20 && c < 0x7F && c != '\\') {
      *out++ = name[i];
      continue;
    }
    *out++ = '\\';
    *out++ = 'x';
    *out++ = hex_digits[c >> 4];
    *out++ = hex_digits[c & 15];
  }
  *out = '\0';
}

}  // namespace redlock
