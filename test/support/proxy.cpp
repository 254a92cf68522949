// SPDX-License-Identifier: MIT
#include "proxy.hpp"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>
#include <vector>

#include "redis_server.hpp"

namespace redlock::test {

namespace {

// Everything; the other side reads at once, or is gone.
void send_all(int fd, const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t n = ::send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (n <= 0) return;
    at += static_cast<size_t>(n);
  }
}

void reset(int fd) {
  const linger at_once = {1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  ::close(fd);
}

}  // namespace

Proxy::Proxy(uint16_t server_port) : server_port_(server_port), listener_(listen_on_loopback(port_)) {
  if (::pipe2(wake_, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  thread_ = std::thread([this] { run(); });
}

Proxy::~Proxy() {
  stop_ = true;
  wake();
  thread_.join();
  for (const Pair& pair : pairs_) {
    if (pair.client >= 0) ::close(pair.client);
    ::close(pair.server);
  }
  for (const int fd : {listener_, wake_[0], wake_[1]}) ::close(fd);
}

void Proxy::wake() {
  if (::write(wake_[1], "x", 1) != 1) throw std::runtime_error("cannot wake the proxy");
}

void Proxy::on_thread(const std::function<void()>& work) {
  std::unique_lock guard(mutex_);
  work_ = &work;
  wake();
  done_.wait(guard, [this] { return work_ == nullptr; });
}

void Proxy::hold_from(const std::string& text) {
  on_thread([&] { hold_from_ = text; });
}

void Proxy::answer_instead(const std::string& from, const std::string& to) {
  if (from.size() != to.size()) throw std::runtime_error("the proxy changes no lengths");
  on_thread([&] {
    said_ = from;
    answered_ = to;
  });
}

std::string Proxy::held() {
  std::string all;
  on_thread([&] {
    for (const Pair& pair : pairs_) all += pair.out;
  });
  return all;
}

void Proxy::pass() {
  on_thread([&] {
    hold_from_.clear();
    for (Pair& pair : pairs_) {
      pair.held = false;
      send_all(pair.server, pair.out);
      pair.out.clear();
    }
  });
}

void Proxy::cut() {
  on_thread([&] {
    hold_from_.clear();
    for (Pair& pair : pairs_) {
      if (!pair.held || pair.client < 0) continue;
      reset(pair.client);
      pair.client = -1;
    }
  });
}

void Proxy::pass_up_to(const std::string& text, Then then) {
  on_thread([&] {
    hold_from_.clear();
    for (auto pair = pairs_.begin(); pair != pairs_.end();) {
      const size_t at = pair->out.find(text);
      if (!pair->held || at == std::string::npos) {
        ++pair;
        continue;
      }
      send_all(pair->server, pair->out.substr(0, at + text.size()));
      pair->out.clear();
      if (then == Then::end) {
        ::shutdown(pair->server, SHUT_WR);
        ++pair;
      } else {
        if (pair->client >= 0) reset(pair->client);
        reset(pair->server);
        pair = pairs_.erase(pair);
      }
    }
  });
}

bool Proxy::only_living() {
  bool living = true;
  on_thread([&] {
    for (const Pair& pair : pairs_) living = living && pair.client >= 0;
  });
  return living;
}

void Proxy::run() {
  while (!stop_) {
    std::vector<pollfd> waiting = {{wake_[0], POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const Pair& pair : pairs_) {
      waiting.push_back({pair.client, POLLIN, 0});  // poll() passes over -1
      waiting.push_back({pair.server, POLLIN, 0});
    }
    if (::poll(waiting.data(), waiting.size(), -1) < 0) continue;
    size_t at = 2;
    for (auto pair = pairs_.begin(); pair != pairs_.end(); at += 2) {
      bool goes_on = waiting[at].revents == 0 || from_client(*pair);
      goes_on = goes_on && (waiting[at + 1].revents == 0 || from_server(*pair));
      if (goes_on) {
        ++pair;
        continue;
      }
      if (pair->client >= 0) ::close(pair->client);
      ::close(pair->server);
      pair = pairs_.erase(pair);
    }
    if (waiting[1].revents != 0) accept_one();
    char byte;
    if (waiting[0].revents == 0 || ::read(wake_[0], &byte, 1) != 1) continue;
    const std::lock_guard guard(mutex_);
    if (work_ != nullptr) (*work_)();
    work_ = nullptr;
    done_.notify_all();
  }
}

void Proxy::accept_one() {
  const sockaddr_in address = loopback(server_port_);
  const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (client < 0 || ::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (client >= 0) ::close(client);
    ::close(server);
    return;
  }
  const int on = 1;
  for (const int fd : {client, server}) ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  pairs_.push_back({client, server, false, ""});
}

// False: the pair is over.
bool Proxy::from_client(Pair& pair) {
  char buffer[16384];
  const ssize_t n = ::recv(pair.client, buffer, sizeof buffer, 0);
  if (n > 0) {
    const std::string bytes(buffer, static_cast<size_t>(n));
    pair.held = pair.held || (!hold_from_.empty() && bytes.find(hold_from_) != std::string::npos);
    if (pair.held) {
      pair.out += bytes;
    } else {
      send_all(pair.server, bytes);
    }
    return true;
  }
  ::close(pair.client);
  pair.client = -1;
  return pair.held;
}

bool Proxy::from_server(Pair& pair) {
  char buffer[16384];
  const ssize_t n = ::recv(pair.server, buffer, sizeof buffer, 0);
  if (n <= 0 || pair.client < 0) return n > 0;
  std::string bytes(buffer, static_cast<size_t>(n));
  const size_t at = said_.empty() ? std::string::npos : bytes.find(said_);
  if (at != std::string::npos) bytes.replace(at, said_.size(), answered_);
  send_all(pair.client, bytes);
  return true;
}

}  // namespace redlock::test
