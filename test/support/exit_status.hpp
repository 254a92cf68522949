// SPDX-License-Identifier: MIT
#pragma once
#include <sys/types.h>
#include <sys/wait.h>

namespace redlock::test {

// Waits for a child, and tells its exit status as a shell does: 128 and the number of a signal. pid is -1 then. The
// result is -1 where there was no such child.
inline int take_exit_status(pid_t& pid) {
  int status = 0;
  if (pid <= 0 || ::waitpid(pid, &status, 0) != pid) return -1;
  pid = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace redlock::test
