// SPDX-License-Identifier: MIT
#include "lock/fence.hpp"

#include "base/digits.hpp"

namespace redlock {

bool Belief::believes(uint64_t number) const {
  if (number <= got_ + step) return true;
  unsigned near = 0;
  for (unsigned k = 0; k < masters_; ++k) near += told_[k] >= number - step;
  return near > masters_ - quorum_of(masters_);
}

void Proposals::init(Place* places, unsigned size) {
  places_ = places;
  size_ = size;
  for (unsigned i = 0; i < size; ++i) places_[i] = {};
}

uint64_t Proposals::next(const Names& names) const {
  uint64_t top = 0;
  for (Bytes resource : names) {
    const uint32_t name = hash_of(resource);
    const Place& p = place(name);
    if (p.name == name && p.top > top) top = p.top;
  }
  return top < token_max ? top + 1 : 0;
}

void Proposals::heard(const Names& names, uint64_t number) {
  for (Bytes resource : names) {
    const uint32_t name = hash_of(resource);
    Place& p = place(name);
    if (p.name != name) {
      if (p.may_floor) continue;
      p = {name, false, 0};
    }
    if (number > p.top) p.top = number;
  }
}

bool Proposals::allow_floor(Bytes resource) {
  const uint32_t name = hash_of(resource);
  Place& p = place(name);
  if (p.name != name) {
    if (p.may_floor) return false;
    p = {name, false, 0};
  }
  p.may_floor = true;
  return true;
}

bool Proposals::may_floor(const Names& names) const {
  for (Bytes resource : names) {
    const uint32_t name = hash_of(resource);
    const Place& p = place(name);
    if (p.name != name || !p.may_floor) return false;
  }
  return true;
}

void Proposals::floor_taken(const Names& names) {
  for (Bytes resource : names) {
    const uint32_t name = hash_of(resource);
    Place& p = place(name);
    if (p.name == name) p.may_floor = false;
  }
}

}  // namespace redlock
