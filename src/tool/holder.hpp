// SPDX-License-Identifier: MIT
//
// The process of `redlock hold`: has the lock until it is told to end, or until the process that it holds the lock for
// has ended. If the lock is about to end first, it ends that process.
#pragma once
#include "tool/lease.hpp"
#include "tool/schedule.hpp"
#include "tool/signals.hpp"
#include "tool/waiting.hpp"
#include "tool/watched_process.hpp"

namespace redlock::tool {

class Holder {
 public:
  // ready: gets a line when the lock is held, and is closed then. When nobody has the other end of a pipe any more, the
  // wait ends, too. process: null, or the one that the lock is held for.
  Holder(const Wish& wish, const Schedule& schedule, WatchedProcess* process, int ready)
      : wish_(wish), schedule_(schedule), process_(process), ready_(ready), waiting_(wish.names, false) {}
  int run(redlock_config_t* cfg, const Common& common, ExitCode held_code);

 private:
  int wait_for_lock();
  void tell_ready();
  int hold();
  int64_t next_step() const;
  void look_at_clock();
  void tell_to_end();

  const Wish& wish_;
  const Schedule& schedule_;
  WatchedProcess* process_;
  int ready_;
  Signals signals_;
  Lease lease_;
  Waiting waiting_;
  bool told_to_end_ = false;
  int64_t ordered_kill_at_ = never;
};

}  // namespace redlock::tool
