// SPDX-License-Identifier: MIT
#include "base/queue.hpp"

namespace redlock {

template void Links::push<>(Array links, uint16_t index);
template void Links::remove<>(Array links, uint16_t index);

void Links::push_front(Array links, uint16_t index) {
  remove(links, index);
  links[index] = {first_, no_slot, true};
  (first_ == no_slot ? last_ : links[first_].previous) = index;
  first_ = index;
}

}  // namespace redlock
