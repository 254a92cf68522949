// SPDX-License-Identifier: MIT
//
// Relay: a socket between a service and systemd (sd_notify(3)). A unit that stands by is active already, so systemd
// would run its watchdog while the service still starts. The relay forwards the service's messages, and adds
// WATCHDOG_USEC= to its READY=1.
#pragma once
#include <poll.h>
#include <stddef.h>
#include <sys/types.h>

#include "tool/words/text.hpp"

namespace redlock::tool {

// Sends a message to systemd if NOTIFY_SOCKET is set. False: it could not be sent; errno says why.
bool notify(const Text& text);

class Relay {
 public:
  // Makes the socket `path`. Without NOTIFY_SOCKET there is nothing to do. Ends the program if it cannot be made.
  void open(const char* path);
  // READY=1 was sent for the unit while it stood by, and is still to come from the service.
  void stood_by() { waits_for_ready_ = true; }
  pollfd wanted() const;
  // Receives and forwards a message, or sends the one that systemd had no room for. False: there is none.
  bool pass();

 private:
  bool receive();
  void take_line(const char* line, size_t size);

  static constexpr size_t longest = 4096;  // as in systemd
  int from_ = -1;
  int to_ = -1;
  bool waits_for_ready_ = false;
  pid_t known_ = -1;  // the sender of the last message: it may have ended when its next one is read
  char watchdog_us_[24] = "";  // as the unit or the service has set it
  size_t size_ = 0;
  char text_[longest + 64];
};

}  // namespace redlock::tool
