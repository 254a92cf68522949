// SPDX-License-Identifier: MIT
//
// The descendants of this process. It has become the parent of all orphans below it (PR_SET_CHILD_SUBREAPER), so none
// of them gets lost. The children that the process had before are not counted: a shell's `exec redlock run` leaves it
// some, for example a logger. An orphan that such a child leaves behind counts as ours.
//
// /proc/PID/task/TID/children lists the children of each process, so what a search costs depends on our descendants
// alone. A kernel without CONFIG_PROC_CHILDREN has no such lists. There a search reads all of /proc, and on a machine
// with 10,000 processes that takes as long as the time that is left to kill.
#pragma once
#include <sys/types.h>

namespace redlock::tool {

// Remembers the children of before. Ends the program if they are too many.
void become_parent_of_orphans();
// False: /proc tells of another PID namespace, where processes have other numbers.
bool is_proc_ours();
// Signals every descendant once, also one that is forked meanwhile. 0: signals none. Returns how many there are. Reads
// /proc: where that is missing or not ours, no descendant is found.
unsigned signal_descendants(int number);
bool has_descendants();
bool is_descendant(pid_t pid);  // as long as it has not been reaped
// As waitpid(-1, status, WNOHANG). The number of a child that has ended is free for another process.
pid_t reap_child(int& status);
// Is a child of before still there?
bool has_earlier_children();

}  // namespace redlock::tool
