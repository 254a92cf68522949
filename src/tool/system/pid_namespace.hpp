// SPDX-License-Identifier: MIT
//
// A PID namespace for the command of `redlock run --pidns`. When the init of a namespace ends, the kernel kills every
// process in it, whatever sessions and parents these have. The init is a child of the warden, beside the command, and
// dies with the warden. The warden itself cannot be the init: no signal of its own timer, not even SIGKILL, ends an
// init.
#pragma once
#include <sys/types.h>

namespace redlock::tool {

// Makes a namespace, which all further children of this process are born into, and its init, which has this pid. Makes
// a user namespace too where only that is allowed. Ends the program if the system refuses. For a process that has one
// thread, and blocks all signals.
//   SIGTERM from outside the namespace: the init sends it to all others there, and ends when none of them is left.
//   SIGKILL: it ends with all of them.
pid_t make_pid_namespace();

}  // namespace redlock::tool
