// SPDX-License-Identifier: MIT
//
// modbus_wire: an RS-485 line with one Modbus RTU device on it. Prints one pty for each gateway, and its totals as one
// JSON line when SIGTERM or SIGINT ends it.
//
//     modbus_wire [GATEWAYS]
//
// A byte takes 11 bits at 19,200 baud. All others hear each byte; where two send at the same time, all hear garbage. A
// frame ends after 3.5 bytes of silence. `two_senders` counts frames that contain bytes of more than one sender.
//
// The device (address 17) has many channels and two registers: register 0 selects a channel, register 1 is the value
// of the selected channel, 100 * channel + 7. It answers 10 ms after a request. Until then it ignores other requests.
//
// A pty has no time on its bytes. What was written while this program did not run would look as if it was sent at the
// same time. So after a pause of more than STALL_MS the wire loses everything that was on its way (`stalls`). STALL_MS
// is so short that no gateway gives up waiting, lets the next one send, and finds both their frames in one pause.
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <termios.h>
#include <time.h>

#include "../shared_device/frames.h"

enum {
  DEVICE = 17,
  BYTE_NS = 11 * 1000000 / 192 * 10,  // 11 bits at 19,200 baud
  SILENCE = 4,                        // bytes: the first whole number above 3.5
  THINK = 17,                         // bytes: 10 ms from the end of the request's silence to the answer
  STALL_MS = 80,
  SENDERS_MAX = 17,  // sender 0 is the device
  FRAME_MAX = 256,
};

struct sender {
  int fd;  // our side of its pty
  uint8_t bytes[FRAME_MAX];
  size_t count, sent;
};

struct wire {
  struct sender senders[SENDERS_MAX];
  nfds_t count;
  uint32_t who;          // has sent in this frame, one bit each
  unsigned silence;      // bytes since the last one
  uint8_t heard[FRAME_MAX];
  size_t heard_count;    // by the device, of this frame
  unsigned think;        // bytes until the device answers; 0: it has nothing to say
  uint8_t answer[8];
  size_t answer_size;
  uint16_t channel;
  unsigned frames, two_senders, stalls;
};

static volatile sig_atomic_t stopping;

static void on_signal(int number) {
  (void)number;
  stopping = 1;
}

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// ---- The device ---------------------------------------------------------------------------------------------------

static bool crc_matches(const uint8_t *bytes, size_t size) {
  const uint16_t crc = frame_crc(bytes, size - 2);
  return bytes[size - 2] == (crc & 0xFF) && bytes[size - 1] == crc >> 8;
}

// Write a register (6) is answered by the request itself, read registers (3) by their number of bytes and their values.
static void on_frame(struct wire *w) {
  const uint8_t *in = w->heard;
  if (w->think > 0 || w->heard_count != 8 || in[0] != DEVICE || !crc_matches(in, 8)) return;
  const unsigned where = (unsigned)in[2] << 8 | in[3], what = (unsigned)in[4] << 8 | in[5];
  if (in[1] == 6 && where == 0) {
    w->channel = (uint16_t)what;
    memcpy(w->answer, in, w->answer_size = 8);
  } else if (in[1] == 3 && where == 1 && what == 1) {
    const unsigned value = 100u * w->channel + 7;
    const uint8_t answer[] = {DEVICE, 3, 2, (uint8_t)(value >> 8), (uint8_t)value};
    const uint16_t crc = frame_crc(answer, sizeof answer);
    memcpy(w->answer, answer, sizeof answer);
    w->answer[5] = (uint8_t)(crc & 0xFF);
    w->answer[6] = (uint8_t)(crc >> 8);
    w->answer_size = 7;
  } else {
    return;
  }
  w->think = THINK;
}

// ---- The wire -----------------------------------------------------------------------------------------------------

static void send_bytes(struct sender *s, const uint8_t *bytes, size_t size) {
  if (size > FRAME_MAX - s->count) size = FRAME_MAX - s->count;
  memcpy(s->bytes + s->count, bytes, size);
  s->count += size;
}

static bool take_byte(struct sender *s, uint8_t *byte) {
  if (s->sent == s->count) return false;
  *byte = s->bytes[s->sent++];
  if (s->sent == s->count) s->sent = s->count = 0;
  return true;
}

static void end_frame(struct wire *w) {
  ++w->frames;
  w->two_senders += (w->who & (w->who - 1)) != 0;
  on_frame(w);
  w->who = 0;
  w->heard_count = 0;
}

// The time of one byte passes.
static void tick(struct wire *w) {
  uint32_t now = 0;
  uint8_t level = 0;
  for (nfds_t i = 0; i < w->count; ++i) {
    uint8_t byte;
    if (!take_byte(&w->senders[i], &byte)) continue;
    level = now == 0 ? byte : (uint8_t)(level & byte);  // against each other, drivers pull the line to some middle
    now |= 1u << i;
  }
  w->silence = now != 0 ? 0 : w->silence + 1;
  w->who |= now;
  if (now != 0) {
    if ((now & 1) == 0 && w->heard_count < FRAME_MAX) w->heard[w->heard_count++] = level;
    for (nfds_t i = 1; i < w->count; ++i)  // a sender does not hear itself
      if ((now >> i & 1) == 0 && write(w->senders[i].fd, &level, 1) < 0 && errno != EAGAIN) perror("modbus_wire");
  }
  if (w->think > 0 && --w->think == 0) send_bytes(&w->senders[0], w->answer, w->answer_size);
  if (w->silence == SILENCE && w->who != 0) end_frame(w);
}

static void lose_everything(struct wire *w) {
  for (nfds_t i = 0; i < w->count; ++i) w->senders[i].count = w->senders[i].sent = 0;
  w->heard_count = w->who = w->think = 0;
  ++w->stalls;
}

static bool at_rest(const struct wire *w) {
  for (nfds_t i = 0; i < w->count; ++i)
    if (w->senders[i].count > 0) return false;
  return w->who == 0 && w->think == 0;
}

// What has come since the last time came at the end of that time: first the old bytes travel. The clock is read after
// the ptys, so that a pause in between counts.
static void run(struct wire *w, const sigset_t *unblocked) {
  struct pollfd polled[SENDERS_MAX];
  for (nfds_t i = 0; i < w->count; ++i) polled[i] = (struct pollfd){.fd = w->senders[i].fd, .events = POLLIN};
  for (int64_t then = now_ns(); !stopping;) {
    const struct timespec pause = {0, at_rest(w) ? STALL_MS / 4 * 1000000 : BYTE_NS};
    ppoll(polled, w->count, &pause, unblocked);
    uint8_t bytes[SENDERS_MAX][FRAME_MAX];
    ssize_t sizes[SENDERS_MAX] = {0};
    for (nfds_t i = 1; i < w->count; ++i) sizes[i] = read(w->senders[i].fd, bytes[i], FRAME_MAX);
    const int64_t now = now_ns();
    if (now - then > (int64_t)STALL_MS * 1000000) {
      lose_everything(w);
      then = now;
      continue;
    }
    for (; then + BYTE_NS <= now; then += BYTE_NS) tick(w);
    for (nfds_t i = 1; i < w->count; ++i)
      if (sizes[i] > 0) send_bytes(&w->senders[i], bytes[i], (size_t)sizes[i]);
  }
}

// The gateway's side is kept open: a pty must not hang up while no gateway has it open.
static bool add_gateway(struct wire *w) {
  const int ours = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (ours < 0 || grantpt(ours) != 0 || unlockpt(ours) != 0 || fcntl(ours, F_SETFL, O_NONBLOCK) != 0) return false;
  const int theirs = open(ptsname(ours), O_RDWR | O_NOCTTY | O_CLOEXEC);
  struct termios raw;
  if (theirs < 0 || tcgetattr(theirs, &raw) != 0) return false;
  cfmakeraw(&raw);
  if (tcsetattr(theirs, TCSANOW, &raw) != 0) return false;
  w->senders[w->count++].fd = ours;
  return puts(ptsname(ours)) >= 0;
}

int main(int argc, char **argv) {
  static struct wire w = {.senders[0].fd = -1, .count = 1};  // poll() passes over -1
  const unsigned long gateways = argc > 1 ? strtoul(argv[1], NULL, 10) : 3;
  if (argc > 2 || gateways < 1 || gateways >= SENDERS_MAX) return fputs("usage: modbus_wire [1..16]\n", stderr), 2;
  const struct sigaction action = {.sa_handler = on_signal};
  sigset_t blocked, unblocked;  // signals are let in only while ppoll() waits, so none is missed in between
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigaddset(&blocked, SIGINT);
  sigprocmask(SIG_BLOCK, &blocked, &unblocked);
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGINT, &action, NULL);
  while (w.count <= gateways)
    if (!add_gateway(&w)) return perror("modbus_wire"), 1;
  fflush(stdout);
  run(&w, &unblocked);
  printf("{\"frames\":%u,\"two_senders\":%u,\"stalls\":%u}\n", w.frames, w.two_senders, w.stalls);
  return 0;
}
