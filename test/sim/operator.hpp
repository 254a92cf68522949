// SPDX-License-Identifier: MIT
//
// Operator: in half of Worlds::moves somebody works by the rules of redlock/site.h, and so masters may come back as
// they were at any earlier instant: with the keys, the counters and the record of then.
//
//  - Gateways of a set start when a call has taken the site to this set, and not before. Those of the other set are
//    ended some time later. Then the next change may begin: back, or to a third set.
//  - A call that fails or dies is repeated or undone, by one operator or by two at one time, until a call succeeds.
//    What an earlier call reports behind the success of one that began later counts for nothing.
//  - No master of the old set comes back from the third look of a call on until its success is known, and none of
//    either set while gateways of both run. At any other time any may, also those of a set that was left, one or as
//    many as the set has: behind the marks, during the wait, behind the second look, before the next change.
//  - A record that belongs to neither set of a change is deleted by hand, when the gateways of all other sets have
//    ended for as long as their longest lock.
#pragma once
#include "heap.hpp"
#include "random.hpp"
#include "site/reconfiguration.hpp"

namespace redlock::sim {

class World;
class Mover;

class Operator {
 public:
  explicit Operator(World& world);

  bool runs(unsigned set) const { return (running_ >> set & 1) != 0; }
  unsigned home() const { return home_; }  // the set that the gateways are to have
  Ns ended_at() const { return ended_at_; }  // gateways of a set that was left
  bool may_come_back(unsigned master) const;
  void begin(unsigned mover);                                           // the next call
  void reached(const Mover& mover, Reconfiguration::Stage stage);       // a call has, and masters come back
  void ended(const Mover& mover, int result);                           // a call has
  void retire(unsigned set, unsigned decision);
  void come_back(unsigned set, Ns then);  // 0: at any instant
  void begin_last();  // of the quiet phase, all is well: what is open is undone
  bool ended_last(int result);  // true: nothing is left to do

 private:
  static constexpr unsigned none = ~0u;

  bool under_way() const;
  bool open() const { return other_ != none && (under_way() || !known_ || running_ != 1u << home_); }
  bool may_delete() const;
  void succeed(unsigned from, unsigned to);
  void delete_foreign_records();
  void come_back_at(Ns t, unsigned set, Ns then = 0);

  World& world_;
  Stream random_;
  unsigned home_ = 0;
  unsigned other_ = none;     // the change is between home_ and this set
  unsigned running_ = 1;      // bits of sets whose gateways run
  bool known_ = true;         // which of the two sets the site has
  unsigned decisions_ = 0;
  Ns success_began_at_ = -1;  // the last call that succeeded
  Ns ended_at_ = 0;           // the last gateway of another set
  bool refused_ = false;      // a call, for a record of neither set
  unsigned tries_ = 0;        // of the quiet phase
};

}  // namespace redlock::sim
