/* SPDX-License-Identifier: MIT
 *
 * A client on a libuv loop. */
#include "cycle_bench.h"

#include <uv.h>

static uv_loop_t loop;
static uv_timer_t every_ms, late_timer;
static uv_check_t check;
static int (*is_done)(void);
static void (*when_late)(void), (*each_turn)(void);

struct uv_loop_s *loop_of_on_loop(void) { return &loop; }

static int open_client(redlock_t **out, const redlock_config_t *cfg) {
  if (loop.data == NULL) {
    if (uv_loop_init(&loop) != 0 || uv_timer_init(&loop, &every_ms) != 0 || uv_timer_init(&loop, &late_timer) != 0 ||
        uv_check_init(&loop, &check) != 0) {
      return REDLOCK_E_SYSTEM;
    }
    loop.data = &loop;
  }
  return redlock_create_on_loop(out, cfg, &loop);
}

static void on_ms(uv_timer_t *timer) {
  if (!is_done()) return;
  uv_timer_stop(timer);
  uv_stop(&loop);
}

static void until(int (*done)(void)) {
  is_done = done;
  uv_timer_start(&every_ms, on_ms, 1, 1);
  uv_run(&loop, UV_RUN_DEFAULT);
}

static void on_late(uv_timer_t *timer) {
  (void)timer;
  when_late();
}

/* By a timer, so that no cycle pays for it. */
static void limit(void (*late)(void)) {
  when_late = late;
  if (late == NULL) {
    uv_timer_stop(&late_timer);
  } else {
    uv_timer_start(&late_timer, on_late, (uint64_t)(opts.max_seconds * 1e3), 0);
  }
}

static void on_check(uv_check_t *handle) {
  (void)handle;
  each_turn();
}

static void look(void (*each)(void)) {
  each_turn = each;
  uv_check_start(&check, on_check);
}

static void run_loop(void) { uv_run(&loop, UV_RUN_DEFAULT); }

static void stop(void) { uv_stop(&loop); }

static void end(void) {
  while (!closed) uv_run(&loop, UV_RUN_ONCE);
}

const runner on_loop = {open_client, until, limit, look, run_loop, stop, end};
