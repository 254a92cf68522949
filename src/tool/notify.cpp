// SPDX-License-Identifier: MIT
#include "tool/notify.hpp"

#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tool/format.hpp"

namespace redlock::tool {

void notify(const char* format, ...) {
  const char* path = getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  if (path == nullptr || (*path != '/' && *path != '@') || strlen(path) >= sizeof address.sun_path) return;
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  const size_t length = format_list(text, sizeof text, format, arguments);
  va_end(arguments);
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path, strlen(path));
  if (*path == '@') address.sun_path[0] = '\0';  // an abstract name
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + strlen(path));
  sendto(socket, text, length, MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address), size);
  close(socket);
}

}  // namespace redlock::tool
