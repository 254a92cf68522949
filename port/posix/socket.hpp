// SPDX-License-Identifier: MIT
//
// Sockets: what a driver needs of them, whatever loop watches them. No function here waits, raises SIGPIPE or
// allocates.
#pragma once
#include <errno.h>
#include <sys/socket.h>

#include "base/settings.hpp"
#include "master/tx.hpp"

namespace redlock {

struct Address {
  sockaddr_storage storage;
  socklen_t size;
};

// The address of a master that is given as a path or as digits. False: its host is a name. Not in line: the text must
// not lie on the stack below the first steps of a connection.
[[gnu::noinline]] bool numeric_address(const MasterSettings& master, Address& out);
void set_port(Address& address, uint16_t port);
// Of two masters' connections. Paths are never the same: the configuration has compared them.
bool same_address(const Address& a, const Address& b);

constexpr size_t host_text_size = REDLOCK_HOST_MAX + 1;
void host_text(const MasterSettings& master, char (&out)[host_text_size]);  // ends with NUL

int open_socket(const Address& address);  // a descriptor with all options set, or -1
enum class Connecting : uint8_t { failed, under_way, done };
Connecting connect_socket(int fd, const Address& address);
bool is_connected(int fd);  // once a socket that was under way is writable
// A broken connection is reset, so that the peer's kernel forgets the connection as well. After a polite end what was
// written may still arrive.
void close_socket(int fd, bool polite);

// Bytes moved, 0 at the end of the stream, or -1: nothing_now() tells whether the connection is whole.
inline ssize_t receive(int fd, char* at, size_t room) { return recv(fd, at, room, 0); }
inline ssize_t send_run(int fd, Bytes run) { return send(fd, run.data, run.size, MSG_NOSIGNAL); }
// All runs in one call; adds to `total` the bytes that there were to send. Not in line: the lists of runs must not lie
// on the stack below a step that follows.
[[gnu::noinline]] ssize_t send_runs(int fd, const Tx& tx, size_t& total);
inline bool nothing_now() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace redlock
