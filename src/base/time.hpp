// SPDX-License-Identifier: MIT
//
// Instant and Duration: two types, so that a point in time cannot be taken for a length of time. Both count nanoseconds
// in 64 bits (292 years). An instant saturates, so that never() stays never. A duration is a configured time or a small
// multiple of one, and cannot overflow. Instants come from port/clock, whose zero means nothing.
//
// There is no subtraction here. lock/validity tells how much time is left, and knows in which direction to round. All
// other code adds a duration to an instant, and compares.
//
// `now` goes down from the port by reference: by value it would take a pair of registers in each call on 32-bit ARM.
// It stays what it is until the input has been handled, so nobody may keep the reference longer.
#pragma once
#include <stdint.h>

namespace redlock {

class Duration {
 public:
  constexpr Duration() = default;
  static constexpr Duration ns(int64_t n) { return Duration(n); }
  static constexpr Duration us(int64_t n) { return Duration(n * 1'000); }
  static constexpr Duration ms(int64_t n) { return Duration(n * 1'000'000); }
  constexpr int64_t ns() const { return ns_; }

  friend constexpr bool operator==(Duration a, Duration b) { return a.ns_ == b.ns_; }
  friend constexpr bool operator<(Duration a, Duration b) { return a.ns_ < b.ns_; }
  friend constexpr bool operator>(Duration a, Duration b) { return b < a; }
  friend constexpr bool operator<=(Duration a, Duration b) { return !(b < a); }
  friend constexpr bool operator>=(Duration a, Duration b) { return !(a < b); }
  friend constexpr Duration operator+(Duration a, Duration b) { return Duration(a.ns_ + b.ns_); }

 private:
  constexpr explicit Duration(int64_t n) : ns_(n) {}
  int64_t ns_ = 0;
};

class Instant {
 public:
  constexpr Instant() = default;
  static constexpr Instant from_ns(int64_t n) { return Instant(n); }
  static constexpr Instant never() { return Instant(INT64_MAX); }
  constexpr int64_t ns() const { return ns_; }

  friend constexpr bool operator==(Instant a, Instant b) { return a.ns_ == b.ns_; }
  friend constexpr bool operator!=(Instant a, Instant b) { return a.ns_ != b.ns_; }
  friend constexpr bool operator<(Instant a, Instant b) { return a.ns_ < b.ns_; }
  friend constexpr bool operator>(Instant a, Instant b) { return b < a; }
  friend constexpr bool operator<=(Instant a, Instant b) { return !(b < a); }
  friend constexpr bool operator>=(Instant a, Instant b) { return !(a < b); }

 private:
  constexpr explicit Instant(int64_t n) : ns_(n) {}
  int64_t ns_ = 0;
};

// One reading of a port's clock. jumped: since the last reading the machine was suspended, or its clocks were changed.
// Then every held lock is LOST, and every open acquire round begins anew.
struct Reading {
  Instant now;
  bool jumped;
};

// Works with raw counts, as 32-bit ARM returns them in registers, and an object of 64 bits through memory.
int64_t saturating_sum(int64_t a, int64_t b);
[[gnu::always_inline]] inline Instant operator+(Instant t, Duration d) {
  return Instant::from_ns(saturating_sum(t.ns(), d.ns()));
}

// Compares the raw counts: when comparing Instant objects, GCC for 32-bit ARM spills both to the stack.
constexpr Instant earlier(Instant a, Instant b) { return Instant::from_ns(b.ns() < a.ns() ? b.ns() : a.ns()); }
constexpr Instant later(Instant a, Instant b) { return Instant::from_ns(a.ns() < b.ns() ? b.ns() : a.ns()); }

// deadline = earlier(deadline, t). Not inline: on 32-bit ARM each comparison of two instants takes 20 bytes.
void bring_forward(Instant& deadline, Instant t);

// A random part of a duration: more than zero, at most all of it. Every value of `random` is equally likely.
Duration part_of(Duration whole, uint32_t random);

}  // namespace redlock
