// SPDX-License-Identifier: MIT
//
// A hostile server beside two good masters, and a client that cycles. Whatever the hostile server sends, the good
// masters' locks are taken in time, none is LOST, and no turn of the loop costs more CPU time than turns_max of the
// longest step of an honest handshake in the same run.
//
// The kernel charges a thread with work for others that it does while the thread runs, so any turn may look long. What
// a peer can cause, it causes on each of its connections. So each connection has its longest turn, and the second of
// these is judged.
#pragma once
#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <map>
#include <set>

#include "tls_site.hpp"

namespace redlock::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double turns_max = 80;  // a sanitizer cleans up now and then, and a turn without a bound is longer still
#else
constexpr double turns_max = 8;
#endif

constexpr int64_t patience_ns = 60'000'000'000;  // this long a test waits for what should come in a second

inline double cpu_ms(clockid_t of = CLOCK_THREAD_CPUTIME_ID) {
  timespec now{};
  clock_gettime(of, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

// Serves one connection after another, each by `attack`, on a thread of its own. A blocking send ends with the
// connection, or soon after the object's end has begun.
class Hostile {
 public:
  using Attack = std::function<void(Hostile&, int fd)>;
  explicit Hostile(Attack attack) : attack_(std::move(attack)) {
    signal(SIGPIPE, SIG_IGN);
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    if (bind(listener_, reinterpret_cast<sockaddr*>(&at), size) != 0 || listen(listener_, 8) != 0 ||
        getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size) != 0) {
      throw std::runtime_error("hostile: cannot listen");
    }
    port_ = ntohs(at.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~Hostile() {
    stop_ = true;
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  Hostile(const Hostile&) = delete;
  Hostile& operator=(const Hostile&) = delete;

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  unsigned accepted() const { return accepted_; }
  bool stopped() const { return stop_; }
  // False: the client has hung up.
  bool send_all(int fd, const std::string& bytes) const {
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t n = send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
      if (n < 0 && errno == EAGAIN && !stop_) continue;
      if (n <= 0) return false;
      at += static_cast<size_t>(n);
    }
    return true;
  }
  // Until the client says something, or hangs up.
  bool hear(int fd) const {
    char bytes[4'096];
    ssize_t n = -1;
    while (!stop_ && (n = recv(fd, bytes, sizeof bytes, 0)) < 0 && errno == EAGAIN) {
    }
    return n > 0;
  }

 private:
  void run() {
    while (!stop_) {
      const int fd = accept(listener_, nullptr, nullptr);
      if (fd < 0) continue;
      const timeval short_while = {0, 50'000};
      setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &short_while, sizeof short_while);
      setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &short_while, sizeof short_while);
      ++accepted_;
      attack_(*this, fd);
      close(fd);
    }
  }

  Attack attack_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::atomic<bool> stop_{false};
  std::atomic<unsigned> accepted_{0};
  std::thread thread_;
};

inline std::string record(int type, const std::string& body) {
  return std::string{static_cast<char>(type), 3, 3, static_cast<char>(body.size() >> 8),
                     static_cast<char>(body.size() & 0xff)} +
         body;
}

inline std::string repeated(const std::string& text, size_t times) {
  std::string all;
  all.reserve(text.size() * times);
  while (times-- > 0) all += text;
  return all;
}

inline Hostile::Attack flood(const std::string& one) {
  return [bytes = repeated(one, 20'000)](Hostile& h, int fd) {
    if (!h.hear(fd)) return;
    while (!h.stopped() && h.send_all(fd, bytes)) {
    }
  };
}

inline std::string size24(size_t size) {
  return {static_cast<char>(size >> 16), static_cast<char>(size >> 8), static_cast<char>(size)};
}

// ---- a server with a key ------------------------------------------------------------------------------------------

using Server = std::shared_ptr<SSL_CTX>;

inline Server server_of(const Certificate& certificate, int version) {
  const Server made(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  SSL_CTX_set_min_proto_version(made.get(), version);
  SSL_CTX_set_max_proto_version(made.get(), version);
  EXPECT_EQ(SSL_CTX_use_certificate(made.get(), certificate.x509()), 1);
  EXPECT_EQ(SSL_CTX_use_PrivateKey(made.get(), certificate.key()), 1);
  return made;
}

// Speaks again and again behind an honest handshake; false: no more.
using Talk = std::function<bool(Hostile& h, SSL*)>;

inline Hostile::Attack speaks(const Server& server, const Talk& talk) {
  return [server, talk](Hostile& h, int fd) {
    SSL* const ssl = SSL_new(server.get());
    SSL_set_fd(ssl, fd);
    int done = 0;
    while (!h.stopped() && (done = SSL_accept(ssl)) != 1 && SSL_get_error(ssl, done) == SSL_ERROR_WANT_READ) {
    }
    while (done == 1 && !h.stopped() && talk(h, ssl)) {
    }
    ERR_clear_error();
    SSL_free(ssl);
  };
}

inline bool cut(Hostile&, SSL*) { return false; }

// ---- what comes without text --------------------------------------------------------------------------------------

inline std::string message(int type, const std::string& body) {
  return static_cast<char>(type) + size24(body.size()) + body;
}

inline const std::string warning = {1, 90};  // the user has cancelled
inline const std::string hello_request = message(0, "");
inline std::string ticket13() {
  return message(
      4, std::string("\0\0\1\0agea\1n", 10) + std::string("\0\40", 2) + std::string(32, 't') + std::string(2, '\0'));
}

inline bool went_on(SSL* ssl, int done) {
  if (done == 1) return true;
  const int why = SSL_get_error(ssl, done);
  ERR_clear_error();
  return why == SSL_ERROR_WANT_WRITE || why == SSL_ERROR_WANT_READ;
}

// What OpenSSL's server says by itself, made before it is sent, so that the client finds whole shares of it. Empty:
// OpenSSL does not go on.
inline std::string new_keys_of(SSL* ssl, int asks_back, size_t size) {
  const std::unique_ptr<BIO, void (*)(BIO*)> memory(BIO_new(BIO_s_mem()), BIO_free_all);
  BIO_up_ref(memory.get());
  SSL_set0_wbio(ssl, memory.get());
  while (BIO_pending(memory.get()) < static_cast<int>(size)) {
    if (SSL_key_update(ssl, asks_back) != 1 || !went_on(ssl, SSL_do_handshake(ssl))) return "";
  }
  std::string bytes(size, 0);
  BIO_read(memory.get(), bytes.data(), static_cast<int>(size));
  return bytes;
}

// ---- the site ----------------------------------------------------------------------------------------------------

class TlsHostile : public ::testing::Test {
 protected:
  TlsHostile() : site(2) {}

  // The loop runs until the predicate holds. Notes the longest CPU time of a round, for each hostile connection.
  void take_turns(const std::function<bool()>& holds, const Hostile* hostile = nullptr) {
    constexpr int at_most_ms = patience_ns / 1'000'000;
    double begun = cpu_ms();
    const auto ends_a_round = [&] {
      double& longest = longest_turns[hostile != nullptr ? hostile->accepted() : 0];
      longest = std::max(longest, cpu_ms() - begun);
      const bool held = holds();
      begun = cpu_ms();
      return held;
    };
    EXPECT_TRUE(loop.run_until(ends_a_round, at_most_ms)) << "not within " << at_most_ms << " ms";
  }

  Settings settings(const std::string& hostile) {
    Settings s = site.settings();
    if (!hostile.empty()) s.urls.push_back(hostile);
    s.numbers = {{"timing.connect_timeout_ms", 2'000}, {"timing.node_timeout_ms", 500}, {"timing.max_ttl_ms", 60'000}};
    s.numbers.insert(s.numbers.end(), numbers.begin(), numbers.end());
    return s;
  }

  // The longest turn of three honest greetings.
  double honest() {
    longest_turns.clear();
    for (int i = 0; i < 3; ++i) {
      Client client(loop, settings(""));
      take_turns([&] { return client.status().masters_up == 2; });
    }
    return longest_turns[0];
  }

  // Cycles beside the hostile server, 20 times at least, until `attempts` of its connections are over and the client
  // has said `err` of it (0: whatever it says). The second longest of its connections' longest turns.
  double cycle_beside(Hostile& hostile, const std::string& scheme, unsigned attempts, int err) {
    Client client(loop, settings(scheme + hostile.address()));
    longest_turns.clear();
    take_turns([&] { return client.status().masters_up >= 2; }, &hostile);
    const int64_t ends = boot_ns() + patience_ns * (1 + attempts / 100);
    const auto until = [&](const std::function<bool()>& holds) {
      take_turns([&] { return seen.insert(client.master(2).err), holds(); }, &hostile);
    };
    for (unsigned n = 0; n < 20 || hostile.accepted() <= attempts || (err != 0 && seen.count(err) == 0); ++n) {
      Lock& lock = client.start("bus", options(10'000, 5'000));
      until([&] { return lock.decided(); });
      EXPECT_TRUE(lock.has(REDLOCK_EV_ACQUIRED));
      EXPECT_EQ(redlock_release_async(client.get(), lock.handle), 0);
      until([&] { return lock.ended(); });
      EXPECT_FALSE(lock.has(REDLOCK_EV_LOST));
      EXPECT_LT(boot_ns(), ends)
          << "asked " << hostile.accepted() << " times only, or it was never " << redlock_err_name(err);
      if (HasFailure()) break;
    }
    std::vector<double> longest;
    for (const auto& [connection, of_it] : longest_turns) longest.push_back(of_it);
    std::sort(longest.rbegin(), longest.rend());
    return longest[longest.size() > 1];
  }

  void endure(const char* what, const Hostile::Attack& attack, int err, const char* scheme = "rediss://",
              unsigned attempts = 4) {
    double honest_ms = honest();
    double longest = 0;
    {
      Hostile hostile(attack);
      seen.clear();
      longest = cycle_beside(hostile, scheme, attempts, err);
    }
    honest_ms = std::max(honest_ms, honest());
    std::printf("%-28s longest turn %.2f ms, an honest one %.2f ms:", what, longest, honest_ms);
    for (const int said : seen) std::printf(" %s", redlock_err_name(said));
    std::printf("\n");
    EXPECT_LE(longest, turns_max * honest_ms) << what;
  }

  Server trusted(int version) const { return server_of(site.certificate, version); }

  TlsSite site;
  Loop loop;
  std::vector<std::pair<std::string, uint32_t>> numbers;  // of the settings, beside the usual ones
  std::set<int> seen;                                     // what the client said of the hostile server
  std::map<unsigned, double> longest_turns;               // in ms, by the hostile server's connections until then
};

}  // namespace redlock::test
