// SPDX-License-Identifier: MIT
//
// The few words that all rooms share. Error numbers are those of the public header, which has no dependency.
#pragma once
#include <redlock/redlock.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(REDLOCK_ASSERTS)
#define REDLOCK_ASSERT(condition) ((condition) ? (void)0 : __builtin_trap())
#else
#define REDLOCK_ASSERT(condition) ((void)sizeof(condition))
#endif

namespace redlock {

using MasterIndex = unsigned;
using MasterMask = uint16_t;  // one bit per master
static_assert(REDLOCK_MASTERS_MAX <= 15, "a vote is a bit of MasterMask, and count() counts to 15");

constexpr MasterMask bit(MasterIndex m) { return static_cast<MasterMask>(1u << m); }
constexpr bool in(MasterMask mask, MasterIndex m) { return mask & bit(m); }
constexpr MasterMask all_masters(unsigned n) { return static_cast<MasterMask>((1u << n) - 1u); }
// In pairs and fours: without an instruction for it, as on ARM, __builtin_popcount is a call into the compiler's
// library.
constexpr unsigned count(MasterMask mask) {
  if (mask == 0) return 0;  // most masks are
  const unsigned pairs = mask - (mask >> 1 & 0x5555u);
  const unsigned fours = (pairs & 0x3333u) + (pairs >> 2 & 0x3333u);
  return fours * 0x1111u >> 12 & 0xFu;  // the sum of all four, which is 15 at most
}

// for (MasterIndex m : each(mask)): the masters of the mask, in order.
struct each {
  struct Iterator {
    unsigned rest;
    constexpr MasterIndex operator*() const { return static_cast<MasterIndex>(__builtin_ctz(rest)); }
    constexpr Iterator& operator++() { return rest &= rest - 1, *this; }
    friend constexpr bool operator!=(Iterator a, Iterator b) { return a.rest != b.rest; }
  };
  constexpr explicit each(unsigned masters) : mask(masters) {}
  constexpr Iterator begin() const { return {mask}; }
  constexpr Iterator end() const { return {0}; }
  unsigned mask;
};

// What one master's answer means for the open round.
enum class Vote : uint8_t { granted, refused, failed };

// What is asked of a master about one claim. A fenced acquire asks for a token as well.
enum class Op : uint8_t { acquire, extend, release, acquire_fenced, token };

constexpr uint64_t token_max = INT64_MAX;

// What one master knows of a resource's fencing token (lock/fence).
struct Counter {
  enum class State : uint8_t {
    none,   // said nothing about it
    ack,    // has stored the proposal
    known,  // this is the last token that it acknowledged
    hint,   // it has forgotten, or was never told: this is what is left
  };
  State state = State::none;
  uint64_t value = 0;
  uint64_t server_ms = 0;  // its wall clock; 0: not told
};

// A run of bytes that belongs to somebody else.
struct Bytes {
  const char* data = nullptr;
  size_t size = 0;

  constexpr Bytes() = default;
  constexpr Bytes(const char* d, size_t n) : data(d), size(n) {}
  template <size_t N>
  constexpr Bytes(const char (&literal)[N]) : data(literal), size(N - 1) {}
};

// Room for bytes, of somebody else's.
struct Space {
  char* data;
  size_t size;
};

inline bool operator==(Bytes a, Bytes b) {
  return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}
inline bool operator!=(Bytes a, Bytes b) { return !(a == b); }

}  // namespace redlock
