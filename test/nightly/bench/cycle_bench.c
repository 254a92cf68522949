/* SPDX-License-Identifier: MIT
 *
 * The library as a user has it: the public C API. A cycle ends with RELEASED, which the library reports right before
 * the deletes are handed to the kernel, or behind it where a thread waits (--release sent). It does not tell when the
 * masters have confirmed them: with --release confirmed, for one lock at a time, the status is asked until no delete
 * of any master is unanswered.
 *
 *   --api loop          redlock_create_on_loop, all calls from callbacks
 *   --api polled        redlock_create_polled in a loop of poll(2), all calls from callbacks
 *   --api blocking      redlock_create, redlock_acquire and redlock_release; one lock at a time
 *   --api fenced        as loop, with fencing tokens; each lock in flight has one resource, so the client knows the
 *                       counter
 *   --api fenced-first  as loop, with the first token of a new resource each time: nobody knows a counter
 *   --api unguarded     as loop, with "guard": "off"
 *   --api urgent        as loop, with REDLOCK_F_URGENT
 *   --api timer         as loop, with "defaults.wakeups": 0: a waiter tries again after a pause, and is told nothing
 *
 * --mode connect: a cycle is a client that is created, has all masters vote, and is closed; its acquire lasts until
 * they vote. The masters are sealed by the first. */
#include "cycle_bench.h"

enum { LIMIT_MAX = 16384 }; /* of limits.debts and limits.in_flight */

/* One of the K cycles under way. */
typedef struct worker {
  int64_t began;
  redlock_lock_t lock;
} worker;

cycle_options opts;
cycle_record record;
redlock_t *rl;
int closed;

static const runner *way = &on_loop;
static redlock_config_t *cfg;
static long begun, ended, wanted; /* cycles of this phase */
static unsigned name;             /* of the next resource */
static int64_t stop_at;
static uint32_t flags; /* of each acquire */
static worker *workers;
static int confirming; /* --release confirmed */
static redlock_event_t failed; /* the first acquire that did */

static void begin(worker *w);

static void on_late(void) {
  wanted = begun;
  if (ended == begun) way->stop();
}

/* ---- latency and throughput ----------------------------------------------------------------------------------- */

static void next(worker *w) {
  ended++;
  if (begun < wanted) {
    begin(w);
  } else if (ended == wanted) {
    way->stop();
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
      if (confirming) break;
      cycle_ended(&record, w->began);
      next(w);
      break;
    case REDLOCK_EV_FAILED:
    case REDLOCK_EV_LOST:
      if (record.failed++ == 0) failed = *event;
      next(w);
      break;
    default:
      break;
  }
}

static void tell_failures(void) {
  if (record.failed == 0) return;
  fprintf(stderr, "cycle_bench: %ld failed, the first with %s, a master's %s: %u granted, %u refused, %u failed\n",
          record.failed, redlock_err_name(failed.err), redlock_err_name(failed.master_err), failed.granted,
          failed.refused, failed.failed);
}

/* --release confirmed: after each turn. */
static void look_for_confirmed(void) {
  redlock_status_t status = {.size = sizeof status};
  if (ended == begun || redlock_status(rl, &status) != 0 || status.debts != 0) return;
  if (status.locks_held + status.locks_pending != 0) return;
  cycle_ended(&record, workers->began);
  next(workers);
}

void acquire(redlock_resource_t resource, int wait_ms, redlock_event_fn callback, void *user, redlock_lock_t *lock) {
  redlock_acquire_opts_t o = REDLOCK_ACQUIRE_OPTS_INIT;
  o.ttl_ms = opts.ttl_ms;
  o.wait_ms = wait_ms;
  o.flags = flags;
  o.callback = callback;
  o.user = user;
  const int err = redlock_acquire_async(rl, &resource, 1, &o, lock);
  if (err != 0) {
    fprintf(stderr, "cycle_bench: acquire: %s\n", redlock_strerror(err));
    exit(4);
  }
}

/* The key is as long as in the other programs. The library keeps a copy of it. */
redlock_resource_t unique_resource(void) {
  static char text[REDLOCK_RESOURCE_MAX + 1];
  static unsigned size;
  if (size == 0) size = (unsigned)snprintf(text, sizeof text, CYCLE_PREFIX ":00000000");
  char *at = text + size;
  for (unsigned n = name++; n != 0; n >>= 6) *--at = (char)('0' + (n & 63));
  return (redlock_resource_t){text, size};
}

/* The same each time, for this one of those in flight. */
static redlock_resource_t own_resource(const worker *w) {
  static char text[REDLOCK_RESOURCE_MAX + 1];
  const int size = snprintf(text, sizeof text, CYCLE_PREFIX ":%08u", (unsigned)(w - workers));
  return (redlock_resource_t){text, (uint32_t)size};
}

static void begin(worker *w) {
  begun++;
  w->began = cycle_now();
  acquire(cycle_is(opts.api, "fenced") ? own_resource(w) : unique_resource(), REDLOCK_TRY_ONCE, on_event, w, &w->lock);
}

/* What is counted is what happens in here: see count.sh. */
BENCH_APART static void run(long cycles) {
  begun = ended = 0;
  wanted = cycles;
  for (unsigned i = 0; i < opts.inflight && begun < wanted; i++) begin(&workers[i]);
  if (cycles != 0) way->run();
}

/* ---- the client ----------------------------------------------------------------------------------------------- */

static void on_client_event(redlock_t *client, const redlock_event_t *event, void *user) {
  (void)client;
  (void)user;
  if (event->type == REDLOCK_EV_CLOSED) closed = 1;
}

static int set(const char *key, unsigned value) { return redlock_config_set_u32(cfg, key, value); }

static int set_patience(unsigned ms) {
  return set("timing.node_timeout_ms", ms) != 0 || set("timing.connect_timeout_ms", ms) != 0 ||
         set("timing.suspect_close_ms", ms) != 0;
}

static int configure(void) {
  if (redlock_config_new(&cfg) != 0) return -1;
  if (cycle_is(opts.api, "unguarded") && redlock_config_set_str(cfg, "guard", "off") != 0) return -1;
  if (cycle_is(opts.api, "timer") && set("defaults.wakeups", 0) != 0) return -1;
  for (unsigned m = 0; m < opts.masters; m++) {
    char url[128];
    snprintf(url, sizeof url, "redis://127.0.0.1:%u", opts.port[m]);
    if (redlock_config_add_master(cfg, url) != 0) return -1;
  }
  /* A lock's slot is free when the callback of its last event has returned, and the next acquire is made in there. */
  const unsigned locks = opts.table != 0 ? opts.table : opts.inflight + opts.held + 1;
  if ((opts.table != 0 || locks > 32) && set("limits.locks", locks) != 0) return -1;
  /* The slowest master may lag behind the others by many cycles, and is still to be sent all of them. */
  const unsigned room = opts.inflight > 1 ? LIMIT_MAX : 1024;
  if (set("limits.debts", room) != 0 || set("limits.in_flight", room) != 0) return -1;
  if (opts.node_timeout_ms != 0 && set_patience(opts.node_timeout_ms) != 0) return -1;
  redlock_config_set_event(cfg, on_client_event, NULL);
  return 0;
}

/* 0, or the exit code after it has said what is wrong. */
static int open_client(int (*open)(redlock_t **out, const redlock_config_t *cfg)) {
  closed = 0;
  if (configure() != 0 || open(&rl, cfg) != 0) {
    fprintf(stderr, "cycle_bench: %s\n", cfg != NULL ? redlock_config_error(cfg) : "no configuration");
    return 4;
  }
  redlock_config_free(cfg);
  redlock_commission(rl); /* its masters are new, and nobody else uses them */
  return 0;
}

static int close_client(void) {
  if (redlock_close_async(rl, patience_ms()) != 0) return 4;
  way->end();
  return 0;
}

uint32_t patience_ms(void) { return opts.node_timeout_ms > 1000 ? opts.node_timeout_ms : 1000; }

/* All masters vote, or patience_ms() is over and a quorum votes, or nine seconds more are over. */
static int met(void) {
  redlock_status_t status = {.size = sizeof status};
  const int64_t late = cycle_now() - stop_at;
  return redlock_status(rl, &status) != 0 || status.masters_up == status.masters ||
         late > (status.masters_up >= status.quorum ? 0 : 9000000000);
}

static void meet_masters(void) {
  stop_at = cycle_now() + (int64_t)patience_ms() * 1000000;
  way->until(met);
}

double answered(void) {
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
  if (event->type == REDLOCK_EV_ACQUIRED && ++ended == wanted) way->stop();
  if (event->type == REDLOCK_EV_FAILED || event->type == REDLOCK_EV_LOST) exit(4);
}

/* Locks that are held, and renewed, all the while. */
static void hold_others(void) {
  redlock_lock_t lock;
  ended = 0;
  wanted = (long)opts.held;
  for (unsigned i = 0; i < opts.held; i++) acquire(unique_resource(), 5000, on_held, NULL, &lock);
  if (opts.held != 0) way->run();
}

/* ---- the program ---------------------------------------------------------------------------------------------- */

static int is_one_of(const char *value, const char *const *words, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (cycle_is(value, words[i])) return 1;
  return 0;
}

static int refuse(void) {
  static const char *const loops[] = {"loop", "fenced", "fenced-first", "unguarded", "timer", "urgent"};
  const int loop = is_one_of(opts.api, loops, sizeof loops / sizeof *loops);
  const int blocks = cycle_is(opts.api, "blocking"), confirmed = cycle_is(opts.release, "confirmed");
  if (!loop && !blocks && !cycle_is(opts.api, "polled")) return fprintf(stderr, "cycle_bench: no --api %s\n", opts.api);
  if (blocks && (opts.inflight != 1 || opts.held != 0 || confirmed)) {
    return fprintf(stderr, "cycle_bench: --api blocking does one lock at a time\n");
  }
  if (!loop && (cycle_is(opts.mode, "contend") || cycle_is(opts.mode, "connect"))) {
    return fprintf(stderr, "cycle_bench: --mode %s: on a loop only\n", opts.mode);
  }
  if (confirmed && opts.inflight != 1) return fprintf(stderr, "cycle_bench: --release confirmed: one lock at a time\n");
  if (!confirmed && !cycle_is(opts.release, "sent"))
    return fprintf(stderr, "cycle_bench: no --release %s\n", opts.release);
  return 0;
}

/* A client with a thread of its own, and calls that block: one lock at a time. */
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

static void blocking(void) {
  redlock_status_t status = {.size = sizeof status};
  const int64_t until = cycle_now() + (int64_t)patience_ms() * 1000000;
  while (redlock_status(rl, &status) == 0 && status.masters_up != status.masters && cycle_now() < until) usleep(1000);
  run_blocking(opts.warmup);
  cycle_begin(&record);
  run_blocking(opts.count);
  cycle_end(&record);
}

static int main_blocking(void) {
  const int err = open_client(redlock_create);
  if (err != 0) return err;
  blocking();
  const int result = cycle_print(&record);
  return redlock_destroy(rl, patience_ms()) == 0 ? result : 4;
}

static int main_connect(void) {
  for (long i = -1; i < opts.count; i++) { /* the first one seals, and is not counted */
    if (i == 0) cycle_begin(&record);
    const int64_t began = cycle_now();
    const int err = open_client(way->open);
    if (err != 0) return err;
    meet_masters();
    redlock_status_t status = {.size = sizeof status};
    if (redlock_status(rl, &status) != 0 || status.masters_up != opts.masters) return 5;
    cycle_acquired(&record, began);
    if (i >= 0) record.replies += answered();
    if (close_client() != 0) return 4;
    cycle_ended(&record, began);
  }
  cycle_end(&record);
  return cycle_print(&record);
}

static void measure(void) {
  hold_others();
  confirming = cycle_is(opts.release, "confirmed");
  if (confirming) way->look(look_for_confirmed);
  way->limit(on_late);
  run(opts.warmup);
  const double before = answered();
  cycle_begin(&record);
  run(opts.count);
  cycle_end(&record);
  record.replies = answered() - before;
  tell_failures();
}

static int main_async(void) {
  workers = calloc(opts.inflight, sizeof *workers);
  if (workers == NULL) return 4;
  const int err = open_client(way->open);
  if (err != 0) return err;
  meet_masters();
  if (cycle_is(opts.mode, "contend")) {
    contend();
  } else {
    measure();
  }
  way->limit(NULL);
  const int result = cycle_print(&record);
  const int err_at_end = close_client();
  free(workers);
  return result != 0 ? result : err_at_end;
}

int main(int argc, char **argv) {
  if (cycle_parse(&opts, "cycle_bench", argc, argv) != 0) return 2;
  if (*opts.api == '\0') opts.api = "loop";
  if (*opts.release == '\0') opts.release = "sent";
  if (refuse() != 0) return 2;
  if (cycle_is(opts.api, "polled")) way = &polled;
  if (opts.api[0] == 'f') flags = REDLOCK_F_FENCING;
  if (cycle_is(opts.api, "urgent")) flags = REDLOCK_F_URGENT;
  cycle_record_init(&record, &opts);
  name = (unsigned)cycle_now() & 0xfffffff;
  if (cycle_is(opts.mode, "connect")) return main_connect();
  return cycle_is(opts.api, "blocking") ? main_blocking() : main_async();
}
