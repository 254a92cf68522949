// SPDX-License-Identifier: MIT
//
// Masters: a set of masters, with one bit for each. Passing and comparing sets costs no more than it does for integers.
#pragma once
#include "base/types.hpp"

namespace redlock {

class Masters {
 public:
  static_assert(REDLOCK_MASTERS_MAX <= 15, "a master is one of 16 bits, and count() counts to 15");

  class Iterator {
   public:
    constexpr explicit Iterator(unsigned rest) : rest_(rest) {}
    constexpr MasterIndex operator*() const { return static_cast<MasterIndex>(__builtin_ctz(rest_)); }
    constexpr Iterator& operator++() {
      rest_ &= rest_ - 1;
      return *this;
    }
    friend constexpr bool operator!=(Iterator a, Iterator b) { return a.rest_ != b.rest_; }

   private:
    unsigned rest_;
  };

  constexpr Masters() = default;
  // The first n masters: all masters of a site that has n.
  static constexpr Masters all(unsigned n) { return Masters((1u << n) - 1u); }
  template <class... Index>
  static constexpr Masters of(Index... m) {
    return Masters((0u | ... | (1u << m)));
  }

  constexpr void add(MasterIndex m) { bits_ = static_cast<uint16_t>(bits_ | 1u << m); }
  constexpr void remove(MasterIndex m) { bits_ = static_cast<uint16_t>(bits_ & ~(1u << m)); }
  constexpr bool has(MasterIndex m) const { return (bits_ & 1u << m) != 0; }
  constexpr bool empty() const { return bits_ == 0; }

  // Counts in pairs and fours. Where the processor has no instruction for this (ARM), __builtin_popcount would be a
  // call into the compiler's library.
  constexpr unsigned count() const {
    if (bits_ == 0) return 0;  // most sets are empty
    const unsigned pairs = bits_ - (bits_ >> 1 & 0x5555u);
    const unsigned fours = (pairs & 0x3333u) + (pairs >> 2 & 0x3333u);
    return fours * 0x1111u >> 12 & 0xFu;  // the sum of all four, which is 15 at most
  }

  // for (MasterIndex m : masters), in ascending order.
  constexpr Iterator begin() const { return Iterator(bits_); }
  constexpr Iterator end() const { return Iterator(0); }

  constexpr Masters& operator|=(Masters other) { return *this = *this | other; }
  constexpr Masters& operator&=(Masters other) { return *this = *this & other; }
  constexpr Masters& operator-=(Masters other) { return *this = *this - other; }
  friend constexpr Masters operator|(Masters a, Masters b) { return Masters(unsigned{a.bits_} | b.bits_); }
  friend constexpr Masters operator&(Masters a, Masters b) { return Masters(unsigned{a.bits_} & b.bits_); }
  friend constexpr Masters operator-(Masters a, Masters b) { return Masters(a.bits_ & ~unsigned{b.bits_}); }
  friend constexpr bool operator==(Masters a, Masters b) { return a.bits_ == b.bits_; }
  friend constexpr bool operator!=(Masters a, Masters b) { return a.bits_ != b.bits_; }

 private:
  constexpr explicit Masters(unsigned bits) : bits_(static_cast<uint16_t>(bits)) {}

  uint16_t bits_ = 0;
};

}  // namespace redlock
