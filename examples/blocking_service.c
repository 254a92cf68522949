// SPDX-License-Identifier: MIT
//
// blocking_service: a service without a loop of its own. It asks for the bus, works while it may, gives it back, and
// sleeps. The client runs on its own small thread; redlock_acquire() just blocks. Started by systemd or procd with the
// files beside this one.
//
//     blocking_service [--jobs N] CONFIG.json | URL...
//
// SIGTERM and SIGINT end it within WAIT_MS and the job at hand, in less than the 5 s that procd grants. Exit status: 0
// stopped, 78 the configuration is wrong (do not restart), 1 anything else.
#define _POSIX_C_SOURCE 200809L
#include <redlock/redlock.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  TRANSACTION_MS = 20,  // one exchange with the device
  NEED_MS = 100,        // the longest one takes, and then some
  TRANSACTIONS = 5,     // of one job
  PAUSE_MS = 100,
  WAIT_MS = 2000,       // asks again after that, so that a signal is noticed
  GRACE_MS = 500,       // for the last deletes to be answered
  EX_CONFIG = 78
};

static volatile sig_atomic_t stopping;

static void on_signal(int number) {
  (void)number;
  stopping = 1;
}

static void pause_ms(long ms) {
  const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, NULL);  // a signal ends it early
}

// The device: here is where its driver would be called.
static void one_transaction(void) { pause_ms(TRANSACTION_MS); }

// One job: a few transactions, each only while the lock is certain to outlast it.
static int job(const redlock_t *rl, redlock_lock_t lock) {
  for (int i = 0; i < TRANSACTIONS; ++i) {
    const int err = redlock_check(rl, lock, NEED_MS);  // nothing between this and the device
    if (err != 0) return err;
    one_transaction();
  }
  return 0;
}

static int serve(redlock_t *rl, long jobs) {
  const redlock_resource_t bus = redlock_resource("plant1/rs485-a");
  redlock_acquire_opts_t opts = REDLOCK_ACQUIRE_OPTS_INIT;
  opts.flags = REDLOCK_F_TELL_WAITING;
  opts.ttl_ms = 5000;
  opts.wait_ms = WAIT_MS;
  opts.min_validity_ms = NEED_MS;
  long done = 0;
  while (!stopping && (jobs == 0 || done < jobs)) {
    redlock_lock_t lock;
    if (redlock_acquire(rl, &bus, 1, &opts, &lock) == 0) {
      const int err = job(rl, lock);
      redlock_release(rl, lock);
      if (err == 0) ++done;
      if (err != 0) fprintf(stderr, "<4>job broken off: %s\n", redlock_strerror(err));
    }
    pause_ms(PAUSE_MS);
  }
  printf("%ld jobs done\n", done);
  return 0;
}

// Also on the client's thread: only report here.
static void on_event(redlock_t *rl, const redlock_event_t *event, void *user) {
  char text[REDLOCK_TEXT_MAX + 1];
  (void)rl, (void)user;
  if (event->type != REDLOCK_EV_WAITING) return;  // the log tells of the others
  redlock_describe(event, text, sizeof text);
  fprintf(stderr, "<6>%s\n", text);
}

static int configure(redlock_config_t *cfg, char **arguments) {
  redlock_config_set_event(cfg, on_event, NULL);
  redlock_config_set_log(cfg, redlock_log_stderr, NULL, 5);
  for (; *arguments != NULL; ++arguments) {
    const int err = strstr(*arguments, "://") != NULL ? redlock_config_add_master(cfg, *arguments)
                                                       : redlock_config_load_file(cfg, *arguments);
    if (err != 0) return err;
  }
  return 0;
}

int main(int argc, char **argv) {
  const long jobs = argc > 2 && strcmp(argv[1], "--jobs") == 0 ? atol(argv[2]) : 0;
  struct sigaction action = {.sa_handler = on_signal};
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGINT, &action, NULL);

  redlock_config_t *cfg = NULL;
  redlock_t *rl = NULL;
  int err = redlock_config_new(&cfg);
  if (err == 0) err = configure(cfg, argv + (jobs != 0 ? 3 : 1));
  if (err == 0) err = redlock_create(&rl, cfg);
  if (err != 0) fprintf(stderr, "<3>%s: %s\n", redlock_strerror(err), cfg != NULL ? redlock_config_error(cfg) : "");
  redlock_config_free(cfg);
  if (err != 0) return err == REDLOCK_E_CONFIG || err == REDLOCK_E_NOTSUP ? EX_CONFIG : 1;

  const int status = serve(rl, jobs);
  redlock_destroy(rl, GRACE_MS);
  return status;
}
