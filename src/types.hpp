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
static_assert(REDLOCK_MASTERS_MAX <= 16, "a vote is a bit of MasterMask");

constexpr MasterMask bit(MasterIndex m) { return static_cast<MasterMask>(1u << m); }
constexpr MasterMask all_masters(unsigned n) { return static_cast<MasterMask>((1u << n) - 1u); }
constexpr unsigned count(MasterMask mask) { return static_cast<unsigned>(__builtin_popcount(mask)); }

// What one master's answer means for the open round.
enum class Vote : uint8_t { granted, refused, failed };

// What is asked of a master about one claim.
enum class Op : uint8_t { acquire, extend, release };

// A run of bytes that belongs to somebody else.
struct Bytes {
  const char* data = nullptr;
  size_t size = 0;

  constexpr Bytes() = default;
  constexpr Bytes(const char* d, size_t n) : data(d), size(n) {}
  template <size_t N>
  constexpr Bytes(const char (&literal)[N]) : data(literal), size(N - 1) {}
};

inline bool operator==(Bytes a, Bytes b) { return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0); }
inline bool operator!=(Bytes a, Bytes b) { return !(a == b); }

}  // namespace redlock
