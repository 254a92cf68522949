// SPDX-License-Identifier: MIT
//
// device: the thing that the gateways share. It stands for one device on an RS-485 wire that everybody can talk on at
// any time and that nobody arbitrates. Frames of all gateways come over the one wire (a TCP port on loopback with a
// connection for each gateway, or a pty that all of them open); commands consist of several frames, and a frame of
// another gateway in between ruins them. That is a collision: here it is counted, in a plant it opens the wrong
// valve.
//
// With --check-tokens it looks at the fencing token of each frame (redlock_fence_check(), the one thing of the library
// that firmware needs) and does nothing for one that is older than the newest it has seen, or has none: that frame is
// refused. The newest token is 0 at power-up, and lives as long as what the gateways do to the device.
//
// The log (--log) has one line per happening, with CLOCK_MONOTONIC in nanoseconds:
//   frame NS GATEWAY JOB INDEX | begin NS GATEWAY JOB | end NS GATEWAY JOB intact|ruined|abandoned
//   collision NS GATEWAY JOB | refused NS GATEWAY JOB | mark NS 1|2
// SIGUSR1 and SIGUSR2 write marks 1 and 2. SIGTERM and SIGINT end the program, which prints its totals as one JSON
// line.
#define _GNU_SOURCE 1
#include <arpa/inet.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <redlock/redlock.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <termios.h>
#include <time.h>

#include "frames.h"

#define NS_PER_MS INT64_C(1000000)

// What one gateway has said so far.
struct command {
  bool open;     // begun, and not yet ended or forgotten
  bool ruined;   // somebody else's frame came in between
  uint32_t job;
  unsigned next;  // index of the frame that has to come
  int64_t last_ns;
  bool answering;  // `answer` leaves at answer_ns on fd
  struct frame answer;
  int64_t answer_ns;
  int fd;
};

struct peer {
  int fd;
  struct frame_reader reader;
};

struct device {
  int listener;  // -1 with a pty
  int64_t wire_ns;
  FILE *log;
  bool check_tokens;
  uint64_t newest_token;
  struct peer peers[GATEWAYS_MAX];
  nfds_t peer_count;
  struct command commands[GATEWAYS_MAX + 1];  // by gateway
  unsigned last_gateway;                      // whose frame was on the wire last
  unsigned frames, skipped, intact, ruined, abandoned, collisions, refused;
};

static volatile sig_atomic_t g_stop, g_mark;

static void on_signal(int number) {
  if (number == SIGUSR1 || number == SIGUSR2)
    g_mark = number == SIGUSR1 ? 1 : 2;
  else
    g_stop = 1;
}

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 * NS_PER_MS + t.tv_nsec;
}

static void log_line(struct device *d, const char *what, int64_t ns, unsigned gateway, uint32_t job, const char *end) {
  if (d->log == NULL) return;
  const char *space = end[0] != '\0' ? " " : "";
  fprintf(d->log, "%s %lld %u %lu%s%s\n", what, (long long)ns, gateway, (unsigned long)job, space, end);
}

// ---- Commands ---------------------------------------------------------------------------------------------------

static void end_command(struct device *d, unsigned gateway, int64_t ns, bool complete) {
  struct command *c = &d->commands[gateway];
  ++*(!complete ? &d->abandoned : c->ruined ? &d->ruined : &d->intact);
  log_line(d, "end", ns, gateway, c->job, !complete ? "abandoned" : c->ruined ? "ruined" : "intact");
  c->open = false;
}

static void begin_command(struct device *d, const struct frame *frame, int64_t now) {
  struct command *c = &d->commands[frame->gateway];
  if (c->open) end_command(d, frame->gateway, now, false);
  c->open = true;
  c->ruined = false;
  c->job = frame->job;
  c->next = 0;
  log_line(d, "begin", now, frame->gateway, frame->job, "");
}

// Forget commands that nobody went on with.
static void forget_silent(struct device *d, int64_t now) {
  for (unsigned gateway = 1; gateway <= GATEWAYS_MAX; ++gateway) {
    const struct command *c = &d->commands[gateway];
    const int64_t forget_ns = c->last_ns + BUS_SILENCE_MS * NS_PER_MS;
    if (c->open && !c->answering && now > forget_ns) end_command(d, gateway, forget_ns, false);
  }
}

// Is this frame in between somebody's frames? Either another gateway's command is unfinished, or another gateway has
// talked since this command's last frame.
static bool is_interleaved(const struct device *d, const struct frame *frame) {
  for (unsigned gateway = 1; gateway <= GATEWAYS_MAX; ++gateway)
    if (gateway != frame->gateway && d->commands[gateway].open) return true;
  return frame->index > 0 && d->last_gateway != frame->gateway;
}

// The status goes out when the wire has had its time.
static void answer_later(struct device *d, int fd, const struct frame *frame, uint8_t status, int64_t now) {
  struct command *c = &d->commands[frame->gateway];
  c->answering = true;
  c->answer = *frame;
  c->answer.status = status;
  c->answer_ns = now + d->wire_ns;
  c->fd = fd;
}

static void refuse(struct device *d, int fd, const struct frame *frame, int64_t now) {
  ++d->refused;
  log_line(d, "refused", now, frame->gateway, frame->job, "");
  answer_later(d, fd, frame, FRAME_REFUSED, now);
}

// Send the answers that are due. Returns when the next one is, or INT64_MAX.
static int64_t answer_due(struct device *d, int64_t now) {
  int64_t next = INT64_MAX;
  for (unsigned gateway = 1; gateway <= GATEWAYS_MAX; ++gateway) {
    struct command *c = &d->commands[gateway];
    if (!c->answering) continue;
    if (c->answer_ns > now) {
      if (c->answer_ns < next) next = c->answer_ns;
      continue;
    }
    c->answering = false;
    if (c->answer.status == FRAME_OK && c->ruined) c->answer.status = FRAME_RUINED;
    if (c->open && c->next == c->answer.count) end_command(d, gateway, now, true);
    uint8_t bytes[FRAME_BYTES];
    frame_encode(&c->answer, bytes);
    // An answer that cannot be written is an answer lost on the wire: the gateway notices.
    if (c->fd >= 0 && write(c->fd, bytes, sizeof bytes) < 0 && errno != EAGAIN) perror("device: write");
  }
  return next;
}

static void on_frame(struct device *d, int fd, const struct frame *frame, int64_t now) {
  struct command *c = &d->commands[frame->gateway];
  answer_due(d, now);  // a device that was not let run has an answer left, and the command is open as long
  forget_silent(d, now);
  ++d->frames;
  if (d->log != NULL)
    fprintf(d->log, "frame %lld %u %lu %u\n", (long long)now, frame->gateway, (unsigned long)frame->job, frame->index);
  if (d->check_tokens && redlock_fence_check(&d->newest_token, frame->token) != 0) {
    refuse(d, fd, frame, now);
    return;
  }
  const bool interleaved = is_interleaved(d, frame);
  if (frame->index == 0) begin_command(d, frame, now);
  const bool expected = c->open && c->job == frame->job && c->next == frame->index;
  if (expected) {
    ++c->next;
    c->last_ns = now;
  }
  if (interleaved) {
    ++d->collisions;
    log_line(d, "collision", now, frame->gateway, c->job, "");
    for (unsigned gateway = 1; gateway <= GATEWAYS_MAX; ++gateway) d->commands[gateway].ruined = true;
  }
  d->last_gateway = frame->gateway;
  answer_later(d, fd, frame, expected ? FRAME_OK : FRAME_OUT_OF_ORDER, now);
}

// ---- The wire ---------------------------------------------------------------------------------------------------

static void add_peer(struct device *d, int fd) {
  if (d->peer_count == GATEWAYS_MAX || fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
    fprintf(stderr, "device: no room for another gateway\n");
    close(fd);
    return;
  }
  d->peers[d->peer_count++] = (struct peer){.fd = fd};
}

static void drop_peer(struct device *d, nfds_t i) {
  const int fd = d->peers[i].fd;
  for (unsigned gateway = 1; gateway <= GATEWAYS_MAX; ++gateway)
    if (d->commands[gateway].fd == fd) d->commands[gateway].fd = -1;
  d->skipped += d->peers[i].reader.skipped;
  close(fd);
  d->peers[i] = d->peers[--d->peer_count];
}

static void read_peers(struct device *d, const struct pollfd *polled) {
  for (nfds_t i = d->peer_count; i-- > 0;) {
    if (polled[i].revents == 0) continue;
    struct frame frame;
    const int alive = frame_read(&d->peers[i].reader, d->peers[i].fd);
    while (frame_next(&d->peers[i].reader, &frame)) on_frame(d, d->peers[i].fd, &frame, now_ns());
    if (alive <= 0) drop_peer(d, i);
  }
}

static void run(struct device *d, const sigset_t *unblocked) {
  while (!g_stop) {
    struct pollfd polled[GATEWAYS_MAX + 1];
    const nfds_t peers = d->peer_count;
    for (nfds_t i = 0; i < peers; ++i) polled[i] = (struct pollfd){.fd = d->peers[i].fd, .events = POLLIN};
    polled[peers] = (struct pollfd){.fd = d->listener, .events = POLLIN};  // poll() passes over -1
    const int64_t now = now_ns();
    const int64_t next = answer_due(d, now);
    const int64_t wait = next == INT64_MAX ? 0 : next - now;
    const struct timespec timeout = {(time_t)(wait / (1000 * NS_PER_MS)), (long)(wait % (1000 * NS_PER_MS))};
    const int ready = ppoll(polled, peers + 1, next == INT64_MAX ? NULL : &timeout, unblocked);
    if (g_mark != 0 && d->log != NULL) fprintf(d->log, "mark %lld %d\n", (long long)now_ns(), (int)g_mark);
    g_mark = 0;
    if (ready <= 0) continue;
    read_peers(d, polled);
    if (polled[peers].revents == 0) continue;
    const int fd = accept(d->listener, NULL, NULL);
    if (fd >= 0) add_peer(d, fd);
  }
}

static bool open_tcp(struct device *d, unsigned port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  d->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (d->listener < 0 || bind(d->listener, (struct sockaddr *)&address, size) != 0) return false;
  if (listen(d->listener, GATEWAYS_MAX) != 0) return false;
  if (getsockname(d->listener, (struct sockaddr *)&address, &size) != 0) return false;
  printf("127.0.0.1:%u\n", (unsigned)ntohs(address.sin_port));
  return true;
}

static bool open_pty(struct device *d) {
  const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) return false;
  // Kept open: the pty must not hang up while no gateway has it open.
  const int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
  struct termios raw;
  if (slave < 0 || tcgetattr(slave, &raw) != 0) return false;
  cfmakeraw(&raw);
  if (tcsetattr(slave, TCSANOW, &raw) != 0) return false;
  add_peer(d, master);
  printf("%s\n", ptsname(master));
  return true;
}

// Signals are let in only while ppoll() waits, so none is missed in between.
static bool catch_signals(sigset_t *unblocked) {
  static const int caught[] = {SIGTERM, SIGINT, SIGUSR1, SIGUSR2};
  const struct sigaction action = {.sa_handler = on_signal};
  sigset_t blocked;
  sigemptyset(&blocked);
  for (size_t i = 0; i < sizeof caught / sizeof caught[0]; ++i) {
    sigaddset(&blocked, caught[i]);
    if (sigaction(caught[i], &action, NULL) != 0) return false;
  }
  signal(SIGPIPE, SIG_IGN);
  if (sigprocmask(SIG_BLOCK, &blocked, unblocked) != 0) return false;
  for (size_t i = 0; i < sizeof caught / sizeof caught[0]; ++i) sigdelset(unblocked, caught[i]);
  return true;
}

static void print_totals(struct device *d) {
  for (unsigned gateway = 1; gateway <= GATEWAYS_MAX; ++gateway)
    if (d->commands[gateway].open) end_command(d, gateway, now_ns(), false);
  while (d->peer_count > 0) drop_peer(d, 0);
  printf("{\"frames\":%u,\"skipped_bytes\":%u,\"intact\":%u,\"ruined\":%u,\"abandoned\":%u,\"collisions\":%u,"
         "\"refused\":%u}\n",
         d->frames, d->skipped, d->intact, d->ruined, d->abandoned, d->collisions, d->refused);
}

static const char k_usage[] =
    "usage: device [options]\n"
    "A device on a shared wire. Prints where to connect, and its totals when it is ended with SIGTERM.\n"
    "  --port N        TCP port on 127.0.0.1; 0: any free one (default)\n"
    "  --pty           a pseudo terminal instead of TCP\n"
    "  --wire-ms N     how long a frame and its answer take on the wire (default 8)\n"
    "  --check-tokens  refuse frames with an older fencing token than the newest seen, or none\n"
    "  --log FILE      who held the device when, for timeline\n"
    "  --help\n";

int main(int argc, char **argv) {
  static const struct option options[] = {
      {"port", required_argument, NULL, 'p'}, {"pty", no_argument, NULL, 't'},
      {"wire-ms", required_argument, NULL, 'w'}, {"log", required_argument, NULL, 'l'},
      {"check-tokens", no_argument, NULL, 'k'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
  static struct device d = {.listener = -1, .wire_ns = 8 * NS_PER_MS};
  unsigned long port = 0;
  bool pty = false;
  for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
    switch (c) {
      case 'p': port = strtoul(optarg, NULL, 10); break;
      case 't': pty = true; break;
      case 'k': d.check_tokens = true; break;
      case 'w': d.wire_ns = (int64_t)strtoul(optarg, NULL, 10) * NS_PER_MS; break;
      case 'l': d.log = fopen(optarg, "we"); break;
      case 'h': fputs(k_usage, stdout); return 0;
      default: fputs(k_usage, stderr); return 2;
    }
    if (c == 'l' && d.log == NULL) return perror(optarg), 1;
  }
  if (optind < argc || port > 65535) return fputs(k_usage, stderr), 2;
  if (d.log != NULL) setvbuf(d.log, NULL, _IOLBF, 0);
  setvbuf(stdout, NULL, _IOLBF, 0);
  sigset_t unblocked;
  if (!catch_signals(&unblocked) || !(pty ? open_pty(&d) : open_tcp(&d, (unsigned)port))) return perror("device"), 1;
  run(&d, &unblocked);
  print_totals(&d);
  return 0;
}
