// SPDX-License-Identifier: MIT
#include "checker.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "lock/quorum.hpp"
#include "world.hpp"

namespace redlock::sim {
namespace {

// Stated bounds of the quiet phase.
constexpr Ns delete_bound = 250 * ms;    // a key whose end the client knows
constexpr Ns stray_bound = 1600 * ms;    // at most, while deletes are repeated: after late bytes, errors
constexpr Ns lost_bound = 20 * ms;       // LOST after the end of the validity, while the process runs

Ns lifetime(uint32_t ttl_ms) { return ttl_ms * ms * 1011 / 1000 + 5 * ms; }

// Somebody waits and nobody holds: a waiter sleeps for max_ttl at most, and may lose its round to one that loses too.
Ns nobody_bound(const Plan& plan) { return plan.settings.max_ttl_ms * ms * 3 / 2 + 300 * ms; }

}  // namespace

Checker::Checker(World& world) : world_(world) {
  for (auto& row : healthy_since_) std::fill(std::begin(row), std::end(row), never);
  for (auto& row : slow_until_) std::fill(std::begin(row), std::end(row), -never);
  std::fill(std::begin(lost_at_), std::end(lost_at_), -never);
  std::fill(std::begin(old_keys_at_), std::end(old_keys_at_), -never);
  for (auto& row : late_at_) std::fill(std::begin(row), std::end(row), -never);
  for (auto& row : too_late_at_) std::fill(std::begin(row), std::end(row), -never);
  std::fill(std::begin(nobody_since_), std::end(nobody_since_), never);
  late_limit_ = std::min(world.plan().ttl_ms[0], world.plan().ttl_ms[1]) * ms;
}

// ---- exclusion ------------------------------------------------------------------------------------------------

Belief* Checker::find(unsigned client, uint64_t handle) {
  const unsigned incarnation = world_.process(client).incarnation();
  for (Belief& b : beliefs_) {
    if (b.client == client && b.handle == handle && b.incarnation == incarnation) return &b;
  }
  return nullptr;
}

bool Checker::active(const Belief& b, Ns t) const {
  return b.from <= t && t < b.until && world_.process(b.client).machine.own(t) + b.ahead < b.valid_until.ns();
}

void Checker::acquired(unsigned client, const User& user, Ns t) {
  Process& process = world_.process(client);
  const Instant until = process.client().cell(user.handle)->read().valid_until;
  // The round began before this run of the loop, and was won in it.
  if (until < process.loop_began() + Duration::ms(user.options.min_validity_ms)) {
    world_.violate(user.asked_at, 1u << client, "won with less than min_validity_ms");
  }
  const Instant limit = user.options.max_hold_ms == 0
                            ? Instant::never()
                            : later(until, process.loop_began() + Duration::ms(user.options.max_hold_ms));
  beliefs_.push_back({client, process.incarnation(), user.handle, user.resources, user.asked_at, t, never, until, limit,
                      process.ahead(), false, false});
  for (unsigned r : each(user.resources)) nobody_since_[r] = never;  // it may be released before anybody looks
  world_.heap().push(t, Kind::belief, client);
}

void Checker::token_given(unsigned client, const User& user, const redlock_event_t& event, Ns t) {
  const Plan& plan = world_.plan();
  if (event.token == 0) {
    if (plan.fenced) world_.violate(user.asked_at, 1u << client, "a fenced lock without a token");
    return;
  }
  Process& process = world_.process(client);
  if (process.client().cell(user.handle)->token(Table::generation(user.handle)) != event.token) {
    world_.violate(user.asked_at, 1u << client, "two tokens for one lock");
  }
  const bool forgets = plan.forgets() || plan.has(Fault::evict);
  const bool claimed = (event.flags & REDLOCK_EV_F_FLOORED) == 0 && (!forgets || plan.guarded());
  for (const Token& other : tokens_) {
    if (!claimed || (other.resources & user.resources) == 0) continue;
    if (world_.witness().floored_below(user.resources, other.token, other.asked_at)) continue;
    const unsigned long long mine = event.token, theirs = other.token;
    if (other.token == event.token) {
      world_.violate(user.asked_at, 1u << client, "token %llu was given before", mine);
    } else if (other.token > event.token && other.told_at < user.asked_at) {
      world_.violate(user.asked_at, 1u << client, "token %llu after %llu", mine, theirs);
    }
  }
  tokens_.push_back({user.resources, event.token, user.asked_at, t});
}

void Checker::checked(unsigned client, const User& user, Ns t, Instant reading, Ns boot_read_at) {
  Belief* b = find(client, user.handle);
  if (b == nullptr) return world_.violate(t - second, 1u << client, "a check says held before ACQUIRED");
  b->ahead = std::min(b->ahead, reading.ns() - world_.process(client).machine.own(boot_read_at));
  if (b->over || b->until != never) {
    world_.violate(b->asked_at, 1u << client, "a check says held after the lock has ended");
  }
  world_.heap().push(t, Kind::belief, client);
}

void Checker::doubted(unsigned client, const User& user) {
  if (Belief* b = find(client, user.handle)) b->doubted = true;
}

// Has the end moved?
bool Checker::published(unsigned client, const User& user, Instant valid_until, Ns t) {
  Belief* b = find(client, user.handle);
  if (b == nullptr) return false;
  if (valid_until <= world_.process(client).last_turn()) {
    world_.violate(b->asked_at, 1u << client, "the validity was over when time was handled, but no LOST was told");
  }
  if (valid_until == b->valid_until) return false;
  if (valid_until < b->valid_until) world_.violate(b->asked_at, 1u << client, "the validity got shorter");
  if (b->valid_until <= world_.process(client).loop_began()) {
    world_.violate(b->asked_at, 1u << client, "extended after the validity was over");
  }
  if (valid_until > b->hold_until) world_.violate(b->asked_at, 1u << client, "extended beyond max_hold_ms");
  b->valid_until = valid_until;
  world_.heap().push(t, Kind::belief, client);
  return true;
}

// Not judged where masters are disowned for another reason: guarded ones that may have forgotten, clocks that step; nor
// where a master gets keys back that it had lost; nor where a check said no after a suspend. Nor when nonsense was said
// to this client while it wanted the lock: once said for two answers, it moves the next answer to the extend's place.
void Checker::lost(unsigned client, const User& user, Ns t) {
  const Plan& plan = world_.plan();
  const Belief* const b = find(client, user.handle);
  if (b == nullptr || b->doubted || plan.guarded() || plan.forgets() || plan.has(Fault::wall_step)) return;
  if (world_.network().heard_nonsense(client, ~0u, b->asked_at)) return;
  if (world_.process(client).machine.own(t) + b->ahead + 5 * ms >= b->valid_until.ns()) return;
  ++marks.lost_early;
  unsigned there = 0;
  for (unsigned m = 0; m < plan.masters; ++m) {
    bool ours = true;
    for (unsigned r : each(b->resources)) {
      const auto* const entry = world_.master(m).redis.peek(resource_name(r), world_.now());
      ours = ours && entry && memcmp(entry->value.data(), user.value, sizeof user.value) == 0;
    }
    there += ours ? 1u : 0u;
  }
  if (there >= plan.masters / 2 + 1) {
    world_.violate(b->asked_at, 1u << client, "LOST before its time, and %u masters have the keys", there);
  }
}

void Checker::released(unsigned client, uint64_t handle, Ns t) {
  if (Belief* b = find(client, handle)) b->until = std::min(b->until, t);
}

// Whoever closes relies on nothing more, not even on an earlier check of a lock that is LOST.
void Checker::closes(unsigned client, Ns t) {
  for (Belief& b : beliefs_) {
    if (b.client == client) b.until = std::min(b.until, t);
  }
}

void Checker::over(unsigned client, uint64_t handle) {
  if (Belief* b = find(client, handle)) b->over = true;
}

void Checker::died(unsigned client, Ns t) {
  for (Belief& b : beliefs_) {
    if (b.client == client) b.until = std::min(b.until, t), b.over = true;
  }
}

void Checker::compare(unsigned client) {
  if (world_.plan().beyond()) return;
  const Ns now = world_.now();
  for (const Belief& mine : beliefs_) {
    if (mine.client != client || !active(mine, now)) continue;
    for (const Belief& other : beliefs_) {
      const unsigned both = mine.resources & other.resources;
      if (&other == &mine || both == 0 || !active(other, now) || excused(mine, other, now)) continue;
      world_.violate(
          std::min(mine.asked_at, other.asked_at), 1u << mine.client | 1u << other.client,
          "c%u and c%u hold %s at the same time (for another %.3f and %.3f ms)", mine.client, other.client,
          resource_name(static_cast<unsigned>(__builtin_ctz(both))),
          static_cast<double>(mine.valid_until.ns() - world_.process(mine.client).machine.own(now) - mine.ahead) / 1e6,
          static_cast<double>(other.valid_until.ns() - world_.process(other.client).machine.own(now) - other.ahead) /
              1e6);
      return;
    }
  }
}

// ---- looks from time to time ----------------------------------------------------------------------------------

void Checker::sample() {
  const Ns now = world_.now();
  std::erase_if(beliefs_,
                [&](const Belief& b) { return b.from < now && (b.until <= now || (b.over && !active(b, now))); });
  for (unsigned c = 0; c < world_.plan().clients; ++c) sample_process(c);
  for (unsigned m = 0; m < world_.plan().masters; ++m) sample_forgotten(m);
  if (world_.plan().moves) sample_move();
  if (!world_.quiet() || world_.closing()) return;
  for (unsigned m = 0; m < world_.plan().masters; ++m) sample_keys(m);
  sample_progress();
}

void Checker::sample_process(unsigned client) {
  Process& process = world_.process(client);
  const Ns now = world_.now();
  const bool runs = process.running() && !process.closed() && now >= process.held_until();
  for (unsigned m = 0; m < world_.plan().masters; ++m) {
    const int place = process.set().place_of(m);
    const bool healthy = runs && place >= 0 && process.told_connected(static_cast<unsigned>(place));
    if (!healthy) {
      healthy_since_[client][m] = never;
    } else if (healthy_since_[client][m] == never) {
      healthy_since_[client][m] = now;
    }
  }
  if (!runs) return;
  for (unsigned m = 0; m < world_.plan().masters; ++m) sample_look(client, m);
  const Claims& claims = process.client().claims();
  unsigned used = 0;
  for (uint16_t i = 0; i < claims.capacity(); ++i) used += claims[i].used ? 1u : 0u;
  marks.claims = std::max(marks.claims, used);
  marks.debts = std::max(marks.debts, claims.debts());
  if (claims.debts() > used) world_.violate(now - second, 1u << client, "more debts than claims");
  // A fast slew after the timer was armed makes it late; only check() may be relied upon then.
  const Ns slack = lost_bound + (world_.plan().has(Fault::slew) ? world_.plan().ttl_max_ms * ms / 10 : 0);
  for (const Belief& b : beliefs_) {
    if (b.client != client || b.over || b.until != never) continue;
    if (process.machine.own(now) + b.ahead > b.valid_until.ns() + slack && now > process.held_until() + slack) {
      world_.violate(b.asked_at, 1u << client, "the validity ended %.3f ms ago and no LOST was told",
                     static_cast<double>(process.machine.own(now) + b.ahead - b.valid_until.ns()) / 1e6);
    }
  }
}

// ---- ghosts ---------------------------------------------------------------------------------------------------

void Checker::slow_bytes(const Connection& c, Ns arrive) {
  Ns& until = slow_until_[c.client][c.master];
  until = std::max(until, arrive);
}

// Bytes of a closed connection that a master receives, or reads after it stood still.
void Checker::late_bytes(const Connection& c, Ns t) {
  // A process in a slow callback closes in its own present, which the world has yet to come to.
  const Ns since = std::max(Ns{0}, t - c.closed_at);
  // Deletes are repeated at doubling intervals, so the longest is about the time since the connection broke.
  late_bound_[c.client][c.master] = std::min(stray_bound, since * 3 / 2 + delete_bound);
  late_at_[c.client][c.master] = t;
  if (since > late_limit_) too_late_at_[c.client][c.master] = t;
}

// The client that made a value, or -1 when it has died since.
int Checker::maker_of(std::string_view value) const {
  unsigned client = 0, incarnation = 0;
  if (value.size() < 42 || value[40] != ':' || value[41] != 'c') return -1;
  const char* const end = value.data() + value.size();
  const char* const dot = std::from_chars(value.data() + 42, end, client).ptr;
  if (dot == end || *dot != '.' || std::from_chars(dot + 1, end, incarnation).ptr != end) return -1;
  Process& process = world_.process(client);
  if (!process.running() || process.incarnation() % 1000 != incarnation) return -1;
  return static_cast<int>(client);
}

// Its maker; is it the value of a lock that is acquiring or held?
int Checker::owner_of(const std::string& value, bool& claimed) const {
  claimed = false;
  const int client = maker_of(value);
  if (client < 0) return -1;
  const Claims& claims = world_.process(static_cast<unsigned>(client)).client().claims();
  for (uint16_t i = 0; i < claims.capacity(); ++i) {
    if (claims[i].used && !claims[i].ended && hex_of(claims[i]) == value.substr(0, 40)) claimed = true;
  }
  return client;
}

// A claim is kept for as long as any master may have its value. Not judged: late bytes, which may come after the last
// delete of a debt, masters whose clock or memory is not what it should be, and answers that stand one place further
// since nonsense has eaten one: a delete was then said to be answered that was not.
void Checker::sample_forgotten(unsigned master) {
  const Ns now = world_.now();
  const Plan& plan = world_.plan();
  if (world_.master(master).clock_disturbed || has_old_keys(master)) return;
  for (unsigned r = 0; r < plan.resources; ++r) {
    const auto* const entry = world_.master(master).redis.peek(resource_name(r), now);
    bool claimed = false;
    const int owner = entry ? owner_of(entry->value, claimed) : -1;
    if (owner < 0 || claimed || now < world_.process(static_cast<unsigned>(owner)).held_until()) continue;
    const unsigned client = static_cast<unsigned>(owner);
    const Ns since = now - 2 * lifetime(plan.ttl_max_ms);
    if (too_late_at_[owner][master] > since) continue;
    if (world_.network().heard_nonsense(client, 1u << master, since, Garbage::endless)) continue;
    const Claims& claims = world_.process(client).client().claims();
    bool known = false;
    for (uint16_t i = 0; i < claims.capacity() && !known; ++i) {
      known = claims[i].used && entry->value.compare(0, 40, hex_of(claims[i])) == 0;
    }
    if (!known) {
      world_.violate(now - 4 * second, 1u << owner, "m%u has %s = %s, and c%d has forgotten it", master,
                     resource_name(r), entry->value.c_str(), owner);
    }
  }
}

// A key that was deleted is there again, with what was left of its ttl. Nobody knows of it, and it expires. A stray
// extend of its lock may find it before, and give it a whole ttl once more.
bool Checker::has_old_keys(unsigned master) const {
  return world_.now() < old_keys_at_[master] + 2 * lifetime(world_.plan().ttl_max_ms);
}

void Checker::sample_keys(unsigned master) {
  for (unsigned r = 0; r < world_.plan().resources; ++r) {
    Orphan& orphan = orphans_[master][r];
    const auto* const entry = world_.master(master).redis.peek(resource_name(r), world_.now());
    bool claimed = false;
    const int owner = entry ? owner_of(entry->value, claimed) : -1;
    if (!entry || claimed) {
      orphan.since = never;
      continue;
    }
    if (orphan.since == never || orphan.value != entry->value) orphan = {entry->value, world_.now()};
    judge_orphan(master, r, owner);
  }
}

void Checker::judge_orphan(unsigned master, unsigned resource, int owner) {
  const Orphan& orphan = orphans_[master][resource];
  const Ns now = world_.now();
  const Plan& plan = world_.plan();
  const Ns no_deaths_since = std::max(plan.quiet_at + 310 * ms, world_.ended_at());
  if (!plan.has(Fault::wall_step) && now > no_deaths_since + lifetime(plan.ttl_max_ms) &&
      now - orphan.since > delete_bound) {
    world_.violate(now - lifetime(plan.ttl_max_ms) - second, ~0u, "ghost: m%u still has %s = %s of nobody", master,
                   resource_name(resource), orphan.value.c_str());
  }
  // A debt also ends when the key must have expired; a disturbed wall clock may keep the key for longer.
  if (owner < 0 || healthy_since_[owner][master] == never || world_.master(master).clock_disturbed) return;
  if (has_old_keys(master)) return;
  const Ns late = late_at_[owner][master];
  if (too_late_at_[owner][master] > now - lifetime(plan.ttl_max_ms)) return;  // too late for any debt: it expires
  const Ns since = std::max({orphan.since, healthy_since_[owner][master], late, slow_until_[owner][master]});
  marks.orphan = std::max(marks.orphan, now - since);
  Ns bound = late > now - 4 * second ? late_bound_[owner][master] : delete_bound;
  if (now < world_.master(master).troubled_until + 3 * second) bound = stray_bound;
  if (now - since <= bound) return;
  world_.violate(now - 4 * second, 1u << owner, "ghost: m%u has had %s = %s for %.0f ms and c%d does not delete it",
                 master, resource_name(resource), orphan.value.c_str(), static_cast<double>(now - since) / 1e6, owner);
}

// ---- progress and work ----------------------------------------------------------------------------------------

// Then every connection is up again, all keys of before have expired, every master was read, and watched.
Ns Checker::settled_at() const {
  const Plan& plan = world_.plan();
  const Ns seen = Ns{plan.settings.ping_interval.ns()} + 2 * Ns{plan.settings.node_timeout.ns()};
  const Ns known = plan.quiet_at + std::max({settled_after, 310 * ms + lifetime(plan.ttl_max_ms), seen});
  if (!plan.moves) return known + plan.guard_time();
  return world_.moved_at() == never ? never : std::max(known, world_.moved_at()) + plan.guard_time();
}

void Checker::sample_progress() {
  const Ns now = world_.now();
  const Plan& plan = world_.plan();
  const Ns settled = settled_at();
  bool waited_for[resources_max] = {};
  for (unsigned c = 0; c < plan.clients; ++c) {
    Process& process = world_.process(c);
    if (!process.running()) {
      if (now > settled && plan.set_of[c] == world_.last_set())
        world_.violate(plan.quiet_at, 1u << c, "c%u does not run", c);
      continue;
    }
    for (const User& user : process.users()) {
      if (user.state != User::State::pending) continue;
      const bool by_default = user.options.wait_ms == REDLOCK_WAIT_DEFAULT;  // the guard has let all masters vote
      const int32_t wait = by_default ? static_cast<int32_t>(plan.settings.wait_ms) : user.options.wait_ms;
      const bool counts = (wait < 0 || wait > 1000) && (!plan.moves || plan.set_of[c] == world_.last_set());
      for (unsigned r : each(counts ? user.resources : 0)) waited_for[r] = true;
      const Ns budget =
          wait * ms * 111 / 100 + Ns{2 * plan.settings.connect_timeout.ns()} + plan.settings.node_timeout.ns() * 3;
      if (wait >= 0 && settled < now && now - std::max(settled, user.asked_at) > budget + 100 * ms) {
        world_.violate(user.asked_at, 1u << c, "an acquire waits longer than its budget of %d ms", wait);
      }
    }
  }
  for (unsigned r = 0; r < plan.resources; ++r) {
    bool held = false;
    // Who waits for several may wait for another of them, and others of its client behind it.
    for (const Belief& b : beliefs_) {
      held = held || ((plan.several || b.resources >> r & 1) && !b.over && b.until == never);
    }
    if (held || !waited_for[r]) {
      nobody_since_[r] = never;
      continue;
    }
    if (nobody_since_[r] == never) nobody_since_[r] = now;
    const Ns gap = settled < now ? now - std::max(nobody_since_[r], settled) : 0;
    marks.gap = std::max(marks.gap, gap);
    // Without a floor nobody gets a token of a resource whose counters too few masters know.
    // A number as large as has_large_tokens() puts there counts only where enough masters still know it (lock/fence).
    const bool unknown = plan.fenced && (plan.settings.fence_strict || world_.has_large_tokens());
    if (gap > nobody_bound(plan) && !plan.has(Fault::wall_step) && !unknown) {
      world_.violate(now - nobody_bound(plan), ~0u, "no progress: %s is waited for and held by nobody for %.0f ms",
                     resource_name(r), static_cast<double>(gap) / 1e6);
    }
  }
}

// A waiter tries again after its random pause, which the max_ttl of its own configuration bounds, and when a master has
// come back. Its first pauses may be short: it tries five times, sleeps for half to all of the time that it has looked,
// and so on (lock/machine_waiting). Each such spell makes that time half as long again at least: nine bring it from a
// spell's length to a pause's. A sleep takes no more than half of what is left, so there may be three more at the end.
void Checker::ended(unsigned client, const User& user, uint32_t rounds, Ns t) {
  marks.rounds = std::max(marks.rounds, rounds);
  const Ns retry = std::min(user.options.retry_delay_ms, user.process->client().settings().max_ttl_ms) * ms;
  const Ns bound = 12 * 5 + 1 + 8 * (t - user.asked_at) / retry + (user.process->ups() - user.ups_before);
  if (rounds > bound) {
    world_.violate(user.asked_at, 1u << client, "%u rounds in %.0f ms: more than %lld", rounds,
                   static_cast<double>(t - user.asked_at) / 1e6, static_cast<long long>(bound));
  }
}

void Checker::waits(unsigned client, const User& user, const redlock_event_t& event) {
  if (!user.options.tell_waiting || event.cause == REDLOCK_CAUSE_NONE || event.cause == REDLOCK_CAUSE_NEVER) {
    world_.violate(user.asked_at, 1u << client, "u%u is told that it waits, with cause %d", user.index, event.cause);
  }
}

// What ends before the shorter budget of the default wait is over must have another reason: a denial, for instance.
void Checker::failed(unsigned client, const User& user, const redlock_event_t& event, Ns t) {
  const bool out_of_time = event.err == REDLOCK_E_LOCKED || event.err == REDLOCK_E_NO_QUORUM ||
                           event.err == REDLOCK_E_GUARD || event.err == REDLOCK_E_TIMEOUT;
  if (user.options.wait_ms != REDLOCK_WAIT_DEFAULT || !out_of_time || event.cause == REDLOCK_CAUSE_NEVER) return;
  if (event.err == REDLOCK_E_NO_QUORUM && redlock::telling(event.master_err) >= redlock::lasting) return;
  const redlock::CommonSettings& s = user.process->client().settings();
  const Ns guard_wait = 2 * redlock::guard_time(s.max_ttl_ms, s.drift_ppm, s.drift_fixed_ms).ns();
  const Ns budget = std::min(guard_wait, s.wait_ms * ms);
  if (t - user.asked_at >= budget * 98 / 100) return;
  world_.violate(user.asked_at, 1u << client, "u%u has waited for %.0f ms only, and is told %d", user.index,
                 static_cast<double>(t - user.asked_at) / 1e6, event.err);
}

void Checker::closed(unsigned client, Process& process) {
  const uint32_t me = 1u << client;
  const Ns since = world_.plan().close_at - 100 * ms;
  for (const User& user : process.users()) {
    if (user.state != User::State::idle)
      world_.violate(user.asked_at, me, "closed, and u%u was told no end", user.index);
  }
  const Claims& claims = process.client().claims();
  if (claims.debts() != 0)
    return world_.violate(since - 3 * second, me, "closed with %u debts, all masters answer", claims.debts());
  for (uint16_t i = 0; i < claims.capacity(); ++i) {
    if (claims[i].used) return world_.violate(since - 3 * second, me, "a claim leaked");
  }
}

}  // namespace redlock::sim
