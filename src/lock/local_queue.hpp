// SPDX-License-Identifier: MIT
//
// Local queue: locks of one client that want the same resource wait for each other here and not at the masters. Only the
// first sends anything; who comes later is behind the nearest one before it. When a lock is over, whoever was right
// behind it moves up, and starts a round of its own if nobody is left before it. Nothing but the turn is handed on.
#pragma once
#include "lock/table.hpp"

namespace redlock {

class LocalQueue {
 public:
  explicit LocalQueue(Table& table) : table_(table) {}

  // A new acquire takes its place at the end: lock.behind.
  void enter(Lock& lock);
  // The lock is over: who was right behind it moves up. Tells one that came to be first; no_slot: there is none left.
  uint16_t next_first(Lock& over);

 private:
  // Names of one kind are likely to differ at their ends. Two that do not cost a search, no more.
  static constexpr unsigned kinds = 64;
  static unsigned kind_of(const Lock& lock) {
    const unsigned char* const name = reinterpret_cast<const unsigned char*>(lock.resource);
    const unsigned last = name[lock.resource_size - 1u], before = lock.resource_size > 1 ? name[lock.resource_size - 2u] : 0u;
    return (last * 11 + before * 3 + lock.resource_size) % kinds;
  }
  uint16_t nearest_before(const Lock& lock) const;

  Table& table_;
  uint16_t of_kind_[kinds] = {};  // locks that have entered and not left
  uint64_t tickets_ = 0;
  unsigned waiting_ = 0;  // locks that are behind another
};

}  // namespace redlock
