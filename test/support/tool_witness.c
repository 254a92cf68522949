/* SPDX-License-Identifier: MIT
 *
 * tool_witness FILE RUN [HOW]...: what a command under `redlock run` does with what the lock protects. It acts about
 * once a millisecond until it is ended, and notes each act in FILE, which all witnesses share. RUN is a number of this
 * run, from 1. Somebody else's act between two acts of one run is an overlap.
 * HOW: deaf     ignores TERM, INT and HUP
 *      away     does so in a grandchild in a session of its own, and waits itself
 *      orphan   the same, but ends itself at once
 */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct board {
  _Atomic int64_t last_act_ns; /* CLOCK_BOOTTIME */
  _Atomic uint32_t owner;
  _Atomic uint32_t overlaps;
  _Atomic uint32_t acts;
  _Atomic uint32_t pid;
  _Atomic uint32_t seen[512];
};

static void act(struct board *board, uint32_t run) {
  struct timespec now;
  const uint32_t before = atomic_exchange(&board->owner, run);
  if (before != run && atomic_exchange(&board->seen[run], 1) != 0) atomic_fetch_add(&board->overlaps, 1);
  clock_gettime(CLOCK_BOOTTIME, &now);
  atomic_store(&board->last_act_ns, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
  atomic_fetch_add(&board->acts, 1);
}

static int has(char **words, const char *word) {
  for (; *words != NULL; ++words) {
    if (strcmp(*words, word) == 0) return 1;
  }
  return 0;
}

int main(int argc, char **argv) {
  const struct timespec step = {0, 1000000};
  if (argc < 3) return 2;
  const int file = open(argv[1], O_RDWR);
  struct board *board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (board == MAP_FAILED) return 2;
  close(file);
  if (has(argv, "deaf")) {
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
  }
  if (has(argv, "away") || has(argv, "orphan")) {
    if (fork() != 0) {
      while (has(argv, "away")) pause();
      return 0;
    }
    setsid();
    if (fork() != 0) _exit(0);
  }
  atomic_store(&board->pid, (uint32_t)getpid());
  for (;;) {
    act(board, (uint32_t)atoi(argv[2]));
    nanosleep(&step, NULL);
  }
}
