// SPDX-License-Identifier: MIT
//
// deadline_guard: what a program can do about a pause between redlock_check() and the write, when the device cannot
// compare fencing tokens. A timer of the kernel's is set to the end of the lock's validity, and its signal goes to the
// very thread that writes. A thread that was stopped in between, for whatever reason and however long, finds the signal
// pending when it goes on, and runs the handler before its next instruction: the handler takes the device away from the
// program, and the write meets a dead end.
//
// Its limit: a system call that was already entered is not stopped. A write() that was stopped inside the kernel goes
// on there when the thread does; what it has handed to the driver leaves, but for what tcflush() can still take back. A
// thread without the timer's signal (it is directed to one) may be past its own check as well: a timer for each that
// writes. And the time at which the signal is handled is as good as the kernel's timers. Where the device can compare a
// number, a fencing token has none of these limits (shared_device/device.c --check-tokens).
//
// The library installs no handler, ever: signals, timers and the device belong to the application.
//
//     deadline_guard [--no-guard] TRIES FILE URL...
//
// tries it out: the device is a file, and a second process stops the first (SIGSTOP) each time it has checked, lets the
// lock run out, lets it go on, and looks whether the file has grown.
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <redlock/redlock.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id  // glibc has the field, but no name for it
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define NS_PER_MS INT64_C(1000000)

static struct timespec timespec_of(int64_t ns) {
  const struct timespec t = {(time_t)(ns / (1000 * NS_PER_MS)), (long)(ns % (1000 * NS_PER_MS))};
  return t;
}

// ---- The guard: this is what to copy ----------------------------------------------------------------------------

static volatile sig_atomic_t device = -1;    // the descriptor that is taken away
static volatile sig_atomic_t dead_end = -1;  // what stands there afterwards: every write to it fails
static timer_t deadline_timer;

// dup2() and not close(): a closed number is given to whatever is opened next, by any thread, and the late write would
// go there. tcflush() takes back what a serial line has not sent yet; anything else says ENOTTY. Both may be called
// here.
static void on_deadline(int number) {
  const int err = errno;
  (void)number;
  tcflush(device, TCOFLUSH);
  dup2(dead_end, device);
  errno = err;
}

// Once, on the thread that writes. 0, or -1: errno.
static int guard_install(void) {
  struct sigaction action = {.sa_handler = on_deadline};  // no SA_RESTART: a write that waits for the line ends
  struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};
  event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
  dead_end = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (dead_end < 0 || sigaction(SIGRTMIN, &action, NULL) != 0) return -1;
  return timer_create(CLOCK_BOOTTIME, &event, &deadline_timer);  // the clock of redlock_deadline_ns()
}

// Anew before each check: the deadline is later after RENEWED. A time that has passed fires at once; 0 disarms.
static void guard_set(int64_t ns) {
  const struct itimerspec when = {.it_value = timespec_of(ns)};
  timer_settime(deadline_timer, TIMER_ABSTIME, &when, NULL);
}

// ---- A gateway that uses it ---------------------------------------------------------------------------------------

enum {
  TTL_MS = 100,
  NEED_MS = 20,     // of a transaction, from its first byte until the device is at rest
  COMPOSE_MS = 20,  // between the check and the write, so that this gateway can be stopped there
  LATE_MS = 10,     // after the end of the lock it goes on
};

enum outcome { WRITTEN = 1, REFUSED, NOT_CHECKED };

struct gateway {
  redlock_t *rl;
  bool guarded;
  const char *file;
  int told;  // whoever stops us reads here, and lets us go on
};

static int64_t boot_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_BOOTTIME, &t);
  return (int64_t)t.tv_sec * 1000 * NS_PER_MS + t.tv_nsec;
}

static void tell(const struct gateway *g, int64_t what) {
  if (write(g->told, &what, sizeof what) != (ssize_t)sizeof what) _exit(1);
}

// For a try: whoever stops us may be slow, and has to see what came of the one before.
static void wait_for_leave(const struct gateway *g) {
  char leave;
  if (read(g->told, &leave, 1) != 1) _exit(1);
}

// The device may have been taken away under the lock before. Its number stays, so that the handler knows it.
static bool open_device(const char *file) {
  const int fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || device < 0) return (device = fd) >= 0;
  const bool opened = dup2(fd, device) >= 0;
  return close(fd) == 0 && opened;
}

static void compose(char *frame, size_t size) {
  const int64_t until = boot_ns() + COMPOSE_MS * NS_PER_MS;
  for (unsigned i = 0; boot_ns() < until; ++i) frame[i % size] = (char)('a' + i % 26);
}

static enum outcome transact(const struct gateway *g, redlock_lock_t lock) {
  char frame[16] = {0};
  const int64_t deadline = redlock_deadline_ns(g->rl, lock);
  if (deadline <= 0) return NOT_CHECKED;  // held no more; and 0 would disarm
  if (g->guarded) guard_set(deadline - NEED_MS * NS_PER_MS);
  if (redlock_check(g->rl, lock, NEED_MS) != 0) return NOT_CHECKED;
  tell(g, deadline);
  compose(frame, sizeof frame);
  return write(device, frame, sizeof frame) == (ssize_t)sizeof frame ? WRITTEN : REFUSED;
}

static void one_try(const struct gateway *g) {
  const redlock_resource_t bus = redlock_resource("plant1/rs485-a");
  redlock_acquire_opts_t opts = REDLOCK_ACQUIRE_OPTS_INIT;
  redlock_lock_t lock;
  opts.ttl_ms = TTL_MS;
  opts.min_validity_ms = 2 * NEED_MS;
  opts.flags = REDLOCK_F_NO_RENEW;
  if (redlock_acquire(g->rl, &bus, 1, &opts, &lock) != 0) return;  // the log says why
  if (!open_device(g->file)) _exit(1);
  const enum outcome outcome = transact(g, lock);
  if (g->guarded) guard_set(0);
  redlock_release(g->rl, lock);
  if (outcome == NOT_CHECKED) return;
  tell(g, outcome);
  wait_for_leave(g);
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

static int gateway(struct gateway *g, long tries, char **urls) {
  if (g->guarded && guard_install() != 0) return perror("deadline_guard"), 1;
  if (create(&g->rl, urls) != 0) return 1;
  wait_for_leave(g);
  while (tries-- > 0) one_try(g);
  return redlock_destroy(g->rl, 500) == 0 ? 0 : 1;
}

// ---- The trial ----------------------------------------------------------------------------------------------------

struct tally {
  long tries, in_time, late, refused;
};

static int64_t size_of(const char *file) {
  struct stat status;
  return stat(file, &status) == 0 ? (int64_t)status.st_size : 0;
}

// One try of the gateway's. False: it has ended.
static bool stop_between(pid_t pid, int gateway, const char *file, struct tally *tally) {
  int64_t deadline, outcome;
  int status;
  const int64_t before = size_of(file);
  if (send(gateway, "", 1, MSG_NOSIGNAL) != 1) return false;
  if (read(gateway, &deadline, sizeof deadline) != (ssize_t)sizeof deadline) return false;
  if (kill(pid, SIGSTOP) != 0 || waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status)) return false;
  const struct timespec late = timespec_of(deadline + LATE_MS * NS_PER_MS);
  while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &late, NULL) == EINTR) continue;
  const int64_t stopped = size_of(file);
  if (kill(pid, SIGCONT) != 0 || read(gateway, &outcome, sizeof outcome) != (ssize_t)sizeof outcome) return false;
  ++tally->tries;
  tally->in_time += stopped > before;
  tally->late += size_of(file) > stopped;
  tally->refused += outcome == REFUSED;
  return true;
}

int main(int argc, char **argv) {
  const int first = argc > 1 && strcmp(argv[1], "--no-guard") == 0 ? 2 : 1;
  const long tries = argc > first ? atol(argv[first]) : 0;
  int ends[2], status = 1;
  if (argc < first + 3 || tries <= 0) return fputs("deadline_guard [--no-guard] TRIES FILE URL...\n", stderr), 2;
  const char *file = argv[first + 1];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return perror("socketpair"), 1;
  const pid_t pid = fork();  // before there is a client: a child may not use its parent's
  if (pid == 0) {
    struct gateway g = {.guarded = first == 1, .file = file, .told = ends[1]};
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody would thaw it
    close(ends[0]);
    return gateway(&g, tries, argv + first + 2);
  }
  close(ends[1]);
  struct tally tally = {0, 0, 0, 0};
  while (pid > 0 && stop_between(pid, ends[0], file, &tally)) continue;
  close(ends[0]);  // it waits for us no longer
  if (pid < 0 || waitpid(pid, &status, 0) != pid) return perror("deadline_guard"), 1;
  printf("%s: stopped %ld times between check and write; %ld writes were in time all the same, %ld late, %ld refused\n",
         first == 1 ? "with the guard" : "without the guard", tally.tries, tally.in_time, tally.late, tally.refused);
  return status == 0 ? 0 : 1;
}
