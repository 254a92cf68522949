// SPDX-License-Identifier: MIT
#include "tool/run/warden.hpp"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tool/run/nesting.hpp"
#include "tool/system/children.hpp"
#include "tool/system/descriptors.hpp"
#include "tool/system/fuse.hpp"
#include "tool/system/pid_namespace.hpp"
#include "tool/words/say.hpp"
#include "tool/words/text.hpp"

namespace redlock::tool {
namespace {

class WardenProcess {
 public:
  WardenProcess(const Job& job, Signals& signals, int socket) : job_(job), signals_(signals), socket_(socket) {}

  [[noreturn]] void run() {
    signals_.take_children_only();
    prctl(PR_SET_NAME, "lock-warden", 0, 0, 0);  // what `pkill redlock` ends, the warden notices
    become_parent_of_orphans();
    if (job_.has_pid_namespace) init_ = make_pid_namespace();
    fuse_.open();  // the init has none of it
    report(0);
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

 private:
  // ---- orders -----------------------------------------------------------------------------------------------------

  void obey() {
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
        if (command_ != 0) kill(command_, order.number);
        return;
      case Order::end:
        return tell_to_end(order.time_ns);
    }
  }

  void keeper_is_gone() {
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
  void start(const Order& order) {
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGKILL;
    if (timer_create(CLOCK_BOOTTIME, &event, &timer_) != 0) {
      fail(exit_system, "the system makes no timer: %s", strerror(errno));
    }
    which_ = static_cast<uint32_t>(order.number);
    resources_ = job_.wish.held(which_);
    move_end(order.time_ns);
    const pid_t self = getpid();
    command_ = fork();
    if (command_ < 0) fail(exit_system, "the system makes no process: %s", strerror(errno));
    if (command_ == 0) become_command(order.token, self);
    setpgid(0, 0);  // a signal to the caller's group is not for us
    let_go_of_streams();
    started_ = true;
  }

  [[noreturn]] void become_command(uint64_t token, pid_t warden) {
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    // The warden died before PR_SET_PDEATHSIG was set. In a PID namespace getppid() cannot tell, because a parent
    // outside has no number there; the init dies with the warden and ends the command.
    if (getppid() != warden && init_ == 0) _exit(exit_lost);
    // On a terminal the caller's group is that of ^C and ^Z, and of all that may read from it.
    const bool has_group = !job_.has_terminal && setpgid(0, 0) == 0;
    fuse_.set(has_group ? -getpid() : getpid());
    setenv("REDLOCK_HELD", "1", 1);
    setenv("REDLOCK_RESOURCE", job_.wish.bytes_held(which_), 1);
    pass_on(job_.wish, which_);
    setenv("REDLOCK_TTL_MS", Text("%u", job_.wish.how.ttl_ms), 1);
    unsetenv("REDLOCK_FENCING_TOKEN");
    if (token != 0) setenv("REDLOCK_FENCING_TOKEN", Text("%llu", static_cast<unsigned long long>(token)), 1);
    if (job_.tells_systemd) unsetenv("NOTIFY_SOCKET");
    if (job_.relay != nullptr && getenv("NOTIFY_SOCKET") != nullptr) setenv("NOTIFY_SOCKET", job_.relay, 1);
    signals_.give_back();
    execvp(job_.words[0], job_.words);
    const int error = errno;
    say("%s: %s", job_.words[0], strerror(error));
    _exit(error == ENOENT ? exit_not_found : exit_not_executable);
  }

  void move_end(int64_t end_ns) {
    end_ns_ = end_ns;
    const int64_t kill_ns = job_.schedule.kernel_kills_at(end_ns);
    itimerspec when{};
    when.it_value.tv_sec = static_cast<time_t>(kill_ns / 1'000'000'000);
    when.it_value.tv_nsec = static_cast<long>(kill_ns % 1'000'000'000);
    timer_settime(timer_, TIMER_ABSTIME, &when, nullptr);
  }

  void report(int status) const {
    const Report report{status, in_time_};
    if (socket_ >= 0) send(socket_, &report, sizeof report, MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  // ---- the end ----------------------------------------------------------------------------------------------------

  void tell_to_end(int64_t kill_at) {
    ordered_kill_at_ = earlier_of(ordered_kill_at_, kill_at);
    if (told_to_end_) return;
    told_to_end_ = true;
    signal_all(job_.schedule.signal);
    signal_all(SIGCONT);  // one that is stopped would not see the first
  }

  void reap() {
    for (;;) {
      int status = 0;
      const pid_t child = reap_child(status);
      if (child < 0 && errno == ECHILD) _exit(0);
      if (child <= 0) return;
      if (child == init_) init_ = 0;
      if (child == command_) command_has_ended(status);
    }
  }

  // What it leaves behind still works on what the lock protects: it ends, too, before the lock is let go.
  void command_has_ended(int status) {
    command_ = 0;
    report(status);
    const unsigned left = signal_descendants(0);
    if (left > (init_ != 0 ? 1u : 0u)) {
      say_as(Priority::warning, "%s: what the command has left behind is ended", resources_.c_str());
    }
    signal_all(job_.schedule.signal);
    told_to_end_ = true;
    ordered_kill_at_ = earlier_of(ordered_kill_at_, now_ns() + job_.schedule.grace_ms * ns_per_ms);
  }

  void look_at_clock() {
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
    signal_all(SIGKILL);
  }

  // KILL goes to the group first: no member escapes it by a fork. The init of a PID namespace takes TERM for the end of
  // the command, sends it to the others, and ends when it is alone: while there is a command, only KILL is for the
  // init.
  void signal_all(int number) const {
    if (number == SIGKILL || init_ != 0) signal_group(number);
    if (init_ != 0 && (number == SIGKILL || command_ == 0)) kill(init_, number == SIGKILL ? SIGKILL : SIGTERM);
    if (init_ == 0 && signal_descendants(number) == 0) signal_group(number);  // /proc is missing, or nobody is left
  }

  void signal_group(int number) const {
    if (command_ == 0) return;
    if (job_.has_terminal || kill(-command_, number) != 0) kill(command_, number);
  }

  int64_t kill_at() const { return earlier_of(ordered_kill_at_, job_.schedule.kill_at(end_ns_)); }

  const Job& job_;
  uint32_t which_ = 0;          // name of a wish for any is held
  Text resources_;  // for which the lock is held
  Signals& signals_;
  int socket_;
  timer_t timer_{};
  Fuse fuse_;
  pid_t init_ = 0;     // of the PID namespace; 0: there is none, or it has ended
  pid_t command_ = 0;  // 0: not started, or has ended
  bool started_ = false;
  bool told_to_end_ = false;
  bool in_time_ = true;
  bool killing_ = false;
  int64_t end_ns_ = never;
  int64_t ordered_kill_at_ = never;
};

}  // namespace

// ---- as the keeper sees it ----------------------------------------------------------------------------------------

void CommandWarden::fork(const Job& job, Signals& signals) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0 || (pid_ = ::fork()) < 0) {
    fail(exit_system, "the system makes no process: %s", strerror(errno));
  }
  if (pid_ == 0) {
    close(ends[0]);
    WardenProcess(job, signals, ends[1]).run();
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

// The descriptor stays open: it becomes readable when the warden has ended.
void CommandWarden::dismiss() const { shutdown(socket_, SHUT_WR); }

}  // namespace redlock::tool
