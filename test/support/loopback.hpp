// SPDX-License-Identifier: MIT
//
// Ports on this machine's loopback, where all servers and peers of the tests live.
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>

namespace redlock::test {

inline sockaddr_in loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// A socket that listens on a free port. It does not block an accept that comes too early.
int listen_on_loopback(uint16_t& port);

}  // namespace redlock::test
