// SPDX-License-Identifier: MIT
#include "port/posix/gate.hpp"

#include "base/quotient.hpp"
#include "base/types.hpp"

namespace redlock {

bool Gate::open() {
  pthread_mutexattr_t attributes;
  if (pthread_mutexattr_init(&attributes) != 0) return false;
  // Some systems refuse. A thread of high priority may then wait for a thread that the scheduler does not let run.
  (void)pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
  const bool opened = pthread_mutex_init(&mutex_, &attributes) == 0;
  pthread_mutexattr_destroy(&attributes);
  return opened;
}

bool Bell::open() {
  pthread_condattr_t attributes;
  if (pthread_condattr_init(&attributes) != 0) return false;
  const bool opened = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
                      pthread_cond_init(&condition_, &attributes) == 0;
  pthread_condattr_destroy(&attributes);
  return opened;
}

bool Bell::wait_until(Gate& gate, const timespec& time) {
  return pthread_cond_timedwait(&condition_, &gate.mutex_, &time) == 0;
}

timespec Bell::from_now(int64_t ms) {
  REDLOCK_ASSERT(ms >= 0);
  timespec time = {};
  clock_gettime(CLOCK_MONOTONIC, &time);
  const int64_t seconds = quotient(ms, 1'000);
  time.tv_sec += static_cast<time_t>(seconds);
  time.tv_nsec += static_cast<long>(ms - seconds * 1'000) * 1'000'000;  // less than two seconds fit into 32 bits
  if (time.tv_nsec >= 1'000'000'000) {
    time.tv_nsec -= 1'000'000'000;
    ++time.tv_sec;
  }
  return time;
}

}  // namespace redlock
