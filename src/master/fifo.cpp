// SPDX-License-Identifier: MIT
#include "master/fifo.hpp"

namespace redlock {

void Fifo::push_own(Request::Kind kind, const Instant& now, uint32_t number) {
  REDLOCK_ASSERT(Request::is_own(kind));
  REDLOCK_ASSERT(own_ < own_max);
  push({now, number, 0, kind, true});
  ++own_;
}

Fifo::Request Fifo::take_back() {
  unsigned at = before(tail_);
  while (places_[at].apart) at = before(at);
  const Request request = places_[at];
  tail_ = static_cast<uint16_t>(before(tail_));
  for (; at != tail_; at = at + 1 == capacity_ ? 0 : at + 1) places_[at] = places_[at + 1 == capacity_ ? 0 : at + 1];
  --size_;
  return request;
}

bool Fifo::owes_answer(uint16_t claim) const {
  unsigned at = head_;
  for (unsigned i = 0; i < size_; ++i) {
    const Request& request = places_[at];
    const bool asked = Request::is_about_claim(request.kind) && request.kind != Request::release;
    if (asked && request.claim == claim) return true;
    if (++at == capacity_) at = 0;
  }
  return false;
}

}  // namespace redlock
