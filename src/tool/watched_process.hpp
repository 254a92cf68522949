// SPDX-License-Identifier: MIT
//
// A process that is no child of ours: when has it ended? With pidfd_open() (Linux 5.3) a pid that is used again is no
// danger. Without it the process is told from a later one by the time of its start.
#pragma once
#include <stdint.h>
#include <sys/types.h>

namespace redlock::tool {

class WatchedProcess {
 public:
  bool open(pid_t pid);  // false: there is no such process
  int descriptor() const { return descriptor_; }  // readable when it has ended; -1: look at times
  int timeout_ms() const { return descriptor_ >= 0 ? -1 : 100; }
  bool has_ended() const;
  void signal(int number) const;

 private:
  pid_t pid_ = 0;
  int descriptor_ = -1;
  uint64_t started_ = 0;
};

}  // namespace redlock::tool
