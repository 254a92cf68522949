// SPDX-License-Identifier: MIT
#include "tool/guarding.hpp"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/children.hpp"
#include "tool/pid_namespace.hpp"
#include "tool/say.hpp"

namespace redlock::tool {
namespace {

constexpr int again_ms = 20;  // while killing: descendants that were being forked turn up

void set_number(const char* name, uint64_t number) {
  char text[24];
  format_text(text, sizeof text, "%llu", static_cast<unsigned long long>(number));
  setenv(name, text, 1);
}

}  // namespace

void GuardProcess::run() {
  signals_.take_children_only();
  prctl(PR_SET_NAME, "redlock-guard", 0, 0, 0);
  setpgid(0, 0);  // a signal to the keeper's group is not for the guard
  become_parent_of_orphans();
  if (job_.has_pid_namespace) {
    init_ = make_pid_namespace();
    report(Report::ready, 0);
  }
  for (;;) {
    pollfd wanted[] = {{socket_, POLLIN, 0}, {signals_.descriptor(), POLLIN, 0}};
    int timeout = killing_ ? again_ms : timeout_until(kill_at());
    if (!told_to_end_ && command_ != 0) timeout = shorter_of(timeout, timeout_until(job_.schedule.term_at(end_ns_)));
    if (!started_) timeout = -1;
    poll(wanted, 2, timeout);
    if (wanted[0].revents != 0) obey();
    while (signals_.next() != 0) continue;
    if (started_) reap();
    if (started_) look_at_clock();
  }
}

// ---- orders -----------------------------------------------------------------------------------------------------

void GuardProcess::obey() {
  Order order{};
  const ssize_t size = recv(socket_, &order, sizeof order, MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size != sizeof order) return keeper_is_gone();
  switch (order.kind) {
    case Order::start:
      return start(order);
    case Order::move:
      return move_end(order.time_ns);
    case Order::signal:
      if (command_ != 0) kill(-command_, order.number);
      return;
    case Order::end:
      return tell_to_end(order.time_ns);
  }
}

void GuardProcess::keeper_is_gone() {
  if (!started_) {
    if (init_ != 0 && kill(init_, SIGKILL) == 0) waitpid(init_, nullptr, 0);
    _exit(0);
  }
  close(socket_);
  socket_ = -1;  // poll() skips it
  in_time_ = false;
  tell_to_end(now_ns() + job_.schedule.grace_ms * ns_per_ms);
}

// The timer runs before there is a command.
void GuardProcess::start(const Order& order) {
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGKILL;
  if (timer_create(CLOCK_BOOTTIME, &event, &timer_) != 0) fail(exit_system, "timer_create: %s", strerror(errno));
  move_end(order.time_ns);
  const pid_t self = getpid();
  command_ = fork();
  if (command_ < 0) fail(exit_system, "fork: %s", strerror(errno));
  if (command_ == 0) become_command(order.token, self);
  setpgid(command_, command_);  // whoever comes first
  started_ = true;
  report(Report::started, command_);
}

void GuardProcess::become_command(uint64_t token, pid_t guard) {
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  // The guard died before PR_SET_PDEATHSIG was set. In a PID namespace getppid() cannot tell, because a parent outside
  // has no number there; the init dies with the guard and ends the command.
  if (getppid() != guard && init_ == 0) _exit(exit_lost);
  setpgid(0, 0);
  if (job_.gets_terminal) tcsetpgrp(STDIN_FILENO, getpid());
  setenv("REDLOCK_HELD", "1", 1);
  setenv("REDLOCK_RESOURCE", job_.resources, 1);
  set_number("REDLOCK_TTL_MS", job_.ttl_ms);
  unsetenv("REDLOCK_FENCING_TOKEN");
  if (token != 0) set_number("REDLOCK_FENCING_TOKEN", token);
  if (job_.hides_notify_socket) unsetenv("NOTIFY_SOCKET");
  signals_.give_back();
  execvp(job_.words[0], job_.words);
  const int error = errno;
  say("%s: %s", job_.words[0], strerror(error));
  _exit(error == ENOENT ? exit_not_found : exit_not_executable);
}

void GuardProcess::move_end(int64_t end_ns) {
  end_ns_ = end_ns;
  itimerspec when{};
  when.it_value = timespec_of(job_.schedule.kernel_kills_at(end_ns));
  timer_settime(timer_, TIMER_ABSTIME, &when, nullptr);
}

void GuardProcess::report(Report::Kind kind, int number) const {
  const Report report{kind, number, in_time_};
  if (socket_ >= 0) send(socket_, &report, sizeof report, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// ---- the end ----------------------------------------------------------------------------------------------------

void GuardProcess::tell_to_end(int64_t kill_at) {
  ordered_kill_at_ = earlier_of(ordered_kill_at_, kill_at);
  if (told_to_end_) return;
  told_to_end_ = true;
  if (command_ == 0) return signal_descendants(SIGTERM);
  kill(-command_, SIGTERM);
  kill(-command_, SIGCONT);  // one that is stopped would not see the first
}

void GuardProcess::reap() {
  for (;;) {
    int status = 0;
    const pid_t child = waitpid(-1, &status, WNOHANG | WUNTRACED);
    if (child < 0 && errno == ECHILD) _exit(0);
    if (child <= 0) return;
    if (child == init_ && !WIFSTOPPED(status)) init_ = 0;
    if (child != command_) continue;
    if (WIFSTOPPED(status)) {
      report(Report::stopped, WSTOPSIG(status));
    } else {
      command_has_ended(status);
    }
  }
}

// What it leaves behind still works on what the lock protects: it ends, too, before the lock is let go.
void GuardProcess::command_has_ended(int status) {
  command_ = 0;
  report(Report::ended, status);
  signal_descendants(SIGTERM);
  told_to_end_ = true;
  ordered_kill_at_ = earlier_of(ordered_kill_at_, now_ns() + job_.schedule.grace_ms * ns_per_ms);
}

void GuardProcess::look_at_clock() {
  const int64_t now = now_ns();
  if (command_ != 0 && !told_to_end_ && now >= job_.schedule.term_at(end_ns_)) {
    in_time_ = false;
    tell_to_end(now + job_.schedule.grace_ms * ns_per_ms);
  }
  if (!killing_ && now >= kill_at()) {
    killing_ = true;
    if (command_ != 0 && now >= job_.schedule.kill_at(end_ns_)) in_time_ = false;
  }
  if (!killing_) return;
  if (command_ != 0) kill(-command_, SIGKILL);
  signal_descendants(SIGKILL);
}

// The command is one of them, or is told beside.
void GuardProcess::signal_descendants(int number) const {
  if (init_ == 0) return signal_children(number);
  kill(init_, number);
}

}  // namespace redlock::tool
