// SPDX-License-Identifier: MIT
//
// The locks that this program runs under. A `redlock run` below another one that holds the same lock would wait for its
// own end. REDLOCK_KEEPERS has a line for each lock: the keeper's process id and start time, the site, the name. A line
// counts only while that keeper is an ancestor: a process that has left the command does not run under its lock.
#pragma once
#include "tool/run/job.hpp"

namespace redlock::tool {

// Remembers the keeper and its site. Call it before the warden is forked.
void remember_keeper(const redlock_config_t* cfg);
// A lock of the wish that an ancestor holds, and the process id of its keeper. A wish for any is affected only if all
// of its locks are held so.
struct Above {
  const char* name = nullptr;  // null: none is held
  pid_t keeper = 0;
};
Above held_above(const Wish& wish);
// Adds the held names to REDLOCK_KEEPERS. Call it in the command's process, before execvp().
void pass_on(const Wish& wish, uint32_t which);

}  // namespace redlock::tool
