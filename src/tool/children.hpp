// SPDX-License-Identifier: MIT
//
// The children of this process, which has become the parent of all orphans below it (PR_SET_CHILD_SUBREAPER). Killing
// the children, again whenever one has ended, reaches every descendant: each becomes a child when its parent is gone.
#pragma once
#include <sys/types.h>

namespace redlock::tool {

void become_parent_of_orphans();
// False: /proc tells of another PID namespace, where processes have other numbers.
bool is_proc_ours();
// Signals every child but this one. Reads /proc: where that is missing or not ours, no child is found.
void signal_children(int number, pid_t but = 0);

}  // namespace redlock::tool
