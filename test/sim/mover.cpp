// SPDX-License-Identifier: MIT
#include "mover.hpp"

#include <cstdio>
#include <utility>

#include "world.hpp"

namespace redlock::sim {
namespace {

using Stage = Reconfiguration::Stage;

constexpr Ns look_every = 10 * ms;  // as src/site/reconfigure.cpp

const char* name_of(Stage stage) {
  static constexpr const char* names[] = {"looks",       "marks new masters", "marks old masters", "waits",
                                          "looks again", "enters",            "checks",            "leaves"};
  return stage == Stage::over ? "is over" : names[static_cast<unsigned>(stage)];
}

uint64_t jumps(const Client& client) {
  return client.notices().counters.clock_jumps;
}

}  // namespace

Mover::Mover(World& world, unsigned index, Process& one, Process& other)
    : world_(world), index_(index), halves_{&one, &other}, random_(world.seed(), Purpose::moves, 3 + index) {}

void Mover::begin(unsigned from, unsigned to) {
  if (under_way_) return;
  from_ = from;
  to_ = to;
  began_at_ = world_.now();
  checked_at_ = never;
  under_way_ = true;
  flushes_[0] = flushes_[1] = false;
  world_.set_half(index_, from, to);
  if (halves_[0]->incarnation() != 0 && random_.coin()) {
    const int64_t rate = draw_rate(random_);
    halves_[0]->move_to_another_machine(rate, draw_rate(random_));
  }
  char text[48];
  snprintf(text, sizeof text, "begins to move from set %u to set %u", from, to);
  tell(text);
  for (unsigned half = 0; half < 2; ++half) start(half);
}

// Its clock may not be had at once: it is tried again.
void Mover::start(unsigned half) {
  if (!under_way_ || halves_[half]->running()) return;
  halves_[half]->start();
  hold_together();
}

void Mover::looped(unsigned half) {
  if (!under_way_ || loops_[half] == halves_[half]->loops()) return;  // it did not run, it waits for the other
  loops_[half] = halves_[half]->loops();
  hold_together();
  if (!halves_[0]->running() || !halves_[1]->running()) return;
  if (!std::exchange(flushes_[half], false)) step();
  if (!under_way_) return;
  for (Process* both : halves_) both->wake(world_.now() + look_every);
}

void Mover::step() {
  Process &from = *halves_[0], &to = *halves_[1];
  const Instant now = from.mover_time();
  if (!change_) {
    told_ = Stage::look;
    jumps_ = jumps(from.client());
    change_.emplace(from.client(), to.client(), random_.next(), now);
  }
  if (jumps(from.client()) != jumps_) change_->clock_jumped(now);
  jumps_ = jumps(from.client());
  hold_together();
  const Instant new_now = to.mover_time();
  change_->step(now, new_now);
  hold_together();
  if (change_->stage() != told_) reached(told_ = change_->stage());
  if (change_->over()) return finish();
  for (unsigned half = 0; half < 2; ++half) {
    flushes_[half] = halves_[half]->client().wants_turn();
    if (flushes_[half]) halves_[half]->wake(world_.now());
  }
}

// What a call is about to write is hurt on its way; and a call that is about to look again, or to write for the last
// time, is stopped for so long that others come and go.
void Mover::reached(Stage stage) {
  tell(name_of(stage));
  if (stage == Stage::mark_new || stage == Stage::enter) world_.hurt_write(index_, 1);
  if (stage == Stage::mark_old) world_.hurt_write(index_, 0);
  if (stage == Stage::enter) world_.passed(to_);
  if (stage == Stage::check) checked_at_ = world_.now();
  world_.reached(*this, stage);
  const bool hurts = stage == Stage::mark_old || stage == Stage::wait || stage == Stage::again || stage == Stage::enter;
  if (!hurts || !world_.on(Fault::pause) || !random_.chance(150)) return;
  world_.count(Fault::pause);
  tell("is stopped");
  hold(world_.now() + world_.clip(world_.now(), random_.spread(100 * ms, 8 * second)));
}

void Mover::finish() {
  const int result = change_->result();
  char text[32];
  snprintf(text, sizeof text, "returns %d", result);
  tell(text);
  world_.story().mark(static_cast<uint64_t>(result));
  die(true);
  world_.moved(*this, result);
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

Ns Mover::between() const {
  const unsigned first = world_.plan().clients + 2 * index_;
  const Settings before = settings_of(world_.plan(), first), after = settings_of(world_.plan(), first + 1);
  const Ns excess = std::max<Ns>(Ns{before.max_ttl_ms} - Ns{after.max_ttl_ms}, 0) * ms;
  const Ns ppm = std::max(before.drift_ppm, after.drift_ppm);
  const Ns fixed = std::max(before.drift_fixed_ms, after.drift_fixed_ms) * ms;
  return (reading_age(before.max_ttl_ms) + excess) * (1'000'000 + ppm) / 1'000'000 + fixed;
}

Ns Mover::bound() const {
  const Settings& both = world_.plan().settings;
  const Duration patience = both.suspect_close + both.connect_timeout + both.connect_timeout;
  return (7 * Ns{patience.ns()} + between()) * 1006 / 1000 + 10 * look_every;
}

void Mover::tell(const char* text) {
  if (!world_.story().telling()) return;
  world_.story().tell(world_.now(), static_cast<int>(world_.plan().clients + 2 * index_), -1, "mover %u %s", index_,
                      text);
}

}  // namespace redlock::sim
