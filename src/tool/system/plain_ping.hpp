// SPDX-License-Identifier: MIT
#pragma once

namespace redlock::tool {

enum class PlainPing { unknown, answered, closed };
// What follows a PING without TLS and without a greeting to "host:port". A port for TLS closes the connection; a proxy
// that does not know HELLO replies.
PlainPing plain_ping(const char* address, int timeout_ms);

}  // namespace redlock::tool
