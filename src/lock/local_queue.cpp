// SPDX-License-Identifier: MIT
#include "lock/local_queue.hpp"

namespace redlock {

void LocalQueue::enter(Lock& lock) {
  lock.ticket = ++tickets_;
  lock.row = row_of(lock);
  rows_[lock.row].push(&table_[0], table_.index(lock));
  if (lock.names.count() > 1) ++several_;
  lock.behind = nearest_before(lock);
}

uint16_t LocalQueue::next_first(Lock& over) {
  const bool of_several = over.names.count() > 1;
  const bool in_rows = several_ == 0 && !of_several;
  const uint16_t gone = table_.index(over);
  if (!over.place.queued) return in_rows ? no_slot : next_of_all(gone);
  const uint16_t next = in_rows ? next_in_row(over) : no_slot;
  rows_[over.row].remove(&table_[0], gone);
  over.behind = no_slot;
  if (of_several) --several_;
  if (!in_rows) return next_of_all(gone);
  if (next == no_slot) return no_slot;
  table_[next].behind = nearest_before(table_[next]);
  return table_[next].behind == no_slot ? next : no_slot;
}

uint16_t LocalQueue::next_in_row(const Lock& over) const {
  const uint16_t gone = table_.index(over);
  uint16_t next = over.place.next;
  while (next != no_slot && table_[next].behind != gone) next = table_[next].place.next;
  return next;
}

// Several may have been right behind it: of each of its names one.
uint16_t LocalQueue::next_of_all(uint16_t gone) {
  for (unsigned i = 0; i < table_.capacity(); ++i) {
    Lock& lock = table_[i];
    if (!lock.place.queued || lock.behind != gone) continue;
    lock.behind = nearest_of_all(lock);
    if (lock.behind == no_slot) return static_cast<uint16_t>(i);
  }
  return no_slot;
}

// By the end of its name: names of one kind differ there.
uint16_t LocalQueue::row_of(const Lock& lock) const {
  uint32_t end[2] = {};
  const Bytes name = lock.names.first();
  const size_t size = name.size < sizeof end ? name.size : sizeof end;
  memcpy(end, name.data + name.size - size, size);
  const uint32_t hash = (end[0] * 0x9E3779B1u ^ end[1]) * 0x85EBCA77u;
  return static_cast<uint16_t>(uint64_t{hash} * count_ >> 32);
}

uint16_t LocalQueue::nearest_before(const Lock& lock) const {
  if (several_ != 0) return nearest_of_all(lock);
  uint16_t i = lock.place.previous;
  while (i != no_slot && (table_[i].state == State::over || table_[i].names.first() != lock.names.first())) {
    i = table_[i].place.previous;
  }
  return i;
}

uint16_t LocalQueue::nearest_of_all(const Lock& lock) const {
  uint16_t nearest = no_slot;
  for (unsigned i = 0; i < table_.capacity(); ++i) {
    const Lock& other = table_[i];
    if (!other.place.queued || other.state == State::over || other.ticket >= lock.ticket) continue;
    if (nearest != no_slot && other.ticket < table_[nearest].ticket) continue;
    if (other.names.meets(lock.names)) nearest = static_cast<uint16_t>(i);
  }
  return nearest;
}

}  // namespace redlock
