// SPDX-License-Identifier: MIT
#include "port/uv/connection.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/password_file.hpp"
#include "port/posix/fork_guard.hpp"
#include "port/uv/driver.hpp"
#include "port/uv/names.hpp"

namespace redlock {

// ---- the life of a connection ---------------------------------------------------------------------------------

void Connection::connect(const Instant& now) {
  if (numeric_address(client_.session(master_).master(), address_)) {
    open(now);
  } else {
    resolve(now);
  }
}

void Connection::open(const Instant& now) {
  const int fd = open_socket(address_, client_.settings());
  if (fd < 0) return driver_.closed(master_, REDLOCK_E_SYSTEM, now);
  if (!begin_watch(fd)) return driver_.closed(master_, REDLOCK_E_SYSTEM, now);
  state_ = State::connecting;
  const Connecting how = connect_socket(fd, address_, client_.session(master_).master());
  if (how == Connecting::done) return finish(now);
  if (how == Connecting::failed) return close(connect_failed(errno), true, now);
  if (!watch(UV_WRITABLE)) close(REDLOCK_E_SYSTEM, true, now);
}

// False: the descriptor is closed.
bool Connection::begin_watch(int fd) {
  REDLOCK_ASSERT(!polling_);
  REDLOCK_ASSERT(fd_ < 0);
  if (uv_poll_init(driver_.loop_, &poll_, fd) != 0) {
    ::close(fd);
    return false;
  }
  poll_.data = this;
  fd_ = fd;
  events_ = 0;
  polling_ = true;
  return true;
}

// Of a numeric address. An address counts as another master's only when both are connected.
void Connection::finish(const Instant& now) {
  int failed = connect_result(fd_);
  if (failed == 0 && driver_.is_duplicate(address_, *this)) failed = REDLOCK_E_DUPLICATE;
  if (failed != 0) return close(failed, true, now);
  established(now);
}

void Connection::established(const Instant& now) {
  REDLOCK_ASSERT(state_ == State::connecting);
  if constexpr (with_tls) {
    if (begin_tls(now)) return;
  }
  state_ = State::open;
  if (!watch(UV_READABLE)) return close(REDLOCK_E_SYSTEM, true, now);
  driver_.connected(master_, now);
}

// A master that has refused our password gets the other one soon, if the password's file has one now.
void Connection::judge_refusal() {
  PasswordFile* const file = client_.session(master_).master().file;
  if (file == nullptr || !file->refused) return;
  file->refused = false;
  if (!read_again(*file)) client_.set_reason(master_, REDLOCK_E_AUTH);
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
  judge_refusal();
  const bool unnamed = state_ == State::resolving && begun_ == 0;
  if (unnamed && client_.session(master_).reason() == REDLOCK_E_CONNECT_TIMEOUT) {
    client_.set_reason(master_, REDLOCK_E_RESOLVE);
  }
  if (!unnamed) end_trials();
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

// ---- the addresses of a name ----------------------------------------------------------------------------------

namespace {

constexpr uint32_t of_names = REDLOCK_ADDRESSES_MAX;  // in a set, beside the numbers of the trials

bool add_to(int set, int fd, uint32_t number, uint32_t events) {
  epoll_event event = {};
  event.events = events;
  event.data.u32 = number;
  return epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0;
}

}  // namespace

void Connection::resolve(const Instant& now) {
  const int64_t patience_ms = quotient(client_.settings().connect_timeout.ns(), 1'000'000);
  begun_ = 0;
  reason_ = REDLOCK_E_RESOLVE;
  if (names_ < 0) names_ = look_up(client_.session(master_).master(), address_, patience_ms);
  if (names_ < 0) return driver_.closed(master_, names_, now);
  const int set = epoll_create1(EPOLL_CLOEXEC);
  if (set < 0 || !begin_watch(set)) {
    forget_names();
    return driver_.closed(master_, REDLOCK_E_SYSTEM, now);
  }
  state_ = State::resolving;
  if (!add_to(set, names_, of_names, EPOLLIN) || !watch(UV_READABLE)) close(REDLOCK_E_SYSTEM, true, now);
}

// One of them at a time: the set stays readable while there are more.
void Connection::on_trial(const Instant& now) {
  epoll_event event;
  if (epoll_wait(fd_, &event, 1, 0) != 1) return;
  if (event.data.u32 == of_names) return take_address(now);
  end_trial(event.data.u32, now);
}

void Connection::take_address(const Instant& now) {
  Address address;
  const Named named = next_address(names_, address);
  if (named == Named::not_yet) return;
  if (named == Named::end) {
    forget_names();
    return trial_failed(reason_, now);
  }
  const int failed = begin_trial(address);
  if (failed != 0) trial_failed(failed, now);
}

int Connection::begin_trial(const Address& address) {
  REDLOCK_ASSERT(begun_ < REDLOCK_ADDRESSES_MAX);
  const unsigned n = begun_++;
  const int fd = trials_[n] = open_socket(address, client_.settings());
  if (fd < 0) return REDLOCK_E_SYSTEM;
  const Connecting how = connect_socket(fd, address, client_.session(master_).master());
  const int failed = how == Connecting::failed ? connect_failed(errno) : 0;
  if (failed == 0 && add_to(fd_, fd, n, EPOLLOUT)) return 0;
  ::close(fd);
  trials_[n] = -1;
  return failed != 0 ? failed : int{REDLOCK_E_SYSTEM};
}

// The socket that has won takes the place of the set.
void Connection::end_trial(unsigned n, const Instant& now) {
  const int fd = trials_[n];
  Address address = {};
  socklen_t size = sizeof address;
  int failed = connect_result(fd);
  if (failed == 0 && getpeername(fd, &address.any, &size) != 0) failed = REDLOCK_E_CONNECT;
  if (failed == 0 && driver_.is_duplicate(address, *this)) failed = REDLOCK_E_DUPLICATE;
  if (failed != 0) {
    ::close(fd);
    trials_[n] = -1;
    return trial_failed(failed, now);
  }
  address_ = address;
  uv_poll_stop(&poll_);
  events_ = 0;
  dup3(fd, fd_, O_CLOEXEC);
  end_trials();
  state_ = State::connecting;
  established(now);
}

// Ends the attempt where no address is left.
void Connection::trial_failed(int reason, const Instant& now) {
  reason_ = static_cast<int16_t>(reason);
  if (names_ >= 0) return hurry(names_);
  for (unsigned n = 0; n < begun_; ++n) {
    if (trials_[n] >= 0) return;
  }
  close(reason, true, now);
}

void Connection::end_trials() {
  forget_names();
  for (; begun_ > 0; --begun_) {
    if (trials_[begun_ - 1] >= 0) ::close(trials_[begun_ - 1]);
  }
}

void Connection::forget_names() {
  if (names_ >= 0) ::close(names_);
  names_ = -1;
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
  if (c.state_ == State::resolving) return c.on_trial(driver.now());
  if (c.state_ == State::connecting) return c.finish(driver.now());
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
