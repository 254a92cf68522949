// SPDX-License-Identifier: MIT
//
// Instant and Duration: two types, so that a point in time cannot be taken for a length of time. Both count
// nanoseconds in 64 bits (292 years). An instant saturates, so that never() stays never; durations are configured times
// and small multiples of them, far from the end. Instants come from port/clock, whose zero means nothing.
//
// There is no subtraction here. Whoever wants to know how much is left asks lock/validity, which knows in which
// direction to round; everybody else adds a duration to an instant and compares.
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
  friend constexpr Instant operator+(Instant t, Duration d) {
    int64_t sum = 0;
    if (!__builtin_add_overflow(t.ns_, d.ns(), &sum)) return Instant(sum);
    return d.ns() > 0 ? never() : Instant(INT64_MIN);
  }

 private:
  constexpr explicit Instant(int64_t n) : ns_(n) {}
  int64_t ns_ = 0;
};

// What a port's clock says. jumped: the machine was suspended, or its clocks were changed, since the reading before.
// Every lock held is LOST then, and every open round begins anew.
struct Reading {
  Instant now;
  bool jumped;
};

// Chosen by number, not by object: on 32-bit ARM the compiler puts two objects into memory and chooses an address.
constexpr Instant earlier(Instant a, Instant b) { return Instant::from_ns(b.ns() < a.ns() ? b.ns() : a.ns()); }
constexpr Instant later(Instant a, Instant b) { return Instant::from_ns(a.ns() < b.ns() ? b.ns() : a.ns()); }

// A random part of a duration, above zero and up to all of it; every value of `random` is equally likely.
constexpr Duration part_of(Duration whole, uint32_t random) {
  const int64_t part = whole.ns() / 65536 * ((random >> 16) + 1);
  return Duration::ns(part > 0 ? part : 1);
}

}  // namespace redlock
