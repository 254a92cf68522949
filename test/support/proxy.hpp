// SPDX-License-Identifier: MIT
//
// Proxy: a stretch of network in front of one server, on a thread of its own. What a connection's client has sent can
// be held back, for as long as the test wants and beyond the end of that connection, as packets in a network can be.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>

namespace redlock::test {

class Proxy {
 public:
  explicit Proxy(uint16_t server_port);
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  uint16_t port() const { return port_; }
  std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_); }

  // When a client sends this text, nothing more of its connection reaches the server, from that write on. Answers still
  // come back, and other connections are not held.
  void hold_from(const std::string& text);
  // What is held.
  std::string held();
  // What was held goes out, and nothing is held any more.
  void pass();
  // The clients of the held connections are told that those are broken. What is held stays, and no other is held.
  void cut();
  // Of what is held goes out what stands up to this text, and with it; the rest is lost, and the connection ends, or is
  // reset.
  enum class Then { end, reset };
  void pass_up_to(const std::string& text, Then then);
  // Where the server says the one, clients hear the other, which is as long. `from` stands near the beginning of a
  // reply, so that it comes in one piece.
  void answer_instead(const std::string& from, const std::string& to);
  // The server has closed all connections whose clients are gone.
  bool only_living();

 private:
  struct Pair {
    int client;  // -1: gone
    int server;
    bool held = false;
    std::string out;  // of the client, for the server
  };
  void run();
  void on_thread(const std::function<void()>& work);  // returns when it is done
  void accept_one();
  bool from_client(Pair& pair);
  bool from_server(Pair& pair);
  void wake();

  const uint16_t server_port_;
  uint16_t port_ = 0;
  int listener_ = -1;
  int wake_[2] = {-1, -1};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;  // of the work
  std::condition_variable done_;
  const std::function<void()>* work_ = nullptr;
  std::list<Pair> pairs_;
  std::string hold_from_;
  std::string said_, answered_;  // by the server; instead
  std::thread thread_;
};

}  // namespace redlock::test
