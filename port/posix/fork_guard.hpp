// SPDX-License-Identifier: MIT
//
// Fork guard: lets an object find out that it lives in a forked child. It keeps the generation it was created in; in
// the child the generation is another. Not noticed: children made without fork()'s handlers (vfork, _Fork, a bare clone
// system call), which may do next to nothing before exec anyway.
#pragma once
#include <stdint.h>

namespace redlock {

namespace fork_guard {
extern uint32_t generation;  // 0: the handler is not installed yet
uint32_t install();
}  // namespace fork_guard

// Any thread. 0: the system has no memory for the fork handler; create nothing that relies on it.
inline uint32_t fork_generation() {
  const uint32_t generation = __atomic_load_n(&fork_guard::generation, __ATOMIC_RELAXED);
  return generation != 0 ? generation : fork_guard::install();
}

}  // namespace redlock
