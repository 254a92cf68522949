// SPDX-License-Identifier: MIT
#include "run/blocked.hpp"

#include "base/types.hpp"
#include "run/report.hpp"

namespace redlock {
namespace {

bool is_end(int type) { return type == REDLOCK_EV_FAILED || type == REDLOCK_EV_LOST || type == REDLOCK_EV_RELEASED; }

bool answers(int type, Blocked::On on, bool extend_open) {
  if (is_end(type)) return true;
  if (on == Blocked::On::acquire) return type == REDLOCK_EV_ACQUIRED;
  return on == Blocked::On::extend && !extend_open && (type == REDLOCK_EV_RENEWED || type == REDLOCK_EV_AT_RISK);
}

int result(const redlock_event_t& event, Blocked::On on) {
  if (on == Blocked::On::release) return 0;
  if (event.type == REDLOCK_EV_RELEASED) return REDLOCK_E_CANCELED;
  return event.err;
}

}  // namespace

void BlockedList::add(Blocked& blocked) {
  REDLOCK_ASSERT(blocked.next == nullptr);
  REDLOCK_ASSERT(!blocked.done);
  blocked.next = first_;
  first_ = &blocked;
}

void BlockedList::remove(Blocked& blocked) {
  Blocked** at = &first_;
  while (*at != &blocked) {
    REDLOCK_ASSERT(*at != nullptr);  // it is in the list
    at = &(*at)->next;
  }
  *at = blocked.next;
}

void BlockedList::mark(const redlock_event_t& event, bool extend_open) {
  for (Blocked* b = first_; b != nullptr; b = b->next) {
    if (b->lock == event.lock.id) b->answered = answers(event.type, b->on, extend_open);
  }
}

void BlockedList::wake(const redlock_event_t& event) {
  for (Blocked* b = first_; b != nullptr; b = b->next) {
    if (b->lock != event.lock.id || b->done || !(b->answered || is_end(event.type))) continue;
    b->done = true;
    b->err = result(event, b->on);
    report_event(b->report, event, b->err);
    b->bell.ring();
  }
}

}  // namespace redlock
