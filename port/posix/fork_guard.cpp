// SPDX-License-Identifier: MIT
#include "port/posix/fork_guard.hpp"

#include <pthread.h>

namespace redlock::fork_guard {

uint32_t generation = 0;

namespace {

pthread_once_t once = PTHREAD_ONCE_INIT;

void in_child() { __atomic_fetch_add(&generation, 1, __ATOMIC_RELAXED); }

void add_handler() {
  if (pthread_atfork(nullptr, nullptr, in_child) == 0) __atomic_store_n(&generation, 1, __ATOMIC_RELAXED);
}

}  // namespace

uint32_t install() {
  pthread_once(&once, add_handler);
  return __atomic_load_n(&generation, __ATOMIC_RELAXED);
}

}  // namespace redlock::fork_guard
