// SPDX-License-Identifier: MIT
//
// The clients' half of a run of the proof: rounds, votes, validities, ends.
#include "proof_run.hpp"

#include <charconv>

#include "master/guard.hpp"
#include "master/scripts.hpp"
#include "support/lua_scripts.hpp"
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

// The attempt of the lock in this slot; nullptr: it has none.
ProofRun::Attempt* ProofRun::meet(const Process& process, unsigned client, uint16_t slot) {
  const Client& of = process.client();
  const Lock& lock = of.lock(slot);
  const bool has_round = lock.state == State::acquiring || lock.state == State::held;
  if (!has_round || lock.claim == no_slot) return nullptr;
  Attempt*& known = known_[client][slot];
  const Claim& claim = of.claims()[lock.claim];
  if (known == nullptr || known->number != lock.generation || known->rounds != lock.rounds) {
    known = &attempts_[hex_of(claim)];
    begin(*known, client, claim, lock);
    open_.push_back(known);
  }
  return known;
}

void ProofRun::meet(const Process& process, unsigned client) {
  for (uint16_t slot = 0; slot < process.client().settings().locks; ++slot) meet(process, client, slot);
}

void ProofRun::look(const Process& process, unsigned client, Instant now, Ns t) {
  for (uint16_t slot = 0; slot < process.client().settings().locks; ++slot) {
    Attempt* const known = meet(process, client, slot);
    if (known != nullptr) learn(*known, process, process.client().lock(slot), now.ns(), t);
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

// The masters' half of a run of the proof: what they execute, promise, forget and seal.
namespace {

constexpr const char* record_key = "redlock::meta";

// The script's name or its text.
bool is(const Script& script, std::string_view said) {
  if (said.size() == script.sha.size) return Bytes(said.data(), said.size()) == script.sha;
  return said == test::text_of(script);
}

uint32_t number_in(std::string_view text) {
  uint32_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

void ProofRun::executed(const Connection& c, test::Request args, const test::Reply& reply, Ns t) {
  using test::Reply;
  look_at_server(c.master, t);
  if (args[0] == "SET" && args.size() > 3 && reply.kind == Reply::status) return wrote(c, args[2], true, t);
  if ((args[0] != "EVALSHA" && args[0] != "EVAL") || args.size() < 5 || reply.kind == Reply::error) return;
  const std::string_view script = args[1];
  const size_t behind = 3 + number_in(args[2]);
  const bool done = reply.kind == Reply::integer && reply.number == 1;
  if (is(reading_script, script)) return read(c, t);
  if (is(record_script, script) && done) return recorded(c, args, t);
  if (args.size() <= behind) return;
  const bool granted = reply.kind == Reply::status || (reply.kind == Reply::bulk && !reply.text.starts_with("held "));
  if (is(acquire_script, script) && granted) return wrote(c, args[behind], false, t);
  if (is(extend_script, script) && done) {
    return extended(c, args[behind], number_in(args[behind + 1]), args.size() <= behind + 2, t);
  }
  if (is(release_script, script) && done) return deleted(c, args[behind], t);
}

// ---- the server -------------------------------------------------------------------------------------------------

void ProofRun::look_at_server(unsigned m, Ns t) {
  const test::RedisDouble& redis = world_.master(m).redis;
  Server& server = servers_[m];
  const bool replica = redis.knobs.replica;
  const Ns lost = world_.checker().lost_at(m);
  const bool same = server.replid == redis.replid() && server.replica == replica && server.run_id == redis.run_id();
  const bool loses = server.lost != lost;
  if (server.run_id != redis.run_id()) {
    take(ProofStep::restart);
  } else if (loses) {
    take(replica || server.replid != redis.replid() ? ProofStep::replica : ProofStep::forget);
  } else if (server.replica && !replica) {
    take(server.copied ? ProofStep::promoted : ProofStep::followed_in_vain);
  }
  server.copied = replica && (server.copied || loses);
  if (!same) server.changed = t;
  if (loses) server.changed = std::max(server.changed, lost);
  server.lost = lost;
  if (same) return;
  server.run_id = redis.run_id();
  server.replid = redis.replid();
  server.replica = replica;
}

std::string ProofRun::field(unsigned m, const char* name, Ns t) const {
  const auto* const record = world_.master(m).redis.peek(record_key, t);
  if (record == nullptr) return {};
  const auto found = record->fields.find(name);
  return found != record->fields.end() ? found->second : std::string();
}

std::string ProofRun::identity(unsigned m) const {
  return servers_[m].run_id.substr(0, Guard::id_size) + ":" + servers_[m].replid.substr(0, Guard::id_size);
}

// The seal names the server's line of data, and the server is a master.
bool ProofRun::fits(unsigned m, Ns t) const {
  const std::string seal = field(m, "seal", t), replid = servers_[m].replid.substr(0, Guard::id_size);
  return !servers_[m].replica && seal.size() == Guard::seal_size &&
         seal.compare(Guard::id_size + 1, Guard::id_size, replid) == 0;
}

// ---- keys -------------------------------------------------------------------------------------------------------

// Has it all keys of this attempt, until then by the client's clock?
bool ProofRun::keeps(const Attempt& a, unsigned m, Ns until, Ns t) const {
  const test::RedisDouble& redis = world_.master(m).redis;
  const Ns left = until - clock(a, t), rate = 1'000'000 + world_.plan().client_ppm[a.client];
  const Ns end = t + left / rate * 1'000'000 + left % rate * 1'000'000 / rate;
  for (const unsigned r : each(a.resources)) {
    const auto* const entry = redis.peek(resource_name(r), t);
    if (entry == nullptr || entry->value.compare(0, a.value.size(), a.value) != 0) return false;
    if (redis.wall_ms(end) > entry->when_ms) return false;
  }
  return true;
}

void ProofRun::votes_by_script(const Connection& c, ProofStep step, Ns t) {
  const Server& server = servers_[c.master];
  take(step);
  need(fits(c.master, t), c.client, step, 2, t);
  state(t >= server.lost + longest_, c.client, ProofStatement::quiet_since_loss, t);
  state(t >= server.changed + longest_, c.client, ProofStatement::quiet_since_change, t);
}

void ProofRun::votes_plainly(const Connection& c, ProofStep step, Ns t) {
  const Server& server = servers_[c.master];
  take(step);
  state(!server.copied && t >= server.lost + longest_, c.client, ProofStatement::plain_is_quiet, t);
}

void ProofRun::wrote(const Connection& c, std::string_view value, bool plain, Ns t) {
  Attempt* const a = find(value);
  state(a != nullptr, c.client, ProofStatement::has_begun, t);
  if (a == nullptr) return;
  const bool counts = !plain || may_be_plain(c, t);
  // Behind the round a SET puts back. One that was won and lost in one turn ends without having been told as won.
  const bool decided = a->won || a->let_go;
  if (decided && !plain) return votes_by_script(c, ProofStep::put_back, t);
  if (decided || !counts) return take(ProofStep::set_uncounted);
  if (plain) {
    votes_plainly(c, ProofStep::set_plain, t);
  } else {
    votes_by_script(c, ProofStep::set_by_script, t);
  }
  const bool lives = !is_judged(c.master) || keeps(*a, c.master, clock(*a, t) + a->validity, t);
  need(lives, c.client, plain ? ProofStep::set_plain : ProofStep::set_by_script, 3, t);
  promise(*a, c.master, t);
}

void ProofRun::extended(const Connection& c, std::string_view value, uint32_t ttl_ms, bool plain, Ns t) {
  Attempt* const a = find(value);
  state(a != nullptr, c.client, ProofStatement::has_begun, t);
  if (a == nullptr) return;
  const bool present = ttl_ms == a->ttl_ms && t >= a->began && a->validity > 0;
  if (!present || (plain && !may_be_plain(c, t))) return take(ProofStep::extend_uncounted);
  const ProofStep step = plain ? ProofStep::extend_plain : ProofStep::extend;
  if (plain) {
    votes_plainly(c, step, t);
  } else {
    votes_by_script(c, step, t);
  }
  const bool lives = !is_judged(c.master) || keeps(*a, c.master, clock(*a, t) + a->validity, t);
  need(lives, c.client, step, 3, t);
  promise(*a, c.master, t);
}

void ProofRun::promise(Attempt& a, unsigned m, Ns t) {
  const Ns until = clock(a, t) + a.validity;
  a.executed |= 1u << m;
  a.promise[m] = std::max(a.promise[m], until);
  a.promised_at[m] = t;
  state(a.promise[m] - clock(a, t) <= longest_, a.client, ProofStatement::promise_has_bound, t);
  for (const Attempt* const other : open_) {
    const bool meets = other != &a && (other->resources & a.resources) != 0 && is_judged(m);
    state(!meets || other->promise[m] <= clock(*other, t), a.client, ProofStatement::one_promise, t);
  }
}

void ProofRun::deleted(const Connection& c, std::string_view value, Ns t) {
  const Attempt* const a = find(value);
  take(ProofStep::remove);
  state(a != nullptr, c.client, ProofStatement::has_begun, t);
  need(a == nullptr || a->ended, c.client, ProofStep::remove, 2, t);
}

// ---- the guard --------------------------------------------------------------------------------------------------

// May a plain command count that is executed now? Its client reads again before a reading lapses, so a vote that
// comes later is dropped.
bool ProofRun::may_be_plain(const Connection& c, Ns t) const {
  const auto found = plain_.find(c.id);
  if (found == plain_.end()) return false;
  const Plain& plain = found->second;
  const int64_t ahead = world_.process(c.client).ahead();
  const Ns age = clock(c.client, ahead, t) - clock(c.client, ahead, plain.since);
  return plain.may && servers_[c.master].lost < plain.since &&
         age <= reading_age(world_.plan().settings.max_ttl_ms);
}

void ProofRun::read(const Connection& c, Ns t) {
  const std::string q = field(c.master, "q", t);
  const test::RedisDouble::Knobs& knobs = world_.master(c.master).redis.knobs;
  const bool plain = fits(c.master, t) && knobs.replicas == 0 && !knobs.backlog;
  plain_[c.id] = {t, plain};
  if (plain) take(ProofStep::plain_reading);
  if (q.empty()) return;
  take(ProofStep::reading);
  Read& first = servers_[c.master].reads[identity(c.master) + ":" + q][c.client];
  const unsigned incarnation = world_.process(c.client).incarnation();
  if (first.incarnation != incarnation) first = {t, incarnation};
  first_read_.try_emplace(identity(c.master) + ":" + q, t);
}

void ProofRun::visited(unsigned m, Ns t) {
  look_at_server(m, t);
  take(ProofStep::reading);
  first_read_.try_emplace(identity(m) + ":" + field(m, "q", t), t);
}

void ProofRun::recorded(const Connection& c, test::Request args, Ns t) {
  Server& server = servers_[c.master];
  const std::string q(args[9]), seal(args[10]);
  if (seal.empty()) {
    take(ProofStep::quarantine);
    need(!server.replica, c.client, ProofStep::quarantine, 1, t);
    need(quarantines_.insert(q).second, c.client, ProofStep::quarantine, 2, t);
    server.changed = t;
    return;
  }
  take(ProofStep::seal);
  const std::string state = identity(c.master) + ":" + q;
  need(watched(c, state, t), c.client, ProofStep::seal, 1, t);
  need(field(c.master, "q", t) == q, c.client, ProofStep::seal, 3, t);
  need(!server.replica, c.client, ProofStep::seal, 4, t);
  need(seal == state, c.client, ProofStep::seal, 5, t);
}

// Has this client in its life, or others one after the other, watched the state for a guard time?
bool ProofRun::watched(const Connection& c, const std::string& state, Ns t) const {
  const auto found = servers_[c.master].reads.find(state);
  if (found == servers_[c.master].reads.end()) return false;
  const Process& process = world_.process(c.client);
  const Read& own = found->second[c.client];
  if (own.incarnation == process.incarnation() && process.machine.own(t) - process.machine.own(own.at) >= guard_)
    return true;
  return t - first_read_.at(state) >= guard_;
}

}  // namespace redlock::sim
