/* SPDX-License-Identifier: MIT
 *
 * The limit: what no library can beat on this machine. One thread, non-blocking sockets, level-triggered epoll; a SET
 * and a compare-and-delete per slot are made once and only patched; one write per master per turn; a reply is told by
 * its first bytes. No validity, no time-outs, no lost connections, no check of anything: not a client, but what one is
 * measured against.
 *
 *   --release confirmed a cycle ends when a quorum has answered its deletes (sent: when they are handed to the kernel)
 */
#define _GNU_SOURCE
#include "cycle.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { OUT_SIZE = 4 << 20, IN_SIZE = 1 << 16, RING = 1 << 17, TOKEN = 40, NAME = 8 };
enum phase { IDLE, ACQUIRING, RELEASING };

typedef struct template {
  char text[384];
  unsigned size;
  char *name, *token; /* what is patched */
} template;

typedef struct slot {
  template set, del;
  int64_t began;
  unsigned granted, answered;
  uint32_t round; /* of its cycles; an answer to an earlier one is not counted */
  enum phase phase;
} slot;

typedef struct asked {
  uint32_t slot, round;
} asked;

typedef struct master {
  int fd;
  unsigned out_size, in_size;
  unsigned first, last; /* of ring: requests that are not answered */
  int blocked;          /* waits for EPOLLOUT */
  asked ring[RING];     /* round: shifted by one, the low bit tells a delete */
  char out[OUT_SIZE], in[IN_SIZE];
} master;

static cycle_options opts;
static cycle_record record;
static master *masters;
static slot *slots;
static int64_t *sent; /* with --release sent: when the cycles began whose deletes leave with the next write */
static unsigned sent_size, quorum, name;
static int poller, release_sent;
static long begun, ended, wanted;
static char sha[TOKEN + 1];
static uint64_t random_state;

static const char script[] =
    "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) end return 0";

static void die(const char *what) {
  fprintf(stderr, "raw_limit: %s\n", what);
  exit(4);
}

static uint64_t next_random(void) { /* splitmix64 */
  uint64_t z = random_state += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

static void put_digits(char *at, uint64_t bits, unsigned n) {
  for (; n != 0; n--, bits >>= 4) *at++ = "0123456789abcdef"[bits & 15];
}

/* ---- bytes ---------------------------------------------------------------------------------------------------- */

static void make_template(template *t, const char *head, const char *tail) {
  const unsigned key = (unsigned)strlen(CYCLE_PREFIX) + 1 + NAME;
  int n = snprintf(t->text, sizeof t->text, "%s$%u\r\n%s:", head, key, CYCLE_PREFIX);
  t->name = t->text + n;
  n += snprintf(t->name, sizeof t->text - (size_t)n, "%0*d\r\n$%d\r\n", NAME, 0, TOKEN);
  t->token = t->text + n;
  n += snprintf(t->token, sizeof t->text - (size_t)n, "%0*d\r\n%s", TOKEN, 0, tail);
  if (n >= (int)sizeof t->text) die("the text is too long");
  t->size = (unsigned)n;
}

static void make_slot(slot *s) {
  char ttl[16], tail[64], head[128];
  snprintf(ttl, sizeof ttl, "%u", opts.ttl_ms);
  snprintf(tail, sizeof tail, "$2\r\nNX\r\n$2\r\nPX\r\n$%u\r\n%s\r\n", (unsigned)strlen(ttl), ttl);
  make_template(&s->set, "*6\r\n$3\r\nSET\r\n", tail);
  snprintf(head, sizeof head, "*5\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n1\r\n", sha);
  make_template(&s->del, head, "");
}

static void watch(master *m, int blocked) {
  if (m->blocked == blocked) return;
  m->blocked = blocked;
  struct epoll_event event = {.events = EPOLLIN | (blocked ? (uint32_t)EPOLLOUT : 0), .data.ptr = m};
  epoll_ctl(poller, EPOLL_CTL_MOD, m->fd, &event);
}

static void write_out(master *m) {
  if (m->out_size == 0) return;
  const ssize_t n = send(m->fd, m->out, m->out_size, MSG_NOSIGNAL);
  if (n == (ssize_t)m->out_size) {
    m->out_size = 0;
    watch(m, 0);
    return;
  }
  if (n < 0 && errno != EAGAIN) die("a master is gone");
  if (n > 0) memmove(m->out, m->out + n, m->out_size -= (unsigned)n);
  watch(m, 1);
}

static void flush(void) {
  for (unsigned i = 0; i < opts.masters; i++)
    if (!masters[i].blocked) write_out(&masters[i]);
  for (unsigned i = 0; i < sent_size; i++) cycle_ended(&record, sent[i]), ended++;
  sent_size = 0;
}

/* To all masters that are not too far behind. */
static void ask(slot *s, const template *t, unsigned is_delete) {
  const asked request = {(uint32_t)(s - slots), s->round << 1 | is_delete};
  for (unsigned i = 0; i < opts.masters; i++) {
    master *m = &masters[i];
    if (m->out_size + t->size > OUT_SIZE || m->last - m->first == RING) continue;
    memcpy(m->out + m->out_size, t->text, t->size);
    m->out_size += t->size;
    m->ring[m->last++ % RING] = request;
  }
}

/* ---- a cycle -------------------------------------------------------------------------------------------------- */

static void begin(slot *s) {
  begun++;
  put_digits(s->set.name, name, NAME);
  put_digits(s->del.name, name++, NAME);
  for (unsigned i = 0; i < TOKEN; i += 8) put_digits(s->set.token + i, next_random(), 8);
  memcpy(s->del.token, s->set.token, TOKEN);
  s->phase = ACQUIRING;
  s->granted = s->answered = 0;
  s->round++;
  s->began = cycle_now();
  ask(s, &s->set, 0);
}

static void acquired(slot *s) {
  cycle_acquired(&record, s->began);
  s->phase = RELEASING;
  s->answered = 0;
  ask(s, &s->del, 1);
  if (!release_sent) return;
  s->phase = IDLE;
  sent[sent_size++] = s->began;
  if (begun < wanted) begin(s); /* the next SET leaves behind the delete, in the same write */
}

static void answer(const asked *request, int yes) {
  slot *s = &slots[request->slot];
  if (s->round != request->round >> 1) return;
  if (s->phase == ACQUIRING && !(request->round & 1)) {
    s->answered++;
    s->granted += (unsigned)yes;
    if (s->granted == quorum) {
      acquired(s);
    } else if (s->answered - s->granted > opts.masters - quorum) {
      die("a lock was refused");
    }
  } else if (s->phase == RELEASING && (request->round & 1)) {
    if (++s->answered < quorum) return;
    cycle_ended(&record, s->began);
    ended++;
    s->phase = IDLE;
    if (begun < wanted) begin(s);
  }
}

static void read_in(master *m) {
  const ssize_t n = recv(m->fd, m->in + m->in_size, IN_SIZE - m->in_size, 0);
  if (n < 0 && errno == EAGAIN) return;
  if (n <= 0) die("a master is gone");
  m->in_size += (unsigned)n;
  char *at = m->in, *const end = m->in + m->in_size;
  for (char *line; (line = memchr(at, '\n', (size_t)(end - at))) != NULL; at = line + 1) {
    if (m->first == m->last) die("an answer that nobody asked for");
    answer(&m->ring[m->first++ % RING], *at == '+' || (*at == ':' && at[1] == '1'));
  }
  m->in_size = (unsigned)(end - at);
  memmove(m->in, at, m->in_size);
}

BENCH_APART static void run(long cycles) {
  begun = ended = 0;
  wanted = cycles;
  for (unsigned i = 0; i < opts.inflight && begun < wanted; i++) begin(&slots[i]);
  const int64_t stop_at = cycle_now() + (int64_t)(opts.max_seconds * 1e9);
  while (ended < wanted) {
    struct epoll_event events[CYCLE_MASTERS_MAX];
    flush();
    if (ended == wanted) break;
    const int n = epoll_wait(poller, events, CYCLE_MASTERS_MAX, 1000);
    for (int i = 0; i < n; i++) {
      if (events[i].events & EPOLLOUT) write_out(events[i].data.ptr);
      if (events[i].events & ~(uint32_t)EPOLLOUT) read_in(events[i].data.ptr);
    }
    if (n == 0 && cycle_now() > stop_at) die("out of time");
  }
}

/* ---- start ---------------------------------------------------------------------------------------------------- */

static void dial(master *m, unsigned port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  const int one = 1;
  char text[256];
  m->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (m->fd < 0 || connect(m->fd, (struct sockaddr *)&address, sizeof address) != 0) die("a master cannot be reached");
  setsockopt(m->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  const int n = snprintf(text, sizeof text, "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$%u\r\n%s\r\n",
                         (unsigned)strlen(script), script);
  if (send(m->fd, text, (size_t)n, MSG_NOSIGNAL) != n) die("a master is gone");
  for (unsigned size = 0; size < 5 + TOKEN + 2;) { /* $40, the digest */
    const ssize_t got = recv(m->fd, text + size, sizeof text - size, 0);
    if (got <= 0) die("a master is gone");
    size += (unsigned)got;
  }
  memcpy(sha, text + 5, TOKEN);
  fcntl(m->fd, F_SETFL, O_NONBLOCK);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = m};
  epoll_ctl(poller, EPOLL_CTL_ADD, m->fd, &event);
}

int main(int argc, char **argv) {
  if (cycle_parse(&opts, "raw_limit", argc, argv) != 0) return 2;
  if (*opts.api == '\0') opts.api = "epoll";
  if (*opts.release == '\0') opts.release = "confirmed";
  if (!cycle_is(opts.api, "epoll") || cycle_is(opts.mode, "contend") || opts.held != 0) die("it only does bare cycles");
  release_sent = cycle_is(opts.release, "sent");
  quorum = opts.masters / 2 + 1;
  random_state = (uint64_t)cycle_now();
  name = (unsigned)next_random();
  poller = epoll_create1(EPOLL_CLOEXEC);
  masters = calloc(opts.masters, sizeof *masters);
  slots = calloc(opts.inflight, sizeof *slots);
  sent = calloc(opts.inflight, sizeof *sent);
  if (masters == NULL || slots == NULL || sent == NULL) die("no memory");
  for (unsigned i = 0; i < opts.masters; i++) dial(&masters[i], opts.port[i]);
  for (unsigned i = 0; i < opts.inflight; i++) make_slot(&slots[i]);
  cycle_record_init(&record, &opts);
  run(opts.warmup);
  cycle_begin(&record);
  run(opts.count);
  cycle_end(&record);
  return cycle_print(&record);
}
