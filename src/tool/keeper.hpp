// SPDX-License-Identifier: MIT
//
// The keeper: the process that the caller started. It has the client and takes the signals. It gives the command's end
// as its own, and lets the lock go when the command and all its descendants are gone. See guard.hpp for the command's
// parent.
//
// The keeper stays in the caller's session. A session of its own would gain one thing: a KILL or STOP to the caller's
// process group would miss the keeper. But a shell makes a job's first process the leader of a group, and a leader may
// not call setsid(). So a third process would have to stay behind as the job. Shells and init systems would wait for
// that process, signals and ^Z would have to go through it, and it could be stopped and killed as well.
#pragma once
#include "tool/guard.hpp"
#include "tool/lease.hpp"
#include "tool/signals.hpp"
#include "tool/waiting.hpp"

namespace redlock::tool {

struct KeeperOptions {
  ExitCode held_code = exit_held;  // or what -E says
  bool sd_notify = false;
  int verbose = 0;
};

class Keeper {
 public:
  Keeper(const Job& job, const Wish& wish, const KeeperOptions& options)
      : job_(job), wish_(wish), options_(options), waiting_(wish.names, options.sd_notify) {}
  int run(redlock_config_t* cfg, const Common& common);

 private:
  int wait_for_lock();
  int end_of_wait(int signal);
  void hold();
  void on_signal(int number);
  void on_report(const Report& report);
  void follow_lease();
  void command_has_stopped();
  void end_within(int64_t ms);
  void look_at_clock();
  bool reap();
  int end_of_command();
  void take_terminal_back() const;

  const Job& job_;
  const Wish& wish_;
  const KeeperOptions& options_;
  Signals signals_;
  CommandGuard guard_;
  Lease lease_;
  Waiting waiting_;

  int64_t kill_at() const {
    return earlier_of(ordered_kill_at_, job_.schedule.kernel_kills_at(lease_.end_ns()));
  }

  pid_t command_ = 0;       // 0: not known
  bool has_ended_ = false;  // the command; status_ says how
  int status_ = 0;
  bool lost_ = false;
  bool stop_asked_ = false;
  bool guard_is_gone_ = false;
  int guard_status_ = 0;
  bool killing_ = false;
  uint32_t renewals_ = 0;
  int64_t ordered_kill_at_ = never;
  int64_t kill_began_ = 0;
};

}  // namespace redlock::tool
