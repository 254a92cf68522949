// SPDX-License-Identifier: MIT
//
// What stands behind a redlock_t, and who may come in. The C API is check, forward, convert; nothing is decided here.
//
// A redlock_s stands at the front of one block of memory, with everything it ever needs behind it; the block is the
// library's or the caller's, and is wiped when the client is gone.
#pragma once
#include "client.hpp"
#include "config/config.hpp"
#include "port/uv/driver.hpp"

struct redlock_s {
  redlock_s(const redlock::Settings& settings, void* arrays, void* connections, const redlock::Driver::Owner& owner)
      : client(settings, arrays), driver(client, owner, connections) {}

  redlock::Client client;
  redlock::Driver driver;
  redlock_event_fn event = nullptr;
  void* event_user = nullptr;
  redlock_log_fn log = nullptr;
  void* log_user = nullptr;
  int log_level = 0;
  uint32_t fork_generation = 0;
  uintptr_t thread = 0;  // of the loop; read by others only to be told that they are others
  size_t size = 0;
  bool owns_memory = false;
};

namespace redlock {

uintptr_t this_thread();
bool forked(const redlock_t* rl);

// 0 when the caller is the loop's thread, in the process that created the client.
int check_caller(const redlock_t* rl);

}  // namespace redlock
