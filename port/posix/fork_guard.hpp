// SPDX-License-Identifier: MIT
//
// Fork guard: lets an object find out that it lives in a forked child. The object keeps the generation in which it was
// created; a child has another generation.
//
// The generation stands on a page of its own that the kernel wipes in a child (MADV_WIPEONFORK, Linux 4.14), however
// the child was made: by fork(), by _Fork(), by a bare clone. Reading the generation is a load, while getpid() is a
// system call. On an older kernel the generation stands in ordinary memory, and a handler of pthread_atfork() changes
// it, so only fork() is noticed. Children that share the memory of the parent (vfork, CLONE_VM) are never noticed; such
// a child may do next to nothing before exec anyway.
#pragma once
#include <stdint.h>

namespace redlock {

namespace fork_guard {
extern uint32_t* place;  // of the generation. 0 stands there before the first one, and on a wiped page

// Counts threads that a child does not inherit, behind the generation. enter(): false: there are `most` already. Only
// behind a call of fork_generation().
bool enter(uint32_t most);
void leave();
}  // namespace fork_guard

// Any thread. 0: the system has no memory for the fork handler; create nothing that relies on it.
uint32_t fork_generation();

// Any thread: is this another process than the one of this generation?
inline bool forked_since(uint32_t generation) {
  const uint32_t* const place = __atomic_load_n(&fork_guard::place, __ATOMIC_RELAXED);
  return __atomic_load_n(place, __ATOMIC_RELAXED) != generation;
}

}  // namespace redlock
