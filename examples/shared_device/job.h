// SPDX-License-Identifier: MIT
//
// Job: what both gateways do alike, whichever way they wait: how long a job is, what they ask the lock for, and what
// they print at the end. The steps of a job are in gateway.c and blocking_gateway.c.
#ifndef EXAMPLES_SHARED_DEVICE_JOB_H
#define EXAMPLES_SHARED_DEVICE_JOB_H

#include <redlock/redlock.h>
#include <signal.h>
#include <string.h>

#include "bus.h"
#include "options.h"
#include "waits.h"

enum {
  FRAMES_PER_JOB = 4,
  GAP_MS = 2,            // between the answer to a frame and the next frame
  ANSWER_MS = 100,       // the device has answered by then, or not at all
  CLOSE_GRACE_MS = 300,  // for the last deletes to be answered
  // What a frame needs: should it be the last that we may send, then the device must have forgotten the command before
  // anybody else can get the lock. The 50 ms are for us and the wire, to get the frame there.
  NEED_MS = BUS_SILENCE_MS + 50,
};

struct tally {
  unsigned intact, ruined, failed, lost;
  struct waits waits;
};

static inline struct frame first_frame(const struct options *options, uint32_t job) {
  return (struct frame){.gateway = (uint8_t)options->id, .count = FRAMES_PER_JOB, .job = job};
}

static inline bool all_jobs_done(const struct options *options, uint32_t job) {
  return options->jobs > 0 && job == options->jobs;
}

// Late answers, and on a pty those to other gateways, are passed over.
static inline bool is_answer(const struct frame *asked, const struct frame *answer) {
  return answer->gateway == asked->gateway && answer->job == asked->job && answer->index == asked->index;
}

// Half to one and a half of the mean, so that gateways do not walk in step.
static inline uint64_t think_time_ms(const struct options *options) {
  const uint64_t mean = options->think_ms;
  return mean / 2 + (uint64_t)random() % (mean + 1);
}

// What a scheduler, a slow flash or a debugger may do to any program at any instruction, done here where it hurts
// most. A gateway of yours has no such line.
static inline void maybe_freeze(const struct options *options, const struct frame *frame) {
  const uint32_t every = options->freeze_every;
  if (every > 0 && (frame->job - 1) % every == 0 && frame->index == FRAMES_PER_JOB / 2) raise(SIGSTOP);
}

static inline void job_note(const struct options *options, const struct frame *frame, const char *what,
                            const char *why) {
  fprintf(stderr, "gateway %u: job %u: %s: %s\n", options->id, frame->job, what, why);
}

// CLOCK_MONOTONIC in nanoseconds, as in the device's log. Written behind the frame: between the check and the frame
// there is no time for it.
static inline void log_frame(const struct options *options, const struct frame *frame, uint64_t checked_ns,
                             uint64_t written_ns) {
  if (options->log == NULL) return;
  fprintf(options->log, "checked %llu %u %lu %u\nwritten %llu %u %lu %u\n", (unsigned long long)checked_ns,
          frame->gateway, (unsigned long)frame->job, frame->index, (unsigned long long)written_ns, frame->gateway,
          (unsigned long)frame->job, frame->index);
  fflush(options->log);
}

// The lock is about to be given back.
static inline void log_over(const struct options *options, const struct frame *frame, uint64_t ns) {
  if (options->log == NULL) return;
  fprintf(options->log, "over %llu %u %lu\n", (unsigned long long)ns, frame->gateway, (unsigned long)frame->job);
  fflush(options->log);
}

static inline redlock_acquire_opts_t lock_options(const struct options *options) {
  redlock_acquire_opts_t opts = REDLOCK_ACQUIRE_OPTS_INIT;
  opts.ttl_ms = options->ttl_ms;
  opts.wait_ms = (int32_t)options->wait_ms;
  opts.retry_delay_ms = options->retry_ms;
  opts.min_validity_ms = NEED_MS;
  if (options->fencing) opts.flags |= REDLOCK_F_FENCING;
  return opts;
}

// *config is the caller's to free, also after an error.
static inline int new_config(const struct options *options, redlock_config_t **config) {
  char name[REDLOCK_CLIENT_NAME_MAX + 1], *rest = options->masters;
  snprintf(name, sizeof name, "gateway-%u", options->id);
  int err = redlock_config_new(config);
  if (err == 0) redlock_config_set_log(*config, redlock_log_stderr, NULL, 5);
  if (err == 0) err = redlock_config_set_str(*config, "client_name", name);
  if (err == 0 && options->config != NULL) err = redlock_config_load_file(*config, options->config);
  while (err == 0 && rest != NULL && *rest != '\0') err = redlock_config_add_master(*config, strsep(&rest, ","));
  return err;
}

// --commission is the operator's word about this moment: a call, and no setting that each start would repeat.
static inline int commission(const struct options *options, redlock_t *rl) {
  return options->commission ? redlock_commission(rl) : 0;
}

static inline void print_tally(const struct options *options, struct tally *tally) {
  printf("{\"gateway\":%u,\"lock\":%s,\"jobs\":%u,\"ruined\":%u,\"failed\":%u,\"lost\":%u,", options->id,
         options->lock ? "true" : "false", tally->intact, tally->ruined, tally->failed, tally->lost);
  waits_print_json(&tally->waits);
  puts("}");
  free(tally->waits.us);
}

#endif  // EXAMPLES_SHARED_DEVICE_JOB_H
