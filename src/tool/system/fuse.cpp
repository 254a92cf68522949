// SPDX-License-Identifier: MIT
#include "tool/system/fuse.hpp"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "tool/words/say.hpp"

namespace redlock::tool {
namespace {

[[noreturn]] void refuse() {
  fail(exit_system, "the kernel does not end a command with its parent: %s", strerror(errno));
}

}  // namespace

void Fuse::open() {
  int first[2], second[2];
  if (pipe2(first, O_CLOEXEC) != 0 || pipe2(second, O_CLOEXEC) != 0) refuse();
  reading_[0] = first[0];
  reading_[1] = fcntl(second[0], F_DUPFD_CLOEXEC, second[1]);
  if (reading_[1] < 0) refuse();
  close(second[0]);
  set(getpid());
}

void Fuse::set(pid_t whom) const {
  for (const int reading : reading_) {
    const bool is_set = fcntl(reading, F_SETOWN, whom) == 0 && fcntl(reading, F_SETSIG, SIGKILL) == 0 &&
                        fcntl(reading, F_SETFL, O_ASYNC) == 0;
    if (!is_set) refuse();
  }
}

}  // namespace redlock::tool
