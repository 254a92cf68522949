/* SPDX-License-Identifier: MIT
 *
 * What the parts of cycle_bench share. cycle_bench.c makes the client and counts cycles; the others are the ways to run
 * one: cycle_loop.c on a libuv loop, also several processes and one resource, cycle_polled.c behind a descriptor. */
#ifndef REDLOCK_BENCH_CYCLE_BENCH_H
#define REDLOCK_BENCH_CYCLE_BENCH_H
#include "cycle.h"

#include <redlock/redlock.h>

/* A way to run a client whose calls return at once. */
typedef struct runner {
  int (*open)(redlock_t **out, const redlock_config_t *cfg);
  void (*until)(int (*done)(void)); /* runs; done() is asked every millisecond */
  void (*limit)(void (*late)(void)); /* late() when --max-seconds are over; NULL: no more */
  void (*look)(void (*each)(void));  /* each() after every turn */
  void (*run)(void);                 /* until stop() */
  void (*stop)(void);
  void (*end)(void); /* after redlock_close_async(): until CLOSED */
} runner;

extern const runner on_loop, polled;

extern cycle_options opts;
extern cycle_record record;
extern redlock_t *rl;
extern int closed; /* CLOSED was delivered */

redlock_resource_t unique_resource(void);
void acquire(redlock_resource_t resource, int wait_ms, redlock_event_fn callback, void *user, redlock_lock_t *lock);
double answered(void); /* requests that the masters have answered */
uint32_t patience_ms(void); /* with which it waits for masters, when it begins and when it ends */

void contend(void); /* on_loop only */

#endif
