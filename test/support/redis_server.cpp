// SPDX-License-Identifier: MIT
#include "redis_server.hpp"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

namespace redlock::test {

namespace {

constexpr int kStartBudgetMs = 60'000;

int64_t now_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what); }

std::string redis_server_path() {
  if (const char* chosen = std::getenv("REDLOCK_REDIS_SERVER")) return chosen;
  for (const char* program : {"/redis-server", "/valkey-server"}) {
    std::stringstream folders(std::getenv("PATH") ? std::getenv("PATH") : "/usr/bin");
    for (std::string folder; std::getline(folders, folder, ':');) {
      const std::string path = folder + program;
      if (::access(path.c_str(), X_OK) == 0) return path;
    }
  }
  fail(
      "neither redis-server nor valkey-server is in PATH; these tests need one: install the package redis-server, or "
      "name the program in REDLOCK_REDIS_SERVER");
}

// For every server that a test starts, e.g. "--io-threads 4"; what a test asks for itself comes behind, and wins.
std::vector<std::string> arguments_from_outside() {
  std::istringstream words(std::getenv("REDLOCK_REDIS_ARGS") ? std::getenv("REDLOCK_REDIS_ARGS") : "");
  return {std::istream_iterator<std::string>(words), {}};
}

// A killed test cannot tidy up: what it leaves lies in the build folder, unless that is too deep for a socket's path.
std::string scratch_folder() {
  const std::string build = REDLOCK_BINARY_DIR;
  return build.size() <= 80 ? build : "/tmp";
}

std::string percent_encoded(const std::string& text) {
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte)) {
      out += c;
    } else {
      out += '%';
      out += digits[byte >> 4];
      out += digits[byte & 15];
    }
  }
  return out;
}

// The reply at text[at...] as words; at moves behind it.
std::string resp_text(std::string_view text, size_t& at) {
  const size_t end = text.find("\r\n", at);
  const char mark = text[at];
  const std::string line(text.substr(at + 1, end - at - 1));
  at = end + 2;
  switch (mark) {
    case '-':
      return "-" + line;
    case '_':
      return "(nil)";
    case '$':
    case '=': {
      if (line == "-1") return "(nil)";
      const size_t size = std::stoul(line);
      const std::string payload(text.substr(at, size));
      at += size + 2;
      return mark == '=' ? payload.substr(4) : payload;
    }
    case '*':
    case '%':
    case '>': {
      if (line == "-1") return "(nil)";
      std::string words;
      for (size_t left = std::stoul(line) * (mark == '%' ? 2 : 1); left > 0; --left) {
        words += (words.empty() ? "" : " ") + resp_text(text, at);
      }
      return words;
    }
    default:
      return line;
  }
}

}  // namespace

// ---- RESP -----------------------------------------------------------------------------------------------------------

size_t resp_value_size(std::string_view text) {
  size_t at = 0;
  for (uint64_t pending = 1; pending > 0; --pending) {
    const size_t end = text.find("\r\n", at);
    if (end == std::string_view::npos) return 0;
    const char mark = text[at];
    const long number = std::strtol(std::string(text.substr(at + 1, end - at - 1)).c_str(), nullptr, 10);
    at = end + 2;
    if (mark == '$' || mark == '=') {
      if (number >= 0) at += static_cast<size_t>(number) + 2;
    } else if ((mark == '*' || mark == '%' || mark == '>' || mark == '~') && number > 0) {
      pending += static_cast<uint64_t>(number) * (mark == '%' ? 2 : 1);
    }
    if (at > text.size()) return 0;
  }
  return at;
}

std::string resp_command(const std::vector<std::string>& words) {
  std::string bytes = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) bytes += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  return bytes;
}

// ---- connection -----------------------------------------------------------------------------------------------------

RedisConnection RedisConnection::tcp(uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port);
  if (fd < 0 || ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int error = errno;
    if (fd >= 0) ::close(fd);
    fail("connect to 127.0.0.1:" + std::to_string(port) + ": " + std::strerror(error));
  }
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return RedisConnection(fd);
}

RedisConnection RedisConnection::unix_socket(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (fd < 0 || ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int error = errno;
    if (fd >= 0) ::close(fd);
    fail("connect to " + path + ": " + std::strerror(error));
  }
  return RedisConnection(fd);
}

RedisConnection::RedisConnection(RedisConnection&& other) noexcept
    : fd_(other.fd_), closed_(other.closed_), in_(std::move(other.in_)) {
  other.fd_ = -1;
}

RedisConnection::~RedisConnection() {
  if (fd_ >= 0) ::close(fd_);
}

void RedisConnection::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) {
      closed_ = true;
      return;
    }
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

void RedisConnection::reset() {
  const linger at_once{1, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  ::close(fd_);
  fd_ = -1;
  closed_ = true;
}

std::string RedisConnection::receive(size_t replies, int budget_ms) {
  const int64_t until = now_ms() + budget_ms;
  std::string taken;
  while (replies > 0) {
    const size_t size = resp_value_size(in_);
    if (size > 0) {
      if (in_[0] != '>') --replies;
      taken += in_.substr(0, size);
      in_.erase(0, size);
      continue;
    }
    pollfd waiting{fd_, POLLIN, 0};
    const int64_t left = until - now_ms();
    if (left <= 0) fail("no answer within " + std::to_string(budget_ms) + " ms");
    if (::poll(&waiting, 1, static_cast<int>(left)) <= 0) continue;
    char buffer[16384];
    const ssize_t got = ::recv(fd_, buffer, sizeof buffer, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      closed_ = true;
      taken += in_;
      in_.clear();
      return taken;
    }
    in_.append(buffer, static_cast<size_t>(got));
  }
  return taken;
}

std::string RedisConnection::command(const std::vector<std::string>& words) {
  send(resp_command(words));
  const std::string raw = receive(1);
  size_t at = 0;
  while (at < raw.size() && raw[at] == '>') at += resp_value_size(std::string_view(raw).substr(at));
  if (at >= raw.size()) fail("the server closed the connection at " + words.at(0));
  return resp_text(raw, at);
}

// ---- server ---------------------------------------------------------------------------------------------------------

// Programs that run beside each other have pids close together, and are to look far apart: a port whose server is dead
// for the moment seems free to others.
uint16_t free_port() {
  static std::atomic<uint32_t> next{static_cast<uint32_t>(::getpid()) * 12'361};
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const auto port = static_cast<uint16_t>(12'000 + next++ % 20'000);
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = loopback(port);
    const bool is_free = ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    ::close(fd);
    if (is_free) return port;
  }
  fail("no free loopback port between 12000 and 32000");
}

// Another program may be faster than we are, once it is known that the port is free.
int listen_on_loopback(uint16_t& port) {
  for (int attempt = 0; attempt < 10; ++attempt) {
    port = free_port();
    const sockaddr_in address = loopback(port);
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool bound = ::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    if (bound && ::listen(listener, 16) == 0) return listener;
    ::close(listener);
  }
  fail("no loopback listener");
}

ServerTls ServerTls::from_outside() {
  const char* const folder = std::getenv("REDLOCK_TEST_TLS");
  if (folder == nullptr || *folder == '\0') return {};
  const std::string in = std::string(folder) + "/";
  return {in + "server.pem", in + "server.key", in + "ca.pem"};
}

RedisServer::RedisServer(Options options) : options_(std::move(options)) {
  if (!options_.tls.wanted() && !options_.unix_socket) options_.tls = ServerTls::from_outside();
  dir_ = scratch_folder() + "/redis-XXXXXX";
  if (!::mkdtemp(dir_.data())) fail("mkdtemp " + dir_ + ": " + std::strerror(errno));
  if (options_.unix_socket) socket_ = dir_ + "/redis.sock";
  try {
    start();
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove_all(dir_, ignored);
    throw;
  }
}

RedisServer::~RedisServer() {
  kill_hard();
  std::error_code ignored;
  std::filesystem::remove_all(dir_, ignored);
}

// The first start looks for a port until one is really ours; a restart keeps it.
void RedisServer::start() {
  const bool first = port_ == 0 && socket_.empty();
  for (int attempt = 0; attempt < 10; ++attempt) {
    if (first) port_ = free_port();
    if (first && options_.tls.wanted()) tls_port_ = free_port();
    if (spawn_and_wait()) return;
  }
  fail("redis-server does not start; its log ends with:\n" + log_tail());
}

std::vector<std::string> RedisServer::arguments() const {
  std::vector<std::string> words = {
      redis_server_path(), "--daemonize", "no",          "--save", "",           "--appendonly", "no", "--dir", dir_,
      "--logfile",         "log",         "--databases", "1",      "--loglevel", "warning"};
  const auto add = [&words](std::initializer_list<std::string> more) { words.insert(words.end(), more); };
  if (options_.unix_socket)
    add({"--port", "0", "--unixsocket", socket_});
  else
    add({"--port", std::to_string(port_), "--bind", "127.0.0.1"});
  if (tls_port_ != 0) {
    const ServerTls& tls = options_.tls;
    add({"--tls-port", std::to_string(tls_port_), "--tls-cert-file", tls.cert_file, "--tls-key-file", tls.key_file,
         "--tls-ca-cert-file", tls.ca_file, "--tls-auth-clients", tls.clients});
  }
  if (!options_.password.empty()) add({"--requirepass", options_.password});
  const std::vector<std::string> outside = arguments_from_outside();
  words.insert(words.end(), outside.begin(), outside.end());
  words.insert(words.end(), options_.args.begin(), options_.args.end());
  return words;
}

// False: the process ended by itself, as it does when the port is taken.
bool RedisServer::spawn_and_wait() {
  const std::vector<std::string> words = arguments();
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  std::vector<char*> environment;
  for (const std::string& entry : options_.environment) environment.push_back(const_cast<char*>(entry.c_str()));
  for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
  environment.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) fail(std::string("fork: ") + std::strerror(errno));
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    const int nowhere = ::open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; ++fd) ::dup2(nowhere, fd);
    ::execve(argv[0], argv.data(), environment.data());
    ::_exit(127);
  }
  pid_ = child;
  frozen_ = false;
  const int64_t until = now_ms() + kStartBudgetMs;
  for (;;) {
    try {
      RedisConnection probe = connect();
      if (!options_.password.empty()) probe.command({"AUTH", options_.password});
      const std::string info = probe.command({"INFO", "server"});
      const bool ours = info.find("process_id:" + std::to_string(pid_) + "\r\n") != std::string::npos;
      if (ours && probe.command({"PING"}).rfind("-LOADING", 0) != 0) return true;
    } catch (const std::runtime_error&) {
    }
    if (::waitpid(pid_, nullptr, WNOHANG) == pid_) {
      pid_ = -1;
      return false;
    }
    if (now_ms() > until) {
      kill_hard();
      return false;
    }
    ::poll(nullptr, 0, 2);
  }
}

std::string RedisServer::log_tail() const {
  std::ifstream log(dir_ + "/log");
  std::string text((std::istreambuf_iterator<char>(log)), {});
  return text.size() > 2000 ? text.substr(text.size() - 2000) : text;
}

void RedisServer::kill_hard() {
  connection_.reset();
  frozen_ = false;
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

void RedisServer::freeze() {
  if (pid_ <= 0) fail("redis-server does not run");  // to -1 the signal would go to every process there is
  int status = 0;
  ::kill(pid_, SIGSTOP);
  while (::waitpid(pid_, &status, WUNTRACED) < 0 && errno == EINTR) {
  }
  if (!WIFSTOPPED(status)) fail("redis-server did not stop");
  frozen_ = true;
}

void RedisServer::thaw() {
  if (pid_ <= 0) fail("redis-server does not run");
  int status = 0;
  ::kill(pid_, SIGCONT);
  while (::waitpid(pid_, &status, WCONTINUED) < 0 && errno == EINTR) {
  }
  frozen_ = false;
}

void RedisServer::restart() {
  kill_hard();
  start();
}

RedisConnection RedisServer::connect() const {
  return options_.unix_socket ? RedisConnection::unix_socket(socket_) : RedisConnection::tcp(port_);
}

std::string RedisServer::command(const std::vector<std::string>& words) {
  if (!connection_) {
    connection_ = std::make_unique<RedisConnection>(connect());
    if (!options_.password.empty()) connection_->command({"AUTH", options_.password});
  }
  return connection_->command(words);
}

uint64_t RedisServer::calls(const std::string& command_name) {
  const std::string stats = command({"INFO", "commandstats"});
  const std::string name = "cmdstat_" + command_name + ":calls=";
  const size_t at = stats.find(name);
  return at == std::string::npos ? 0 : std::stoull(stats.substr(at + name.size()));
}

std::string RedisServer::url() const { return url_with_password(options_.password); }

std::string RedisServer::url_with_password(const std::string& password) const {
  if (options_.unix_socket) return "unix://" + socket_;
  return url_of(password.empty() ? "" : ":" + percent_encoded(password) + "@", "127.0.0.1");
}


std::string RedisServer::url_for_host(const std::string& host) const { return url_of("", host); }

std::string RedisServer::url_of(const std::string& login, const std::string& host) const {
  if (tls_port_ != 0) return "rediss://" + login + host + ":" + std::to_string(tls_port_);
  return "redis://" + login + host + ":" + std::to_string(port_);
}

// ---- several --------------------------------------------------------------------------------------------------------

Cluster::Cluster(size_t masters, RedisServer::Options options) {
  for (size_t i = 0; i < masters; ++i) servers_.push_back(std::make_unique<RedisServer>(options));
}

std::vector<std::string> Cluster::urls() const {
  std::vector<std::string> all;
  for (const auto& server : servers_) all.push_back(server->url());
  return all;
}

size_t Cluster::holders(const std::string& key) {
  size_t found = 0;
  for (const auto& server : servers_) found += server->running() && !server->frozen() && server->exists(key) ? 1 : 0;
  return found;
}

}  // namespace redlock::test
