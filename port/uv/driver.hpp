// SPDX-License-Identifier: MIT
//
// Driver: a client on a libuv loop, the port that ships (client/turns says what a port supplies). It reads the clock,
// draws entropy, arms one timer and keeps a connection per master; it decides nothing.
//
// A uv_prepare_t runs the turns right before the loop blocks, so everything that one round of the loop asked for leaves
// in one write per master. The one timer is a timerfd on CLOCK_BOOTTIME: this clock counts while the machine is
// suspended, and the timer fires at once on resume.
//
// Nothing is allocated after open(), except by name look-ups: the handles stand in the client's memory, and the loop's
// table of descriptors is grown ahead.
#pragma once
#include <uv.h>

#include "base/tls_faults.hpp"
#include "client/turns.hpp"
#include "port/posix/clock.hpp"
#include "port/posix/entropy.hpp"
#include "port/uv/connection.hpp"

namespace redlock {

template <class Handle>
uv_handle_t* as_handle(Handle* handle) {
  return reinterpret_cast<uv_handle_t*>(handle);
}

class Driver : public Turns<Driver> {
 public:
  // What the driver tells its owner, on the loop's thread.
  struct Owner {
    void* self;
    void (*event)(void* self, Client::Event& event);
    void (*closed)(void* self);  // every handle is closed; the driver may be gone when this returns
    bool (*forked)(void* self);  // a forked child must not touch the parent's connections
    // Called around everything that touches the client, where other threads call the API too; otherwise both are null.
    // The owner may let other threads in during `event`.
    void (*enter)(void* self);
    void (*leave)(void* self);
  };

  static size_t memory_size(unsigned masters) { return masters * sizeof(Connection); }
  Driver(Client& client, const Owner& owner, void* memory);

  int open(uv_loop_t* loop);  // 0 or enum redlock_err, and then nothing is left on the loop
  // After a call of the API on the loop's thread. The prepare callback of this round of the loop may have run
  // already, so the loop must not wait before the next one.
  void wake() {
    if (!stepping()) uv_idle_start(&idle_, [](uv_idle_t*) {});
  }
  // Call this when the loop will not be run for a while. The last bytes read may have brought the deadline nearer.
  void rest() {
    if (!closing_) Turns::arm();
  }
  // A driver that closes handles takes no more turns, though an input may have asked for one.
  bool pending() const { return !closing_ && Turns::pending(); }
  const SystemClock& clock() const { return clock_; }

  // ---- with TLS (port/uv/securing)
  // Reaches a master by TLS, before open(). 0; NOMEM; or TLS_FILE, and file_error() says which file.
  int secure(MasterIndex m, const TlsSettings& settings);
  const TlsFile& file_error(MasterIndex m) const;  // as Tls::file_error()
  bool file_error_changed(MasterIndex m);       // since the last call
  const TlsDate& wrong_date(MasterIndex m) const;  // as Tls::wrong_date()
  bool tls_report(MasterIndex m, TlsReport& out) const;  // false: not connected
  void free_tls();                              // at the end, before the memory is wiped

 private:
  friend class Turns<Driver>;
  friend class Connection;

  // While a Inside lives, no other thread uses the client.
  class Inside {
   public:
    explicit Inside(const Driver& driver) : owner_(driver.owner_) {
      if (owner_.enter != nullptr) owner_.enter(owner_.self);
    }
    ~Inside() {
      if (owner_.leave != nullptr) owner_.leave(owner_.self);
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    const Owner& owner_;
  };

  // ---- the port's functions, for Turns
  Client& client() { return client_; }
  Reading clock_reading() { return clock_.read(); }
  int64_t boot_ms() const { return clock_.boot_ms(); }
  static size_t fill_random(unsigned char* out, size_t size) { return redlock::fill_random(out, size); }
  REDLOCK_IN_LINE_FOR_SPEED void flush(MasterIndex m, const Instant& now) {
    const Tx& tx = client_.output(m);
    if (!tx.empty()) connections_[m].flush(tx, now);
  }
  bool can_connect(MasterIndex m) const { return connections_[m].idle(); }
  void connect(MasterIndex m, const Instant& now) { connections_[m].connect(now); }
  void close(MasterIndex m, int reason, bool polite, const Instant& now) { connections_[m].close(reason, polite, now); }
  void event(Client::Event& event) { owner_.event(owner_.self, event); }
  // Where another thread waits for RELEASED the deletes are with the kernel first: the process may end then.
  bool joins() const { return owner_.enter == nullptr; }
  bool arm(Instant deadline);
  void ended();

  bool forked() const { return owner_.forked(owner_.self); }
  bool is_duplicate(const Address& address, const Connection& of) const;
  void grow_watchers();
  // This connection goes on behind the next turn that has no other to go on with.
  void go_on(MasterIndex m);
  void go_on_one();
  void enter() {
    if (owner_.enter != nullptr) owner_.enter(owner_.self);
  }
  void leave() {
    if (owner_.leave != nullptr) owner_.leave(owner_.self);
  }
  [[gnu::noinline]] void handle_closed();

  static void on_prepare(uv_prepare_t* handle);
  static void on_timer(uv_poll_t* handle, int status, int events);
  static void on_own_closed(uv_handle_t* handle);

  // Small members come first: on ARM their instructions are short where they lie near the beginning.
  Client& client_;
  Owner owner_;
  uv_loop_t* loop_ = nullptr;
  Connection* connections_;
  unsigned masters_;
  int timer_fd_ = -1;
  uint32_t fork_generation_ = 0;  // each readable descriptor compares it; forked() would be a call
  unsigned own_open_ = 3;  // how many of prepare_, timer_ and idle_ are not closed yet
  bool closing_ = false;
  SystemClock clock_;
  uv_prepare_t prepare_;
  uv_poll_t timer_;
  uv_idle_t idle_;  // while it is active, the loop does not wait
  [[no_unique_address]] Steps steps_;
};

// In driver.cpp, once for connection.cpp too.
extern template Instant Turns<Driver>::now();
extern template void Turns<Driver>::flush_apart(MasterIndex m, const Instant& now);

}  // namespace redlock
