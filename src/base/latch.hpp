// SPDX-License-Identifier: MIT
//
// Latch: a value that one thread writes and any thread reads, without a lock and without waiting for the writer.
//
// A latch has two copies and a sequence number. The writer makes the sequence odd, which sends readers to copy 1, and
// writes copy 0. Then the writer makes the sequence even, which sends readers to copy 0, and writes copy 1. One copy is
// whole at every instant, so a preempted writer delays no reader. A reader repeats only when the writer went on
// meanwhile. Each word has 32 bits: ARMv6 has no wider atomic load, and libatomic would bring a lock.
#pragma once
#include <stdint.h>
#include <string.h>

namespace redlock {

template <class Value>
class Latch {
 public:
  static_assert(__is_trivially_copyable(Value) && sizeof(Value) % sizeof(uint32_t) == 0, "a Value is copied by words");

  // Only one thread may write.
  void write(const Value& value) {
    uint32_t words[words_];
    memcpy(words, &value, sizeof(value));
    const uint32_t sequence = __atomic_load_n(&sequence_, __ATOMIC_RELAXED);
    __atomic_store_n(&sequence_, sequence + 1, __ATOMIC_RELEASE);
    fill(copy_[0], words);
    __atomic_store_n(&sequence_, sequence + 2, __ATOMIC_RELEASE);
    fill(copy_[1], words);
  }

  // Any thread may read. The caller's later reads are not moved ahead of this read.
  Value read() const {
    uint32_t words[words_];
    uint32_t sequence = __atomic_load_n(&sequence_, __ATOMIC_ACQUIRE);
    for (;;) {
      const uint32_t* copy = copy_[sequence & 1];
      for (unsigned i = 0; i < words_; ++i) words[i] = __atomic_load_n(&copy[i], __ATOMIC_RELAXED);
      __atomic_thread_fence(__ATOMIC_ACQUIRE);
      const uint32_t again = __atomic_load_n(&sequence_, __ATOMIC_ACQUIRE);
      if (again == sequence) break;
      sequence = again;
    }
    Value value;
    memcpy(&value, words, sizeof(value));
    return value;
  }

 private:
  static constexpr unsigned words_ = sizeof(Value) / sizeof(uint32_t);

  // The fence pairs with the fence in read(): a reader that sees one of these words also sees the new sequence number.
  static void fill(uint32_t* copy, const uint32_t* words) {
    __atomic_thread_fence(__ATOMIC_RELEASE);
#pragma GCC unroll 4
    for (unsigned i = 0; i < words_; ++i) __atomic_store_n(&copy[i], words[i], __ATOMIC_RELAXED);
  }

  uint32_t sequence_ = 0;
  uint32_t copy_[2][words_] = {};
};

}  // namespace redlock
