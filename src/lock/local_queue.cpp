// SPDX-License-Identifier: MIT
#include "lock/local_queue.hpp"

namespace redlock {

void LocalQueue::enter(Lock& lock) {
  lock.row = row_of(lock);
  rows_[lock.row].push(&table_[0], table_.index(lock));
  lock.behind = nearest_before(lock);
}

uint16_t LocalQueue::next_first(Lock& over) {
  if (!over.place.queued) return no_slot;
  const uint16_t gone = table_.index(over);
  uint16_t next = over.place.next;
  while (next != no_slot && table_[next].behind != gone) next = table_[next].place.next;
  rows_[over.row].remove(&table_[0], gone);
  over.behind = no_slot;
  if (next == no_slot) return no_slot;
  table_[next].behind = nearest_before(table_[next]);
  return table_[next].behind == no_slot ? next : no_slot;
}

// By the end of its name: names of one kind differ there.
uint16_t LocalQueue::row_of(const Lock& lock) const {
  uint32_t end[2] = {};
  const size_t size = lock.resource_size < sizeof end ? lock.resource_size : sizeof end;
  memcpy(end, lock.resource + lock.resource_size - size, size);
  const uint32_t hash = (end[0] * 0x9E3779B1u ^ end[1]) * 0x85EBCA77u;
  return static_cast<uint16_t>(uint64_t{hash} * count_ >> 32);
}

uint16_t LocalQueue::nearest_before(const Lock& lock) const {
  uint16_t i = lock.place.previous;
  while (i != no_slot && (table_[i].state == State::over || !same_resource(table_[i], lock))) i = table_[i].place.previous;
  return i;
}

}  // namespace redlock
