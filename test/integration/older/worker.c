/* SPDX-License-Identifier: MIT
 *
 * A gateway that test/integration/interop/foreign.hpp talks to, in the words of every version of redlock.h since 0.1:
 * the test compiles it with the header of an earlier version and with ours. Its arguments are a letter and a
 * configuration. Each line that it reads is answered by one line, "yes" or "no: WHY":
 *   acquire KEY TTL_MS WAIT_MS     a lock that does not renew
 *   hold KEY TTL_MS WAIT_MS        a lock that renews
 *   token KEY TTL_MS WAIT_MS       a lock that renews, with a fencing token
 *   check                          the lock that was acquired last
 *   release                        likewise
 *   commission
 *   contend KEY TTL_MS MARKER TURNS STOP
 *                                  takes turns until the file STOP is there. In each turn it makes the file MARKER,
 *                                  which must not be there, and appends a line to the file TURNS: its letter, or '!' if
 *                                  MARKER was there, and the fencing token, which it asks for in every second turn
 *   status                         no "yes": the status as JSON
 */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <redlock/redlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static redlock_t *rl;
static redlock_lock_t lock;

static int answer(int err) {
  if (err == 0) puts("yes");
  if (err != 0) printf("no: %s\n", redlock_err_name(err));
  return fflush(stdout);
}

static void pause_ms(long ms) {
  struct timespec time = {0, ms * 1000000};
  nanosleep(&time, NULL);
}

static int tell_status(void) {
  char text[4096];
  size_t size = sizeof text;
  const int err = redlock_status_json(rl, text, &size);
  if (err != 0) return answer(err);
  puts(text);
  return fflush(stdout);
}

static int acquire(const char *key, uint32_t ttl_ms, int32_t wait_ms, uint32_t flags) {
  redlock_resource_t resource = redlock_resource(key);
  redlock_acquire_opts_t opts = REDLOCK_ACQUIRE_OPTS_INIT;
  opts.ttl_ms = ttl_ms;
  opts.wait_ms = wait_ms;
  opts.flags = flags;
  return redlock_acquire(rl, &resource, 1, &opts, &lock);
}

static void take_turn(char letter, const char *marker, const char *turns) {
  const int made = open(marker, O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  FILE *file = fopen(turns, "a");
  if (file == NULL) exit(1);
  fprintf(file, "%c %llu\n", made >= 0 ? letter : '!', (unsigned long long)redlock_fencing_token(rl, lock));
  fclose(file);
  pause_ms(2);
  if (made >= 0) {
    unlink(marker);
    close(made);
  }
}

static int contend(char letter, const char *key, uint32_t ttl_ms, const char *marker, const char *turns,
                   const char *stop) {
  unsigned turn;
  for (turn = 0; access(stop, F_OK) != 0;) {
    if (acquire(key, ttl_ms, 1000, turn % 2 != 0 ? REDLOCK_F_FENCING : 0) != 0) continue;
    take_turn(letter, marker, turns);
    ++turn;
    if (redlock_release(rl, lock) != 0) return 1;
    pause_ms(4);
  }
  return 0;
}

static int obey(char letter, const char *line) {
  char word[16] = "", key[64] = "", marker[256] = "", turns[256] = "", stop[256] = "";
  unsigned ttl_ms = 0;
  int wait_ms = 0;
  sscanf(line, "%15s %63s %u", word, key, &ttl_ms);
  if (strcmp(word, "commission") == 0) return answer(redlock_commission(rl));
  if (strcmp(word, "status") == 0) return tell_status();
  if (strcmp(word, "check") == 0) return answer(redlock_check(rl, lock, 0));
  if (strcmp(word, "release") == 0) return answer(redlock_release(rl, lock));
  if (strcmp(word, "contend") == 0) {
    sscanf(line, "%*s %*s %*u %255s %255s %255s", marker, turns, stop);
    return answer(contend(letter, key, ttl_ms, marker, turns, stop));
  }
  sscanf(line, "%*s %*s %*u %d", &wait_ms);
  if (strcmp(word, "acquire") == 0) return answer(acquire(key, ttl_ms, wait_ms, REDLOCK_F_NO_RENEW));
  return answer(acquire(key, ttl_ms, wait_ms, strcmp(word, "token") == 0 ? REDLOCK_F_FENCING : 0));
}

int main(int argc, char **argv) {
  redlock_config_t *cfg;
  char line[1024];
  if (argc != 3 || redlock_config_new(&cfg) != 0) return 2;
  if (redlock_config_load_file(cfg, argv[2]) != 0 || redlock_create(&rl, cfg) != 0) {
    fprintf(stderr, "%s\n", redlock_config_error(cfg));
    return 1;
  }
  redlock_config_free(cfg);
  while (fgets(line, sizeof line, stdin) != NULL && obey(argv[1][0], line) == 0) {
  }
  return redlock_destroy(rl, 100) != 0;
}
