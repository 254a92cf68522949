// SPDX-License-Identifier: MIT
//
// BareDriver: the very steps of port/uv/driver.cpp with no socket, timer or clock behind them. What the system would
// answer - does the connection come about, how many bytes fit, what time is it - is asked of a Peer, so that a fuzzer's
// input can decide it. It never does more than the driver: a client that forgets to say that it wants a turn, or to
// arm its timer, stands still here as it would on a device.
//
// It stands in memory that the C API wipes without calling destructors, so it owns nothing.
#pragma once
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "client/client.hpp"

namespace redlock::test {

inline void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::abort();
}

class BareDriver {
 public:
  enum class Connect : uint8_t { later, at_once, refused };

  class Peer {
   public:
    virtual ~Peer() = default;
    virtual Instant now() = 0;
    virtual bool clock_jumped() = 0;  // since the last time it was asked
    virtual int64_t boot_ms() = 0;
    virtual Connect connect(MasterIndex m) = 0;
    virtual void connected(MasterIndex m) = 0;
    virtual size_t send(MasterIndex m, std::string_view bytes) = 0;  // takes so many from the front
    virtual void hang_up(MasterIndex m) = 0;
    virtual bool entropy(unsigned char* out, size_t size) = 0;
    virtual void event(const Client::Event& event) = 0;
  };

  BareDriver(Client& client, Peer* peer) : client_(client), peer_(peer), masters_(client.settings().masters) {}

  // ---- what the loop would tell ----------------------------------------------------------------------------------
  void prepare() {
    if (!done_ && (touched_ || client_.wants_turn())) step();
  }
  bool tick() {
    if (done_ || armed_for_ > peer_->now()) return false;
    armed_for_ = Instant::never();
    touched_ = true;
    return true;
  }
  // The loop turns until there is nothing to do at this instant.
  void settle() {
    for (unsigned i = 0; i < turns_at_once; ++i) {
      const bool due = tick();
      if (done_ || !(due || touched_ || client_.wants_turn())) return;
      prepare();
    }
    require(false, "the client comes to rest");
  }
  void established(MasterIndex m) {
    if (done_ || state_[m] != State::connecting) return;
    touched_ = true;
    open(m, read_clock());
  }
  void broke(MasterIndex m, int reason) {
    if (done_ || state_[m] == State::idle) return;
    close(m, reason, read_clock());
  }
  void writable(MasterIndex m) {
    if (done_ || !full_[m]) return;
    full_[m] = false;
    touched_ = true;
    flush(m, read_clock());
  }
  // Takes what fits, at most `most`, from the front.
  void readable(MasterIndex m, std::string& bytes, size_t most) {
    if (done_ || state_[m] != State::open || bytes.empty()) return;
    touched_ = true;
    size_t room = 0;
    char* at = client_.rx_room(m, room);
    const size_t size = std::min({room, bytes.size(), most});
    bytes.copy(at, size);
    bytes.erase(0, size);
    const Instant now = read_clock();
    if (size > 0) return client_.received(m, size, now);
    close(m, REDLOCK_E_PROTOCOL, now);
  }

  bool done() const { return done_; }
  bool stepping() const { return stepping_; }
  bool is_open(MasterIndex m) const { return state_[m] == State::open; }
  bool is_connecting(MasterIndex m) const { return state_[m] == State::connecting; }
  Instant due() const { return done_ ? Instant::never() : armed_for_; }
  Instant read_clock() {
    if (peer_->clock_jumped()) client_.clock_jumped(peer_->now());
    return peer_->now();
  }

 protected:
  void set_peer(Peer* peer) { peer_ = peer; }

 private:
  enum class State : uint8_t { idle, connecting, open };
  static constexpr unsigned turns_max = 16;  // as in port/uv/driver.cpp
  static constexpr unsigned turns_at_once = 200;

  void step() {
    if (stepping_) return;
    stepping_ = true;
    touched_ = false;
    turns();
    stepping_ = false;
    if (client_.is_closed()) {
      done_ = true;
      return;
    }
    const Instant deadline = touched_ ? Instant::from_ns(0) : client_.deadline();
    if (deadline < armed_for_) armed_for_ = deadline;
  }

  void turns() {
    for (unsigned i = 0; i < turns_max; ++i) {
      const Instant now = read_clock();
      refill();
      if (client_.wants_boot_time()) client_.boot_time(peer_->boot_ms(), now);
      client_.turn(now);
      for (MasterIndex m = 0; m < masters_; ++m) flush(m, now);
      client_.flushed(now);
      act_on_wishes(now);
      deliver();
      if (!client_.wants_turn()) return;
    }
    touched_ = true;
  }

  // Behind a turn, which takes its time.
  void deliver() {
    for (unsigned n = client_.events(); n > 0; --n) {
      const Instant now = read_clock();
      client_.on_time(now);
      Client::Event event;
      if (!client_.next_event(event, now)) return;
      peer_->event(event);
      client_.delivered(event);
    }
  }

  void refill() {
    unsigned char bytes[256];
    for (size_t wanted = client_.entropy_wanted(); wanted > 0; wanted = client_.entropy_wanted()) {
      const size_t size = wanted < sizeof bytes ? wanted : sizeof bytes;
      if (!peer_->entropy(bytes, size)) return;
      client_.add_entropy(bytes, size);
    }
  }

  void act_on_wishes(Instant now) {
    for (MasterIndex m = 0; m < masters_; ++m) {
      switch (client_.wish(m)) {
        case Session::Wish::none:
          break;
        case Session::Wish::connect:
          connect(m, now);
          break;
        case Session::Wish::close:
          close(m, 0, now);
          break;
      }
    }
  }

  void connect(MasterIndex m, Instant now) {
    client_.connecting(m, now);
    state_[m] = State::connecting;
    switch (peer_->connect(m)) {
      case Connect::later:
        break;
      case Connect::at_once:
        open(m, now);
        break;
      case Connect::refused:
        close(m, REDLOCK_E_CONNECT, now);
        break;
    }
  }

  void open(MasterIndex m, Instant now) {
    state_[m] = State::open;
    full_[m] = false;
    peer_->connected(m);
    client_.connected(m, now);
    flush(m, now);
  }

  void close(MasterIndex m, int reason, Instant now) {
    state_[m] = State::idle;
    full_[m] = false;
    touched_ = true;
    peer_->hang_up(m);
    client_.closed(m, reason, now);
  }

  void flush(MasterIndex m, Instant) {
    if (state_[m] != State::open || full_[m]) return;
    const Tx& tx = client_.output(m);
    while (!tx.empty()) {
      Bytes chunks[Tx::chunks_max];
      const unsigned n = tx.gather(chunks, Tx::chunks_max);
      std::string bytes;
      for (unsigned i = 0; i < n; ++i) bytes.append(chunks[i].data, chunks[i].size);
      require(!bytes.empty(), "what is not empty gives bytes");
      const size_t sent = peer_->send(m, bytes);
      if (sent > 0) client_.sent(m, sent);
      if (sent < bytes.size()) {
        full_[m] = true;
        return;
      }
    }
  }

  Client& client_;
  Peer* peer_;
  unsigned masters_;
  State state_[REDLOCK_MASTERS_MAX] = {};
  bool full_[REDLOCK_MASTERS_MAX] = {};  // the socket took less than it was offered
  Instant armed_for_ = Instant::never();
  bool touched_ = true;
  bool stepping_ = false;
  bool done_ = false;
};

}  // namespace redlock::test
