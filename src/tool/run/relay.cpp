// SPDX-License-Identifier: MIT
#include "tool/run/relay.hpp"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "tool/system/children.hpp"
#include "tool/words/say.hpp"

namespace redlock::tool {
namespace {

// The address of a datagram socket; no length: there is none, and errno says why.
struct Address {
  sockaddr_un name{};
  socklen_t length = 0;

  explicit Address(const char* path) {
    errno = EAFNOSUPPORT;
    if ((*path != '/' && *path != '@') || strlen(path) >= sizeof name.sun_path) return;
    name.sun_family = AF_UNIX;
    memcpy(name.sun_path, path, strlen(path));
    if (*path == '@') name.sun_path[0] = '\0';  // an abstract name
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + strlen(path));
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

const char* systemd() {
  const char* const path = getenv("NOTIFY_SOCKET");
  return path != nullptr && *path != '\0' ? path : nullptr;
}

int datagram_socket(int flags) { return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | flags, 0); }

}  // namespace

bool notify(const Text& text) {
  if (systemd() == nullptr) return true;
  const Address to(systemd());
  const int socket = to.length != 0 ? datagram_socket(0) : -1;
  if (socket < 0) return false;
  const timeval patience = {1, 0};  // systemd may be busy
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const ssize_t sent = sendto(socket, text.c_str(), text.size(), MSG_NOSIGNAL, to.get(), to.length);
  const int error = errno;
  close(socket);
  errno = error;
  return sent >= 0;
}

// The socket is writable by everybody, as systemd's is, because a service may have changed its user. Messages of
// processes that are not descendants are dropped.
void Relay::open(const char* path) {
  if (systemd() == nullptr) return;
  const Address at(path), to(systemd());
  const int on = 1;
  if (at.length != 0) unlink(path);
  from_ = datagram_socket(SOCK_NONBLOCK);
  to_ = datagram_socket(SOCK_NONBLOCK);
  if (at.length == 0 || to.length == 0 || from_ < 0 || to_ < 0 || connect(to_, to.get(), to.length) != 0 ||
      setsockopt(from_, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0 || bind(from_, at.get(), at.length) != 0 ||
      chmod(path, 0666) != 0) {
    fail(exit_system, "%s: no socket for the messages of the service to systemd: %s", path, strerror(errno));
  }
  const char* const watchdog_us = getenv("WATCHDOG_USEC");
  if (watchdog_us != nullptr) format_text(watchdog_us_, sizeof watchdog_us_, "%s", watchdog_us);
}

pollfd Relay::wanted() const {
  return size_ == 0 ? pollfd{from_, POLLIN, 0} : pollfd{to_, POLLOUT, 0};
}

bool Relay::pass() {
  if (from_ < 0 || (size_ == 0 && !receive())) return false;
  if (size_ != 0 && send(to_, text_, size_, MSG_NOSIGNAL) < 0 && errno == EAGAIN) return false;
  size_ = 0;
  return true;
}

// recvmsg() has no room for descriptors, so the kernel closes those that come with a message: they could not be handed
// back to the service after a restart, and a service that waits for the close (sd_notify_barrier(3)) goes on.
bool Relay::receive() {
  char message[longest];
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
  iovec place = {message, sizeof message};
  msghdr header{};
  header.msg_iov = &place;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  const ssize_t size = recvmsg(from_, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size < 0) return false;
  ucred sender{};
  const cmsghdr* const first = CMSG_FIRSTHDR(&header);
  if (first != nullptr && first->cmsg_type == SCM_CREDENTIALS) memcpy(&sender, CMSG_DATA(first), sizeof sender);
  if (sender.pid != known_ && !is_descendant(sender.pid)) return true;
  known_ = sender.pid;
  const bool waited = waits_for_ready_;
  const char* const end = message + size;
  for (const char* line = message; line < end;) {
    const void* const newline = memchr(line, '\n', static_cast<size_t>(end - line));
    const char* const next = newline != nullptr ? static_cast<const char*>(newline) : end;
    take_line(line, static_cast<size_t>(next - line));
    line = next + 1;
  }
  if (waited && !waits_for_ready_ && *watchdog_us_ != '\0') {
    char text[48];
    format_text(text, sizeof text, "WATCHDOG_USEC=%s", watchdog_us_);
    take_line(text, strlen(text));
  }
  return true;
}

// By MAINPID= systemd would watch the service instead of the keeper, and a BARRIER= has ended in receive(): both are
// dropped.
void Relay::take_line(const char* line, size_t size) {
  const auto begins = [=](const char* word) { return size >= strlen(word) && memcmp(line, word, strlen(word)) == 0; };
  constexpr char watchdog[] = "WATCHDOG_USEC=", ready[] = "READY=1";
  if (begins("MAINPID") || begins("BARRIER=") || size_ + size + 1 > sizeof text_) return;
  if (waits_for_ready_ && begins(watchdog)) {
    const size_t skipped = sizeof watchdog - 1;
    format_text(watchdog_us_, sizeof watchdog_us_, "%.*s", static_cast<int>(size - skipped), line + skipped);
    return;
  }
  if (size == sizeof ready - 1 && begins(ready)) waits_for_ready_ = false;
  memcpy(text_ + size_, line, size);
  size_ += size;
  text_[size_++] = '\n';
}

}  // namespace redlock::tool
