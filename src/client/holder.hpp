// SPDX-License-Identifier: MIT
//
// Holder: the name of who holds what one lock of this client waits for, or was refused. A client remembers one name, so
// that a lock needs no memory for it. While the place belongs to a lock that is not decided yet, other locks are told
// without a name.
#pragma once
#include "base/time.hpp"
#include "base/types.hpp"

namespace redlock {

struct Holder {
  uint64_t lock = 0;  // the handle of the lock that asked
  // A FAILED that waits for the answer is told then at the latest; never(): none waits.
  Instant until = Instant::never();
  bool wanted = false;   // the question has not left yet
  bool foreign = false;  // the value is not of this library
  uint8_t size = 0;      // of the name; 0: not known
  char name[REDLOCK_CLIENT_NAME_MAX];
};

}  // namespace redlock
