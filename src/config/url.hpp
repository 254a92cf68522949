// SPDX-License-Identifier: MIT
//
// A master's address: redis://[user[:password]@]host[:port] or unix:///path. Strict, because a typing error that is
// guessed right by one gateway and wrong by the next makes two sets of masters. A wrong URL is never quoted in an
// error text: wherever it is wrong, the text there may be a piece of a password.
#pragma once
#include "config/config.hpp"

namespace redlock {

// Fills everything but the name. On error `why`, which holds the master's path, is completed: ".port: 70000 is ...".
// CONFIG, or NOTSUP for rediss://.
int parse_url(Bytes url, Master& out, TextWriter& why);

// Do both lead to one server for certain? Numeric addresses are compared as addresses, names without case.
bool same_address(const Master& a, const Master& b);

// "10.0.0.11:6379", "[fe80::1]:6379", "/run/redis.sock"
void write_address(TextWriter& out, const Master& master);

}  // namespace redlock
