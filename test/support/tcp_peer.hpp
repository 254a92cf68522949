// SPDX-License-Identifier: MIT
//
// TcpPeer: a loopback server whose manners a test decides. It runs on a thread of its own; for every run of bytes that
// arrives (and once at accept, with none) the handler says what to answer and how to go on.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>

namespace redlock::test {

class TcpPeer {
 public:
  enum class Then {
    keep,
    close,      // an orderly end
    reset,      // RST at once
    end_reset,  // the end, then RST: the next write of the other side is a broken pipe
  };
  // conn counts from 0; in is everything that was received and not erased by the handler; out is sent after the call.
  using Handler = std::function<Then(int conn, std::string& in, std::string& out)>;

  explicit TcpPeer(Handler handler);
  ~TcpPeer();
  TcpPeer(const TcpPeer&) = delete;
  TcpPeer& operator=(const TcpPeer&) = delete;

  uint16_t port() const { return port_; }
  std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_); }
  int accepted() const { return accepted_; }
  // End every open connection so; returns when it is done.
  void end_all(Then how);

 private:
  struct Connection {
    int number = 0;
    std::string in;
  };
  void run();
  void accept_one();
  void handle(int fd, Connection& conn);
  void answer(int fd, Connection& conn);
  void finish(int fd, Then how);

  Handler handler_;
  uint16_t port_ = 0;
  int listener_ = -1;
  int wake_[2] = {-1, -1};
  std::map<int, Connection> conns_;
  std::atomic<int> accepted_{0};
  std::atomic<int> end_requests_{0};
  std::atomic<int> ends_done_{0};
  std::atomic<Then> end_how_{Then::close};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace redlock::test
