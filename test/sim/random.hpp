// SPDX-License-Identifier: MIT
//
// Stream: random numbers for one purpose. Every purpose, and every client and master within it, has a stream of its
// own, so that one more draw in one of them leaves the history of all others as it was. Two draws never stand among the
// arguments of one call: compilers differ in which comes first, and a seed must tell the same story everywhere.
#pragma once
#include <cstddef>
#include <cstdint>

namespace redlock::sim {

enum class Purpose : uint64_t {
  plan = 1, network, clock, faults, users, entropy, shell, guard, saves, several, moves, worlds, waits, pasts
};

class Stream {
 public:
  Stream(uint64_t seed, Purpose purpose, uint64_t index = 0)
      : state_(mix(mix(seed * 0x9E3779B97F4A7C15u + static_cast<uint64_t>(purpose)) + index * 0xD1342543DE82EF95u)) {}

  uint64_t next() { return mix(state_ += 0x9E3779B97F4A7C15u); }  // splitmix64
  uint64_t below(uint64_t n) { return high_half(next(), n); }
  size_t index_below(size_t n) { return static_cast<size_t>(below(n)); }
  int64_t between(int64_t low, int64_t high) {  // both inclusive
    return low + static_cast<int64_t>(below(static_cast<uint64_t>(high - low) + 1));
  }
  bool chance(unsigned permille) { return below(1000) < permille; }
  bool coin() { return (next() >> 63) != 0; }
  template <class T, size_t N>
  T pick(const T (&choices)[N]) {
    return choices[below(N)];
  }
  // Every doubling from low to high is equally likely: mostly small, sometimes very large.
  int64_t spread(int64_t low, int64_t high) {
    unsigned doublings = 0;
    while ((low << (doublings + 1)) < high) ++doublings;
    const int64_t from = low << below(doublings + 1);
    return between(from, 2 * from < high ? 2 * from : high);
  }

 private:
  static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  // The upper 64 bits of a product of 128, which 32-bit compilers have no type for.
  static uint64_t high_half(uint64_t a, uint64_t b) {
    constexpr uint64_t low = 0xFFFFFFFFu;
    const uint64_t middle = (a >> 32) * (b & low) + (((a & low) * (b & low)) >> 32);
    const uint64_t other = (a & low) * (b >> 32) + (middle & low);
    return (a >> 32) * (b >> 32) + (middle >> 32) + (other >> 32);
  }
  uint64_t state_;
};

}  // namespace redlock::sim
