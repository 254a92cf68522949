// SPDX-License-Identifier: MIT
//
// Worlds::moves: what is promised where a site gets another set of masters (redlock_reconfigure). Clients of the old
// configuration are never told and go on trying; a mover takes the site to the new one, dies in the middle, begins again,
// and in some seeds undoes it by the opposite change; clients of the new configuration want the same resources.
//
//  - No resource is held by two clients at one instant, whatever their configurations: all exclusion of checker.hpp.
//  - Whoever publishes a validity has it from a quorum of masters each of which served its configuration when it
//    granted, or had ceased to for no longer than an admission may stand on one reading of the record.
//  - In the quiet phase a call ends within the sum of its steps, the last one with 0, and a guard time after it clients
//    of the set that remains get what they wait for.
//
// As the header demands, clients of the new set start before a call has succeeded, or one that undoes it, only where the
// masters that are new to the site are no quorum; and no master loses its data from when it first left, since it would
// then be anybody's: only those that no other set has, in a world without the opposite change.
#include <algorithm>

#include "master/guard.hpp"
#include "world.hpp"

namespace redlock::sim {
namespace {

struct Change {
  Set before, after;
};
constexpr Change changes[] = {
    {{3, {0, 1, 2}, 0}, {3, {2, 3, 4}, 0}},       {{3, {0, 1, 2}, 0}, {3, {3, 4, 5}, 0}},
    {{1, {0}, 0}, {3, {1, 2, 3}, 0}},             {{5, {0, 1, 2, 3, 4}, 0}, {3, {0, 1, 2}, 0}},
    {{3, {0, 1, 2}, 0}, {5, {0, 1, 2, 3, 4}, 0}}, {{3, {0, 1, 2}, 0}, {3, {1, 2, 3}, 0}},
    {{3, {0, 1, 2}, 0}, {3, {0, 1, 2}, 0}},       {{1, {0}, 0}, {1, {1}, 0}},
    {{3, {0, 1, 2}, 0}, {1, {3}, 0}},             {{1, {0}, 0}, {3, {0, 1, 2}, 0}},
};

constexpr unsigned quorum_of(const Set& set) { return set.masters / 2 + 1; }

bool has(const Set& set, unsigned master) { return set.place_of(master) >= 0; }

}  // namespace

// ---- the plan -------------------------------------------------------------------------------------------------

namespace {

void draw_sets(Plan& plan, Stream& random) {
  const Change change = random.pick(changes);
  plan.sets[0] = change.before;
  plan.sets[1] = change.after;
  const uint32_t longest = plan.ttl_max_ms, shortest = std::min(plan.ttl_ms[0], plan.ttl_ms[1]);
  plan.sets[0].max_ttl_ms = plan.sets[1].max_ttl_ms = longest;
  if (random.coin()) plan.sets[random.below(2)].max_ttl_ms = shortest;
  if (change.before.masters == change.after.masters && has(change.after, 0) && has(change.after, 2)) {
    plan.sets[0].max_ttl_ms = longest;
    plan.sets[1].max_ttl_ms = longest > shortest ? shortest : longest + 100;
  }
  plan.ttl_max_ms = std::max(plan.sets[0].max_ttl_ms, plan.sets[1].max_ttl_ms);
  plan.settings.max_ttl_ms = plan.ttl_max_ms;
  plan.masters = 0;
  for (unsigned m = 0; m < masters_max; ++m) {
    if (has(plan.sets[0], m) || has(plan.sets[1], m)) plan.masters = m + 1;
  }
  plan.master_ppm[masters_max - 1] = draw_rate(random);
}

// Clients, and behind them the mover's two.
void draw_clients(Plan& plan, Stream& random) {
  plan.clients = static_cast<unsigned>(random.between(2, 4));
  const unsigned old_clients = static_cast<unsigned>(random.between(1, plan.clients - 1));
  for (unsigned c = 0; c < clients_max; ++c) plan.set_of[c] = c < old_clients ? 0 : 1;
  for (unsigned half = 0; half < 2; ++half) {
    plan.set_of[plan.clients + half] = half;
    plan.users[plan.clients + half] = 0;
  }
}

}  // namespace

void make_moves(uint64_t seed, Plan& plan) {
  Stream random(seed, Purpose::moves);
  static constexpr Fault left_out[] = {Fault::garbage, Fault::evict, Fault::wall_step, Fault::wall_slew};
  for (const Fault fault : left_out) plan.faults &= ~(1u << static_cast<unsigned>(fault));
  draw_sets(plan, random);
  draw_clients(plan, random);
  unsigned fresh = 0;
  for (unsigned m = 0; m < masters_max; ++m) {
    if (has(plan.sets[1], m) && !has(plan.sets[0], m)) ++fresh;
  }
  plan.early = fresh < quorum_of(plan.sets[1]) && random.coin();
  plan.undone = random.chance(500);
  plan.back = plan.undone && random.chance(300);
  plan.quiet_at += random.between(0, 4 * second);
  plan.sealed = plan.sealed || plan.early;
  plan.last_at = plan.quiet_at + settled_after + (random.coin() ? plan.guard_time() + second : 0);
  plan.close_at = plan.give_up_at = never;
}

// ---- processes ------------------------------------------------------------------------------------------------

const Set& Process::set() const { return world_.plan().sets[world_.plan().set_of[index_]]; }

Instant Process::now() {
  t_ = std::max({t_, held_until_, world_.now()});
  const Instant now = read_clock();
  held_until_ = std::max(held_until_, t_);
  return now;
}

// ---- the mover's life -----------------------------------------------------------------------------------------

void World::start_moves() {
  witness_->learn_sets();
  Stream random(seed_, Purpose::moves, 2);
  heap_.push(random.between(1 * ms, plan_.quiet_at / 2), Kind::move);
  for (unsigned c = 0; c < plan_.clients && plan_.early; ++c) {
    if (plan_.set_of[c] == 1) heap_.push(random.between(0, plan_.quiet_at), Kind::client_restart, c);
  }
  new_begun_ = plan_.early;
}

void World::start_new() {
  new_begun_ = true;
  for (unsigned c = 0; c < plan_.clients; ++c) {
    if (never_started(c)) heap_.push(now_ + random_.spread(1 * ms, 300 * ms), Kind::client_restart, c);
  }
}

bool World::never_started(unsigned client) const { return processes_[client]->incarnation() == 0; }

// What a call is about to write lies somewhere for so long that it may have given up, and the next one have come and gone:
// in front of masters that stand still, or on the way.
void World::hurt_write(unsigned set) {
  const Fault fault = random_.coin() ? Fault::freeze : Fault::stall;
  if (!on(fault) || !random_.chance(600)) return;
  const Ns length = random_.spread(100 * ms, 5 * second);
  for (unsigned m = 0; m < plan_.masters && fault == Fault::freeze; ++m) {
    if (has(plan_.sets[set], m) && random_.chance(700)) freeze_later(m, now_, now_ + length);
  }
  for (Connection& c : network_->all()) {
    if (fault != Fault::stall || c.client != plan_.clients + set || c.gone || random_.chance(150)) continue;
    c.stalled_until = now_ + clip(now_, length);
    count(fault);
    if (story_.telling()) {
      story_.tell(now_, static_cast<int>(c.client), static_cast<int>(c.master), "FAULT %s (#%u)", fault_text(fault), c.id);
    }
  }
}

// A call has returned.
void World::moved(int result) {
  if (result < 0 && result != REDLOCK_E_NO_QUORUM) violate(now_ - 5 * second, ~0u, "the change ends with %d", result);
  if (result >= 0) {
    ++totals.moves;
    start_new();
  }
  if (!quiet_) {
    if (result != 0 || plan_.undone || random_.chance(300)) heap_.push(now_ + random_.spread(1 * ms, second), Kind::move);
    return;
  }
  if (mover_->began_at() < plan_.last_at) return;
  if (result != 0) return violate(now_ - 5 * second, ~0u, "all masters are well, and the change ends with %d", result);
  moved_at_ = now_;
  plan_.close_at = now_ + plan_.guard_time() + 2500 * ms + 2 * plan_.ttl_max_ms * ms;
  plan_.give_up_at = plan_.close_at + 2 * second + plan_.guard_time();
  heap_.push(plan_.close_at, Kind::close);
}

bool World::may_forget(unsigned m) const {
  if (!plan_.moves) return true;
  const bool in_old = has(plan_.sets[0], m), in_new = has(plan_.sets[1], m);
  if (in_old && in_new) return !left_ && !new_begun_;
  if (in_old) return !left_;
  return !left_ || !plan_.undone;
}

void World::at_mover(Fault fault, unsigned master, Ns length) {
  if (!mover_->under_way()) return;
  const unsigned half = static_cast<unsigned>(random_.below(2));
  if (fault != Fault::reset) count(fault);
  if (story_.telling()) {
    story_.tell(now_, static_cast<int>(plan_.clients + half), static_cast<int>(master), "FAULT %s (%.3f ms)",
                fault_text(fault), static_cast<double>(length) / 1e6);
  }
  const bool busy = mover_->busy(now_);
  switch (fault) {
    case Fault::stall:
    case Fault::reset:
      return at_connection(fault, plan_.clients + half, master, length);
    case Fault::partition: {
      const uint64_t way = random_.below(3);
      return network_->partition(plan_.clients + half, master, way != 1, way != 0, now_ + length);
    }
    case Fault::pause:
      return mover_->hold(now_ + length);
    case Fault::suspend:
      if (busy) return;
      mover_->half(0).suspend(length);
      return mover_->hold(now_ + length);
    case Fault::slew:
      if (busy) return;
      heap_.push(now_ + length, Kind::slew, plan_.clients);
      return slew(plan_.clients, random_.coin() ? random_.between(-500, 500) : random_.between(-83'000, 83'000));
    case Fault::crash:
      if (busy) return;
      mover_->die(random_.coin());
      return heap_.push(now_ + length, Kind::move);
    default:
      return;
  }
}

// ---- votes ----------------------------------------------------------------------------------------------------

// Which set does the record of this master serve?
void Witness::look_at_record(unsigned master, Ns t) {
  const auto* const record = world_.master(master).redis.peek(meta_, t);
  const auto field = [&](const char* name) {
    const auto at = record != nullptr ? record->fields.find(name) : test::RedisDouble::Fields::const_iterator();
    return record != nullptr && at != record->fields.end() ? std::string_view(at->second) : std::string_view();
  };
  const std::string_view seal = field("seal"), q = field("q");
  const bool sealed = !q.empty() && seal.size() > q.size() && seal.substr(seal.size() - q.size()) == q;
  for (unsigned set = 0; set < 2; ++set) {
    Ns& until = served_until_[set][master];
    if (sealed && field("desc") == desc_[set]) {
      until = never;
    } else if (until == never) {
      until = t;
    }
  }
}

void Witness::learn_sets() {
  for (unsigned set = 0; set < 2; ++set) {
    const Settings settings = settings_of(world_.plan(), world_.plan().clients + set);
    char key[meta_key_max], desc[fingerprint_max];
    const Bytes k = write_meta_key(settings, key), d = write_fingerprint(settings, settings.masters / 2 + 1, desc);
    meta_.assign(k.data, k.size);
    desc_[set].assign(d.data, d.size);
    for (Ns& until : served_until_[set]) until = -never;
  }
  for (unsigned m = 0; m < world_.plan().masters; ++m) look_at_record(m, 0);
}

// An admission stands on a reading for this long, by the slowest clock.
Ns Witness::admitted_until(unsigned client, unsigned master) const {
  const unsigned set = world_.plan().set_of[client];
  const Ns until = served_until_[set][master];
  if (until == never || until == -never) return until;
  return until + reading_lifetime(world_.plan().sets[set].max_ttl_ms).ns() / 995 * 1000 + 1 * ms;
}

void Witness::voted(const Connection& c, std::string_view value, Ns t) {
  if (t <= admitted_until(c.client, c.master)) votes_.push_back({c.client, c.master, std::string(value)});
}

// Each round needs votes of its own: what was cast until now is counted once.
void Witness::judge_votes(unsigned client, const User& user, std::string_view value) {
  unsigned masters = 0;
  for (const Vote& vote : votes_) {
    if (vote.client == client && value == std::string_view(vote.value).substr(0, value.size())) masters |= 1u << vote.master;
  }
  std::erase_if(votes_, [&](const Vote& vote) {
    return vote.client == client && value == std::string_view(vote.value).substr(0, value.size());
  });
  const unsigned votes = static_cast<unsigned>(__builtin_popcount(masters));
  if (votes >= world_.process(client).quorum()) return;
  world_.violate(user.asked_at, 1u << client, "c%u holds by votes of masters that serve its set no more: %u do", client, votes);
}

// ---- the quiet phase ------------------------------------------------------------------------------------------

void Checker::sample_move() {
  const Ns now = world_.now();
  if (!world_.quiet() || world_.moved_at() != never) return;
  Mover& mover = world_.mover();
  if (!mover.under_way()) {
    if (now >= world_.plan().last_at) mover.begin();
    return;
  }
  const Ns since = std::max(mover.began_at(), world_.plan().quiet_at + 310 * ms);
  if (now - since > mover.bound()) {
    world_.violate(mover.began_at(), ~0u, "the change has not ended after %.0f ms", static_cast<double>(now - since) / 1e6);
  }
}

}  // namespace redlock::sim
