// SPDX-License-Identifier: MIT
#include "tool/system/pid_namespace.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/words/say.hpp"
#include "tool/words/text.hpp"

namespace redlock::tool {
namespace {

[[noreturn]] void refuse() {
  fail(exit_system, "--pidns: the system allows this user no PID namespace: %s", strerror(errno));
}

void write_file(const char* path, const char* text) {
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0 || write(file, text, strlen(text)) < 0) refuse();
  close(file);
}

// The command has our user and group, as without it, and no others. The files of /proc belong to root in a process that
// makes no core file.
void map_identity(uid_t user, gid_t group) {
  prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  write_file("/proc/self/setgroups", "deny");
  write_file("/proc/self/uid_map", Text("%u %u 1", user, user));
  write_file("/proc/self/gid_map", Text("%u %u 1", group, group));
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

// `warden`: a pipe that the warden reads. If it has died before we were to die with it, nobody does.
//   A group of our own: else our end could leave the caller's group an orphan, and the kernel sends HUP to all members
// of a group that becomes one while one of them is stopped.
[[noreturn]] void be_init(int warden) {
  setpgid(0, 0);
  prctl(PR_SET_NAME, "redlock-init", 0, 0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (write(warden, "", 1) != 1) _exit(exit_system);
  close(warden);
  sigset_t all;
  sigfillset(&all);
  for (bool is_over = false;;) {
    siginfo_t info{};
    const bool is_from_outside = sigwaitinfo(&all, &info) == SIGTERM && info.si_pid == 0;
    if (is_from_outside) kill(-1, SIGTERM);
    is_over = is_over || is_from_outside;
    pid_t child = 0;
    do {
      child = waitpid(-1, nullptr, WNOHANG);
    } while (child > 0);
    if (is_over && child < 0) _exit(0);
  }
}

}  // namespace

pid_t make_pid_namespace() {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (unshare(CLONE_NEWPID) != 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) refuse();
    map_identity(user, group);
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) refuse();
  const pid_t init = fork();
  if (init < 0) refuse();
  close(ends[init != 0]);
  if (init == 0) be_init(ends[1]);
  char byte;
  if (read(ends[0], &byte, 1) != 1) fail(exit_system, "--pidns: the init of the PID namespace has ended");
  close(ends[0]);
  return init;
}

}  // namespace redlock::tool
