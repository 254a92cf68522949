// SPDX-License-Identifier: MIT
//
// Session: the protocol state of one master.
//
//     down ──retry_at──► connecting ──► greeting ──► up ◄──► suspect
//      ▲                     │              │         │          │
//      └─────────────────────┴──── closed ──┴─────────┴──────────┘
//
// Two rules. Replies come in the order of the requests, so a FIFO of what was asked gives every reply its meaning; and
// whoever is unsure of the count - a reply nobody asked for, a reply of an impossible type, a ping whose nonce does not
// come back - closes the connection. A request whose round has been decided keeps its place in the FIFO.
//
// Greeting: HELLO 3 (with AUTH) alone, since nothing may be pipelined behind an AUTH that can fail; or, on a server
// that does not know HELLO, AUTH alone and RESP2. Then the rest in one write: tracking on RESP3, where it may be
// refused and costs no vote; the role where HELLO did not tell it; the scripts; what the guard wants to know; a ping.
// The master is up when all that is answered, and votes when the guard admits it (master/guard, and session_guard.cpp
// for its words).
//
// Suspect: a master whose oldest request is older than node_timeout gets no new acquire or extend until it has answered
// everything; deletes still go to it, in order. After suspect_close it is disconnected.
//
// The session knows no socket. Its driver asks for its wish, tells it what happened to the connection, moves its bytes,
// and calls on_time() when deadline() has come.
#pragma once
#include "master/clock_watch.hpp"
#include "master/command.hpp"
#include "master/guard.hpp"
#include "master/info.hpp"
#include "master/tracking.hpp"
#include "master/tx.hpp"
#include "random.hpp"
#include "resp/reader.hpp"
#include "settings.hpp"
#include "time.hpp"
#include "types.hpp"

namespace redlock {

// What a master has said, for the client to route.
struct Reply {
  enum class Kind : uint8_t {
    answer,       // about a claim
    looked,       // how long the keys will live, as PTTL tells it; -3: an error, or nothing will be told
    key_changed,  // unasked: this key is worth another look, and no longer tracked
    all_changed,  // unasked: every key is, and none is tracked any more
    identified,     // its run id was told: is it another master's, too?
    withdrawn,      // it may have forgotten keys, or surely has: its votes of open rounds do not count any more
    clock_stepped,  // its wall clock was, or runs off rate
  };
  Kind kind = Kind::answer;
  Op op = Op::acquire;
  uint16_t claim = 0;
  uint32_t round = 0;
  Meaning meaning;
  int64_t ttl = 0;  // looked
  Bytes key;    // with its prefix; good until the next call of the session
  Duration by;  // clock_stepped: how far; negative: back
};

class Session {
 public:
  enum class State : uint8_t { down, connecting, greeting, up, suspect };
  enum class Wish : uint8_t { none, connect, close };
  struct Request {
    Instant sent;
    uint32_t round;
    uint16_t claim;
    uint16_t kind;  // enum Kind; as wide as what is left of 16 bytes, so that it is written without a gap
  };
  static constexpr unsigned own_requests = 12;  // of its own in flight, at most: the greeting's
  struct Memory {
    char* tx;
    size_t tx_size;
    char* rx;
    size_t rx_size;
    Request* requests;
    unsigned requests_size;  // settings.in_flight and own_requests
    bool* calls;             // set when a wish or a change is there to be seen
  };

  Session(const Settings& settings, const MasterSettings& master, Bytes client_name, const Memory& memory);

  // ---- for the driver -----------------------------------------------------------------------------------------
  Wish wish() const { return wish_; }
  void connecting(Instant now);  // the wish to connect is being fulfilled
  void connected(Instant now, uint32_t nonce);
  // The connection, or the attempt, is over; everything in flight is forgotten. `reason` is kept unless the session
  // itself wished to close and knows better.
  void closed(Instant now, int reason, uint32_t random);
  char* rx_room(size_t& size) {
    if (rx_head_ != 0) compact();
    size = rx_capacity_ - rx_size_;
    return rx_ + rx_size_;
  }
  Tx& tx() { return tx_; }

  // ---- for the client -----------------------------------------------------------------------------------------
  // `size` bytes were put into rx_room(); next() then tells what they say, one thing at a time, until false.
  void received(size_t size) { rx_size_ += size; }
  bool next(Instant now, Reply& out) {
    return (plain() && plain_yes(now, out)) || (unread() && next_item(now, out));
  }
  // The same in parts. plain_yes() may be called while plain() is true; it leaves that as it is, and changes nothing
  // but the FIFO's length.
  bool plain() const { return votes() && reader_.at_boundary(); }
  inline bool plain_yes(Instant now, Reply& out);
  bool unread() const { return rx_head_ != rx_size_ || news_; }
  [[gnu::noinline]] bool next_item(Instant now, Reply& out);  // what it needs must not lie below what follows

  // Takes acquires and extends now?
  bool votes() const { return state_ == State::up && wish_ == Wish::none && guard_.admitted(); }
  // Deletes can be given to it.
  bool connected() const { return (state_ == State::up || state_ == State::suspect) && wish_ == Wish::none; }
  // Is there room for a command of so many copied bytes, and for so many requests?
  bool room(size_t bytes, unsigned requests) const {
    return fifo_size_ - own_in_flight_ + requests + own_requests <= fifo_capacity_ &&
           tx_.fits(bytes + in_band_size(), 1);
  }
  bool room(const Command& command, unsigned requests) const {
    return command.fits() && room(command.text_size(), requests);
  }
  // The same for a request whose place in the FIFO is kept.
  bool room_for_kept(size_t bytes) const { return tx_.fits(bytes, 1); }
  // Nothing to send, to wish or to tell.
  bool idle() const { return tx_.empty() && wish_ == Wish::none && !changed_; }
  // Where a command is encoded that this master is asked next, or another.
  Space space() { return tx_.space(); }
  void ask(Op op, uint16_t claim, uint32_t round, const Command& command, Instant now) {
    ask({now, round, claim, static_cast<uint16_t>(op)}, command);
  }
  void ask(const Request& request, const Command& command) {  // its kind is an Op
    REDLOCK_ASSERT(connected() && (room(command, 1) || request.kind == kind_release));
    REDLOCK_ASSERT(room_for_kept(command.text_size()));
    tx_.take(command.head());
    if (command.splice().size != 0) weave(command);
    push_request(request);
    if (request.kind != kind_release && in_band_size() != 0) follow_by_seal();
  }
  // Behind the extend that is asked next the key is tracked, where the server does that; both are so many requests.
  void track_next(Instant now);
  unsigned extend_requests() const { return tracked_ ? 2 : 1; }
  // Ask for how long keys will live, and to be told when one changes; `who` and `number` come back with the answer.
  void look(uint16_t who, uint32_t number, const Command& command, Instant now);
  // What the guard admitted this master under, and where that stands; empty: there is no guard.
  Bytes seal() const { return guard_.on() ? guard_.seal() : Bytes(); }
  Bytes meta_key() const { return settings_.meta_key; }
  // The master has lost its scripts: send their text until it shows that it knows them again.
  bool spell_out() const { return spell_out_; }

  Instant on_time(Instant now);  // what is due; returns deadline()
  Instant deadline() const;
  Instant ping_at() const { return ping_at_; }  // with nothing in flight
  void disconnect(int reason);  // wish to close, for a reason that only the client or driver can see
  void close_quietly();         // no more connections: the client is closing

  // ---- the guard, for the client ----------------------------------------------------------------------------------
  const Guard& guard() const { return guard_; }
  // Random bytes for quarantine ids, once; before that none is made, however long the connection may last.
  bool wants_seed() const { return guard_.on() && !seeded_; }
  void seed(uint64_t seed) {
    quarantines_.seed(seed);
    seeded_ = true;
  }
  void set_duplicate(bool duplicate, Instant now);
  void distrust(Instant until);
  void quarantine(Instant now);  // write that nobody may trust it, for all clients to see
  void commission(Instant until, Instant now);
  void clock_jumped(Instant now);
  void read_now(Instant now) { guard_.postpone_reading(now); }
  // Write the record for another configuration (src/reconfigure.hpp); `step` is a word of scripts/move.lua,
  // `quarantine` an id that was never used, and behind it guard().quarantine(). False: not now, or the last one is not
  // answered. What came of it is moved(): `asked` until that is known, `no` when the connection broke before, or when
  // another id stood there, which is guard().quarantine() from then on.
  enum class Moved : uint8_t { no, asked, yes, foreign, failed };
  bool move(Bytes from, Bytes to, Bytes quarantine, Bytes step, Instant now);
  Moved moved() const { return moved_; }
  int move_error() const { return move_error_; }  // failed: what it answered
  // A sample that was asked for since then has come, and it was steady or the first.
  bool samples_clock(Instant since) const { return watch_.known() && watch_.asked() >= since; }

  // ---- for the status -----------------------------------------------------------------------------------------
  State state() const { return state_; }
  int reason() const { return guarded() ? guard_.reason() : int{reason_}; }
  bool guarded() const { return state_ == State::up && wish_ == Wish::none && !guard_.admitted(); }
  bool changed() const { return changed_; }  // since the last take_changed()
  bool take_changed();
  bool tried() const { return tried_; }
  bool resp3() const { return resp3_; }
  bool tracked() const { return tracked_; }  // the server has confirmed it for the present connection
  unsigned in_flight() const { return fifo_size_; }
  uint32_t connects() const { return connects_; }
  uint64_t replies() const { return replies_; }
  uint64_t errors() const { return errors_; }

 private:
  // The first five are Op.
  enum Kind : uint8_t {
    kind_acquire,
    kind_extend,
    kind_release,
    kind_acquire_fenced,
    kind_token,
    kind_look_caching,
    kind_look,
    kind_hello,
    kind_auth,
    kind_tracking,
    kind_role,
    kind_load,
    kind_info,
    kind_caching,
    kind_record,
    kind_time,
    kind_write,
    kind_move,
    kind_ping,
  };
  static constexpr uint8_t in_band = 0x80;  // beside a kind: a reading of the seal follows in the same write

  void set_state(State state);
  void wish(Wish wish) {
    wish_ = wish;
    *calls_ = true;
  }
  void note_change() { changed_ = *calls_ = true; }
  void fail(int reason);
  void push_request(const Request& request) {
    REDLOCK_ASSERT(fifo_size_ < fifo_capacity_);
    fifo_[fifo_tail_] = request;
    if (++fifo_tail_ == fifo_capacity_) fifo_tail_ = 0;
    ++fifo_size_;
  }
  void push_own(Kind kind, Instant now) {
    push_request({now, 0, 0, kind});
    ++own_in_flight_;
  }
  inline void pop_request(Instant now);
  void put(Bytes word);
  void refer(Bytes word);
  void say_hello(Instant now);
  void say_auth(Instant now);
  void say_rest(Instant now);
  void say_ping(Instant now);
  bool handle_push(const resp::Item& item, Instant now, Reply& out);
  bool handle(const resp::Item& item, Instant now, Reply& out);
  void handle_hello(const resp::Item& item, Instant now);
  void hello_failed(int error, Instant now);
  void handle_tracking(const resp::Item& item);
  void handle_caching(const resp::Item& item);
  bool handle_look(const Request& request, const resp::Item& item, Reply& out);
  void handle_load(const resp::Item& item);
  void handle_role(const resp::Item& item);
  void handle_ping(const resp::Item& item);
  bool handle_claim(Kind kind, const Request& request, const resp::Item& item, Instant now, Reply& out);
  void answered(Instant now);
  void compact();

  // The guard's words: session_guard.cpp.
  size_t in_band_size() const { return !tracked_ && guard_.on() ? 64 + settings_.meta_key.size : 0; }
  void say_info(Instant now);
  void say_reading(Instant now, bool track);
  void say_script(const Script& script, Bytes first, Bytes second, Bytes third, Bytes fourth);
  void say_write(const Script& script, Bytes first, Bytes second, Bytes third, Bytes fourth, Instant now);
  void follow_by_seal();
  void weave(const Command& command);
  void say_seal_read();
  void begin_state(Bytes desc, Bytes q, Instant now);
  bool own_room() const;
  void read_when_due(Instant now);
  void handle_info(const resp::Item& item, Instant now);
  void handle_record(const resp::Item& item, Instant now);
  void handle_time(const resp::Item& item, Instant sent, Instant now);
  void handle_write(const resp::Item& item);
  void handle_move(const resp::Item& item);
  bool handle_seal(const resp::Item& item, Instant now, Reply& out);
  bool guard_says(Reply& out);
  void guard_changed();

  const Settings& settings_;
  const MasterSettings& master_;
  const Bytes client_name_;
  Tx tx_;
  resp::Reader reader_;
  Tracking tracking_;
  char* rx_;
  size_t rx_capacity_;
  size_t rx_head_ = 0;
  size_t rx_size_ = 0;
  Request* fifo_;
  uint16_t fifo_capacity_;
  uint16_t fifo_head_ = 0;
  uint16_t fifo_tail_ = 0;  // where the next request goes
  uint16_t fifo_size_ = 0;
  uint16_t own_in_flight_ = 0;
  bool* const calls_;

  Guard guard_;
  ClockWatch watch_;
  InfoReader info_;
  Random quarantines_;
  Reply held_;                // its vote counts when the seal behind it fits
  Duration clock_by_;         // the step that is to be told
  int64_t server_us_ = 0;     // while TIME's reply is read
  int16_t guard_told_ = 0;    // the guard's reason when the client was last told
  bool holding_ = false;      // held_ waits for the seal
  bool news_ = false;         // one of the following is to be told, also when no byte is left to read
  bool identified_ = false;   // to be told
  bool stepped_ = false;      // to be told
  bool seeded_ = false;
  bool greeted_ = false;      // the greeting's ping is answered
  uint8_t readings_ = 0;      // since the last INFO
  Moved moved_ = Moved::no;
  int16_t move_error_ = 0;

  State state_ = State::down;
  Wish wish_ = Wish::connect;
  int16_t reason_ = 0;
  bool changed_ = true;
  bool tried_ = false;      // a first attempt has come to an end
  bool resp3_ = false;
  bool tracked_ = false;
  bool spell_out_ = false;
  bool quiet_ = false;
  bool role_known_ = false; // HELLO's reply has told it
  uint8_t failures_ = 0;    // attempts since it was last up
  uint8_t field_ = 0;       // while HELLO's reply is read: which field's value comes next
  Instant retry_at_;        // down: when to try again
  Instant give_up_at_;      // connecting, greeting, suspect
  Instant ping_at_ = Instant::never();
  char nonce_[8] = {};
  uint32_t nonce_state_ = 0;
  uint32_t connects_ = 0;
  uint64_t replies_ = 0;
  uint64_t errors_ = 0;
};

inline void Session::pop_request(Instant now) {
  ++replies_;
  if (++fifo_head_ == fifo_capacity_) fifo_head_ = 0;
  if (--fifo_size_ == 0) ping_at_ = now + settings_.ping_interval;
}

// What a master that is well answers to nearly every request, seen whole: +OK or :1. To say the same with the reader
// and handle() takes six times as long.
inline bool Session::plain_yes(Instant now, Reply& out) {
  if (fifo_size_ == 0) return false;
  const Request& request = fifo_[fifo_head_];
  if (request.kind > kind_release) return false;
  const char* const at = rx_ + rx_head_;
  const size_t size = rx_size_ - rx_head_;
  if (request.kind == kind_acquire) {
    if (size < 5 || memcmp(at, "+OK\r", 4) != 0 || at[4] != '\n') return false;
    rx_head_ += 5;
  } else {
    if (size < 4 || memcmp(at, ":1\r\n", 4) != 0) return false;
    rx_head_ += 4;
    spell_out_ = false;
  }
  out.kind = Reply::Kind::answer;
  out.op = static_cast<Op>(request.kind);
  out.claim = request.claim;
  out.round = request.round;
  out.meaning.answer = Answer::yes;
  out.meaning.error = 0;
  pop_request(now);
  return true;
}

}  // namespace redlock
