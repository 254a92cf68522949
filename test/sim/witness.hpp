// SPDX-License-Identifier: MIT
//
// Witness: what the masters really did, held against what the clients say. It stands beside every master and sees each
// command and what came of it, which no client does. It takes nothing from the code under test: what a client holds is
// what its events said, and bounds are computed here from the configuration.
//
// Votes. No event counts more masters that granted, or that refused, than have done so since the acquire was asked for;
// and in the quiet phase a master that is well is not told as one that failed.
//
// Keys. Whenever a validity is published, a quorum of masters has the lock's value, and keeps it until that end.
// Masters that have lost something since, or whose clock is not what it should be, may have had it.
//
// Expiry. No extend makes a key, or shortens the life of one.
//
// Counters. A master answers no smaller number than it stored last, until it loses something.
//
// Floors. A token that was stored although fewer than a quorum of counters answered as known leans on wall clocks,
// whether the attempt was won or not.
//
// Seals. The longest ttl lies between what a master forgot and the seal of its new state.
//
// Records. The guard writes one only over what was read, and the record then says what was to be written.
//
// Order. What a client has asked to delete it does not ask for again: nothing about the value follows on that
// connection.
#pragma once
#include <string>
#include <vector>

#include "base/types.hpp"
#include "plan.hpp"
#include "support/redis_double.hpp"

struct redlock_event_s;

namespace redlock::sim {

class World;
struct Connection;
struct User;

class Witness {
 public:
  explicit Witness(World& world);

  void executed(Connection& c, test::Request args, const test::Reply& reply, Ns t);
  void counted(unsigned client, const User& user, const redlock_event_s& event);
  void published(unsigned client, const User& user, Instant valid_until, Ns t);
  // Was a floor stored after t that is below this token? Then later ones may be, too.
  bool floored_below(unsigned resources, uint64_t token, Ns t) const;
  // Worlds::moves (moves.cpp)
  void learn_sets();
  void look_at_record(unsigned master, Ns t);  // it may have changed
  std::string field_of(unsigned master, const char* name, Ns t) const;  // of its record; "": none
  const std::string& name_of(unsigned set) const { return desc_[set]; }
  unsigned have_left(unsigned from, unsigned to, Ns t) const;  // masters that record the finished change between these
  unsigned have_said(unsigned set, Ns since) const;  // masters whose record was of the set at any time since then

 private:
  struct Floor {
    unsigned resources;  // bits
    uint64_t token;
    Ns at;
  };
  struct Stored {
    uint64_t number = 0;
    Ns at = -never;
  };
  struct Attempt {
    std::string value;
    unsigned known = 0;  // masters that acknowledged, or know their counter
  };
  struct Record {
    std::string desc, q;
    Ns at = -never;  // behind the last script that may have written it; -never: not known
  };
  void sealed(const Connection& c, Ns t) const;
  void wrote_record(const Connection& c, test::Request args, const test::Reply& reply, Ns t);
  Attempt& attempt(unsigned client, std::string_view value);
  void counter_said(const Connection& c, unsigned resource, const test::Reply& reply, Ns t);
  void extended(const Connection& c, unsigned resource, std::string_view value, Ns t);
  std::string value_on(unsigned master, unsigned resources, Ns until) const;
  bool all_well(unsigned client, Ns since) const;

  struct Vote {
    unsigned client, master;
    std::string value;
  };
  void voted(const Connection& c, std::string_view value, Ns t);
  void judge_votes(unsigned client, const User& user, std::string_view value);
  Ns admitted_until(unsigned client, unsigned master) const;

  World& world_;
  Ns granted_at_[clients_max][masters_max];  // the last time that a SET of this client was
  Ns refused_at_[clients_max][masters_max];
  std::vector<Attempt> attempts_[clients_max];  // the last ones that came to a master
  unsigned next_attempt_[clients_max] = {};
  std::vector<Floor> floors_;
  Stored stored_[masters_max][resources_max];
  Record record_[masters_max];
  struct Seen {
    std::string value;
    int64_t when_ms = 0;
  };
  Seen seen_[masters_max][resources_max];  // behind the last command about it; empty: no key
  Ns seen_at_[masters_max][resources_max] = {};
  std::string meta_, desc_[sets_max];   // the record's key, and how each set is named there
  Ns served_until_[sets_max][masters_max] = {};  // each set by each master; never: now
  Ns said_until_[sets_max][masters_max] = {};    // the same, sealed or not
  std::vector<Vote> votes_;             // of masters that served the client's set
};

}  // namespace redlock::sim
