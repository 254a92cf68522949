// SPDX-License-Identifier: MIT
#include "tool/holder.hpp"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "tool/say.hpp"

namespace redlock::tool {
namespace {

constexpr int taken_signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
constexpr char ready_line[] = "held\n";

}  // namespace

int Holder::run(redlock_config_t* cfg, const Common& common, ExitCode held_code) {
  signals_.take(taken_signals);
  lease_.open(cfg, wish_, common);
  const int signal = wait_for_lock();
  waiting_.end();
  if (lease_.state() != Lease::held) {
    if (signal != 0) {
      say("%s: the wait was ended by signal %d", wish_.names, signal);
    } else if (lease_.state() == Lease::failed) {
      say("%s: %s", wish_.names, lease_.sentence());
    }
    const ExitCode code = lease_.exit_code();
    lease_.close();
    return signal != 0 ? exit_signal + signal : code == exit_held ? held_code : code;
  }
  tell_ready();
  const int code = hold();
  lease_.close();
  return code;
}

// 0, or the signal that has ended the wait.
int Holder::wait_for_lock() {
  while (lease_.state() == Lease::waiting) {
    pollfd wanted[] = {{lease_.descriptor(), POLLIN, 0},
                       {signals_.descriptor(), POLLIN, 0},
                       {ready_, 0, 0},
                       {process_ != nullptr ? process_->descriptor() : -1, POLLIN, 0}};
    int timeout = shorter_of(lease_.timeout_ms(), waiting_.timeout_ms());
    if (process_ != nullptr) timeout = shorter_of(timeout, process_->timeout_ms());
    poll(wanted, 4, timeout);
    if (const int number = signals_.next()) return number;
    if (wanted[2].revents != 0 || (process_ != nullptr && process_->has_ended())) return SIGHUP;
    lease_.process();
    waiting_.tell(lease_.sentence());
  }
  return 0;
}

void Holder::tell_ready() {
  if (ready_ < 0) return;
  const ssize_t written = write(ready_, ready_line, strlen(ready_line));
  if (written < 0) note("the descriptor of --ready-fd cannot be written");
  close(ready_);
  ready_ = -1;
}

int Holder::hold() {
  for (;;) {
    pollfd wanted[] = {{signals_.descriptor(), POLLIN, 0},
                       {process_ != nullptr ? process_->descriptor() : -1, POLLIN, 0},
                       {lease_.descriptor(), POLLIN, 0}};
    int timeout = shorter_of(timeout_until(next_step()), lease_.timeout_ms());
    if (process_ != nullptr) timeout = shorter_of(timeout, process_->timeout_ms());
    poll(wanted, 3, timeout);
    const bool has_ended = process_ != nullptr && process_->has_ended();
    if (told_to_end_ && (process_ == nullptr || has_ended)) {
      const char* why = lease_.sentence();
      say("%s: the lock was lost%s%s", wish_.names, *why != '\0' ? ": " : "", why);
      return exit_lost;
    }
    if (has_ended || (signals_.next() != 0 && !told_to_end_)) return exit_ok;
    look_at_clock();
    lease_.process();
    if (lease_.state() != Lease::held && !told_to_end_) tell_to_end();
  }
}

int64_t Holder::next_step() const {
  const int64_t kill = earlier_of(ordered_kill_at_, schedule_.kill_at(lease_.end_ns()));
  return told_to_end_ ? kill : earlier_of(kill, schedule_.term_at(lease_.end_ns()));
}

void Holder::look_at_clock() {
  if (now_ns() < next_step()) return;
  if (!told_to_end_) return tell_to_end();
  if (process_ != nullptr) process_->signal(SIGKILL);
  ordered_kill_at_ = now_ns() + 20 * ns_per_ms;  // until it is gone
}

void Holder::tell_to_end() {
  told_to_end_ = true;
  ordered_kill_at_ = now_ns() + (schedule_.term_first ? schedule_.grace_ms * ns_per_ms : 0);
  if (process_ != nullptr && schedule_.term_first) process_->signal(SIGTERM);
}

}  // namespace redlock::tool
