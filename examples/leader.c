// SPDX-License-Identifier: MIT
//
// leader: of N gateways exactly one is active, the others stand by. This program is all N of them, as processes of
// their own, and whoever watches them: it ends one leader after the other, by turns politely (SIGTERM: it releases) and
// by force (SIGKILL: its keys have to expire), and prints how long the plant was without one.
//
//     leader MEMBERS TTL_MS URL...
//
// member() is what a gateway would copy.
#define _POSIX_C_SOURCE 200809L
#include <redlock/redlock.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MEMBERS_MAX = 16, NEED_MS = 50, STEP_MS = 5, LEAD_MS = 100, GRACE_MS = 500, FAR_TOO_LONG_S = 30 };

// ---- A member -----------------------------------------------------------------------------------------------------

static volatile sig_atomic_t stepping_down;

static void on_signal(int number) {
  (void)number;
  stepping_down = 1;
}

static void pause_ms(long ms) {
  const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, NULL);
}

static redlock_t *create(unsigned number, char **urls) {
  redlock_config_t *cfg = NULL;
  redlock_t *rl = NULL;
  char name[REDLOCK_CLIENT_NAME_MAX + 1];
  snprintf(name, sizeof name, "gateway-%u", number % 100);
  int err = redlock_config_new(&cfg);
  if (err == 0) err = redlock_config_set_str(cfg, "client_name", name);
  for (; err == 0 && *urls != NULL; ++urls) err = redlock_config_add_master(cfg, *urls);
  if (err == 0) redlock_config_set_log(cfg, redlock_log_stderr, NULL, 5);  // it says what a new site waits for
  if (err == 0) err = redlock_create(&rl, cfg);
  if (err != 0) fprintf(stderr, "%s: %s\n", redlock_strerror(err), cfg != NULL ? redlock_config_error(cfg) : "");
  redlock_config_free(cfg);
  return rl;
}

// Stands by until it leads; leads until it is told to step down, or may not lead any more.
static int member(int number, uint32_t ttl_ms, char **urls, int watcher) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);  // who watches may be ended first
  redlock_t *rl = create((unsigned)number, urls);
  if (rl == NULL) return 1;
  const redlock_resource_t role = redlock_resource("plant1/active-gateway");
  redlock_acquire_opts_t opts = REDLOCK_ACQUIRE_OPTS_INIT;
  opts.ttl_ms = ttl_ms;
  opts.wait_ms = REDLOCK_WAIT_FOREVER;
  redlock_lock_t lock;
  const int err = redlock_acquire(rl, &role, 1, &opts, &lock);
  if (err != 0) return fprintf(stderr, "gateway-%d: %s\n", number, redlock_strerror(err)), 1;
  signal(SIGTERM, on_signal);
  if (write(watcher, &number, sizeof number) != (ssize_t)sizeof number) return 1;
  while (!stepping_down && redlock_check(rl, lock, NEED_MS) == 0) pause_ms(STEP_MS);  // one step of the plant's work
  redlock_release(rl, lock);
  redlock_destroy(rl, GRACE_MS);
  return stepping_down ? 0 : 1;
}

// ---- Who watches --------------------------------------------------------------------------------------------------

static pid_t members[MEMBERS_MAX];

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int next_leader(int from) {
  int number = -1;
  return read(from, &number, sizeof number) == (ssize_t)sizeof number ? number : -1;
}

static int watch(int count, unsigned ttl_ms, int from) {
  int leader = next_leader(from);
  if (leader >= 0) printf("gateway-%d is the first\n", leader);
  for (int ended = 1; leader >= 0 && ended < count; ++ended) {
    const int by_force = ended % 2 == 0;
    pause_ms(LEAD_MS);
    const double begin = now_ms();
    kill(members[leader], by_force ? SIGKILL : SIGTERM);
    const int next = next_leader(from);
    if (next < 0) return -1;
    printf("gateway-%d %s: gateway-%d leads after %.1f ms%s", leader, by_force ? "was killed" : "stepped down", next,
           now_ms() - begin, by_force ? "" : "\n");
    if (by_force) printf(" (ttl %u ms)\n", ttl_ms);
    leader = next;
  }
  return leader;
}

int main(int argc, char **argv) {
  const int count = argc > 3 ? atoi(argv[1]) : 0;
  const unsigned ttl_ms = argc > 3 ? (unsigned)atoi(argv[2]) : 0;
  int pipe_ends[2];
  if (count < 2 || count > MEMBERS_MAX || ttl_ms < 100 || pipe(pipe_ends) != 0) {
    return fprintf(stderr, "usage: leader MEMBERS TTL_MS URL...   (2 to 16 members, a ttl from 100 ms)\n"), 1;
  }
  for (int i = 0; i < count; ++i) {  // before any client is created: a client does not live on in a child
    members[i] = fork();
    if (members[i] == 0) return close(pipe_ends[0]), member(i, ttl_ms, argv + 3, pipe_ends[1]);
  }
  close(pipe_ends[1]);
  alarm(FAR_TOO_LONG_S + (unsigned)count * ttl_ms / 1000);
  const int last = watch(count, ttl_ms, pipe_ends[0]);
  for (int i = 0; i < count; ++i) {
    if (members[i] > 0) kill(members[i], SIGTERM);
  }
  while (wait(NULL) > 0) continue;
  return last >= 0 ? 0 : 1;
}
