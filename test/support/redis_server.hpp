// SPDX-License-Identifier: MIT
//
// RedisServer: a real redis-server for one test. Private directory, loopback or unix socket only, no persistence, and
// gone with the object or with the test process, whichever ends first. A test may kill it, stop it like a debugger
// would, wake it and start it again on the same address. No redis-server on the machine is an error, never a skip: the
// constructor throws a sentence that says what to install. REDLOCK_REDIS_SERVER names another program, Redis 6.0 or
// later or any Valkey; REDLOCK_REDIS_ARGS is given to each server, e.g. "--io-threads 4".
//
// REDLOCK_TEST_TLS names a folder that test/support/tls_folder.sh has made. Then each server on TCP has a second port,
// which speaks TLS, and url() is that port's. command() always uses the first port.
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::test {

// Ports on this machine's loopback, where all servers and peers of the tests live.
inline sockaddr_in loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// A socket that listens on a free port. It does not block an accept that comes too early.
int listen_on_loopback(uint16_t& port);

// Bytes of the first complete RESP value in text; 0 while it is incomplete.
size_t resp_value_size(std::string_view text);

// A small blocking client; throws std::runtime_error when the server does not answer within the budget.
class RedisConnection {
 public:
  static RedisConnection tcp(uint16_t port);
  static RedisConnection unix_socket(const std::string& path);
  RedisConnection(RedisConnection&& other) noexcept;
  RedisConnection(const RedisConnection&) = delete;
  RedisConnection& operator=(const RedisConnection&) = delete;
  ~RedisConnection();

  void send(std::string_view bytes);
  void reset();  // ends it as a network does that has lost it: what was sent may still be read
  // Raw bytes until `replies` values that are not pushes have arrived, or the server closed.
  std::string receive(size_t replies, int budget_ms = 60'000);
  bool closed() const { return closed_; }
  // One command and its reply as text: status and bulk as they are, "-ERR ..." for an error, decimal digits for an
  // integer, "(nil)", and an array's elements separated by blanks.
  std::string command(const std::vector<std::string>& words);

 private:
  explicit RedisConnection(int fd) : fd_(fd) {}
  int fd_;
  bool closed_ = false;
  std::string in_;
};

std::string resp_command(const std::vector<std::string>& words);

// The paths of a server's files, PEM.
struct ServerTls {
  std::string cert_file;
  std::string key_file;
  std::string ca_file;
  std::string clients = "no";  // must they have a certificate of ca_file? "no", "optional" or "yes"

  bool wanted() const { return !cert_file.empty(); }
  // The folder of REDLOCK_TEST_TLS; not wanted() where that is not set.
  static ServerTls from_outside();
};

class RedisServer {
 public:
  struct Options {
    std::vector<std::string> args;  // e.g. {"--maxmemory", "1mb"}
    std::string password;           // requirepass, used by command() too
    bool unix_socket = false;       // instead of TCP
    std::vector<std::string> environment = {};  // of the server only, besides ours, e.g. {"LD_PRELOAD=..."}
    ServerTls tls = {};                         // for a second port that speaks TLS
  };

  RedisServer() : RedisServer(Options{}) {}
  explicit RedisServer(Options options);
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  void kill_hard();  // SIGKILL, also when stopped; returns when it is gone
  void freeze();     // SIGSTOP; returns when it stands still
  void thaw();       // SIGCONT
  void restart();    // kills it if needed; same address, empty memory; returns when it answers
  void restart(const ServerTls& tls) {  // with other files
    options_.tls = tls;
    restart();
  }

  // On a connection of its own, kept between calls.
  std::string command(const std::vector<std::string>& words);
  uint64_t calls(const std::string& command);  // executions, as the server counts them
  bool exists(const std::string& key) { return command({"EXISTS", key}) == "1"; }
  RedisConnection connect() const;

  bool running() const { return pid_ > 0; }
  bool frozen() const { return frozen_; }
  pid_t pid() const { return pid_; }
  uint16_t port() const { return port_; }
  uint16_t tls_port() const { return tls_port_; }  // 0: it has none
  const std::string& dir() const { return dir_; }
  const std::string& socket_path() const { return socket_; }
  std::string url() const;        // for redlock_config_add_master, with the password; rediss:// where it speaks TLS
  std::string url_for_host(const std::string& host) const;  // the same server by another name
  std::string url_with_password(const std::string& password) const;

 private:
  void start();
  bool spawn_and_wait();
  std::vector<std::string> arguments() const;
  std::string log_tail() const;
  std::string url_of(const std::string& login, const std::string& host) const;

  Options options_;
  std::string dir_;
  std::string socket_;
  uint16_t port_ = 0;
  uint16_t tls_port_ = 0;
  pid_t pid_ = -1;
  bool frozen_ = false;
  std::unique_ptr<RedisConnection> connection_;
};

// N servers, independent of each other.
class Cluster {
 public:
  explicit Cluster(size_t masters, RedisServer::Options options = {});
  RedisServer& operator[](size_t master) { return *servers_.at(master); }
  size_t size() const { return servers_.size(); }
  std::vector<std::string> urls() const;
  size_t holders(const std::string& key);  // running, unfrozen servers that hold it

 private:
  std::vector<std::unique_ptr<RedisServer>> servers_;
};

// A loopback port that nobody listens on, below the ephemeral range, so that no outgoing connection can take it while a
// server restarts, and none that is refused can meet itself.
uint16_t free_port();

}  // namespace redlock::test
