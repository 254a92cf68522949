// SPDX-License-Identifier: MIT
//
// Local queue: locks of one client that want the same resource wait for each other here and not at the masters. A lock
// stands in one line for each of its names. It is first, and may send, when no older lock stands before it in any of
// these lines. Nothing but the turn is handed on.
//
// Every line is in order of arrival. So of two locks the older one never waits for the younger one, and no two locks
// wait for each other.
//
// The lines are threaded through rows, which are chosen by the hash of the name. There are as many rows as locks, so a
// row is short however many locks there are. Two names in one row cost a comparison and no more.
#pragma once
#include "lock/table.hpp"

namespace redlock {

class LocalQueue {
 public:
  struct Row {
    uint16_t first = no_slot;
    uint16_t last = no_slot;
  };

  explicit LocalQueue(Table& table) : table_(table) {}
  void init(Row* rows, unsigned count) {
    rows_ = rows;
    count_ = count;
  }

  // A new acquire takes its places at the end.
  void enter(Lock& lock);
  bool is_first(const Lock& lock) const;
  // A lock that is over leaves its places. Fills `first` with the locks that have become first by that, at most one for
  // each of its names, and returns their number.
  unsigned leave(Lock& over, uint16_t (&first)[Names::max]);

 private:
  // A place has a number: that of its lock's slot, and which of the lock's names it is for.
  static_assert(REDLOCK_LOCKS_MAX * Names::max < no_slot, "a place's number is 16 bits wide");
  static uint16_t slot_of(uint16_t place) { return static_cast<uint16_t>(place / Names::max); }
  uint16_t places_of(const Lock& lock) const { return static_cast<uint16_t>(table_.index(lock) * Names::max); }
  LinePlace& at(uint16_t place) const { return table_[slot_of(place)].turn.places[place % Names::max]; }
  Bytes name_at(uint16_t place) const { return table_[slot_of(place)].names[place % Names::max]; }
  Row& row_of(Bytes name) const;

  Table& table_;
  Row* rows_ = nullptr;
  unsigned count_ = 0;
};

}  // namespace redlock
