// SPDX-License-Identifier: MIT
//
// Machine: the states of one lock. Nothing else changes a lock's state. The machine knows no Redis, bytes or handles.
//
//               accept                      won                     released, expired, clock jumped
//     free ──► waiting ──start──► acquiring ──────► held ─────────────────────────────────────────► over ──► free
//                 ▲  │                │  │            │▲                                             ▲
//                 └──┼─── lost, wait ─┘  │            └┘ extend round: won → later validity,         │
//                    └── canceled, ──────┴── lost        lost → as valid as before                   │
//                        budget over      for good                                                   │
//                              └───────────────────────────────────────────────────────────────────┘
//
// Three rules:
//   1. Time comes first. The client calls on_time() before it passes on a reply of the same input. Otherwise a reply
//      that waited in a buffer could extend a lock that has already expired.
//   2. A decided round takes no more votes. Otherwise a late grant could win a round that was counted as lost.
//   3. What follows from a step (deletes, the next round) is returned as an Action, and the client carries it out.
//
// Renewals. A held lock begins an extend round at each third of its ttl. A lock that is not renewed asks for a ttl of
// 1 ms: an extend never lowers an expiry, so such a round (a probe) only compares the value. Each extend round also
// makes the masters track the key (master/tracking). A notification that the key has changed brings the next round
// forward. So the lock needs no other reads, and a lock that ends within a third of its ttl costs no extra byte.
//
// Lost keys. A master lacks the key if the master answered "gone or foreign", was never sent the SET, or is no longer
// trusted. A master that is silent, or has not read a SET yet, may have the key. When fewer than a quorum may have the
// key, the lock is LOST at once. Masters without the key get the key back (put-back) behind the grant, behind each
// extend round, and when they begin to vote. Otherwise one more failing master would end a lock on a bare quorum.
//
// Fenced rounds. A fenced acquire can have a second part. If a quorum holds the names, but no quorum acknowledged the
// proposed token, the round stays open. The masters that granted are asked to store a larger token (lock/fence), and
// vote again. The other votes stand. A master that had not voted before the second part cannot help any more, and the
// event does not count that master as failed. The round keeps its t0 and its number, so the validity still counts from
// before the first byte.
//
// Events. A lock owes its owner exactly one of ACQUIRED and FAILED, and after ACQUIRED exactly one of RELEASED and
// LOST. At most one event waits to be delivered: the latest. Nothing is missed by that, since RENEWED and AT_RISK only
// tell the present state. An acquire that ends before ACQUIRED was delivered delivers FAILED instead.
#pragma once
#include "base/names.hpp"
#include "base/queue.hpp"
#include "base/random.hpp"
#include "base/time.hpp"
#include "base/types.hpp"
#include "lock/cell.hpp"
#include "lock/crowd.hpp"
#include "lock/fence.hpp"
#include "lock/forecast.hpp"
#include "lock/quorum.hpp"
#include "lock/validity.hpp"

namespace redlock {

enum class State : uint8_t { free, waiting, acquiring, held, over };

// What the client has to do about a lock after a step.
enum class Action : uint8_t {
  none,
  start,    // the lock wants a round (Acquire::wants) in this turn
  drop,     // a round was lost: delete the value, except on masters that refused it
  look,     // as drop, then look at the key: a round was lost to others, or others have the first try
  release,  // the lock has ended: delete the value on every master that was sent anything
  linger,   // the lock has ended before its time: delete the value only when the validity is over
  store,    // the names are won: ask the masters of Round::unsent to store the token
  put_back, // a round of a held lock is decided: write the value again on the masters of Holding::gone
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
  bool wants_holder = false;  // who holds the resource instead? A lost round asks one master
  bool tell_waiting = false;
  bool urgent = false;
};

// The open round, or the last one.
struct Round {
  bool open = false;         // acquiring: always; held: an extend round; else never
  uint8_t told_master = 0;   // of those that failed, the one whose error tells most; of several the first
  Masters granted;  // no master is in two of these three
  Masters refused;
  Masters failed;
  Masters guarded;  // part of `failed`: masters that the guard does not let vote
  Masters unasked;  // second part of a fenced round: masters that had not voted when the second part began
  Masters unsent;   // masters whose next command about this round leaves when our own memory has room
  int16_t told_error = 0;  // that master's error
  uint32_t ttl_ms = 0;
  uint32_t number = 0;  // unique among the rounds of this client, so that a late reply cannot vote in another round
  Instant t0, deadline;
};

// How an acquire waits that masters tell of changes. See lock/machine_waiting.
enum class Stance : uint8_t {
  peeks,      // looks at one master: is the key there?
  sleeps,     // sends nothing until wake_at, and ignores what masters tell
  listens,    // looks at one master that has the key
  armed,      // looks at as many masters as it takes to hear of every release
  stands_by,  // nobody let go for a plain pause: looks at two masters, and looks again before it tries
};

// An acquire that is not decided yet.
struct Waiting {
  Instant until;        // end of the wait budget that runs
  Instant since;        // when the client first handled the acquire; held: when the owner was told. Zero: not yet
  Instant net_at;       // a waiter that looks begins its next round then at the latest, whatever the masters tell
  Instant planned_for;  // a waiter that looks expects a quorum to be free then
  Instant not_before;   // a waiter that looks tries no earlier, so that others have the first try
  Instant heard_since;  // when it began to listen for the first time; zero: never
  Duration nap;         // how long it sleeps if its look finds the key
  Duration round_took;  // how long the last acquire round took until it was decided
  int16_t last_cause = 0;  // why the last round was lost, or LOCKED: a look found the key; 0: nothing is known yet
  Masters denied;          // masters that denied this acquire since the last but one round was lost
  Stance stance = Stance::peeks;
  uint16_t passed = 0;     // how often the resource seemed free and went to others
  uint16_t rested_at = 0;  // `passed` when it last grew tired of looking
  bool rested = false;     // has slept
  bool tired = false;      // its nap follows a spell of looking in vain, and is not one that the client has learned
  bool unsure = false;     // looks again before its next round, because others may have been faster
  bool begun = false;      // a budget has begun to run
  bool for_guard = false;  // the budget that runs is that of the guard
  bool untold = false;     // a WAITING is to be delivered
  uint8_t told_cause = 0;  // of the last WAITING (enum redlock_cause)
  uint32_t crowd = 0;      // Crowds::name_of the lock, also while it is held
  Duration other;          // REDLOCK_WAIT_DEFAULT: what is left of the budget that does not run
};

// A held lock.
struct Holding {
  Masters owners;              // masters that said that they have the value
  Masters lacking;             // masters that do not count as having the value
  Masters gone;                // part of `lacking`: may be put back. Never got a SET, or answered an extend "gone"
  bool probe = false;          // the extend round, wanted or open, only compares
  bool alarmed = false;        // a notification brought the next round forward
  uint8_t hurried = 0;         // rounds in a row that were brought forward
  uint32_t pace_ms = 0;        // extend rounds begin a third of this apart
  uint32_t extend_ttl_ms = 0;  // the ttl that the next extend round asks for
  Instant since;               // when the acquire was won
  Instant limit;               // max_hold_ms: no extend goes beyond this instant
};

// The neighbours of a lock in the row of one of its names (lock/local_queue).
struct LinePlace {
  uint16_t next = 0;
  uint16_t previous = 0;
};

// The lock's place among the locks of this client that want the same resource (lock/local_queue).
struct InLine {
  LinePlace places[Names::max];  // one for each name
  uint16_t in_a_row = 0;  // how often in a row the resource went from a lock of this client to the next one
  bool yields = false;    // before its next round the lock leaves other clients a try
  bool urgent = false;    // it is urgent itself, or an urgent acquire waits behind it
};

// The event that waits for delivery to the owner.
struct Telling {
  uint8_t event = 0;  // enum redlock_event_type; 0: nothing
  uint8_t cause = 0;  // FAILED: enum redlock_cause
  int16_t err = 0;
};

// Everything that begins anew with each acquire. Machine::accept resets all of it, so that no field is forgotten. Small
// fields come first: on ARM their instructions are short where they lie near the beginning.
struct Acquire {
  State state = State::free;
  Wants wants = Wants::nothing;  // acquire: only while it waits; extend: only while it is held, and no round is open
  uint16_t claim = 0;   // the claim of the lock's value; no_claim while the lock waits
  Telling tell;         // FAILED, LOST and RELEASED: only while it is over, and then nothing else
  Round round;
  Instant valid_until;
  Instant wake_at;      // waiting: the next round, never() while it is wanted; held: the next renewal
  Instant defer_until;  // a round that waits for room in our own tables begins then at the latest
  uint32_t rounds = 0;  // acquire rounds so far
  InLine line;
  Holding hold;
  Waiting wait;
  Fence fence;
};

struct Lock : Acquire {
  Link start;         // place in the queue of locks that want a round
  Link told;          // place in the queue of locks that have an event
  uint16_t slot = 0;  // its number in the table
  Options options;
  Names names;
  redlock_event_fn callback;
  void* user;
  uint64_t generation = 0;
  Forecast forecast;
  ValidityCell cell;
};

// For how long an acquire has waited, or a lock that its owner knows of was held.
inline Duration waited(const Lock& lock, const Instant& now) {
  return lock.wait.since == Instant() ? Duration() : left(now, lock.wait.since);
}

// Is the acquire not decided yet?
inline bool is_pending(const Lock& lock) { return lock.state == State::waiting || lock.state == State::acquiring; }

// In brackets: the states in which a method may be called for a lock.
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
    Duration wait = {}, guard_wait = {};  // the two budgets of REDLOCK_WAIT_DEFAULT
  };

  void init(const Rules& rules) { rules_ = rules; }
  Duration default_wait() const { return rules_.wait + rules_.guard_wait; }  // both budgets
  // Pauses are random. Otherwise clients that lose at the same moment would collide again at the next try.
  void seed(uint64_t seed) {
    random_.seed(seed);
    seeded_ = true;
  }
  bool wants_seed() const { return !seeded_; }
  uint32_t draw() { return random_.next(); }

  // [free] → waiting; the lock wants an acquire round.
  void accept(Lock& lock, const Options& options);
  // [waiting] In the first turn that handles a new lock its wait budget begins. for_guard: it waits for the guard.
  void see(Lock& lock, bool for_guard, const Instant& now) const;
  // [any] A lock that waits with REDLOCK_WAIT_DEFAULT has two budgets, one of which runs. This one runs from now on.
  void charge(Lock& lock, bool for_guard, const Instant& now) const;

  // [waiting, held] Begins the wanted round. t0 was read before the first byte of the round is handed to a transport.
  // The ttl of an extend is cut to keep max_hold_ms. False: max_hold_ms allows no later validity. Then no round begins,
  // and the owner is told AT_RISK. asked: the masters that are sent an acquire; the other masters lack the key from the
  // beginning.
  bool begin(Lock& lock, Masters asked, Instant t0);
  // [waiting, held] Our own tables lack room for the wanted round. True: the round waits for room. False: the round has
  // waited for a node_timeout, and begins with what there is.
  bool put_off(Lock& lock, const Instant& now) const;
  // [waiting] The wanted round lacks random bytes, without which there is no round, and waits for as long as it takes.
  void put_off_freely(Lock& lock) const { lock.defer_until = Instant::never(); }
  // [acquiring] A fenced acquire begins with this proposal. may_floor: the floor is allowed this once.
  void propose(Lock& lock, uint64_t proposal, bool may_floor) const;
  // [acquiring, held] This master has the token, or has been asked to store the token.
  void token_told(Lock& lock, MasterIndex m) const { lock.fence.told.add(m); }
  // [acquiring] A master's answer about its token counter. Call this before vote().
  void on_counter(Lock& lock, MasterIndex m, const Counter& counter) const;
  // [any] Counts only in an open round in which the master has not voted.
  Action vote(Lock& lock, MasterIndex m, Vote vote, int error, const Instant& now) {
    Round& round = lock.round;
    if (!round.open || voted(round).has(m)) return Action::none;
    if (vote != Vote::granted) return vote_against(lock, m, vote, error, now);
    round.granted.add(m);  // a grant may win a round, and never loses one
    return round.granted.count() < quorum_of(rules_.masters) ? Action::none : decided(lock, now);
  }

  // [waiting, over] Told, and nothing else: the round was lost already.
  static void refused_late(Lock& lock, MasterIndex m) {
    lock.round.refused |= Masters::of(m) - voted(lock.round);
  }

  // [any] This master may have forgotten what it granted, so its vote no longer counts for an open round.
  Action revoke(Lock& lock, MasterIndex m, int error, const Instant& now);
  // [acquiring, held] A master said that it has the lock's value. True whichever round asked.
  void on_key_present(Lock& lock, MasterIndex m) const {
    lock.hold.owners.add(m);
    put_back_sent(lock, m);
  }
  // [acquiring, held] The key is gone there, or holds another value. gone: it answered an extend so, or got no SET.
  Action on_key_missing(Lock& lock, MasterIndex m, bool gone) const;
  // [held] Where the key may be put back now: in an open round on no master that may vote, or said "gone" in it.
  static Masters to_put_back(const Lock& l) { return l.round.open ? l.hold.gone & l.round.failed : l.hold.gone; }
  // [any] The ttl of a put-back: what is left of the validity. 0: nothing is left, so put nothing back.
  uint32_t put_back_ttl(const Lock& lock, const Instant& now) const;
  // [acquiring, held] A SET was sent to this master once more. Until the answer comes the master may have the key.
  void put_back_sent(Lock& lock, MasterIndex m) const {
    lock.hold.lacking.remove(m);
    lock.hold.gone.remove(m);
  }
  // [held] Its key may have changed on this master. votes_again: whatever it was told is old.
  void on_key_changed(Lock& lock, MasterIndex m, bool votes_again, const Instant& now) const;
  // [any] These masters are no longer trusted. A held lock that has no quorum of other owners is LOST.
  Action distrust(Lock& lock, Masters masters) const;

  // [any] heard: masters that had not answered by then are silent. At most `now`.
  Action on_time(Lock& lock, const Instant& now, const Instant& heard);
  static Instant deadline(const Lock& lock);
  // [any] Takes the event that waits, for delivery to the owner.
  static Telling take_event(Lock& lock) {
    const Telling tell = lock.tell;
    lock.tell = {};
    return tell;
  }
  // [any] A waiter stops its pause and wants a round: masters came back, its pause is over, or its turn has come.
  Action wake(Lock& lock) const;

  // ---- [waiting] a waiter that looks at the masters instead of trying again and again (lock/machine_waiting)
  void begin_looking(Lock& lock, Masters votes, Masters tracked, const Instant& now);
  void look_sent(Lock& lock, MasterIndex m, const Instant& now);
  void look_away(Lock& lock, MasterIndex m, bool votes, const Instant& now);
  void looked(Lock& lock, MasterIndex m, int64_t ttl, const Instant& now);  // [any] The answer may be late
  void changed(Lock& lock, MasterIndex m, const Instant& now);              // [acquiring], too
  void master_disconnected(Lock& lock, MasterIndex m, const Instant& now);  // [acquiring], too
  static bool master_mute(Lock& lock, MasterIndex m, const Instant& now);  // [any] True: the lock looks at others
  void master_back(Lock& lock, MasterIndex m, bool tracked, const Instant& now);

  // ---- [waiting] a waiter behind another of this client
  Action queue(Lock& lock) const;  // it is not this lock's turn, so the lock sends nothing
  // [waiting, acquiring] An urgent acquire has come to wait behind this one, which hurries from now on.
  void hurry(Lock& lock, const Instant& now) const;
  // [any] The lock before this one is over. After too many turns in a row the lock yields to other clients first.
  Action came_first(Lock& lock, const Lock& before) const;
  Action yield(Lock& lock, const Instant& now);
  void let_go(const Lock& lock, const Instant& now);  // RELEASED is delivered

  int extend(Lock& lock, uint32_t ttl_ms) const;  // [any] 0 or enum redlock_err
  Action cancel(Lock& lock, int err) const;       // [waiting, acquiring; held, before ACQUIRED was delivered]
  // [waiting, acquiring] Another round is pointless: too many masters can never vote as things stand. The owner is told
  // of a round in which the masters of `failed` failed. first, error: a master that can never vote, and its reason.
  Action give_up(Lock& lock, Masters failed, Masters guarded, MasterIndex first, int error) const;
  Action release(Lock& lock) const;  // [waiting, acquiring, held]
  // [waiting, acquiring, held] The clock jumped. A held lock is lost, and an open acquire round begins anew.
  Action jumped(Lock& lock, const Instant& now) const;

  // Invariants of a lock between two steps. Checked where asserts are on.
  void check(const Lock& lock) const {
    const Round& round = lock.round;
    const Masters all = Masters::all(rules_.masters);
    REDLOCK_ASSERT((lock.state == State::acquiring) ? round.open : (!round.open || lock.state == State::held));
    REDLOCK_ASSERT(!round.open || round.number != 0);
    REDLOCK_ASSERT(!round.open || round.deadline >= round.t0);
    REDLOCK_ASSERT(lock.wants != Wants::acquire || lock.state == State::waiting);
    // The timer would fire again and again for a lock that nothing but room, or random bytes, can help.
    REDLOCK_ASSERT(lock.wants != Wants::acquire || lock.wake_at == Instant::never());
    REDLOCK_ASSERT(lock.wants != Wants::extend || lock.state == State::held);
    REDLOCK_ASSERT(lock.wants != Wants::extend || !round.open);
    // A master has one vote.
    REDLOCK_ASSERT((voted(round) - all).empty());
    REDLOCK_ASSERT((round.granted & round.refused).empty());
    REDLOCK_ASSERT((round.failed & (round.granted | round.refused)).empty());
    REDLOCK_ASSERT((round.guarded - round.failed).empty());
    REDLOCK_ASSERT((round.unsent - all).empty());
    REDLOCK_ASSERT((lock.fence.counters.acked - lock.fence.counters.known).empty());
    // Only a master that lacks the key gets the key back.
    REDLOCK_ASSERT((lock.hold.gone - lock.hold.lacking).empty());
    REDLOCK_ASSERT((lock.hold.lacking - all).empty());
    REDLOCK_ASSERT(lock.state != State::held || lock.valid_until != Instant::never());
    REDLOCK_ASSERT(lock.state != State::held || lock.rounds > 0);
    REDLOCK_ASSERT(lock.state != State::over || lock.cell.expired(lock.generation));
    // LOST, FAILED and RELEASED are the last event of a lock, and a lock that is over has no other event.
    const bool last = lock.tell.event == REDLOCK_EV_LOST || lock.tell.event == REDLOCK_EV_FAILED ||
                      lock.tell.event == REDLOCK_EV_RELEASED;
    REDLOCK_ASSERT(lock.tell.event == 0 || last == (lock.state == State::over));
  }

 private:
  Action vote_against(Lock& lock, MasterIndex m, Vote vote, int error, const Instant& now);
  Action decided(Lock& lock, const Instant& now);
  Action decided_fenced(Lock& lock, const Instant& now);
  Action store(Lock& lock, uint64_t token, const Instant& now) const;
  Action won(Lock& lock, const Instant& now);
  bool is_denied(const Lock& lock, int cause) const;
  Action lost(Lock& lock, int cause, const Instant& now);
  Action extended(Lock& lock) const;
  void extend_lost(Lock& lock, int cause, const Instant& now);
  Action fail(Lock& lock, int err) const;
  Action lost_early(Lock& lock) const;
  // Masters that have voted, or whose vote no longer counts in this round.
  static Masters voted(const Round& r) { return r.granted | r.refused | r.failed | r.unasked; }
  int why_lost(const Round& round) const;
  bool renews(const Lock& lock) const { return lock.options.renew && lock.valid_until < lock.hold.limit; }
  void plan_next(Lock& lock) const;
  Action due(Lock& lock, const Instant& now);
  Duration next_nap(Lock& lock, const Instant& now);
  bool hurries(const Lock& lock) const;
  void listen(Lock& lock, const Instant& now) const;
  void give_way(Lock& lock) const;
  void remember(const Lock& lock, const Instant& now);
  void plan_round(Lock& lock, bool looked, const Instant& now);
  void plan_race(Lock& lock, bool looked, const Instant& now);
  Duration lot(Duration longest);  // a random pause
  Duration plain_pause(const Lock& lock) const;  // the longest pause of this lock while others hold the resource
  Instant poll_at(const Lock& lock, const Instant& now);
  Action end(Lock& lock, int event, int err, Action action) const;

  Rules rules_ = {};
  Crowds crowds_;
  Random random_;
  bool seeded_ = false;
  // Start just below UINT32_MAX so that every test covers wrap-around. 0 is reserved for put-backs.
  uint32_t rounds_ = UINT32_MAX - 8;
};

}  // namespace redlock
