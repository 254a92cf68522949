// SPDX-License-Identifier: MIT
//
// Checker: what must never happen, looked for all the time.
//
// Exclusion. What the API says is believed: from ACQUIRED on, and at any check that says so, a lock is held until it is
// released or until its own machine's clock, perfectly observed, reaches the validity. LOST ends no belief, and nor
// does a release behind it: a thread that checked before may still work. A close does. Two beliefs in one resource
// never meet. Beliefs are compared when the world has reached the moment, since processes live a little ahead of it.
//
// Where masters' wall clocks are stepped, some are excused: see clocks.cpp.
//
// LOST before the validity is over is told only when the key is gone on so many masters that no quorum is left: not
// when masters are silent, and not while a SET is on its way.
//
// Tokens. One that is not flagged was never given before, and is larger than every one that was told before its acquire
// was asked for; demanded whatever clocks do, also where exclusion is not, as long as masters that lose their counters
// are guarded, and no floor was stored below the earlier one: those lean on clocks, and so does what is built upon
// them.
//
// Ghosts. In the quiet phase a key belongs to a claim of a lock that is being acquired or held, or goes soon: at once
// where the client knows of it, within the longest ttl after the last byte in any case.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/types.hpp"
#include "plan.hpp"

namespace redlock::sim {

class World;
class Process;
struct User;
struct Connection;

struct Belief {
  uint32_t client;
  uint32_t incarnation;
  uint64_t handle;
  unsigned resources;  // bits
  Ns asked_at;
  Ns from;
  Ns until;  // released, or its process died
  Instant valid_until;
  Instant hold_until;  // no extend carries the validity past it
  int64_t ahead;       // of the client's clock over the perfect one; the least seen
  bool over;           // the client knows that it has ended
  bool doubted;        // a check said no because the machine had slept: LOST follows
};

class Checker {
 public:
  explicit Checker(World& world);

  void acquired(unsigned client, const User& user, Ns t);
  void token_given(unsigned client, const User& user, const redlock_event_t& event, Ns t);
  void checked(unsigned client, const User& user, Ns t, Instant reading, Ns boot_read_at);
  void doubted(unsigned client, const User& user);
  bool published(unsigned client, const User& user, Instant valid_until, Ns t);
  void lost(unsigned client, const User& user, Ns t);
  void released(unsigned client, uint64_t handle, Ns t);
  void closes(unsigned client, Ns t);
  void looked(unsigned client, bool forward, Ns t);
  void over(unsigned client, uint64_t handle);
  void died(unsigned client, Ns t);
  void compare(unsigned client);  // now
  void master_forgot(unsigned master, Ns t) { lost_at_[master] = t; }
  void old_keys_come_back(unsigned master, Ns t) { old_keys_at_[master] = t; }
  Ns lost_at(unsigned master) const { return lost_at_[master]; }
  bool lost_since(unsigned master, Ns t) const { return lost_at_[master] >= t; }
  bool healthy_since(unsigned client, unsigned master, Ns t) const { return healthy_since_[client][master] <= t; }
  int maker_of(std::string_view value) const;
  void slow_bytes(const Connection& c, Ns arrive);
  void late_bytes(const Connection& c, Ns t);
  void sample();
  void closed(unsigned client, Process& process);
  void ended(unsigned client, const User& user, uint32_t rounds, Ns t);
  void waits(unsigned client, const User& user, const redlock_event_t& event);
  void failed(unsigned client, const User& user, const redlock_event_t& event, Ns t);

  struct Marks {
    unsigned debts = 0, claims = 0, rounds = 0, lost_early = 0;
    Ns gap = 0, orphan = 0;
  } marks;

 private:
  struct Orphan {
    std::string value;
    Ns since = never;
  };
  Belief* find(unsigned client, uint64_t handle);
  bool active(const Belief& belief, Ns t) const;
  bool excused(const Belief& one, const Belief& other, Ns t) const;
  void sample_process(unsigned client);
  void sample_look(unsigned client, unsigned master);
  void sample_forgotten(unsigned master);
  void sample_keys(unsigned master);
  void judge_orphan(unsigned master, unsigned resource, int owner);
  void sample_progress();
  void sample_move();
  Ns settled_at() const;
  bool has_old_keys(unsigned master) const;
  int owner_of(const std::string& value, bool& claimed) const;

  struct Token {
    unsigned resources;
    uint64_t token;
    Ns asked_at;
    Ns told_at;
  };

  World& world_;
  std::vector<Belief> beliefs_;
  std::vector<Token> tokens_;
  Ns lost_at_[masters_max];      // the last time that a master forgot something
  Ns old_keys_at_[masters_max];  // the last time that it came back with keys that were gone
  Orphan orphans_[masters_max][resources_max];
  Ns healthy_since_[clients_max][masters_max];
  Ns slow_until_[clients_max][masters_max];  // then all bytes have arrived that a fault held up
  Ns late_at_[clients_max][masters_max];
  Ns too_late_at_[clients_max][masters_max];  // no delete of a debt follows any more
  Ns late_bound_[clients_max][masters_max] = {};
  Ns nobody_since_[resources_max];
  Ns late_limit_;
};

}  // namespace redlock::sim
