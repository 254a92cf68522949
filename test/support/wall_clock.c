// SPDX-License-Identifier: MIT
//
// A library for LD_PRELOAD that steps the wall clock of one process: to every reading it adds the microseconds that
// stand, as a 64-bit integer, at the start of the file that REDLOCK_WALL_CLOCK names. Whoever started the process
// changes them there while it runs. It is put under redis-server by test_server_clock.cpp.
//
// REDLOCK_RATE_PPM lets CLOCK_MONOTONIC_RAW run off rate by so many millionths, as a crystal does.
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const _Atomic int64_t *step;  // NULL: the clock is left alone
static int64_t rate_ppm;

__attribute__((constructor)) static void attach(void) {
  const char *rate = getenv("REDLOCK_RATE_PPM");
  if (rate != NULL) rate_ppm = strtoll(rate, NULL, 10);
  const char *path = getenv("REDLOCK_WALL_CLOCK");
  const int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (fd < 0) return;
  void *shared = mmap(NULL, sizeof *step, PROT_READ, MAP_SHARED, fd, 0);
  if (shared != MAP_FAILED) step = shared;
  close(fd);
}

int clock_gettime(clockid_t id, struct timespec *out) {
  const int result = (int)syscall(SYS_clock_gettime, id, out);
  if (result == 0 && id == CLOCK_MONOTONIC_RAW && rate_ppm != 0) {
    const int64_t ns = (int64_t)out->tv_sec * 1000000000 + out->tv_nsec, off = ns / 1000000 * rate_ppm;
    out->tv_sec = (time_t)((ns + off) / 1000000000);
    out->tv_nsec = (long)((ns + off) % 1000000000);
  }
  if (result != 0 || step == NULL || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE)) return result;
  const int64_t us = (int64_t)out->tv_sec * 1000000 + out->tv_nsec / 1000 + atomic_load(step);
  out->tv_sec = (time_t)(us / 1000000);
  out->tv_nsec = (long)(us % 1000000) * 1000;
  return 0;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
  struct timespec now;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  *out = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

time_t time(time_t *out) {
  struct timespec now = {0, 0};
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != NULL) *out = now.tv_sec;
  return now.tv_sec;
}
