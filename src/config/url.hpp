// SPDX-License-Identifier: MIT
//
// A master's address: redis://[user[:password]@]host[:port][/0], rediss:// with the same, or unix:///path. The parser
// is strict. If it corrected typing errors, two versions could correct one differently, and two gateways would use
// different sets of masters. An error text never quotes the URL, because the wrong part may be a piece of a password.
#pragma once
#include "config/config.hpp"

namespace redlock {

// Fills everything but the name. `why` must hold the master's path; an error is written behind it: ".port: not a number
// ...". CONFIG; NOTSUP: rediss://, in a build without TLS.
int parse_url(Bytes url, Master& out, TextWriter& why);

// Is it a host name, or a numeric address without brackets?
bool is_server_name(const Text& name);

// Is the master certainly on this machine: a socket path, a loopback address or "localhost"?
bool is_here(const Master& master);

// Do both certainly lead to one server? Numeric addresses are compared by value, names without regard to case.
bool same_address(const Master& a, const Master& b);

// "10.0.0.11:6379", "[fe80::1]:6379", "/run/redis.sock"
void write_address(TextWriter& out, const Master& master);
void write_host_and_port(TextWriter& out, Bytes host, uint16_t port);

}  // namespace redlock
