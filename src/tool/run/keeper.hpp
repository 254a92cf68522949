// SPDX-License-Identifier: MIT
//
// The keeper: the process that the caller started. It has the client and takes the signals. It gives the command's end
// as its own, and lets the lock go when the command and all its descendants are gone. See warden.hpp for the command's
// parent.
//
// The keeper stays in the caller's session. A session of its own would gain one thing: a KILL or STOP to the caller's
// process group would miss the keeper. But a shell makes a job's first process the leader of a group, and a leader may
// not call setsid(). So a third process would have to stay behind as the job. Shells and init systems would wait for
// that process, signals and ^Z would have to go through it, and it could be stopped and killed as well.
#pragma once
#include "tool/run/lease.hpp"
#include "tool/run/warden.hpp"

namespace redlock::tool {

// Runs the job under the lock. Returns the program's exit code.
int keep(const Job& job, redlock_config_t* cfg, const Common& common);

}  // namespace redlock::tool
