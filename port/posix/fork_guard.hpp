// SPDX-License-Identifier: MIT
//
// Fork guard: lets an object find out that it lives in a forked child. It keeps the generation it was created in; in
// the child the generation is another. Not noticed: children made without fork()'s handlers (vfork, _Fork, a bare clone
// system call), which may do next to nothing before exec anyway.
#pragma once
#include <stdint.h>

namespace redlock {

// Any thread. 0: the system has no memory for the fork handler; create nothing that relies on it.
uint32_t fork_generation();

}  // namespace redlock
