// SPDX-License-Identifier: MIT
//
// Plan: what a seed's world is made of, drawn before it starts.
#pragma once
#include <algorithm>
#include <array>

#include "base/settings.hpp"
#include "heap.hpp"
#include "random.hpp"

namespace redlock::sim {

constexpr unsigned masters_max = 7;
constexpr unsigned list_max = 7;  // masters of one configuration
constexpr unsigned lockers_max = 6;  // clients that lock
constexpr unsigned movers_max = 2;
constexpr unsigned clients_max = 8;  // processes: those that lock, and in Worlds::moves two for each mover
constexpr unsigned sets_max = 3;
constexpr unsigned resources_max = 32;
constexpr unsigned users_max = 32;  // per client, in a world with Plan::many
constexpr unsigned usual_users = 3;  // at most, in any other
constexpr Ns settled_after = 2200 * ms;  // of the quiet phase: every connection is up again

// for (unsigned r : each(resources)): the resources of a set, which is kept as bits.
struct each {
  struct Iterator {
    unsigned rest;
    constexpr unsigned operator*() const { return static_cast<unsigned>(__builtin_ctz(rest)); }
    constexpr Iterator& operator++() {
      rest &= rest - 1;
      return *this;
    }
    friend constexpr bool operator!=(Iterator a, Iterator b) { return a.rest != b.rest; }
  };
  constexpr explicit each(unsigned resources) : bits(resources) {}
  constexpr Iterator begin() const { return {bits}; }
  constexpr Iterator end() const { return {0}; }
  unsigned bits;
};

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
  X(acl, "permissions are taken away for a while")                                   \
  X(overflow, "a master forgets which keys are tracked")                             \
  X(clone, "a clone of a client's machine leaves a visit")                           \
  /* Beyond what the algorithm assumes without the guard: */                           \
  X(forget, "a master restarts without its keys, or with old ones")                  \
  X(flushall, "FLUSHALL")                                                            \
  X(resync, "a master takes over its replica's data")                                \
  /* Beyond what anybody promises: */                                                \
  X(evict, "a key is evicted")                                                       \
  X(wall_step, "a master's wall clock is stepped")                                   \
  X(wall_slew, "a master's wall clock is slewed")                                    \
  /* Worlds::moves, where an operator sees to the rest (operator.cpp): */            \
  X(come_back, "a master comes back as it was")

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

// The name of a resource: r0, r1 and so on, two bytes each.
constexpr size_t name_size = 2;
inline const char* resource_name(unsigned resource) {
  static const auto names = [] {
    std::array<char[name_size + 1], resources_max> all = {};
    for (unsigned r = 0; r < resources_max; ++r) all[r][0] = 'r', all[r][1] = static_cast<char>('0' + r);
    return all;
  }();
  return names[resource];
}

// Which worlds are drawn. Clocks: guarded ones in which masters' wall clocks are stepped, far and one at a time, and
// exclusion is demanded all the same of those who have looked at them since. Moves: guarded ones with two or three sets
// of masters, where maintenance programs take the site from the one to the other (moves.cpp).
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

// The longest time that a client may lock by what it has read of a master: a third of max_ttl, and at least a second.
constexpr Ns reading_age(uint32_t max_ttl_ms) { return std::max<Ns>(Ns{max_ttl_ms} * ms / 3, 1 * second); }

struct Plan {
  unsigned masters;  // that there are
  unsigned clients;  // that lock; in Worlds::moves those of the maintenance programs stand behind them
  unsigned resources;
  unsigned users[clients_max];  // how many locks each client wants at one time
  uint64_t faults;              // bits of Fault
  Ns fault_gap;                 // mean time between two faults
  Ns quiet_at;
  Ns close_at;
  Ns give_up_at;
  uint32_t ttl_ms[2];
  uint32_t ttl_max_ms;
  bool sealed;           // the site has been watched before
  Set sets[sets_max];          // the old masters, the new ones and others; or all that there are
  unsigned set_of[clients_max];  // of a mover's: during a call
  uint32_t wait_choice;  // how patient the users are
  uint32_t think_ms;
  Ns delay;  // ordinary delay on a connection, one way
  bool many; // the first client asks for users_max locks in one turn and keeps them, while masters lose their keys
  bool ring; // three clients, each nearest to another of three masters, all in step: only jitter lets one of them win
  int64_t client_ppm[clients_max];
  int64_t suspended_ppm[clients_max];
  int64_t master_ppm[masters_max];
  uint32_t untracked;         // bits of masters that refuse CLIENT TRACKING
  uint32_t replicated;        // bits of masters that have a replica
  uint32_t detached;          // bits of those whose replica is away
  uint32_t nameless;          // bits of masters that refuse INFO, for clients whose guard is weak
  uint32_t idle;              // bits of clients that seldom want anything
  bool one_boot_id;           // all machines have drawn the same, and were started at different times
  bool commissioned;          // the first client states that nothing is held, before any client has locked
  uint32_t expires_actively;  // bits of masters that find expired keys by themselves
  Settings settings;  // of every client; names are filled in by the client

  bool has(Fault fault) const { return faults >> static_cast<unsigned>(fault) & 1; }
  bool forgets() const { return has(Fault::forget) || has(Fault::flushall) || has(Fault::resync); }
  // Exclusion is not demanded.
  bool beyond() const { return !clocks && !moves && faults >> (guarded() ? first_hopeless : first_beyond) != 0; }
  bool fenced;  // every lock comes with a token
  bool endless; // the first user of each client asks again as soon as it has let go
  bool several; // some want more than one resource at once
  bool clocks;  // Worlds::clocks
  bool moves;   // Worlds::moves
  bool early;   // clients of the new set may run before the change
  bool undone;  // the opposite change may be made
  bool back;    // it is what remains in the end
  bool third;   // there are changes to a third set, too
  bool operated;  // an operator starts and ends the gateways, and masters come back as they were (operator.cpp)
  bool holds;     // the first user of each client holds on
  bool follows;   // who was left behind goes on with the set of the finished change that its masters record
  unsigned movers;
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
