// SPDX-License-Identifier: MIT
//
// The socket between a service and systemd (sd_notify(3)), for a unit that has been active since it stands by. systemd
// takes the service for ready then, and would count its watchdog while it starts. The relay passes its messages on, and
// sets the watchdog with its READY.
#pragma once
#include <poll.h>
#include <stddef.h>
#include <sys/types.h>

#include "tool/words/text.hpp"

namespace redlock::tool {

// Tells systemd, if it has asked to be told: NOTIFY_SOCKET. False: it cannot be told; errno says why.
bool notify(const Text& text);

class Relay {
 public:
  // Makes the socket `path`. Without NOTIFY_SOCKET there is nothing to do. Ends the program if it cannot be made.
  void open(const char* path);
  // The unit has been told to be ready, and the service has not said so yet.
  void stood_by() { waits_for_ready_ = true; }
  pollfd wanted() const;
  // Takes a message, or sends the one that systemd had no room for. False: there is nothing to pass.
  bool pass();

 private:
  bool receive();
  void take_line(const char* line, size_t size);

  static constexpr size_t longest = 4096;  // as in systemd
  int from_ = -1;
  int to_ = -1;
  bool waits_for_ready_ = false;
  pid_t known_ = -1;  // the sender of the last message: it may have ended when its next one is read
  char watchdog_us_[24] = "";  // what the unit or the service has set
  size_t size_ = 0;
  char text_[longest + 64];
};

}  // namespace redlock::tool
