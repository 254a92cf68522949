// SPDX-License-Identifier: MIT
#include "tool/signals.hpp"

#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "tool/say.hpp"

namespace redlock::tool {

void Signals::take(const int* numbers, unsigned count) {
  signal(SIGCHLD, SIG_DFL);  // ignored, it would hide how a child has ended
  sigset_t wanted;
  sigemptyset(&wanted);
  for (unsigned i = 0; i < count; ++i) {
    struct sigaction now {};
    sigaction(numbers[i], nullptr, &now);
    if (now.sa_handler != SIG_IGN) sigaddset(&wanted, numbers[i]);
  }
  sigprocmask(SIG_SETMASK, nullptr, &before_);
  open(wanted);
  sigaddset(&wanted, SIGTTOU);  // whoever gives a terminal away is in the background then
  sigprocmask(SIG_BLOCK, &wanted, nullptr);
}

void Signals::take_children_only() {
  close(descriptor_);
  sigset_t wanted;
  sigfillset(&wanted);
  sigprocmask(SIG_SETMASK, &wanted, nullptr);
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGCHLD);
  open(wanted);
}

void Signals::open(const sigset_t& wanted) {
  descriptor_ = signalfd(-1, &wanted, SFD_NONBLOCK | SFD_CLOEXEC);
  if (descriptor_ < 0) fail(exit_system, "signals: %s", strerror(errno));
}

int Signals::next() const {
  signalfd_siginfo info{};
  return read(descriptor_, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
}

void Signals::give_back() const { sigprocmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace redlock::tool
