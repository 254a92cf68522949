// SPDX-License-Identifier: MIT
//
// Connection: the way to one master on a libuv loop. It resolves names, opens and closes sockets and moves bytes; the
// driver (port/uv/driver) decides when.
//
// A name may have several addresses. They are tried as RFC 8305 says: in their order, each as soon as the one before
// has failed or was silent for a moment, and the first to be connected wins (port/uv/names has the pace). The attempts
// and the look-up are watched as one: an epoll set is the descriptor that libuv watches, until the socket that has won
// takes its place and number. Only when all addresses have failed is the master down.
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

  bool idle() const { return !polling_; }  // libuv does not have its handle
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
  bool is_at(const Address& address) const { return state_ >= State::open && same_address(address, address_); }
  void forget_names();  // at the end: a look-up may be under way although no connection is
  // ---- with TLS (port/uv/securing)
  void go_on();  // behind a turn, where Driver::go_on() was called
  Secured& secured() { return secured_; }
  bool report(TlsReport& out) const;
  void show(uv_loop_t* loop, int fd);  // makes libuv watch a descriptor for a moment; before the first connect()

 private:
  enum class State : uint8_t { idle, resolving, connecting, open, securing, secured };  // the last two: with TLS

  void judge_refusal();
  void open(const Instant& now);
  bool begin_watch(int fd);
  void finish(const Instant& now);
  void established(const Instant& now);

  // ---- of a host name: its addresses are tried until one is connected
  [[gnu::noinline]] void resolve(const Instant& now);
  [[gnu::noinline]] void on_trial(const Instant& now);
  void take_address(const Instant& now);
  int begin_trial(const Address& address);
  void end_trial(unsigned n, const Instant& now);
  void trial_failed(int reason, const Instant& now);
  void end_trials();
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
  static void on_poll_closed(uv_handle_t* handle);

  Driver& driver_;
  Client& client_;
  int fd_ = -1;         // what libuv watches: the socket; until an address of a name is connected, all `trials_`
  uint8_t events_ = 0;  // what the poll handle watches now
  uint8_t master_;
  State state_ = State::idle;
  bool polling_ = false;  // the poll handle is initialized and not yet closed
  bool poll_closing_ = false;
  uint8_t begun_ = 0;     // of `trials_`
  int16_t reason_ = 0;    // why the last address of a name failed
  Address address_ = {};  // that was reached last
  int names_ = -1;        // more addresses of the name come from there; a look-up outlives the attempt that began it
  int trials_[REDLOCK_ADDRESSES_MAX];  // a socket for each address so far; -1: it failed
  uv_poll_t poll_;
  [[no_unique_address]] Secured secured_;
};

}  // namespace redlock
