// SPDX-License-Identifier: MIT
//
// threads: eight threads share one client, and with other processes one device. Each takes its turns: the lock, a few
// checked steps at the device, and back. The device here is a file with a number in it that each turn reads, thinks
// about, and writes back: were two at it at once, a turn would be missing in the end.
//
//     threads TURNS FILE URL...
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <redlock/redlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 8, NEED_MS = 100, GRACE_MS = 500 };

struct shared {
  redlock_t *rl;
  const char *file;
  long turns;
};

static long read_number(const char *path) {
  long number = 0;
  FILE *file = fopen(path, "r");
  if (file == NULL) return 0;
  if (fscanf(file, "%ld", &number) != 1) number = 0;
  fclose(file);
  return number;
}

static int write_number(const char *path, long number) {
  FILE *file = fopen(path, "w");
  if (file == NULL) return -1;
  fprintf(file, "%ld\n", number);
  return fclose(file);
}

static int use_device(const struct shared *s, redlock_lock_t lock) {
  const struct timespec thinking = {0, 1000000};
  if (redlock_check(s->rl, lock, NEED_MS) != 0) return -1;
  const long number = read_number(s->file);
  nanosleep(&thinking, NULL);
  if (redlock_check(s->rl, lock, NEED_MS) != 0) return -1;  // again before each transaction
  return write_number(s->file, number + 1);
}

static void *take_turns(void *user) {
  const struct shared *s = user;
  const redlock_resource_t device = redlock_resource("plant1/counter");
  redlock_acquire_opts_t opts = REDLOCK_ACQUIRE_OPTS_INIT;
  opts.retry_delay_ms = 10;
  long done = 0;
  for (long i = 0; i < s->turns; ++i) {
    redlock_lock_t lock;
    if (redlock_acquire(s->rl, &device, 1, &opts, &lock) != 0) continue;  // the log says why
    if (use_device(s, lock) == 0) ++done;
    redlock_release(s->rl, lock);
  }
  return (void *)(intptr_t)done;
}

static int create(redlock_t **rl, char **urls) {
  redlock_config_t *cfg = NULL;
  int err = redlock_config_new(&cfg);
  for (; err == 0 && *urls != NULL; ++urls) err = redlock_config_add_master(cfg, *urls);
  if (err == 0) redlock_config_set_log(cfg, redlock_log_stderr, NULL, 5);  // it says what a new site waits for, too
  if (err == 0) err = redlock_create(rl, cfg);
  if (err != 0) fprintf(stderr, "%s: %s\n", redlock_strerror(err), cfg != NULL ? redlock_config_error(cfg) : "");
  redlock_config_free(cfg);
  return err;
}

int main(int argc, char **argv) {
  struct shared s = {NULL, argc > 2 ? argv[2] : NULL, argc > 1 ? atol(argv[1]) : 0};
  if (argc < 4 || s.turns <= 0) return fputs("usage: threads TURNS FILE URL...\n", stderr), 2;
  if (create(&s.rl, argv + 3) != 0) return 1;
  pthread_t threads[THREADS];
  long done = 0;
  int started = 0;
  while (started < THREADS && pthread_create(&threads[started], NULL, take_turns, &s) == 0) ++started;
  for (int i = 0; i < started; ++i) {
    void *result;
    pthread_join(threads[i], &result);
    done += (long)(intptr_t)result;
  }
  redlock_destroy(s.rl, GRACE_MS);
  printf("%ld turns taken by %d threads; the file says %ld\n", done, started, read_number(s.file));
  return started == THREADS && done == THREADS * s.turns ? 0 : 1;
}
