// SPDX-License-Identifier: MIT
//
// World: the parts of one seed put together, and its events in order until the end or a violation.
#pragma once
#include <memory>

#include "checker.hpp"
#include "master.hpp"
#include "mover.hpp"
#include "network.hpp"
#include "operator.hpp"
#include "plan.hpp"
#include "process.hpp"
#include "proof_run.hpp"
#include "story.hpp"
#include "witness.hpp"

namespace redlock::sim {

struct Violation {
  bool found = false;
  Ns at = 0;
  Ns since = 0;          // where its story begins
  uint32_t clients = 0;  // bits
  std::string text;
};

struct Totals {
  uint64_t seeds = 0;
  uint64_t events = 0;
  uint64_t grants = 0;
  uint64_t lost_early = 0;  // locks, where that is judged
  uint64_t simulated_ms = 0;
  uint64_t exclusive = 0;  // seeds in which exclusion was demanded
  uint64_t moves = 0;      // changes of masters that ended with success
  uint64_t follows = 0;    // clients that went on with the set they were left behind for
  uint64_t proof_runs = 0;  // seeds that were taken as a run of the proof
  uint64_t taken[proof_steps] = {};
  uint64_t faults[fault_count] = {};
  uint64_t debts_max = 0, claims_max = 0, rounds_max = 0, gap_max_ms = 0, orphan_max_ms = 0, in_flight_max = 0;
  void add(const Totals& more);
};

class World {
 public:
  enum class Judge { witness, proof_too };
  World(uint64_t seed, Worlds worlds, Story& story, Judge judge = Judge::witness);
  void run();

  uint64_t seed() const { return seed_; }
  const Plan& plan() const { return plan_; }
  Ns now() const { return now_; }
  bool quiet() const { return quiet_; }
  bool closing() const { return closing_; }
  // Is this class of faults part of the seed, and the phase?
  bool on(Fault fault) const { return !quiet_ && plan_.has(fault); }
  // A fault that begins at t lasts no longer than into the first moments of the quiet phase.
  Ns clip(Ns t, Ns length) const { return std::max(1 * ms, std::min(length, plan_.quiet_at + 200 * ms - t)); }
  void count(Fault fault) { ++totals.faults[static_cast<unsigned>(fault)]; }

  Heap& heap() { return heap_; }
  Story& story() { return story_; }
  Network& network() { return *network_; }
  Checker& checker() { return *checker_; }
  Witness& witness() { return *witness_; }
  ProofRun* proof_run() { return proof_run_.get(); }  // nullptr: none is made of this seed
  Master& master(unsigned m) { return *masters_[m]; }
  Process& process(unsigned c) { return *processes_[c]; }

  void granted(unsigned client, Ns t);   // faults like to come right after
  void sent(const Connection& c, Ns t);  // and right after a request
  void freeze_later(unsigned master, Ns at, Ns until);
  void violate(Ns since, uint32_t clients, const char* format, ...) __attribute__((format(printf, 4, 5)));
  const Violation& violation() const { return violation_; }
  void tell_master(unsigned m, const char* text);

  // Worlds::moves
  Mover& mover(unsigned i) { return *movers_[i]; }
  void set_half(unsigned mover, unsigned from, unsigned to);
  void begin_move(unsigned mover);
  void passed(unsigned to);  // a call has looked again with success
  void reached(const Mover& mover, Reconfiguration::Stage stage);
  void come_back(unsigned master, Ns then);  // as it was then
  void delete_record(unsigned master);
  void moved(const Mover& mover, int result);
  void begin_last();
  void left_behind(unsigned client, Ns t);  // an acquire has failed with LEFT
  void hurt_write(unsigned mover, unsigned half);
  Ns moved_at() const { return moved_at_; }
  Ns ended_at() const { return std::max(ended_at_, operator_->ended_at()); }  // gateways, by hand
  unsigned last_set() const { return plan_.operated ? operator_->home() : plan_.back || plan_.third ? 0 : 1; }
  bool may_run(unsigned client) const;

  Totals totals;
  // The counters of all resources stand beyond what a double can count.
  bool has_large_tokens() const { return plan_.fenced && seed_ % 2 == 0; }

 private:
  void handle(const Event& event);
  Mover& mover_of(unsigned process) { return *movers_[(process - plan_.clients) / 2]; }
  void next_fault();
  void aimed_fault(unsigned client);
  void cause_one(unsigned client);
  void at_client(Fault fault, unsigned client, unsigned master);
  void at_connection(Fault fault, unsigned client, unsigned master, Ns length);
  void at_master(Fault fault, unsigned master);
  void refuse(Fault fault, unsigned master);
  void step_clock(unsigned master);
  bool all_know_the_clocks() const;
  void kill_some(unsigned master);
  void freeze(unsigned master, Ns length);
  void reset(Connection& c);
  void slew(unsigned client, int64_t ppm);
  void expire_actively();
  void save_some();
  void seal_all();
  bool may_forget(unsigned master) const;
  void start_moves();
  void start_clients(unsigned set);
  void start_anew_by_hand();
  void tried_last(int result);
  void settle();
  bool was_left(unsigned set) const;
  void follow(unsigned client);
  bool never_started(unsigned client) const;
  void at_mover(Fault fault, unsigned mover, unsigned master, Ns length);
  static void put_tokens(test::RedisDouble& redis, const std::string& seal);
  void become_quiet();
  void close_all();
  bool all_closed();

  uint64_t seed_;
  Plan plan_;
  Story& story_;
  Heap heap_;
  Stream random_;
  Stream saves_;
  Ns now_ = 0;
  bool quiet_ = false;
  bool closing_ = false;
  Violation violation_;
  std::unique_ptr<Network> network_;
  std::unique_ptr<Checker> checker_;
  std::unique_ptr<Witness> witness_;
  std::unique_ptr<ProofRun> proof_run_;
  std::vector<std::unique_ptr<Master>> masters_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::unique_ptr<Mover> movers_[movers_max];
  std::unique_ptr<Operator> operator_;
  unsigned home_ = 0;       // the set that the last call to look again goes to
  unsigned begun_ = 1;      // bits of sets whose clients may have started
  unsigned tried_ = 0;      // calls of the quiet phase
  unsigned refused_ = 0;    // of those that found a third configuration
  unsigned disturbed_ = 0;  // of those that found a mark
  Ns ended_at_ = -never;
  uint32_t retired_ = 0;  // bits of clients that do not start again
  Ns moved_at_ = never;   // for the last time
};

}  // namespace redlock::sim
