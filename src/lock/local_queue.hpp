// SPDX-License-Identifier: MIT
//
// Local queue: locks of one client that want the same resource wait for each other here and not at the masters. Only
// the first sends anything; who comes later is behind the nearest one before it. When a lock is over, whoever was
// right behind it moves up, and starts a round of its own if nobody is left before it. Nothing but the turn is handed
// on.
//
// Locks stand in rows, in order of arrival, chosen by the resource's hash: as many rows as locks, so that a row is
// short however many there are. Two resources in one row cost a look at each other's names, no more.
//
// A lock of several resources is behind the nearest one before it that has any of them, and who comes later and wants
// any is behind it: so it stands in the line of each and is first when it heads them all. All lines are in order of
// arrival, so no two locks can wait for each other. While there are such locks the whole table is searched instead of
// a row.
#pragma once
#include "lock/table.hpp"

namespace redlock {

class LocalQueue {
 public:
  using Row = Queue<Lock, &Lock::place>;

  explicit LocalQueue(Table& table) : table_(table) {}
  void init(Row* rows, unsigned count) { rows_ = rows, count_ = count; }

  // A new acquire takes its place at the end: lock.behind.
  void enter(Lock& lock);
  // The lock is over: who was right behind it moves up. Tells one that came to be first; no_slot: there is none left.
  uint16_t next_first(Lock& over);

 private:
  uint16_t row_of(const Lock& lock) const;
  uint16_t next_in_row(const Lock& over) const;
  uint16_t nearest_before(const Lock& lock) const;
  uint16_t nearest_of_all(const Lock& lock) const;
  uint16_t next_of_all(uint16_t gone);

  Table& table_;
  Row* rows_ = nullptr;
  unsigned count_ = 0;
  unsigned several_ = 0;  // locks of several resources
  uint64_t tickets_ = 0;
};

}  // namespace redlock
