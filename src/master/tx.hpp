// SPDX-License-Identifier: MIT
//
// Tx: the bytes still to be sent on one connection. Most bytes are copied into a fixed buffer. Long texts that live
// elsewhere (script bodies, passwords) are only referenced, so they need no room and leave no copy. A command is
// encoded in place behind the bytes already there, and copied from there for the other masters.
#pragma once
#include "base/types.hpp"

namespace redlock {

class Tx {
 public:
  static constexpr unsigned references_max = 8;
  static constexpr unsigned chunks_max = 2 * references_max + 1;

  void init(char* buffer, size_t capacity) {
    REDLOCK_ASSERT(buffer != nullptr && empty());
    buffer_ = buffer;
    capacity_ = capacity;
  }
  void clear() { head_ = tail_ = references_ = 0; }

  bool empty() const { return head_ == tail_ && references_ == 0; }
  // Is there room for this many copied bytes and references?
  bool fits(size_t bytes, unsigned references = 0) const {
    return capacity_ - (tail_ - head_) >= bytes && references_ + references <= references_max;
  }
  void append(Bytes bytes) {    // must fit
    REDLOCK_ASSERT(fits(bytes.size));
    if (bytes.size > capacity_ - tail_) close_gap();
    if (bytes.size != 0) memcpy(buffer_ + tail_, bytes.data, bytes.size);
    tail_ += bytes.size;
  }
  // Appends bytes that were written into a space(). When it was the space() of this Tx, they are already in place.
  void take(Bytes bytes) {
    if (bytes.data == buffer_ + tail_) {
      REDLOCK_ASSERT(bytes.size <= capacity_ - tail_);
      tail_ += bytes.size;
    } else {
      append(bytes);
    }
  }
  // All the room there is, in one run; good until the next append().
  Space space() {
    if (head_ != 0) close_gap();
    return {buffer_ + tail_, capacity_ - tail_};
  }
  void reference(Bytes bytes);        // must fit; the bytes must stay until they are sent or cleared
  bool refers_to(Bytes bytes) const;  // is any of the referenced bytes still to be sent?

  // What to send next, as at most `max` runs of bytes; returns how many. There is one run unless a script's text or a
  // password waits to be sent.
  bool one_run() const { return references_ == 0; }
  Bytes run() const {
    REDLOCK_ASSERT(one_run());
    return Bytes(buffer_ + head_, tail_ - head_);
  }
  unsigned gather(Bytes* out, unsigned max) const;
  // So many bytes of gather() or run() have been sent, from the front.
  void consume(size_t bytes) {
    REDLOCK_ASSERT(references_ != 0 || bytes <= tail_ - head_);
    if (references_ == 0 && bytes == tail_ - head_) {
      clear();
    } else {
      consume_part(bytes);
    }
  }

 private:
  struct Reference {
    size_t at;  // copied bytes that come before it, counted from head_
    Bytes rest;
  };

  void close_gap();
  void consume_part(size_t bytes);

  char* buffer_ = nullptr;
  size_t capacity_ = 0;
  size_t head_ = 0;
  size_t tail_ = 0;
  unsigned references_ = 0;
  Reference reference_[references_max] = {};
};

}  // namespace redlock
