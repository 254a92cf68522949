// SPDX-License-Identifier: MIT
//
// The clients' half of a run of the proof: rounds, votes, validities, ends.
#include "proof_run.hpp"

#include "world.hpp"

namespace redlock::sim {
namespace {

constexpr const char* step_names[] = {
#define REDLOCK_PROOF_STEP(id, name, conditions, looked) name,
    REDLOCK_PROOF_STEPS(REDLOCK_PROOF_STEP)
#undef REDLOCK_PROOF_STEP
};
constexpr const char* statement_names[] = {
#define REDLOCK_PROOF_STATEMENT(id, name) name,
    REDLOCK_PROOF_STATEMENTS(REDLOCK_PROOF_STATEMENT)
#undef REDLOCK_PROOF_STATEMENT
};

unsigned bit(unsigned m) { return 1u << m; }

}  // namespace

const char* proof_step_name(unsigned step) { return step_names[step]; }

bool ProofRun::speaks_of(const Plan& plan) {
  return plan.settings.guard == GuardMode::strict && !plan.moves && !plan.beyond() && !plan.commissioned;
}

ProofRun::ProofRun(World& world) : world_(world) {
  const Settings& s = world.plan().settings;
  const Ns drift = Ns{s.max_ttl_ms} * s.drift_ppm + Ns{s.drift_fixed_ms} * ms;
  longest_ = s.max_ttl_ms * ms - drift;
  guard_ = s.max_ttl_ms * ms + drift;
  for (unsigned m = 0; m < world.plan().masters; ++m) {
    const test::RedisDouble& redis = world.master(m).redis;
    servers_[m].run_id = redis.run_id();
    servers_[m].replid = redis.replid();
    servers_[m].replica = redis.knobs.replica;
  }
}

void ProofRun::need(bool holds, unsigned client, ProofStep step, unsigned condition, Ns t) {
  if (holds) return;
  world_.violate(t - second, bit(client), "the proof: condition %u of \"%s\" does not hold for c%u", condition,
                 step_names[static_cast<unsigned>(step)], client);
}

void ProofRun::state(bool holds, unsigned client, ProofStatement statement, Ns t) {
  if (holds) return;
  world_.violate(t - second, bit(client), "the proof: \"%s\" does not hold for c%u",
                 statement_names[static_cast<unsigned>(statement)], client);
}

Ns ProofRun::clock(unsigned client, int64_t ahead, Ns t) const {
  return world_.process(client).machine.own(t) + ahead;
}

// A wall clock that was stepped is outside of the proof's assumptions.
bool ProofRun::is_judged(unsigned master) const {
  return world_.master(master).step.count == 0;
}

ProofRun::Attempt* ProofRun::find(std::string_view value) {
  const auto found = attempts_.find(std::string(value.substr(0, ValueBytes::hex_size)));
  return found != attempts_.end() ? &found->second : nullptr;
}

void ProofRun::look(const Process& process, unsigned client, Instant now, Ns t) {
  const Client& of = process.client();
  for (uint16_t slot = 0; slot < of.settings().locks; ++slot) {
    const Lock& lock = of.lock(slot);
    const bool has_round = lock.state == State::acquiring || lock.state == State::held;
    if (!has_round || lock.claim == no_slot) continue;
    Attempt*& known = known_[client][slot];
    const Claim& claim = of.claims()[lock.claim];
    if (known == nullptr || known->number != lock.generation || known->rounds != lock.rounds) {
      known = &attempts_[hex_of(claim)];
      begin(*known, client, claim, lock);
      open_.push_back(known);
    }
    learn(*known, process, lock, now.ns(), t);
  }
  find_ended(process, client, now.ns(), t);
}

void ProofRun::begin(Attempt& a, unsigned client, const Claim& claim, const Lock& lock) {
  a.value = hex_of(claim);
  a.client = client;
  a.claim = lock.claim;
  a.slot = lock.slot;
  a.number = lock.generation;
  a.rounds = lock.rounds;
  for (const Bytes name : lock.names) a.resources |= bit(static_cast<unsigned>(name.data[1] - '0'));
}

void ProofRun::learn(Attempt& a, const Process& process, const Lock& lock, Ns now, Ns t) {
  if (a.round != lock.round.number) begin_round(a, process, lock, now, t);
  hear(a, process, lock, t);
  const bool later = !a.won || lock.valid_until.ns() > a.valid_until;
  if (lock.state == State::held && later) win(a, process, lock, now, t);
}

void ProofRun::begin_round(Attempt& a, const Process& process, const Lock& lock, Ns now, Ns t) {
  const Settings& s = world_.plan().settings;
  const ProofStep step = a.round == 0 ? ProofStep::begin : ProofStep::extend_round;
  a.round = lock.round.number;
  a.ttl_ms = lock.round.ttl_ms;
  a.validity = a.ttl_ms * ms - (Ns{a.ttl_ms} * s.drift_ppm + Ns{s.drift_fixed_ms} * ms);
  a.executed = a.heard = 0;
  a.began = t;
  a.t0 = lock.round.t0.ns();
  a.ahead = process.ahead();
  state(a.t0 <= now, a.client, ProofStatement::counts_from_before, t);
  if (a.validity <= 0) return;  // a probe: it only compares
  take(step);
  if (step == ProofStep::extend_round) {
    need(a.won, a.client, step, 1, t);
    need(!a.ended, a.client, step, 2, t);
  }
  need(a.validity <= longest_, a.client, step, step == ProofStep::begin ? 3 : 4, t);
}

void ProofRun::hear(Attempt& a, const Process& process, const Lock& lock, Ns t) {
  for (const MasterIndex m : lock.round.granted) {
    const unsigned server = process.set().server[m];
    if ((a.heard & bit(server)) != 0 || a.validity <= 0) continue;
    a.heard |= bit(server);
    take(ProofStep::heard);
    need((a.executed & bit(server)) != 0, a.client, ProofStep::heard, 1, t);
  }
}

void ProofRun::win(Attempt& a, const Process& process, const Lock& lock, Ns now, Ns t) {
  const Ns until = lock.valid_until.ns();
  take(ProofStep::win);
  need(static_cast<unsigned>(__builtin_popcount(a.heard)) >= process.quorum(), a.client, ProofStep::win, 2, t);
  need(now < until && until <= a.t0 + a.validity, a.client, ProofStep::win, 3, t);
  need(!a.ended, a.client, ProofStep::win, 4, t);
  need(!a.won || now < a.valid_until, a.client, ProofStep::win, 5, t);
  a.won = true;
  a.valid_until = until;
  if (clock(a, t) >= until) return;  // its machine was suspended while it read the clock: no check succeeds any more
  judge_promises(a, process, t);
  for (const Attempt* const other : open_) {
    const bool meets = other != &a && (other->resources & a.resources) != 0;
    const bool believes = meets && other->won && clock(*other, t) < other->valid_until && clock(a, t) < until;
    state(!believes || excused(a, *other), a.client, ProofStatement::one_holder, t);
  }
}

void ProofRun::judge_promises(const Attempt& a, const Process& process, Ns t) {
  unsigned promised = 0, kept = 0;
  for (const unsigned m : each(a.heard)) {
    const bool has = a.promise[m] >= a.valid_until;
    promised += has ? 1u : 0u;
    const bool forgot = servers_[m].lost >= a.promised_at[m] || world_.checker().lost_at(m) >= a.promised_at[m];
    kept += has && (forgot || !is_judged(m) || keeps(a, m, a.valid_until, t)) ? 1u : 0u;
  }
  state(promised >= process.quorum(), a.client, ProofStatement::holder_has_promises, t);
  state(kept >= process.quorum(), a.client, ProofStatement::promise_is_kept, t);
}

// Masters whose wall clock was stepped may have expired a key too early.
bool ProofRun::excused(const Attempt& a, const Attempt& b) const {
  for (const unsigned m : each(a.heard | b.heard)) {
    if (!is_judged(m)) return true;
  }
  return false;
}

// A lock that is told as lost is open until its validity is over: its owner may rely on an earlier check.
void ProofRun::find_ended(const Process& process, unsigned client, Ns now, Ns t) {
  const Claims& claims = process.client().claims();
  for (size_t i = open_.size(); i-- > 0;) {
    Attempt& a = *open_[i];
    if (a.client != client) continue;
    const Claim& claim = claims[a.claim];
    a.let_go = process.client().lock(a.slot).claim != a.claim;
    if (claim.used && !claim.ended && hex_of(claim) == a.value) continue;
    a.ended = true;
    take(ProofStep::end);
    state(!a.won || a.released || now >= a.valid_until, a.client, ProofStatement::over_is_over, t);
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void ProofRun::released(unsigned client, uint64_t handle) {
  for (Attempt* const a : open_) a->released |= a->client == client && a->number == Table::generation(handle) &&
                                                a->slot == (handle & 0xFFFF) - 1;
}

void ProofRun::closes(unsigned client) {
  for (Attempt* const a : open_) a->released |= a->client == client;
}

void ProofRun::checked(unsigned client, uint64_t handle, bool held, Ns t) {
  for (Attempt* const a : open_) {
    if (a->client != client || a->number != Table::generation(handle) || a->slot != (handle & 0xFFFF) - 1) continue;
    if (!held) take(ProofStep::check_fails);
    state(!held || !a->expired, client, ProofStatement::over_is_over, t);
    a->expired |= !held;
  }
}

void ProofRun::died(unsigned client) {
  std::erase_if(open_, [client](Attempt* a) { return a->client == client && (a->ended = true); });
  known_[client] = {};
}

}  // namespace redlock::sim
