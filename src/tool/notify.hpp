// SPDX-License-Identifier: MIT
#pragma once

namespace redlock::tool {

// Tells systemd (sd_notify(3)), if it has asked to be told: NOTIFY_SOCKET.
__attribute__((format(printf, 1, 2))) void notify(const char* format, ...);

}  // namespace redlock::tool
