// SPDX-License-Identifier: MIT
#include "lock/local_queue.hpp"

namespace redlock {

// Hash the last 8 bytes: resource names usually share a prefix.
inline LocalQueue::Row& LocalQueue::row_of(Bytes name) const {
  uint32_t end[2] = {};
  if (name.size >= sizeof end) {
    memcpy(end, name.data + name.size - sizeof end, sizeof end);  // a constant size needs no call
  } else {
    memcpy(end, name.data, name.size);
  }
  const uint32_t hash = (end[0] * 0x9E3779B1u ^ end[1]) * 0x85EBCA77u;
  return rows_[uint64_t{hash} * count_ >> 32];
}

void LocalQueue::enter(Lock& lock) {
  uint16_t place = places_of(lock);
  for (Bytes name : lock.names) {
    Row& row = row_of(name);
    const uint16_t next = lock.line.urgent ? overtaken(row, name) : no_slot;
    const uint16_t previous = next == no_slot ? row.last : at(next).previous;
    at(place) = {next, previous};
    (previous == no_slot ? row.first : at(previous).next) = place;
    (next == no_slot ? row.last : at(next).previous) = place;
    ++place;
  }
}

// An urgent lock goes before the first that is not urgent and has sent nothing, not even a look. Whoever has sent
// something stays before it in all rows.
uint16_t LocalQueue::overtaken(const Row& row, Bytes name) const {
  uint16_t i = row.first;
  for (; i != no_slot; i = at(i).next) {
    const Lock& lock = table_[slot_of(i)];
    if (!lock.line.urgent && lock.rounds == 0 && !lock.forecast.waits() && name_at(i) == name) break;
  }
  return i;
}

bool LocalQueue::heads_all_rows(const Lock& lock) const {
  uint16_t place = places_of(lock);
  for (Bytes name : lock.names) {
    for (uint16_t i = at(place++).previous; i != no_slot; i = at(i).previous) {
      if (name_at(i) == name) return false;
    }
  }
  return true;
}

unsigned LocalQueue::leave(Lock& over, uint16_t (&first)[Names::max]) {
  uint16_t place = places_of(over);
  unsigned followers = 0;
  for (Bytes name : over.names) {
    Row& row = row_of(name);
    const LinePlace gone = at(place);
    REDLOCK_ASSERT((gone.previous == no_slot ? row.first : at(gone.previous).next) == place);
    REDLOCK_ASSERT((gone.next == no_slot ? row.last : at(gone.next).previous) == place);
    (gone.previous == no_slot ? row.first : at(gone.previous).next) = gone.next;
    (gone.next == no_slot ? row.last : at(gone.next).previous) = gone.previous;
    uint16_t next = gone.next;
    while (next != no_slot && name_at(next) != name) next = at(next).next;
    if (next != no_slot) first[followers++] = slot_of(next);
    ++place;
  }
  // is_first() is right only now, when the lock has left all of its rows.
  unsigned n = 0;
  for (unsigned i = 0; i < followers; ++i) {
    const uint16_t slot = first[i];
    bool told = !is_first(table_[slot]);
    for (unsigned k = 0; k < n; ++k) told = told || first[k] == slot;
    if (!told) first[n++] = slot;
  }
  return n;
}

}  // namespace redlock
