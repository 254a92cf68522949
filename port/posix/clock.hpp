// SPDX-License-Identifier: MIT
//
// The source of Clock (port/clock.hpp) on Linux.
#pragma once
#include <stdint.h>

namespace redlock {

struct PosixClockSource {
  int64_t monotonic_raw_ns() const;
  int64_t monotonic_ns() const;
  int64_t boottime_ns() const;
};

}  // namespace redlock
