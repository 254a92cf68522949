// SPDX-License-Identifier: MIT
//
// The clock of Linux: Clock (port/clock.hpp) over three clocks of the kernel.
#pragma once
#include <stdint.h>
#include <time.h>

#include "port/clock.hpp"

namespace redlock {

// In line: four of them are read for every input.
struct PosixClockSource {
  int64_t monotonic_raw_ns() const { return read(CLOCK_MONOTONIC_RAW); }
  int64_t monotonic_ns() const { return read(CLOCK_MONOTONIC); }
  int64_t boottime_ns() const { return read(CLOCK_BOOTTIME); }

 private:
  static int64_t read(clockid_t id) {
    timespec t;
    if (clock_gettime(id, &t) != 0) return -1;
    return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;  // 64 bits before the product: tv_sec may have 32
  }
};

using SystemClock = Clock<PosixClockSource>;
extern template class Clock<PosixClockSource>;  // in clock.cpp, once for all files that read it

}  // namespace redlock
