// SPDX-License-Identifier: MIT
#pragma once

namespace redlock::tool {

enum class PlainPing { unknown, answered, closed, sentinel };
// What follows a PING without TLS and without a greeting to "host:port". A port for TLS closes the connection; a proxy
// that does not know HELLO replies. With is_hello a HELLO is sent, and only the reply of a sentinel tells anything: it
// names no role, which a client takes for a broken greeting.
PlainPing plain_ping(const char* address, int timeout_ms, bool is_hello);

}  // namespace redlock::tool
