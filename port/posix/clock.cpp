// SPDX-License-Identifier: MIT
#include "port/posix/clock.hpp"

#include <time.h>

namespace redlock {
namespace {

int64_t read_clock(clockid_t id) {
  struct timespec t;
  if (clock_gettime(id, &t) != 0) return -1;
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;  // 64 bits before the product: tv_sec may have 32
}

}  // namespace

int64_t PosixClockSource::monotonic_raw_ns() const { return read_clock(CLOCK_MONOTONIC_RAW); }
int64_t PosixClockSource::monotonic_ns() const { return read_clock(CLOCK_MONOTONIC); }
int64_t PosixClockSource::boottime_ns() const { return read_clock(CLOCK_BOOTTIME); }

}  // namespace redlock
