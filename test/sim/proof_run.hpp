// SPDX-License-Identifier: MIT
//
// ProofRun: what the simulator tells, taken as a run of the proof (test/nightly/proof). Each command that a master
// executes, each round, vote and validity of a client is a step. Its conditions are looked at, and the statements that
// it may break. A condition that the code does not keep, or a statement that does not hold, is a violation of the seed.
//
// The clients' tables tell t0, validities and votes. The masters tell who forgot something, who is quiet since when,
// and until when a key lives by the master's own clock.
//
// The names of steps and statements, and how many conditions a step has, are those of the proof: prove.py compares
// them. Not seen here: a step that no command of a client and no fault of the simulator makes by itself, such as a key
// that expires.
#pragma once
#include <array>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/time.hpp"
#include "base/types.hpp"
#include "plan.hpp"
#include "support/redis_double.hpp"

namespace redlock {
struct Lock;
struct Claim;
}

namespace redlock::sim {

class World;
class Process;
struct Connection;

// name, conditions that the proof has, which can fail here. The others are kept by the simulated
// server, or the step is told only where they hold.
#define REDLOCK_PROOF_STEPS(X)                                    \
  X(begin, "begin", 3, "3")                                       \
  X(extend_round, "extend round", 4, "124")                       \
  X(heard, "a vote is heard", 1, "1")                             \
  X(win, "win", 5, "2345")                                        \
  X(set_by_script, "SET by a script", 4, "123")                   \
  X(set_plain, "SET, plain", 4, "13")                             \
  X(set_uncounted, "SET, plain, uncounted", 3, "1")               \
  X(put_back, "put back", 3, "12")                                \
  X(extend, "extend", 5, "123")                                   \
  X(extend_plain, "extend, plain", 5, "13")                       \
  X(extend_uncounted, "extend, uncounted", 3, "1")                \
  X(remove, "delete", 3, "2")                                     \
  X(end, "end", 1, "")                                            \
  X(check_fails, "a check fails", 2, "")                          \
  X(forget, "FLUSHALL", 1, "")                                    \
  X(restart, "restart", 4, "")                                    \
  X(replica, "becomes a replica by a full resync", 4, "")         \
  X(promoted, "is promoted", 2, "")                               \
  X(followed_in_vain, "has followed in vain", 2, "")              \
  X(quarantine, "a quarantine id is written", 2, "12")            \
  X(reading, "a reading", 1, "")                                  \
  X(seal, "a seal is written", 5, "1345")                         \
  X(plain_reading, "a reading: sealed, alone, tracked", 3, "")

// name
#define REDLOCK_PROOF_STATEMENTS(X)                                           \
  X(one_holder, "one holder")                                                 \
  X(over_is_over, "over is over")                                             \
  X(holder_has_promises, "a holder has promises")                             \
  X(promise_is_kept, "a promise is kept")                                     \
  X(one_promise, "one promise")                                               \
  X(promise_has_bound, "a promise has a bound")                               \
  X(counts_from_before, "a round counts from before its first byte")          \
  X(has_begun, "what has not begun has nothing")                              \
  X(quiet_since_loss, "a seal that fits is old: loss")                        \
  X(quiet_since_change, "a seal that fits is old: change")                    \
  X(plain_is_quiet, "plain commands rest on a quiet master")

enum class ProofStatement : unsigned {
#define REDLOCK_PROOF_STATEMENT(id, name) id,
  REDLOCK_PROOF_STATEMENTS(REDLOCK_PROOF_STATEMENT)
#undef REDLOCK_PROOF_STATEMENT
};

enum class ProofStep : unsigned {
#define REDLOCK_PROOF_STEP(id, name, conditions, looked) id,
  REDLOCK_PROOF_STEPS(REDLOCK_PROOF_STEP)
#undef REDLOCK_PROOF_STEP
      count
};
constexpr unsigned proof_steps = static_cast<unsigned>(ProofStep::count);
const char* proof_step_name(unsigned step);

class ProofRun {
 public:
  explicit ProofRun(World& world);

  // Is the plan one that the proof speaks of? Full guard, not commissioned; no other set of masters;
  // nothing that nobody promises.
  static bool speaks_of(const Plan& plan);

  void meet(const Process& process, unsigned client);  // attempts that may end before anything of them leaves
  void look(const Process& process, unsigned client, Instant now, Ns t);  // at its table of locks
  void executed(const Connection& c, test::Request args, const test::Reply& reply, Ns t);
  void visited(unsigned master, Ns t);  // by a machine that is not simulated: it has read the state, too
  void released(unsigned client, uint64_t handle);
  void closes(unsigned client);
  void checked(unsigned client, uint64_t handle, bool held, Ns t);
  void died(unsigned client);

  std::array<uint64_t, proof_steps> steps = {};

 private:
  struct Attempt {  // one acquire round, and the extend rounds of the lock that it won
    std::string value;
    unsigned client = 0;
    unsigned resources = 0;  // bits
    uint16_t claim = 0, slot = 0;
    uint64_t number = 0;  // the slot's generation
    uint32_t rounds = 0;
    bool won = false, ended = false, expired = false, released = false;
    bool let_go = false;  // the lock has another claim, or none; this claim may linger
    // Of its present round; by its client's clock, where nothing else is said.
    uint32_t round = 0;
    Ns began = 0;  // true time
    uint32_t ttl_ms = 0;
    Ns t0 = 0, validity = 0, valid_until = 0;
    int64_t ahead = 0;                 // of its client's clock over the machine's
    unsigned executed = 0, heard = 0;  // bits of masters: votes of the present round
    Ns promise[masters_max] = {};
    Ns promised_at[masters_max] = {};  // true time
  };
  struct Read {
    Ns at = 0;
    unsigned incarnation = 0;  // of the client; 0: it has not read the state
  };
  struct Server {
    std::string run_id, replid;
    bool replica = false, copied = false;  // it has copied something since it follows another server
    Ns changed = -never, lost = -never;
    std::map<std::string, std::array<Read, clients_max>> reads;  // the first of each state
  };
  struct Plain {  // the last reading that allows plain commands
    Ns since = -never;
    bool may = false;
  };

  void take(ProofStep step) { ++steps[static_cast<unsigned>(step)]; }
  void need(bool holds, unsigned client, ProofStep step, unsigned condition, Ns t);
  void state(bool holds, unsigned client, ProofStatement statement, Ns t);
  Ns clock(unsigned client, int64_t ahead, Ns t) const;
  Ns clock(const Attempt& a, Ns t) const { return clock(a.client, a.ahead, t); }
  bool is_judged(unsigned master) const;
  Attempt* find(std::string_view value);

  Attempt* meet(const Process& process, unsigned client, uint16_t slot);
  void begin(Attempt& a, unsigned client, const Claim& claim, const Lock& lock);
  void learn(Attempt& a, const Process& process, const Lock& lock, Ns now, Ns t);
  bool excused(const Attempt& a, const Attempt& b) const;
  void begin_round(Attempt& a, const Process& process, const Lock& lock, Ns now, Ns t);
  void hear(Attempt& a, const Process& process, const Lock& lock, Ns t);
  void win(Attempt& a, const Process& process, const Lock& lock, Ns now, Ns t);
  void judge_promises(const Attempt& a, const Process& process, Ns t);
  void find_ended(const Process& process, unsigned client, Ns now, Ns t);

  // proof_run_masters.cpp
  void look_at_server(unsigned m, Ns t);
  std::string field(unsigned m, const char* name, Ns t) const;
  std::string identity(unsigned m) const;
  bool fits(unsigned m, Ns t) const;
  bool keeps(const Attempt& a, unsigned m, Ns until, Ns t) const;
  void wrote(const Connection& c, std::string_view value, bool plain, Ns t);
  void extended(const Connection& c, std::string_view value, uint32_t ttl_ms, bool plain, Ns t);
  void deleted(const Connection& c, std::string_view value, Ns t);
  void promise(Attempt& a, unsigned m, Ns t);
  bool may_be_plain(const Connection& c, Ns t) const;
  void votes_by_script(const Connection& c, ProofStep step, Ns t);
  void votes_plainly(const Connection& c, ProofStep step, Ns t);
  void read(const Connection& c, Ns t);
  void recorded(const Connection& c, test::Request args, Ns t);
  bool watched(const Connection& c, const std::string& state, Ns t) const;

  World& world_;
  Ns longest_;  // validity
  Ns guard_;    // time
  std::unordered_map<std::string, Attempt> attempts_;
  std::vector<Attempt*> open_;  // those that have not ended
  std::array<std::array<Attempt*, users_max>, clients_max> known_ = {};  // the last of each slot of a table
  std::array<Server, masters_max> servers_;
  std::map<uint32_t, Plain> plain_;  // by connection: a client may name one server twice
  std::map<std::string, Ns> first_read_;  // of each state, by any client
  std::set<std::string> quarantines_;  // ids that were made
};

}  // namespace redlock::sim
