/* SPDX-License-Identifier: MIT
 *
 * A client behind one descriptor, in a loop of poll(2), as any program has that knows nothing of libuv. */
#include "cycle_bench.h"

#include <poll.h>
#include <signal.h>

static int stopped;
static volatile sig_atomic_t alarmed;
static void (*when_late)(void), (*each_turn)(void);

static int open_client(redlock_t **out, const redlock_config_t *cfg) { return redlock_create_polled(out, cfg); }

/* At most so long; -1: until there is something to do. */
static void turn(int most_ms) {
  struct pollfd client = {redlock_fd(rl), POLLIN, 0};
  const int wait_ms = redlock_timeout_ms(rl);
  if (wait_ms != 0) poll(&client, 1, most_ms >= 0 && (wait_ms < 0 || wait_ms > most_ms) ? most_ms : wait_ms);
  redlock_process(rl);
}

static void until(int (*done)(void)) {
  while (!done()) turn(1);
}

static void on_alarm(int number) { alarmed = number; }

/* By a signal, so that no cycle pays for it. One that comes between the look at it and poll() is seen after that. */
static void limit(void (*late)(void)) {
  const double seconds = opts.max_seconds < 1 ? 1 : opts.max_seconds;
  struct sigaction action = {.sa_handler = on_alarm};
  when_late = late;
  sigaction(SIGALRM, &action, NULL);
  alarm(late != NULL ? (unsigned)seconds : 0);
}

static void look(void (*each)(void)) { each_turn = each; }

static void run_polled(void) {
  for (stopped = 0; !stopped;) {
    turn(-1);
    if (each_turn != NULL) each_turn();
    if (!alarmed) continue;
    alarmed = 0;
    if (when_late != NULL) when_late();
  }
}

static void stop(void) { stopped = 1; }

static void end(void) {
  while (!closed) turn(-1);
}

const runner polled = {open_client, until, limit, look, run_polled, stop, end};
