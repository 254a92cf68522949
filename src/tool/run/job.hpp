// SPDX-License-Identifier: MIT
//
// What `redlock run` is to do.
#pragma once
#include <redlock/any_of.hpp>

#include "tool/run/schedule.hpp"
#include "tool/words/exit_code.hpp"
#include "tool/words/options.hpp"
#include "tool/words/text.hpp"

namespace redlock::tool {

// What is to be locked, and how.
struct Wish {
  redlock_resource_t resources[any_of::most] = {};
  uint32_t count = 0;
  bool is_any = false;  // one of them is enough
  redlock_acquire_opts_t how = REDLOCK_ACQUIRE_OPTS_INIT;
  Text names;           // as they are spelled in every output, with blanks between them

  // `resource` must live as long; its length must be a name's.
  void add(const char* resource);
  // The names that are held; `which`: the one of a wish for any.
  Text held(uint32_t which) const {
    return is_any ? Text().escaped(static_cast<const char*>(resources[which].data)) : names;
  }
  Text bytes_held(uint32_t which) const;  // the same as they are, for the command
};

struct Job {
  Wish wish;
  char** words = nullptr;           // the command, with a null at the end
  int32_t at_least_ms = 0;          // the keeper holds the lock for so long
  const char* metrics = nullptr;    // a file to be written
  bool has_terminal = false;        // the command stays in our process group then
  bool tells_systemd = false;       // the keeper does, and so the command cannot
  const char* relay = nullptr;      // a socket between the command and systemd; READY=1 is sent while the keeper waits
  bool has_pid_namespace = false;
  bool ignores_hup = false;         // while it waits
  uint32_t held_code = exit_held;   // the exit code where others hold the lock
  Schedule schedule;
};

// Runs the job under the lock. Returns the program's exit code.
int keep(const Job& job, redlock_config_t* cfg, const Common& common);

}  // namespace redlock::tool
