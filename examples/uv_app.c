// SPDX-License-Identifier: MIT
//
// uv_app: a program that lives on a libuv loop already, and 35 lines more. It reads a sensor by a timer; every fifth
// reading it wants the bus, and writes what it has while the lock is its own. Nothing here ever blocks.
//
//     uv_app READINGS URL...
#include <redlock/redlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

enum { READ_EVERY_MS = 10, READINGS_PER_REPORT = 5, NEED_MS = 100, GRACE_MS = 500 };

struct app {
  uv_timer_t sensor;
  redlock_t *rl;
  redlock_lock_t lock;
  int wanted;  // an acquire is under way
  long left, unsent, sent;
};

// ---- The lock ----------------------------------------------------------------------------------------------------

static void write_report(struct app *app) {
  if (redlock_check(app->rl, app->lock, NEED_MS) == 0) {  // the authority; the event may have come late
    app->sent += app->unsent;                              // here the bus would be written to
    app->unsent = 0;
  }
  redlock_release_async(app->rl, app->lock);
}

static void finish_when_done(struct app *app) {
  if (app->left == 0 && !app->wanted) redlock_close_async(app->rl, GRACE_MS);
}

static void print(const char *what, const redlock_event_t *event) {
  char text[REDLOCK_TEXT_MAX + 1];
  redlock_describe(event, text, sizeof text);
  printf("%s: %s\n", what, text);
}

static void on_event(redlock_t *rl, const redlock_event_t *event, void *user) {
  struct app *app = user;
  (void)rl;
  switch (event->type) {
    case REDLOCK_EV_ACQUIRED: write_report(app); break;
    case REDLOCK_EV_WAITING: print("waiting", event); break;
    case REDLOCK_EV_FAILED: print("no bus", event); /* fall through */
    case REDLOCK_EV_LOST:
    case REDLOCK_EV_RELEASED:
      app->wanted = 0;
      finish_when_done(app);
      break;
    case REDLOCK_EV_CLOSED: uv_close((uv_handle_t *)&app->sensor, NULL); break;
    default: break;
  }
}

static void want_bus(struct app *app) {
  const redlock_resource_t bus = redlock_resource("plant1/rs485-a");
  redlock_acquire_opts_t opts = REDLOCK_ACQUIRE_OPTS_INIT;
  opts.flags = REDLOCK_F_TELL_WAITING;
  opts.min_validity_ms = NEED_MS;
  app->wanted = redlock_acquire_async(app->rl, &bus, 1, &opts, &app->lock) == 0;
}

// ---- The program as it was ---------------------------------------------------------------------------------------

static void on_sensor(uv_timer_t *timer) {
  struct app *app = timer->data;
  if (app->left > 0) ++app->unsent;
  if (app->left > 0 && --app->left == 0) uv_timer_stop(timer);
  if (!app->wanted && (app->unsent >= READINGS_PER_REPORT || app->left == 0)) want_bus(app);
}

static int create(struct app *app, char **urls) {
  redlock_config_t *cfg = NULL;
  int err = redlock_config_new(&cfg);
  for (; err == 0 && *urls != NULL; ++urls) err = redlock_config_add_master(cfg, *urls);
  if (err == 0) {
    redlock_config_set_event(cfg, on_event, app);
    redlock_config_set_log(cfg, redlock_log_stderr, NULL, 5);
    err = redlock_create_on_loop(&app->rl, cfg, uv_default_loop());
  }
  if (err != 0) printf("%s: %s\n", redlock_strerror(err), cfg != NULL ? redlock_config_error(cfg) : "");
  redlock_config_free(cfg);
  return err;
}

int main(int argc, char **argv) {
  static struct app app;
  if (argc < 3 || (app.left = atol(argv[1])) <= 0) return fputs("usage: uv_app READINGS URL...\n", stderr), 2;
  if (create(&app, argv + 2) != 0) return 1;
  app.sensor.data = &app;
  uv_timer_init(uv_default_loop(), &app.sensor);
  uv_timer_start(&app.sensor, on_sensor, READ_EVERY_MS, READ_EVERY_MS);
  uv_run(uv_default_loop(), UV_RUN_DEFAULT);
  uv_loop_close(uv_default_loop());
  printf("%ld readings written, %ld not\n", app.sent, app.unsent);
  return app.unsent == 0 ? 0 : 1;
}
