// SPDX-License-Identifier: MIT
//
// What a person and systemd see while the lock is waited for: on a terminal one line that is rewritten each second,
// else a line every 30 s.
#pragma once
#include "tool/system/clock.hpp"
#include "tool/words/text.hpp"

namespace redlock::tool {

// Tells systemd (sd_notify(3)), if it has asked to be told: NOTIFY_SOCKET. False: it cannot be told; errno says why.
bool notify(const Text& text);

class Waiting {
 public:
  Waiting(const char* names, bool sd_notify);
  // `sentence`: what the lock is waited for; "": not known.
  void tell(const char* sentence);
  int timeout_ms() const { return timeout_until(next_); }

 private:
  const char* names_;
  bool sd_notify_;
  bool on_terminal_;
  long step_s_;  // from line to line
  int64_t begin_;
  int64_t next_;
};

}  // namespace redlock::tool
