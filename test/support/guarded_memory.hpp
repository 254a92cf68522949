// SPDX-License-Identifier: MIT
//
// Memory in which a byte too far is noticed.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace redlock::test {

// Memory whose last byte is followed by a page that traps.
class GuardedMemory {
 public:
  explicit GuardedMemory(size_t size) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    usable_ = (size + page - 1) / page * page;
    mapped_ = usable_ + page;
    void* const memory = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(static_cast<char*>(memory) + usable_, page, PROT_NONE) != 0) std::abort();
    memory_ = static_cast<char*>(memory);
  }
  ~GuardedMemory() { munmap(memory_, mapped_); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  // The last n bytes before the guard page.
  char* last(size_t n) { return memory_ + usable_ - n; }
  size_t size() const { return usable_; }

 private:
  char* memory_ = nullptr;
  size_t usable_ = 0;
  size_t mapped_ = 0;
};

// `size` bytes that end at a page that may not be touched, or up to 15 canary bytes before it, with canaries in front.
class Block {
 public:
  explicit Block(size_t size) : size_(size), memory_(front + size + 16) {
    base_ = memory_.last((size + 15) / 16 * 16);
    memset(base_ - front, canary, front);
    memset(base_, 0xA5, size);
    memset(base_ + size, canary, (16 - size % 16) % 16);
  }
  ~Block() {
    for (size_t i = 1; i <= front; ++i) check(base_ - i);
    for (size_t i = size_; i % 16 != 0; ++i) check(base_ + i);
  }
  void* base() { return base_; }

 private:
  static constexpr size_t front = 64;
  static constexpr char canary = 0x5A;
  static void check(const char* at) {
    if (*at != canary) std::abort();
  }
  size_t size_;
  GuardedMemory memory_;
  char* base_;
};

}  // namespace redlock::test
