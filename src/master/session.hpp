// SPDX-License-Identifier: MIT
//
// Session: the connection of one master, and the meaning of its replies.
//
//     down ──retry_at──► connecting ──► greeting ──► up ◄──► suspect
//      ▲                     │              │         │          │
//      └─────────────────────┴──── closed ──┴─────────┴──────────┘
//
// Replies come in the order of the requests, so the FIFO of requests in flight (master/fifo) gives every reply its
// meaning. A session that is unsure of the count closes the connection: after a reply that nobody asked for, a reply of
// an impossible type, or a ping whose nonce does not come back.
//
// The master is up when the greeting is done (master/greeting), and votes when the guard admits it (master/guard;
// master/record sends what the guard asks and writes).
//
// Suspect: a master whose oldest request is older than node_timeout gets no new acquire or extend until it has answered
// everything. Deletes still go to it, in order. After suspect_close it is disconnected.
//
// The session knows no socket. Its driver asks for its wish, tells it what happened to the connection, moves its bytes,
// and calls on_time() when deadline() has come.
#pragma once
#include "master/greeting.hpp"
#include "resp/reader.hpp"

namespace redlock {

// What a master has said, for the client to route.
struct Reply {
  enum class Kind : uint8_t {
    answer,       // about a claim
    ttl_read,     // how long the keys will live, as PTTL tells it; -3: an error, or no change will be told
    holder_read,  // whose value the key has (holder_in); `key` is the client name. Each part of a value says so
    key_changed,  // unasked: this key is worth another look, and no longer tracked
    all_changed,  // unasked: every key is, and none is tracked any more
  };
  Kind kind = Kind::answer;
  Op op = Op::acquire;
  uint16_t claim = 0;
  uint32_t round = 0;
  Meaning meaning;
  int64_t ttl = 0;  // ttl_read
  Bytes key;        // key_changed: with its prefix; good until the next call of the session, as holder_read's
};

// Awake says what a client does: `holds`: some master may have a value of its own; `waits`: for other holders.
enum class Awake : uint8_t { no, waits, holds };

// Hears the reply to a question, item by item.
struct Listener {
  void (*hear)(Listener& self, const resp::Item& item);
};

// In brackets: the states in which a method may be called; [asked]: up or suspect, with no wish (connected()).
class Session {
 public:
  // In the order of enum redlock_master_state, whose numbers are shown to users.
  enum class State : uint8_t { down, connecting, greeting, up, suspect };
  enum class Wish : uint8_t { none, connect, close };
  using Request = Fifo::Request;
  static constexpr unsigned own_requests = Fifo::own_max;
  struct Memory {
    char* tx;
    size_t tx_size;
    char* rx;
    size_t rx_size;
    Fifo::Request* requests;
    unsigned requests_size;  // settings.in_flight and own_requests
    Shared* shared;
    MasterIndex self;        // in shared commands
    bool* for_port;          // set when a wish or a change is there to be seen
    bool* news;              // set when there is something for take_news()
    const Instant* begins_until;  // until then a master that lacks our record may be given one
    const Awake* awake;
  };

  Session(const CommonSettings& settings, const MasterSettings& master, Bytes client_name, const Memory& memory);

  // ---- for the driver -----------------------------------------------------------------------------------------
  Wish wish() const { return wish_; }
  void connecting(const Instant& now);  // [down] The wish to connect is being fulfilled
  void connected(const Instant& now, uint32_t nonce);  // [connecting]
  // [any] Before closed(), where the session wished to close: the driver knows better why.
  void set_reason(int reason) { reason_ = static_cast<int16_t>(reason); }  // GCOVR_EXCL_LINE: port/uv alone calls it
  // [any] The connection, or the attempt, is over; everything in flight is forgotten. `reason` is kept unless the
  // session itself wished to close and knows better.
  void closed(const Instant& now, int reason, uint32_t random);
  // [down] Behind closed(): did older connections leave SETs unanswered?
  void leave_strays(bool any) { greeting_.leave_strays(any); }
  char* rx_room(size_t& size) {
    if (rx_head_ == rx_size_) {  // nearly always
      rx_head_ = rx_size_ = 0;
    } else if (rx_head_ != 0) {
      compact();
    }
    size = rx_capacity_ - rx_size_;
    return rx_ + rx_size_;
  }
  Tx& tx() { return out_.tx; }

  // ---- for the client -----------------------------------------------------------------------------------------
  // `size` bytes were put into rx_room(). While unread(), next_item() gives what they say, one thing at a time, until
  // false. While is_fast(), try_fast_reply() consumes one whole "+OK" or ":1" without the parser. It leaves is_fast()
  // as it is, and changes nothing but the FIFO.
  void received(size_t size) {
    REDLOCK_ASSERT(size <= rx_capacity_ - rx_size_);
    rx_size_ += size;
  }
  bool is_fast(const Instant& now) const {
    return votes() && guard().counts(now) && reason_ == 0 && reader_.at_boundary();
  }
  inline bool try_fast_reply(const Instant& now, Reply& out);
  bool unread() const { return rx_head_ != rx_size_; }
  // noinline: keeps its large frame off the stack while the reply is routed.
  [[gnu::noinline]] bool next_item(const Instant& now, Reply& out);

  // Takes acquires and extends now?
  bool votes() const { return state_ == State::up && wish_ == Wish::none && guard().admitted(); }
  // Deletes can be given to it.
  bool connected() const { return (state_ == State::up || state_ == State::suspect) && wish_ == Wish::none; }
  // Is there room for a command of so many bytes, and for so many requests in flight? apart: the command is for this
  // master alone, and goes through its own buffer.
  bool room(size_t bytes, unsigned requests, bool apart) const {
    return out_.fifo.has_room(requests) && (apart ? fits_apart(bytes) : out_.tx.may_share(bytes));
  }
  bool room(const Command& command, unsigned requests) const {
    return command.fits() && out_.fifo.has_room(requests) &&
           out_.tx.fits(command.text_size(), Outgoing::references_max);
  }
  bool lags() const { return out_.tx.lags(); }  // what it was to be sent in an earlier turn has not left
  // There is nothing to send, no wish and no change of state to show.
  bool idle() const { return out_.tx.empty() && wish_ == Wish::none && !untold_; }
  // Where a command for this master alone is encoded.
  Space space() { return out_.tx.space(); }
  void ask(const Request& request, const Command& command);  // [asked] Its kind is an Op
  // [asked] The newest shared command is asked. Its kind is an Op, or look_caching ahead of an extend.
  void ask_shared(const Request& request) {
    REDLOCK_ASSERT(connected());
    REDLOCK_ASSERT(!request.apart);
    out_.tx.share();
    out_.fifo.push(request);
  }
  // Behind a turn, when the connection did not take everything: takes back the newest shared command. False: there is
  // none but the oldest, which may have been begun. It is kept, and until it has left the master is asked no more.
  bool take_back(Request& out);
  void write_seals() const { out_.tx.write_seals(guard().seal()); }
  // [asked] Call before asking an extend: where there is tracking, the extend registers its keys. The two need
  // extend_requests() places. For a master that is asked apart.
  void track_next(const Instant& now);
  unsigned extend_requests() const { return tracked() ? 2 : 1; }
  // [asked] Ask for how long keys will live, and to be told when one changes; `who` and `number` come back with the
  // answer. holder: ask whose value a key has instead.
  void look(uint16_t who, uint32_t number, const Command& command, bool holder, const Instant& now);
  // The state that the guard admitted this master in.
  Sealed sealed() const;
  // Must commands compare that state by themselves? On a connection with tracking, a master without replicas pushes
  // each change that matters before its next answer. A partial resynchronization with a replica causes no push at all.
  bool asked_by_script() const { return guard().on() && !(tracked() && guard().alone()); }
  // Must the next command of this op carry its script's text? Commands behind the text name the script.
  bool send_script_text(Op op) const { return (known_scripts_ >> static_cast<unsigned>(op) & 1) == 0; }
  // Is a request about this claim unanswered, deletes apart?
  bool owes_answer(uint16_t claim) const { return out_.fifo.owes_answer(claim); }

  // What is due; returns deadline(). heard: what had not come by then is silence. At most `now`.
  Instant on_time(const Instant& now, const Instant& heard);
  Instant deadline() const;
  Instant ping_at() const { return ping_at_; }  // [up] With nothing in flight
  void disconnect(int reason);  // [any] Wish to close, for a reason that only the client or driver can see
  void close_quietly();         // [any] No more connections: the client is closing

  // ---- the guard, for the client ----------------------------------------------------------------------------------
  const Guard& guard() const { return record_.guard(); }
  // Random bytes for quarantine ids, once; before that no id is made, however long the connection lasts.
  bool wants_seed() const { return record_.wants_seed(); }
  void seed(uint64_t seed) { record_.seed(seed); }
  News take_news();
  // CLOCK_BOOTTIME, where News asked for it.
  void boot_time(int64_t ms, const Instant& now) { record_.boot_time(ms, now); }
  // Behind the news of all masters. allowed: a master that lacks our record is given one.
  bool wants_state() const { return record_.wants_state(); }  // a master without our record
  void begin_state(bool allowed, const Instant& now);
  void set_duplicate(bool duplicate);
  void quarantine(const Instant& now);  // write to the master that no client may trust its present state
  void commission(Instant until, const Instant& now);
  void clock_jumped(const Instant& now);
  void read_now(const Instant& now) { record_.guard().postpone_reading(now); }
  // [asked] Ahead of commands that may vote. True: a reading was asked for.
  bool look_ahead(const Instant& now);
  uint32_t record_changes() const { return record_.changes(); }
  // Has a sample of the server's clock come that was asked for after `since`?
  bool samples_clock(Instant since) const { return record_.clock().known() && record_.clock().asked() >= since; }

  // ---- questions of maintenance programs (site); clients that lock ask none ---------------------------------------
  // [any] Asks one command: its beginning, already encoded, and its other words. The beginning is not copied: it stays
  // until the whole reply has come, or the connection is over. Where there is tracking, the command registers its keys.
  // False: the master is not up, there is no room, or the last question has no whole reply yet.
  bool ask(Bytes begin, const Bytes* words, unsigned count, Listener& listener, const Instant& now);
  bool asked() const { return listener_ != nullptr; }  // a question waits for its reply

  // ---- for the status -----------------------------------------------------------------------------------------
  State state() const { return state_; }
  // Why the master is not up, or does not vote. While it votes, only REDLOCK_E_NOPERM: it refuses deletes.
  int reason() const { return guarded() ? guard().reason() : int{reason_}; }
  int last_error() const { return reason() != 0 ? reason() : int{last_error_}; }
  // What may become of a master that does not vote.
  Guard::Outlook outlook() const;
  bool guarded() const { return state_ == State::up && wish_ == Wish::none && !guard().admitted(); }
  bool untold() const { return untold_; }  // has the state changed since the last take_untold()?
  bool take_untold() {
    const bool untold = untold_;
    untold_ = false;
    return untold;
  }
  bool tried() const { return tried_; }
  const MasterSettings& master() const { return greeting_.master(); }
  bool resp3() const { return greeting_.resp3(); }
  bool tracked() const { return tracking_.on(); }  // the server has confirmed it for the present connection
  unsigned in_flight() const { return out_.fifo.size(); }
  uint32_t connects() const { return connects_; }
  uint64_t replies() const { return replies_; }
  uint64_t errors() const { return errors_; }

 private:
  // A script with its text, and CLIENT CACHING ahead of it.
  bool fits_apart(size_t bytes) const {
    return out_.tx.fits(bytes + Command::caching().size, Outgoing::references_max);
  }
  inline void check() const;  // what always holds between two calls
  void set_state(State state);
  int why_broken() const;
  void note_error(int error);
  void forget_script(Op op);
  // A bit for each op. Both kinds of acquire have one script, so their bits change together.
  static constexpr uint8_t script_bits(Op op) {
    const bool acquires = op == Op::acquire || op == Op::acquire_fenced;
    const unsigned bit = 1u << static_cast<unsigned>(op);
    return static_cast<uint8_t>(acquires ? 1u << Fifo::Request::acquire | 1u << Fifo::Request::acquire_fenced : bit);
  }
  void note_denied(bool denied);
  void wish(Wish wish) {
    wish_ = wish;
    *for_port_ = true;
  }
  void note_change() { untold_ = *for_port_ = true; }
  void fail(int reason);
  void pop_request(bool own, const Instant& now);
  bool handle_push(const resp::Item& item, const Instant& now, Reply& out);
  bool handle(const resp::Item& item, const Instant& now, Reply& out);
  int handle_own(const Request& request, const resp::Item& item, const Instant& now);
  bool handle_look(const Request& request, const resp::Item& item, Reply& out);
  bool handle_claim(const Request& request, const resp::Item& item, const Instant& now, Reply& out);
  void answered(const Instant& now);
  // How long the master is asked nothing. A link that breaks while a lock is held, or while a waiter hopes to be told
  // of a change, is to be noticed soon.
  Duration silence() const {
    constexpr Duration soon = Duration::ms(5'000);
    const bool matters = *awake_ == Awake::holds || (*awake_ == Awake::waits && watched_);
    return matters && soon < settings_.ping_interval ? soon : settings_.ping_interval;
  }
  void come_up(const Instant& now);
  void compact();
  void withdraw(const Instant& now);
  void guard_changed();

  // Small members come first: on ARM their instructions are short where they lie near the beginning.
  State state_ = State::down;
  Wish wish_ = Wish::connect;
  bool untold_ = true;
  bool tried_ = false;       // a first attempt has come to an end
  bool quiet_ = false;
  bool watched_ = false;     // a waiter has looked at a key on this connection
  uint8_t known_scripts_ = 0;  // script_bits() of each op whose script's text was sent or waits to be sent
  uint8_t failures_ = 0;     // attempts since it was last up
  Tracking tracking_;
  int16_t reason_ = 0;
  int16_t last_error_ = 0;   // that it answered
  int16_t guard_told_ = 0;   // the guard's reason when the client was last told
  const CommonSettings& settings_;
  char* rx_;
  size_t rx_capacity_;
  size_t rx_head_ = 0;
  size_t rx_size_ = 0;
  bool* const for_port_;
  const Awake* const awake_;
  Listener* listener_ = nullptr;  // of the question that has no whole reply yet
  uint32_t connects_ = 0;
  Instant retry_at_;         // down: when to try again
  Instant give_up_at_;       // connecting, greeting, suspect
  Instant ping_at_ = Instant::never();
  uint64_t replies_ = 0;
  uint64_t errors_ = 0;
  Outgoing out_;
  resp::Reader reader_;
  Record record_;
  Greeting greeting_;
};

inline void Session::check() const {
#if defined(REDLOCK_ASSERTS)
  out_.fifo.check();
  REDLOCK_ASSERT(rx_head_ <= rx_size_);
  REDLOCK_ASSERT(rx_size_ <= rx_capacity_);
  const bool open = state_ != State::down && state_ != State::connecting;
  REDLOCK_ASSERT(open || out_.fifo.empty());
  REDLOCK_ASSERT(open || out_.tx.empty());
  REDLOCK_ASSERT(open || rx_size_ == 0);
  REDLOCK_ASSERT(open || !tracked());
  REDLOCK_ASSERT(open || !asked());
  REDLOCK_ASSERT(wish_ == Wish::none || (wish_ == Wish::connect) == (state_ == State::down));
  REDLOCK_ASSERT(state_ != State::greeting || !out_.fifo.empty() || wish_ == Wish::close || record_.wants_state());
  REDLOCK_ASSERT(state_ != State::suspect || !out_.fifo.empty() || wish_ == Wish::close);
  REDLOCK_ASSERT(!connected() || greeting_.is_done());
  REDLOCK_ASSERT(!tracked() || resp3());
#endif
}

inline void Session::pop_request(bool own, const Instant& now) {
  ++replies_;
  out_.fifo.pop(own);
  if (!out_.fifo.empty()) return;
  watched_ = watched_ && *awake_ != Awake::no;
  ping_at_ = now + silence();
}

// What a healthy master answers to nearly every request, seen whole: +OK or :1. The reader and handle() take six times
// as long for the same.
inline bool Session::try_fast_reply(const Instant& now, Reply& out) {
  REDLOCK_ASSERT(is_fast(now));
  if (out_.fifo.empty()) return false;
  const Fifo::Request& request = out_.fifo.oldest();
  const unsigned kind = request.kind;
  if (kind > Request::release) return false;
  const char* const at = rx_ + rx_head_;
  const size_t size = rx_size_ - rx_head_;
  if (kind == Request::acquire) {
    if (size < 5 || memcmp(at, "+OK\r", 4) != 0 || at[4] != '\n') return false;
    rx_head_ += 5;
  } else {
    if (size < 4 || memcmp(at, ":1\r\n", 4) != 0) return false;
    rx_head_ += 4;
  }
  out.kind = Reply::Kind::answer;
  out.op = static_cast<Op>(kind);
  out.claim = request.claim;
  out.round = request.round;
  out.meaning.answer = Answer::yes;
  out.meaning.error = 0;
  pop_request(false, now);
  return true;
}

static_assert(static_cast<int>(Session::State::down) == 0 &&
                  REDLOCK_MASTER_DOWN + static_cast<int>(Session::State::connecting) == REDLOCK_MASTER_CONNECTING &&
                  REDLOCK_MASTER_DOWN + static_cast<int>(Session::State::greeting) == REDLOCK_MASTER_GREETING &&
                  REDLOCK_MASTER_DOWN + static_cast<int>(Session::State::up) == REDLOCK_MASTER_UP &&
                  REDLOCK_MASTER_DOWN + static_cast<int>(Session::State::suspect) == REDLOCK_MASTER_SUSPECT,
              "the status shows a State as REDLOCK_MASTER_DOWN and so many more");

}  // namespace redlock
