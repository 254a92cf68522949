// SPDX-License-Identifier: MIT
#include "master/tx.hpp"

namespace redlock {

// Makes the room behind the bytes: sent bytes at the front give theirs up.
void Tx::close_gap() {
  REDLOCK_ASSERT(head_ <= tail_ && tail_ <= capacity_);
  memmove(buffer_, buffer_ + head_, tail_ - head_);
  tail_ -= head_;
  head_ = 0;
}

void Tx::reference(Bytes bytes) {
  REDLOCK_ASSERT(fits(0, 1));
  if (bytes.size != 0) reference_[references_++] = {tail_ - head_, bytes};
}

// The front of a text that was sent in part is gone, so a reference is known by its end.
bool Tx::refers_to(Bytes bytes) const {
  for (unsigned i = 0; i < references_; ++i) {
    if (reference_[i].rest.data + reference_[i].rest.size == bytes.data + bytes.size) return true;
  }
  return false;
}

unsigned Tx::gather(Bytes* out, unsigned max) const {
  unsigned n = 0;
  size_t at = 0;  // copied bytes given so far
  for (unsigned i = 0; i < references_ && n < max; ++i) {
    if (reference_[i].at > at) out[n++] = Bytes(buffer_ + head_ + at, reference_[i].at - at);
    if (n == max) return n;
    out[n++] = reference_[i].rest;
    at = reference_[i].at;
  }
  if (n < max && at < tail_ - head_) out[n++] = Bytes(buffer_ + head_ + at, tail_ - head_ - at);
  return n;
}

void Tx::consume_part(size_t bytes) {
  while (bytes > 0) {
    const size_t copied = references_ > 0 ? reference_[0].at : tail_ - head_;
    const size_t now = bytes < copied ? bytes : copied;
    REDLOCK_ASSERT(copied <= tail_ - head_);
    head_ += now;
    bytes -= now;
    for (unsigned i = 0; i < references_; ++i) reference_[i].at -= now;
    if (references_ == 0) {
      REDLOCK_ASSERT(bytes == 0);
      break;
    }
    if (bytes < reference_[0].rest.size) {
      reference_[0].rest = Bytes(reference_[0].rest.data + bytes, reference_[0].rest.size - bytes);
      break;
    }
    bytes -= reference_[0].rest.size;
    --references_;
    for (unsigned i = 0; i < references_; ++i) reference_[i] = reference_[i + 1];
  }
  if (head_ == tail_) head_ = tail_ = 0;
}

}  // namespace redlock
