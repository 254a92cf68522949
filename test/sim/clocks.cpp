// SPDX-License-Identifier: MIT
//
// Worlds::clocks: what is promised where masters' wall clocks are stepped. Redis expires keys by the wall clock, so a
// step forward ends them, and nobody can know before it looks at that clock again. Two locks may meet until then; but
//
//  - who is connected to a master looks at its clock every ping_interval, and ahead of what may vote; while the master
//    does not vote, every max_ttl / 6, or 500 ms;
//  - once both have looked, their locks do not meet: each is LOST, or held without that master;
//  - once one of them says that it has noticed the step, its locks, and all that it takes from then on, meet no other,
//    although that other has not looked yet.
//
// One clock is stepped at a time, and only when everybody has looked at all of them: a step forward right behind one
// back, between two looks, is seen by nobody. Steps are longer than any answer takes: none is too slow to tell it.
// Where all machines have one boot id, a step forward is a jump from 1970: were it as long as two machines' uptimes
// differ, both ages of a visit would be wrong and still the same, and nobody could know.
// What a client has read is known from the bytes; what it has noticed, from its status.
#include <algorithm>

#include "world.hpp"

namespace redlock::sim {

// ---- steps ----------------------------------------------------------------------------------------------------

bool World::all_know_the_clocks() const {
  for (const auto& process : processes_) {
    for (unsigned m = 0; m < plan_.masters; ++m) {
      if (process->running() && !process->knows(masters_[m]->step, m, now_)) return false;
    }
  }
  return true;
}

void World::step_clock(unsigned m) {
  Master& master = *masters_[m];
  const int64_t some = random_.spread(30'000, 3'600'000);
  const bool forward = random_.chance(800);
  const int64_t since_1970 = plan_.one_boot_id && forward ? 50LL * 365 * 86'400'000 : 0;
  const int64_t by = some + since_1970;
  if (!all_know_the_clocks() || (since_1970 != 0 && master.step.count >= 4)) return;
  count(Fault::wall_step);
  master.clock_disturbed = true;
  master.step = {master.step.count + 1, now_, forward};
  if (story_.telling())
    story_.tell(now_, -1, static_cast<int>(m), "FAULT its wall clock is stepped by %s%lld s", forward ? "" : "-",
                static_cast<long long>(by / 1000));
  master.redis.wall.step_ms(forward ? by : -by, now_);
}

// ---- looks ----------------------------------------------------------------------------------------------------

// As redlock_status() tells it.
uint64_t Process::steps_counted(Instant now) const {
  if (!world_.plan().clocks) return 0;
  redlock_status_t status;
  client_->notices().status(status, now);
  return status.clock_steps;
}

bool Process::knows(const Step& step, unsigned master, Ns t) const {
  return known_[master].steps == step.count && known_[master].at <= t;
}

bool Process::noticed(const Step& step, unsigned master, Ns t) const {
  return knows(step, master, t) && known_[master].noticed;
}

// What it has read tells that a clock was stepped. From now on it holds what it holds without that master.
void Process::learn_step(const Connection& c, bool counted) {
  if (c.heard < c.look.said || c.look.steps == known_[c.master].steps) return;
  known_[c.master] = {c.look.steps, t_, counted};
  if (world_.story().telling()) world_.story().tell(t_, int(index_), int(c.master), "has looked at its clock");
  world_.checker().looked(index_, world_.master(c.master).step.forward, t_);
}

// ---- what is demanded -----------------------------------------------------------------------------------------

// The clock of a master that may have granted one of them was stepped forward, its client has not looked since, and
// nobody of the two has noticed.
bool Checker::excused(const Belief& one, const Belief& other, Ns t) const {
  const Process &its = world_.process(one.client), &others = world_.process(other.client);
  for (unsigned m = 0; m < world_.plan().masters; ++m) {
    const Step& step = world_.master(m).step;
    if (!step.forward || its.noticed(step, m, t) || others.noticed(step, m, t)) continue;
    if (step.at >= one.asked_at && !its.knows(step, m, t)) return true;
    if (step.at >= other.asked_at && !others.knows(step, m, t)) return true;
  }
  return false;
}

// A client has found that a clock was stepped. What its checks have said before is worth nothing; do they say it again?
void Checker::looked(unsigned client, bool forward, Ns t) {
  const Process& process = world_.process(client);
  for (Belief& b : beliefs_) {
    if (b.client != client || b.incarnation != process.incarnation() || !forward) continue;
    if (b.over || process.client().cell(b.handle)->expired(Table::generation(b.handle))) b.until = std::min(b.until, t);
  }
  world_.heap().push(t, Kind::belief, client);
}

// Who is connected to a master looks at its clock every ping_interval, or every max_ttl / 6 while it does not vote.
void Checker::sample_look(unsigned client, unsigned master) {
  const Master& m = world_.master(master);
  const Ns now = world_.now();
  if (m.step.count == 0 || world_.process(client).knows(m.step, master, now)) return;
  const Settings& s = world_.plan().settings;
  const Ns often = std::max<Ns>({s.ping_interval.ns(), s.max_ttl_ms * ms / 6, 500 * ms});
  const Ns bound = (often + Ns{s.node_timeout.ns()}) * 110 / 100 + 2 * 50 * ms;
  const Ns since = std::max({m.step.at, healthy_since_[client][master], m.troubled_until, slow_until_[client][master]});
  if (healthy_since_[client][master] == never || now - since <= bound) return;
  world_.violate(m.step.at, 1u << client, "the clock of m%u was stepped %.0f ms ago, and c%u has not looked", master,
                 static_cast<double>(now - m.step.at) / 1e6, client);
}

}  // namespace redlock::sim
