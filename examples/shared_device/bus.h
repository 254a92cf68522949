// SPDX-License-Identifier: MIT
//
// Bus: how a gateway gets at the wire that the device prints when it starts.
#ifndef EXAMPLES_SHARED_DEVICE_BUS_H
#define EXAMPLES_SHARED_DEVICE_BUS_H

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <termios.h>

#include "frames.h"

static inline int bus_open_tcp(const char *where) {
  struct sockaddr_in address = {.sin_family = AF_INET};
  char host[INET_ADDRSTRLEN];
  unsigned port = 0;
  if (sscanf(where, "%15[0-9.]:%u", host, &port) != 2 || port > 65535 ||
      inet_pton(AF_INET, host, &address.sin_addr) != 1) {
    errno = EINVAL;
    return -1;
  }
  address.sin_port = htons((uint16_t)port);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int one = 1;
  if (fd >= 0 && (connect(fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
                  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0)) {
    const int err = errno;
    close(fd);
    errno = err;
    return -1;
  }
  return fd;
}

static inline int bus_open_tty(const char *path) {
  const int fd = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
  struct termios raw;
  if (fd >= 0 && tcgetattr(fd, &raw) == 0) {
    cfmakeraw(&raw);
    if (tcsetattr(fd, TCSANOW, &raw) == 0) return fd;
  }
  const int err = errno;
  if (fd >= 0) close(fd);
  errno = err;
  return -1;
}

// "127.0.0.1:4001" or "/dev/pts/3" (or any serial line). The descriptor does not block. -1: errno.
static inline int bus_open(const char *where) {
  const int fd = where[0] == '/' ? bus_open_tty(where) : bus_open_tcp(where);
  if (fd < 0) return -1;
  if (fcntl(fd, F_SETFL, O_NONBLOCK) == 0) return fd;
  close(fd);
  return -1;
}

#endif  // EXAMPLES_SHARED_DEVICE_BUS_H
