// SPDX-License-Identifier: MIT
#include "port/posix/fork_guard.hpp"

#include <pthread.h>

namespace redlock {
namespace {

pthread_once_t once = PTHREAD_ONCE_INIT;
uint32_t generation = 0;

void in_child() { __atomic_fetch_add(&generation, 1, __ATOMIC_RELAXED); }

void install() {
  if (pthread_atfork(nullptr, nullptr, in_child) == 0) __atomic_store_n(&generation, 1, __ATOMIC_RELAXED);
}

}  // namespace

uint32_t fork_generation() {
  pthread_once(&once, install);
  return __atomic_load_n(&generation, __ATOMIC_RELAXED);
}

}  // namespace redlock
