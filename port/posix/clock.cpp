// SPDX-License-Identifier: MIT
#include "port/posix/clock.hpp"

namespace redlock {

template class Clock<PosixClockSource>;

}  // namespace redlock
