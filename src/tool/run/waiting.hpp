// SPDX-License-Identifier: MIT
//
// Waiting: reports a wait to a person and to systemd. On a terminal it rewrites one line each second, else it prints a
// line every 30 s. The first one is printed after 2 s in a journal, and after 10 s elsewhere: cron mails every line.
#pragma once
#include "tool/system/clock.hpp"

namespace redlock::tool {

class Waiting {
 public:
  // `stands_by`: READY=1 is sent, and the watchdog switched off, once another client is known to hold the lock.
  Waiting(const char* names, bool sd_notify, bool stands_by);
  // `sentence`: why the wait goes on; "": unknown. `is_held`: another client holds the lock.
  void tell(const char* sentence, bool is_held);
  bool has_told_ready() const { return told_ready_; }
  void reload() const;  // reports to systemd that a reload, which changes nothing, is done
  int timeout_ms() const { return timeout_until(earlier_of(next_, first_line_)); }

 private:
  const char* names_;
  bool sd_notify_;
  bool stands_by_;
  bool told_ready_ = false;
  bool on_terminal_;
  long step_s_;  // from line to line
  int64_t begin_;
  int64_t next_;
  int64_t first_line_;  // never: it was printed
};

}  // namespace redlock::tool
