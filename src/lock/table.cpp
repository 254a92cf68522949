// SPDX-License-Identifier: MIT
#include "lock/table.hpp"

namespace redlock {

void Table::init(Lock* slots, unsigned capacity) {
  REDLOCK_ASSERT(capacity > 0);
  REDLOCK_ASSERT(capacity < no_slot);
  slots_ = slots;
  capacity_ = static_cast<uint16_t>(capacity);
  for (unsigned i = 0; i < capacity; ++i) {
    slots_[i].slot = static_cast<uint16_t>(i);
    slots_[i].start.next = static_cast<uint16_t>(i + 1 < capacity ? i + 1 : no_slot);
  }
  free_ = 0;
}

Lock* Table::take() {
  if (free_ == no_slot) return nullptr;
  Lock& lock = slots_[free_];
  REDLOCK_ASSERT(lock.state == State::free);
  free_ = lock.start.next;
  ++lock.generation;
  ++used_;
  lock.start = {};
  return &lock;
}

void Table::give_back(Lock& lock) {
  REDLOCK_ASSERT(lock.state == State::over);
  REDLOCK_ASSERT(!lock.start.queued);
  REDLOCK_ASSERT(!lock.told.queued);
  lock.state = State::free;
  --used_;
  lock.cell.retire(lock.generation);
  lock.start.next = free_;
  free_ = index(lock);
}

Table::Found Table::find(uint64_t handle, Lock*& lock) {
  const uint64_t slot = handle & 0xFFFF;
  if (slot == 0 || slot > capacity_) return Found::never;
  Lock& found = slots_[slot - 1];
  const uint64_t generation = Table::generation(handle);
  if (generation == 0 || generation > found.generation) return Found::never;
  if (generation < found.generation || found.state == State::free) return Found::past;
  lock = &found;
  return Found::present;
}

const ValidityCell* Table::cell(uint64_t handle) const {
  const uint64_t slot = handle & 0xFFFF;
  return slot == 0 || slot > capacity_ ? nullptr : &slots_[slot - 1].cell;
}

}  // namespace redlock
