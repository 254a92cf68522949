// SPDX-License-Identifier: MIT
#include "tool/keeper.hpp"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/children.hpp"
#include "tool/notify.hpp"
#include "tool/say.hpp"

namespace redlock::tool {
namespace {

constexpr int64_t patience_ns = 10'000 * ns_per_ms;
constexpr int again_ms = 20;  // while killing: descendants that were being forked turn up
constexpr int taken_signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGCHLD};

bool ends_a_wait(int number) {
  return number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT;
}

}  // namespace

int Keeper::run(redlock_config_t* cfg, const Common& common) {
  if (!job_.has_pid_namespace && !is_proc_ours()) {
    fail(exit_system, "/proc is that of another PID namespace: what the command leaves behind could not be found; "
         "--pidns needs no /proc");
  }
  become_parent_of_orphans();
  signals_.take(taken_signals);
  guard_.fork(job_, signals_);  // before there is a client
  lease_.open(cfg, wish_, common);
  const int signal = wait_for_lock();
  if (signal != 0 || lease_.state() != Lease::held) return end_of_wait(signal);
  guard_.start(lease_.end_ns(), lease_.token());
  if (options_.verbose != 0) note("%s is held", wish_.names);
  if (options_.sd_notify) notify("READY=1\nSTATUS=holding %s", wish_.names);
  hold();
  if (job_.gets_terminal) take_terminal_back();
  if (options_.sd_notify) notify("STOPPING=1");
  lease_.close();
  return end_of_command();
}

// ---- waiting ----------------------------------------------------------------------------------------------------

// Until it is held, or cannot be had, or a signal has come: which; 0: none.
int Keeper::wait_for_lock() {
  while (lease_.state() == Lease::waiting) {
    pollfd wanted[] = {{lease_.descriptor(), POLLIN, 0}, {signals_.descriptor(), POLLIN, 0}};
    poll(wanted, 2, shorter_of(lease_.timeout_ms(), waiting_.timeout_ms()));
    while (const int number = signals_.next()) {
      if (!ends_a_wait(number)) continue;
      waiting_.end();
      return number;
    }
    lease_.process();
    waiting_.tell(lease_.sentence());
  }
  waiting_.end();
  return 0;
}

int Keeper::end_of_wait(int signal) {
  guard_.dismiss();
  if (signal != 0) {
    say("%s: the wait was ended by signal %d", wish_.names, signal);
  } else {
    say("%s: %s", wish_.names, lease_.sentence());
  }
  const ExitCode code = lease_.exit_code();
  lease_.close();
  waitpid(guard_.pid(), nullptr, 0);
  if (signal != 0) return exit_signal + signal;
  return code == exit_held ? options_.held_code : code;
}

// ---- holding ----------------------------------------------------------------------------------------------------

// Until the guard and every descendant have ended. The lock is renewed meanwhile.
void Keeper::hold() {
  while (!reap()) {
    pollfd wanted[] = {{signals_.descriptor(), POLLIN, 0},
                       {guard_is_gone_ ? -1 : guard_.descriptor(), POLLIN, 0},
                       {lease_.descriptor(), POLLIN, 0}};
    const int pause = killing_ ? again_ms : timeout_until(kill_at());
    poll(wanted, 3, shorter_of(pause, lease_.timeout_ms()));
    look_at_clock();  // before anything that would renew the lock
    while (const int number = signals_.next()) on_signal(number);
    lease_.process();
    follow_lease();
    Report report{};
    while (guard_.receive(report)) on_report(report);
  }
}

void Keeper::on_signal(int number) {
  if (number == SIGCHLD) return;
  if (number != SIGTERM || stop_asked_) return guard_.signal(number);
  stop_asked_ = true;
  end_within(stop_ms);
}

// The guard does it. We do it where the guard is stopped.
void Keeper::end_within(int64_t ms) {
  const int64_t when = now_ns() + ms * ns_per_ms;
  if (ms > 0) guard_.end(when);
  ordered_kill_at_ = earlier_of(ordered_kill_at_, ms > 0 ? when + lead_ms * ns_per_ms : when);
}

void Keeper::on_report(const Report& report) {
  switch (report.kind) {
    case Report::ready:
      return;
    case Report::started:
      command_ = report.number;
      return;
    case Report::stopped:
      return command_has_stopped();
    case Report::ended:
      has_ended_ = true;
      status_ = report.number;
      if (report.in_time == 0) lost_ = true;
      return;
  }
}

void Keeper::follow_lease() {
  if (lease_.state() == Lease::held) {
    if (lease_.renewals() != renewals_) guard_.move(lease_.end_ns());
    renewals_ = lease_.renewals();
    return;
  }
  if (lost_ || has_ended_) return;
  lost_ = true;
  end_within(job_.schedule.term_first ? job_.schedule.grace_ms : 0);
}

// By ^Z, or since it has read a terminal from the background: our whole job stops as it would without us. The lock is
// not renewed then, and the command does not outlive it.
void Keeper::command_has_stopped() {
  if (!job_.gets_terminal || command_ == 0) return;
  take_terminal_back();
  kill(0, SIGTSTP);
  if (tcgetpgrp(STDIN_FILENO) == getpgrp()) tcsetpgrp(STDIN_FILENO, command_);
  guard_.signal(SIGCONT);
}

void Keeper::take_terminal_back() const {
  if (command_ != 0 && tcgetpgrp(STDIN_FILENO) == command_) tcsetpgrp(STDIN_FILENO, getpgrp());
}

// ---- the end ----------------------------------------------------------------------------------------------------

void Keeper::look_at_clock() {
  const int64_t now = now_ns();
  if (!killing_ && now >= kill_at()) {
    killing_ = true;
    kill_began_ = now;
    if (!has_ended_ && now >= job_.schedule.kernel_kills_at(lease_.end_ns())) lost_ = true;
    if (!guard_is_gone_) kill(guard_.pid(), SIGKILL);
  }
  if (!killing_) return;
  signal_children(SIGKILL);
  if (now - kill_began_ < patience_ns) return;
  kill_began_ = now;
  say("%s: processes that the kernel cannot end yet are waited for", wish_.names);
}

// True: nothing is left. The guard's children become ours when it dies; it ends by itself only when it has none.
bool Keeper::reap() {
  for (;;) {
    int status = 0;
    const pid_t child = waitpid(-1, &status, WNOHANG);
    if (child < 0 && errno == ECHILD) return true;
    if (child <= 0) return false;
    if (child != guard_.pid()) continue;
    Report report{};
    while (guard_.receive(report)) on_report(report);
    guard_is_gone_ = true;
    guard_status_ = status;
    ordered_kill_at_ = 0;
    look_at_clock();
  }
}

int Keeper::end_of_command() {
  if (lost_) {
    const char* why = lease_.sentence();
    if (*why == '\0' && wish_.max_hold_ms != 0) why = "--max-hold allows no later end";
    say("%s: the lock was lost, and the command was ended%s%s", wish_.names, *why != '\0' ? ": " : "", why);
    return exit_lost;
  }
  if (has_ended_) return WIFEXITED(status_) ? WEXITSTATUS(status_) : exit_signal + WTERMSIG(status_);
  if (stop_asked_) return exit_signal + SIGKILL;
  if (WIFEXITED(guard_status_)) return WEXITSTATUS(guard_status_);  // it has said why
  say("%s: the guard was killed, and the command with it", wish_.names);
  return exit_system;
}

}  // namespace redlock::tool
