// SPDX-License-Identifier: MIT
//
// modbus_gateway: one of several gateways on one RS-485 line, with libmodbus. A job selects a channel of the device and
// reads the channel's value: two requests that belong together. The device and the line are modbus_wire's.
//
//     modbus_gateway [--no-lock] [--seconds N] TTY CONFIG.json | URL...
//
// Prints one JSON line: good reads, CRC errors (and other frames that make no sense), time-outs, and `wrong`: values
// that libmodbus took for right, and that are another channel's. An answer of Modbus does not say what it answers.
//
// What to copy:
//   - Silence of 3.5 bytes before each request: libmodbus does not keep it.
//   - modbus_flush() then, once the lock is held: the tty holds what the others have said to each other.
//   - redlock_check() last before each request, with NEED_MS: the request, the device's time, and the answer.
//   - After an error the answer may still come. Nobody may send until then: stay silent for NEED_MS, then release.
//   - The byte timeout. It is 500 ms by default; then each garbled frame costs half a second.
// On a real line: open it with its parity ('E', and 1 stop bit), which a pty drops, and where the driver needs it call
// modbus_rtu_set_serial_mode(bus, MODBUS_RTU_RS485), which a pty refuses.
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <modbus.h>
#include <redlock/redlock.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
  BAUD = 19200,
  DEVICE = 17,
  SELECT = 0,  // registers of the device
  VALUE = 1,
  CHANNELS = 200,
  RESPONSE_MS = 200,  // the device begins to answer by then, or not at all
  BYTE_MS = 20,
  FRAME_MS = 10,      // on the wire, and then some: 16 bytes of 11 bits
  SILENCE_MS = 3,     // 3.5 bytes are 2 ms
  SETTLE_MS = 30,     // from the selection of a channel to its value
  NEED_MS = RESPONSE_MS + 2 * FRAME_MS,
  THINK_MS = 20,
  TTL_MS = 3000,
  WAIT_MS = 5000,
  GRACE_MS = 300      // for the last deletes to be answered
};

struct tally {
  unsigned good, crc_errors, time_outs, wrong;
  unsigned stopped;  // the lock was not had, or redlock_check() said no
};

static void pause_ms(long ms) {
  const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, NULL);
}

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

// ---- A job --------------------------------------------------------------------------------------------------------

// May the line be used for one request and its answer? There is nothing between this and the request.
static bool may_send(const redlock_t *rl, redlock_lock_t lock, modbus_t *bus, struct tally *tally) {
  pause_ms(SILENCE_MS);
  modbus_flush(bus);
  const int err = rl != NULL ? redlock_check(rl, lock, NEED_MS) : 0;
  if (err == 0) return true;
  ++tally->stopped;
  fprintf(stderr, "job broken off: %s\n", redlock_strerror(err));
  return false;
}

static void count_error(struct tally *tally) {
  ++*(errno == ETIMEDOUT ? &tally->time_outs : &tally->crc_errors);
  pause_ms(NEED_MS);  // the answer may still come
}

static void read_channel(const redlock_t *rl, redlock_lock_t lock, modbus_t *bus, struct tally *tally) {
  const uint16_t channel = (uint16_t)(1 + random() % CHANNELS);
  uint16_t value = 0;
  if (!may_send(rl, lock, bus, tally)) return;
  if (modbus_write_register(bus, SELECT, channel) != 1) {
    count_error(tally);
    return;
  }
  pause_ms(SETTLE_MS);
  if (!may_send(rl, lock, bus, tally)) return;
  if (modbus_read_registers(bus, VALUE, 1, &value) != 1) {
    count_error(tally);
    return;
  }
  ++*(value == 100 * channel + 7 ? &tally->good : &tally->wrong);  // a real gateway cannot tell
}

static void one_job(redlock_t *rl, modbus_t *bus, struct tally *tally) {
  const redlock_resource_t line = redlock_resource("plant1/rs485-a");
  redlock_acquire_opts_t opts = REDLOCK_ACQUIRE_OPTS_INIT;
  redlock_lock_t lock = {0};
  opts.ttl_ms = TTL_MS;
  opts.wait_ms = WAIT_MS;
  opts.min_validity_ms = NEED_MS;
  if (rl != NULL && redlock_acquire(rl, &line, 1, &opts, &lock) != 0) {
    ++tally->stopped;  // the log says why
    return;
  }
  read_channel(rl, lock, bus, tally);
  if (rl != NULL) redlock_release(rl, lock);
}

// ---- The program --------------------------------------------------------------------------------------------------

static modbus_t *open_line(const char *tty) {
  modbus_t *bus = modbus_new_rtu(tty, BAUD, 'N', 8, 2);
  if (bus == NULL) return NULL;
  if (modbus_set_response_timeout(bus, 0, RESPONSE_MS * 1000) == 0 &&
      modbus_set_byte_timeout(bus, 0, BYTE_MS * 1000) == 0 && modbus_set_slave(bus, DEVICE) == 0 &&
      modbus_connect(bus) == 0)
    return bus;
  const int err = errno;
  modbus_free(bus);
  errno = err;
  return NULL;
}

static int create_client(redlock_t **rl, char **arguments) {
  redlock_config_t *config = NULL;
  int err = redlock_config_new(&config);
  if (err == 0) redlock_config_set_log(config, redlock_log_stderr, NULL, 5);
  for (; err == 0 && *arguments != NULL; ++arguments)
    err = strstr(*arguments, "://") != NULL ? redlock_config_add_master(config, *arguments)
                                            : redlock_config_load_file(config, *arguments);
  if (err == 0) err = redlock_create(rl, config);
  if (err != 0) fprintf(stderr, "%s: %s\n", redlock_strerror(err), config != NULL ? redlock_config_error(config) : "");
  redlock_config_free(config);
  return err;
}

int main(int argc, char **argv) {
  int at = 1, locked = 1;
  double seconds = 5;
  if (at < argc && strcmp(argv[at], "--no-lock") == 0) locked = 0, ++at;
  if (at + 1 < argc && strcmp(argv[at], "--seconds") == 0) seconds = atof(argv[at + 1]), at += 2;
  if (at + locked >= argc)
    return fputs("usage: modbus_gateway [--no-lock] [--seconds N] TTY CONFIG.json | URL...\n", stderr), 2;
  srandom((unsigned)getpid());
  redlock_t *rl = NULL;
  struct tally tally = {0};
  modbus_t *bus = open_line(argv[at]);
  if (bus == NULL) return fprintf(stderr, "%s: %s\n", argv[at], modbus_strerror(errno)), 1;
  if (locked && create_client(&rl, argv + at + 1) != 0) return 1;
  for (const double end = now_s() + seconds; now_s() < end; pause_ms(THINK_MS / 2 + random() % THINK_MS))
    one_job(rl, bus, &tally);
  if (rl != NULL) redlock_destroy(rl, GRACE_MS);
  modbus_close(bus);
  modbus_free(bus);
  printf("{\"good\":%u,\"crc_errors\":%u,\"time_outs\":%u,\"wrong\":%u,\"stopped\":%u}\n", tally.good,
         tally.crc_errors, tally.time_outs, tally.wrong, tally.stopped);
  return 0;
}
