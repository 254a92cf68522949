// SPDX-License-Identifier: MIT
//
// BareDriver: a port of the library's loop (client/turns) with no socket, timer or clock behind it. What the system
// would answer (does the connection come about, how many bytes fit, what time is it) is asked of a Peer, so that a
// fuzzer's input can decide it. A client that forgets to say that it wants a turn, or to arm its timer, stands still
// here as it would on a device.
//
// With an engine of TLS it moves bytes as port/uv/securing does.
//
// It stands in memory that the C API wipes without calling destructors, so it owns nothing.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "client/turns.hpp"
#include "port/tls/engine.hpp"

namespace redlock::test {

inline void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::abort();
}

// StandInEngine: a connection as port/tls/engine.hpp promises it, without cryptography. Text comes and is taken in
// pieces of any length from one byte to the largest record. Each call may first want input or output, whatever was
// called. What is taken counts as sent, and lies here until flush() is done. Noise chooses, so that an input of a
// fuzzer says the same with an engine and without.
class StandInEngine {
 public:
  using Progress = tls::Progress;
  explicit StandInEngine(uint64_t seed) : noise_(seed) {}

  void begin() {
    in_.clear();
    out_.clear();
  }
  void arrive(const std::string& bytes) { in_ += bytes; }
  bool has_input() const { return !in_.empty(); }
  const std::string& unsent() const { return out_; }
  size_t piece() {
    static constexpr unsigned kinds[] = {1, 4, 64, 1'024, record_max};
    return 1 + below(kinds[below(5)]);
  }

  Progress read(char* at, size_t room, size_t& got) {
    if (in_.empty()) return Progress::wants_input;
    if (below(4) == 0) return below(2) == 0 ? Progress::wants_input : Progress::wants_output;
    got = std::min({room, in_.size(), piece()});
    in_.copy(at, got);
    in_.erase(0, got);
    return Progress::done;
  }
  // send: the wire. It takes bytes from the front, and says how many.
  template <class Send>
  Progress write(Bytes text, size_t& taken, Send send) {
    if (below(8) == 0) return below(2) == 0 ? Progress::wants_input : Progress::wants_output;
    taken = std::min(text.size, piece());
    out_.append(text.data, taken);
    return flush(send);
  }
  template <class Send>
  Progress flush(Send send) {
    if (!out_.empty()) out_.erase(0, send(out_));
    return out_.empty() ? Progress::done : Progress::wants_output;
  }

 private:
  static constexpr size_t record_max = 16'384;

  unsigned below(unsigned n) {
    noise_ = noise_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<unsigned>(noise_ >> 33) % n;
  }

  uint64_t noise_;
  std::string in_;   // has arrived, and was not read
  std::string out_;  // was taken, and has not left
};

class BareDriver : public Turns<BareDriver> {
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
    virtual void refused(MasterIndex, std::string_view) {}           // what the socket has no room for
    virtual void hang_up(MasterIndex m) = 0;
    virtual bool entropy(unsigned char* out, size_t size) = 0;
    virtual void event(Client::Event& event) = 0;
    virtual StandInEngine* engine(MasterIndex) { return nullptr; }  // null: in the clear
  };

  BareDriver(Client& client, Peer* peer) : client_(client), peer_(peer) {}

  // ---- what the loop would tell ----------------------------------------------------------------------------------
  void prepare() {
    if (done_ || stepping()) return;
    before_wait();
    for (MasterIndex m : std::exchange(ready_, Masters())) go_on(m);
  }
  bool tick() {
    if (done_ || armed_for() > peer_->now()) return false;
    timer_fired();
    return true;
  }
  // The loop turns until there is nothing to do at this instant.
  void settle() {
    for (unsigned i = 0; i < turns_at_once; ++i) {
      tick();
      if (done_ || (!pending() && ready_.empty())) return;
      prepare();
    }
    require(false, "the client comes to rest");
  }
  void established(MasterIndex m) {
    if (done_ || state_[m] != State::connecting) return;
    open(m, now());
  }
  void broke(MasterIndex m, int reason) {
    if (done_ || state_[m] == State::idle) return;
    close(m, reason, true, now());
  }
  void writable(MasterIndex m) {
    if (done_ || !full_[m]) return;
    StandInEngine* const engine = peer_->engine(m);
    if (engine != nullptr) {
      const auto progress = engine->flush([&](std::string_view bytes) { return peer_->send(m, bytes); });
      if (progress != tls::Progress::done) return wait_for(m, progress);
    }
    full_[m] = false;
    Turns::writable(m);
  }
  // Takes what fits, at most `most`, from the front.
  void readable(MasterIndex m, std::string& bytes, size_t most) {
    if (done_ || state_[m] != State::open || bytes.empty()) return;
    if (StandInEngine* const engine = peer_->engine(m); engine != nullptr) {
      const size_t size = std::min(bytes.size(), most);
      engine->arrive(bytes.substr(0, size));
      bytes.erase(0, size);
      return read_secured(m, *engine);
    }
    size_t room = 0;
    char* at = client_.rx_room(m, room);
    const size_t size = std::min({room, bytes.size(), most});
    bytes.copy(at, size);
    bytes.erase(0, size);
    const Instant now = this->now();
    if (size > 0) return client_.received(m, size, now);
    close(m, REDLOCK_E_PROTOCOL, false, now);
  }

  bool done() const { return done_; }
  bool has_sent_all(MasterIndex m) { return peer_->engine(m) == nullptr || peer_->engine(m)->unsent().empty(); }
  bool is_open(MasterIndex m) const { return state_[m] == State::open; }
  Instant due() const { return done_ ? Instant::never() : armed_for(); }

 protected:
  void set_peer(Peer* peer) { peer_ = peer; }

 private:
  enum class State : uint8_t { idle, connecting, open };
  static constexpr unsigned turns_at_once = 200;

  // ---- the port's functions, for Turns
  friend class Turns<BareDriver>;
  Client& client() { return client_; }
  Reading clock_reading() {
    const bool jumped = peer_->clock_jumped();
    return {peer_->now(), jumped};
  }
  int64_t boot_ms() { return peer_->boot_ms(); }
  size_t fill_random(unsigned char* out, size_t size) { return peer_->entropy(out, size) ? size : 0; }
  void event(Client::Event& event) { peer_->event(event); }
  static bool arm(Instant) { return true; }
  void ended() { done_ = true; }
  static bool can_connect(MasterIndex) { return true; }
  void connect(MasterIndex m, Instant now) {
    state_[m] = State::connecting;
    switch (peer_->connect(m)) {
      case Connect::later:
        break;
      case Connect::at_once:
        open(m, now);
        break;
      case Connect::refused:
        close(m, REDLOCK_E_CONNECT, true, now);
        break;
    }
  }

  void open(MasterIndex m, Instant now) {
    state_[m] = State::open;
    full_[m] = false;
    if (StandInEngine* const engine = peer_->engine(m); engine != nullptr) engine->begin();
    peer_->connected(m);
    connected(m, now);
  }

  void close(MasterIndex m, int reason, bool, Instant now) {
    state_[m] = State::idle;
    full_[m] = false;
    ready_.remove(m);
    peer_->hang_up(m);
    closed(m, reason, now);
  }

  void flush(MasterIndex m, Instant) {
    if (state_[m] != State::open) return;
    const Tx& tx = client_.output(m);
    if (StandInEngine* const engine = peer_->engine(m); engine != nullptr) return flush_secured(m, *engine, tx);
    while (!tx.empty()) {
      Bytes chunks[Tx::chunks_max];
      const unsigned n = tx.gather(chunks, Tx::chunks_max);
      std::string bytes;
      for (unsigned i = 0; i < n; ++i) bytes.append(chunks[i].data, chunks[i].size);
      require(!bytes.empty(), "what is not empty gives bytes");
      const size_t sent = full_[m] ? 0 : peer_->send(m, bytes);
      if (sent > 0) client_.sent(m, sent);
      if (sent < bytes.size()) {
        full_[m] = true;
        return peer_->refused(m, std::string_view(bytes).substr(sent));
      }
    }
  }

  // ---- with an engine
  void go_on(MasterIndex m) {
    StandInEngine& engine = *peer_->engine(m);
    if (engine.unsent().empty()) writable(m);
    if (!done_ && state_[m] == State::open) read_secured(m, engine);
  }

  // What wants input while there is some, or output while the socket takes it, goes on behind the next turn.
  void wait_for(MasterIndex m, tls::Progress progress) {
    if (progress == tls::Progress::wants_output) full_[m] = true;
    if (peer_->engine(m)->has_input() || peer_->engine(m)->unsent().empty()) ready_.add(m);
  }

  void read_secured(MasterIndex m, StandInEngine& engine) {
    constexpr unsigned reads_max = 8;
    for (unsigned n = 0; n < reads_max && engine.has_input(); ++n) {
      size_t room = 0, got = 0;
      char* const at = client_.rx_room(m, room);
      if (room == 0) return close(m, REDLOCK_E_PROTOCOL, false, now());
      const tls::Progress progress = engine.read(at, room, got);
      if (progress != tls::Progress::done) return wait_for(m, progress);
      client_.received(m, got, now());
    }
    if (engine.has_input()) ready_.add(m);
  }

  void flush_secured(MasterIndex m, StandInEngine& engine, const Tx& tx) {
    while (!tx.empty() && !full_[m]) {
      Bytes chunks[Tx::chunks_max];
      tx.gather(chunks, Tx::chunks_max);
      size_t taken = 0;
      const tls::Progress progress =
          engine.write(chunks[0], taken, [&](std::string_view bytes) { return peer_->send(m, bytes); });
      if (taken > 0) client_.sent(m, taken);
      if (progress != tls::Progress::done) wait_for(m, progress);
      if (progress == tls::Progress::wants_input) break;
    }
    std::string rest = engine.unsent();
    Bytes chunks[Tx::chunks_max];
    for (unsigned i = 0, n = tx.gather(chunks, Tx::chunks_max); i < n; ++i) rest.append(chunks[i].data, chunks[i].size);
    if (!rest.empty()) peer_->refused(m, rest);
  }

  Client& client_;
  Peer* peer_;
  Masters ready_;  // connections that go on behind the next turn
  State state_[REDLOCK_MASTERS_MAX] = {};
  bool full_[REDLOCK_MASTERS_MAX] = {};  // the socket took less than it was offered
  bool done_ = false;
};

// Claims that check themselves, and the places that sessions keep for their deletes.
inline void check_claims(const Client& client) {
  const Claims& claims = client.claims();
  const CommonSettings& settings = client.settings();
  claims.check();
  for (MasterIndex m = 0; m < settings.masters; ++m) {
    const Session& session = client.session(m);
    const unsigned places = settings.in_flight + Session::own_requests;
    require(session.in_flight() + (session.connected() ? claims.reserved(m) : 0) <= places,
            "there is a place for each delete");
  }
}

// A lock that can end by time alone has a deadline.
inline void check_deadline(const Client& client, uint32_t held, bool closing) {
  if (held != 0 || closing) require(client.deadline() != Instant::never(), "a held lock has a deadline");
}

}  // namespace redlock::test
