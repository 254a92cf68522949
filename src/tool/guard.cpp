// SPDX-License-Identifier: MIT
#include "tool/guard.hpp"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/guarding.hpp"
#include "tool/say.hpp"

namespace redlock::tool {

void CommandGuard::fork(const Job& job, Signals& signals) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    fail(exit_system, "socket: %s", strerror(errno));
  }
  pid_ = ::fork();
  if (pid_ < 0) fail(exit_system, "fork: %s", strerror(errno));
  if (pid_ == 0) {
    close(ends[0]);
    GuardProcess(job, signals, ends[1]).run();
  }
  close(ends[1]);
  socket_ = ends[0];
  Report report{};
  if (!job.has_pid_namespace || recv(socket_, &report, sizeof report, 0) == sizeof report) return;
  int status = 0;
  waitpid(pid_, &status, 0);
  exit(WIFEXITED(status) ? WEXITSTATUS(status) : exit_system);  // the guard has said why
}

// A guard that is stopped reads nothing. It ends in time nevertheless.
void CommandGuard::send(const Order& order) const {
  ::send(socket_, &order, sizeof order, MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool CommandGuard::receive(Report& report) const {
  return recv(socket_, &report, sizeof report, MSG_DONTWAIT) == sizeof report;
}

void CommandGuard::dismiss() {
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
}

}  // namespace redlock::tool
