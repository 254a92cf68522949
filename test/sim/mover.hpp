// SPDX-License-Identifier: MIT
//
// Mover: a maintenance program that calls redlock_reconfigure(). Two processes of one machine, each a client of one set
// without a guard of its own, and the shipping Reconfiguration over them; it takes the steps of
// src/site/reconfigure.cpp. The two are one thread: while one is busy, so is the other. When a call has ended, or its
// process has died, another process begins anew some time later, on this machine or another. There are two movers: two
// calls may live at one time.
//
// A call that ends closes its connections politely; what redlock_close() does beside that is about locks, and it has
// none.
#pragma once
#include <optional>

#include "process.hpp"
#include "site/reconfiguration.hpp"

namespace redlock::sim {

class Mover {
 public:
  Mover(World& world, unsigned index, Process& one, Process& other);

  void begin(unsigned from, unsigned to);  // the next call: sets
  void start(unsigned half);
  void looped(unsigned half);  // its loop has run
  void die(bool politely);
  void hold(Ns until);
  bool under_way() const { return under_way_; }
  Ns began_at() const { return began_at_; }
  Ns checked_at() const { return checked_at_; }
  unsigned from() const { return from_; }
  unsigned to() const { return to_; }
  // From its second look on it takes the old set for left.
  bool looks_again() const { return change_ && change_->stage() >= Reconfiguration::Stage::again; }
  bool has_looked_again_at_the_old() const { return change_ && change_->stage() >= Reconfiguration::Stage::check; }
  bool busy(Ns t) const { return t < halves_[0]->held_until(); }
  Process& half(unsigned which) { return *halves_[which]; }
  Ns between() const;  // how long it waits, by its own clock
  // It ends within this, by the slowest clock, when every master is well.
  Ns bound() const;  // of the one under way

 private:
  void step();
  void reached(Reconfiguration::Stage stage);
  void hold_together();
  void tell(const char* text);
  void finish();

  World& world_;
  unsigned index_;
  Process* halves_[2];  // of the old set of the call under way, and of the new one
  Stream random_;
  bool under_way_ = false;
  Ns began_at_ = never;
  Ns checked_at_ = never;  // began to look what came of it
  unsigned from_ = 0, to_ = 1;
  Reconfiguration::Stage told_ = Reconfiguration::Stage::look;
  uint64_t jumps_ = 0;
  uint64_t loops_[2] = {};
  bool flushes_[2] = {};  // a half's next loop only sends what was asked for: uv_run() has not returned
  std::optional<Reconfiguration> change_;
};

}  // namespace redlock::sim
