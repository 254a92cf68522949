/* SPDX-License-Identifier: MIT
 *
 * tool_witness FILE RUN [HOW]...: what a command under `redlock run` does with what the lock protects. It acts about
 * once a millisecond until it is ended, and notes each act in FILE, which all witnesses share. RUN is a number of this
 * run, from 1. Somebody else's act between two acts of one run is an overlap.
 * HOW: deaf        ignores TERM, INT and HUP
 *      drop        gives up the rights of root first
 *      thread      a thread executes this program anew first: the kernel forgets to end it with its parent then
 *      setsid      acts in a child that has a session of its own, and waits itself
 *      away        acts in a grandchild in a session of its own, and waits itself
 *      orphan      the same, but ends itself at once
 *      job         acts in a child that has a process group of its own, as a shell's job has, and waits itself
 *      rest        acts in a second thread, after the first has ended
 *      nested=N    acts below N processes, each of which has a session of its own, and waits
 *      chains=N    N sessions act, in each of which a process acts once, forks, and ends; the first process reaps them
 * It ends by itself when somebody has set `over` in FILE. Its processes, dead ones too, are named after FILE's folder.
 */
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

struct board {
  _Atomic int64_t last_act_ns; /* CLOCK_BOOTTIME */
  _Atomic uint32_t owner;
  _Atomic uint32_t overlaps;
  _Atomic uint32_t acts;
  _Atomic uint32_t pid;
  _Atomic uint32_t over;
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

static const char *value_of(char **words, const char *word) {
  const size_t size = strlen(word);
  for (; *words != NULL; ++words) {
    if (strncmp(*words, word, size) == 0) return *words + size;
  }
  return NULL;
}

static int has(char **words, const char *word) { return value_of(words, word) != NULL; }

static int number_of(char **words, const char *word) {
  const char *value = value_of(words, word);
  return value != NULL ? atoi(value) : 0;
}

static void *execute_without(void *argv_given) {
  char **argv = argv_given, **to = argv;
  for (char **from = argv; *from != NULL; ++from) {
    if (strcmp(*from, "thread") != 0) *to++ = *from;
  }
  *to = NULL;
  execv("/proc/self/exe", argv);
  _exit(2);
}

static void drop_rights(void) {
  const unsigned nobody = 65534;
  if (setgroups(0, NULL) != 0 || setgid(nobody) != 0 || setuid(nobody) != 0) _exit(2);
}

struct work {
  struct board *board;
  uint32_t run;
};
static struct work all_of_it;

/* Until the end: the process has no other thread any more. */
static void *act_on(void *given) {
  const struct work *work = given;
  const struct timespec step = {0, 1000000};
  for (; atomic_load(&work->board->over) == 0; nanosleep(&step, NULL)) act(work->board, work->run);
  return NULL;
}

static void wait_until_over(struct board *board) {
  const struct timespec step = {0, 100000000}; /* 150 who look more often keep a slow processor busy */
  while (atomic_load(&board->over) == 0) nanosleep(&step, NULL);
  _exit(0);
}

/* On in a child with a session of its own. The caller waits. */
static void go_down(struct board *board) {
  if (fork() != 0) wait_until_over(board);
  setsid();
}

/* The dead of a chain. Where nobody reaps them, because the first process is gone and the warden is stopped, a chain
 * acts on, and forks again when the oldest is gone: of all chains no more than DEAD_MAX processes are dead at once. */
enum { DEAD_MAX = 240 };
struct trail {
  unsigned size, next;
  pid_t pids[DEAD_MAX];
};

static int may_fork(struct trail *trail) {
  pid_t *oldest = &trail->pids[trail->next % trail->size];
  if (*oldest != 0 && kill(*oldest, 0) == 0) return 0;
  *oldest = getpid();
  ++trail->next;
  return 1;
}

static void take_name(const char *file) {
  const char *end = strrchr(file, '/'), *begin = end;
  char name[16] = "";
  while (end != NULL && begin > file && begin[-1] != '/') --begin;
  if (end != NULL) strncpy(name, begin, end - begin < 15 ? (size_t)(end - begin) : 15);
  prctl(PR_SET_NAME, name);
}

int main(int argc, char **argv) {
  const struct timespec step = {0, 1000000};
  struct trail *trail = NULL;
  pthread_t thread;
  if (argc < 3) return 2;
  if (has(argv, "thread")) {
    pthread_create(&thread, NULL, execute_without, argv);
    for (;;) pause();
  }
  const int file = open(argv[1], O_RDWR);
  struct board *board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (board == MAP_FAILED) return 2;
  close(file);
  take_name(argv[1]);
  if (has(argv, "drop")) drop_rights();
  if (has(argv, "deaf")) {
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
  }
  if (has(argv, "setsid")) go_down(board);
  if (has(argv, "away") || has(argv, "orphan")) {
    if (fork() != 0) {
      if (has(argv, "away")) wait_until_over(board);
      return 0;
    }
    setsid();
    if (fork() != 0) _exit(0);
  }
  for (int levels = number_of(argv, "nested="); levels > 0; --levels) go_down(board);
  if (has(argv, "job")) {
    if (fork() != 0) wait_until_over(board);
    setpgid(0, 0);
  }
  if (has(argv, "rest")) {
    all_of_it = (struct work){board, (uint32_t)atoi(argv[2])};
    pthread_create(&thread, NULL, act_on, &all_of_it);
    pthread_exit(NULL);
  }
  const int chains = number_of(argv, "chains=");
  if (chains > 0) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    signal(SIGCHLD, SIG_IGN);
  }
  for (int i = 0; i < chains; ++i) {
    trail = mmap(NULL, sizeof *trail, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (trail == MAP_FAILED) return 2;
    trail->size = DEAD_MAX / (unsigned)chains;
    if (fork() != 0) {
      if (i + 1 == chains) wait_until_over(board);
      continue;
    }
    setsid();
    break;
  }
  atomic_store(&board->pid, (uint32_t)getpid());
  while (atomic_load(&board->over) == 0) {
    act(board, (uint32_t)atoi(argv[2]));
    nanosleep(&step, NULL);
    if (trail != NULL && may_fork(trail) && fork() > 0) _exit(0);
  }
}
