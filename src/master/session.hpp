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
// refused and costs no vote; the role and the connection's id where HELLO did not tell them; the scripts; what the guard
// wants to know; a ping. The master is up when all that is answered, and votes when the guard admits it (master/guard,
// and session_guard.cpp for its words).
//
// Strays. A connection that broke may have left commands in the server's socket that the server executes at any later
// time: when it thaws, say. So the next greeting ends the old connection on the server: CLIENT KILL ID, once INFO has
// shown that it is the same process, whose ids are still the same. Behind that answer nothing of the old connection can
// be executed any more. No command about a claim leaves before it, so the id of one old connection is enough. Where the
// server refuses, or an id is not known, the client is told that strays may still come (Strays::at_large).
//
// Suspect: a master whose oldest request is older than node_timeout gets no new acquire or extend until it has answered
// everything; deletes still go to it, in order. After suspect_close it is disconnected.
//
// The session knows no socket. Its driver asks for its wish, tells it what happened to the connection, moves its bytes,
// and calls on_time() when deadline() has come.
#pragma once
#include "base/random.hpp"
#include "base/settings.hpp"
#include "base/time.hpp"
#include "base/types.hpp"
#include "master/clock_watch.hpp"
#include "master/command.hpp"
#include "master/guard.hpp"
#include "master/info.hpp"
#include "master/tracking.hpp"
#include "master/tx.hpp"
#include "resp/reader.hpp"

namespace redlock {

// What a master has said, for the client to route.
struct Reply {
  enum class Kind : uint8_t {
    answer,       // about a claim
    looked,       // how long the keys will live, as PTTL tells it; -3: an error, or nothing will be told
    key_changed,  // unasked: this key is worth another look, and no longer tracked
    all_changed,  // unasked: every key is, and none is tracked any more
  };
  Kind kind = Kind::answer;
  Op op = Op::acquire;
  uint16_t claim = 0;
  uint32_t round = 0;
  Meaning meaning;
  int64_t ttl = 0;  // looked
  Bytes key;    // with its prefix; good until the next call of the session
};

// What has become of commands that an older connection left unanswered.
enum class Strays : uint8_t {
  none,      // nothing about them has changed
  ended,     // they were executed, or never will be
  at_large,  // they may still be executed
};

// What happened to a master beside its answers, since the client last asked.
struct News {
  bool identified = false;  // its run id was told: is it another master's, too?
  bool withdrawn = false;   // it may have forgotten keys, or surely has: its votes of open rounds do not count any more
  bool stepped = false;     // its wall clock was, or runs off rate
  Duration by;              // how far; negative: back
  Strays strays = Strays::none;
  bool wants_boot_time = false;
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
    bool* news;              // set when there is something for take_news()
  };

  Session(const Settings& settings, const MasterSettings& master, Bytes client_name, const Memory& memory);

  // ---- for the driver -----------------------------------------------------------------------------------------
  Wish wish() const { return wish_; }
  void connecting(Instant now);  // the wish to connect is being fulfilled
  void connected(Instant now, uint32_t nonce);
  // The connection, or the attempt, is over; everything in flight is forgotten. `reason` is kept unless the session
  // itself wished to close and knows better.
  void closed(Instant now, int reason, uint32_t random);
  // Behind closed(): are there SETs that older connections have left unanswered?
  void leave_strays(bool any) { strays_ = any; }
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
  bool plain() const { return votes() && reason_ == 0 && reader_.at_boundary(); }
  inline bool plain_yes(Instant now, Reply& out);
  bool unread() const { return rx_head_ != rx_size_; }
  [[gnu::noinline]] bool next_item(Instant now, Reply& out);  // what it needs must not lie below what follows

  // Takes acquires and extends now?
  bool votes() const { return state_ == State::up && wish_ == Wish::none && guard_.admitted(); }
  // Deletes can be given to it.
  bool connected() const { return (state_ == State::up || state_ == State::suspect) && wish_ == Wish::none; }
  // Is there room for a command of so many copied bytes, and for so many requests?
  bool room(size_t bytes, unsigned requests) const {
    return fifo_size_ - own_in_flight_ + requests + own_requests <= fifo_capacity_ &&
           tx_.fits(bytes, references_max);
  }
  bool room(const Command& command, unsigned requests) const {
    return command.fits() && room(command.text_size(), requests);
  }
  // The same for a request whose place in the FIFO is kept.
  bool room_for_kept(size_t bytes) const { return tx_.fits(bytes, references_max); }
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
    if (command.script() != nullptr) weave(command);
    push_request(request);
  }
  // Behind the extend that is asked next the key is tracked, where the server does that; both are so many requests.
  void track_next(Instant now);
  unsigned extend_requests() const { return tracked_ ? 2 : 1; }
  // Ask for how long keys will live, and to be told when one changes; `who` and `number` come back with the answer.
  void look(uint16_t who, uint32_t number, const Command& command, Instant now);
  // The state that the guard admitted this master in.
  Sealed sealed() const { return {settings_.meta_key, guard_.on() ? guard_.seal() : Bytes()}; }
  // Must commands compare that state by themselves? A master without replicas tells us of each change that matters before
  // its next answer, on a connection with tracking. A partial resynchronization is not told at all.
  bool asked_by_script() const { return guard_.on() && !(tracked_ && guard_.alone()); }
  // The master has lost its scripts: send their text until it shows that it knows them again.
  bool spell_out() const { return spell_out_; }
  // Has it not answered yet what it was asked about this claim, deletes apart?
  bool owes_answer(uint16_t claim) const;

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
  News take_news();
  void boot_time(int64_t ms, Instant now);  // CLOCK_BOOTTIME, where News has asked for it
  void set_duplicate(bool duplicate);
  void distrust(Instant until);
  void quarantine(Instant now);  // write that nobody may trust it, for all clients to see
  void commission(Instant until, Instant now);
  void clock_jumped(Instant now);
  void read_now(Instant now) { guard_.postpone_reading(now); }
  // One question about the guard's record, by a script of the caller's: maintenance programs ask so (src/site), clients
  // that lock never do. False: the master cannot be asked now, or the last question is not answered yet.
  bool ask_record(const Script& script, const Bytes* arguments, unsigned count, Instant now);
  // What the script answered: the first letter of its text; the rest of the text is guard().quarantine(). An error that
  // the master answered is negative. A question whose connection broke counts as not asked.
  enum Said : int16_t { not_asked = 256, not_answered = 512 };  // beside every letter
  int said() const { return said_; }
  // A sample that was asked for since then has come, and it was steady or the first.
  bool samples_clock(Instant since) const { return watch_.known() && watch_.asked() >= since; }

  // ---- for the status -----------------------------------------------------------------------------------------
  State state() const { return state_; }
  // Why it is not up. Of one that is up: that it refuses deletes, since the user lacks a permission.
  int reason() const { return guarded() ? guard_.reason() : int{reason_}; }
  int last_error() const { return reason() != 0 ? reason() : int{last_error_}; }
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
    kind_reading,
    kind_time,
    kind_write,
    kind_visit,
    kind_record,
    kind_id,
    kind_kill,
    kind_ping,
  };
  static constexpr unsigned references_max = 2;  // of one command: the texts of a script

  void set_state(State state);
  int why_broken() const;
  void note_error(int error);
  void note_denied(bool denied);
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
  void refer(Bytes first, Bytes second = Bytes());
  void say_hello(Instant now);
  void say_auth(Instant now);
  void say_rest(Instant now);
  void say_ping(Instant now);
  bool handle_push(const resp::Item& item, Instant now, Reply& out);
  bool handle(const resp::Item& item, Instant now, Reply& out);
  void handle_hello(const resp::Item& item, Instant now);
  void hello_failed(int error, Instant now);
  void handle_auth(const resp::Item& item, Instant now);
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
  Bytes boot_id() const { return Bytes(settings_.boot_id, settings_.has_boot_id ? settings_.boot_id_size : 0); }
  void say_info(Instant now);
  void say_reading(Instant now, bool track);
  void say_script(const Script& script, const Bytes* arguments, unsigned count);
  void say_record(Bytes desc, Bytes q, Bytes new_q, Bytes seal, Instant now);
  void weave(const Command& command);
  void begin_state(Bytes desc, Bytes q, Instant now);
  void write_next(Guard::Next next, int64_t boot_ms, Instant now);
  bool own_room() const;
  void read_when_due(Instant now);
  void handle_info(const resp::Item& item, Instant now);
  void handle_reading(const resp::Item& item, const Request& request, Instant now);
  void read_role(const resp::Item& item);
  void handle_time(const resp::Item& item, Instant sent, Instant now);
  void handle_write(const resp::Item& item);
  void handle_record(const resp::Item& item);
  void guard_changed();

  // Strays.
  void keep_old_connection();
  void come_up();
  void end_old_connection(Instant now);
  void handle_id(const resp::Item& item);
  void handle_kill(const resp::Item& item);

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
  int64_t server_us_ = 0;     // while TIME's reply is read
  News news_;                 // but for `withdrawn`
  bool* const has_news_;
  int16_t guard_told_ = 0;    // the guard's reason when the client was last told
  bool seeded_ = false;
  bool greeted_ = false;      // the greeting's ping is answered
  bool overlong_ = false;     // the field of a reading that is under way is longer than any of ours
  bool killing_ = false;      // CLIENT KILL is unanswered
  uint8_t readings_ = 0;      // since the last INFO
  int16_t said_ = not_asked;

  State state_ = State::down;
  Wish wish_ = Wish::connect;
  int16_t reason_ = 0;
  int16_t last_error_ = 0;  // that it answered
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
  int64_t id_ = 0;            // of this connection on the server; 0: not known
  int64_t old_id_ = 0;        // of the one that broke with something unanswered
  char old_run_id_[Guard::id_size] = {};
  bool strays_ = false;       // there are, and the client was not told yet what became of them
  uint64_t replies_ = 0;
  uint64_t greeting_from_ = 0;  // replies_ when this connection was made
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
  }
  spell_out_ = false;
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
