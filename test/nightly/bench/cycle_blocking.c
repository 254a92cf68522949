/* SPDX-License-Identifier: MIT
 *
 * A client with a thread of its own, and calls that block: one lock at a time. */
#include "cycle_bench.h"

static void run_blocking(long cycles) {
  const int64_t until = cycle_now() + (int64_t)(opts.max_seconds * 1e9);
  for (long i = 0; i < cycles && cycle_now() < until; i++) {
    redlock_acquire_opts_t o = REDLOCK_ACQUIRE_OPTS_INIT;
    const redlock_resource_t resource = unique_resource();
    redlock_lock_t lock;
    o.ttl_ms = opts.ttl_ms;
    o.wait_ms = REDLOCK_TRY_ONCE;
    const int64_t began = cycle_now();
    if (redlock_acquire(rl, &resource, 1, &o, &lock) != 0) {
      record.failed++;
      continue;
    }
    cycle_acquired(&record, began);
    redlock_release(rl, lock);
    cycle_ended(&record, began);
  }
}

void blocking(void) {
  redlock_status_t status = {.size = sizeof status};
  const int64_t until = cycle_now() + (int64_t)patience_ms() * 1000000;
  while (redlock_status(rl, &status) == 0 && status.masters_up != status.masters && cycle_now() < until) usleep(1000);
  run_blocking(opts.warmup);
  cycle_begin(&record);
  run_blocking(opts.count);
  cycle_end(&record);
}
