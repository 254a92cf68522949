// SPDX-License-Identifier: MIT
//
// Process: one gateway. A redlock::Client in memory of its own, the library's clock over the machine's clocks, the
// library's loop (client/turns) over connections that are strings and a timer that is a number, and users who want
// locks.
//
// When its loop runs, the process lives a little ahead of the world: reading a clock may be preempted and a callback
// may take its time, while what it sends is sent at its own time. Until the world has caught up, the process is busy.
#pragma once
#include <memory>
#include <string>

#include "client/turns.hpp"
#include "machine_clock.hpp"
#include "network.hpp"
#include "port/clock.hpp"

namespace redlock::sim {

// The random part of a claim's value, as masters get it.
inline std::string hex_of(const Claim& claim) {
  char hex[ValueBytes::hex_size];
  claim.value.write_hex(hex);
  return std::string(hex, sizeof hex);
}

struct Step;
class Process;

struct ClockSource {
  Process* process;
  int64_t monotonic_raw_ns() const;
  int64_t monotonic_ns() const;
  int64_t boottime_ns() const;
};

// Somebody who wants one lock at a time.
struct User {
  enum class State { idle, pending, held };
  enum class Habit { shortly, about_ttl, to_the_end };
  Process* process;
  unsigned index;
  State state = State::idle;
  Habit habit = Habit::shortly;
  Ns due = never;  // when it does something next
  Ns asked_at = 0;
  unsigned ups_before = 0;  // Process::ups() when it asked
  bool left = false;  // has called release
  uint64_t handle = 0;
  uint64_t ended = 0;  // an older handle, stale by now
  unsigned resources = 0;  // bits
  unsigned patience = 0;  // steps until it lets go
  char value[40];         // held: the random half of what its keys hold
  Options options = {};
};

class Process : public Turns<Process> {
 public:
  // beside: another of the same machine
  Process(World& world, unsigned index, Process* beside = nullptr);

  void start();  // with empty memory
  void die(bool politely);
  bool running() const { return client_ != nullptr; }
  void wake(Ns t);
  void loop();
  uint64_t loops() const { return loops_; }
  void pause(Ns until);
  void suspend(Ns length);
  void close_client();
  void move_to_another_machine(int64_t rate_ppm, int64_t suspended_ppm);  // while it does not run

  Client& client() const { return *client_; }
  const std::vector<User>& users() const { return users_; }
  Ns held_until() const { return held_until_; }  // busy, paused or suspended
  unsigned incarnation() const { return incarnation_; }
  unsigned ups() const { return ups_; }  // times that a master was told to be up
  bool told_connected(unsigned m) const { return told_[m] == REDLOCK_MASTER_UP || told_[m] == REDLOCK_MASTER_GUARDED; }
  bool closed() const { return closed_; }
  Instant last_turn() const { return last_turn_; }  // the latest reading of the clock in a turn
  Instant loop_began() const { return loop_began_; }  // the first reading of the clock in this run of the loop
  int64_t ahead() const { return ahead_; }            // of the client's clock over the perfect one
  // At t it has looked at this master's clock since that was stepped; and has said that it was stepped.
  bool knows(const Step& step, unsigned master, Ns t) const;
  bool noticed(const Step& step, unsigned master, Ns t) const;

  const Set& set() const;
  std::string boot_id() const;  // of its machine
  bool idle() const;            // it seldom wants anything
  unsigned masters() const { return set().masters; }
  unsigned quorum() const { return masters() / 2 + 1; }
  void turn_ended();     // for Turns, which finds it only when it is public
  Instant mover_time();  // as the shell of a mover reads it

  MachineClock& machine;

 private:
  friend struct ClockSource;
  friend class Turns<Process>;
  // the port's functions, for Turns
  Reading clock_reading();
  int64_t boot_ms() { return machine.at(tick(true)).boot / ms; }
  size_t fill_random(unsigned char* out, size_t size);
  void flush(MasterIndex m, Instant now);
  bool can_connect(MasterIndex m) const { return connections_[m] == nullptr; }
  void connect(MasterIndex m, Instant now);
  void close(MasterIndex m, int reason, bool polite, Instant now);
  void event(const Client::Event& event);
  bool arm(Instant deadline);
  void ended();

  // shell
  Instant input_time();
  std::string not_yet_seen(MasterIndex m, const Bytes* chunks, unsigned n) const;
  void watch_suspect(MasterIndex m, const Bytes* chunks, unsigned n);
  uint64_t open_rounds() const;
  uint64_t claims_asked(MasterIndex m) const;
  void watch_missing();
  void watch_instant(const User& user, const redlock_event_t& event);
  void watch_dead_rounds(MasterIndex m, uint64_t open, uint64_t asked);
  void poll(MasterIndex m);
  void read(MasterIndex m);
  uint64_t steps_counted(Instant now) const;
  void learn_step(const Connection& c, bool counted);
  void tell_proof(Instant now);
  void check_jump();
  void on_timer();
  void plan_wake();
  void call_close();
  void learn_ahead();
  Ns tick(bool may_preempt);

  // users
  static void on_event(redlock_t*, const redlock_event_t* event, void* user);
  void on_user_event(User& user, const redlock_event_t& event);
  void owner_knows(User& user, const redlock_event_t& event);
  void cancel(uint64_t handle);
  void act(User& user);
  bool keeps(const User& user) const;
  void ask(User& user);
  void work(User& user);
  void check(User& user);
  void let_go(User& user);
  void release_again(const User& user);
  void extend(User& user);
  void ended(User& user);
  void meddle(User& user);
  void abuse(User& user);

  MachineClock own_machine_;
  World& world_;
  unsigned index_;
  unsigned incarnation_ = 0;
  unsigned ups_ = 0;
  int told_[masters_max] = {};  // each master's state: enum redlock_master_state
  uint64_t loops_ = 0;
  Stream clock_random_;
  Stream user_random_;
  Stream wait_random_;
  Stream shell_random_;
  Stream entropy_;
  std::unique_ptr<char[]> memory_;
  Client* client_ = nullptr;
  Clock<ClockSource> clock_;
  char name_[8] = {};
  std::vector<User> users_;
  Connection* connections_[masters_max] = {};
  bool suspect_[masters_max] = {};   // since its bytes were last looked at
  size_t unsent_[masters_max] = {};  // of those
  struct Known {
    unsigned steps;
    Ns at;
    bool noticed;
  };
  Known known_[masters_max] = {};  // of the masters' clocks

  Ns t_ = 0;  // the process' own true time
  Ns boot_read_at_ = 0;
  int64_t ahead_ = 0;
  bool ahead_known_ = false;
  bool slept_since_learned() const { return machine.sleeps() != sleeps_known_; }
  unsigned sleeps_known_ = 0;  // machine.sleeps() when the clock began to learn what it knows
  bool exact_ = false;  // clock reads take no time
  Ns held_until_ = 0;
  Ns wake_at_ = never;
  Ns armed_boot_ = never;
  bool in_callback_ = false;
  bool jumped_ = false;  // the clock, and what followed is not all told
  bool jump_unchecked_ = false;
  bool closing_ = false;
  bool close_called_ = false;
  bool closed_ = false;
  Instant last_turn_;
  Instant loop_began_;
};

}  // namespace redlock::sim
