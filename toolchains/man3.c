// SPDX-License-Identifier: MIT
//
// Examples of man pages that no program of examples/ has: man3.py cuts them from here, test/compile/man3.py compiles
// them.
#include <redlock/redlock.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

// Renewed by hand, between steps: the lock was acquired with REDLOCK_F_NO_RENEW.
static int work(redlock_t *rl, redlock_lock_t lock, int (*step)(void), uint32_t step_ms) {
  for (;;) {
    int err = redlock_check(rl, lock, step_ms);
    if (err != 0 || step() == 0) return err;
    err = redlock_extend(rl, lock, 0);
    if (err != 0) printf("not renewed: %s\n", redlock_strerror(err));  // redlock_check() knows what is left
  }
}

// The device keeps high_water, and refuses the write of a holder that was paused for too long.
static int write_register(uint64_t *high_water, uint64_t token, int value, volatile int *reg) {
  const int err = redlock_fence_check(high_water, token);
  if (err == 0) *reg = value;
  return err;
}

// The gateway's side: the token goes with each write.
static int send_value(const redlock_t *rl, redlock_lock_t lock, int value, int (*send)(uint64_t token, int value)) {
  const int err = redlock_check(rl, lock, 100);
  return err == 0 ? send(redlock_fencing_token(rl, lock), value) : err;
}

static void print_status(const redlock_t *rl) {
  redlock_status_t status = {.size = sizeof status};
  if (redlock_status(rl, &status) != 0) return;
  printf("%u of %u masters vote, %u locks held\n", status.masters_up, status.masters, status.locks_held);
  for (uint32_t i = 0; i < status.masters; ++i) {
    redlock_master_status_t master = {.size = sizeof master};
    if (redlock_master_status(rl, i, &master) == 0 && master.state != REDLOCK_MASTER_UP)
      printf("%s: %s\n", master.name, redlock_strerror(master.err));
  }
}

static void print_json(const redlock_t *rl) {
  size_t size = 0;
  if (redlock_status_json(rl, NULL, &size) != REDLOCK_E_TOOSMALL) return;
  char *text = malloc(size);
  if (text != NULL && redlock_status_json(rl, text, &size) == 0) puts(text);
  free(text);
}
