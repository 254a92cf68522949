/* SPDX-License-Identifier: MIT
 *
 * The library as a user has it: the public C API. A cycle ends with RELEASED, which the library reports when the deletes
 * are handed to the kernel (--release sent). It does not tell when the masters have confirmed them: with --release
 * confirmed, for one lock at a time, the status is asked until no delete of any master is unanswered.
 *
 *   --api loop          redlock_create_on_loop, all calls from callbacks
 *   --api blocking      redlock_create, redlock_acquire and redlock_release; one lock at a time
 *   --api fenced        as loop, with fencing tokens; each lock in flight has one resource, so the client knows the counter
 *   --api fenced-first  as loop, with the first token of a new resource each time: nobody knows a counter
 *   --api unguarded     as loop, with "guard": "off"
 *
 * --mode connect: a cycle is a client that is created, has all masters vote, and is closed; its acquire lasts until they
 * vote. The masters are sealed by the first. */
#include "cycle.h"

#include <redlock/redlock.h>
#include <uv.h>

enum { LIMIT_MAX = 16384 }; /* of limits.debts and limits.in_flight */

/* One of the K cycles under way. */
typedef struct worker {
  int64_t began, got, releasing;
  uint32_t rounds;
  uv_timer_t pause;
  redlock_lock_t lock;
} worker;

static cycle_options opts;
static cycle_record record;
static uv_loop_t loop;
static redlock_t *rl;
static redlock_config_t *cfg;
static FILE *logfile;
static long begun, ended, wanted; /* cycles of this phase */
static unsigned name;             /* of the next resource */
static int64_t stop_at;
static uint32_t flags; /* of each acquire */
static worker *workers;
static int closed;

static void begin(worker *w);

/* The time that --max-seconds allows is looked at by a timer, so that no cycle pays for it. */
static void on_deadline(uv_timer_t *timer) {
  (void)timer;
  wanted = begun;
  if (ended == begun) uv_stop(&loop);
}

static uv_check_t confirming; /* --release confirmed: looks after each round of the loop */

/* ---- latency and throughput ----------------------------------------------------------------------------------- */

static void next(worker *w) {
  ended++;
  if (begun < wanted) {
    begin(w);
  } else if (ended == wanted) {
    uv_stop(&loop);
  }
}

static void on_event(redlock_t *client, const redlock_event_t *event, void *user) {
  worker *w = user;
  switch (event->type) {
    case REDLOCK_EV_ACQUIRED:
      cycle_acquired(&record, w->began);
      redlock_release_async(client, event->lock);
      break;
    case REDLOCK_EV_RELEASED:
      if (confirming.data != NULL) break;
      cycle_ended(&record, w->began);
      next(w);
      break;
    case REDLOCK_EV_FAILED:
    case REDLOCK_EV_LOST:
      record.failed++;
      next(w);
      break;
    default:
      break;
  }
}

static void on_check(uv_check_t *check) {
  redlock_status_t status = {.size = sizeof status};
  worker *w = check->data;
  if (ended == begun || redlock_status(rl, &status) != 0 || status.debts != 0) return;
  if (status.locks_held + status.locks_pending != 0) return;
  cycle_ended(&record, w->began);
  next(w);
}

static void acquire(worker *w, redlock_resource_t resource, redlock_event_fn callback, int wait_ms) {
  redlock_acquire_opts_t o = REDLOCK_ACQUIRE_OPTS_INIT;
  o.ttl_ms = opts.ttl_ms;
  o.wait_ms = wait_ms;
  o.flags = flags;
  o.retry_delay_ms = opts.retry_us > 0 ? (uint32_t)((opts.retry_us + 999) / 1000) : 0;
  o.callback = callback;
  o.user = w;
  const int err = redlock_acquire_async(rl, &resource, 1, &o, &w->lock);
  if (err != 0) {
    fprintf(stderr, "cycle_bench: acquire: %s\n", redlock_strerror(err));
    exit(4);
  }
}

/* The key is as long as in the other programs. The library keeps a copy of it. */
static redlock_resource_t unique_resource(void) {
  static char text[REDLOCK_RESOURCE_MAX + 1];
  static unsigned size;
  if (size == 0) size = (unsigned)snprintf(text, sizeof text, "%.*s:00000000", REDLOCK_RESOURCE_MAX - 9, opts.prefix);
  char *at = text + size;
  for (unsigned n = name++; n != 0; n >>= 6) *--at = (char)('0' + (n & 63));
  return (redlock_resource_t){text, size};
}

/* The same each time, for this one of those in flight. */
static redlock_resource_t own_resource(const worker *w) {
  static char text[REDLOCK_RESOURCE_MAX + 1];
  const int size = snprintf(text, sizeof text, "%.*s:%08u", REDLOCK_RESOURCE_MAX - 9, opts.prefix, (unsigned)(w - workers));
  return (redlock_resource_t){text, (uint32_t)size};
}

static void begin(worker *w) {
  begun++;
  w->began = cycle_now();
  acquire(w, cycle_is(opts.api, "fenced") ? own_resource(w) : unique_resource(), on_event, REDLOCK_WAIT_NONE);
}

/* What is counted is what happens in here: see count.sh. */
BENCH_APART static void run(long cycles) {
  begun = ended = 0;
  wanted = cycles;
  for (unsigned i = 0; i < opts.inflight && begun < wanted; i++) begin(&workers[i]);
  uv_run(&loop, UV_RUN_DEFAULT);
}

/* ---- blocking ------------------------------------------------------------------------------------------------- */

static void run_blocking(long cycles) {
  const int64_t until = cycle_now() + (int64_t)(opts.max_seconds * 1e9);
  for (long i = 0; i < cycles && cycle_now() < until; i++) {
    redlock_acquire_opts_t o = REDLOCK_ACQUIRE_OPTS_INIT;
    const redlock_resource_t resource = unique_resource();
    redlock_lock_t lock;
    o.ttl_ms = opts.ttl_ms;
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

static void blocking(void) {
  redlock_status_t status = {.size = sizeof status};
  const int64_t until = cycle_now() + 1000000000;
  while (redlock_status(rl, &status) == 0 && status.masters_up != status.masters && cycle_now() < until) usleep(1000);
  run_blocking(opts.warmup);
  cycle_begin(&record);
  run_blocking(opts.count);
  cycle_end(&record);
}

/* ---- contend: hold one resource, pause, ask for it again -------------------------------------------------------- */

static void contend(worker *w);
static uint64_t whole_ms(long us) { return (uint64_t)((us + 999) / 1000); }

static void on_held_long_enough(uv_timer_t *timer) {
  worker *w = timer->data;
  w->releasing = cycle_now();
  redlock_release_async(rl, w->lock);
}

static void on_paused(uv_timer_t *timer) { contend(timer->data); }

static void on_contend_event(redlock_t *client, const redlock_event_t *event, void *user) {
  worker *w = user;
  (void)client;
  switch (event->type) {
    case REDLOCK_EV_ACQUIRED:
      w->got = cycle_now();
      w->rounds = event->rounds;
      record.attempts += (long)event->rounds;
      cycle_acquired(&record, w->began);
      uv_timer_start(&w->pause, on_held_long_enough, whole_ms(opts.hold_us), 0);
      return;
    case REDLOCK_EV_RELEASED:
      cycle_ended(&record, w->began);
      if (logfile != NULL) {
        fprintf(logfile, "%ld %lld %lld %lld %lld %u\n", (long)getpid(), (long long)w->began, (long long)w->got,
                (long long)w->releasing, (long long)cycle_now(), w->rounds);
      }
      break;
    case REDLOCK_EV_FAILED:
    case REDLOCK_EV_LOST:
      record.failed++;
      break;
    default:
      return;
  }
  if (++ended == wanted) {
    uv_stop(&loop);
  } else if (begun < wanted) {
    uv_timer_start(&w->pause, on_paused, whole_ms(opts.think_us), 0);
  }
}

static void contend(worker *w) {
  redlock_resource_t resource = {opts.resource, (uint32_t)strlen(opts.resource)};
  begun++;
  w->began = cycle_now();
  acquire(w, resource, on_contend_event, REDLOCK_WAIT_FOREVER);
}

static void run_contend(worker *w) {
  begun = ended = 0;
  wanted = opts.count;
  contend(w);
  uv_run(&loop, UV_RUN_DEFAULT);
}

/* ---- the client ----------------------------------------------------------------------------------------------- */

static void on_client_event(redlock_t *client, const redlock_event_t *event, void *user) {
  (void)client;
  (void)user;
  if (event->type == REDLOCK_EV_CLOSED) closed = 1;
}

static int set(const char *key, unsigned value) { return redlock_config_set_u32(cfg, key, value); }

static int configure(void) {
  if (redlock_config_new(&cfg) != 0) return -1;
  if (set("commission", 1) != 0) return -1;  /* its masters are new, and nobody else uses them */
  if (cycle_is(opts.api, "unguarded") && redlock_config_set_str(cfg, "guard", "off") != 0) return -1;
  for (unsigned m = 0; m < opts.masters; m++) {
    char url[128];
    snprintf(url, sizeof url, "redis://%s:%u", opts.host, opts.port[m]);
    if (redlock_config_add_master(cfg, url) != 0) return -1;
  }
  /* A lock's slot is free when the callback of its last event has returned, and the next acquire is made in there. */
  const unsigned locks = opts.table != 0 ? opts.table : opts.inflight + opts.held + 1;
  if ((opts.table != 0 || locks > 32) && set("limits.locks", locks) != 0) return -1;
  /* The slowest master may lag behind the others by many cycles, and is still to be sent all of them. */
  const unsigned room = opts.inflight > 1 ? LIMIT_MAX : 1024;
  if (set("limits.debts", room) != 0 || set("limits.in_flight", room) != 0) return -1;
  if (opts.node_timeout_ms != 0 && set("timing.node_timeout_ms", opts.node_timeout_ms) != 0) return -1;
  redlock_config_set_event(cfg, on_client_event, NULL);
  return 0;
}

/* All masters that can be reached vote; no more than a second is given to those that cannot, and ten to a quorum. */
static void on_tick(uv_timer_t *timer) {
  redlock_status_t status = {.size = sizeof status};
  const int64_t late = cycle_now() - stop_at;
  if (redlock_status(rl, &status) != 0 || status.masters_up == status.masters ||
      late > (status.masters_up >= status.quorum ? 0 : 9000000000)) {
    uv_timer_stop(timer);
    uv_stop(&loop);
  }
}

static void meet_masters(uv_timer_t *timer) {
  stop_at = cycle_now() + 1000000000;
  uv_timer_start(timer, on_tick, 1, 1);
  uv_run(&loop, UV_RUN_DEFAULT);
}

/* Requests that the masters have answered. */
static double answered(void) {
  double sum = 0;
  for (unsigned m = 0; m < opts.masters; m++) {
    redlock_master_status_t status = {.size = sizeof status};
    if (redlock_master_status(rl, m, &status) == 0) sum += (double)status.replies;
  }
  return sum;
}

static void on_held(redlock_t *client, const redlock_event_t *event, void *user) {
  (void)client;
  (void)user;
  if (event->type == REDLOCK_EV_ACQUIRED && ++ended == wanted) uv_stop(&loop);
  if (event->type == REDLOCK_EV_FAILED || event->type == REDLOCK_EV_LOST) exit(4);
}

/* Locks that are held, and renewed, all the while. */
static void hold_others(worker *w) {
  ended = 0;
  wanted = (long)opts.held;
  for (unsigned i = 0; i < opts.held; i++) acquire(w, unique_resource(), on_held, 5000);
  if (opts.held != 0) uv_run(&loop, UV_RUN_DEFAULT);
}

static int refuse(void) {
  static const char *const on_loop[] = {"loop", "fenced", "fenced-first", "unguarded"};
  const int confirmed = cycle_is(opts.release, "confirmed");
  int loops = 0;
  for (size_t i = 0; i < sizeof on_loop / sizeof *on_loop; i++) loops = loops || cycle_is(opts.api, on_loop[i]);
  if (!loops && !cycle_is(opts.api, "blocking")) return fprintf(stderr, "cycle_bench: no --api %s\n", opts.api);
  if (!loops && (opts.inflight != 1 || opts.held != 0 || cycle_is(opts.mode, "contend") ||
                 cycle_is(opts.mode, "connect") || confirmed)) {
    return fprintf(stderr, "cycle_bench: --api blocking does one lock at a time\n");
  }
  if (confirmed && opts.inflight != 1) return fprintf(stderr, "cycle_bench: --release confirmed: one lock at a time\n");
  if (!cycle_is(opts.wait, "quorum")) return fprintf(stderr, "cycle_bench: it never waits for more than a quorum\n");
  if (!confirmed && !cycle_is(opts.release, "sent")) return fprintf(stderr, "cycle_bench: no --release %s\n", opts.release);
  return 0;
}

static int fail(void) {
  fprintf(stderr, "cycle_bench: %s\n", cfg != NULL ? redlock_config_error(cfg) : "no configuration");
  return 4;
}

static int main_blocking(void) {
  if (configure() != 0 || redlock_create(&rl, cfg) != 0) return fail();
  redlock_config_free(cfg);
  blocking();
  const int result = cycle_print(&record);
  return redlock_destroy(rl, 1000) == 0 ? result : 4;
}

static void measure(void) {
  if (cycle_is(opts.mode, "contend")) {
    logfile = opts.log != NULL ? fopen(opts.log, "w") : NULL;
    uv_timer_init(&loop, &workers[0].pause);
    workers[0].pause.data = &workers[0];
    cycle_begin(&record);
    run_contend(&workers[0]);
    cycle_end(&record);
    if (logfile != NULL) fclose(logfile);
    return;
  }
  run(opts.warmup);
  const double before = answered();
  cycle_begin(&record);
  run(opts.count);
  cycle_end(&record);
  record.replies = answered() - before;
}

static void close_client(void) {
  closed = 0;
  if (redlock_close_async(rl, 1000) != 0) return;
  while (!closed) uv_run(&loop, UV_RUN_ONCE);
}

static int main_connect(void) {
  uv_timer_t timer;
  if (uv_loop_init(&loop) != 0 || uv_timer_init(&loop, &timer) != 0) return 4;
  for (long i = -1; i < opts.count; i++) { /* the first one seals, and is not counted */
    if (i == 0) cycle_begin(&record);
    const int64_t began = cycle_now();
    if (configure() != 0 || redlock_create_on_loop(&rl, cfg, &loop) != 0) return fail();
    redlock_config_free(cfg);
    meet_masters(&timer);
    redlock_status_t status = {.size = sizeof status};
    if (redlock_status(rl, &status) != 0 || status.masters_up != opts.masters) return 5;
    cycle_acquired(&record, began);
    if (i >= 0) record.replies += answered();
    close_client();
    cycle_ended(&record, began);
  }
  cycle_end(&record);
  return cycle_print(&record);
}

static int main_loop(void) {
  if (uv_loop_init(&loop) != 0 || configure() != 0 || redlock_create_on_loop(&rl, cfg, &loop) != 0) return fail();
  redlock_config_free(cfg);
  uv_timer_t timer;
  uv_timer_init(&loop, &timer);
  meet_masters(&timer);
  workers = calloc(opts.inflight, sizeof *workers);
  if (workers == NULL) return 4;
  hold_others(workers);
  if (cycle_is(opts.release, "confirmed")) {
    uv_check_init(&loop, &confirming);
    confirming.data = workers;
    uv_check_start(&confirming, on_check);
  }
  uv_timer_start(&timer, on_deadline, (uint64_t)(opts.max_seconds * 1e3), 0);
  measure();
  uv_timer_stop(&timer);
  const int result = cycle_print(&record);
  close_client();
  free(workers);
  return result;
}

int main(int argc, char **argv) {
  if (cycle_parse(&opts, "cycle_bench", argc, argv) != 0) return 2;
  if (*opts.api == '\0') opts.api = "loop";
  if (*opts.release == '\0') opts.release = "sent";
  if (refuse() != 0) return 2;
  if (opts.api[0] == 'f') flags = REDLOCK_F_FENCING;
  cycle_record_init(&record, &opts);
  name = (unsigned)cycle_now() & 0xfffffff;
  if (cycle_is(opts.mode, "connect")) return main_connect();
  return cycle_is(opts.api, "blocking") ? main_blocking() : main_loop();
}
