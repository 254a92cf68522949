/* SPDX-License-Identifier: MIT
 *
 * A whole gateway program, for its weight: gateway RESOURCE CONFIG.json takes the lock, asks redlock_check() before it
 * would touch the device, lets go and ends. Exit 0: it had the lock and every delete was answered. With
 * -DMASTERS_BY_URL it is gateway RESOURCE URL..., which needs neither files nor JSON.
 */
#include <redlock/redlock.h>
#include <stdio.h>
#include <uv.h>

static int touched, unpaid = 1;

static void on_event(redlock_t *rl, const redlock_event_t *event, void *user) {
  (void)user;
  switch (event->type) {
    case REDLOCK_EV_ACQUIRED:
      touched = redlock_check(rl, event->lock, 100) == REDLOCK_OK;
      redlock_release_async(rl, event->lock);
      break;
    case REDLOCK_EV_FAILED:
      fputs(redlock_strerror(event->err), stderr);
      redlock_close_async(rl, 1000);
      break;
    case REDLOCK_EV_RELEASED:
    case REDLOCK_EV_LOST:
      redlock_close_async(rl, 1000);
      break;
    case REDLOCK_EV_CLOSED:
      unpaid = event->failed != 0;
      break;
    default:
      break;
  }
}

#ifdef MASTERS_BY_URL
static int configure(redlock_config_t *cfg, char **urls) {
  int err = 0;
  for (; err == 0 && *urls != NULL; ++urls) err = redlock_config_add_master(cfg, *urls);
  return err;
}
#else
static int configure(redlock_config_t *cfg, char **paths) { return redlock_config_load_file(cfg, paths[0]); }
#endif

int main(int argc, char **argv) {
  redlock_config_t *cfg;
  redlock_t *rl;
  redlock_lock_t lock;
  redlock_resource_t bus;
  uv_loop_t loop;
  redlock_acquire_opts_t opts = REDLOCK_ACQUIRE_OPTS_INIT;
  if (argc < 3 || uv_loop_init(&loop) != 0 || redlock_config_new(&cfg) != 0) return 2;
  redlock_config_set_event(cfg, on_event, NULL);
  if (configure(cfg, argv + 2) != 0 || redlock_create_on_loop(&rl, cfg, &loop) != 0) {
    fputs(redlock_config_error(cfg), stderr);
    return 2;
  }
  redlock_config_free(cfg);
  redlock_commission(rl); /* of a new site */
  bus = redlock_resource(argv[1]);
  opts.wait_ms = 10000;
  if (redlock_acquire_async(rl, &bus, 1, &opts, &lock) != 0) return 2;
  uv_run(&loop, UV_RUN_DEFAULT);
  return touched && !unpaid && uv_loop_close(&loop) == 0 ? 0 : 1;
}
