// SPDX-License-Identifier: MIT
//
// Machine: one lock's states. All that changes a lock's state is here; nothing here knows Redis, bytes or handles.
//
//               accept                      won                     released, expired, clock jumped
//     free ──► waiting ──start──► acquiring ──────► held ─────────────────────────────────────────► over ──► free
//                 ▲  │                │  │            │▲                                             ▲
//                 └──┼─── lost, wait ─┘  │            └┘ extend round: won → later validity,         │
//                    └── canceled, ──────┴── lost        lost → as valid as before                   │
//                        budget over      for good                                                   │
//                              └───────────────────────────────────────────────────────────────────┘
//
// Three rules. Time comes first: on_time() is called before any reply of the same input is told, so an expired lock can
// never be extended by a reply that waited in a buffer. A round that is over is over: a later vote for it is not heard.
// And what follows from a step - deletes, a next round - is returned as an Action for the client to route.
//
// A held lock keeps asking. Every third of its ttl there is an extend round; one that is not to be renewed asks for a
// ttl of 1 ms, which raises nothing and so only compares. Behind that the key is tracked (master/tracking), and word
// that it has changed brings the next round forward: no other reading is needed, and a lock that ends within a third
// of its ttl costs not a byte more. A master that answered "gone or foreign", or was never asked, lacks the key; one
// that is silent, or has not read a SET yet, may have it. When fewer than a quorum may have it the lock is LOST at
// once. Those that lack it get it back behind a round that a quorum won: the lock does not stay on a bare quorum
// until the next master fails.
//
// A fenced round has two parts. When a quorum holds the names and the proposed token is not acknowledged, the round
// stays open, and the masters that granted vote anew: they are asked to store a larger one (lock/fence). The others'
// votes stand; one that is still to come cannot help any more, and is not told as one that failed. t0 and number stay
// those of the round, so the validity is still counted from before the first byte.
//
// A lock owes its owner exactly one of ACQUIRED and FAILED, and after ACQUIRED exactly one of RELEASED and LOST. At
// most one event is waiting to be delivered: the latest, since RENEWED and AT_RISK only tell the present state, and
// an acquire that ends before ACQUIRED was delivered becomes the one FAILED.
#pragma once
#include "base/names.hpp"
#include "base/queue.hpp"
#include "base/random.hpp"
#include "base/time.hpp"
#include "base/types.hpp"
#include "lock/cell.hpp"
#include "lock/fence.hpp"
#include "lock/forecast.hpp"
#include "lock/quorum.hpp"
#include "lock/validity.hpp"

namespace redlock {

enum class State : uint8_t { free, waiting, acquiring, held, over };

// What the client is to do about a lock after a step.
enum class Action : uint8_t {
  none,
  start,    // the lock wants a round (Life::wants) in this turn
  drop,     // a round was lost: delete the value where it was not refused
  watch,    // a round was lost to others, or another's turn has come: as drop, and look when their key will be gone
  release,  // the lock has ended: delete the value wherever anything was sent
  linger,   // the lock has ended before its time: delete the value only when the validity is over
  store,    // the names are won; ask Fence::told to store the token
  put_back, // a round was won by keys that were there: write the value where it is gone (Holding::gone)
};

enum class Wants : uint8_t { nothing, acquire, extend };

struct Options {
  uint32_t ttl_ms;
  int32_t wait_ms;
  uint32_t min_validity_ms;
  uint32_t max_hold_ms;
  uint32_t retry_delay_ms;
  bool renew;
  bool fenced = false;
};

// Of the round under way, or of the last one.
struct Round {
  Instant t0;
  Instant deadline;
  uint32_t ttl_ms = 0;
  uint32_t number = 0;  // no other round of this client has it, so a late reply finds no round but its own
  bool open = false;
  Masters granted;
  Masters refused;
  Masters failed;
  Masters guarded;  // those of the failed that the guard does not let vote
  Masters unasked;  // second part of a fenced round: those that had not voted on the names when it began
  int16_t first_error = 0;  // of the first master that failed
};

// Of an acquire that is not decided yet.
struct Waiting {
  Instant until;        // the budget's end
  Instant net_at;       // a waiter that watches: the next round at the latest
  Instant planned_for;  // ... when it expects a quorum to be free
  Instant not_before;   // ... and leaves others the first try
  Instant hasty_until;  // one plain pause later the hasty rounds are counted anew
  Duration round_took;  // the last acquire round, until it was decided
  int16_t last_cause = 0;  // why the last round was lost; 0: none was finished
  uint8_t collisions = 0;  // rounds in a row that were lost although some master granted them
  uint8_t hasty = 0;       // rounds that were lost since hasty_until was set
  bool begun = false;      // the budget has begun to run
};

// Of a lock that is held.
struct Holding {
  Instant limit;               // max_hold_ms: no extension goes beyond this
  uint32_t pace_ms = 0;        // a third of this from round to round
  uint32_t extend_ttl_ms = 0;  // what the extend wanted asks for
  Masters owners;              // masters that have granted the value
  Masters lacking;             // masters that do not count as having it
  Masters gone;                // those that were not sent it, or have answered an extend: gone
  bool probe = false;          // the extend round wanted or under way raises nothing and only compares
  bool alarmed = false;        // the next round is brought forward
  uint8_t hurried = 0;         // rounds in a row that were
};

// Where a lock stands in the line of one of its names.
struct LinePlace {
  uint16_t next = 0;
  uint16_t previous = 0;
};

// Among the locks of this client that want the same resource (lock/local_queue).
struct Turn {
  LinePlace places[Names::max];  // one for each name
  uint16_t in_a_row = 0;  // how often the lock went from one of this client to the next, up to this one
  bool yields = false;    // other clients may try before its next round
};

// What its owner is to be told next.
struct Telling {
  uint8_t event = 0;  // enum redlock_event_type; 0: nothing
  int16_t err = 0;
};

// All that begins anew with each acquire: Machine::accept sets it, in one place.
struct Life {
  Wants wants = Wants::nothing;
  uint16_t claim = 0;   // the value of its round; no_slot while it waits
  uint32_t rounds = 0;  // acquire rounds so far
  Instant valid_until;
  Instant wake_at;      // waiting: the next round; held: the next renewal
  Instant defer_until;  // a round that lacks our own room is begun then at the latest
  Round round;
  Fence fence;
  Waiting wait;
  Holding hold;
  Turn turn;
  Telling tell;
};

struct Lock : Life {
  uint64_t generation = 0;
  ValidityCell cell;
  Options options;
  Names names;
  redlock_event_fn callback;
  void* user;
  Forecast forecast;
  Link start;  // its place among the locks that want a round
  Link told;   // its place among the locks with an event
  State state = State::free;
};

class Machine {
 public:
  struct Rules {
    unsigned masters;
    Drift drift;
    Duration node_timeout;
    uint32_t max_ttl_ms;
    uint32_t sleep_max_ms;
    uint32_t local_turns;
    bool may_floor = true;
  };

  void init(const Rules& rules) { rules_ = rules; }
  // Pauses are drawn by lot, so that clients which lose at the same moment do not try again at the same moment.
  void seed(uint64_t seed) { random_.seed(seed); }
  uint32_t draw() { return random_.next(); }

  // free → waiting; the lock wants an acquire round.
  void accept(Lock& lock, const Options& options) const;
  // The first turn that looks at a new lock: its wait budget begins.
  void see(Lock& lock, Instant now) const;

  // The wanted round begins: t0 was read before its first byte is handed to a transport. For an extend the ttl is cut
  // so that max_hold_ms is kept; false: it allows no later validity, which is told as AT_RISK, and no round begins.
  // asked: the masters that are sent an acquire; the others lack its key from the beginning.
  bool begin(Lock& lock, Masters asked, Instant t0);
  // The wanted round lacks room of our own. True: it is to wait for that; false: it has waited for a node_timeout.
  bool put_off(Lock& lock, Instant now) const;
  // The wanted round lacks what no round can do without: it waits for that as long as it takes.
  void put_off_freely(Lock& lock) const { lock.defer_until = Instant::never(); }
  // A fenced acquire begins with this proposal; may_floor: the floor is allowed this once.
  void propose(Lock& lock, uint64_t proposal, bool may_floor) const;
  // This master has the token, or is being asked to store it.
  void token_told(Lock& lock, MasterIndex m) const { lock.fence.told.add(m); }
  // What a master says of the counter, before its vote.
  void on_counter(Lock& lock, MasterIndex m, const Counter& counter) const;
  Action vote(Lock& lock, MasterIndex m, Vote vote, int error, Instant now) {
    Round& round = lock.round;
    if (!round.open || voted(round).has(m)) return Action::none;
    if (vote != Vote::granted) return vote_against(lock, m, vote, error, now);
    round.granted.add(m);  // it may win the round, and never loses it
    return round.granted.count() < quorum_of(rules_.masters) ? Action::none : decided(lock, now);
  }

  // This master may have forgotten what it granted: its vote for an open round does not count any more.
  Action revoke(Lock& lock, MasterIndex m, int error, Instant now);
  // What a master says of the lock's value, in whatever round it was asked.
  void on_key_present(Lock& lock, MasterIndex m) const {
    lock.hold.owners.add(m);
    lock.hold.lacking.remove(m);
    lock.hold.gone.remove(m);
  }
  // Gone or foreign there. extend_round: the round that asked, if it was an extend; else 0.
  Action on_key_missing(Lock& lock, MasterIndex m, uint32_t extend_round) const;
  // For how long a key is put back: as long as the lock is valid; 0: it is not worth it.
  uint32_t put_back_ttl(const Lock& lock, Instant now) const;
  // The key is being put back there: until that is answered the master may have it.
  void put_back_sent(Lock& lock, MasterIndex m) const {
    lock.hold.lacking.remove(m);
    lock.hold.gone.remove(m);
  }
  // The key of a held lock may have changed there.
  void on_key_changed(Lock& lock, MasterIndex m, Instant now) const;
  // These masters are not believed any more. A held lock needs a quorum of the others.
  Action distrust(Lock& lock, Masters masters) const;

  Action on_time(Lock& lock, Instant now);
  Instant deadline(const Lock& lock) const;
  // The owner is told now what was to be told.
  Telling take_event(Lock& lock) const {
    const Telling tell = lock.tell;
    lock.tell = {};
    return tell;
  }
  // Masters came back, or there is room again: a waiter need not sleep on.
  Action wake(Lock& lock) const;

  // ---- a waiter that watches the masters instead of asking again and again
  void watch(Lock& lock, Masters votes, Masters tracked, Instant now);
  void look_sent(Lock& lock, MasterIndex m, Instant now);
  void look_away(Lock& lock, MasterIndex m, bool votes, Instant now);
  void looked(Lock& lock, MasterIndex m, int64_t ttl, Instant now);
  void changed(Lock& lock, MasterIndex m, Instant now);
  void master_left(Lock& lock, MasterIndex m, Instant now);
  void master_back(Lock& lock, MasterIndex m, bool tracked, Instant now);

  // ---- a waiter behind another of this client
  Action queue(Lock& lock) const;  // it is not its turn: it sends nothing
  // The one before it is over: its turn, but that of other clients first when it yields.
  Action turn_came(Lock& lock, const Lock& before) const;
  Action yield(Lock& lock, Instant now);

  int extend(Lock& lock, uint32_t ttl_ms) const;  // 0 or enum redlock_err
  Action cancel(Lock& lock, int err) const;       // waiting, acquiring, or acquired and not yet told
  Action release(Lock& lock) const;
  // The clock jumped: suspend, or an earlier misreading. What is held is lost, an open round begins anew.
  Action jumped(Lock& lock, Instant now) const;

  // With asserts on: what is true of a lock between two steps.
  void check(const Lock& lock) const {
    const Round& round = lock.round;
    const Masters all = Masters::all(rules_.masters);
    REDLOCK_ASSERT((lock.state == State::acquiring) ? round.open : (!round.open || lock.state == State::held));
    REDLOCK_ASSERT(!round.open || (round.number != 0 && round.deadline >= round.t0));
    REDLOCK_ASSERT(lock.wants != Wants::acquire || lock.state == State::waiting);
    REDLOCK_ASSERT(lock.wants != Wants::extend || (lock.state == State::held && !round.open));
    // A master votes once.
    REDLOCK_ASSERT((voted(round) - all).empty());
    REDLOCK_ASSERT((round.granted & round.refused).empty() && (round.failed & (round.granted | round.refused)).empty());
    REDLOCK_ASSERT((round.guarded - round.failed).empty());
    REDLOCK_ASSERT((lock.fence.counters.acked - lock.fence.counters.known).empty());
    // What is put back was lacking.
    REDLOCK_ASSERT((lock.hold.gone - lock.hold.lacking).empty() && (lock.hold.lacking - all).empty());
    REDLOCK_ASSERT(lock.state != State::held || lock.valid_until != Instant::never());
    REDLOCK_ASSERT(lock.state != State::held || lock.rounds > 0);
    REDLOCK_ASSERT(lock.state != State::over || lock.cell.expired(lock.generation));
    // LOST, FAILED and RELEASED are the last that is told of a lock, and nothing else is told of one that is over.
    const bool last = lock.tell.event == REDLOCK_EV_LOST || lock.tell.event == REDLOCK_EV_FAILED ||
                      lock.tell.event == REDLOCK_EV_RELEASED;
    REDLOCK_ASSERT(lock.tell.event == 0 || last == (lock.state == State::over));
  }

 private:
  Action vote_against(Lock& lock, MasterIndex m, Vote vote, int error, Instant now);
  Action decided(Lock& lock, Instant now);
  Action decided_fenced(Lock& lock, Instant now);
  Action store(Lock& lock, uint64_t token, Instant now) const;
  Action won(Lock& lock, Instant now);
  Action lost(Lock& lock, int cause, Instant now);
  Action extended(Lock& lock) const;
  void extend_lost(Lock& lock, int cause, Instant now);
  Action fail(Lock& lock, int err) const;
  Action lost_early(Lock& lock) const;
  // Nothing more is heard of these in the round.
  static Masters voted(const Round& round) {
    return round.granted | round.refused | round.failed | round.unasked;
  }
  int why_lost(const Round& round) const;
  bool renews(const Lock& lock) const { return lock.options.renew && lock.valid_until < lock.hold.limit; }
  void plan_next(Lock& lock) const;
  void plan_round(Lock& lock, bool anew, Instant now);
  Duration lot(Duration longest);  // a pause drawn by lot
  Duration plain_pause(const Lock& lock) const;  // the longest of its pauses while others hold the lock
  Instant poll_at(const Lock& lock, Instant now);
  Action end(Lock& lock, int event, int err, Action action) const;

  Rules rules_ = {};
  Random random_;
  // Start just below UINT32_MAX so that every test covers wrap-around. 0 is reserved for put-backs.
  uint32_t rounds_ = UINT32_MAX - 8;
};

}  // namespace redlock
