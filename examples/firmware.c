// SPDX-License-Identifier: MIT
//
// firmware: a gateway's service, to copy. It shares a serial device with other gateways. It needs no loop: the client
// has a small thread of its own, and redlock_acquire() blocks. firmware.service and firmware.init start it.
//
//     firmware [--jobs N] DEVICE CONFIG.json | URL...
//
// What to copy, and what to put in its place:
//   transact()   one request and its answer. redlock_check() stands right before the write, with the longest time that
//                a transaction takes; nothing else makes a late write impossible.
//   job()        what belongs together. A job that is broken off begins anew under the next lock: another gateway may
//                have changed the device in between.
//   LOST         no device is touched any more. The other gateway may use it already, so nothing is undone there. A
//                safe state that must be reached without a lock is the device's own task, after a silence.
//   full stop    nobody can lock: too few masters, or masters of another site. The service stays, says why each minute,
//                and goes on by itself. A restart would help nothing, so the watchdog is fed meanwhile.
//   left behind  a change of masters is done, and its own masters say so: the service ends, starts again, and reads the
//                file that is there then. Nobody has to start it by hand.
//   watchdog     is fed by the loop that does the jobs, and by nothing else: a driver that hangs ends the service, and
//                the lock ends by its ttl.
//   SIGTERM      ends the transaction at hand, gives the lock back, and leaves within WAIT_MS + NEED_MS + GRACE_MS.
// Exit status: 0 stopped, 78 the configuration is wrong, 80 left behind by a change of masters, 1 anything else.
#define _DEFAULT_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <redlock/redlock.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum {
  ANSWER_MS = 200,             // the device has answered by then, or does not
  NEED_MS = ANSWER_MS + 100,   // a transaction at its longest, and then some
  TRANSACTIONS = 5,            // of one job
  SETTLE_MS = 20,              // between them: the device's own time
  PAUSE_MS = 100,              // between jobs: the others want the device, too
  TTL_MS = 5000,               // a gateway that dies keeps the device for so long
  WAIT_MS = 2000,              // asks again after that, so that a signal is noticed and the watchdog fed
  GRACE_MS = 500,              // for the last deletes to be answered
  TELL_AGAIN_MS = 60000,
  EX_CONFIG = 78,
  EX_LEFT = 80
};

static volatile sig_atomic_t stopping;

static void on_signal(int number) { stopping = number; }

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void pause_ms(long ms) {
  const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, NULL);  // a signal ends it early
}

// sd_notify(3) without its library. Without systemd there is no NOTIFY_SOCKET, and nothing is done.
static void notify(const char *state) {
  const char *path = getenv("NOTIFY_SOCKET");
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  if (path == NULL || strlen(path) >= sizeof to.sun_path) return;
  strcpy(to.sun_path, path);
  if (*path == '@') to.sun_path[0] = '\0';  // an abstract name
  const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&to, size);
  if (fd >= 0) close(fd);
}

// ---- The device -----------------------------------------------------------------------------------------------------

static int open_device(const char *path) {
  const int fd = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
  struct termios line;
  if (fd < 0 || tcgetattr(fd, &line) != 0) return fd;  // no terminal: a trial
  cfmakeraw(&line);
  cfsetspeed(&line, B19200);
  tcsetattr(fd, TCSANOW, &line);
  return fd;
}

// One request and its answer. 0, an error of redlock_check(), or REDLOCK_E_SYSTEM: the device did not answer.
static int transact(const redlock_t *rl, redlock_lock_t lock, int device) {
  static const unsigned char request[] = {0x11, 0x03, 0x00, 0x01, 0x00, 0x01, 0xd7, 0x5a};
  unsigned char answer[7];
  tcflush(device, TCIFLUSH);  // what the others have said to each other
  const int err = redlock_check(rl, lock, NEED_MS);  // nothing between this and the device
  if (err != 0) return err;
  if (write(device, request, sizeof request) != (ssize_t)sizeof request) return REDLOCK_E_SYSTEM;
  const int64_t end = now_ms() + ANSWER_MS;
  size_t got = 0;
  for (int64_t left = ANSWER_MS; left > 0 && got < sizeof answer; left = end - now_ms()) {  // a signal ends no exchange
    struct pollfd input = {.fd = device, .events = POLLIN};
    if (poll(&input, 1, (int)left) <= 0) continue;
    const ssize_t n = read(device, answer + got, sizeof answer - got);
    if (n <= 0) return REDLOCK_E_SYSTEM;
    got += (size_t)n;
  }
  return got == sizeof answer ? 0 : REDLOCK_E_SYSTEM;  // a driver would check the answer, too
}

static int job(const redlock_t *rl, redlock_lock_t lock, int device) {
  int err = 0;
  for (int i = 0; err == 0 && !stopping && i < TRANSACTIONS; ++i) {
    err = transact(rl, lock, device);
    if (err == 0) pause_ms(SETTLE_MS);
  }
  return err;
}

// ---- The service ----------------------------------------------------------------------------------------------------

// On the client's thread: only say what happens. Whether the device may be used, redlock_check() alone decides.
static void on_event(redlock_t *rl, const redlock_event_t *event, void *user) {
  char text[REDLOCK_TEXT_MAX + 1];
  (void)rl, (void)user;
  if (event->type != REDLOCK_EV_LOST && event->type != REDLOCK_EV_AT_RISK) return;
  redlock_describe(event, text, sizeof text);
  fprintf(stderr, "<4>%s\n", text);
}

// The same cause is told once a minute. An operator sees in it a full stop, and how long it lasts.
static void tell(const redlock_report_t *report) {
  static int32_t cause;
  static int64_t told;
  if (report->cause == cause && now_ms() - told < TELL_AGAIN_MS) return;
  cause = report->cause;
  told = now_ms();
  fprintf(stderr, "<%d>%s\n", report->err == REDLOCK_E_LOCKED ? 6 : 4, report->text);
}

// True: a change of masters has left this client behind, which will never get a lock again.
static int is_left(const redlock_report_t *report) {
  return report->cause == REDLOCK_CAUSE_NEVER && report->master_err == REDLOCK_E_LEFT;
}

static int serve(redlock_t *rl, int device, long jobs) {
  const redlock_resource_t bus = redlock_resource("plant1/rs485-a");
  redlock_report_t report = REDLOCK_REPORT_INIT;
  redlock_acquire_opts_t opts = REDLOCK_ACQUIRE_OPTS_INIT;
  opts.ttl_ms = TTL_MS;
  opts.wait_ms = WAIT_MS;
  opts.min_validity_ms = NEED_MS;
  opts.report = &report;
  long done = 0;
  int status = 0;
  notify("READY=1");
  while (!stopping && status == 0 && (jobs == 0 || done < jobs)) {
    redlock_lock_t lock;
    notify("WATCHDOG=1");
    if (redlock_acquire(rl, &bus, 1, &opts, &lock) != 0) {
      tell(&report);
      if (is_left(&report)) status = EX_LEFT;
    } else {
      const int err = job(rl, lock, device);
      redlock_release(rl, lock);  // of a lost lock: does nothing
      done += err == 0;
      if (err != 0) fprintf(stderr, "<4>job broken off: %s\n", redlock_strerror(err));
    }
    pause_ms(PAUSE_MS);
  }
  notify("STOPPING=1");
  printf("%ld jobs done\n", done);
  return status;
}

static int configure(redlock_config_t *cfg, char **arguments) {
  redlock_config_set_event(cfg, on_event, NULL);
  int err = 0;
  for (; err == 0 && *arguments != NULL; ++arguments) {
    err = strstr(*arguments, "://") != NULL ? redlock_config_add_master(cfg, *arguments)
                                            : redlock_config_load_file(cfg, *arguments);
  }
  return err;
}

int main(int argc, char **argv) {
  const long jobs = argc > 2 && strcmp(argv[1], "--jobs") == 0 ? atol(argv[2]) : 0;  // 0: without end
  char **arguments = argv + (jobs != 0 ? 3 : 1);
  struct sigaction action = {.sa_handler = on_signal};
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGINT, &action, NULL);
  if (*arguments == NULL) return fputs("firmware [--jobs N] DEVICE CONFIG.json | URL...\n", stderr), EX_CONFIG;
  const int device = open_device(*arguments);
  if (device < 0) return fprintf(stderr, "<3>%s: %s\n", *arguments, strerror(errno)), 1;

  redlock_config_t *cfg = NULL;
  redlock_t *rl = NULL;
  int err = redlock_config_new(&cfg);
  if (err == 0) err = configure(cfg, arguments + 1);
  if (err == REDLOCK_E_SYSTEM) err = REDLOCK_E_CONFIG;  // the file cannot be read
  if (err == 0) err = redlock_create(&rl, cfg);
  if (err != 0) fprintf(stderr, "<3>%s: %s\n", redlock_strerror(err), cfg != NULL ? redlock_config_error(cfg) : "");
  redlock_config_free(cfg);
  const int is_final = err == REDLOCK_E_CONFIG || err == REDLOCK_E_NOTSUP || err == REDLOCK_E_TLS_FILE;
  if (err != 0) return is_final ? EX_CONFIG : 1;
  const int status = serve(rl, device, jobs);
  redlock_destroy(rl, GRACE_MS);
  return status;
}
