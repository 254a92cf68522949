// SPDX-License-Identifier: MIT
//
// Plan: what a seed's world is made of, drawn before it starts.
#pragma once
#include "heap.hpp"
#include "random.hpp"
#include "settings.hpp"

namespace redlock::sim {

constexpr unsigned masters_max = 6;
constexpr unsigned list_max = 5;  // masters of one configuration
constexpr unsigned clients_max = 6;
constexpr unsigned resources_max = 3;
constexpr unsigned users_max = 3;  // per client
constexpr Ns settled_after = 2200 * ms;  // of the quiet phase: every connection is up again

#define REDLOCK_SIM_FAULTS(X)                                                        \
  X(tail, "long delays")                                                             \
  X(split, "reads cut anywhere")                                                     \
  X(stall, "a connection stands still")                                              \
  X(reset, "a connection is reset")                                                  \
  X(late, "bytes arrive long after their connection was closed")                     \
  X(partition, "no way from a client to a master, or back")                          \
  X(partial_write, "writes accept a part")                                           \
  X(pause, "a client is stopped")                                                    \
  X(suspend, "a client's machine is suspended")                                      \
  X(crash, "a client dies and is started again")                                     \
  X(slow_callback, "a callback takes long")                                          \
  X(preempt, "preempted between two reads of the clock")                             \
  X(slew, "a client's system clock is slewed")                                       \
  X(freeze, "a master stands still")                                                 \
  X(restart, "a master restarts with its keys")                                      \
  X(loading, "a master loads its data")                                              \
  X(errors, "a master refuses: memory, disk, replicas, a long script, any error")    \
  X(garbage, "a master answers nonsense")                                            \
  X(script_flush, "a master forgets its scripts")                                    \
  X(kill, "a master closes a connection")                                            \
  X(role, "a master is a replica for a while")                                       \
  X(max_clients, "a master accepts nobody")                                          \
  X(wall_freeze, "a master's wall clock stands still")                               \
  /* Beyond what the algorithm assumes without the guard: */                           \
  X(forget, "a master restarts without its keys, or with old ones")                  \
  X(flushall, "FLUSHALL")                                                            \
  /* Beyond what anybody promises: */                                                \
  X(evict, "a key is evicted")                                                       \
  X(wall_step, "a master's wall clock is stepped")                                   \
  X(wall_slew, "a master's wall clock is slewed")

enum class Fault : unsigned {
#define REDLOCK_SIM_FAULT(name, text) name,
  REDLOCK_SIM_FAULTS(REDLOCK_SIM_FAULT)
#undef REDLOCK_SIM_FAULT
      count
};
constexpr unsigned fault_count = static_cast<unsigned>(Fault::count);
constexpr unsigned first_beyond = static_cast<unsigned>(Fault::forget);
constexpr unsigned first_hopeless = static_cast<unsigned>(Fault::evict);
const char* fault_name(Fault fault);
const char* fault_text(Fault fault);

// Which worlds are drawn. Clocks: guarded ones in which masters' wall clocks are stepped, far and one at a time, and
// exclusion is demanded all the same of those who have looked at them since. Moves: guarded ones with two sets of masters,
// where a maintenance program takes the site from the one to the other (moves.cpp).
enum class Worlds { swarm, every_fault, clocks, moves };

// Masters as a configuration lists them.
struct Set {
  unsigned masters;
  unsigned server[list_max];  // behind each of the list: one may stand there twice
  uint32_t max_ttl_ms;

  int place_of(unsigned master) const {  // -1: not in the list
    for (unsigned m = 0; m < masters; ++m) {
      if (server[m] == master) return static_cast<int>(m);
    }
    return -1;
  }
};

struct Plan {
  unsigned masters;  // that there are
  unsigned clients;  // that lock; in Worlds::moves the maintenance program's two stand behind them
  unsigned resources;
  unsigned users[clients_max];  // how many locks each client wants at one time
  uint32_t faults;              // bits of Fault
  Ns fault_gap;                 // mean time between two faults
  Ns quiet_at;
  Ns close_at;
  Ns give_up_at;
  uint32_t ttl_ms[2];
  uint32_t ttl_max_ms;
  bool sealed;           // the site has been watched before
  Set sets[2];                 // the old masters and the new ones; or all that there are
  unsigned set_of[clients_max];
  uint32_t wait_choice;  // how patient the users are
  uint32_t think_ms;
  Ns delay;  // ordinary delay on a connection, one way
  bool ring; // three clients, each nearest to another of three masters, all in step: only jitter lets one of them win
  int64_t client_ppm[clients_max];
  int64_t suspended_ppm[clients_max];
  int64_t master_ppm[masters_max];
  uint32_t untracked;         // bits of masters that refuse CLIENT TRACKING
  uint32_t expires_actively;  // bits of masters that find expired keys by themselves
  Settings settings;  // of every client; names are filled in by the client

  bool has(Fault fault) const { return faults >> static_cast<unsigned>(fault) & 1; }
  // Exclusion is not demanded.
  bool beyond() const { return !clocks && !moves && faults >> (guarded() ? first_hopeless : first_beyond) != 0; }
  bool fenced;  // every lock comes with a token
  bool several; // some want more than one resource at once
  bool clocks;  // Worlds::clocks
  bool moves;   // Worlds::moves
  bool early;   // clients of the new set may run before the change
  bool undone;  // the opposite change may be made
  bool back;    // it is what remains in the end
  Ns last_at;   // the last change begins, or later
  bool guarded() const { return settings.guard != GuardMode::off; }
  // The longest that a state may have to be watched, by the slowest clock, once everything is well.
  Ns guard_time() const { return guarded() ? settings.max_ttl_ms * ms * 1021 / 1000 + 600 * ms : 0; }
};

Plan draw_plan(uint64_t seed, Worlds worlds);
int64_t draw_rate(Stream& random);
void make_moves(uint64_t seed, Plan& plan);
// Of a client; its name is not there yet.
Settings settings_of(const Plan& plan, unsigned client);

}  // namespace redlock::sim
