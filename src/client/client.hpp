// SPDX-License-Identifier: MIT
//
// Client: where locks and masters meet. A client owns the table of locks, one session for each master, and the claims
// between them. The client only routes: a lock's round to every session, a session's answer to its lock, a lock's end
// to the claims. It compares no replies and subtracts no times; the rooms below do.
//
// Turns (client/turns.hpp) moves a client. After each input Turns calls turn(), flushes what each session has to send,
// delivers events, and arms the one timer for deadline().
//
// A call of the API only notes what is wanted. The next turn reads the clock first, and then carries the wish out. So a
// round that a slow callback asked for gets a t0 from after the callback, and RELEASED comes after the turn that queued
// the deletes.
//
// Every input takes `now`, read after the input arrived. The client handles time before anything else of the input.
#pragma once
#include "base/entropy_pool.hpp"
#include "base/queue.hpp"
#include "base/settings.hpp"
#include "client/fleet.hpp"
#include "client/notices.hpp"
#include "lock/due_pages.hpp"
#include "lock/local_queue.hpp"

namespace redlock {

class Client {
 public:
  using Event = Notices::Event;

  // Bytes of memory that a client of these settings needs besides the object itself. `memory` must be aligned for
  // pointers.
  static size_t memory_size(const Settings& settings);
  Client(const Settings& settings, void* memory);

  // ---- inputs from the driver -----------------------------------------------------------------------------------
  void on_time(const Instant& now) {
    now_ = now;
    if (now >= deadline_) run_due(now);
  }
  // Everything that had arrived by then was read. Until the first call, and with never(): whatever has arrived is read.
  void heard(const Instant& until) { heard_ = until; }
  [[gnu::noinline]] void clock_jumped(const Instant& now);
  void add_entropy(const void* bytes, size_t size);
  size_t entropy_wanted() const { return pool_.wanted(); }
  // Does the guard want CLOCK_BOOTTIME now? The boot time helps clients that live for less than a guard time
  // (master/guard).
  bool wants_boot_time() const { return wants_boot_time_; }
  void boot_time(int64_t ms, const Instant& now);
  void connecting(MasterIndex m, const Instant& now);
  void connected(MasterIndex m, const Instant& now);
  void closed(MasterIndex m, int reason, const Instant& now);
  void set_reason(MasterIndex m, int reason) { post_[m].set_reason(reason); }
  void disconnect(MasterIndex m, int reason) { post_[m].disconnect(reason); }
  char* rx_room(MasterIndex m, size_t& size) { return post_[m].rx_room(size); }
  void received(MasterIndex m, size_t size, const Instant& now);
  void sent(MasterIndex m, size_t size) {
    post_[m].tx().consume(size);
    gained_room(m);
  }
  void all_sent(MasterIndex m) {
    post_[m].tx().clear();
    gained_room(m);
  }

  // ---- outputs --------------------------------------------------------------------------------------------------
  void turn(const Instant& now);
  bool wants_turn() const { return again_; }  // something has become possible since the last turn began
  // Every session was flushed: what a slow connection did not take is taken back, and a client that closes may go on.
  void flushed(const Instant& now) {
    if (post_.is_shared()) take_back(now);
    if (phase_ == Phase::draining) go_on_closing(now);
  }
  // Has any session a wish or a changed state? If not, the port need not look at each session.
  bool needs_port() { return post_.needs_port(); }
  // To be sent before the next call of output(): the shared commands in it carry this master's seal.
  const Tx& output(MasterIndex m) { return post_.output(m); }
  // False: there is no event. The port tells notices() when it was delivered.
  bool next_event(Event& out, const Instant& now);
  Notices& notices() { return notices_; }
  const Notices& notices() const { return notices_; }
  Instant deadline() const { return deadline_; }
  bool is_closed() const;  // close() was called and every connection is gone

  // ---- the API, on the loop's thread ------------------------------------------------------------------------------
  // names: copied; together at most settings.resource_bytes long.
  int acquire(const Names& names, const Options& options, redlock_event_fn callback, void* user, uint64_t& handle);
  int cancel(uint64_t handle);
  int extend(uint64_t handle, uint32_t ttl_ms);
  int release(uint64_t handle);
  int close(Duration grace, const Instant& now);
  int suspended(const Instant& now);
  // m: one master; Settings::masters means all of them.
  int commission(MasterIndex m, const Instant& now);
  int fence_init(Bytes resource);
  // A question of a maintenance program: Session::ask().
  bool ask(MasterIndex m, Bytes begin, const Bytes* words, unsigned count, Listener& listener, const Instant& now) {
    want_turn();
    return post_[m].ask(begin, words, count, listener, now);
  }

  // ---- any thread -------------------------------------------------------------------------------------------------
  const ValidityCell* cell(uint64_t handle) const { return table_.cell(handle); }

  // ---- status -----------------------------------------------------------------------------------------------------
  const CommonSettings& settings() const { return settings_; }
  Duration default_wait() const { return machine_.default_wait(); }
  const Session& session(MasterIndex m) const {
    REDLOCK_ASSERT(m < settings_.masters);
    return post_[m];
  }
  const Claims& claims() const { return post_.claims; }
  const Lock& lock(uint16_t slot) const { return table_[slot]; }
  const Instant& now() const { return now_; }  // when the latest input arrived
  bool present(uint64_t handle) {
    Lock* lock;
    return table_.find(handle, lock) == Table::Found::present;
  }
  // Was an extend of this lock asked for, and is it not decided yet?
  bool extend_open(uint16_t slot) const { return table_[slot].wants == Wants::extend || table_[slot].round.open; }

 private:
  enum class Phase : uint8_t { open, draining, disconnecting };
  struct Layout;

  REDLOCK_APART_FOR_SIZE void gained_room(MasterIndex m) {
    if (!starts_.empty() || looks_ || puts_back_.has(m) || post_.claims.owes(m)) want_turn();
  }
  void go_on_closing(const Instant& now);
  bool take_seed(uint64_t& seed);
  void run_due(const Instant& now);
  void run_locks(unsigned page, const Instant& now, const Instant& heard);
  void soon(Instant t) { bring_forward(deadline_, t); }
  void want_turn() { again_ = true; }
  void want_looks() { looks_ = again_ = true; }
  void plan(const Lock& lock);
  void plan(const Session& session);
  void want_round(const Lock& lock);
  void perform(Lock& lock, Action action, const Instant& now);
  void carry_out(Lock& lock, Action action, const Instant& now);
  void end_claim(Lock& lock, bool spare_refused, const Instant& now);

  // rounds.cpp
  void start_rounds(const Instant& now);
  bool may_begin(Lock& lock, bool quorum_votes, Masters able, const Instant& now);
  void send_unsent(Lock& lock, Masters votes, const Instant& now);
  void begin_round(Lock& lock, Masters able, Masters by_script, const Instant& now);
  void take_back(const Instant& now);
  Action fail_votes(Lock& lock, Masters masters, const Instant& now);

  // holding.cpp
  bool lacks_key(MasterIndex m, Reply reply, Lock& lock, const Instant& now);
  void put_back(Lock& lock, const Instant& now);
  void put_back_all(const Instant& now);
  void alarm(Lock& lock, MasterIndex m, bool votes_again, const Instant& now);
  void alarm_all(MasterIndex m, bool votes_again, const Instant& now);
  void forgotten(MasterIndex m, const Instant& now);

  // waiting.cpp
  void judge_waits(const Instant& now);
  void give_up(Masters never, const Instant& now);
  void note_votes(const Instant& now);
  void votes_again(MasterIndex m, const Instant& now);
  void begin_looking(Lock& lock, const Instant& now);
  void send_looks(const Instant& now);
  bool look(Lock& lock, MasterIndex m, bool holder, const Instant& now);
  void key_changed(MasterIndex m, Bytes resource, const Instant& now);
  void alarm_waiter(Lock& lock, MasterIndex m, const Instant& now);
  void hurry_before(const Lock& urgent);
  void hand_on(Lock& lock, const Instant& now);
  bool want_holder(const Lock& lock, const Instant& now);
  void tell_kept_back();

  // guarding.cpp
  void take_news(const Instant& now);
  void identified();
  void begin_states(const Instant& now);
  void look_ahead(const Instant& now);
  void withdrawn(MasterIndex m, const Instant& now);
  void clock_stepped(MasterIndex m, Duration by, const Instant& now);
  void quarantine_stepped(const Instant& now);

  // always_inline: where speed is asked for, received() has a copy for good answers, from which the compiler leaves out
  // what becomes of all others. So that these answers need not stand in memory, the functions that they never come to
  // take a Reply by value.
  [[gnu::always_inline]] inline void route_answer(MasterIndex m, const Reply& reply, const Instant& now);
  [[gnu::always_inline]] inline void route_round(MasterIndex m, const Reply& reply, const Instant& now);
  [[gnu::always_inline]] inline void route_vote(MasterIndex m, const Reply& reply, Lock& lock, const Instant& now);
  [[gnu::always_inline]] inline void route_delete(MasterIndex m, const Reply& reply, const Instant& now);
  REDLOCK_APART_FOR_SPEED void route(MasterIndex m, const Reply& reply, const Instant& now);
  bool ask_again(MasterIndex m, Reply reply, Lock& lock);
  void denied(MasterIndex m, const Names& names);
  [[gnu::noinline]] void hear_of_keys(MasterIndex m, const Reply& reply, const Instant& now);

  // fencing.cpp
  void spread_token(Lock& lock, Masters granted);
  bool hear(Lock& lock, MasterIndex m, Counter counter);
  void route_late_grant(MasterIndex m, Reply reply, Lock& lock);

  // Small members come first: on ARM their instructions are short where they lie near the beginning.
  Phase phase_ = Phase::open;
  bool again_ = false;
  bool wants_boot_time_ = false;
  bool waiters_look_ = false;  // some waiter may look at the masters
  bool looks_ = false;    // some waiter wants to look at some master
  Masters voting_;        // as note_votes() found them
  Masters puts_back_;     // may lack keys that can be put back: begin to vote, or had no room
  Queue<Lock, &Lock::start> starts_;
  char* names_;  // the names of each lock
  Table table_;
  Instant deadline_;  // nothing is due before this instant; may be too early, never too late
  Instant heard_ = Instant::never();  // masters are silent where no answer had come by then
  Instant close_by_ = Instant::never();
  Instant now_;  // when the latest input arrived
  Post post_{settings_};
  Notices notices_{settings_, table_, post_};
  LocalQueue queue_{table_};
  DuePages due_pages_;
  EntropyPool pool_;
  Proposals proposals_;
  Fleet fleet_;
  Machine machine_;
  Belief belief_;
  CommonSettings settings_;
};

}  // namespace redlock
