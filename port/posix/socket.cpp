// SPDX-License-Identifier: MIT
#include "port/posix/socket.hpp"

#include <arpa/inet.h>
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
    {IPPROTO_TCP, TCP_KEEPINTVL, 1},         // seconds
    {IPPROTO_TCP, TCP_KEEPCNT, 3},
    {IPPROTO_TCP, TCP_USER_TIMEOUT, 3000},   // ms. While data is unacknowledged, keepalive sends no probes
};

bool tune(int fd, uint32_t idle_s) {
  const int idle = static_cast<int>(idle_s);
  if (setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle) != 0) return false;
  for (const Option& option : tcp_options) {
    const int value = option.value;
    if (setsockopt(fd, option.level, option.name, &value, sizeof value) != 0) return false;
  }
  return true;
}

}  // namespace

// ---- addresses ------------------------------------------------------------------------------------------------

void host_text(const MasterSettings& master, char (&out)[host_text_size]) {
  REDLOCK_ASSERT(master.host.size < sizeof out);
  memcpy(out, master.host.data, master.host.size);
  out[master.host.size] = '\0';
}

bool numeric_address(const MasterSettings& master, Address& out) {
  char host[host_text_size];
  host_text(master, host);
  memset(&out, 0, sizeof out);
  if (master.unix_socket) {
    out.any.sa_family = AF_UNIX;
    return true;
  }
  if (inet_pton(AF_INET, host, &out.v4.sin_addr) == 1) {
    out.any.sa_family = AF_INET;
  } else if (inet_pton(AF_INET6, host, &out.v6.sin6_addr) == 1) {
    out.any.sa_family = AF_INET6;
  } else {
    return false;
  }
  set_port(out, master.port);
  return true;
}

// The port stands at the same place in both families.
static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
void set_port(Address& address, uint16_t port) {
  address.v4.sin_port = htons(port);
}

namespace {

socklen_t size_of(const Address& address) {
  return address.any.sa_family == AF_INET ? sizeof address.v4 : sizeof address.v6;
}

}  // namespace

// The bytes may be compared: each address was zeroed before it was filled in, here or by the resolver.
bool same_address(const Address& a, const Address& b) {
  const int family = a.any.sa_family;
  return family != AF_UNIX && family == b.any.sa_family && memcmp(&a, &b, size_of(a)) == 0;
}

// ---- connections ----------------------------------------------------------------------------------------------

int open_socket(const Address& address, const CommonSettings& settings) {
  const int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const uint32_t idle_s = 1 + whole_seconds(settings.ping_interval.ns());
  if (fd < 0 || address.any.sa_family == AF_UNIX || tune(fd, idle_s)) return fd;
  ::close(fd);
  return -1;
}

Connecting connect_socket(int fd, const Address& address, const MasterSettings& master) {
  REDLOCK_ASSERT(fd >= 0);
  sockaddr_un path;
  const sockaddr* to = &address.any;
  socklen_t size = size_of(address);
  if (address.any.sa_family == AF_UNIX) {
    static_assert(sizeof path.sun_path > REDLOCK_HOST_MAX);
    REDLOCK_ASSERT(master.host.size < sizeof path.sun_path);
    memset(&path, 0, sizeof path);
    path.sun_family = AF_UNIX;
    memcpy(path.sun_path, master.host.data, master.host.size);
    to = reinterpret_cast<const sockaddr*>(&path);
    size = sizeof path;
  }
  if (connect(fd, to, size) == 0) return Connecting::done;
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
  REDLOCK_ASSERT(fd >= 0);
  int err = 0;
  socklen_t size = sizeof err;
  const bool known = getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &size) == 0;
  return known && err == 0 ? 0 : connect_failed(err);
}

void close_socket(int fd, bool polite) {
  REDLOCK_ASSERT(fd >= 0);
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
  REDLOCK_ASSERT(n >= 1);  // there is something to send
  REDLOCK_ASSERT(n <= Tx::chunks_max);
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
