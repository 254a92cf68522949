// SPDX-License-Identifier: MIT
//
// Cell: the validity of one lock, written by the driver's thread, read by any thread without a lock or a wait.
//
// The mark. A check that finds the validity over must never be followed by one that finds it going on, although an
// extension may be on its way to the cell at that moment. So each cell has a mark, "every generation up to this one is
// over", that only moves forward:
//
//   check                                    driver, at an extension
//   1. reads the clock, then the cell        1. publishes the new valid_until
//   2. reads the mark                        2. fence
//   3. over: sets the mark, fence, LOST      3. reads the mark; set: LOST
//
// A check that begins after the failed one returned finds the mark (one word, coherent) and fails. And of the failed
// check and the driver at least one notices the other: the two fences are sequentially consistent, hence ordered. If
// the check's is first, the driver's step 3 sees the mark. If the driver's is first, whatever reads the cell after the
// check's fence sees the extension: that lock is marked and still published as valid, and the driver finds the mark
// when it looks at it next, which it does (expired()) whenever it handles the lock. The mark is read after the cell,
// never before: a check that was paused between the two must not pass on what it saw before another one failed.
//
// The clock is read before the cell. The other way round, a check that was paused in between would compare a fresh time
// with a validity that has been extended since, and would end a lock that is held.
#pragma once
#include <stdint.h>

#include "base/latch.hpp"
#include "base/time.hpp"

namespace redlock {

class ValidityCell {
 public:
  struct Snapshot {
    uint64_t generation;  // 0: no acquire
    Instant valid_until;  // not_yet(): the acquire has not been decided
  };

  static constexpr Instant not_yet() { return Instant::from_ns(INT64_MIN); }

  // Driver: a new acquire lives here; all before it are over. Generations count up from 1, in steps below 2^31.
  void begin(uint64_t generation) {
    __atomic_store_n(&over_, tag(generation) - 1, __ATOMIC_RELAXED);
    latch_.write({generation, not_yet()});
  }

  // Driver: before the first publish() of a generation; 0: none.
  void set_token(uint64_t token) {
    __atomic_store_n(&token_[0], static_cast<uint32_t>(token), __ATOMIC_RELAXED);
    __atomic_store_n(&token_[1], static_cast<uint32_t>(token >> 32), __ATOMIC_RELAXED);
  }

  // Any thread: the token of this generation; 0: it has none, or is not held, or its handle is stale. The token stays
  // as it is from the first publish() to the next begin(), so a generation that is the same before and after vouches
  // for it.
  uint64_t token(uint64_t generation) const {
    const Snapshot before = read();
    if (before.generation != generation || before.valid_until == not_yet()) return 0;
    const uint32_t low = __atomic_load_n(&token_[0], __ATOMIC_RELAXED);
    const uint32_t high = __atomic_load_n(&token_[1], __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return read().generation == generation ? uint64_t{high} << 32 | low : 0;
  }

  // Driver: the lock is valid until then. False: a check has failed for expiry before, the lock is LOST.
  [[nodiscard]] bool publish(uint64_t generation, Instant valid_until) {
    latch_.write({generation, valid_until});
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return !expired(generation);
  }

  // Driver: the handle is stale. The mark stays, for checks that have read the cell already.
  void retire(uint64_t generation) {
    mark_expired(generation);
    latch_.write({0, not_yet()});
  }

  Snapshot read() const { return latch_.read(); }

  // Any thread, after read().
  bool expired(uint64_t generation) const {
    return !before(__atomic_load_n(&over_, __ATOMIC_RELAXED), tag(generation));
  }

  // Any thread: the driver to end a lock at once, a check that found it over. A thread that comes late with an older
  // generation must not take back the mark of a newer one. Const, because redlock_check() is: what is published stays.
  void mark_expired(uint64_t generation) const {
    uint32_t over = __atomic_load_n(&over_, __ATOMIC_RELAXED);
    // Again only when another thread was between the two lines, which no test can bring about: GCOVR_EXCL_BR_START
    while (before(over, tag(generation)) &&
           !__atomic_compare_exchange_n(&over_, &over, tag(generation), true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    // GCOVR_EXCL_BR_STOP
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
  }

 private:
  static constexpr uint32_t tag(uint64_t generation) { return static_cast<uint32_t>(generation); }
  static constexpr bool before(uint32_t a, uint32_t b) { return static_cast<int32_t>(b - a) > 0; }

  Latch<Snapshot> latch_;
  uint32_t token_[2] = {};
  mutable uint32_t over_ = 0;
};

enum class Held : uint8_t { held, too_little, not_held, lost, stale };

struct Verdict {
  Held held;
  Instant valid_until;  // when held or too_little
};

// Is this generation held for `need` from now? clock_agrees and now: from Clock::check(), called before. A clock that
// jumped ends a lock just as expiry does, but not an acquire under way: that one begins anew.
inline Verdict judge(const ValidityCell& cell, uint64_t generation, bool clock_agrees, Instant now, Duration need) {
  const ValidityCell::Snapshot seen = cell.read();
  if (seen.generation != generation || generation == 0) return {Held::stale, now};
  if (cell.expired(generation)) return {Held::lost, now};
  if (seen.valid_until == ValidityCell::not_yet()) return {Held::not_held, now};
  if (!clock_agrees || seen.valid_until <= now) {
    cell.mark_expired(generation);
    return {Held::lost, now};
  }
  return {now + need <= seen.valid_until ? Held::held : Held::too_little, seen.valid_until};
}

}  // namespace redlock
