// SPDX-License-Identifier: MIT
//
// Fifo: the requests of one connection that are in flight, oldest first. A master replies in the order of the requests,
// so the oldest request gives the next reply its meaning. A request keeps its place until its reply has come, even when
// nobody waits for the reply any more.
//
// Some places are kept for requests of the session itself (greeting, readings, pings), so that requests about claims
// can never crowd them out.
#pragma once
#include "base/time.hpp"
#include "base/types.hpp"

namespace redlock {

class Fifo {
 public:
  struct Request {
    // The order matters: each group below ends where the next one begins.
    enum Kind : uint8_t {
      // The client's, about a claim: these are enum Op.
      acquire,
      extend,
      release,
      acquire_fenced,
      token,

      // The client's, about no claim.
      look,
      holder,
      question,
      look_caching,  // CLIENT CACHING ahead of a look, a question or an extend

      // The session's own begin here.
      caching,  // ahead of a reading
      tracking,

      // The greeting's.
      hello,
      auth,
      role,
      load,
      id,
      kill,
      ping,

      // The record's: reads, then writes.
      recheck,  // a reading that sends the tag of the last one
      reading,
      time,
      write,
      visit,
    };
    static constexpr bool is_about_claim(unsigned kind) { return kind <= token; }
    static constexpr bool is_own(unsigned kind) { return kind >= caching; }
    static constexpr bool is_of_greeting(unsigned kind) { return kind >= hello && kind <= ping; }
    static constexpr bool is_of_record(unsigned kind) { return kind >= recheck; }

    Instant sent;
    uint32_t round;  // of a reading: its number
    uint16_t claim;
    uint8_t kind;    // enum Kind
    bool apart;      // no shared command: only this master is told
  };

  static constexpr unsigned own_max = 11;  // requests of the session itself in flight, at most: those of the greeting

  Fifo(Request* places, unsigned capacity) : places_(places), capacity_(static_cast<uint16_t>(capacity)) {
    REDLOCK_ASSERT(capacity > own_max);
    REDLOCK_ASSERT(capacity <= UINT16_MAX);
  }

  bool empty() const { return size_ == 0; }
  unsigned size() const { return size_; }
  const Request& oldest() const {
    REDLOCK_ASSERT(size_ != 0);
    return places_[head_];
  }
  // Is there room for so many requests of the client? For so many of the session itself?
  bool has_room(unsigned requests) const { return size_ - own_ + requests + own_max <= capacity_; }
  bool has_own_room(unsigned requests) const { return own_ + requests <= own_max; }

  void push(const Request& request) {
    REDLOCK_ASSERT(size_ < capacity_);
    places_[tail_] = request;
    if (++tail_ == capacity_) tail_ = 0;
    ++size_;
  }
  void push_own(Request::Kind kind, const Instant& now, uint32_t number = 0);
  // Removes the oldest request. own: is it one of the session itself? The fast path knows without looking.
  void pop(bool own) {
    REDLOCK_ASSERT(own == Request::is_own(oldest().kind));
    if (own) --own_;
    if (++head_ == capacity_) head_ = 0;
    --size_;
  }
  // Removes the newest request that is a shared command. Those behind it stay.
  Request take_back();
  void clear() { head_ = tail_ = size_ = own_ = 0; }

  // Is a request about this claim unanswered, deletes apart?
  bool owes_answer(uint16_t claim) const;

  void check() const {
    REDLOCK_ASSERT(size_ <= capacity_);
    REDLOCK_ASSERT(own_ <= size_);
    REDLOCK_ASSERT((head_ + size_) % capacity_ == tail_);
    REDLOCK_ASSERT(size_ == 0 || oldest().sent <= places_[tail_ == 0 ? capacity_ - 1 : tail_ - 1].sent);
  }

 private:
  unsigned before(unsigned at) const { return (at == 0 ? capacity_ : at) - 1u; }

  Request* places_;
  uint16_t capacity_;
  uint16_t head_ = 0;
  uint16_t tail_ = 0;  // where the next request goes
  uint16_t size_ = 0;
  uint16_t own_ = 0;   // requests of the session itself
};

static_assert(sizeof(Fifo::Request) == 16, "a request is copied as four words");
constexpr bool is_kind_of(Op op, Fifo::Request::Kind kind) { return static_cast<int>(op) == kind; }
static_assert(is_kind_of(Op::acquire, Fifo::Request::acquire) && is_kind_of(Op::extend, Fifo::Request::extend) &&
                  is_kind_of(Op::release, Fifo::Request::release) && is_kind_of(Op::token, Fifo::Request::token) &&
                  is_kind_of(Op::acquire_fenced, Fifo::Request::acquire_fenced),
              "an Op is cast to a Kind, and back");
static_assert(Fifo::Request::acquire < Fifo::Request::release && Fifo::Request::extend < Fifo::Request::release &&
                  Fifo::Request::release < Fifo::Request::acquire_fenced,
              "the fast path reads the replies of kinds up to release");
static_assert(Fifo::Request::token + 1 == Fifo::Request::look &&
                  Fifo::Request::holder < Fifo::Request::caching &&
                  Fifo::Request::look_caching + 1 == Fifo::Request::caching &&
                  Fifo::Request::tracking + 1 == Fifo::Request::hello &&
                  Fifo::Request::ping + 1 == Fifo::Request::recheck,
              "is_about_claim(), is_own(), is_of_greeting() and is_of_record() compare with the ends of the groups");

}  // namespace redlock
