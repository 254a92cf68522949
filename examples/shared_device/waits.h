// SPDX-License-Identifier: MIT
//
// Waits: how long each job had to wait, and the percentiles of that.
#ifndef EXAMPLES_SHARED_DEVICE_WAITS_H
#define EXAMPLES_SHARED_DEVICE_WAITS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

// Zeroed, it is empty.
struct waits {
  uint32_t *us;  // microseconds
  size_t count, room;
};

// Without memory the sample is left out.
static inline void waits_add(struct waits *waits, uint64_t ns) {
  if (waits->count == waits->room) {
    const size_t room = waits->room == 0 ? 256 : 2 * waits->room;
    uint32_t *us = (uint32_t *)realloc(waits->us, room * sizeof *us);
    if (us == NULL) return;
    waits->us = us;
    waits->room = room;
  }
  waits->us[waits->count++] = ns / 1000 < UINT32_MAX ? (uint32_t)(ns / 1000) : UINT32_MAX;
}

static inline int waits_compare(const void *a, const void *b) {
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

// By nearest rank, in milliseconds; sorts. 0 when nothing was added.
static inline double waits_percentile(struct waits *waits, unsigned percent) {
  if (waits->count == 0) return 0;
  qsort(waits->us, waits->count, sizeof *waits->us, waits_compare);
  const size_t rank = (waits->count * percent + 99) / 100;
  return waits->us[rank > 0 ? rank - 1 : 0] / 1000.0;
}

// "wait_p50_ms":…,"wait_p99_ms":…,"waits_ms":[…]
static inline void waits_print_json(struct waits *waits) {
  const double p50 = waits_percentile(waits, 50), p99 = waits_percentile(waits, 99);
  printf("\"wait_p50_ms\":%.1f,\"wait_p99_ms\":%.1f,\"waits_ms\":[", p50, p99);
  for (size_t i = 0; i < waits->count; ++i) printf("%s%.1f", i > 0 ? "," : "", waits->us[i] / 1000.0);
  putchar(']');
}

#endif  // EXAMPLES_SHARED_DEVICE_WAITS_H
