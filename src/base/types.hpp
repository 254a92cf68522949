// SPDX-License-Identifier: MIT
//
// The few types that all rooms share. The error numbers come from the public header, which includes nothing of ours.
#pragma once
#include <redlock/redlock.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// An assert that fails says where and what, and traps. A release has none of it.
#if defined(REDLOCK_ASSERTS)
#include <unistd.h>

namespace redlock {
[[noreturn, gnu::cold, gnu::noinline]] inline void fail_assert(const char* what) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, what, strlen(what));
  __builtin_trap();
}
}  // namespace redlock

#define REDLOCK_WORDS(text) #text
#define REDLOCK_WORDS_OF(text) REDLOCK_WORDS(text)
#define REDLOCK_ASSERT(condition) \
  ((condition) ? (void)0 : ::redlock::fail_assert(__FILE__ ":" REDLOCK_WORDS_OF(__LINE__) ": " #condition "\n"))
#else
#define REDLOCK_ASSERT(condition) ((void)sizeof(condition))
#endif

// Where small code is asked for, a function marked APART_FOR_SIZE stands apart: GCC takes 64-bit arithmetic of 32-bit
// ARM for smaller than a call, which it is not. Where speed is asked for, a function marked IN_LINE_FOR_SPEED stands in
// line, and one marked APART_FOR_SPEED, which is rarely called, does not fill its callers.
#if defined(__OPTIMIZE_SIZE__)
#define REDLOCK_APART_FOR_SIZE [[gnu::noinline]]
#define REDLOCK_IN_LINE_FOR_SPEED
#define REDLOCK_APART_FOR_SPEED inline
namespace redlock { constexpr bool for_speed = false; }
#else
#define REDLOCK_APART_FOR_SIZE
#define REDLOCK_IN_LINE_FOR_SPEED [[gnu::always_inline]]
#define REDLOCK_APART_FOR_SPEED [[gnu::noinline]]
namespace redlock { constexpr bool for_speed = true; }
#endif

namespace redlock {

using MasterIndex = unsigned;

// What one master's answer means for the open round.
enum class Vote : uint8_t { granted, refused, failed };

// The operations on one claim at a master. A fenced acquire also asks for a token.
enum class Op : uint8_t { acquire, extend, release, acquire_fenced, token };

constexpr uint64_t token_max = INT64_MAX;

// What one master answered about the fencing token of a resource (lock/fence).
struct Counter {
  enum class State : uint8_t {
    none,   // the answer says nothing about the token
    ack,    // the master has stored the proposal
    known,  // `value` is the last token that the master acknowledged
    hint,   // the master may have lost its counter, or never had one; `value` is what is left
  };
  State state = State::none;
  uint64_t value = 0;
  uint64_t server_ms = 0;  // the master's wall clock; 0: unknown
};

// Bytes is a run of bytes that someone else owns. It is aligned like a word of 64 bits, because GCC then keeps it in
// two registers of 32-bit ARM; it would pass it in memory otherwise, which costs 2 K of code.
struct alignas(uint64_t) Bytes {
  const char* data = nullptr;
  size_t size = 0;

  constexpr Bytes() = default;
  constexpr Bytes(const char* d, size_t n) : data(d), size(n) {}
  template <size_t N>
  constexpr Bytes(const char (&literal)[N]) : data(literal), size(N - 1) {}
};

// A writable buffer owned by someone else, aligned for the same reason.
struct alignas(uint64_t) Space {
  char* data;
  size_t size;
};

// A block of memory that is cut into parts: how much of it a part takes, so that any type may stand behind the part.
constexpr size_t alignment = alignof(max_align_t);
constexpr size_t aligned(size_t size) { return (size + alignment - 1) & ~(alignment - 1); }

bool operator==(Bytes a, Bytes b);
inline bool operator!=(Bytes a, Bytes b) { return !(a == b); }

// Zeroes what a call fills: the fields of a struct behind its first field, size, as far as size reaches. False: the
// struct is null, or its size is below `least`.
bool clear_output(void* out, size_t whole, size_t least);

// An error of redlock.h in a table: its number without the sign. Braces take no number that is cut.
using ErrorByte = uint8_t;
static_assert(-REDLOCK_E_LAST_ <= UINT8_MAX, "the header promises numbers down to this one");

// The n-th text, from 0, of texts that stand one behind the other, each with its NUL: the loader would have to relocate
// a table of pointers.
const char* nth_text(const char* texts, unsigned n);

}  // namespace redlock
