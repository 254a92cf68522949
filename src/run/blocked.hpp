// SPDX-License-Identifier: MIT
//
// Blocked: a thread that waits in redlock_acquire(), _extend() or _release() for the event that answers its call. The
// object lies on that thread's stack, and stands in a list of the client. It is used only inside the gate.
//
// The user's callback gets an event first, and blocked threads are woken after the callback. So when a call returns,
// the callback of its event has returned, too. While the callback runs the gate is open: a blocked thread may give up
// and leave the list, and another thread may join. Therefore mark() notes before the callback which threads the event
// answers, and wake() wakes the marked threads that are still in the list after the callback. The end of a lock answers
// all threads that wait for this lock, also threads that joined during the callback.
#pragma once
#include <redlock/redlock.h>

#include "port/posix/gate.hpp"

namespace redlock {

struct Blocked {
  enum class On : uint8_t { acquire, extend, release };

  uint64_t lock;
  On on;
  redlock_report_t* report = nullptr;  // of an acquire (run/report)
  bool answered = false;  // the event whose callback runs answers this thread
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

  // Call before the callback. extend_open: the lock's extend is undecided, so the event belongs to an earlier extend.
  void mark(const redlock_event_t& event, bool extend_open);
  // Call after the callback.
  void wake(const redlock_event_t& event);

 private:
  Blocked* first_ = nullptr;
};

}  // namespace redlock
