// SPDX-License-Identifier: MIT
#include "tool/watched_process.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tool/process_stat.hpp"

namespace redlock::tool {
namespace {

// The same on every processor; older headers lack them.
constexpr long sys_pidfd_send_signal = 424;
constexpr long sys_pidfd_open = 434;

constexpr int start_field = 22;

uint64_t start_of(pid_t pid) { return ProcessStat(pid).number(start_field); }

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
