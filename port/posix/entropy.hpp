// SPDX-License-Identifier: MIT
//
// Random bytes from the kernel's generator, never weaker ones and never by waiting.
#pragma once
#include <stddef.h>

namespace redlock {

// Any thread. How many of the n bytes were filled, from the front. Fewer than n: the kernel is not seeded yet (early
// boot); ask again later. The bytes behind are left as they were.
size_t fill_random(void* out, size_t n);

}  // namespace redlock
