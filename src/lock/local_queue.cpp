// SPDX-License-Identifier: MIT
#include "lock/local_queue.hpp"

namespace redlock {

void LocalQueue::enter(Lock& lock) {
  lock.ticket = ++tickets_;
  lock.behind = of_kind_[kind_of(lock)]++ != 0 ? nearest_before(lock) : no_slot;
  if (lock.behind != no_slot) ++waiting_;
}

uint16_t LocalQueue::next_first(Lock& over) {
  if (over.ticket != 0) --of_kind_[kind_of(over)];
  over.ticket = 0;
  if (over.behind != no_slot) {
    over.behind = no_slot;
    --waiting_;
  }
  const uint16_t gone = table_.index(over);
  for (unsigned i = 0; i < table_.capacity() && waiting_ != 0; ++i) {
    Lock& lock = table_[i];
    if (lock.state != State::waiting || lock.behind != gone) continue;
    lock.behind = nearest_before(lock);
    if (lock.behind != no_slot) continue;
    --waiting_;
    return static_cast<uint16_t>(i);
  }
  return no_slot;
}

uint16_t LocalQueue::nearest_before(const Lock& lock) const {
  uint16_t nearest = no_slot;
  for (unsigned i = 0; i < table_.capacity(); ++i) {
    const Lock& other = table_[i];
    if (other.state == State::free || other.state == State::over || other.ticket >= lock.ticket) continue;
    if (nearest != no_slot && other.ticket < table_[nearest].ticket) continue;
    if (same_resource(other, lock)) nearest = static_cast<uint16_t>(i);
  }
  return nearest;
}

}  // namespace redlock
