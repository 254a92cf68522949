// SPDX-License-Identifier: MIT
//
// What a person and systemd see while the lock is waited for: on a terminal one line that is rewritten each second,
// else a line every 30 s. The first of these comes after 2 s in a journal, which somebody follows. Cron mails what it
// gets, so elsewhere a wait of less than 10 s has none.
#pragma once
#include "tool/system/clock.hpp"

namespace redlock::tool {

class Waiting {
 public:
  // `stands_by`: systemd is told READY once another client was found to hold the lock, and that no watchdog counts.
  Waiting(const char* names, bool sd_notify, bool stands_by);
  // `sentence`: what the lock is waited for; "": not known. `is_held`: by another client.
  void tell(const char* sentence, bool is_held);
  bool has_told_ready() const { return told_ready_; }
  void reload() const;  // there is nothing to reload, and systemd waits for the end of it
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
  int64_t first_line_;  // never: it was said
};

}  // namespace redlock::tool
