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

/* --mode contend: hold one resource, pause, ask for it again, while other processes do the same. */

static uv_timer_t pause_timer;
static int64_t began, got, releasing;
static uint32_t rounds;
static long asked, over;
static redlock_lock_t held;
static FILE *logfile;
static uv_poll_t gate;

static void ask(void);
static uint64_t whole_ms(long us) { return (uint64_t)((us + 999) / 1000); }

static void on_held_long_enough(uv_timer_t *timer) {
  (void)timer;
  releasing = cycle_now();
  redlock_release_async(rl, held);
}

static void on_paused(uv_timer_t *timer) {
  (void)timer;
  ask();
}

static void on_acquired(const redlock_event_t *event) {
  got = cycle_now();
  rounds = event->rounds;
  record.attempts += (long)event->rounds;
  cycle_acquired(&record, began);
  uv_timer_start(&pause_timer, on_held_long_enough, whole_ms(opts.hold_us), 0);
}

static void on_released(void) {
  cycle_ended(&record, began);
  if (logfile == NULL) return;
  fprintf(logfile, "%ld %lld %lld %lld %lld %u\n", (long)getpid(), (long long)began, (long long)got,
          (long long)releasing, (long long)cycle_now(), rounds);
}

static void on_event(redlock_t *client, const redlock_event_t *event, void *user) {
  (void)client;
  (void)user;
  switch (event->type) {
    case REDLOCK_EV_ACQUIRED: on_acquired(event); return;
    case REDLOCK_EV_RELEASED: on_released(); break;
    case REDLOCK_EV_FAILED:
    case REDLOCK_EV_LOST: record.failed++; break;
    default: return;
  }
  if (++over == opts.count) {
    on_loop.stop();
  } else if (asked < opts.count) {
    uv_timer_start(&pause_timer, on_paused, whole_ms(opts.think_us), 0);
  }
}

static void ask(void) {
  asked++;
  began = cycle_now();
  acquire(redlock_resource(CYCLE_PREFIX ":contended"), REDLOCK_WAIT_FOREVER, on_event, NULL, &held);
}

static void on_too_late(void) {
  fprintf(stderr, "cycle_bench: out of time\n");
  exit(5);
}

static void on_go(uv_poll_t *go, int status, int events) {
  (void)status;
  (void)events;
  uv_poll_stop(go);
  ask();
}

/* Processes that are ready earlier must not have the lock for themselves. */
static void wait_at_gate(void) {
  int ready, go;
  if (sscanf(opts.gate, "%d,%d", &ready, &go) != 2 || write(ready, "+", 1) != 1 ||
      uv_poll_init(&loop, &gate, go) != 0 || uv_poll_start(&gate, UV_READABLE, on_go) != 0) {
    fprintf(stderr, "cycle_bench: --gate %s\n", opts.gate);
    exit(2);
  }
}

void contend(void) {
  logfile = opts.log != NULL ? fopen(opts.log, "w") : NULL;
  uv_timer_init(&loop, &pause_timer);
  on_loop.limit(on_too_late);
  const double before = answered();
  cycle_begin(&record);
  if (opts.gate != NULL) {
    wait_at_gate();
  } else {
    ask();
  }
  on_loop.run();
  cycle_end(&record);
  record.replies = answered() - before;
  if (logfile != NULL) fclose(logfile);
}
