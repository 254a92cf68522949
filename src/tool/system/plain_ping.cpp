// SPDX-License-Identifier: MIT
#include "tool/system/plain_ping.hpp"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

namespace redlock::tool {
namespace {

// Of a connection that each step of which may take so long; -1: there is none.
int connect_to(const char* host, const char* port, int timeout_ms) {
  const addrinfo hints = {AI_NUMERICSERV, AF_UNSPEC, SOCK_STREAM, 0, 0, nullptr, nullptr, nullptr};
  addrinfo* found = nullptr;
  if (getaddrinfo(host, port, &hints, &found) != 0) return -1;
  const timeval limit = {timeout_ms / 1000, timeout_ms % 1000 * 1000};
  int fd = -1;
  for (const addrinfo* at = found; fd < 0 && at != nullptr; at = at->ai_next) {
    fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);  // also of connect()
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (connect(fd, at->ai_addr, at->ai_addrlen) == 0) break;
    close(fd);
    fd = -1;
  }
  freeaddrinfo(found);
  return fd;
}

}  // namespace

PlainPing plain_ping(const char* address, int timeout_ms, bool is_hello) {
  const char* const request = is_hello ? "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n" : "*1\r\n$4\r\nPING\r\n";
  char host[512];
  const char* const colon = strrchr(address, ':');
  const bool brackets = *address == '[' && colon != nullptr && colon > address + 1 && colon[-1] == ']';
  const char* const begin = brackets ? address + 1 : address;
  if (*address == '/' || colon == nullptr) return PlainPing::unknown;
  const int size = static_cast<int>(colon - begin) - (brackets ? 1 : 0);
  if (snprintf(host, sizeof host, "%.*s", size, begin) >= static_cast<int>(sizeof host)) return PlainPing::unknown;
  const int fd = connect_to(host, colon + 1, timeout_ms);
  if (fd < 0) return PlainPing::unknown;
  char reply[512] = "";
  const size_t request_size = strlen(request);
  const bool is_sent = send(fd, request, request_size, MSG_NOSIGNAL) == static_cast<ssize_t>(request_size);
  const ssize_t got = is_sent ? recv(fd, reply, sizeof reply - 1, 0) : -1;
  const bool is_over = got == 0 || (got < 0 && errno == ECONNRESET);
  close(fd);
  if (is_hello) return strstr(reply, "\r\nsentinel\r\n") != nullptr ? PlainPing::sentinel : PlainPing::unknown;
  return *reply == '+' || *reply == '-' ? PlainPing::answered : is_over ? PlainPing::closed : PlainPing::unknown;
}

}  // namespace redlock::tool
