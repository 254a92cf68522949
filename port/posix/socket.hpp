// SPDX-License-Identifier: MIT
//
// Sockets: what a driver needs of them, whatever loop watches them. No function here waits, allocates or raises
// SIGPIPE.
#pragma once
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/settings.hpp"
#include "master/tx.hpp"

namespace redlock {

// Where a master is. Of a path only the family stands here, because the path itself takes four times the room.
union Address {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

// The address of a master that the settings give as a path or as digits. False: the host is a name. noinline: keeps the
// text off the stack while the connection is made.
[[gnu::noinline]] bool numeric_address(const MasterSettings& master, Address& out);
void set_port(Address& address, uint16_t port);
// Do two masters' connections lead to the same place? Two paths never do, because the configuration compares paths.
bool same_address(const Address& a, const Address& b);

constexpr size_t host_text_size = REDLOCK_HOST_MAX + 1;
void host_text(const MasterSettings& master, char (&out)[host_text_size]);  // ends with NUL

// Returns a descriptor with all options set, or -1. The kernel's keepalive follows ping_interval.
int open_socket(const Address& address, const CommonSettings& settings);
enum class Connecting : uint8_t { failed, under_way, done };
// noinline: keeps a path off the stack while the rest is done.
[[gnu::noinline]] Connecting connect_socket(int fd, const Address& address, const MasterSettings& master);
// What an errno of connect() is called: REFUSED, CONNECT_TIMEOUT, UNREACHABLE, else CONNECT.
int connect_failed(int system_error);
int connect_result(int fd);  // call this when a socket that was under way is writable; 0: it is connected
// Resets a connection (linger 0), so that the peer's kernel forgets it as well. polite: bytes that were written may
// still arrive.
void close_socket(int fd, bool polite);

// These return the bytes that were moved, 0 at the end of the stream, or -1. nothing_now() then tells whether the
// connection is still whole.
inline ssize_t receive(int fd, char* at, size_t room) { return recv(fd, at, room, 0); }
inline ssize_t send_run(int fd, Bytes run) { return send(fd, run.data, run.size, MSG_NOSIGNAL); }
// Sends all runs in one call, and adds to `total` the bytes that there were to send. noinline: keeps the lists of runs
// off the stack while the next step runs.
[[gnu::noinline]] ssize_t send_runs(int fd, const Tx& tx, size_t& total);
inline bool nothing_now() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace redlock
