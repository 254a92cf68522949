// SPDX-License-Identifier: MIT
#include "mover.hpp"

#include <cstdio>
#include <utility>

#include "world.hpp"

namespace redlock::sim {
namespace {

using Stage = Reconfiguration::Stage;

constexpr Ns look_every = 10 * ms;  // as src/c_api/reconfigure.cpp

uint64_t jumps(const Client& client) {
  redlock_status_t status = {};
  client.status(status);
  return status.clock_jumps;
}

}  // namespace

Mover::Mover(World& world, Process& old_set, Process& new_set)
    : world_(world), halves_{&old_set, &new_set}, random_(world.seed(), Purpose::moves, 1) {}

// Until the quiet phase any direction; then the one that remains.
bool Mover::draw_back() {
  const Plan& plan = world_.plan();
  if (world_.quiet()) return plan.back;
  return plan.undone && began_at_ != never && random_.coin();
}

void Mover::begin() {
  if (under_way_) return;
  back_ = draw_back();
  began_at_ = world_.now();
  under_way_ = true;
  flushes_[0] = flushes_[1] = false;
  if (halves_[0]->incarnation() != 0 && random_.coin()) {
    const int64_t rate = draw_rate(random_);
    halves_[0]->move_to_another_machine(rate, draw_rate(random_));
  }
  tell(back_ ? "begins to move back" : "begins to move");
  for (unsigned set = 0; set < 2; ++set) start(set);
}

// Its clock may not be had at once: it is tried again.
void Mover::start(unsigned set) {
  if (!under_way_ || halves_[set]->running()) return;
  halves_[set]->start();
  hold_together();
}

void Mover::looped(unsigned set) {
  if (!under_way_ || loops_[set] == halves_[set]->loops()) return;  // it did not run, it waits for the other
  loops_[set] = halves_[set]->loops();
  hold_together();
  if (!halves_[0]->running() || !halves_[1]->running()) return;
  if (!std::exchange(flushes_[set], false)) step();
  if (!under_way_) return;
  for (Process* half : halves_) half->wake(world_.now() + look_every);
}

void Mover::step() {
  Process &from = *halves_[back_ ? 1 : 0], &to = *halves_[back_ ? 0 : 1];
  const Instant now = from.now();
  if (!change_) {
    told_ = Stage::look;
    jumps_ = jumps(from.client());
    change_.emplace(from.client(), to.client(), random_.next(), now);
  }
  if (jumps(from.client()) != jumps_) change_->clock_jumped(now);
  jumps_ = jumps(from.client());
  change_->step(now);
  hold_together();
  if (change_->stage() != told_) {
    static constexpr const char* names[] = {"looks", "leaves", "waits", "enters", "is over"};
    told_ = change_->stage();
    tell(names[static_cast<unsigned>(told_)]);
    if (told_ == Stage::leave || told_ == Stage::enter) world_.hurt_write((told_ == Stage::enter) == back_ ? 0 : 1);
  }
  if (change_->over()) return finish();
  for (unsigned set = 0; set < 2; ++set) {
    flushes_[set] = halves_[set]->client().wants_turn();
    if (flushes_[set]) halves_[set]->wake(world_.now());
  }
}

void Mover::finish() {
  const int result = change_->result();
  char text[32];
  snprintf(text, sizeof text, "returns %d", result);
  tell(text);
  world_.story().mark(static_cast<uint64_t>(result));
  die(true);
  world_.moved(result);
}

void Mover::die(bool politely) {
  under_way_ = false;
  change_.reset();
  for (Process* half : halves_) half->die(politely);
}

void Mover::hold_together() { hold(std::max(halves_[0]->held_until(), halves_[1]->held_until())); }

void Mover::hold(Ns until) {
  for (Process* half : halves_) half->pause(until);
}

Ns Mover::bound() const {
  const Plan& plan = world_.plan();
  const Settings before = settings_of(plan, plan.clients + (back_ ? 1 : 0));
  const Settings after = settings_of(plan, plan.clients + (back_ ? 0 : 1));
  const Duration patience = before.suspect_close + before.connect_timeout + before.connect_timeout;  // and after's
  const Duration between = Reconfiguration::wait_between(before, after);
  return (3 * Ns{patience.ns()} + Ns{between.ns()}) * 1006 / 1000 + 10 * look_every;
}

void Mover::tell(const char* text) {
  if (!world_.story().telling()) return;
  world_.story().tell(world_.now(), static_cast<int>(world_.plan().clients), -1, "the mover %s", text);
}

}  // namespace redlock::sim
