// SPDX-License-Identifier: MIT
#pragma once
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace redlock::test {

// What systemd has where NOTIFY_SOCKET points to (sd_notify(3)).
class NotifySocket {
 public:
  explicit NotifySocket(const std::string& path) : path_(path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof address.sun_path, "%s", path.c_str());
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  NotifySocket(const NotifySocket&) = delete;
  NotifySocket& operator=(const NotifySocket&) = delete;
  ~NotifySocket() { ::close(socket_); }

  const std::string& path() const { return path_; }
  // The next message. MSG_DONTWAIT: "" if there is none.
  std::string heard(int flags = 0) const {
    char text[512];
    const ssize_t size = ::recv(socket_, text, sizeof text, flags);
    return std::string(text, size > 0 ? static_cast<size_t>(size) : 0);
  }

 private:
  const std::string path_;
  const int socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
};

}  // namespace redlock::test
