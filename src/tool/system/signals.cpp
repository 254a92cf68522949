// SPDX-License-Identifier: MIT
#include "tool/system/signals.hpp"

#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "tool/words/say.hpp"

namespace redlock::tool {
namespace {

sighandler_t pipes_before = SIG_DFL;

}  // namespace

void Signals::take(std::initializer_list<int> numbers, int anew) {
  signal(SIGCHLD, SIG_DFL);  // ignored, it would hide how a child has ended
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int number : numbers) {
    struct sigaction now {};
    sigaction(number, nullptr, &now);
    if (now.sa_handler != SIG_IGN || number == anew) sigaddset(&wanted, number);
  }
  sigprocmask(SIG_SETMASK, nullptr, &before_);
  open(wanted);
  sigprocmask(SIG_BLOCK, &wanted, nullptr);
  if (anew != 0) signal(anew, SIG_DFL);  // only now: it would have ended this process
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

int Signals::next() {
  signalfd_siginfo info{};
  if (read(descriptor_, &info, sizeof info) != sizeof info) return 0;
  is_from_terminal_ = info.ssi_code == SI_KERNEL;
  return static_cast<int>(info.ssi_signo);
}

int end_by(int number) {
  signal(number, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, number);
  raise(number);
  sigprocmask(SIG_UNBLOCK, &one, nullptr);
  return exit_signal + number;
}

void ignore_broken_pipes() { pipes_before = signal(SIGPIPE, SIG_IGN); }

void Signals::give_back() const {
  signal(SIGPIPE, pipes_before);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace redlock::tool
