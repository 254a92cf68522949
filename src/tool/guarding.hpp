// SPDX-License-Identifier: MIT
//
// The guard's own side: see guard.hpp.
#pragma once
#include <time.h>

#include "tool/guard.hpp"

namespace redlock::tool {

class GuardProcess {
 public:
  GuardProcess(const Job& job, Signals& signals, int socket) : job_(job), signals_(signals), socket_(socket) {}
  [[noreturn]] void run();

 private:
  void obey();
  void start(const Order& order);
  [[noreturn]] void become_command(uint64_t token, pid_t guard);
  void move_end(int64_t end_ns);
  void tell_to_end(int64_t kill_at);
  void keeper_is_gone();
  void reap();
  void command_has_ended(int status);
  void look_at_clock();
  void signal_descendants(int number) const;
  void report(Report::Kind kind, int number) const;
  int64_t kill_at() const { return earlier_of(ordered_kill_at_, job_.schedule.kill_at(end_ns_)); }

  const Job& job_;
  Signals& signals_;
  int socket_;
  timer_t timer_{};
  pid_t init_ = 0;     // of the PID namespace; 0: there is none, or it has ended
  pid_t command_ = 0;  // 0: not started, or has ended
  bool started_ = false;
  bool told_to_end_ = false;
  bool in_time_ = true;
  bool killing_ = false;
  int64_t end_ns_ = never;
  int64_t ordered_kill_at_ = never;
};

}  // namespace redlock::tool
