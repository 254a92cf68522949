// SPDX-License-Identifier: MIT
#include "operator.hpp"

#include <string>

#include "world.hpp"

namespace redlock::sim {

using Stage = Reconfiguration::Stage;

Operator::Operator(World& world) : world_(world), random_(world.seed(), Purpose::pasts) {}

bool Operator::under_way() const {
  for (unsigned i = 0; i < world_.plan().movers; ++i) {
    if (world_.mover(i).under_way()) return true;
  }
  return false;
}

// ---- changes --------------------------------------------------------------------------------------------------

void Operator::begin(unsigned mover) {
  const Plan& plan = world_.plan();
  if (world_.mover(mover).under_way()) return;
  if (!open()) {
    const unsigned sets = plan.third ? 3 : 2;
    other_ = (home_ + 1 + static_cast<unsigned>(random_.below(sets - 1))) % sets;
    if (random_.coin()) come_back_at(world_.now(), other_);
  }
  if (refused_ && may_delete()) delete_foreign_records();
  const bool back = open() && random_.coin();
  known_ = false;
  world_.mover(mover).begin(back ? other_ : home_, back ? home_ : other_);
}

void Operator::reached(const Mover& mover, Stage stage) {
  const Ns now = world_.now(), soon = random_.spread(1 * us, 3 * world_.plan().delay);
  const unsigned from = mover.from();
  if (stage == Stage::again && random_.chance(200)) come_back_at(now + soon, from);
  if (stage == Stage::enter && random_.chance(300)) come_back_at(now + soon, from);
  if (stage != Stage::wait || !random_.chance(300)) return;
  // Behind the marks, and to the marks before anybody looks.
  come_back_at(now + soon, from);
  if (random_.coin()) come_back_at(now + mover.between() - random_.spread(1 * ms, 200 * ms), from, now);
}

void Operator::ended(const Mover& mover, int result) {
  if (result == REDLOCK_E_FINGERPRINT) refused_ = true;
  if (result < 0 || mover.began_at() < success_began_at_) return;
  success_began_at_ = mover.began_at();
  succeed(mover.from(), mover.to());
}

void Operator::succeed(unsigned from, unsigned to) {
  const Plan& plan = world_.plan();
  home_ = to;
  other_ = from;
  known_ = !under_way();
  running_ |= 1u << to;
  ++decisions_;
  for (unsigned c = 0; c < plan.clients; ++c) {
    if (plan.set_of[c] != to || world_.process(c).running()) continue;
    world_.heap().push(world_.now() + random_.spread(1 * ms, 300 * ms), Kind::client_restart, c);
  }
  if (!runs(from)) return;
  const Ns later = random_.between(0, 3 * plan.ttl_max_ms * ms + 2 * second);
  world_.heap().push(world_.now() + (world_.quiet() ? 0 : later), Kind::retire, from, decisions_);
}

void Operator::retire(unsigned set, unsigned decision) {
  if (decision != decisions_ || set == home_) return;
  running_ &= ~(1u << set);
  ended_at_ = world_.now();
  const Plan& plan = world_.plan();
  if (world_.story().telling()) world_.story().tell(world_.now(), -1, -1, "the gateways of set %u are ended", set);
  for (unsigned c = 0; c < plan.clients; ++c) {
    if (plan.set_of[c] == set) world_.process(c).die(random_.coin());
  }
}

// ---- masters --------------------------------------------------------------------------------------------------

bool Operator::may_come_back(unsigned master) const {
  const Plan& plan = world_.plan();
  const auto is_in = [&](unsigned set) { return plan.sets[set].place_of(master) >= 0; };
  for (unsigned i = 0; i < plan.movers; ++i) {
    const Mover& mover = world_.mover(i);
    if (mover.under_way() && mover.has_looked_again_at_the_old() && is_in(mover.from())) return false;
  }
  const bool both_run = (running_ & (running_ - 1)) != 0;
  for (unsigned set = 0; set < sets_max && both_run; ++set) {
    if (runs(set) && is_in(set)) return false;
  }
  return true;
}

void Operator::come_back_at(Ns t, unsigned set, Ns then) {
  world_.heap().push(t, Kind::come_back, set, static_cast<uint32_t>((then + ms - 1) / ms));
}

// A rack that is restored from a backup.
void Operator::come_back(unsigned set, Ns then) {
  const Plan& plan = world_.plan();
  const Set& masters = plan.sets[set];
  if (world_.quiet() || !plan.has(Fault::come_back)) return;
  if (then == 0) {
    const std::string served = random_.chance(700) ? world_.witness().name_of(set) : std::string();
    then = world_.master(masters.server[random_.below(masters.masters)]).some_instant(random_, served);
  }
  for (unsigned i = 0; i < masters.masters; ++i) {
    if (random_.chance(850)) world_.come_back(masters.server[i], then);
  }
}

// Has the last gateway of another set ended, and can none of its locks live any more?
bool Operator::may_delete() const {
  const Ns longest = world_.plan().ttl_max_ms * ms;
  return !under_way() && running_ == 1u << home_ && world_.now() > ended_at_ + longest * 1011 / 1000 + 5 * ms;
}

void Operator::delete_foreign_records() {
  refused_ = false;
  const Plan& plan = world_.plan();
  Witness& witness = world_.witness();
  for (unsigned m = 0; m < plan.masters; ++m) {
    if (plan.sets[home_].place_of(m) < 0 && plan.sets[other_].place_of(m) < 0) continue;
    const std::string said = witness.field_of(m, "desc", world_.now());
    const std::string &home = witness.name_of(home_), &other = witness.name_of(other_);
    const std::string mark = said.substr(std::min(said.find(' ') + 1, said.size()));  // without the word before it
    const bool theirs = said == home || said == other || mark == home + " > " + other || mark == other + " > " + home;
    if (said.empty() || theirs) continue;
    world_.tell_master(m, "its record is deleted by hand");
    world_.delete_record(m);
  }
}

// ---- the quiet phase ------------------------------------------------------------------------------------------

// Undoing is what ends in the set whose gateways run, also where nothing was begun.
void Operator::begin_last() {
  if (running_ != 1u << home_) {
    for (unsigned set = 0; set < sets_max; ++set) {
      if (set != home_ && runs(set)) retire(set, decisions_);
    }
  }
  if (other_ == none) other_ = home_ == 0 ? 1 : 0;
  if (refused_ && !may_delete()) return;
  if (refused_) delete_foreign_records();
  world_.mover(0).begin(other_, home_);
}

bool Operator::ended_last(int result) {
  if (result == 0) return true;
  const bool may_be = result == REDLOCK_E_CHANGING || (result == REDLOCK_E_FINGERPRINT && refused_);
  if (!may_be || ++tries_ > 3) {
    world_.violate(world_.now() - 5 * second, ~0u, "all masters are well, and the change ends with %d", result);
  }
  return false;
}

}  // namespace redlock::sim
