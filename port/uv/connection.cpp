// SPDX-License-Identifier: MIT
#include "port/uv/connection.hpp"

#include <string.h>
#include <unistd.h>

#include "port/posix/fork_guard.hpp"
#include "port/uv/driver.hpp"

namespace redlock {

// ---- the life of a connection ---------------------------------------------------------------------------------

void Connection::connect(const Instant& now) {
  if (numeric_address(client_.session(master_).master(), address_)) {
    open(now);
  } else {
    resolve(now);
  }
}

// A name look-up allocates, and takes one of libuv's threads for slow work. Numeric addresses never come here.
void Connection::resolve(const Instant& now) {
  REDLOCK_ASSERT(!lookup_pending_);
  char host[host_text_size];
  host_text(client_.session(master_).master(), host);
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  lookup_.data = this;
  if (uv_getaddrinfo(driver_.loop_, &lookup_, on_resolved, host, nullptr, &hints) != 0) {
    return driver_.closed(master_, REDLOCK_E_RESOLVE, now);
  }
  lookup_pending_ = true;
  state_ = State::resolving;
}

void Connection::on_resolved(uv_getaddrinfo_t* request, int status, addrinfo* result) {
  Connection& c = *static_cast<Connection*>(request->data);
  Driver& driver = c.driver_;
  c.lookup_pending_ = false;
  if (status == 0 && result != nullptr) {
    const addrinfo* at = result;
    for (unsigned n = c.tries_++; n > 0; --n) at = at->ai_next != nullptr ? at->ai_next : result;
    REDLOCK_ASSERT(at->ai_addrlen <= sizeof c.address_);
    memcpy(&c.address_, at->ai_addr, at->ai_addrlen);
  }
  if (result != nullptr) uv_freeaddrinfo(result);
  if (driver.forked()) return;
  if (driver.closing_) return driver.handle_closed();
  const Driver::Inside inside(driver);
  driver.touch();
  if (c.state_ != State::resolving) return;  // given up meanwhile
  const Instant now = driver.now();
  c.state_ = State::idle;
  if (status != 0) return driver.closed(c.master_, REDLOCK_E_RESOLVE, now);
  set_port(c.address_, c.client_.session(c.master_).master().port);
  c.open(now);
}

void Connection::open(const Instant& now) {
  REDLOCK_ASSERT(!polling_);
  REDLOCK_ASSERT(fd_ < 0);
  if (driver_.is_duplicate(address_, *this)) return driver_.closed(master_, REDLOCK_E_DUPLICATE, now);
  const int fd = open_socket(address_);
  if (fd < 0) return driver_.closed(master_, REDLOCK_E_SYSTEM, now);
  if (uv_poll_init(driver_.loop_, &poll_, fd) != 0) {
    ::close(fd);
    return driver_.closed(master_, REDLOCK_E_SYSTEM, now);
  }
  poll_.data = this;
  fd_ = fd;
  events_ = 0;
  polling_ = true;
  state_ = State::connecting;
  const Connecting how = connect_socket(fd, address_, client_.session(master_).master());
  if (how == Connecting::done) return established(now);
  if (how == Connecting::failed) return close(connect_failed(errno), true, now);
  if (!watch(UV_WRITABLE)) close(REDLOCK_E_SYSTEM, true, now);
}

void Connection::established(const Instant& now) {
  REDLOCK_ASSERT(state_ == State::connecting);
  if constexpr (with_tls) {
    if (begin_tls(now)) return;
  }
  state_ = State::open;
  --tries_;
  if (!watch(UV_READABLE)) return close(REDLOCK_E_SYSTEM, true, now);
  driver_.connected(master_, now);
}

// libuv must let go of the descriptor before the descriptor is closed.
void Connection::close(int reason, bool polite, const Instant& now) {
  if (polling_ && !poll_closing_) {
    poll_closing_ = true;
    uv_close(as_handle(&poll_), on_poll_closed);
    if constexpr (with_tls) end_tls(polite);
    close_socket(fd_, polite);
    fd_ = -1;
  }
  REDLOCK_ASSERT(fd_ < 0);
  if (lookup_pending_) uv_cancel(reinterpret_cast<uv_req_t*>(&lookup_));
  state_ = State::idle;
  driver_.closed(master_, reason, now);
}

void Connection::on_poll_closed(uv_handle_t* handle) {
  Connection& c = *static_cast<Connection*>(handle->data);
  REDLOCK_ASSERT(c.polling_);
  REDLOCK_ASSERT(c.poll_closing_);
  c.polling_ = c.poll_closing_ = false;
  c.driver_.touch();
  c.driver_.handle_closed();
}

void Connection::show(uv_loop_t* loop, int fd) {
  if (uv_poll_init(loop, &poll_, fd) != 0) return;
  poll_.data = this;
  polling_ = poll_closing_ = true;
  uv_poll_start(&poll_, UV_READABLE, on_poll);
  uv_close(as_handle(&poll_), on_poll_closed);
}

// ---- bytes ----------------------------------------------------------------------------------------------------

bool Connection::watch(int events) {
  REDLOCK_ASSERT(polling_);
  REDLOCK_ASSERT(!poll_closing_);
  if (events_ == events) return true;
  events_ = static_cast<uint8_t>(events);
  return uv_poll_start(&poll_, events, on_poll) == 0;
}

inline void Connection::read() {
  REDLOCK_ASSERT(fd_ >= 0);
  size_t room = 0;
  char* at = client_.rx_room(master_, room);
  const ssize_t n = room > 0 ? receive(fd_, at, room) : 0;
  if (n < 0 && nothing_now()) return;
  const Instant now = driver_.now_in_line();
  if constexpr (with_tls) {
    if (n > 0 && at[0] == 0x15 && is_alert(at, n)) return close(REDLOCK_E_TLS_ONLY, false, now);
  }
  if (n > 0) return client_.received(master_, static_cast<size_t>(n), now);
  close(room > 0 ? REDLOCK_E_DISCONNECTED : REDLOCK_E_PROTOCOL, false, now);
}

void Connection::on_poll(uv_poll_t* handle, int status, int events) {
  Connection& c = *static_cast<Connection*>(handle->data);
  Driver& driver = c.driver_;
  if (driver.closing_ || c.fd_ < 0 || forked_since(driver.fork_generation_)) return;
  const Driver::Inside inside(driver);
  if (c.state_ == State::connecting) {
    const Instant now = driver.now();
    const int failed = connect_result(c.fd_);
    if (failed != 0 || status < 0) return c.close(failed != 0 ? failed : REDLOCK_E_CONNECT, true, now);
    return c.established(now);
  }
  if constexpr (with_tls) {
    if (c.state_ >= State::securing) return c.on_poll_tls(status, events);
  }
  if (status < 0) return c.broken();
  if (events & UV_WRITABLE) {
    c.watch(UV_READABLE);
    driver.writable(c.master_);
  }
  if ((events & UV_READABLE) && c.fd_ >= 0) c.read();
}

// Reads first: the server may have said why it hangs up (-ERR max number of clients reached, -DENIED).
void Connection::broken() {
  read();
  if (fd_ >= 0) close(REDLOCK_E_DISCONNECTED, false, driver_.now());
}

// The output contains script bodies. One call sends as much of it as possible.
void Connection::flush_woven(const Tx& tx, const Instant& now) {
  while (!tx.empty()) {
    size_t total = 0;
    const ssize_t sent = send_runs(fd_, tx, total);
    if (sent != static_cast<ssize_t>(total)) return sent_part(sent, now);
    client_.sent(master_, total);
  }
}

// The socket's buffer is full, or the connection is gone.
void Connection::sent_part(ssize_t sent, const Instant& now) {
  if (sent < 0 && !nothing_now()) return broken();
  if (sent > 0) client_.sent(master_, static_cast<size_t>(sent));
  if (!watch(UV_READABLE | UV_WRITABLE)) close(REDLOCK_E_SYSTEM, false, now);
}

}  // namespace redlock
