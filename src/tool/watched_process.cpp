// SPDX-License-Identifier: MIT
#include "tool/watched_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace redlock::tool {
namespace {

// The same on every processor; older headers lack them.
constexpr long sys_pidfd_send_signal = 424;
constexpr long sys_pidfd_open = 434;

// The 22nd word of /proc/PID/stat; 0: there is no such process, or it has ended.
uint64_t start_of(pid_t pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%ld/stat", static_cast<long>(pid));
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[1024];
  const ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  text[size > 0 ? size : 0] = '\0';
  const char* word = strrchr(text, ')');
  if (word == nullptr || strncmp(word, ") Z", 3) == 0) return 0;
  for (int i = 2; i < 22 && word != nullptr; ++i) word = strchr(word + 1, ' ');
  return word == nullptr ? 0 : strtoull(word, nullptr, 10);
}

}  // namespace

bool WatchedProcess::open(pid_t pid) {
  pid_ = pid;
  descriptor_ = static_cast<int>(syscall(sys_pidfd_open, pid, 0));
  started_ = start_of(pid);
  return started_ != 0;
}

bool WatchedProcess::has_ended() const {
  if (descriptor_ < 0) return start_of(pid_) != started_;
  pollfd wanted = {descriptor_, POLLIN, 0};
  return poll(&wanted, 1, 0) == 1;
}

void WatchedProcess::signal(int number) const {
  if (descriptor_ >= 0) {
    syscall(sys_pidfd_send_signal, descriptor_, number, nullptr, 0);
  } else if (!has_ended()) {
    kill(pid_, number);
  }
}

}  // namespace redlock::tool
