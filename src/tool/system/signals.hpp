// SPDX-License-Identifier: MIT
//
// Signals as a descriptor. What the program was started with comes back for a command that it runs.
#pragma once
#include <signal.h>

#include <initializer_list>

namespace redlock::tool {

class Signals {
 public:
  // Blocks these signals and reads them. One that the program was started to ignore (nohup) stays ignored, but for
  // `anew`.
  void take(std::initializer_list<int> numbers, int anew = 0);
  int descriptor() const { return descriptor_; }
  int next();  // the next signal that has come; 0: none
  bool is_from_terminal() const { return is_from_terminal_; }  // its whole group has it; of HUP the leader alone
  void give_back() const;  // in a child, before exec
  // In a child that is to be ended by SIGKILL alone: blocks all, and reads SIGCHLD.
  void take_children_only();

 private:
  void open(const sigset_t& wanted);

  sigset_t before_{};
  int descriptor_ = -1;
  bool is_from_terminal_ = false;
};

// A reader that has gone away ends a write, and not this program.
void ignore_broken_pipes();

// Ends this process by a signal, as a command has ended that it waited for. A shell leaves its loop after ^C only if
// the program that it waits for was ended by that. Returns what to exit with if the signal does not come: an init gets
// none.
int end_by(int number);

}  // namespace redlock::tool
