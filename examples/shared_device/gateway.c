// SPDX-License-Identifier: MIT
//
// gateway: one of several programs that share the device (device.c), each with its own connection to it. A job is a
// command of a few frames, and a frame of anybody else in between ruins it. So each job goes through these steps:
//
//   start_job    asks for the lock; one event follows, ACQUIRED or FAILED
//   send_frame   asks redlock_check() before each frame whether the device may still be touched; if not: stop_job,
//                which leaves the device alone until it has forgotten the unfinished command. With --fencing the frame
//                bears the lock's token, so that the device can refuse what comes too late all the same
//   end_job      gives the lock back; the device is at rest
//
// All of it runs on one libuv loop and never blocks. Events only report: whether the lock is held is for
// redlock_check() to say.
#define _GNU_SOURCE 1
#include <signal.h>
#include <uv.h>

#include "job.h"

enum state { THINKING, WAITING, WORKING, STOPPED, CLOSING };

struct gateway {
  struct options options;
  enum state state;
  bool stopping;  // no more jobs
  bool broken;    // the device is gone
  redlock_t *rl;  // NULL: without the lock
  redlock_lock_t lock;
  uv_loop_t loop;
  uv_timer_t timer;  // the next step of the job
  uv_signal_t terminate, interrupt;
  uv_poll_t wire;
  int fd;
  struct frame_reader reader;
  struct frame frame;  // of this job, the last one sent
  uint64_t asked_ns;   // when this job asked for the lock
  struct tally tally;
};

static void send_frame(uv_timer_t *timer);
static void start_job(uv_timer_t *timer);

static void note(const struct gateway *g, const char *what, const char *why) {
  job_note(&g->options, &g->frame, what, why);
}

static void close_handles(struct gateway *g) {
  uv_close((uv_handle_t *)&g->timer, NULL);
  uv_close((uv_handle_t *)&g->wire, NULL);
  uv_close((uv_handle_t *)&g->terminate, NULL);
  uv_close((uv_handle_t *)&g->interrupt, NULL);
}

static void finish(struct gateway *g) {
  g->state = CLOSING;
  uv_timer_stop(&g->timer);
  if (g->rl == NULL || redlock_close_async(g->rl, CLOSE_GRACE_MS) != 0) close_handles(g);  // else: on CLOSED
}

// A job at work is finished first, so that the device is not left in the middle of a command.
static void on_signal(uv_signal_t *handle, int number) {
  struct gateway *g = handle->data;
  (void)number;
  g->stopping = true;
  if (g->state == THINKING || g->state == WAITING) finish(g);
}

// ---- A job ------------------------------------------------------------------------------------------------------

static void think(struct gateway *g) {
  g->state = THINKING;
  uv_timer_start(&g->timer, start_job, g->stopping ? 0 : think_time_ms(&g->options), 0);
}

static void end_job(uv_timer_t *timer) {
  struct gateway *g = timer->data;
  log_over(&g->options, &g->frame, uv_hrtime());
  if (g->rl != NULL) redlock_release_async(g->rl, g->lock);  // right also for a lock that was lost: its keys must go
  think(g);
}

static void stop_job(struct gateway *g, const char *why) {
  note(g, "stopped", why);
  ++g->tally.failed;
  g->state = STOPPED;
  uv_poll_stop(&g->wire);
  uv_timer_start(&g->timer, end_job, BUS_SILENCE_MS, 0);
}

static void device_gone(struct gateway *g) {
  g->broken = g->stopping = true;
  stop_job(g, "the device is gone");
}

static void on_no_answer(uv_timer_t *timer) { stop_job(timer->data, "the device does not answer"); }

static void on_answer(struct gateway *g, uint8_t status) {
  uv_poll_stop(&g->wire);
  if (status == FRAME_OUT_OF_ORDER) {
    stop_job(g, "the device has forgotten the command");
  } else if (status == FRAME_REFUSED) {
    stop_job(g, redlock_strerror(REDLOCK_E_FENCED));
  } else if (g->frame.index + 1 < FRAMES_PER_JOB) {
    ++g->frame.index;
    uv_timer_start(&g->timer, send_frame, GAP_MS, 0);
  } else {
    ++*(status == FRAME_RUINED ? &g->tally.ruined : &g->tally.intact);
    end_job(&g->timer);
  }
}

static void on_wire(uv_poll_t *wire, int status, int events) {
  struct gateway *g = wire->data;
  (void)events;
  if (status < 0 || frame_read(&g->reader, g->fd) <= 0) {
    device_gone(g);
    return;
  }
  struct frame answer = {0};
  while (frame_next(&g->reader, &answer)) {
    if (!is_answer(&g->frame, &answer)) continue;
    on_answer(g, answer.status);
    return;
  }
}

static void send_frame(uv_timer_t *timer) {
  struct gateway *g = timer->data;
  uint8_t bytes[FRAME_BYTES];
  frame_encode(&g->frame, bytes);
  const uint64_t checked_ns = uv_hrtime();
  // Between this and write() there is nothing but the demo's freeze.
  const int err = g->rl != NULL ? redlock_check(g->rl, g->lock, NEED_MS) : 0;
  if (err != 0) {
    stop_job(g, redlock_strerror(err));
    return;
  }
  maybe_freeze(&g->options, &g->frame);
  if (write(g->fd, bytes, sizeof bytes) != (ssize_t)sizeof bytes) {
    device_gone(g);
  } else {
    log_frame(&g->options, &g->frame, checked_ns, uv_hrtime());
    uv_poll_start(&g->wire, UV_READABLE, on_wire);
    uv_timer_start(&g->timer, on_no_answer, ANSWER_MS, 0);
  }
}

static void begin_job(struct gateway *g) {
  waits_add(&g->tally.waits, uv_hrtime() - g->asked_ns);
  g->state = WORKING;
  if (g->rl != NULL) g->frame.token = redlock_fencing_token(g->rl, g->lock);  // 0 without --fencing
  send_frame(&g->timer);
}

static int acquire(struct gateway *g) {
  const redlock_resource_t resource = redlock_resource(g->options.resource);
  const redlock_acquire_opts_t opts = lock_options(&g->options);
  g->state = WAITING;
  return redlock_acquire_async(g->rl, &resource, 1, &opts, &g->lock);
}

static void not_acquired(struct gateway *g, const char *why) {
  note(g, "not acquired", why);
  ++g->tally.failed;
  think(g);
}

static void start_job(uv_timer_t *timer) {
  struct gateway *g = timer->data;
  if (g->stopping || all_jobs_done(&g->options, g->frame.job)) {
    finish(g);
    return;
  }
  g->frame = first_frame(&g->options, g->frame.job + 1);
  g->asked_ns = uv_hrtime();
  if (g->rl == NULL) {
    begin_job(g);
    return;
  }
  const int err = acquire(g);
  if (err != 0) not_acquired(g, redlock_strerror(err));  // nothing was started: no event follows
}

static void on_event(redlock_t *rl, const redlock_event_t *event, void *user) {
  struct gateway *g = user;
  char text[REDLOCK_TEXT_MAX + 1];
  (void)rl;
  redlock_describe(event, text, sizeof text);
  switch (event->type) {
    case REDLOCK_EV_ACQUIRED:
      if (g->state == WAITING) begin_job(g);
      break;
    case REDLOCK_EV_FAILED:  // held by others for too long, or too few masters answered: think, then try again
      if (g->state == WAITING) not_acquired(g, text);
      break;
    case REDLOCK_EV_AT_RISK:  // still ours: redlock_check() tells when to stop
      note(g, "not extended", text);
      break;
    case REDLOCK_EV_LOST:  // the next redlock_check() would say the same; there is no need to wait for it
      ++g->tally.lost;
      if (g->state == WORKING) stop_job(g, "the lock is lost");
      break;
    case REDLOCK_EV_CLOSED:
      close_handles(g);
      break;
    default: break;  // RENEWED, RELEASED, MASTER (the log tells of these), and what later versions add
  }
}

// ---- Setting up -------------------------------------------------------------------------------------------------

static bool create_client(struct gateway *g) {
  redlock_config_t *config = NULL;
  int err = new_config(&g->options, &config);
  if (err == 0) {
    redlock_config_set_event(config, on_event, g);
    err = redlock_create_on_loop(&g->rl, config, &g->loop);
    if (err == 0) err = commission(&g->options, g->rl);
  }
  if (err != 0) note(g, redlock_strerror(err), config != NULL ? redlock_config_error(config) : "");
  redlock_config_free(config);
  return err == 0;
}

static bool set_up(struct gateway *g) {
  signal(SIGPIPE, SIG_IGN);  // for our own write(); the library needs no help
  srandom(g->options.id);
  g->fd = bus_open(g->options.device);
  if (g->fd < 0) return perror(g->options.device), false;
  int err = uv_loop_init(&g->loop);
  if (err == 0) err = uv_timer_init(&g->loop, &g->timer);
  if (err == 0) err = uv_poll_init(&g->loop, &g->wire, g->fd);
  if (err == 0) err = uv_signal_init(&g->loop, &g->terminate);
  if (err == 0) err = uv_signal_init(&g->loop, &g->interrupt);
  if (err == 0) err = uv_signal_start(&g->terminate, on_signal, SIGTERM);
  if (err == 0) err = uv_signal_start(&g->interrupt, on_signal, SIGINT);
  if (err != 0) return note(g, "libuv", uv_strerror(err)), false;
  g->timer.data = g->wire.data = g->terminate.data = g->interrupt.data = g;
  return !g->options.lock || create_client(g);
}

int main(int argc, char **argv) {
  static struct gateway g;
  int exit_status = 1;
  if (!parse_options(argc, argv, &g.options, &exit_status)) return exit_status;
  if (!set_up(&g)) return 1;
  think(&g);
  uv_run(&g.loop, UV_RUN_DEFAULT);
  uv_loop_close(&g.loop);
  close(g.fd);
  print_tally(&g.options, &g.tally);
  return g.broken ? 1 : 0;
}
