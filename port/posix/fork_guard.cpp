// SPDX-License-Identifier: MIT
#include "port/posix/fork_guard.hpp"

#include <pthread.h>
#include <sys/mman.h>

namespace redlock {
namespace fork_guard {
namespace {

pthread_once_t once = PTHREAD_ONCE_INIT;
uint32_t in_memory[2];     // where no page is wiped: the generation, and the threads
uint32_t generations = 0;  // so far, in this process and its ancestors; 0: there is no handler

// Runs even where the page is wiped, because an emulator may only pretend to wipe it. The child has one thread so far,
// but TSan compares its write with those of the parent's look-ups.
void in_child() {
  *place = ++generations;
  __atomic_store_n(&place[1], 0, __ATOMIC_RELAXED);
}

void install() {
  if (pthread_atfork(nullptr, nullptr, in_child) != 0) return;
  generations = 1;
#ifdef MADV_WIPEONFORK
  // mmap and madvise both round up to a page. A page that cannot be wiped is never touched, and takes no memory.
  void* const page = mmap(nullptr, sizeof in_memory, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const bool wiped = page != MAP_FAILED && madvise(page, sizeof in_memory, MADV_WIPEONFORK) == 0;
  if (wiped) __atomic_store_n(&place, static_cast<uint32_t*>(page), __ATOMIC_RELAXED);
#endif
}

}  // namespace

uint32_t* place = in_memory;

bool enter(uint32_t most) {
  if (__atomic_add_fetch(&place[1], 1, __ATOMIC_RELAXED) <= most) return true;
  leave();
  return false;
}

void leave() { __atomic_sub_fetch(&place[1], 1, __ATOMIC_RELAXED); }

}  // namespace fork_guard

// Several threads of a child may call this at the same time; the first of them decides the generation.
uint32_t fork_generation() {
  using namespace fork_guard;
  pthread_once(&once, install);
  uint32_t generation = __atomic_load_n(place, __ATOMIC_RELAXED);
  if (generation != 0 || __atomic_load_n(&generations, __ATOMIC_RELAXED) == 0) return generation;
  const uint32_t next = __atomic_add_fetch(&generations, 1, __ATOMIC_RELAXED);
  const bool first = __atomic_compare_exchange_n(place, &generation, next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return first ? next : generation;
}

}  // namespace redlock
