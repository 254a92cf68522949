// SPDX-License-Identifier: MIT
//
// blocking_gateway: what gateway.c does, by calls that block. The steps of a job stand one below the other, as in most
// firmware; the client runs on a thread of its own.
//
//   one_job      asks for the lock and waits for it, sends the frames, gives the lock back
//   exchange     asks redlock_check() before each frame, sends it, waits for the answer
#define _GNU_SOURCE 1
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "job.h"

struct gateway {
  struct options options;
  redlock_t *rl;  // NULL: without the lock
  int fd;
  struct frame_reader reader;
  struct frame frame;  // of this job, the last one sent
  struct tally tally;
};

enum outcome { INTACT, RUINED, STOPPED, BROKEN };

static volatile sig_atomic_t stopping;

static void on_signal(int number) {
  (void)number;
  stopping = 1;
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void pause_ms(uint64_t ms) {
  const struct timespec time = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
  nanosleep(&time, NULL);
}

static void note(const struct gateway *g, const char *what, const char *why) {
  job_note(&g->options, &g->frame, what, why);
}

// ---- A job ------------------------------------------------------------------------------------------------------

static enum outcome await_answer(struct gateway *g) {
  const uint64_t until = now_ns() + (uint64_t)ANSWER_MS * 1000000;
  for (uint64_t now = now_ns(); now < until; now = now_ns()) {
    struct pollfd wire = {g->fd, POLLIN, 0};
    if (poll(&wire, 1, (int)((until - now) / 1000000) + 1) <= 0) continue;  // a signal, or the time is over
    if (frame_read(&g->reader, g->fd) <= 0) return note(g, "stopped", "the device is gone"), BROKEN;
    struct frame answer = {0};
    while (frame_next(&g->reader, &answer)) {
      if (!is_answer(&g->frame, &answer)) continue;
      if (answer.status == FRAME_REFUSED) return note(g, "stopped", redlock_strerror(REDLOCK_E_FENCED)), STOPPED;
      if (answer.status == FRAME_OUT_OF_ORDER) return note(g, "stopped", "the device has forgotten it"), STOPPED;
      return answer.status == FRAME_RUINED ? RUINED : INTACT;
    }
  }
  return note(g, "stopped", "the device does not answer"), STOPPED;
}

static enum outcome exchange(struct gateway *g, redlock_lock_t lock) {
  uint8_t bytes[FRAME_BYTES];
  frame_encode(&g->frame, bytes);
  const uint64_t checked_ns = now_ns();
  // Between this and write() there is nothing but the demo's freeze.
  const int err = g->rl != NULL ? redlock_check(g->rl, lock, NEED_MS) : 0;
  if (err == 0) maybe_freeze(&g->options, &g->frame);
  if (err == 0 && write(g->fd, bytes, sizeof bytes) == (ssize_t)sizeof bytes) {
    log_frame(&g->options, &g->frame, checked_ns, now_ns());
    return await_answer(g);
  }
  note(g, "stopped", err != 0 ? redlock_strerror(err) : "the device is gone");
  g->tally.lost += err == REDLOCK_E_LOST;
  return err != 0 ? STOPPED : BROKEN;
}

// The answer to the last frame tells how the job went.
static enum outcome send_frames(struct gateway *g, redlock_lock_t lock) {
  enum outcome outcome = INTACT;
  for (uint8_t i = 0; i < FRAMES_PER_JOB && outcome < STOPPED; ++i) {
    if (i > 0) pause_ms(GAP_MS);
    g->frame.index = i;
    outcome = exchange(g, lock);
  }
  if (outcome >= STOPPED) pause_ms(BUS_SILENCE_MS);  // until the device has forgotten the unfinished command
  return outcome;
}

static int acquire(struct gateway *g, redlock_lock_t *lock) {
  const redlock_resource_t resource = redlock_resource(g->options.resource);
  redlock_acquire_opts_t opts = lock_options(&g->options);
  redlock_report_t report = REDLOCK_REPORT_INIT;
  opts.report = &report;
  const int err = redlock_acquire(g->rl, &resource, 1, &opts, lock);
  if (err != 0) note(g, "not acquired", report.text);
  return err;
}

static enum outcome one_job(struct gateway *g) {
  redlock_lock_t lock = {0};
  const uint64_t asked_ns = now_ns();
  if (g->rl != NULL && acquire(g, &lock) != 0) return STOPPED;
  waits_add(&g->tally.waits, now_ns() - asked_ns);
  if (g->rl != NULL) g->frame.token = redlock_fencing_token(g->rl, lock);  // 0 without --fencing
  const enum outcome outcome = send_frames(g, lock);
  log_over(&g->options, &g->frame, now_ns());
  if (g->rl != NULL) redlock_release(g->rl, lock);  // right also for a lock that was lost: its keys must go
  return outcome;
}

// ---- The program --------------------------------------------------------------------------------------------------

static bool create_client(struct gateway *g) {
  redlock_config_t *config = NULL;
  int err = new_config(&g->options, &config);
  if (err == 0) err = redlock_create(&g->rl, config);
  if (err == 0) err = commission(&g->options, g->rl);
  if (err != 0) note(g, redlock_strerror(err), config != NULL ? redlock_config_error(config) : "");
  redlock_config_free(config);
  return err == 0;
}

static bool work(struct gateway *g) {
  enum outcome outcome = INTACT;
  while (!stopping && outcome != BROKEN && !all_jobs_done(&g->options, g->frame.job)) {
    pause_ms(think_time_ms(&g->options));
    g->frame = first_frame(&g->options, g->frame.job + 1);
    outcome = one_job(g);
    ++*(outcome == INTACT ? &g->tally.intact : outcome == RUINED ? &g->tally.ruined : &g->tally.failed);
  }
  return outcome != BROKEN;
}

int main(int argc, char **argv) {
  static struct gateway g;
  int exit_status = 1;
  if (!parse_options(argc, argv, &g.options, &exit_status)) return exit_status;
  const struct sigaction action = {.sa_handler = on_signal};
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGINT, &action, NULL);
  signal(SIGPIPE, SIG_IGN);  // for our own write(); the library needs no help
  srandom(g.options.id);
  g.fd = bus_open(g.options.device);
  if (g.fd < 0) return perror(g.options.device), 1;
  if (g.options.lock && !create_client(&g)) return 1;
  const bool well = work(&g);
  if (g.rl != NULL) redlock_destroy(g.rl, CLOSE_GRACE_MS);
  close(g.fd);
  print_tally(&g.options, &g.tally);
  return well ? 0 : 1;
}
