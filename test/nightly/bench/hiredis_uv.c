/* SPDX-License-Identifier: MIT
 *
 * What a C programmer would write without a lock library: hiredis, its asynchronous API on libuv, one command per
 * master and step, quorum counted in the callback. No validity, no time-outs, no reconnects.
 *
 *   --api format     redisAsyncCommand with a format, as in its manual
 *   --api formatted  the command is formatted once and handed to each connection */
#include "cycle.h"

#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <hiredis/adapters/libuv.h>

typedef struct worker {
  int64_t began;
  char key[80], token[41];
  unsigned granted, answered;
  uint32_t round; /* of its cycles; an answer to an earlier one is not counted */
  int acquiring;
} worker;

static cycle_options opts;
static cycle_record record;
static worker *workers;
static uv_loop_t loop;
static redisAsyncContext *masters[CYCLE_MASTERS_MAX];
static char sha[41];
static unsigned quorum, name, up;
static int formatted;
static long begun, ended, wanted;

static const char script[] =
    "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) end return 0";

static void die(const char *what) {
  fprintf(stderr, "hiredis_uv: %s\n", what);
  exit(4);
}

/* What comes back with each answer: which worker, which of its cycles, which step. */
static void *tag(const worker *w, int is_delete) {
  return (void *)((uintptr_t)w->round << 16 | (uintptr_t)(w - workers) << 1 | (uintptr_t)is_delete);
}

static void on_answer(redisAsyncContext *c, void *reply, void *user);

static void ask(worker *w, int is_delete) {
  char *command = NULL;
  int size = 0;
  if (formatted) {
    size = is_delete ? redisFormatCommand(&command, "EVALSHA %s 1 %s %s", sha, w->key, w->token)
                     : redisFormatCommand(&command, "SET %s %s NX PX %u", w->key, w->token, opts.ttl_ms);
  }
  for (unsigned m = 0; m < opts.masters; m++) {
    redisAsyncContext *c = masters[m];
    const int err =
        formatted   ? redisAsyncFormattedCommand(c, on_answer, tag(w, is_delete), command, (size_t)size)
        : is_delete ? redisAsyncCommand(c, on_answer, tag(w, 1), "EVALSHA %s 1 %s %s", sha, w->key, w->token)
                    : redisAsyncCommand(c, on_answer, tag(w, 0), "SET %s %s NX PX %u", w->key, w->token, opts.ttl_ms);
    if (err != REDIS_OK) die("a command was not taken");
  }
  if (formatted) redisFreeCommand(command);
}

static void begin(worker *w) {
  begun++;
  w->round++;
  w->acquiring = 1;
  w->granted = w->answered = 0;
  snprintf(w->key, sizeof w->key, CYCLE_PREFIX ":%08x", name++);
  for (unsigned i = 0; i < 40; i++) w->token[i] = "0123456789abcdef"[random() & 15];
  w->began = cycle_now();
  ask(w, 0);
}

static void count(worker *w, int is_delete, int yes) {
  if (w->acquiring && !is_delete) {
    w->answered++;
    w->granted += (unsigned)yes;
    if (w->granted == quorum) {
      cycle_acquired(&record, w->began);
      w->acquiring = 0;
      w->answered = 0;
      ask(w, 1);
    } else if (w->answered - w->granted > opts.masters - quorum) {
      die("a lock was refused");
    }
  } else if (!w->acquiring && is_delete && ++w->answered == quorum) {
    cycle_ended(&record, w->began);
    ended++;
    if (begun < wanted) {
      begin(w);
    } else if (ended == wanted) {
      uv_stop(&loop);
    }
  }
}

static void on_answer(redisAsyncContext *c, void *reply_, void *user) {
  const redisReply *reply = reply_;
  worker *w = &workers[(uintptr_t)user >> 1 & 0x7FFF];
  (void)c;
  if (reply == NULL) die("a master is gone");
  if (reply->type == REDIS_REPLY_ERROR) die(reply->str);
  if (w->round != (uint32_t)((uintptr_t)user >> 16)) return;
  count(w, (int)((uintptr_t)user & 1), reply->type == REDIS_REPLY_STATUS || reply->integer == 1);
}

static void on_loaded(redisAsyncContext *c, void *reply_, void *user) {
  const redisReply *reply = reply_;
  (void)c;
  (void)user;
  if (reply == NULL || reply->type != REDIS_REPLY_STRING) die("a master cannot be reached");
  snprintf(sha, sizeof sha, "%s", reply->str);
  if (++up == opts.masters) uv_stop(&loop);
}

BENCH_APART static void run(long cycles) {
  begun = ended = 0;
  wanted = cycles;
  for (unsigned i = 0; i < opts.inflight && begun < wanted; i++) begin(&workers[i]);
  uv_run(&loop, UV_RUN_DEFAULT);
}

static void on_deadline(uv_timer_t *timer) {
  (void)timer;
  die("out of time");
}

int main(int argc, char **argv) {
  if (cycle_parse(&opts, "hiredis_uv", argc, argv) != 0) return 2;
  if (*opts.api == '\0') opts.api = "format";
  formatted = cycle_is(opts.api, "formatted");
  if (cycle_is(opts.mode, "contend") || cycle_is(opts.release, "sent") || opts.held != 0 || opts.inflight > 0x7FFF) {
    die("it only does bare cycles that end when a quorum has answered");
  }
  opts.release = "confirmed";
  quorum = opts.masters / 2 + 1;
  srandom((unsigned)cycle_now());
  name = (unsigned)random();
  workers = calloc(opts.inflight, sizeof *workers);
  if (workers == NULL || uv_loop_init(&loop) != 0) die("no memory");
  for (unsigned m = 0; m < opts.masters; m++) {
    masters[m] = redisAsyncConnect("127.0.0.1", (int)opts.port[m]);
    if (masters[m] == NULL || masters[m]->err || redisLibuvAttach(masters[m], &loop) != REDIS_OK) die("cannot connect");
    redisAsyncCommand(masters[m], on_loaded, NULL, "SCRIPT LOAD %s", script);
  }
  uv_timer_t timer;
  uv_timer_init(&loop, &timer);
  uv_timer_start(&timer, on_deadline, (uint64_t)(opts.max_seconds * 1e3), 0);
  uv_run(&loop, UV_RUN_DEFAULT);
  cycle_record_init(&record, &opts);
  run(opts.warmup);
  cycle_begin(&record);
  run(opts.count);
  cycle_end(&record);
  return cycle_print(&record);
}
