// SPDX-License-Identifier: MIT
//
// Table: fixed slots for locks, and the handles that name them. A handle is generation << 16 | slot + 1. The generation
// of a slot grows with each use, and has 48 bits. So the handle of an ended acquire never names a later acquire. 0 is
// no handle.
#pragma once
#include "lock/machine.hpp"

namespace redlock {

class Table {
 public:
  void init(Lock* slots, unsigned capacity);

  Lock* take();            // a free slot with a new generation; nullptr: the table is full
  void give_back(Lock& lock);

  uint64_t handle(const Lock& lock) const { return lock.generation << 16 | (index(lock) + 1u); }
  static uint16_t index(const Lock& lock) { return lock.slot; }
  Lock& operator[](unsigned index) {
    REDLOCK_ASSERT(index < capacity_);
    return slots_[index];
  }
  const Lock& operator[](unsigned index) const {
    REDLOCK_ASSERT(index < capacity_);
    return slots_[index];
  }
  unsigned capacity() const { return capacity_; }
  bool in_use() const { return used_ != 0; }

  enum class Found : uint8_t { present, past, never };
  // For the loop's thread: does the handle name a present lock, an ended one, or none? Sets `lock` if it is present.
  Found find(uint64_t handle, Lock*& lock);
  // For any thread: the cell of the slot that a handle names; nullptr: no slot has that number.
  const ValidityCell* cell(uint64_t handle) const;
  static uint64_t generation(uint64_t handle) { return handle >> 16; }

 private:
  Lock* slots_ = nullptr;
  uint16_t capacity_ = 0;
  uint16_t used_ = 0;  // slots
  uint16_t free_ = no_slot;  // the first free slot; Lock::start links the others
};

}  // namespace redlock
