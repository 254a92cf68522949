// SPDX-License-Identifier: MIT
#include "base/queue.hpp"

namespace redlock {

REDLOCK_APART_FOR_SIZE void Links::push(Array links, uint16_t index) {
  Link& place = links[index];
  if (place.queued) return;
  place = {no_slot, last_, true};
  (last_ == no_slot ? first_ : links[last_].next) = index;
  last_ = index;
}

REDLOCK_APART_FOR_SIZE void Links::remove(Array links, uint16_t index) {
  Link& place = links[index];
  if (!place.queued) return;
  (place.previous == no_slot ? first_ : links[place.previous].next) = place.next;
  (place.next == no_slot ? last_ : links[place.next].previous) = place.previous;
  place = {};
}

void Links::push_front(Array links, uint16_t index) {
  remove(links, index);
  links[index] = {first_, no_slot, true};
  (first_ == no_slot ? last_ : links[first_].previous) = index;
  first_ = index;
}

}  // namespace redlock
