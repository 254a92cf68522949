// SPDX-License-Identifier: MIT
//
// Blocked: a thread that waits in redlock_acquire(), _extend() or _release() for the event that answers it. It stands
// on that thread's stack, in a list of the client, and all of it is used inside the gate only.
//
// An event is told to the user's callback first, and only then to who is blocked: so when a call returns, the
// callback of what it waited for has returned too. While the callback runs the gate is open: somebody may give up and
// be gone, or come and begin to wait. So who is answered is marked before the callback, and those who are marked and
// still there are woken after it. The end of a lock answers all who wait for it, whenever they came.
#pragma once
#include <redlock/redlock.h>

#include "port/posix/gate.hpp"

namespace redlock {

struct Blocked {
  enum class On : uint8_t { acquire, extend, release };

  uint64_t lock;
  On on;
  bool answered = false;  // by the event that is being told
  bool done = false;
  int err = 0;
  Bell bell = {};
  Blocked* next = nullptr;
};

class BlockedList {
 public:
  bool empty() const { return first_ == nullptr; }
  void add(Blocked& blocked);
  void remove(Blocked& blocked);

  // Before the callback. extend_open: the lock's extend is not decided yet, this is an older one's event.
  void mark(const redlock_event_t& event, bool extend_open);
  // After it.
  void wake(const redlock_event_t& event);

 private:
  Blocked* first_ = nullptr;
};

}  // namespace redlock
