// SPDX-License-Identifier: MIT
//
// Random bytes from the kernel's generator. Nothing weaker takes their place, and no call waits for them.
#pragma once
#include <stddef.h>

namespace redlock {

// Any thread. Returns how many of the n bytes it filled, from the front. Fewer than n: the kernel is not seeded yet
// (early boot), ask again later. The other bytes stay as they were.
size_t fill_random(void* out, size_t n);

}  // namespace redlock
