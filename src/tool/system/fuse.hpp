// SPDX-License-Identifier: MIT
//
// The fuse: when this process dies, for whatever reason, the kernel sends KILL to a process group, to all members at
// once, forks included. It asks for no privilege, and reaches members that have changed their user if we are root.
//
// A fuse is a pipe, both ends of which only this process has, and whose reading end has told the kernel whom to signal
// when it can be read (F_SETOWN, F_SETSIG, O_ASYNC). When the process dies, the writing end closes, and so the reading
// end "can be read". That goes wrong if the kernel closes the reading end first. In which order the kernel closes is
// not documented. Hence there are two pipes, with their ends in opposite orders.
#pragma once
#include <sys/types.h>

namespace redlock::tool {

class Fuse {
 public:
  // Ends the program if the system refuses.
  void open();
  // For a child, before exec, also in a PID namespace: its numbers count. Below 0: the number of a process group.
  void set(pid_t whom) const;

 private:
  int reading_[2] = {-1, -1};
};

}  // namespace redlock::tool
