// SPDX-License-Identifier: MIT
#include "tool/children.hpp"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tool/process_stat.hpp"

namespace redlock::tool {
namespace {

constexpr int parent_field = 4;

bool is_child(long pid) { return ProcessStat(pid).number(parent_field) == static_cast<unsigned long long>(getpid()); }

}  // namespace

void become_parent_of_orphans() { prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

bool is_proc_ours() {
  char self[16] = "";
  return readlink("/proc/self", self, sizeof self - 1) < 0 || strtol(self, nullptr, 10) == getpid();
}

void signal_children(int number, pid_t but) {
  if (!is_proc_ours()) return;
  DIR* processes = opendir("/proc");
  if (processes == nullptr) return;
  while (const dirent* entry = readdir(processes)) {
    const long pid = strtol(entry->d_name, nullptr, 10);
    if (pid > 0 && pid != but && is_child(pid)) kill(static_cast<pid_t>(pid), number);
  }
  closedir(processes);
}

}  // namespace redlock::tool
