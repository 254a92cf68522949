// SPDX-License-Identifier: MIT
#include "port/posix/socket.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

namespace redlock {
namespace {

struct Option {
  uint16_t level;
  uint8_t name;
  uint16_t value;
};

constexpr Option tcp_options[] = {
    {IPPROTO_TCP, TCP_NODELAY, 1},
    {SOL_SOCKET, SO_KEEPALIVE, 1},
    {IPPROTO_TCP, TCP_KEEPIDLE, 5},          // seconds
    {IPPROTO_TCP, TCP_KEEPINTVL, 1},         // seconds
    {IPPROTO_TCP, TCP_KEEPCNT, 3},
    {IPPROTO_TCP, TCP_USER_TIMEOUT, 3000},   // ms. While data is unacknowledged, keepalive sends no probes
};

bool tune(int fd) {
  for (const Option& option : tcp_options) {
    const int value = option.value;
    if (setsockopt(fd, option.level, option.name, &value, sizeof value) != 0) return false;
  }
  return true;
}

}  // namespace

// ---- addresses ------------------------------------------------------------------------------------------------

void host_text(const MasterSettings& master, char (&out)[host_text_size]) {
  memcpy(out, master.host.data, master.host.size);
  out[master.host.size] = '\0';
}

bool numeric_address(const MasterSettings& master, Address& out) {
  char host[host_text_size];
  host_text(master, host);
  memset(&out.storage, 0, sizeof out.storage);
  if (master.unix_socket) {
    auto& address = reinterpret_cast<sockaddr_un&>(out.storage);
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path, host, master.host.size + 1);
    out.size = sizeof address;
  } else if (inet_pton(AF_INET, host, &reinterpret_cast<sockaddr_in&>(out.storage).sin_addr) == 1) {
    out.storage.ss_family = AF_INET;
    out.size = sizeof(sockaddr_in);
  } else if (inet_pton(AF_INET6, host, &reinterpret_cast<sockaddr_in6&>(out.storage).sin6_addr) == 1) {
    out.storage.ss_family = AF_INET6;
    out.size = sizeof(sockaddr_in6);
  } else {
    return false;
  }
  if (!master.unix_socket) set_port(out, master.port);
  return true;
}

// The port stands at the same place in both families.
static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
void set_port(Address& address, uint16_t port) {
  reinterpret_cast<sockaddr_in&>(address.storage).sin_port = htons(port);
}

// The bytes may be compared: each address was zeroed before it was filled in, here or by the resolver.
bool same_address(const Address& a, const Address& b) {
  return a.storage.ss_family != AF_UNIX && a.size == b.size && memcmp(&a.storage, &b.storage, a.size) == 0;
}

// ---- connections ----------------------------------------------------------------------------------------------

int open_socket(const Address& address) {
  const int fd = socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0 || address.storage.ss_family == AF_UNIX || tune(fd)) return fd;
  ::close(fd);
  return -1;
}

Connecting connect_socket(int fd, const Address& address) {
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address.storage), address.size) == 0) return Connecting::done;
  return errno == EINPROGRESS ? Connecting::under_way : Connecting::failed;
}

int connect_failed(int system_error) {
  switch (system_error) {
    case ECONNREFUSED:
      return REDLOCK_E_REFUSED;
    case ETIMEDOUT:
      return REDLOCK_E_CONNECT_TIMEOUT;
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EHOSTDOWN:
    case ENETDOWN:
      return REDLOCK_E_UNREACHABLE;
    default:
      return REDLOCK_E_CONNECT;
  }
}

int connect_result(int fd) {
  int err = 0;
  socklen_t size = sizeof err;
  const bool known = getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &size) == 0;
  return known && err == 0 ? 0 : connect_failed(err);
}

void close_socket(int fd, bool polite) {
  if (!polite) {
    const linger reset = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  }
  ::close(fd);
}

// ---- bytes ----------------------------------------------------------------------------------------------------

ssize_t send_runs(int fd, const Tx& tx, size_t& total) {
  Bytes chunks[Tx::chunks_max];
  iovec parts[Tx::chunks_max];
  const unsigned n = tx.gather(chunks, Tx::chunks_max);
  for (unsigned i = 0; i < n; ++i) {
    parts[i] = {const_cast<char*>(chunks[i].data), chunks[i].size};
    total += chunks[i].size;
  }
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = n;
  return sendmsg(fd, &message, MSG_NOSIGNAL);
}

}  // namespace redlock
