// SPDX-License-Identifier: MIT
//
// Signals as a descriptor. What the program was started with comes back for a command that it runs.
#pragma once
#include <signal.h>

namespace redlock::tool {

class Signals {
 public:
  // Blocks these signals and reads them. One that the program was started to ignore (nohup) stays ignored.
  template <unsigned count>
  void take(const int (&numbers)[count]) {
    take(numbers, count);
  }
  int descriptor() const { return descriptor_; }
  int next() const;  // the next signal that has come; 0: none
  // In a child, before exec.
  void give_back() const;
  // In a child that is to be ended by SIGKILL alone: blocks all, and reads SIGCHLD.
  void take_children_only();

 private:
  void take(const int* numbers, unsigned count);
  void open(const sigset_t& wanted);

  sigset_t before_{};
  int descriptor_ = -1;
};

}  // namespace redlock::tool
