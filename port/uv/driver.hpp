// SPDX-License-Identifier: MIT
//
// Driver: a client on a libuv loop. It moves bytes, reads the clock, draws entropy and arms one timer; it decides
// nothing.
//
// Sockets are our own and are only watched by libuv (uv_poll_t): so a send can carry MSG_NOSIGNAL (uv_write and
// uv_try_write raise SIGPIPE on a closed peer), a script body can leave in the same gather write as the bytes around
// it, and a broken connection can be reset. A uv_prepare_t runs the client's turn right before the loop blocks:
// whatever a loop turn has asked for leaves in one write per master. The one deadline is a timerfd on CLOCK_BOOTTIME,
// which also counts while the machine is suspended and fires at once on resume; it is armed only when the deadline
// moves nearer.
//
// Nothing is allocated here after open(): the handles stand in the client's memory, and the loop's table of
// descriptors is grown ahead.
#pragma once
#include <netinet/in.h>
#include <sys/socket.h>
#include <uv.h>

#include "client/client.hpp"
#include "port/clock.hpp"
#include "port/posix/clock.hpp"

namespace redlock {

using SystemClock = Clock<PosixClockSource>;

class Driver {
 public:
  // What the driver tells its owner, from the loop.
  struct Owner {
    void* self;
    void (*event)(void* self, const Client::Event& event);
    void (*closed)(void* self);  // every handle is closed; the driver may be gone when this returns
    bool (*foreign)(void* self);  // a forked child must not touch the parent's connections
    // Around all that touches the client, where other threads call it too; both are null where none does. The owner
    // may let others in during `event`.
    void (*enter)(void* self);
    void (*leave)(void* self);
  };

  struct Connection {
    enum class State : uint8_t { idle, resolving, connecting, open };
    Driver* driver;
    uv_poll_t poll;
    uv_getaddrinfo_t lookup;
    sockaddr_storage address;
    socklen_t address_size;
    int fd;
    int events;  // what the poll handle watches now
    MasterIndex master;
    uint8_t tries;        // of a host name's addresses, by turns; the one that was reached is kept
    State state;
    bool polling;         // the poll handle is initialized and not yet closed
    bool poll_closing;
    bool lookup_pending;  // libuv owns `lookup` until its callback
  };

  static size_t memory_size(unsigned masters) { return masters * sizeof(Connection); }
  Driver(Client& client, const Owner& owner, void* memory);

  int open(uv_loop_t* loop);  // 0 or enum redlock_err, and then nothing is left on the loop
  // Is something to be done before the loop may wait? On the loop's thread, between its runs.
  bool pending() const { return touched_ || client_.wants_turn() || client_.has_lock_events(); }
  // A call of the API, on the loop's thread and perhaps after this round's prepare: the loop must not wait before the
  // next.
  void wake() {
    if (!stepping_) uv_idle_start(&idle_, [](uv_idle_t*) {});
  }
  // Who runs the loop stops running it: what was read last may have brought the deadline nearer.
  void rest() {
    if (!closing_) arm();
  }
  Instant now() { return read_clock(); }
  const SystemClock& clock() const { return clock_; }

 private:
  class Visit;

  Instant read_clock();
  [[gnu::always_inline]] inline Instant read_clock_in_line();  // for what is read again and again
  Instant handle_time();  // reads the clock, and lets the client handle what is due
  void step();
  void turns();
  void turn(Instant now);
  void deliver(Instant now, bool late);
  void refill();
  void arm();

  void act_on_wishes(Instant now);
  [[gnu::noinline]] void connect(Connection& c, Instant now);
  bool has_address(Connection& c);
  [[gnu::noinline]] void resolve(Connection& c, Instant now);
  void open_socket(Connection& c, Instant now);
  bool is_duplicate(const Connection& c) const;
  void established(Connection& c, Instant now);
  [[gnu::noinline]] void close(Connection& c, int reason, bool polite, Instant now);
  inline void read(Connection& c);
  [[gnu::noinline]] void broken(Connection& c);
  // In line in turn(), which does it for every master each time.
  [[gnu::always_inline]] inline void flush(Connection& c, const Tx& tx, Instant now);
  void flush_apart(Connection& c, Instant now);
  [[gnu::noinline]] void flush_woven(Connection& c, const Tx& tx, Instant now);
  [[gnu::noinline]] void sent_part(Connection& c, ssize_t sent, Instant now);
  bool watch(Connection& c, int events);
  void grow_watchers();
  void close_handles();
  void handle_closed();

  static void on_prepare(uv_prepare_t* handle);
  static void on_timer(uv_poll_t* handle, int status, int events);
  static void on_poll(uv_poll_t* handle, int status, int events);
  static void on_resolved(uv_getaddrinfo_t* request, int status, addrinfo* result);
  static void on_poll_closed(uv_handle_t* handle);
  static void on_own_closed(uv_handle_t* handle);

  Client& client_;
  Owner owner_;
  SystemClock clock_;
  uv_loop_t* loop_ = nullptr;
  Connection* connections_;
  unsigned masters_;
  uv_prepare_t prepare_;
  uv_poll_t timer_;
  uv_idle_t idle_;  // active: the loop does not wait
  int timer_fd_ = -1;
  uint32_t fork_generation_ = 0;  // what foreign() asks too, once more for each descriptor, without a call
  Instant armed_for_ = Instant::never();
  unsigned own_open_ = 3;  // prepare_, timer_, idle_: not yet closed
  bool touched_ = true;    // an input came since the last turn; of those that were read the client itself says
  bool stepping_ = false;  // for good when the last step is done
  bool closing_ = false;
};

}  // namespace redlock
