// SPDX-License-Identifier: MIT
#include "port/uv/driver.hpp"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <new>

#include "port/posix/entropy.hpp"
#include "port/posix/fork_guard.hpp"

namespace redlock {
namespace {

constexpr int watcher_slots = 1000;      // descriptors below this never make libuv grow its table again
constexpr unsigned turns_max = 16;       // in one prepare; then the loop comes round first
constexpr int keepalive_idle_s = 5;
constexpr int keepalive_interval_s = 1;
constexpr int keepalive_probes = 3;
constexpr int user_timeout_ms = 3000;    // unacknowledged data: keepalive is silent while there is some

bool set_option(int fd, int level, int name, int value) {
  return setsockopt(fd, level, name, &value, sizeof value) == 0;
}

bool tune(int fd) {
  return set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1) && set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1) &&
         set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, keepalive_idle_s) &&
         set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, keepalive_interval_s) &&
         set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, keepalive_probes) &&
         set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, user_timeout_ms);
}

bool same_address(const sockaddr_storage& a, const sockaddr_storage& b) {
  if (a.ss_family != b.ss_family) return false;
  if (a.ss_family == AF_INET) {
    const auto& x = reinterpret_cast<const sockaddr_in&>(a);
    const auto& y = reinterpret_cast<const sockaddr_in&>(b);
    return x.sin_port == y.sin_port && x.sin_addr.s_addr == y.sin_addr.s_addr;
  }
  if (a.ss_family == AF_INET6) {
    const auto& x = reinterpret_cast<const sockaddr_in6&>(a);
    const auto& y = reinterpret_cast<const sockaddr_in6&>(b);
    return x.sin6_port == y.sin6_port && x.sin6_scope_id == y.sin6_scope_id &&
           memcmp(&x.sin6_addr, &y.sin6_addr, sizeof x.sin6_addr) == 0;
  }
  return false;  // socket paths are compared by the configuration
}

// It stands at the same place in both.
static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
void set_port(sockaddr_storage& address, uint16_t port) {
  reinterpret_cast<sockaddr_in&>(address).sin_port = htons(port);
}

template <class Handle>
uv_handle_t* as_handle(Handle* handle) {
  return reinterpret_cast<uv_handle_t*>(handle);
}

}  // namespace

// While it lives, no other thread is at the client.
class Driver::Visit {
 public:
  explicit Visit(const Owner& owner) : owner_(owner) {
    if (owner_.enter != nullptr) owner_.enter(owner_.self);
  }
  ~Visit() {
    if (owner_.leave != nullptr) owner_.leave(owner_.self);
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

 private:
  const Owner& owner_;
};

// ---- life -----------------------------------------------------------------------------------------------------

Driver::Driver(Client& client, const Owner& owner, void* memory)
    : client_(client),
      owner_(owner),
      connections_(static_cast<Connection*>(memory)),
      masters_(client.settings().masters) {
  for (MasterIndex m = 0; m < masters_; ++m) {
    Connection& c = *new (&connections_[m]) Connection();
    c.driver = this;
    c.master = m;
    c.fd = -1;
  }
}

// What can fail comes before the first handle is on the loop: a handle can only be closed by running the loop, and
// the caller of a failed create has nothing to run it for.
int Driver::open(uv_loop_t* loop) {
  loop_ = loop;
  fork_generation_ = fork_generation();
  if (!clock_.start()) return REDLOCK_E_CLOCK;
  timer_fd_ = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
  if (timer_fd_ < 0) return REDLOCK_E_SYSTEM;
  if (uv_poll_init(loop_, &timer_, timer_fd_) != 0) {
    ::close(timer_fd_);
    return REDLOCK_E_SYSTEM;
  }
  timer_.data = this;
  uv_poll_start(&timer_, UV_READABLE, on_timer);
  uv_prepare_init(loop_, &prepare_);
  prepare_.data = this;
  uv_prepare_start(&prepare_, on_prepare);
  uv_idle_init(loop_, &idle_);
  idle_.data = this;
  grow_watchers();
  return 0;
}

// libuv keeps its watchers in an array indexed by descriptor and reallocates it when a higher one than ever comes,
// which the host program may cause at any time. Showing it a high one now keeps reconnects off the heap; it is shown by
// the handle of a connection that does not begin before that is closed.
void Driver::grow_watchers() {
  rlimit limit = {};
  int wanted = watcher_slots;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur <= static_cast<rlim_t>(wanted)) {
    wanted = static_cast<int>(limit.rlim_cur) - 1;
  }
  const int high = fcntl(timer_fd_, F_DUPFD_CLOEXEC, wanted);
  if (high < 0) return;  // every descriptor up there is in use: the table has been that large already
  Connection& c = connections_[0];
  if (uv_poll_init(loop_, &c.poll, high) == 0) {
    c.poll.data = &c;
    c.polling = c.poll_closing = true;
    uv_poll_start(&c.poll, UV_READABLE, on_poll);
    uv_close(as_handle(&c.poll), on_poll_closed);
  }
  ::close(high);
}

void Driver::close_handles() {
  closing_ = true;
  uv_close(as_handle(&timer_), on_own_closed);
  ::close(timer_fd_);
  uv_close(as_handle(&prepare_), on_own_closed);
  uv_close(as_handle(&idle_), on_own_closed);
}

void Driver::on_own_closed(uv_handle_t* handle) {
  Driver& driver = *static_cast<Driver*>(handle->data);
  --driver.own_open_;
  driver.handle_closed();
}

// A handle or a look-up has come to its end; after the last one the owner may have its memory back.
void Driver::handle_closed() {
  if (!closing_ || own_open_ != 0) return;
  for (MasterIndex m = 0; m < masters_; ++m) {
    if (connections_[m].polling || connections_[m].lookup_pending) return;
  }
  owner_.closed(owner_.self);
}

// ---- the loop's turn ------------------------------------------------------------------------------------------

void Driver::on_prepare(uv_prepare_t* handle) {
  Driver& driver = *static_cast<Driver*>(handle->data);
  uv_idle_stop(&driver.idle_);
  if (driver.stepping_ || driver.owner_.foreign(driver.owner_.self)) return;
  const Visit visit(driver.owner_);
  if (driver.pending()) {
    driver.step();
  } else {
    driver.arm();  // what was read may have brought a deadline nearer, and nothing else
  }
}

void Driver::step() {
  stepping_ = true;
  turns();
  if (client_.is_closed()) return close_handles();
  stepping_ = false;
  arm();
}

void Driver::turns() {
  for (unsigned i = 0; i < turns_max; ++i) {
    const Instant now = handle_time();
    const bool turns = touched_ || client_.wants_turn();  // else there are only events
    if (turns) turn(now);
    deliver(now, turns);
    if (!touched_ && !client_.wants_turn()) return;
  }
  touched_ = true;
}

inline void Driver::flush(Connection& c, const Tx& tx, Instant now) {
  if (c.state != Connection::State::open || (c.events & UV_WRITABLE)) return;
  if (!tx.one_run()) return flush_woven(c, tx, now);
  const Bytes run = tx.run();
  const ssize_t sent = send(c.fd, run.data, run.size, MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(run.size)) return sent_part(c, sent, now);
  client_.all_sent(c.master);
}

void Driver::turn(Instant now) {
  touched_ = false;
  refill();
  if (client_.wants_boot_time()) client_.boot_time(clock_.boot_ms(), now);
  client_.turn(now);
  for (MasterIndex m = 0; m < masters_; ++m) {
    const Tx& tx = client_.output(m);
    if (!tx.empty()) flush(connections_[m], tx, now);
  }
  client_.flushed(now);
  if (client_.called()) act_on_wishes(now);
}

// As many events as are there now: what a callback adds is told after the next turn. The clock is read before each,
// since a callback takes its time, and so does a turn. late: something came behind the reading of `now`.
void Driver::deliver(Instant now, bool late) {
  for (unsigned n = client_.events(); n > 0; --n, late = true) {
    if (late) now = handle_time();
    Client::Event event;
    if (!client_.next_event(event, now)) return;
    owner_.event(owner_.self, event);
    client_.delivered(event);
  }
}

inline Instant Driver::read_clock_in_line() {
  const Reading reading = clock_.read();
  if (reading.jumped) client_.clock_jumped(reading.now);
  return reading.now;
}

Instant Driver::read_clock() { return read_clock_in_line(); }

Instant Driver::handle_time() {
  const Instant now = read_clock();
  client_.on_time(now);
  return now;
}

void Driver::refill() {
  unsigned char bytes[256];
  for (size_t wanted = client_.entropy_wanted(); wanted > 0; wanted = client_.entropy_wanted()) {
    const size_t size = fill_random(bytes, wanted < sizeof bytes ? wanted : sizeof bytes);
    if (size == 0) return;  // early boot: rounds wait
    client_.add_entropy(bytes, size);
    explicit_bzero(bytes, size);
  }
}

void Driver::arm() {
  const Instant deadline = touched_ ? Instant::from_ns(0) : client_.deadline();
  if (deadline >= armed_for_) return;
  int64_t at = clock_.timer_ns(deadline);
  if (at < 1) at = 1;  // 0 would disarm it
  itimerspec spec = {};
  spec.it_value.tv_sec = static_cast<time_t>(at / 1'000'000'000);
  spec.it_value.tv_nsec = static_cast<long>(at % 1'000'000'000);
  if (timerfd_settime(timer_fd_, TFD_TIMER_ABSTIME, &spec, nullptr) == 0) armed_for_ = deadline;
}

void Driver::on_timer(uv_poll_t* handle, int, int) {
  Driver& driver = *static_cast<Driver*>(handle->data);
  if (driver.closing_ || driver.owner_.foreign(driver.owner_.self)) return;
  uint64_t expirations;
  if (::read(driver.timer_fd_, &expirations, sizeof expirations) < 0) return;
  driver.armed_for_ = Instant::never();
  driver.touched_ = true;
}

// ---- connections ----------------------------------------------------------------------------------------------

void Driver::act_on_wishes(Instant now) {
  for (MasterIndex m = 0; m < masters_; ++m) {
    const Session::Wish wish = client_.wish(m);
    if (wish == Session::Wish::none) continue;
    Connection& c = connections_[m];
    if (wish == Session::Wish::close) {
      close(c, 0, client_.polite(m), now);
    } else if (!c.polling && !c.lookup_pending) {
      connect(c, now);
    }
  }
}

void Driver::connect(Connection& c, Instant now) {
  client_.connecting(c.master, now);
  if (has_address(c)) {
    open_socket(c, now);
  } else {
    resolve(c, now);
  }
}

// Fills in the address, unless it is a name. Not in line: the text must not lie on the stack below the connection's
// first steps.
[[gnu::noinline]] bool Driver::has_address(Connection& c) {
  const MasterSettings& master = client_.settings().master[c.master];
  char host[REDLOCK_HOST_MAX + 1];
  memcpy(host, master.host.data, master.host.size);
  host[master.host.size] = '\0';
  memset(&c.address, 0, sizeof c.address);
  if (master.unix_socket) {
    auto& address = reinterpret_cast<sockaddr_un&>(c.address);
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path, host, master.host.size + 1);
    c.address_size = sizeof address;
  } else if (inet_pton(AF_INET, host, &reinterpret_cast<sockaddr_in&>(c.address).sin_addr) == 1) {
    c.address.ss_family = AF_INET;
    c.address_size = sizeof(sockaddr_in);
  } else if (inet_pton(AF_INET6, host, &reinterpret_cast<sockaddr_in6&>(c.address).sin6_addr) == 1) {
    c.address.ss_family = AF_INET6;
    c.address_size = sizeof(sockaddr_in6);
  } else {
    return false;
  }
  if (!master.unix_socket) set_port(c.address, master.port);
  return true;
}

// The one thing that allocates and uses libuv's thread pool; numeric addresses never come here.
void Driver::resolve(Connection& c, Instant now) {
  const MasterSettings& master = client_.settings().master[c.master];
  char host[REDLOCK_HOST_MAX + 1];
  memcpy(host, master.host.data, master.host.size);
  host[master.host.size] = '\0';
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  c.lookup.data = &c;
  if (uv_getaddrinfo(loop_, &c.lookup, on_resolved, host, nullptr, &hints) != 0) {
    return client_.closed(c.master, REDLOCK_E_RESOLVE, now);
  }
  c.lookup_pending = true;
  c.state = Connection::State::resolving;
}

void Driver::on_resolved(uv_getaddrinfo_t* request, int status, addrinfo* result) {
  Connection& c = *static_cast<Connection*>(request->data);
  Driver& driver = *c.driver;
  c.lookup_pending = false;
  if (status == 0 && result != nullptr) {
    const addrinfo* at = result;
    for (unsigned n = c.tries++; n > 0; --n) at = at->ai_next != nullptr ? at->ai_next : result;
    memcpy(&c.address, at->ai_addr, at->ai_addrlen);
    c.address_size = at->ai_addrlen;
  }
  if (result != nullptr) uv_freeaddrinfo(result);
  if (driver.owner_.foreign(driver.owner_.self)) return;
  if (driver.closing_) return driver.handle_closed();
  const Visit visit(driver.owner_);
  driver.touched_ = true;
  if (c.state != Connection::State::resolving) return;  // given up meanwhile
  const Instant now = driver.read_clock();
  c.state = Connection::State::idle;
  if (status != 0) return driver.client_.closed(c.master, REDLOCK_E_RESOLVE, now);
  set_port(c.address, driver.client_.settings().master[c.master].port);
  driver.open_socket(c, now);
}

bool Driver::is_duplicate(const Connection& c) const {
  for (MasterIndex m = 0; m < masters_; ++m) {
    const Connection& other = connections_[m];
    if (m != c.master && other.fd >= 0 && same_address(c.address, other.address)) return true;
  }
  return false;
}

void Driver::open_socket(Connection& c, Instant now) {
  if (is_duplicate(c)) return client_.closed(c.master, REDLOCK_E_DUPLICATE, now);
  const int fd = socket(c.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return client_.closed(c.master, REDLOCK_E_SYSTEM, now);
  const bool tcp = c.address.ss_family != AF_UNIX;
  if ((tcp && !tune(fd)) || uv_poll_init(loop_, &c.poll, fd) != 0) {
    ::close(fd);
    return client_.closed(c.master, REDLOCK_E_SYSTEM, now);
  }
  c.poll.data = &c;
  c.fd = fd;
  c.events = 0;
  c.polling = true;
  c.state = Connection::State::connecting;
  const int err = ::connect(fd, reinterpret_cast<sockaddr*>(&c.address), c.address_size);
  if (err == 0) return established(c, now);
  if (errno != EINPROGRESS) return close(c, REDLOCK_E_CONNECT, true, now);
  if (!watch(c, UV_WRITABLE)) close(c, REDLOCK_E_SYSTEM, true, now);
}

void Driver::established(Connection& c, Instant now) {
  c.state = Connection::State::open;
  --c.tries;
  if (!watch(c, UV_READABLE)) return close(c, REDLOCK_E_SYSTEM, true, now);
  client_.connected(c.master, now);
  flush_apart(c, now);
}

// A broken connection is reset, so that the peer's kernel drops it as well; a polite end lets what was written arrive.
void Driver::close(Connection& c, int reason, bool polite, Instant now) {
  if (c.polling && !c.poll_closing) {
    if (!polite) {
      const linger reset = {1, 0};
      setsockopt(c.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    }
    c.poll_closing = true;
    uv_close(as_handle(&c.poll), on_poll_closed);
    ::close(c.fd);
    c.fd = -1;
  }
  if (c.lookup_pending) uv_cancel(reinterpret_cast<uv_req_t*>(&c.lookup));
  c.state = Connection::State::idle;
  touched_ = true;
  client_.closed(c.master, reason, now);
}

void Driver::on_poll_closed(uv_handle_t* handle) {
  Connection& c = *static_cast<Connection*>(handle->data);
  c.polling = c.poll_closing = false;
  c.driver->touched_ = true;
  c.driver->handle_closed();
}

// ---- bytes ----------------------------------------------------------------------------------------------------

bool Driver::watch(Connection& c, int events) {
  if (c.events == events) return true;
  c.events = events;
  return uv_poll_start(&c.poll, events, on_poll) == 0;
}

inline void Driver::read(Connection& c) {
  size_t room = 0;
  char* at = client_.rx_room(c.master, room);
  const ssize_t n = room > 0 ? recv(c.fd, at, room, 0) : 0;
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  const Instant now = read_clock_in_line();
  if (n > 0) return client_.received(c.master, static_cast<size_t>(n), now);
  close(c, room > 0 ? REDLOCK_E_DISCONNECTED : REDLOCK_E_PROTOCOL, false, now);
}

void Driver::on_poll(uv_poll_t* handle, int status, int events) {
  Connection& c = *static_cast<Connection*>(handle->data);
  Driver& driver = *c.driver;
  if (driver.closing_ || c.fd < 0 || forked_since(driver.fork_generation_)) return;
  const Visit visit(driver.owner_);
  if (c.state == Connection::State::connecting) {
    driver.touched_ = true;
    int err = 0;
    socklen_t size = sizeof err;
    const Instant now = driver.read_clock();
    if (status < 0 || getsockopt(c.fd, SOL_SOCKET, SO_ERROR, &err, &size) != 0 || err != 0) {
      return driver.close(c, REDLOCK_E_CONNECT, true, now);
    }
    return driver.established(c, now);
  }
  if (status < 0) return driver.broken(c);
  if (events & UV_WRITABLE) {
    driver.touched_ = true;
    driver.watch(c, UV_READABLE);
    driver.flush_apart(c, driver.read_clock());
  }
  if ((events & UV_READABLE) && c.fd >= 0) driver.read(c);
}

// The server's last words, if any, say why: -ERR max number of clients reached, -DENIED.
void Driver::broken(Connection& c) {
  read(c);
  if (c.fd >= 0) close(c, REDLOCK_E_DISCONNECTED, false, read_clock());
}

// `total`: bytes that there were to send. Not in line: these lists must not lie on the stack below a step that follows.
[[gnu::noinline]] static ssize_t send_runs(int fd, const Tx& tx, size_t& total) {
  Bytes chunks[Tx::chunks_max];
  iovec parts[Tx::chunks_max];
  const unsigned n = tx.gather(chunks, Tx::chunks_max);
  for (unsigned i = 0; i < n; ++i) {
    parts[i] = {const_cast<char*>(chunks[i].data), chunks[i].size};
    total += chunks[i].size;
  }
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = n;
  return sendmsg(fd, &message, MSG_NOSIGNAL);
}

void Driver::flush_apart(Connection& c, Instant now) { flush(c, client_.output(c.master), now); }

// With script bodies in it: as far as possible in one call.
void Driver::flush_woven(Connection& c, const Tx& tx, Instant now) {
  while (!tx.empty()) {
    size_t total = 0;
    const ssize_t sent = send_runs(c.fd, tx, total);
    if (sent != static_cast<ssize_t>(total)) return sent_part(c, sent, now);
    client_.sent(c.master, total);
  }
}

// The socket's buffer is full, or the connection is gone.
void Driver::sent_part(Connection& c, ssize_t sent, Instant now) {
  if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) return broken(c);
  if (sent > 0) client_.sent(c.master, static_cast<size_t>(sent));
  if (!watch(c, UV_READABLE | UV_WRITABLE)) close(c, REDLOCK_E_SYSTEM, false, now);
}

}  // namespace redlock
