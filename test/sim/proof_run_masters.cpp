// SPDX-License-Identifier: MIT
//
// The masters' half of a run of the proof: what they execute, promise, forget and seal.
#include <charconv>

#include "master/guard.hpp"
#include "master/scripts.hpp"
#include "proof_run.hpp"
#include "support/lua_scripts.hpp"
#include "world.hpp"

namespace redlock::sim {
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
