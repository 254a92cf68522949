// SPDX-License-Identifier: MIT
//
// poll_app: a program with a poll() loop of its own. The client is one more descriptor in it. Each line that comes on
// stdin is a command for the bus; they are carried out one after the other, each under the lock.
//
//     printf 'open\nclose\n' | poll_app URL...
//
// With uloop, sd-event or GLib it is the same: watch redlock_fd() for input, and call redlock_process() in the handler.
#define _POSIX_C_SOURCE 200809L
#include <poll.h>
#include <redlock/redlock.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { NEED_MS = 100, GRACE_MS = 500 };
enum state { IDLE, ASKED, CLOSING };

struct app {
  redlock_t *rl;
  redlock_lock_t lock;
  enum state state;
  int at_end;  // of stdin
  char line[128];
  unsigned size;
  unsigned done, failed;
};

// Without the newline, which the last one may lack.
static unsigned line_size(const struct app *app) {
  const char *end = memchr(app->line, '\n', app->size);
  return end != NULL ? (unsigned)(end - app->line) : app->size;
}

static void take_line(struct app *app) {
  const unsigned size = line_size(app), used = size < app->size ? size + 1 : size;
  app->size -= used;
  memmove(app->line, app->line + used, app->size);
}

static void print(const char *what, const redlock_event_t *event) {
  char text[REDLOCK_TEXT_MAX + 1];
  redlock_describe(event, text, sizeof text);
  fprintf(stderr, "%s: %s\n", what, text);
}

static void on_event(redlock_t *rl, const redlock_event_t *event, void *user) {
  struct app *app = user;
  switch (event->type) {
    case REDLOCK_EV_ACQUIRED:
      if (redlock_check(rl, app->lock, NEED_MS) == 0) {
        printf("%.*s\n", (int)line_size(app), app->line);  // here the bus would be written to
        ++app->done;
        take_line(app);
      }
      redlock_release_async(rl, app->lock);
      break;
    case REDLOCK_EV_WAITING: print("waiting", event); break;
    case REDLOCK_EV_FAILED:
      print("no bus", event);
      ++app->failed;
      take_line(app);
      app->state = IDLE;
      break;
    case REDLOCK_EV_LOST:
    case REDLOCK_EV_RELEASED: app->state = IDLE; break;
    default: break;
  }
}

static void ask(struct app *app) {
  const redlock_resource_t bus = redlock_resource("plant1/rs485-a");
  redlock_acquire_opts_t opts = REDLOCK_ACQUIRE_OPTS_INIT;
  opts.flags = REDLOCK_F_TELL_WAITING;
  opts.min_validity_ms = NEED_MS;
  if (redlock_acquire_async(app->rl, &bus, 1, &opts, &app->lock) == 0) app->state = ASKED;
}

static void read_stdin(struct app *app) {
  const ssize_t n = read(0, app->line + app->size, sizeof app->line - app->size);
  if (n > 0) app->size += (unsigned)n;
  if (n <= 0) app->at_end = 1;
}

static int has_line(const struct app *app) {
  return app->size == sizeof app->line || line_size(app) < app->size || (app->at_end && app->size > 0);
}

static void loop(struct app *app) {
  for (;;) {
    if (app->state == IDLE && has_line(app)) ask(app);
    if (app->state == IDLE && app->at_end && redlock_close_async(app->rl, GRACE_MS) == 0) app->state = CLOSING;
    struct pollfd waits[2] = {{redlock_fd(app->rl), POLLIN, 0}, {0, POLLIN, 0}};
    const int want_stdin = !app->at_end && app->size < sizeof app->line;
    if (poll(waits, want_stdin ? 2 : 1, redlock_timeout_ms(app->rl)) < 0) continue;
    if (want_stdin && waits[1].revents != 0) read_stdin(app);
    if (redlock_process(app->rl) == REDLOCK_E_CLOSED) return;  // callbacks come from here and from nowhere else
  }
}

int main(int argc, char **argv) {
  static struct app app;
  redlock_config_t *cfg = NULL;
  int err = redlock_config_new(&cfg);
  for (int i = 1; err == 0 && i < argc; ++i) err = redlock_config_add_master(cfg, argv[i]);
  if (err == 0) {
    redlock_config_set_event(cfg, on_event, &app);
    redlock_config_set_log(cfg, redlock_log_stderr, NULL, 5);
    err = redlock_create_polled(&app.rl, cfg);
  }
  if (err != 0) fprintf(stderr, "%s: %s\n", redlock_strerror(err), cfg != NULL ? redlock_config_error(cfg) : "");
  redlock_config_free(cfg);
  if (err != 0) return 1;
  loop(&app);
  fprintf(stderr, "%u commands done, %u failed\n", app.done, app.failed);
  return app.failed == 0 ? 0 : 1;
}
