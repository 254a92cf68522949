// SPDX-License-Identifier: MIT
#include "tool/run/waiting.hpp"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "tool/words/say.hpp"

namespace redlock::tool {
namespace {

constexpr int64_t ns_per_s = 1000 * ns_per_ms;
constexpr long line_step_s = 30;

}  // namespace

Waiting::Waiting(const char* names, bool sd_notify)
    : names_(names), sd_notify_(sd_notify), on_terminal_(isatty(STDERR_FILENO) == 1),
      step_s_(on_terminal_ ? 1 : sd_notify_ ? 5 : line_step_s), begin_(now_ns()), next_(begin_ + step_s_ * ns_per_s) {}

void Waiting::tell(const char* sentence) {
  const int64_t now = now_ns();
  if (now < next_) return;
  next_ = now + step_s_ * ns_per_s;
  const long seconds = static_cast<long>((now - begin_) / ns_per_s);
  const char* colon = *sentence != '\0' ? ": " : "";
  if (sd_notify_) {
    Text status = Text("STATUS=waiting for ").escaped(names_).add(" for %ld s%s%s", seconds, colon, sentence);
    notify(status.add("\nEXTEND_TIMEOUT_USEC=30000000"));
  }
  if (on_terminal_ || seconds % line_step_s < step_s_) {
    const auto tell = on_terminal_ ? show_progress : note;
    tell("waiting for %s for %ld s%s%s", names_, seconds, colon, sentence);
  }
}

bool notify(const Text& text) {
  const char* path = getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  if (path == nullptr || *path == '\0') return true;
  errno = EAFNOSUPPORT;
  if ((*path != '/' && *path != '@') || strlen(path) >= sizeof address.sun_path) return false;
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path, strlen(path));
  if (*path == '@') address.sun_path[0] = '\0';  // an abstract name
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return false;
  const timeval patience = {1, 0};  // systemd may be busy
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + strlen(path));
  const auto* const to = reinterpret_cast<const sockaddr*>(&address);
  const ssize_t sent = sendto(socket, text.c_str(), text.size(), MSG_NOSIGNAL, to, size);
  const int error = errno;
  close(socket);
  errno = error;
  return sent >= 0;
}

}  // namespace redlock::tool
