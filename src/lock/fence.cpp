// SPDX-License-Identifier: MIT
#include "lock/fence.hpp"

namespace redlock {

void Proposals::init(Place* places, unsigned size) {
  places_ = places;
  size_ = size;
  for (unsigned i = 0; i < size; ++i) places_[i] = {};
}

uint32_t Proposals::hash_of(Bytes resource) {
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < resource.size; ++i) hash = (hash ^ static_cast<unsigned char>(resource.data[i])) * 16777619u;
  return hash;
}

uint64_t Proposals::next(Bytes resource) const {
  const uint32_t name = hash_of(resource);
  const Place& p = place(name);
  if (p.name != name) return 1;
  return p.top < token_max ? p.top + 1 : 0;
}

void Proposals::heard(Bytes resource, uint64_t number) {
  const uint32_t name = hash_of(resource);
  Place& p = place(name);
  if (p.name != name) {
    if (p.may_floor) return;
    p = {name, false, 0};
  }
  if (number > p.top) p.top = number;
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

bool Proposals::may_floor(Bytes resource) const {
  const uint32_t name = hash_of(resource);
  const Place& p = place(name);
  return p.name == name && p.may_floor;
}

void Proposals::floor_taken(Bytes resource) {
  const uint32_t name = hash_of(resource);
  Place& p = place(name);
  if (p.name == name) p.may_floor = false;
}

}  // namespace redlock
