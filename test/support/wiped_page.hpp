// SPDX-License-Identifier: MIT
//
// Does this system wipe pages in children (MADV_WIPEONFORK)? Linux before 4.14 refuses, and qemu-user says yes and does
// not do it. There children made past fork()'s handlers are not noticed, and what expects that is skipped.
#pragma once
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace redlock::test {

// A child that no handler of fork() hears of; 0 in the child.
inline pid_t bare_clone() { return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)); }

// Did it end with 0?
inline bool ended_well(pid_t pid) {
  int status = -1;
  return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

inline bool pages_are_wiped() {
  void* const page = mmap(nullptr, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return false;
  volatile char& byte = *static_cast<char*>(page);
  bool wiped = madvise(page, 1, MADV_WIPEONFORK) == 0;
  if (wiped) {
    byte = 1;
    const pid_t child = bare_clone();
    if (child == 0) _exit(byte);
    wiped = ended_well(child);
  }
  munmap(page, 1);
  return wiped;
}

}  // namespace redlock::test
