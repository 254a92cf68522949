/* SPDX-License-Identifier: MIT
 *
 * delay_proxy DELAY_US FROM:TO...: passes on TCP connections to loopback ports, each byte DELAY_US after it came, in
 * both directions: a round trip of twice that and a little. For machines whose kernel has no netem. It runs until its
 * parent ends. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { ENDS_MAX = 256 };

/* What came from one end and is on its way to the other. */
typedef struct piece {
  struct piece *next;
  int64_t due;
  size_t size, done;
  char bytes[];
} piece;

typedef struct end {
  int fd, to_port; /* to_port: it listens, and connections go there */
  struct end *other;
  piece *first, **last;
} end;

static end ends[ENDS_MAX];
static int ends_size, poller, timer;
static int64_t delay;

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void die(const char *what) {
  perror(what);
  exit(1);
}

static end *add(int fd, int to_port) {
  if (ends_size == ENDS_MAX) exit(1);
  end *e = &ends[ends_size++];
  *e = (end){.fd = fd, .to_port = to_port};
  e->last = &e->first;
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = e};
  if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) != 0) die("epoll_ctl");
  return e;
}

static struct sockaddr_in loopback(int port) {
  return (struct sockaddr_in){
      .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void listen_at(int port, int to_port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
  struct sockaddr_in address = loopback(port);
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 64) != 0) die("listen");
  add(fd, to_port);
}

static void accept_one(const end *listener) {
  const int a = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), one = 1;
  const int b = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = loopback(listener->to_port);
  if (a < 0 || connect(b, (struct sockaddr *)&address, sizeof address) != 0) {
    if (a >= 0) close(a);
    close(b);
    return;
  }
  fcntl(b, F_SETFL, O_NONBLOCK);
  setsockopt(a, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  setsockopt(b, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  end *from = add(a, 0), *to = add(b, 0);
  from->other = to;
  to->other = from;
}

static void hang_up(end *e) {
  for (end *one = e; one != NULL && one->fd >= 0; one = one->other) {
    close(one->fd);
    one->fd = -1;
  }
}

static void arm(void) {
  int64_t next = INT64_MAX;
  for (int i = 0; i < ends_size; i++)
    if (ends[i].first != NULL && ends[i].first->due < next) next = ends[i].first->due;
  if (next == INT64_MAX) return;
  struct itimerspec at = {.it_value = {(time_t)(next / 1000000000), (long)(next % 1000000000)}};
  timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
}

static void take_in(end *e) {
  char bytes[65536];
  const ssize_t n = recv(e->fd, bytes, sizeof bytes, 0);
  if (n < 0 && errno == EAGAIN) return;
  if (n <= 0) return hang_up(e);
  piece *p = malloc(sizeof *p + (size_t)n);
  if (p == NULL) exit(1);
  *p = (piece){.due = now() + delay, .size = (size_t)n};
  memcpy(p->bytes, bytes, (size_t)n);
  *e->last = p;
  e->last = &p->next;
}

static void pass_on(end *e) {
  const int64_t time = now();
  while (e->first != NULL && e->first->due <= time && e->other->fd >= 0) {
    piece *p = e->first;
    const ssize_t n = send(e->other->fd, p->bytes + p->done, p->size - p->done, MSG_NOSIGNAL);
    if (n < 0 && errno == EAGAIN) return;
    if (n < 0) return hang_up(e);
    p->done += (size_t)n;
    if (p->done < p->size) return;
    e->first = p->next;
    if (e->first == NULL) e->last = &e->first;
    free(p);
  }
}

int main(int argc, char **argv) {
  if (argc < 3) return fprintf(stderr, "usage: delay_proxy DELAY_US FROM:TO...\n"), 2;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  delay = strtoll(argv[1], NULL, 10) * 1000;
  poller = epoll_create1(EPOLL_CLOEXEC);
  timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
  epoll_ctl(poller, EPOLL_CTL_ADD, timer, &event);
  for (int i = 2; i < argc; i++) {
    int from, to;
    if (sscanf(argv[i], "%d:%d", &from, &to) != 2) return fprintf(stderr, "delay_proxy: %s\n", argv[i]), 2;
    listen_at(from, to);
  }
  for (;;) {
    struct epoll_event events[64];
    const int n = epoll_wait(poller, events, 64, -1);
    for (int i = 0; i < n; i++) {
      end *e = events[i].data.ptr;
      uint64_t expirations;
      if (e == NULL) {
        if (read(timer, &expirations, sizeof expirations) < 0) continue;
      } else if (e->to_port != 0) {
        accept_one(e);
      } else if (e->fd >= 0) {
        take_in(e);
      }
    }
    for (int i = 0; i < ends_size; i++)
      if (ends[i].other != NULL) pass_on(&ends[i]);
    arm();
  }
}
