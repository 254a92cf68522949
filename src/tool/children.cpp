// SPDX-License-Identifier: MIT
#include "tool/children.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace redlock::tool {
namespace {

// The parent of a process that runs; 0: there is no such process, or it has ended.
pid_t parent_of(long pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%ld/stat", pid);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[512];
  const ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  text[size > 0 ? size : 0] = '\0';
  const char* after_name = strrchr(text, ')');  // "12 (any name) S 1 ..."
  if (after_name == nullptr || strlen(after_name) < 5 || after_name[2] == 'Z') return 0;
  return static_cast<pid_t>(strtol(after_name + 4, nullptr, 10));
}

}  // namespace

void become_parent_of_orphans() { prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

void signal_children(int number, pid_t but) {
  DIR* processes = opendir("/proc");
  if (processes == nullptr) return;
  const pid_t self = getpid();
  while (const dirent* entry = readdir(processes)) {
    const long pid = strtol(entry->d_name, nullptr, 10);
    if (pid > 0 && pid != but && parent_of(pid) == self) kill(static_cast<pid_t>(pid), number);
  }
  closedir(processes);
}

}  // namespace redlock::tool
