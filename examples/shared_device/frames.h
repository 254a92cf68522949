// SPDX-License-Identifier: MIT
//
// Frames: what travels on the shared wire, in the manner of Modbus RTU. All frames are 20 bytes, both ways:
//
//   0 device address | 1 function | 2 gateway | 3 index | 4 count | 5 status | 6-9 job | 10-17 token | 18-19 CRC-16
//
// Job and token have the high byte first; the token is 0 when the gateway has none.
//
// A command is `count` frames with indexes 0 .. count-1 of one gateway and one job. The device answers each frame with
// the same frame and a status. It forgets a command whose next frame does not come within BUS_SILENCE_MS.
#ifndef EXAMPLES_SHARED_DEVICE_FRAMES_H
#define EXAMPLES_SHARED_DEVICE_FRAMES_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum {
  BUS_ADDRESS = 0x11,   // of the device
  BUS_FUNCTION = 0x41,  // the first function code that Modbus leaves to the user
  BUS_SILENCE_MS = 100,
  FRAME_BYTES = 20,
  GATEWAYS_MAX = 64,
};

enum frame_status {
  FRAME_OK = 0,
  FRAME_RUINED = 1,        // frames of another gateway came in between: the command is spoilt
  FRAME_OUT_OF_ORDER = 2,  // belongs to no command that the device remembers
  FRAME_REFUSED = 3,       // its fencing token is not the newest: the device has done nothing
};

struct frame {
  uint8_t gateway;  // 1 .. GATEWAYS_MAX
  uint8_t index;
  uint8_t count;
  uint8_t status;  // enum frame_status; 0 in a command
  uint32_t job;
  uint64_t token;  // fencing token; 0: none
};

// CRC-16/MODBUS: reflected polynomial 0xA001, starts at 0xFFFF; the low byte goes out first.
static inline uint16_t frame_crc(const uint8_t *bytes, size_t size) {
  uint16_t crc = 0xFFFF;
  for (size_t i = 0; i < size; ++i) {
    crc = (uint16_t)(crc ^ bytes[i]);
    for (int bit = 0; bit < 8; ++bit) crc = (uint16_t)((crc >> 1) ^ ((crc & 1u) != 0 ? 0xA001 : 0));
  }
  return crc;
}

static inline void frame_encode(const struct frame *frame, uint8_t out[FRAME_BYTES]) {
  out[0] = BUS_ADDRESS;
  out[1] = BUS_FUNCTION;
  out[2] = frame->gateway;
  out[3] = frame->index;
  out[4] = frame->count;
  out[5] = frame->status;
  for (int i = 0; i < 4; ++i) out[6 + i] = (uint8_t)(frame->job >> (24 - 8 * i));
  for (int i = 0; i < 8; ++i) out[10 + i] = (uint8_t)(frame->token >> (56 - 8 * i));
  const uint16_t crc = frame_crc(out, FRAME_BYTES - 2);
  out[FRAME_BYTES - 2] = (uint8_t)(crc & 0xFF);
  out[FRAME_BYTES - 1] = (uint8_t)(crc >> 8);
}

static inline bool frame_decode(const uint8_t in[FRAME_BYTES], struct frame *frame) {
  const uint16_t crc = frame_crc(in, FRAME_BYTES - 2);
  if (in[0] != BUS_ADDRESS || in[1] != BUS_FUNCTION) return false;
  if (in[FRAME_BYTES - 2] != (crc & 0xFF) || in[FRAME_BYTES - 1] != crc >> 8) return false;
  if (in[2] < 1 || in[2] > GATEWAYS_MAX || in[3] >= in[4]) return false;
  *frame = (struct frame){.gateway = in[2], .index = in[3], .count = in[4], .status = in[5]};
  for (int i = 0; i < 4; ++i) frame->job = frame->job << 8 | in[6 + i];
  for (int i = 0; i < 8; ++i) frame->token = frame->token << 8 | in[10 + i];
  return true;
}

// Bytes that came from the wire and are not yet frames. Zeroed, it is empty.
struct frame_reader {
  uint8_t bytes[16 * FRAME_BYTES];
  size_t used;
  unsigned skipped;  // bytes that were part of no frame
};

// Read once. 1: something came or may come; 0: the other side is gone; -1: errno.
static inline int frame_read(struct frame_reader *reader, int fd) {
  const ssize_t n = read(fd, reader->bytes + reader->used, sizeof reader->bytes - reader->used);
  if (n < 0) return errno == EAGAIN || errno == EINTR ? 1 : -1;
  reader->used += (size_t)n;
  return n > 0;
}

// Take the next frame out. Where the bytes are no frame, one byte is skipped and the next place is tried.
static inline bool frame_next(struct frame_reader *reader, struct frame *frame) {
  size_t at = 0;
  bool found = false;
  while (!found && reader->used - at >= FRAME_BYTES) {
    found = frame_decode(reader->bytes + at, frame);
    at += found ? FRAME_BYTES : 1;
    if (!found) ++reader->skipped;
  }
  reader->used -= at;
  memmove(reader->bytes, reader->bytes + at, reader->used);
  return found;
}

#endif  // EXAMPLES_SHARED_DEVICE_FRAMES_H
