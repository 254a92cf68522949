// SPDX-License-Identifier: MIT
//
// Options: the gateway's command line.
#ifndef EXAMPLES_SHARED_DEVICE_OPTIONS_H
#define EXAMPLES_SHARED_DEVICE_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct options {
  uint32_t id, jobs, think_ms, wait_ms, ttl_ms, retry_ms, freeze_every;
  bool lock, commission, fencing;
  const char *device, *resource, *config;
  FILE *log;  // NULL: none
  char *masters;
};

static const char k_usage[] =
    "usage: gateway --device ADDRESS (--masters URL,URL,... | --config FILE) [options]\n"
    "Sends commands to the device, each under the lock. Ends after --jobs, or with SIGTERM or SIGINT when the job at\n"
    "hand is done, and prints what it did as one JSON line.\n"
    "  --device ADDRESS   127.0.0.1:PORT or /dev/..., as the device printed it\n"
    "  --masters URLS     Redis masters, e.g. redis://127.0.0.1:6379,redis://127.0.0.1:6380\n"
    "  --config FILE      the same and more as JSON (redlock.h, part 4)\n"
    "  --commission       the masters are new, and no lock is held: do not watch them for the guard time first\n"
    "  --fencing          with a fencing token in each frame; `device --check-tokens` refuses those of former holders\n"
    "  --no-lock          talk to the device without asking (--lock is the default)\n"
    "  --id N             number of this gateway, 1 .. 64 (default 1)\n"
    "  --jobs N           end after N jobs; 0: never (default)\n"
    "  --resource NAME    what is locked (default shared-device)\n"
    "  --think-ms N       mean pause between two jobs (default 20)\n"
    "  --wait-ms N        how long to wait for the lock (default 5000)\n"
    "  --retry-ms N       the longest pause between two rounds of asking (default 30)\n"
    "  --ttl-ms N         lifetime of the lock's keys on the masters (default 2000)\n"
    "  --freeze-every N   stop itself with SIGSTOP in job 1, N + 1, 2 N + 1, ..., between the check and the write;\n"
    "                     0: never (default). SIGCONT lets it write\n"
    "  --log FILE         add when each frame was checked and written, and each job over, for judge.awk\n"
    "  --help\n";

static inline bool parse_u32(const char *text, uint32_t min, uint32_t max, uint32_t *out) {
  char *end;
  const unsigned long value = strtoul(text, &end, 10);
  *out = (uint32_t)value;
  return text[0] >= '0' && text[0] <= '9' && *end == '\0' && value >= min && value <= max;
}

// False: *exit_status says how to end.
static inline bool parse_options(int argc, char **argv, struct options *o, int *exit_status) {
  static const struct option options[] = {
      {"device", required_argument, NULL, 'd'},   {"masters", required_argument, NULL, 'm'},
      {"config", required_argument, NULL, 'c'},   {"lock", no_argument, NULL, 'l'},
      {"no-lock", no_argument, NULL, 'n'},        {"id", required_argument, NULL, 'i'},
      {"jobs", required_argument, NULL, 'j'},     {"resource", required_argument, NULL, 'r'},
      {"think-ms", required_argument, NULL, 't'}, {"wait-ms", required_argument, NULL, 'w'},
      {"retry-ms", required_argument, NULL, 'y'}, {"ttl-ms", required_argument, NULL, 'x'},
      {"commission", no_argument, NULL, 'o'},     {"fencing", no_argument, NULL, 'f'},
      {"freeze-every", required_argument, NULL, 'z'}, {"log", required_argument, NULL, 'g'},
      {"help", no_argument, NULL, 'h'},
      {NULL, 0, NULL, 0}};
  *o = (struct options){.id = 1, .think_ms = 20, .wait_ms = 5000, .ttl_ms = 2000, .retry_ms = 30, .lock = true};
  o->resource = "shared-device";
  bool valid = true;
  for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1 && valid;) {
    switch (c) {
      case 'd': o->device = optarg; break;
      case 'm': o->masters = optarg; break;
      case 'c': o->config = optarg; break;
      case 'l': o->lock = true; break;
      case 'n': o->lock = false; break;
      case 'o': o->commission = true; break;
      case 'f': o->fencing = true; break;
      case 'r': o->resource = optarg; break;
      case 'g': valid = (o->log = fopen(optarg, "ae")) != NULL; break;
      case 'i': valid = parse_u32(optarg, 1, 64, &o->id); break;
      case 'j': valid = parse_u32(optarg, 0, 1000000, &o->jobs); break;
      case 't': valid = parse_u32(optarg, 0, 60000, &o->think_ms); break;
      case 'w': valid = parse_u32(optarg, 0, 3600000, &o->wait_ms); break;
      case 'x': valid = parse_u32(optarg, 20, 86400000, &o->ttl_ms); break;
      case 'y': valid = parse_u32(optarg, 1, 5000, &o->retry_ms); break;
      case 'z': valid = parse_u32(optarg, 0, 1000000, &o->freeze_every); break;
      case 'h': fputs(k_usage, stdout); return *exit_status = 0, false;
      default: valid = false;
    }
  }
  valid = valid && optind == argc && o->device != NULL;
  if (valid && (!o->lock || o->masters != NULL || o->config != NULL)) return true;
  fputs(k_usage, stderr);
  return *exit_status = 2, false;
}

#endif  // EXAMPLES_SHARED_DEVICE_OPTIONS_H
