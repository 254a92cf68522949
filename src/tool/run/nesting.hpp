// SPDX-License-Identifier: MIT
//
// The locks that this program runs under. A `redlock run` below another one that holds the same lock would wait for its
// own end. The environment has a line for each lock: the keeper's process id and start time, the site, the name. A line
// counts only while that keeper is an ancestor: what left the command, or has its number, holds nothing.
#pragma once
#include "tool/run/job.hpp"

namespace redlock::tool {

// Before the warden is forked: who the keeper is, and at which site.
void remember_keeper(const redlock_config_t* cfg);
// The wish is for a lock that an ancestor holds: its name, and the keeper's process id. Of a wish for any all must be.
struct Above {
  const char* name = nullptr;  // null: none is held
  pid_t keeper = 0;
};
Above held_above(const Wish& wish);
// In the command, before it is executed: it runs under these names, too.
void pass_on(const Wish& wish, uint32_t which);

}  // namespace redlock::tool
