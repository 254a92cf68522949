// SPDX-License-Identifier: MIT
#include "tcp_peer.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>
#include <vector>

#include "redis_server.hpp"

namespace redlock::test {

TcpPeer::TcpPeer(Handler handler) : handler_(std::move(handler)), listener_(listen_on_loopback(port_)) {
  if (::pipe2(wake_, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  thread_ = std::thread([this] { run(); });
}

TcpPeer::~TcpPeer() {
  stop_ = true;
  if (::write(wake_[1], "x", 1) == 1)
    thread_.join();
  else
    thread_.detach();
  for (const auto& [fd, conn] : conns_) ::close(fd);
  ::close(listener_);
  ::close(wake_[0]);
  ::close(wake_[1]);
}

void TcpPeer::end_all(Then how) {
  end_how_ = how;
  const int wanted = ++end_requests_;
  if (::write(wake_[1], "x", 1) != 1) throw std::runtime_error("cannot wake the peer");
  while (ends_done_ < wanted) std::this_thread::yield();
}

void TcpPeer::run() {
  while (!stop_) {
    std::vector<pollfd> waiting = {{wake_[0], POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const auto& [fd, conn] : conns_) waiting.push_back({fd, POLLIN, 0});
    if (::poll(waiting.data(), waiting.size(), -1) < 0) continue;
    char byte;
    if (waiting[0].revents && ::read(wake_[0], &byte, 1) == 1 && ends_done_ < end_requests_) {
      while (!conns_.empty()) finish(conns_.begin()->first, end_how_);
      ends_done_ = end_requests_.load();
      continue;
    }
    if (waiting[1].revents) accept_one();
    for (size_t i = 2; i < waiting.size(); ++i) {
      const auto found = conns_.find(waiting[i].fd);
      if (waiting[i].revents && found != conns_.end()) handle(found->first, found->second);
    }
  }
}

void TcpPeer::accept_one() {
  const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) return;
  Connection& conn = conns_[fd];
  conn.number = accepted_++;
  answer(fd, conn);
}

void TcpPeer::handle(int fd, Connection& conn) {
  char buffer[4096];
  const ssize_t got = ::recv(fd, buffer, sizeof buffer, 0);
  if (got <= 0) {
    finish(fd, Then::close);
    return;
  }
  conn.in.append(buffer, static_cast<size_t>(got));
  answer(fd, conn);
}

void TcpPeer::answer(int fd, Connection& conn) {
  std::string out;
  const Then then = handler_(conn.number, conn.in, out);
  if (!out.empty()) (void)!::send(fd, out.data(), out.size(), MSG_NOSIGNAL);
  if (then != Then::keep) finish(fd, then);
}

void TcpPeer::finish(int fd, Then how) {
  if (how == Then::end_reset) ::shutdown(fd, SHUT_WR);
  if (how == Then::reset || how == Then::end_reset) {
    const linger at_once{1, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }
  ::close(fd);
  conns_.erase(fd);
}

}  // namespace redlock::test
