// SPDX-License-Identifier: MIT
#include "plan.hpp"

namespace redlock::sim {
namespace {

constexpr int64_t rate_edge_ppm = 5000;  // half a percent: what the drift is made for

uint32_t draw_faults(uint64_t seed, Stream& random, Worlds worlds) {
  constexpr uint32_t within = (1u << first_beyond) - 1;
  constexpr uint32_t all = ~uint32_t{0} >> (32 - static_cast<unsigned>(Fault::come_back));
  const uint32_t some = static_cast<uint32_t>(random.next());
  const uint32_t more = static_cast<uint32_t>(random.next());
  const bool few = random.chance(300);
  const bool beyond = random.chance(200);
  if (worlds == Worlds::every_fault) return seed % 4 == 0 ? all : within;
  uint32_t faults = few ? some & more : some;
  if (!beyond) faults &= within;
  return faults & all;
}

void draw_settings(Plan& plan, Stream& random) {
  Settings& s = plan.settings;
  static constexpr int64_t node_timeouts[] = {20, 50, 50, 100, 400};  // one is longer than the shortest ttl
  static constexpr int64_t connect_timeouts[] = {100, 300};
  static constexpr int64_t suspects[] = {200, 600};
  static constexpr uint32_t reconnects[] = {10, 50};
  static constexpr uint32_t longest_reconnects[] = {100, 400};
  static constexpr int64_t pings[] = {300, 1000, 2000};
  static constexpr uint32_t retries[] = {60, 100, 200, 300};
  static constexpr uint32_t fifos[] = {8, 12, 64};
  static constexpr uint32_t rooms[] = {REDLOCK_RX_BYTES_MIN, 600, 1024};
  s.masters = plan.masters;
  s.ttl_ms = plan.ttl_ms[0];
  s.wait_ms = 1500;
  s.max_ttl_ms = plan.ttl_max_ms;
  s.node_timeout = Duration::ms(random.pick(node_timeouts));
  s.connect_timeout = Duration::ms(random.pick(connect_timeouts));
  s.suspect_close = Duration::ms(random.pick(suspects));
  s.reconnect_min_ms = random.pick(reconnects);
  s.reconnect_max_ms = random.pick(longest_reconnects);
  s.ping_interval = Duration::ms(random.pick(pings));
  unsigned users = 0;
  for (unsigned c = 0; c < plan.clients; ++c) users += plan.users[c];
  s.retry_delay_ms = random.pick(retries) * (1 + users / 3);  // many waiters ask less often, as one configures them
  s.in_flight = random.pick(fifos);
  s.rx_bytes = random.pick(rooms);
  s.locks = usual_users;
  s.debts = s.locks + static_cast<uint32_t>(random.between(1, 6));
  s.tx_bytes = random.coin() ? 1024 : 0;
}

void list_all(Plan& plan) {
  plan.sets[0].masters = plan.masters;
  for (unsigned m = 0; m < list_max; ++m) plan.sets[0].server[m] = m;
}

void make_ring(Plan& plan) {
  plan.ring = true;
  plan.masters = plan.clients = plan.settings.masters = plan.sets[0].masters = 3;
  plan.resources = 1;
  plan.faults = 0;
  plan.wait_choice = 0;
  plan.untracked = ~uint32_t{0};
  plan.delay = 1 * ms;
  for (unsigned& users : plan.users) users = 1;
  for (int64_t& ppm : plan.client_ppm) ppm = 0;
  for (int64_t& ppm : plan.suspended_ppm) ppm = 0;
  for (int64_t& ppm : plan.master_ppm) ppm = 0;
}

// More put-backs than a turn has room for are due at once, when a master of these loses its keys.
void make_many(Plan& plan) {
  constexpr uint32_t ttl_ms = 2900;
  Settings& s = plan.settings;
  plan.many = true;
  plan.several = plan.endless = false;
  plan.masters = s.masters = plan.sets[0].masters = 3;
  plan.clients = 2;
  plan.resources = plan.users[0] = users_max;
  plan.users[1] = 1;
  plan.faults = 1u << static_cast<unsigned>(Fault::forget) | 1u << static_cast<unsigned>(Fault::flushall);
  plan.fault_gap = 800 * ms;
  plan.ttl_ms[0] = plan.ttl_ms[1] = plan.ttl_max_ms = s.ttl_ms = ttl_ms;
  s.max_ttl_ms = std::max(s.max_ttl_ms, ttl_ms);
  s.locks = users_max;
  s.debts = 2 * users_max;  // as many as a set of claims in watch.cpp has bits
  s.in_flight = 4 * users_max;
  plan.quiet_at = 4 * second + ttl_ms * ms;
  plan.close_at = plan.quiet_at + 2500 * ms + 2 * ttl_ms * ms + plan.guard_time();
  plan.give_up_at = plan.close_at + 2 * second;
}

// A stream of its own: the worlds without a guard are what they were before it was built.
void draw_guard(uint64_t seed, Plan& plan) {
  Stream random(seed, Purpose::guard);
  const bool guarded = random.chance(500);
  if (!guarded && !plan.clocks && !plan.moves) return;
  plan.settings.guard = GuardMode::strict;
  plan.settings.max_ttl_ms = plan.ttl_max_ms;
  plan.sealed = random.chance(850);
  const bool twice = random.chance(100);
  const bool forgets = random.chance(600);
  const bool flushes = random.chance(600);
  const bool resyncs = random.chance(600);
  plan.replicated = static_cast<uint32_t>(random.next() & random.next());
  if (random.chance(800)) plan.faults &= (1u << first_hopeless) - 1;
  if (forgets) plan.faults |= 1u << static_cast<unsigned>(Fault::forget);
  if (flushes) plan.faults |= 1u << static_cast<unsigned>(Fault::flushall);
  if (resyncs) plan.faults |= 1u << static_cast<unsigned>(Fault::resync);
  if (twice && plan.masters > 2) plan.sets[0].server[plan.masters - 1] = 0;
  plan.close_at += plan.guard_time();
  plan.give_up_at += plan.guard_time();
}

// Mostly the usual numbers; any number up to 7 is allowed, and an even one, too.
unsigned draw_masters(uint64_t seed, Stream& random) {
  static constexpr unsigned usual[] = {1, 3, 3, 3, 5};
  const unsigned masters = random.pick(usual);
  Stream others(seed, Purpose::worlds, 1);
  return others.chance(250) ? static_cast<unsigned>(others.between(1, list_max)) : masters;
}

// What makes worlds differ besides: a stream of its own.
void draw_variety(uint64_t seed, Plan& plan) {
  Stream random(seed, Purpose::worlds);
  plan.idle = random.chance(300) ? static_cast<uint32_t>(random.next()) : 0;
  plan.detached = static_cast<uint32_t>(random.next());
  const bool strict_tokens = random.chance(200);
  const uint32_t nameless = random.chance(150) ? static_cast<uint32_t>(random.next()) : 0;
  const bool commissions = random.coin();
  static constexpr uint32_t factors[] = {2, 5, 10, 30};
  const uint32_t longer_ms = plan.ttl_max_ms * random.pick(factors);
  const bool long_ttl = random.chance(80) && longer_ms <= 15'000;
  plan.settings.fence_strict = strict_tokens;
  plan.one_boot_id = Stream(seed, Purpose::worlds, 2).chance(250);
  if (!plan.guarded() || plan.clocks || plan.moves) return;
  if (nameless != 0) {
    plan.settings.guard = GuardMode::weak;
    const bool twice = plan.sets[0].server[plan.masters - 1] == 0 && plan.masters > 1;
    plan.nameless = twice ? nameless & ~1u : nameless;  // only its run id tells that it is the same server
  }
  plan.commissioned = commissions && !plan.sealed;
  if (!long_ttl) return;
  const Ns before = plan.guard_time();
  plan.settings.max_ttl_ms = longer_ms;
  plan.close_at += plan.guard_time() - before;
  plan.give_up_at += plan.guard_time() - before;
}

// Whose clock is stepped answers TIME truly and by itself: what else moves a clock, or answers, may hide a step. A
// clone's visit may be as much older as the step is long.
void make_clocks(Plan& plan) {
  static constexpr Fault left_out[] = {Fault::garbage, Fault::wall_freeze, Fault::evict, Fault::wall_slew,
                                       Fault::clone};
  for (const Fault fault : left_out) plan.faults &= ~(1u << static_cast<unsigned>(fault));
  plan.faults |= 1u << static_cast<unsigned>(Fault::wall_step);
  list_all(plan);
}

}  // namespace

// Often at the edge of what is allowed: that is where a margin shows whether it is one.
int64_t draw_rate(Stream& random) {
  const uint64_t how = random.below(4);
  if (how == 0) return rate_edge_ppm;
  if (how == 1) return -rate_edge_ppm;
  return random.between(-rate_edge_ppm, rate_edge_ppm);
}

Settings settings_of(const Plan& plan, unsigned client) {
  static constexpr const char* names[] = {"m0", "m1", "m2", "m3", "m4", "m5", "m6"};
  const Set& set = plan.sets[plan.set_of[client]];
  Settings settings = plan.settings;
  settings.masters = set.masters;
  for (MasterIndex m = 0; m < set.masters; ++m) {
    settings.master[m].name = plan.moves ? Bytes(names[set.server[m]], 2) : Bytes("m");
    settings.master[m].host = Bytes("127.0.0.1");
  }
  if (!plan.moves) return settings;
  settings.max_ttl_ms = set.max_ttl_ms;
  settings.ttl_ms = std::min(settings.ttl_ms, set.max_ttl_ms);
  if (client < plan.clients) return settings;
  settings.guard = GuardMode::off;
  settings.locks = 1;
  settings.in_flight = REDLOCK_IN_FLIGHT_MIN;
  settings.debts = 2;
  return settings;
}

const char* fault_name(Fault fault) {
#define REDLOCK_SIM_FAULT(name, text) #name,
  static constexpr const char* names[] = {REDLOCK_SIM_FAULTS(REDLOCK_SIM_FAULT)};
#undef REDLOCK_SIM_FAULT
  return names[static_cast<unsigned>(fault)];
}

const char* fault_text(Fault fault) {
#define REDLOCK_SIM_FAULT(name, text) text,
  static constexpr const char* texts[] = {REDLOCK_SIM_FAULTS(REDLOCK_SIM_FAULT)};
#undef REDLOCK_SIM_FAULT
  return texts[static_cast<unsigned>(fault)];
}

Plan draw_plan(uint64_t seed, Worlds worlds) {
  Stream random(seed, Purpose::plan);
  static constexpr uint32_t ttls[] = {300, 700, 1000, 1900, 2900};
  static constexpr uint32_t thinks[] = {5, 50, 200};
  Plan plan = {};
  plan.clocks = worlds == Worlds::clocks;
  plan.moves = worlds == Worlds::moves;
  plan.masters = draw_masters(seed, random);
  plan.clients = static_cast<unsigned>(random.between(2, random.coin() ? 3 : lockers_max));
  plan.resources = random.chance(700) ? 1 : static_cast<unsigned>(random.between(2, usual_users));
  for (unsigned c = 0; c < lockers_max; ++c) {
    plan.users[c] = random.chance(700) ? 1 : static_cast<unsigned>(random.between(2, usual_users));
  }
  plan.ttl_ms[0] = random.pick(ttls);
  plan.ttl_ms[1] = random.coin() ? plan.ttl_ms[0] : random.pick(ttls);
  plan.ttl_max_ms = plan.ttl_ms[0] > plan.ttl_ms[1] ? plan.ttl_ms[0] : plan.ttl_ms[1];
  plan.wait_choice = static_cast<uint32_t>(random.below(3));
  plan.think_ms = random.pick(thinks);
  plan.delay = random.spread(50 * us, 4 * ms);
  for (unsigned c = 0; c < lockers_max; ++c) plan.client_ppm[c] = draw_rate(random);
  for (unsigned c = 0; c < lockers_max; ++c) plan.suspended_ppm[c] = draw_rate(random);
  for (unsigned m = 0; m < list_max; ++m) plan.master_ppm[m] = draw_rate(random);
  plan.faults = draw_faults(seed, random, worlds);
  plan.fault_gap = random.spread(20 * ms, 800 * ms);
  const Ns ttl = plan.ttl_max_ms * ms;
  plan.quiet_at = random.between(2 * second, 4 * second) + ttl;
  const Ns share = plan.quiet_at * 35 / 65;
  const Ns needed = 2500 * ms + 2 * ttl;
  plan.close_at = plan.quiet_at + (share > needed ? share : needed);
  plan.give_up_at = plan.close_at + 2 * second;
  draw_settings(plan, random);
  list_all(plan);
  draw_guard(seed, plan);
  draw_variety(seed, plan);
  plan.fenced = seed % 3 == 1 && !plan.ring;  // no draw: the other worlds are what they were
  plan.endless = seed % 4 == 2;
  plan.several = plan.resources > 1 && Stream(seed, Purpose::several).coin();
  plan.untracked = random.chance(800) ? 0 : static_cast<uint32_t>(random.next());
  plan.expires_actively = static_cast<uint32_t>(random.next());
  if (random.chance(30) && !plan.clocks && !plan.moves) make_ring(plan);
  if (!plan.ring && worlds == Worlds::swarm && Stream(seed, Purpose::worlds, 3).chance(20)) make_many(plan);
  if (plan.clocks) make_clocks(plan);
  if (plan.moves) make_moves(seed, plan);
  return plan;
}

}  // namespace redlock::sim
