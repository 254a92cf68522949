// SPDX-License-Identifier: MIT
//
// Mover: the maintenance program that calls redlock_reconfigure(). Two processes of one machine, each a client of one set
// without a guard of its own, and the shipping Reconfiguration over them; it takes the steps of src/c_api/reconfigure.cpp.
// The two are one thread: while one is busy, so is the other. When a call has ended, or its process has died, another
// process begins anew some time later, on this machine or another.
//
// A call that ends closes its connections politely; what redlock_close() does beside that is about locks, and it has none.
#pragma once
#include <optional>

#include "process.hpp"
#include "reconfigure.hpp"

namespace redlock::sim {

class Mover {
 public:
  Mover(World& world, Process& old_set, Process& new_set);

  void begin();  // the next call
  void start(unsigned set);
  void looped(unsigned set);  // a half's loop has run
  void die(bool politely);
  void hold(Ns until);
  bool under_way() const { return under_way_; }
  Ns began_at() const { return began_at_; }
  bool busy(Ns t) const { return t < halves_[0]->held_until(); }
  Process& half(unsigned set) { return *halves_[set]; }
  // It ends within this, by the slowest clock, when every master is well.
  Ns bound() const;  // of the one under way

 private:
  bool draw_back();
  void step();
  void hold_together();
  void tell(const char* text);
  void finish();

  World& world_;
  Process* halves_[2];  // by set
  Stream random_;
  bool under_way_ = false;
  Ns began_at_ = never;
  bool back_ = false;  // the opposite change
  Reconfiguration::Stage told_ = Reconfiguration::Stage::look;
  uint64_t jumps_ = 0;
  uint64_t loops_[2] = {};
  bool flushes_[2] = {};  // a half's next loop only sends what was asked for: uv_run() has not returned
  std::optional<Reconfiguration> change_;
};

}  // namespace redlock::sim
