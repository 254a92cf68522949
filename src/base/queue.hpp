// SPDX-License-Identifier: MIT
//
// Queue: slots in order of arrival. The links are part of the slots, so a queue can neither overflow nor allocate. Any
// slot can leave from the middle, and an urgent slot can enter at the front.
#pragma once
#include "base/types.hpp"

namespace redlock {

constexpr uint16_t no_slot = 0xFFFF;
constexpr uint16_t no_claim = no_slot;  // where the number is that of a claim

struct Link {
  uint16_t next = no_slot;
  uint16_t previous = no_slot;
  bool queued = false;
};

// What is the same for all queues: they differ in where a slot has its link.
class Links {
 public:
  bool empty() const { return first_ == no_slot; }
  uint16_t first() const { return first_; }

 protected:
  // The links of an array of slots, which stand `step` bytes apart.
  struct Array {
    Link& operator[](uint16_t index) const { return *reinterpret_cast<Link*>(begin + size_t{index} * step); }
    char* begin;
    size_t step;
  };

  template <class = void> void push(Array links, uint16_t index);
  void push_front(Array links, uint16_t index);
  template <class = void> void remove(Array links, uint16_t index);

 private:
  uint16_t first_ = no_slot;
  uint16_t last_ = no_slot;
};

template <class> REDLOCK_APART_FOR_SIZE inline void Links::push(Array links, uint16_t index) {
  Link& place = links[index];
  if (place.queued) return;
  place = {no_slot, last_, true};
  (last_ == no_slot ? first_ : links[last_].next) = index;
  last_ = index;
}

template <class> REDLOCK_APART_FOR_SIZE inline void Links::remove(Array links, uint16_t index) {
  Link& place = links[index];
  if (!place.queued) return;
  (place.previous == no_slot ? first_ : links[place.previous].next) = place.next;
  (place.next == no_slot ? last_ : links[place.next].previous) = place.previous;
  place = {};
}

extern template void Links::push<>(Array links, uint16_t index);  // as in time.hpp
extern template void Links::remove<>(Array links, uint16_t index);

template <class Slot, Link Slot::*link>
class Queue : public Links {
 public:
  static uint16_t next(const Slot* slots, uint16_t index) { return (slots[index].*link).next; }
  void push(Slot* slots, uint16_t index) { Links::push(links(slots), index); }
  // Moves a slot to the front, also from another place in this queue.
  void push_front(Slot* slots, uint16_t index) { Links::push_front(links(slots), index); }
  void remove(Slot* slots, uint16_t index) { Links::remove(links(slots), index); }

 private:
  static Array links(Slot* slots) { return {reinterpret_cast<char*>(&(slots->*link)), sizeof(Slot)}; }
};

}  // namespace redlock
