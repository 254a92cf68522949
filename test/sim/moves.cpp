// SPDX-License-Identifier: MIT
//
// Worlds::moves: what is promised where a site gets another set of masters (redlock_reconfigure). Clients of the old
// configuration are never told and go on trying; two movers take the site to the new one, back again in some seeds, or
// to a third one, both at any time, and each dies in the middle, is stopped, and begins again; clients of the other
// configurations want the same resources.
//
//  - No resource is held by two clients at one instant, whatever their configurations: all exclusion of checker.hpp.
//  - Whoever publishes a validity has it from a quorum of masters each of which served its configuration when it
//    granted, or had ceased to for no longer than an admission may stand on one reading of the record.
//  - A call that succeeds has found so many masters as it says. Others end as the header says: RECORD_LOST where
//    masters lose what they have, or a later call has ended; FINGERPRINT only where there is a third set.
//  - In the quiet phase a call ends within the sum of its steps, the last one with 0, and a guard time after it clients
//    of the set that remains get what they wait for. Where changes to two sets have left marks that no call may write
//    over, the gateways are ended, the records deleted, and those of the first set begin anew.
//
// In half of the seeds the first user of each client waits for a lock without end, and renews it until it is lost.
//
// In half of the seeds without an operator, who gets LEFT goes on with the set to which a quorum of its own masters
// records the change as done, whether or not the call has returned (redlock_site_left()).
//
// In half of the seeds an operator works by the header's rules, and masters come back as they were (operator.hpp). In
// the other half nobody ends a gateway. As the header demands, clients of another set than the first one start before a
// call has succeeded, or one that undoes it, only where the masters that are new to the site are no quorum; and no
// master loses its data while it belongs to a set that has running clients and was left: that a call from there has
// read its marks again, or is about to.
#include <algorithm>

#include "master/guard.hpp"
#include "site/finished_change.hpp"
#include "world.hpp"

namespace redlock::sim {
namespace {

struct Change {
  Set before, after, third;
};
constexpr Change changes[] = {
    {{3, {0, 1, 2}, 0}, {3, {2, 3, 4}, 0}, {}},
    {{3, {0, 1, 2}, 0}, {3, {3, 4, 5}, 0}, {}},
    {{1, {0}, 0}, {3, {1, 2, 3}, 0}, {}},
    {{5, {0, 1, 2, 3, 4}, 0}, {3, {0, 1, 2}, 0}, {}},
    {{3, {0, 1, 2}, 0}, {5, {0, 1, 2, 3, 4}, 0}, {}},
    {{3, {0, 1, 2}, 0}, {3, {1, 2, 3}, 0}, {}},
    {{3, {0, 1, 2}, 0}, {3, {0, 1, 2}, 0}, {}},
    {{1, {0}, 0}, {1, {1}, 0}, {}},
    {{3, {0, 1, 2}, 0}, {1, {3}, 0}, {}},
    {{1, {0}, 0}, {3, {0, 1, 2}, 0}, {}},
    {{2, {0, 1}, 0}, {2, {1, 2}, 0}, {}},
    {{2, {0, 1}, 0}, {4, {0, 1, 2, 3}, 0}, {}},
    {{4, {0, 1, 2, 3}, 0}, {2, {4, 5}, 0}, {}},
    {{4, {0, 1, 2, 3}, 0}, {4, {2, 3, 4, 5}, 0}, {}},
};
constexpr Change threes[] = {
    {{2, {0, 1}, 0}, {1, {2}, 0}, {1, {3}, 0}},
    {{4, {0, 1, 2, 3}, 0}, {1, {4}, 0}, {1, {5}, 0}},
    {{3, {0, 1, 2}, 0}, {1, {3}, 0}, {1, {4}, 0}},
    {{3, {0, 1, 2}, 0}, {3, {1, 2, 3}, 0}, {3, {2, 4, 5}, 0}},
};

constexpr unsigned quorum_of(const Set& set) { return set.masters / 2 + 1; }

bool has(const Set& set, unsigned master) { return set.place_of(master) >= 0; }

}  // namespace

// ---- the plan -------------------------------------------------------------------------------------------------

namespace {

void draw_sets(Plan& plan, Stream& random) {
  plan.third = random.chance(250);
  const Change change = plan.third ? random.pick(threes) : random.pick(changes);
  plan.sets[0] = change.before;
  plan.sets[1] = change.after;
  plan.sets[2] = change.third;
  const uint32_t longest = plan.ttl_max_ms, shortest = std::min(plan.ttl_ms[0], plan.ttl_ms[1]);
  for (Set& set : plan.sets) set.max_ttl_ms = longest;
  if (random.coin()) plan.sets[random.below(plan.third ? 3 : 2)].max_ttl_ms = shortest;
  if (change.before.masters == change.after.masters && has(change.after, 0) && has(change.after, 2)) {
    plan.sets[0].max_ttl_ms = longest;
    plan.sets[1].max_ttl_ms = longest > shortest ? shortest : longest + 100;
  }
  for (const Set& set : plan.sets) plan.ttl_max_ms = std::max(plan.ttl_max_ms, set.max_ttl_ms);
  plan.settings.max_ttl_ms = plan.ttl_max_ms;
  plan.masters = 0;
  for (unsigned m = 0; m < masters_max; ++m) {
    for (const Set& set : plan.sets) plan.masters = has(set, m) ? m + 1 : plan.masters;
  }
  plan.master_ppm[masters_max - 1] = draw_rate(random);
}

// Clients, and behind them each mover's two.
void draw_clients(Plan& plan, Stream& random) {
  plan.clients = static_cast<unsigned>(random.between(plan.third ? 3 : 2, 4));
  const unsigned last_client = plan.clients - (plan.third ? 2 : 1);
  const unsigned old_clients = static_cast<unsigned>(random.between(1, last_client));
  for (unsigned c = 0; c < clients_max; ++c) plan.set_of[c] = c < old_clients ? 0 : 1;
  if (plan.third) plan.set_of[plan.clients - 1] = 2;
  for (unsigned c = plan.clients; c < clients_max; ++c) {
    plan.users[c] = 0;
    plan.client_ppm[c] = draw_rate(random);
    plan.suspended_ppm[c] = draw_rate(random);
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
  plan.movers = movers_max;
  plan.early = fresh < quorum_of(plan.sets[1]) && random.coin() && !plan.third;
  plan.undone = random.chance(600);
  plan.back = plan.undone && random.chance(300);
  plan.quiet_at += random.between(0, 8 * second);
  plan.operated = random.coin() && !plan.early;
  if (plan.operated) {
    plan.faults |= uint64_t{1} << static_cast<unsigned>(Fault::come_back);
    plan.quiet_at += random.between(0, 12 * second);
  }
  plan.holds = random.coin();
  plan.sealed = plan.sealed || plan.early;
  plan.last_at = plan.quiet_at + settled_after + (random.coin() ? plan.guard_time() + second : 0);
  plan.close_at = plan.give_up_at = never;
  plan.follows = !plan.operated && random.coin();
}

// ---- processes ------------------------------------------------------------------------------------------------

const Set& Process::set() const { return world_.plan().sets[world_.plan().set_of[index_]]; }

Instant Process::mover_time() {
  t_ = std::max({t_, held_until_, world_.now()});
  const Instant now = input_time();
  held_until_ = std::max(held_until_, t_);
  return now;
}

// ---- the mover's life -----------------------------------------------------------------------------------------

void World::start_moves() {
  witness_->learn_sets();
  Stream random(seed_, Purpose::moves, 2);
  const Ns first = random.between(1 * ms, plan_.operated ? 2 * second : plan_.quiet_at / 2);
  heap_.push(first, Kind::move, 0);
  if (random.chance(800)) heap_.push(first + random.spread(100 * us, 8 * second), Kind::move, 1);
  for (unsigned c = 0; c < plan_.clients && plan_.early; ++c) {
    if (plan_.set_of[c] == 1) heap_.push(random.between(0, plan_.quiet_at), Kind::client_restart, c);
  }
  if (plan_.early) begun_ |= 1u << 1;
}

void World::set_half(unsigned mover, unsigned from, unsigned to) {
  plan_.set_of[plan_.clients + 2 * mover] = from;
  plan_.set_of[plan_.clients + 2 * mover + 1] = to;
}

// Until the quiet phase calls go anywhere; then one mover does what remains.
void World::begin_move(unsigned mover) {
  if (quiet_) return;
  if (plan_.operated) return operator_->begin(mover);
  unsigned from = 0, to = plan_.third && random_.coin() ? 2 : 1;
  if (plan_.undone && random_.coin()) std::swap(from, to);
  movers_[mover]->begin(from, to);
}

void World::start_clients(unsigned set) {
  begun_ |= 1u << set;
  for (unsigned c = 0; c < plan_.clients; ++c) {
    if (plan_.set_of[c] != set || !never_started(c)) continue;
    heap_.push(now_ + random_.spread(1 * ms, 300 * ms), Kind::client_restart, c);
  }
}

void World::passed(unsigned to) {
  home_ = to;
  begun_ |= 1u << to;
}

bool World::never_started(unsigned client) const { return processes_[client]->incarnation() == 0; }

// What a call is about to write lies somewhere for so long that it may have given up, and the next one have come and
// gone: in front of masters that stand still, or on the way.
void World::hurt_write(unsigned mover, unsigned half) {
  const unsigned writer = plan_.clients + 2 * mover + half;
  const Fault fault = random_.coin() ? Fault::freeze : Fault::stall;
  if (!on(fault) || !random_.chance(600)) return;
  const Ns length = random_.spread(100 * ms, 5 * second);
  for (unsigned m = 0; m < plan_.masters && fault == Fault::freeze; ++m) {
    if (has(plan_.sets[plan_.set_of[writer]], m) && random_.chance(700)) freeze_later(m, now_, now_ + length);
  }
  for (Connection& c : network_->all()) {
    if (fault != Fault::stall || c.client != writer || c.gone || random_.chance(150)) continue;
    c.stalled_until = now_ + clip(now_, length);
    count(fault);
    if (story_.telling()) {
      story_.tell(now_, static_cast<int>(c.client), static_cast<int>(c.master), "FAULT %s (#%u)", fault_text(fault),
                  c.id);
    }
  }
}

// A call has returned.
void World::moved(const Mover& mover, int result) {
  const bool lost = result == REDLOCK_E_RECORD_LOST;  // also by a later call that has ended meanwhile
  const bool ends_well = result >= 0 || result == REDLOCK_E_NO_QUORUM || result == REDLOCK_E_CHANGING || lost ||
                         (result == REDLOCK_E_FINGERPRINT && plan_.third);
  if (!ends_well) violate(now_ - 5 * second, ~0u, "the change ends with %d", result);
  if (result >= 0) {
    const Set& set = plan_.sets[mover.to()];
    if (witness_->have_said(mover.to(), mover.checked_at()) + static_cast<unsigned>(result) < set.masters ||
        witness_->have_said(mover.to(), mover.checked_at()) < quorum_of(set)) {
      violate(mover.began_at(), ~0u, "the change ends with %d, and fewer masters say so", result);
    }
    ++totals.moves;
    if (!plan_.operated) {
      start_clients(mover.from());
      start_clients(mover.to());
    }
  }
  if (plan_.operated) operator_->ended(mover, result);
  if (!quiet_) {
    if (result == 0 && !plan_.operated && !plan_.undone && !random_.chance(300)) return;
    const Ns longest = plan_.operated && result >= 0 ? 8 * second : second;
    return heap_.push(now_ + random_.spread(1 * ms, longest), Kind::move, &mover == movers_[0].get() ? 0 : 1);
  }
  if (mover.began_at() >= plan_.last_at) tried_last(result);
}

void World::begin_last() {
  if (plan_.operated) return operator_->begin_last();
  if (plan_.third) return movers_[0]->begin(2 - tried_, 0);
  movers_[0]->begin(plan_.back ? 1 : 0, plan_.back ? 0 : 1);
}

// A call of the quiet phase. What died long ago may still have had a mark on its way.
void World::tried_last(int result) {
  if (plan_.operated) {
    if (operator_->ended_last(result)) settle();
    return;
  }
  if (result == REDLOCK_E_CHANGING && ++disturbed_ <= 3) return;
  if (result != 0 && !(plan_.third && result == REDLOCK_E_FINGERPRINT)) {
    return violate(now_ - 5 * second, ~0u, "all masters are well, and the change ends with %d", result);
  }
  refused_ += result == 0 ? 0 : 1;
  if (plan_.third && ++tried_ < 2) return;
  if (refused_ == 2) start_anew_by_hand();
  settle();
}

// The site has its last masters.
void World::settle() {
  moved_at_ = now_;
  plan_.close_at = now_ + plan_.guard_time() + 2500 * ms + 2 * plan_.ttl_max_ms * ms;
  plan_.give_up_at = plan_.close_at + 2 * second + plan_.guard_time();
  heap_.push(plan_.close_at, Kind::close);
}

void World::start_anew_by_hand() {
  if (story_.telling()) story_.tell(now_, -1, -1, "the gateways are ended and the records deleted");
  ended_at_ = now_;
  for (unsigned c = 0; c < plan_.clients; ++c) {
    processes_[c]->die(false);
    if (plan_.set_of[c] == 0) heap_.push(now_ + 1 * ms, Kind::client_restart, c);
    if (plan_.set_of[c] != 0) retired_ |= 1u << c;
  }
  for (unsigned m = 0; m < plan_.masters; ++m) delete_record(m);
}

void World::delete_record(unsigned m) {
  char key[meta_key_max];
  const Bytes meta = write_meta_key(plan_.settings, key);
  masters_[m]->redis.evict(std::string(meta.data, meta.size));
  witness_->look_at_record(m, now_);
}

void World::reached(const Mover& mover, Reconfiguration::Stage stage) {
  if (plan_.operated) operator_->reached(mover, stage);
}

bool World::may_run(unsigned client) const {
  return (retired_ >> client & 1) == 0 && (!plan_.operated || operator_->runs(plan_.set_of[client]));
}

// A restart, or a copy that it had made and is given back: with the keys, the counters and the record of then.
void World::come_back(unsigned m, Ns then) {
  Master& master = *masters_[m];
  if (master.down || master.redis.knobs.replica || !operator_->may_come_back(m)) return;
  count(Fault::come_back);
  if (story_.telling()) {
    story_.tell(now_, -1, static_cast<int>(m), "FAULT comes back as it was at %.6f s", static_cast<double>(then) / 1e9);
  }
  checker_->master_forgot(m, now_);
  checker_->old_keys_come_back(m, now_);
  master.recall(then);
  if (random_.chance(300)) {
    master.resync(random_.coin());
    heap_.push(clip(now_, random_.spread(1 * ms, second)) + now_, Kind::mend, m);
  } else {
    master.crash(test::RedisDouble::Keep::snapshot, random_.coin());
    heap_.push(clip(now_, random_.spread(1 * ms, second)) + now_, Kind::master_restart, m);
  }
  witness_->look_at_record(m, now_);
}

// Has this set clients that run, and is it not what the site is, or is to be?
bool World::was_left(unsigned set) const {
  for (const auto& mover : movers_) {
    if (mover && mover->under_way() && mover->looks_again() && mover->from() == set) return true;
  }
  return (begun_ >> set & 1) != 0 && set != home_;
}

bool World::may_forget(unsigned m) const {
  if (plan_.operated) return operator_->may_come_back(m);
  for (unsigned set = 0; set < sets_max; ++set) {
    if (plan_.moves && has(plan_.sets[set], m) && was_left(set)) return false;
  }
  return true;
}

void World::at_mover(Fault fault, unsigned index, unsigned master, Ns length) {
  Mover& mover = *movers_[index];
  if (!mover.under_way()) return;
  const unsigned first = plan_.clients + 2 * index, half = static_cast<unsigned>(random_.below(2));
  if (fault != Fault::reset) count(fault);
  if (story_.telling()) {
    story_.tell(now_, static_cast<int>(first + half), static_cast<int>(master), "FAULT %s (%.3f ms)", fault_text(fault),
                static_cast<double>(length) / 1e6);
  }
  const bool busy = mover.busy(now_);
  switch (fault) {
    case Fault::stall:
    case Fault::reset:
      return at_connection(fault, first + half, master, length);
    case Fault::partition: {
      const uint64_t way = random_.below(3);
      return network_->partition(first + half, master, way != 1, way != 0, now_ + length);
    }
    case Fault::pause:
      return mover.hold(now_ + length);
    case Fault::suspend:
      if (busy) return;
      mover.half(0).suspend(length);
      return mover.hold(now_ + length);
    case Fault::slew:
      if (busy) return;
      heap_.push(now_ + length, Kind::slew, first);
      return slew(first, random_.coin() ? random_.between(-500, 500) : random_.between(-83'000, 83'000));
    case Fault::crash:
      if (busy) return;
      mover.die(random_.coin());
      return heap_.push(now_ + length, Kind::move, index);
    default:
      return;
  }
}

// ---- who was left behind --------------------------------------------------------------------------------------

void World::left_behind(unsigned client, Ns t) {
  if (plan_.follows) heap_.push(t + random_.spread(100 * us, second), Kind::follow, client);
}

// As `redlock run` does: the file was replaced when the change began, or before.
void World::follow(unsigned client) {
  const unsigned from = plan_.set_of[client];
  if (!processes_[client]->running()) return;
  for (unsigned to = 0; to < (plan_.third ? 3u : 2u); ++to) {
    if (to == from || witness_->have_left(from, to, now_) < quorum_of(plan_.sets[from])) continue;
    if (story_.telling()) story_.tell(now_, int(client), -1, "was left behind, and goes on with set %u", to);
    ++totals.follows;
    processes_[client]->die(random_.coin());
    plan_.set_of[client] = to;
    begun_ |= 1u << to;
    ended_at_ = now_;
    if (quiet_) return processes_[client]->start();
    return heap_.push(now_ + random_.spread(1 * ms, 300 * ms), Kind::client_restart, client);
  }
}

// ---- votes ----------------------------------------------------------------------------------------------------

// Which set does the record of this master serve?
void Witness::look_at_record(unsigned master, Ns t) {
  const std::string seal = field_of(master, "seal", t), q = field_of(master, "q", t);
  const bool sealed = !q.empty() && seal.size() > q.size() && seal.substr(seal.size() - q.size()) == q;
  for (unsigned set = 0; set < sets_max; ++set) {
    const auto ends = [&](Ns& until, bool now) { until = now ? never : until == never ? t : until; };
    const bool says = field_of(master, "desc", t) == desc_[set];
    ends(said_until_[set][master], says);
    ends(served_until_[set][master], says && sealed);
  }
  if (world_.plan().operated) world_.master(master).remember(false);
}

std::string Witness::field_of(unsigned master, const char* name, Ns t) const {
  const auto* const record = world_.master(master).redis.peek(meta_, t);
  const auto at = record != nullptr ? record->fields.find(name) : test::RedisDouble::Fields::const_iterator();
  return record != nullptr && at != record->fields.end() ? at->second : std::string();
}

unsigned Witness::have_left(unsigned from, unsigned to, Ns t) const {
  unsigned n = 0;
  for (unsigned m = 0; m < world_.plan().masters; ++m) {
    if (!has(world_.plan().sets[from], m) || world_.master(m).down) continue;
    const std::string desc = field_of(m, "desc", t), q = field_of(m, "q", t), left = field_of(m, "left", t);
    char theirs[fingerprint_max];
    int64_t done_s = 0;
    const bool is_done = read_change(desc.c_str(), q.c_str(), left.c_str(), desc_[from].c_str(), theirs, done_s);
    n += is_done && desc_[to] == theirs ? 1u : 0u;
  }
  return n;
}

unsigned Witness::have_said(unsigned set, Ns since) const {
  unsigned n = 0;
  for (unsigned m = 0; m < world_.plan().masters; ++m) {
    n += has(world_.plan().sets[set], m) && said_until_[set][m] >= since ? 1u : 0u;
  }
  return n;
}

void Witness::learn_sets() {
  Plan plan = world_.plan();
  for (unsigned set = 0; set < (plan.third ? 3 : 2); ++set) {
    plan.set_of[0] = set;
    const Settings settings = settings_of(plan, 0);
    char key[meta_key_max], desc[fingerprint_max];
    const Bytes k = write_meta_key(settings, key), d = write_fingerprint(settings, settings.masters / 2 + 1, desc);
    meta_.assign(k.data, k.size);
    desc_[set].assign(d.data, d.size);
    for (Ns& until : served_until_[set]) until = -never;
    for (Ns& until : said_until_[set]) until = -never;
  }
  for (unsigned m = 0; m < plan.masters; ++m) look_at_record(m, 0);
}

// An admission stands on a reading for this long, by the slowest clock.
Ns Witness::admitted_until(unsigned client, unsigned master) const {
  const unsigned set = world_.plan().set_of[client];
  const Ns until = served_until_[set][master];
  if (until == never || until == -never) return until;
  return until + reading_age(world_.plan().sets[set].max_ttl_ms) / 995 * 1000 + 1 * ms;
}

void Witness::voted(const Connection& c, std::string_view value, Ns t) {
  if (t <= admitted_until(c.client, c.master)) votes_.push_back({c.client, c.master, std::string(value)});
}

// Each round needs votes of its own: what was cast until now is counted once.
void Witness::judge_votes(unsigned client, const User& user, std::string_view value) {
  unsigned masters = 0;
  for (const Vote& vote : votes_) {
    if (vote.client == client && vote.value == value) masters |= 1u << vote.master;
  }
  std::erase_if(votes_, [&](const Vote& vote) { return vote.client == client && vote.value == value; });
  const unsigned votes = static_cast<unsigned>(__builtin_popcount(masters));
  if (votes >= world_.process(client).quorum()) return;
  world_.violate(user.asked_at, 1u << client, "c%u holds by votes of masters that serve its set no more: %u do", client,
                 votes);
}

// ---- the quiet phase ------------------------------------------------------------------------------------------

void Checker::sample_move() {
  const Ns now = world_.now();
  if (!world_.quiet() || world_.moved_at() != never) return;
  bool under_way = false;
  for (unsigned i = 0; i < world_.plan().movers; ++i) {
    const Mover& mover = world_.mover(i);
    if (!mover.under_way()) continue;
    under_way = true;
    const Ns since = std::max(mover.began_at(), world_.plan().quiet_at + 310 * ms);
    if (now - since <= mover.bound()) continue;
    world_.violate(mover.began_at(), ~0u, "the change has not ended after %.0f ms",
                   static_cast<double>(now - since) / 1e6);
  }
  if (!under_way && now >= world_.plan().last_at) world_.begin_last();
}

}  // namespace redlock::sim
