/* SPDX-License-Identifier: MIT
 *
 * What every program of this bench shares, so that their figures can be compared: the command line, the clocks, and the
 * one line of JSON that they print.
 *
 *     PROGRAM --ports 7601,7602,... [--mode latency|throughput|contend|connect]
 *             [--inflight K] [--count C] [--warmup W] [--ttl-ms 10000] [--node-timeout-ms T] [--prefix P]
 *             [--api VARIANT] [--max-seconds S] [--release confirmed|sent] [--samples FILE]
 *             [--table LOCKS] [--held LOCKS]
 *             contend: [--hold-us 5000] [--think-us 0] [--log FILE] [--gate READY,GO]
 *
 * A cycle is: acquire one uncontended lock on all masters, then release it; K of them are under way at once. Its
 * acquire lasts from the call to the caller's knowing that it holds; the cycle until the release is done: known to be
 * done on a quorum (confirmed) or handed to the kernel (sent). What a program cannot do it refuses.
 *
 * --log: one line per acquisition, "pid want_ns got_ns release_start_ns release_end_ns attempts", CLOCK_MONOTONIC.
 * --gate: two descriptors: when its masters vote it writes a byte to READY, and begins when GO is at its end.
 * --samples: one line per cycle, "acquire_ns cycle_ns", for a plot of the distribution. */
#ifndef REDLOCK_BENCH_CYCLE_H
#define REDLOCK_BENCH_CYCLE_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* Calls to the heap so far, of this process; NULL unless test/size/heap_count.c is preloaded. */
__attribute__((weak)) unsigned long heap_count_total(void);

/* A function that count.sh finds by its name: neither inlined nor cloned. */
#ifdef __clang__
#define BENCH_APART __attribute__((noinline))
#else
#define BENCH_APART __attribute__((noinline, noclone))
#endif

enum { CYCLE_MASTERS_MAX = 15 };
#define CYCLE_PREFIX "cycle" /* of each key */

typedef struct cycle_options {
  const char *program;
  const char *mode, *api, *release, *log, *samples, *gate;
  unsigned masters;
  unsigned port[CYCLE_MASTERS_MAX];
  unsigned inflight, ttl_ms, node_timeout_ms, table, held;
  long count, warmup, hold_us, think_us;
  double max_seconds;
} cycle_options;

/* Of one phase: what was seen so far. */
typedef struct cycle_record {
  const cycle_options *options;
  uint32_t *acquire_ns, *cycle_ns; /* of the cycles that have ended, at most `count` of them */
  long acquired, ended, failed, attempts;
  double replies; /* of all masters; 0: not counted */
  int64_t begin_ns, end_ns;
  unsigned long heap_calls;
  struct rusage begin, end;
} cycle_record;

static inline int64_t cycle_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline int cycle_ports(cycle_options *o, const char *list) {
  for (char *end; *list != '\0' && o->masters < CYCLE_MASTERS_MAX; list = *end == ',' ? end + 1 : end) {
    o->port[o->masters++] = (unsigned)strtoul(list, &end, 10);
    if (end == list || (*end != ',' && *end != '\0')) return -1;
  }
  return *list == '\0' ? 0 : -1;
}

static inline int cycle_option(cycle_options *o, const char *key, const char *value) {
  const struct { const char *key; const char **at; } texts[] = {
      {"--mode", &o->mode}, {"--api", &o->api}, {"--release", &o->release}, {"--log", &o->log},
      {"--samples", &o->samples}, {"--gate", &o->gate}};
  const struct { const char *key; unsigned *at; } numbers[] = {
      {"--inflight", &o->inflight}, {"--ttl-ms", &o->ttl_ms}, {"--node-timeout-ms", &o->node_timeout_ms},
      {"--table", &o->table}, {"--held", &o->held}};
  const struct { const char *key; long *at; } longs[] = {
      {"--count", &o->count}, {"--warmup", &o->warmup}, {"--hold-us", &o->hold_us}, {"--think-us", &o->think_us}};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (strcmp(key, texts[i].key) == 0) return *texts[i].at = value, 0;
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (strcmp(key, numbers[i].key) == 0) return *numbers[i].at = (unsigned)strtoul(value, NULL, 10), 0;
  for (size_t i = 0; i < sizeof longs / sizeof *longs; i++)
    if (strcmp(key, longs[i].key) == 0) return *longs[i].at = strtol(value, NULL, 10), 0;
  if (strcmp(key, "--max-seconds") == 0) return o->max_seconds = strtod(value, NULL), 0;
  return strcmp(key, "--ports") == 0 ? cycle_ports(o, value) : -1;
}

/* 0, or -1 after it has said what is wrong. */
static inline int cycle_parse(cycle_options *o, const char *program, int argc, char **argv) {
  *o = (cycle_options){.program = program, .mode = "latency", .api = "", .release = "", .inflight = 1,
                       .ttl_ms = 10000, .count = 1000, .warmup = -1, .hold_us = 5000, .max_seconds = 60};
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 < argc && cycle_option(o, argv[i], argv[i + 1]) == 0) continue;
    fprintf(stderr, "%s: unknown option or bad value: %s %s\n", program, argv[i], i + 1 < argc ? argv[i + 1] : "");
    return -1;
  }
  if (o->masters == 0 || o->inflight == 0 || o->count < 1) {
    fprintf(stderr, "%s: --ports is required, --inflight and --count are at least 1\n", program);
    return -1;
  }
  if (o->warmup < 0) o->warmup = o->count < 200 ? 20 : o->count > 20000 ? 2000 : o->count / 10;
  return 0;
}

static inline int cycle_is(const char *value, const char *word) { return strcmp(value, word) == 0; }

static inline void cycle_record_init(cycle_record *r, const cycle_options *o) {
  memset(r, 0, sizeof *r);
  r->options = o;
  r->acquire_ns = calloc((size_t)o->count, sizeof *r->acquire_ns);
  r->cycle_ns = calloc((size_t)o->count, sizeof *r->cycle_ns);
  if (r->acquire_ns == NULL || r->cycle_ns == NULL) abort();
}

static inline unsigned long cycle_heap_calls(void) { return heap_count_total != NULL ? heap_count_total() : 0; }

static inline void cycle_begin(cycle_record *r) {
  r->acquired = r->ended = r->failed = r->attempts = 0;
  r->replies = 0;
  r->heap_calls = cycle_heap_calls();
  getrusage(RUSAGE_SELF, &r->begin);
  r->begin_ns = cycle_now();
}

static inline void cycle_end(cycle_record *r) {
  r->heap_calls = cycle_heap_calls() - r->heap_calls;
  r->end_ns = cycle_now();
  getrusage(RUSAGE_SELF, &r->end);
}

static inline void cycle_acquired(cycle_record *r, int64_t since) {
  if (r->acquired < r->options->count) r->acquire_ns[r->acquired++] = (uint32_t)(cycle_now() - since);
}

static inline void cycle_ended(cycle_record *r, int64_t since) {
  if (r->ended < r->options->count) r->cycle_ns[r->ended++] = (uint32_t)(cycle_now() - since);
}

static inline int cycle_less(const void *a, const void *b) {
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

static inline double cycle_us(const uint32_t *sorted, long n, double share) {
  const long i = (long)(share * (double)n);
  return n == 0 ? 0 : sorted[i < n ? i : n - 1] / 1e3;
}

/* The most memory that this program itself had resident; ru_maxrss would count the one that forked it. */
static inline long cycle_peak_kb(void) {
  char line[128];
  long kb = -1;
  FILE *f = fopen("/proc/self/status", "r");
  while (f != NULL && fgets(line, sizeof line, f) != NULL && sscanf(line, "VmHWM: %ld", &kb) != 1) {}
  if (f != NULL) fclose(f);
  return kb;
}

static inline double cycle_cpu_us(struct timeval from, struct timeval to) {
  return (double)(to.tv_sec - from.tv_sec) * 1e6 + (double)(to.tv_usec - from.tv_usec);
}

static inline int cycle_write_samples(const cycle_record *r) {
  FILE *f = fopen(r->options->samples, "w");
  if (f == NULL) return -1;
  for (long i = 0; i < r->acquired && i < r->ended; i++) fprintf(f, "%u %u\n", r->acquire_ns[i], r->cycle_ns[i]);
  return fclose(f);
}

/* Prints the line; returns the program's exit code. */
static inline int cycle_print(cycle_record *r) {
  const cycle_options *o = r->options;
  const double cycles = r->acquired + r->failed > 0 ? (double)(r->acquired + r->failed) : 1;
  const double user = cycle_cpu_us(r->begin.ru_utime, r->end.ru_utime) / cycles;
  const double sys = cycle_cpu_us(r->begin.ru_stime, r->end.ru_stime) / cycles;
  const double wall = (double)(r->end_ns - r->begin_ns) / 1e9;
  if (o->samples != NULL && cycle_write_samples(r) != 0) perror(o->samples);
  qsort(r->acquire_ns, (size_t)r->acquired, sizeof *r->acquire_ns, cycle_less);
  qsort(r->cycle_ns, (size_t)r->ended, sizeof *r->cycle_ns, cycle_less);
  printf("{\"prog\":\"%s\",\"api\":\"%s\",\"mode\":\"%s\",\"n\":%u,\"inflight\":%u,\"count\":%ld,"
         "\"ok\":%ld,\"fail\":%ld,\"attempts\":%ld,\"acq_p50_us\":%.1f,\"acq_p99_us\":%.1f,\"acq_max_us\":%.1f,"
         "\"cyc_p50_us\":%.1f,\"cyc_p99_us\":%.1f,\"cycles_per_s\":%.1f,\"cpu_us_per_cycle\":%.2f,"
         "\"user_us_per_cycle\":%.2f,\"sys_us_per_cycle\":%.2f,\"maxrss_kb\":%ld,\"wall_s\":%.3f,"
         "\"replies_per_cycle\":%.2f,\"heap_calls\":%ld}\n",
         o->program, o->api, o->mode, o->masters, o->inflight, o->count, r->acquired, r->failed, r->attempts,
         cycle_us(r->acquire_ns, r->acquired, .5), cycle_us(r->acquire_ns, r->acquired, .99),
         cycle_us(r->acquire_ns, r->acquired, 1), cycle_us(r->cycle_ns, r->ended, .5),
         cycle_us(r->cycle_ns, r->ended, .99), wall > 0 ? (double)r->ended / wall : 0, user + sys, user, sys,
         cycle_peak_kb(), wall, r->replies / cycles, heap_count_total != NULL ? (long)r->heap_calls : -1);
  return r->acquired > 0 ? 0 : 5;
}

#endif
