// SPDX-License-Identifier: MIT
//
// Queue: slots in order of arrival. The links are part of the slots, so a queue can neither overflow nor allocate. Any
// slot can leave from the middle, and an urgent slot can enter at the front.
#pragma once
#include <stdint.h>

namespace redlock {

constexpr uint16_t no_slot = 0xFFFF;

struct Link {
  uint16_t next = no_slot;
  uint16_t previous = no_slot;
  bool queued = false;
};

template <class Slot, Link Slot::*link>
class Queue {
 public:
  bool empty() const { return first_ == no_slot; }
  uint16_t first() const { return first_; }
  static uint16_t next(const Slot* slots, uint16_t index) { return (slots[index].*link).next; }

  void push(Slot* slots, uint16_t index) {
    Link& place = slots[index].*link;
    if (place.queued) return;
    place = {no_slot, last_, true};
    if (last_ == no_slot) {
      first_ = index;
    } else {
      (slots[last_].*link).next = index;
    }
    last_ = index;
  }

  // Moves a slot to the front, also from another place in this queue.
  void push_front(Slot* slots, uint16_t index) {
    remove(slots, index);
    slots[index].*link = {first_, no_slot, true};
    if (first_ == no_slot) {
      last_ = index;
    } else {
      (slots[first_].*link).previous = index;
    }
    first_ = index;
  }

  void remove(Slot* slots, uint16_t index) {
    Link& place = slots[index].*link;
    if (!place.queued) return;
    if (place.previous == no_slot) {
      first_ = place.next;
    } else {
      (slots[place.previous].*link).next = place.next;
    }
    if (place.next == no_slot) {
      last_ = place.previous;
    } else {
      (slots[place.next].*link).previous = place.previous;
    }
    place = {};
  }

 private:
  uint16_t first_ = no_slot;
  uint16_t last_ = no_slot;
};

}  // namespace redlock
