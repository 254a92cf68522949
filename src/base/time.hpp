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
#include "base/quotient.hpp"
#include "base/types.hpp"

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

// Sums and choices of instants. They work with raw counts, because 32-bit ARM returns these in registers, and an object
// of 64 bits through memory. Where small code is asked for they stand apart: each takes 12 bytes and more in line. They
// are templates for the sake of `extern template`: no object but time.cpp's has a copy that stands apart.
template <class = void> REDLOCK_APART_FOR_SIZE inline int64_t saturating_sum(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b > 0 ? INT64_MAX : INT64_MIN;
}
template <class = void> REDLOCK_APART_FOR_SIZE inline int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }
template <class = void> REDLOCK_APART_FOR_SIZE inline int64_t greater(int64_t a, int64_t b) { return a > b ? a : b; }
extern template int64_t saturating_sum<>(int64_t a, int64_t b);
extern template int64_t lesser<>(int64_t a, int64_t b);
extern template int64_t greater<>(int64_t a, int64_t b);

[[gnu::always_inline]] inline Instant operator+(Instant t, Duration d) {
  return Instant::from_ns(saturating_sum(t.ns(), d.ns()));
}
[[gnu::always_inline]] inline Instant earlier(Instant a, Instant b) { return Instant::from_ns(lesser(a.ns(), b.ns())); }
[[gnu::always_inline]] inline Instant later(Instant a, Instant b) { return Instant::from_ns(greater(a.ns(), b.ns())); }

constexpr uint32_t whole_seconds(int64_t ns) { return static_cast<uint32_t>(quotient(ns, 1'000'000'000)); }

template <class = void>
REDLOCK_APART_FOR_SIZE inline void bring_forward(Instant& deadline, Instant t) { deadline = earlier(deadline, t); }
extern template void bring_forward<>(Instant& deadline, Instant t);

// A random part of a duration: more than zero, at most all of it. Every value of `random` is equally likely.
Duration part_of(Duration whole, uint32_t random);

}  // namespace redlock
