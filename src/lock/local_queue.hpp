// SPDX-License-Identifier: MIT
//
// Local queue: locks of one client that want the same resource wait for each other here, and not at the masters, where
// they would split the votes. A lock has one place for each of its names. The lock is first, and may send, when no
// lock before it wants any of these names. Only the turn is passed on: each lock sends its own SET, with its own value.
//
// Locks stand in order of arrival, but an urgent one goes before those that have sent nothing and are not urgent.
// So no two locks wait for each other.
//
// The locks stand in rows, and the hash of a name chooses the row. There are as many rows as locks, so a row stays
// short however many locks there are. Different names in one row cost comparisons and nothing else.
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

  // A new acquire takes its places.
  void enter(Lock& lock);
  // Nearly always the lock has one name and nobody before it in the row.
  bool is_first(const Lock& lock) const {
    return (lock.line.places[0].previous == no_slot && lock.names.count() == 1) || heads_all_rows(lock);
  }
  // Removes a lock that is over. Fills `first` with the locks that have become first, at most one for each name of the
  // lock, and returns how many there are.
  unsigned leave(Lock& over, uint16_t (&first)[Names::max]);

 private:
  // The number of a place is made of the lock's slot and the index of the name.
  static_assert(REDLOCK_LOCKS_MAX * Names::max < no_slot, "a place's number is 16 bits wide");
  static uint16_t slot_of(uint16_t place) { return static_cast<uint16_t>(place / Names::max); }
  uint16_t places_of(const Lock& lock) const { return static_cast<uint16_t>(table_.index(lock) * Names::max); }
  LinePlace& at(uint16_t place) const { return table_[slot_of(place)].line.places[place % Names::max]; }
  Bytes name_at(uint16_t place) const { return table_[slot_of(place)].names[place % Names::max]; }
  REDLOCK_IN_LINE_FOR_SPEED inline Row& row_of(Bytes name) const;
  uint16_t overtaken(const Row& row, Bytes name) const;
  bool heads_all_rows(const Lock& lock) const;

  Table& table_;
  Row* rows_ = nullptr;
  unsigned count_ = 0;
};

}  // namespace redlock
