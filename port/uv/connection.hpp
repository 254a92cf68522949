// SPDX-License-Identifier: MIT
//
// Connection: the way to one master on a libuv loop. It resolves names, opens and closes sockets and moves bytes; the
// driver (port/uv/driver) decides when.
//
// Sockets are our own and libuv only watches them (uv_poll_t). So a send can carry MSG_NOSIGNAL, while uv_write and
// uv_try_write raise SIGPIPE on a closed peer. A script body can leave in the same gather write as the bytes around it,
// and a broken connection can be reset.
#pragma once
#include <uv.h>

#include "client/client.hpp"
#include "port/posix/socket.hpp"
#include "port/uv/secured.hpp"

namespace redlock {

class Driver;

class Connection {
 public:
  Connection(Driver& driver, Client& client, MasterIndex m)
      : driver_(driver), client_(client), master_(static_cast<uint8_t>(m)) {}

  bool idle() const { return !polling_ && !lookup_pending_; }  // libuv holds none of its handles
  [[gnu::noinline]] void connect(const Instant& now);
  [[gnu::noinline]] void close(int reason, bool polite, const Instant& now);
  // always_inline: each turn flushes every master.
  [[gnu::always_inline]] void flush(const Tx& tx, const Instant& now) {
    if (state_ != State::open || (events_ & UV_WRITABLE)) {
      if constexpr (with_tls) flush_tls(tx, now);
      return;
    }
    if (!tx.one_run()) return flush_woven(tx, now);
    const Bytes run = tx.run();
    const ssize_t sent = send_run(fd_, run);
    if (sent != static_cast<ssize_t>(run.size)) return sent_part(sent, now);
    client_.all_sent(master_);
  }
  bool has_address(const Address& address) const { return fd_ >= 0 && same_address(address, address_); }
  // ---- with TLS (port/uv/securing)
  void go_on();  // behind a turn, where Driver::go_on() was called
  Secured& secured() { return secured_; }
  bool report(TlsReport& out) const;
  void show(uv_loop_t* loop, int fd);  // makes libuv watch a descriptor for a moment; before the first connect()

 private:
  enum class State : uint8_t { idle, resolving, connecting, open, securing, secured };  // the last two: with TLS

  [[gnu::noinline]] void resolve(const Instant& now);
  void open(const Instant& now);
  void established(const Instant& now);
  REDLOCK_IN_LINE_FOR_SPEED inline void read();
  [[gnu::noinline]] void broken();
  [[gnu::noinline]] void flush_woven(const Tx& tx, const Instant& now);
  [[gnu::noinline]] void sent_part(ssize_t sent, const Instant& now);
  bool watch(int events);

  // ---- with TLS
  static ssize_t take(void* self, char* at, size_t room);
  static ssize_t give(void* self, const char* data, size_t size);
  bool begin_tls(const Instant& now);
  void take_step();
  bool wastes_shares();
  void wait_for(tls::Progress progress, const Instant& now);
  void end_tls(bool polite);
  void explain_silence();
  void on_poll_tls(int status, int events);
  bool flush_rest();
  void read_tls();
  void flush_tls(const Tx& tx, const Instant& now);
  bool is_alert(const char* at, ssize_t size) const;

  static void on_poll(uv_poll_t* handle, int status, int events);
  static void on_resolved(uv_getaddrinfo_t* request, int status, addrinfo* result);
  static void on_poll_closed(uv_handle_t* handle);

  Driver& driver_;
  Client& client_;
  int fd_ = -1;
  uint8_t events_ = 0;  // what the poll handle watches now
  uint8_t master_;
  uint8_t tries_ = 0;            // which of a host name's addresses is next; the one that was reached stays
  State state_ = State::idle;
  bool polling_ = false;         // the poll handle is initialized and not yet closed
  bool poll_closing_ = false;
  bool lookup_pending_ = false;  // libuv owns `lookup_` until its callback
  Address address_;
  // A connection looks its name up before its socket is watched, and looks up again only when the socket's handle is
  // closed.
  union {
    uv_poll_t poll_;
    uv_getaddrinfo_t lookup_;
  };
  [[no_unique_address]] Secured secured_;
};

}  // namespace redlock
