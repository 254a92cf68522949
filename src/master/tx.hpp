// SPDX-License-Identifier: MIT
//
// Tx: the bytes still to be sent on one connection, in their order. They stand in three places:
//
//   a small buffer of this connection   what no other master is told
//   elsewhere                           long texts (script bodies, passwords): they need no room and leave no copy
//   master/shared                       commands that other masters are told as well
//
// A slow connection must not keep the shared memory from the others. So after each turn its shared commands are taken
// back, all but the oldest. What is left of the oldest command moves into the small buffer, which always has room for
// that. Until all bytes have left, such a connection takes no shared command.
#pragma once
#include "master/shared.hpp"

namespace redlock {

class Tx {
 public:
  static constexpr unsigned references_max = 8;
  static constexpr unsigned chunks_max = 2 * references_max + 1;

  void init(char* buffer, size_t capacity, Shared& shared, MasterIndex self) {
    REDLOCK_ASSERT(buffer != nullptr);
    REDLOCK_ASSERT(empty());
    REDLOCK_ASSERT(capacity <= UINT32_MAX);
    buffer_ = buffer;
    capacity_ = capacity;
    shared_ = &shared;
    self_ = static_cast<uint8_t>(self);
  }
  void clear() {
    head_ = tail_ = references_ = 0;
    let_go();
    lags_ = false;
  }

  bool lags() const { return lags_; }
  bool empty() const { return head_ == tail_ && references_ == 0; }
  // Is there room for this many copied bytes and references?
  bool fits(size_t bytes, unsigned references = 0) const;
  void append(Bytes bytes);  // must fit
  // Appends bytes that were written into space().
  void take(Bytes bytes) {
    if (open_) close();
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

  // ---- shared commands
  // May this connection take a shared command of so many bytes? The small buffer must have room to keep the command.
  bool may_share(size_t bytes) const {
    return !lags_ && ((head_ == tail_ && references_ <= 1) || may_share_behind(bytes));
  }
  // The newest command of the shared memory is for this master.
  void share() {
    if (open_) return;
    REDLOCK_ASSERT(references_ < references_max);
    REDLOCK_ASSERT(!lags_);
    if (shares_++ == 0) {
      next_ = shared_->count() - 1;
      shared_->hold();
    }
    open_ = true;
    reference_[references_++] = {nullptr, 0, static_cast<uint32_t>(tail_ - head_)};
  }
  void write_seals(Bytes seal) const {
    if (shares_ != 0) shared_->write_seals(self_, next_, seal);
  }
  // Takes back the newest shared command. False: there is none but the oldest.
  bool take_back();
  // Behind that: keeps the oldest.
  void keep();

  // What to send next, as at most `max` runs of bytes; returns how many. There is one run unless a script's text or a
  // password waits to be sent, or other masters were told something in between.
  bool one_run() const { return references_ == 0 || (references_ == 1 && shares_one_run()); }
  Bytes run() const {
    REDLOCK_ASSERT(one_run());
    return references_ == 0 ? Bytes(buffer_ + head_, tail_ - head_) : shared_->rest(next_, begun_);
  }
  unsigned gather(Bytes* out, unsigned max) const;
  // So many bytes of gather() or run() have been sent, from the front.
  void consume(size_t bytes) {
    REDLOCK_ASSERT(references_ != 0 || bytes <= tail_ - head_);
    if (one_run() && bytes == run().size) {
      clear();
    } else {
      consume_part(bytes);
    }
  }

 private:
  // `size` bytes at `data`; or, where data is nullptr, this master's shared commands before that of number `size`.
  struct Reference {
    const char* data;
    uint32_t size;
    uint32_t at;  // copied bytes that come before it, counted from head_
  };

  bool shares_one_run() const { return open_ && head_ == tail_ && shared_->all_for(self_); }
  // Of a reference to shared commands.
  unsigned end_of(unsigned i) const {
    return open_ && i + 1u == references_ ? shared_->count() : reference_[i].size;
  }
  bool is_mine(unsigned command) const { return (*shared_)[command].to.has(self_); }
  void let_go() {
    if (shares_ == 0) return;
    shares_ = 0;
    begun_ = 0;
    open_ = false;
    shared_->let_go();
  }
  [[gnu::noinline]] bool may_share_behind(size_t bytes) const;
  [[gnu::noinline]] void close();
  void close_gap();
  void consume_part(size_t bytes);
  bool consume_shared(size_t& bytes);
  void drop(unsigned reference);

  char* buffer_ = nullptr;
  size_t capacity_ = 0;
  size_t head_ = 0;
  size_t tail_ = 0;
  Shared* shared_ = nullptr;
  uint32_t next_ = 0;   // the first shared command that is not wholly sent, or one before it that is for others
  uint16_t begun_ = 0;  // bytes of the command next_ that were sent
  uint8_t self_ = 0;
  uint8_t references_ = 0;
  uint8_t shares_ = 0;  // references to shared commands
  bool open_ = false;   // the last reference is one of them, and ends with the newest
  bool lags_ = false;   // was not empty behind a turn
  Reference reference_[references_max] = {};
};

}  // namespace redlock
