// SPDX-License-Identifier: MIT
//
// Names: the addresses of a host name. getaddrinfo() blocks, cannot be canceled, and may take 10 s where a name server
// is silent. So each look-up has a thread of its own for as long as it lasts, and not one of libuv's pool: a name
// that is not answered delays no other name, and a process that ends waits for no thread.
//
// The thread sends the addresses as messages on a socket pair and shares no memory with us. Who wants no answer any
// more closes the descriptor; the thread notices when getaddrinfo() returns.
//
// The thread also keeps the pace of RFC 8305: each address but the first follows when the one before was refused
// (hurry), or when nothing was heard from it for `step_ms`, or for less where the attempt would be over before.
#pragma once
#include "port/posix/socket.hpp"

namespace redlock {

constexpr int step_ms = 250;  // the Connection Attempt Delay

// first: this address comes first if the name still has it. patience_ms: what the attempt may take.
// Returns a descriptor, readable when there is an address or their end; or SYSTEM: no descriptor, thread or memory; or
// RESOLVE: REDLOCK_LOOKUPS_MAX are under way in this process.
int look_up(const MasterSettings& master, const Address& first, int64_t patience_ms);

enum class Named : uint8_t { not_yet, address, end };
Named next_address(int names, Address& out);
void hurry(int names);

}  // namespace redlock
