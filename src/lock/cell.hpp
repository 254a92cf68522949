// SPDX-License-Identifier: MIT
//
// Cell: the validity of one lock. The driver's thread writes the cell, and any thread reads it without locking or
// waiting.
//
// The mark. After a check has found the validity over, no later check may find the lock valid, even if an extend is
// being written to the cell at that moment. So each cell has a mark: "every generation up to this one is over". The
// mark only moves forward:
//
//   check                                    driver, at an extend
//   1. reads the clock, then the cell        1. publishes the new valid_until
//   2. reads the mark                        2. fence
//   3. over: sets the mark, fence, LOST      3. reads the mark; set: LOST
//
// A check that begins after a failed check has returned finds the mark (the mark is one word, and coherent) and fails.
// The failed check and the driver cannot both miss each other, because the two fences are sequentially consistent and
// so have an order. If the check's fence is first, the driver's step 3 sees the mark. If the driver's fence is first,
// the lock is marked but published as valid. The driver finds this mark the next time it handles the lock (expired()).
// Until then every check finds the mark, since a check reads the mark after the cell. A check that read the mark first,
// and was then paused, could report a lock as held after another check had failed.
//
// The clock is read before the cell. In the other order a check that was paused between the two would compare a new
// time with an old validity, and would end a lock that has been extended meanwhile.
#pragma once
#include <stdint.h>

#include "base/latch.hpp"
#include "base/time.hpp"

namespace redlock {

class ValidityCell {
 public:
  struct Snapshot {
    uint64_t generation;  // 0: the slot is free
    Instant valid_until;  // not_yet(): the acquire is not decided
  };

  static constexpr Instant not_yet() { return Instant::from_ns(INT64_MIN); }

  // Driver: a new acquire takes this cell, and all earlier ones are over. Generations grow from 1, in steps below 2^31.
  void begin(uint64_t generation) {
    __atomic_store_n(&over_, tag(generation) - 1, __ATOMIC_RELAXED);
    latch_.write({generation, not_yet()});
  }

  // Driver: called before the first publish() of a generation. 0: no token.
  void set_token(uint64_t token) {
    __atomic_store_n(&token_[0], static_cast<uint32_t>(token), __ATOMIC_RELAXED);
    __atomic_store_n(&token_[1], static_cast<uint32_t>(token >> 32), __ATOMIC_RELAXED);
  }

  // Any thread: the token of this generation. 0: the lock has no token, is not held, or the handle is stale. The token
  // does not change between the first publish() and the next begin(). So the token read belongs to this generation if
  // the generation is the same before and after.
  uint64_t token(uint64_t generation) const {
    const Snapshot before = read();
    if (before.generation != generation || before.valid_until == not_yet()) return 0;
    const uint32_t low = __atomic_load_n(&token_[0], __ATOMIC_RELAXED);
    const uint32_t high = __atomic_load_n(&token_[1], __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return read().generation == generation ? uint64_t{high} << 32 | low : 0;
  }

  // Driver: the lock is valid until then. False: a check has already found the lock expired, so the lock is LOST.
  [[nodiscard]] bool publish(uint64_t generation, Instant valid_until) {
    latch_.write({generation, valid_until});
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return !expired(generation);
  }

  // Driver: the handle becomes stale. The mark stays, for checks that have already read the cell.
  void retire(uint64_t generation) {
    mark_expired(generation);
    latch_.write({0, not_yet()});
  }

  Snapshot read() const { return latch_.read(); }

  // Any thread. Call this after read().
  bool expired(uint64_t generation) const {
    return !before(__atomic_load_n(&over_, __ATOMIC_RELAXED), tag(generation));
  }

  // Any thread: the driver when it ends a lock, and a check that found the lock over. A late thread with an older
  // generation must not move the mark back. const, because redlock_check() takes a const client, and because what is
  // published does not change.
  void mark_expired(uint64_t generation) const {
    uint32_t over = __atomic_load_n(&over_, __ATOMIC_RELAXED);
    // Repeats only if another thread came between the two lines, which no test can cause: GCOVR_EXCL_BR_START
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

// Is this generation held for `need` from now on? clock_agrees and now come from Clock::check(), called before. A clock
// that jumped ends a held lock as expiry does. An acquire under way is not ended; the driver begins its round anew.
inline Verdict judge(const ValidityCell& cell, uint64_t generation, bool clock_agrees, const Instant& now,
                     Duration need) {
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
