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
#include "client/claims.hpp"
#include "client/fleet.hpp"
#include "client/holder.hpp"
#include "lock/due_pages.hpp"
#include "lock/local_queue.hpp"
#include "master/session.hpp"

namespace redlock {

class Client {
 public:
  // An event, and where to deliver it. After delivered() the slot of an ended lock is free again.
  struct Event {
    redlock_event_t event;
    redlock_event_fn callback;  // nullptr: the client's own
    void* user;
    uint16_t slot;  // no_slot: not about a lock
  };

  // What only the client knows of an event about a lock (run/detail).
  struct Detail {
    MasterIndex master;     // that master_err is about; Settings::masters: none
    const Holder* holder;   // the answer of a master; nullptr: none
    int64_t to_go_ms;       // as in redlock_detail_t
  };

  // Bytes of memory that a client of these settings needs besides the object itself. `memory` must be aligned for
  // pointers.
  static size_t memory_size(const Settings& settings);
  Client(const Settings& settings, void* memory);

  // ---- inputs from the driver -----------------------------------------------------------------------------------
  void on_time(const Instant& now) {
    now_ = now;
    if (now >= deadline_) run_due(now);
  }
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
  void blame(MasterIndex m, int reason) { sessions_[m].blame(reason); }
  void disconnect(MasterIndex m, int reason) { sessions_[m].disconnect(reason); }
  char* rx_room(MasterIndex m, size_t& size) { return sessions_[m].rx_room(size); }
  void received(MasterIndex m, size_t size, const Instant& now);
  void sent(MasterIndex m, size_t size) {
    sessions_[m].tx().consume(size);
    gained_room(m);
  }
  void all_sent(MasterIndex m) {
    sessions_[m].tx().clear();
    gained_room(m);
  }

  // ---- outputs --------------------------------------------------------------------------------------------------
  void turn(const Instant& now);
  bool wants_turn() const { return again_; }  // something has become possible since the last turn began
  bool has_lock_events() const { return events_ != 0; }
  // Every session was flushed: what a slow connection did not take is taken back, and a client that closes may go on.
  void flushed(const Instant& now) {
    if (shared_.is_used()) take_all_back(now);
    if (phase_ == Phase::draining) go_on_closing(now);
  }
  // Has any session a wish or a changed state? If not, the port need not look at each session.
  bool called();
  Session::Wish wish(MasterIndex m) const { return sessions_[m].wish(); }
  bool polite(MasterIndex m) const { return sessions_[m].reason() == REDLOCK_E_CLOSED; }
  // To be sent before the next call of output(): the shared commands in it carry this master's seal.
  const Tx& output(MasterIndex m) {
    if (shared_.has_seals()) sessions_[m].write_seals();
    return sessions_[m].tx();
  }
  unsigned events() const;
  bool next_event(Event& out, const Instant& now);
  static bool is_detailed(int type) { return (detailed_types >> type & 1u) != 0; }
  Detail detail(const Event& event) const;  // at the delivery, of an event about a lock
  void delivered(const Event& event);
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
  bool ask_record(MasterIndex m, const Script& script, const Bytes* arguments, unsigned count, const Instant& now) {
    again_ = true;
    return sessions_[m].ask_record(script, arguments, count, now);
  }
  bool ask_command(MasterIndex m, Bytes command, const Instant& now) {
    again_ = true;
    return sessions_[m].ask_command(command, now);
  }

  // ---- any thread -------------------------------------------------------------------------------------------------
  const ValidityCell* cell(uint64_t handle) const { return table_.cell(handle); }

  // ---- status -----------------------------------------------------------------------------------------------------
  const CommonSettings& settings() const { return settings_; }
  const MasterSettings& master(MasterIndex m) const { return masters_[m]; }
  const Session& session(MasterIndex m) const {
    REDLOCK_ASSERT(m < settings_.masters);
    return sessions_[m];
  }
  const Claims& claims() const { return claims_; }
  Instant lock_deadline(uint16_t slot) const { return machine_.deadline(table_[slot]); }
  void status(redlock_status_t& out) const { status(out, now_); }
  void status(redlock_status_t& out, const Instant& now) const;
  void master_status(MasterIndex m, redlock_master_status_t& out) const { master_status(m, out, now_); }
  void master_status(MasterIndex m, redlock_master_status_t& out, const Instant& now) const;
  uint32_t now_s() const { return static_cast<uint32_t>(now_.ns() / 1'000'000'000); }  // when the latest input arrived
  uint32_t clock_jumps() const { return static_cast<uint32_t>(counters_.clock_jumps); }
  // The names of the lock in this slot; for how long it has waited since its first try was lost; and why its last round
  // was lost, 0: no round was.
  const Names& names(uint16_t slot) const { return table_[slot].names; }
  uint32_t waited_s(uint16_t slot) const {
    return static_cast<uint32_t>(waited(table_[slot], now_).ns() / 1'000'000'000);
  }
  int waited_for(uint16_t slot) const { return table_[slot].wait.last_cause; }
  bool present(uint64_t handle) {
    Lock* lock;
    return table_.find(handle, lock) == Table::Found::present;
  }
  // Was an extend of this lock asked for, and is it not decided yet?
  bool extend_open(uint16_t slot) const { return table_[slot].wants == Wants::extend || table_[slot].round.open; }

 private:
  static constexpr unsigned detailed_types = 1u << REDLOCK_EV_WAITING | 1u << REDLOCK_EV_FAILED |
                                             1u << REDLOCK_EV_LOST | 1u << REDLOCK_EV_AT_RISK | 1u << REDLOCK_EV_MASTER;
  enum class Phase : uint8_t { open, draining, disconnecting };
  struct Layout;

  void gained_room(MasterIndex m) {
    if (!starts_.empty() || looks_ || claims_.owes(m)) again_ = true;
  }
  void go_on_closing(const Instant& now);
  bool take_seed(uint64_t& seed);
  void run_due(const Instant& now);
  void run_locks(unsigned page, const Instant& now);
  void soon(Instant t) { bring_forward(deadline_, t); }
  void plan(const Lock& lock);
  void plan(const Session& session);
  void want_round(const Lock& lock);
  void perform(Lock& lock, Action action, const Instant& now);
  void carry_out(Lock& lock, Action action, const Instant& now);
  void hand_on(Lock& lock, const Instant& now);
  void end_claim(Lock& lock, bool spare_refused, const Instant& now);

  // events.cpp
  void tell(Lock& lock) {
    if (lock.tell.event != 0) queue_event(lock);
  }
  void queue_event(Lock& lock);
  bool take_master(Event& out, const Instant& now);
  Lock& take_told(Telling& tell);
  void take_event(Event& out, const Instant& now);

  // causes.cpp
  struct Outlooks {  // how many masters vote, and what may become of the others
    unsigned voting = 0;
    uint8_t others[static_cast<unsigned>(Guard::Outlook::open) + 1] = {};
    unsigned of(Guard::Outlook outlook) const { return others[static_cast<unsigned>(outlook)]; }
    // While a change of masters is under way, another configuration may be its old or new one.
    bool changing() const { return of(Guard::Outlook::moving) != 0; }
    static bool is_never(Guard::Outlook outlook, bool changing) {
      return outlook == Guard::Outlook::never || (outlook == Guard::Outlook::foreign && !changing);
    }
    unsigned never() const { return of(Guard::Outlook::never) + (changing() ? 0 : of(Guard::Outlook::foreign)); }
  };
  Outlooks outlooks() const;
  int common_cause() const;
  int cause_of(const Lock& lock) const;
  void judge_waits(const Instant& now);
  void give_up(const Instant& now);
  void note_wait(Lock& lock, bool again);
  void repeat_waits(const Instant& now);
  Lock& take_waiting(Telling& tell, Event& out, const Instant& now);
  void forget_waiting(Lock& lock) {
    lock.wait.untold = false;
    --events_;
  }

  // rounds.cpp
  Masters voting() const;
  Masters able(Masters voting, Masters by_script, Wants wants, const Lock& lock) const;
  bool introduced() const;
  void start_rounds(const Instant& now);
  bool may_begin(Lock& lock, bool quorum_votes, Masters able, const Instant& now);
  void begin_round(Lock& lock, Masters able, Masters by_script, const Instant& now);
  // A command for some masters, before it is encoded: the request that each FIFO remembers, and what the command says.
  struct Wording {
    Session::Request request;
    uint32_t ttl_ms;
    bool sealed;     // by a script that compares the guard's state
    uint64_t token;  // Command::sealed
    Op op() const { return static_cast<Op>(request.kind); }
  };
  static Wording wording(Op op, uint16_t claim, uint32_t round, uint32_t ttl_ms, const Instant& now) {
    return {{now, round, claim, static_cast<uint8_t>(op), false}, ttl_ms, false, 0};
  }
  Wording wording_of_round(Op op, const Lock& lock, const Instant& now) const;
  Command encode(Space space, const Wording& what, MasterIndex m, bool by_name) const;
  Masters without_script(Op op, Masters masters) const;
  void ask(const Wording& what, Masters masters);
  void take_all_back(const Instant& now);
  void take_back(MasterIndex m, const Instant& now);
  Action fail_votes(Lock& lock, Masters masters, const Instant& now);
  int why_unable(const Lock& lock, MasterIndex m) const;
  uint16_t make_claim(Lock& lock);
  Subject subject(uint16_t claim, uint32_t ttl_ms, char (&hex)[ValueBytes::hex_size]) const;
  // An upper bound for the size of any command about so many names of so many bytes, without a script's text.
  static constexpr size_t command_size(size_t prefix, size_t names, size_t bytes) {
    return Command::frame_max + REDLOCK_VALUE_MAX + bytes + prefix + (names - 1) * (prefix + Command::name_max);
  }
  size_t command_size(const Names& names) const {
    return command_size(settings_.key_prefix.size, names.count(), names.bytes());
  }
  size_t sealed_size() const { return Command::sealed_size(settings_.key_prefix.size); }

  // holding.cpp
  bool lacks_key(MasterIndex m, const Reply& reply, Lock& lock, const Instant& now);
  void put_back(Lock& lock, const Instant& now);
  void alarm(Lock& lock, MasterIndex m, const Instant& now);
  void alarm_all(MasterIndex m, const Instant& now);
  void forgotten(MasterIndex m, const Instant& now);

  // waiting.cpp
  void wake_waiters(MasterIndex m, const Instant& now);
  void watch(Lock& lock, const Instant& now);
  void send_looks(const Instant& now);
  bool look(Lock& lock, MasterIndex m, bool holder, const Instant& now);
  void changed(MasterIndex m, Bytes resource, const Instant& now);
  void change(Lock& lock, MasterIndex m, const Instant& now);

  // holder.cpp
  bool want_holder(const Lock& lock, const Instant& now);
  void ask_holder(const Instant& now);
  // The slot of the lock that asked.
  unsigned place_of_holder() const { return static_cast<uint16_t>(holder_.lock - 1); }
  void holder_answered(const Reply& reply);
  void tell_kept_back();

  // guarding.cpp
  Instant guarded_until() const;
  int64_t guard_ms(const Instant& now) const;
  int64_t guard_ms_of(MasterIndex m, const Instant& now) const;
  int32_t shown_state(MasterIndex m) const;
  void take_news(const Instant& now);
  void identified();
  void withdrawn(MasterIndex m, const Instant& now);
  void clock_stepped(MasterIndex m, Duration by, const Instant& now);
  void quarantine_stepped(const Instant& now);

  // always_inline: called once per reply from received(); GCC inlines these at -Os but not at -O2.
  [[gnu::always_inline]] inline void route_answer(MasterIndex m, const Reply& reply, const Instant& now);
  [[gnu::always_inline]] inline void route_round(MasterIndex m, const Reply& reply, const Instant& now);
  [[gnu::always_inline]] inline void route_vote(MasterIndex m, const Reply& reply, Lock& lock, const Instant& now);
  [[gnu::always_inline]] inline void route_delete(MasterIndex m, const Reply& reply, const Instant& now);
  [[gnu::always_inline]] inline bool hear_of_key(MasterIndex m, const Reply& reply, Lock& lock, const Instant& now);
  bool ask_again(MasterIndex m, const Reply& reply, Lock& lock, const Instant& now);
  [[gnu::noinline]] void hear_news(MasterIndex m, const Reply& reply, const Instant& now);

  // deletes.cpp
  void send_deletes(uint16_t claim, Masters masters, const Instant& now);
  void pay_debts(const Instant& now);

  // fencing.cpp
  void propose(Lock& lock);
  static bool script_only(const Lock& lock) { return lock.options.fenced || lock.names.count() > 1; }
  bool by_script(const Lock& lock, MasterIndex m) const { return script_only(lock) || sessions_[m].asked_by_script(); }
  bool may_ask(Op op, const Lock& lock, MasterIndex m) const;
  Action store_token(Lock& lock, const Instant& now);
  void spread_token(Lock& lock, Masters granted, const Instant& now);
  bool hear(Lock& lock, MasterIndex m, const Counter& counter);
  void route_late_grant(MasterIndex m, const Reply& reply, Lock& lock, const Instant& now);
  void tell_token(const Lock& lock, redlock_event_t& event);

  // Small members come first: on ARM their instructions are short where they lie near the beginning.
  Phase phase_ = Phase::open;
  bool again_ = false;
  bool called_ = true;  // a session may have a wish or a changed state
  bool news_ = false;   // a session may have news
  bool wants_boot_time_ = false;
  bool watched_ = false;  // some waiter may watch the masters
  bool looks_ = false;    // some waiter wants to look at some master
  bool introduced_ = false;
  bool seeded_ = false;
  Queue<Lock, &Lock::start> starts_;
  Queue<Lock, &Lock::told> told_;  // locks with an event; LOST enters at the front
  Queue<Claim, &Claim::place> ended_;  // claims whose deletes leave in the next turn
  unsigned events_ = 0;  // of locks, with each WAITING that is due
  int cause_ = REDLOCK_CAUSE_NONE;  // of every acquire. HELD: a quorum votes; NONE: not known yet
  Session* sessions_;
  MasterSettings* masters_;
  char* names_;  // the names of each lock
  Table table_;
  Shared shared_;
  Instant deadline_;  // nothing is due before this instant; may be too early, never too late
  Instant close_by_ = Instant::never();
  Instant tell_at_ = Instant::never();  // then each WAITING is told again
  Instant now_;  // when the latest input arrived
  LocalQueue queue_{table_};
  DuePages due_pages_;
  Holder holder_;
  EntropyPool pool_;
  Proposals proposals_;
  Fleet fleet_;
  Machine machine_;
  Claims claims_;
  Belief belief_;
  CommonSettings settings_;
  redlock_status_t counters_ = {};
};

}  // namespace redlock
