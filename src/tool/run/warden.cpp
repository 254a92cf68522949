// SPDX-License-Identifier: MIT
#include "tool/run/warden.hpp"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/words/say.hpp"

namespace redlock::tool {

void CommandWarden::fork(const Job& job, Signals& signals) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0 || (pid_ = ::fork()) < 0) {
    fail(exit_system, "the system makes no process: %s", strerror(errno));
  }
  if (pid_ == 0) {
    close(ends[0]);
    run_warden(job, signals, ends[1]);
  }
  close(ends[1]);
  socket_ = ends[0];
  Report report{};
  if (recv(socket_, &report, sizeof report, 0) == sizeof report) return;
  int status = 0;
  waitpid(pid_, &status, 0);
  exit(WIFEXITED(status) ? WEXITSTATUS(status) : exit_system);  // the warden has said why
}

// A warden that is stopped reads nothing. It ends in time nevertheless.
void CommandWarden::send(const Order& order) const {
  ::send(socket_, &order, sizeof order, MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool CommandWarden::receive(Report& report) const {
  return recv(socket_, &report, sizeof report, MSG_DONTWAIT) == sizeof report;
}

void CommandWarden::dismiss() {
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
}

}  // namespace redlock::tool
