// SPDX-License-Identifier: MIT
#include "master/tx.hpp"

namespace redlock {

namespace {

// Adds bytes to the last of n runs, if they follow it in memory, or as a run of their own. False: there are `max` runs.
[[gnu::noinline]] bool join_run(Bytes* out, unsigned& n, unsigned max, Bytes bytes) {
  if (n > 0 && out[n - 1].data + out[n - 1].size == bytes.data) {
    out[n - 1].size += bytes.size;
    return true;
  }
  if (n == max) return false;
  out[n++] = bytes;
  return true;
}

}  // namespace

bool Tx::fits(size_t bytes, unsigned references) const {
  const size_t kept = shares_ != 0 ? shared_->longest() : 0;
  return capacity_ - (tail_ - head_) >= bytes + kept && references_ + references <= references_max;
}

void Tx::append(Bytes bytes) {
  REDLOCK_ASSERT(fits(bytes.size));
  if (open_) close();
  if (bytes.size > capacity_ - tail_) close_gap();
  if (bytes.size != 0) memcpy(buffer_ + tail_, bytes.data, bytes.size);
  tail_ += bytes.size;
}

// Makes the room behind the bytes: sent bytes at the front give theirs up.
void Tx::close_gap() {
  REDLOCK_ASSERT(head_ <= tail_);
  REDLOCK_ASSERT(tail_ <= capacity_);
  memmove(buffer_, buffer_ + head_, tail_ - head_);
  tail_ -= head_;
  head_ = 0;
}

void Tx::reference(Bytes bytes) {
  REDLOCK_ASSERT(fits(0, 1));
  if (bytes.size == 0) return;
  if (open_) close();
  reference_[references_++] = {bytes.data, static_cast<uint32_t>(bytes.size), static_cast<uint32_t>(tail_ - head_)};
}

// The front of a text that was sent in part is gone, so a reference is known by its end.
bool Tx::refers_to(Bytes bytes) const {
  for (unsigned i = 0; i < references_; ++i) {
    const Reference& r = reference_[i];
    if (r.data != nullptr && r.data + r.size == bytes.data + bytes.size) return true;
  }
  return false;
}

bool Tx::may_share_behind(size_t bytes) const {
  const size_t longest = bytes > shared_->longest() ? bytes : shared_->longest();
  return capacity_ - (tail_ - head_) >= longest && (open_ || references_ + 2u < references_max);
}

// Something else comes behind the shared commands.
void Tx::close() {
  reference_[references_ - 1].size = shared_->count();
  open_ = false;
}

unsigned Tx::gather(Bytes* out, unsigned max) const {
  unsigned n = 0;
  size_t at = 0;  // copied bytes given so far
  unsigned next = next_;
  size_t begun = begun_;
  const auto give = [&](Bytes bytes) { return join_run(out, n, max, bytes); };
  for (unsigned i = 0; i < references_; ++i) {
    const Reference& r = reference_[i];
    if (r.at > at && !give(Bytes(buffer_ + head_ + at, r.at - at))) return n;
    at = r.at;
    if (r.data != nullptr && !give(Bytes(r.data, r.size))) return n;
    for (const unsigned end = r.data == nullptr ? end_of(i) : next; next != end; ++next) {
      if (!is_mine(next)) continue;
      const Bytes command = shared_->run(next, next + 1);
      if (!give(Bytes(command.data + begun, command.size - begun))) return n;
      begun = 0;
    }
  }
  if (at < tail_ - head_) give(Bytes(buffer_ + head_ + at, tail_ - head_ - at));
  return n;
}

void Tx::drop(unsigned reference) {
  --references_;
  for (unsigned i = reference; i < references_; ++i) reference_[i] = reference_[i + 1];
}

// Of the first reference. True: it is done.
bool Tx::consume_shared(size_t& bytes) {
  for (const unsigned end = end_of(0); next_ != end; ++next_) {
    if (!is_mine(next_)) continue;
    const size_t rest = shared_->run(next_, next_ + 1).size - begun_;
    if (bytes < rest) {
      begun_ = static_cast<uint16_t>(begun_ + bytes);
      return false;
    }
    bytes -= rest;
    begun_ = 0;
  }
  return true;
}

void Tx::consume_part(size_t bytes) {
  while (bytes > 0) {
    const size_t copied = references_ > 0 ? reference_[0].at : tail_ - head_;
    const size_t now = bytes < copied ? bytes : copied;
    REDLOCK_ASSERT(copied <= tail_ - head_);
    head_ += now;
    bytes -= now;
    for (unsigned i = 0; i < references_; ++i) reference_[i].at -= static_cast<uint32_t>(now);
    if (references_ == 0) {
      REDLOCK_ASSERT(bytes == 0);
      break;
    }
    Reference& first = reference_[0];
    if (first.at != 0) break;
    if (first.data == nullptr) {
      if (!consume_shared(bytes)) break;
      if (shares_ == 1) {
        let_go();
      } else {
        --shares_;
      }
    } else if (bytes < first.size) {
      first.data += bytes;
      first.size -= static_cast<uint32_t>(bytes);
      break;
    } else {
      bytes -= first.size;
    }
    drop(0);
  }
  if (head_ == tail_) head_ = tail_ = 0;
  if (empty()) lags_ = false;
}

bool Tx::take_back() {
  if (shares_ == 0) return false;
  unsigned oldest = next_;
  while (!is_mine(oldest)) ++oldest;
  unsigned newest = shared_->count() - 1;
  while (!is_mine(newest)) --newest;
  if (newest != oldest) shared_->take_back(newest, self_);
  return newest != oldest;
}

// Every reference to shared commands but the first is empty by now.
void Tx::keep() {
  lags_ = !empty();
  if (shares_ == 0) return;
  while (!is_mine(next_)) ++next_;
  const Bytes command = shared_->run(next_, next_ + 1), rest(command.data + begun_, command.size - begun_);
  close_gap();
  size_t moved = 0;
  unsigned n = 0;
  for (unsigned i = 0; i < references_; ++i) {
    Reference r = reference_[i];
    if (r.data == nullptr && moved == 0) {
      REDLOCK_ASSERT(rest.size + tail_ <= capacity_);
      memmove(buffer_ + r.at + rest.size, buffer_ + r.at, tail_ - r.at);
      memcpy(buffer_ + r.at, rest.data, rest.size);
      tail_ += rest.size;
      moved = rest.size;
    }
    r.at += static_cast<uint32_t>(moved);
    if (r.data != nullptr) reference_[n++] = r;
  }
  references_ = static_cast<uint8_t>(n);
  let_go();
}

}  // namespace redlock
