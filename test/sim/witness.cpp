// SPDX-License-Identifier: MIT
#include "witness.hpp"

#include <charconv>
#include <cstring>

#include "master/scripts.hpp"
#include "support/lua_scripts.hpp"
#include "world.hpp"

namespace redlock::sim {
namespace {

int index_of(std::string_view resource) {
  for (int r = 0; r < static_cast<int>(resources_max); ++r) {
    if (resource == resource_name(static_cast<unsigned>(r))) return r;
  }
  return -1;
}

// The script's name or its text.
bool is(const Script& script, std::string_view said) {
  if (said.size() == script.sha.size) return Bytes(said.data(), said.size()) == script.sha;
  return said == test::text_of(script);
}

uint64_t number_in(std::string_view text) {
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

Witness::Witness(World& world) : world_(world) {
  for (unsigned c = 0; c < clients_max; ++c) attempts_[c].resize(2 * std::max(usual_users, world.plan().users[c]));
  for (auto& row : granted_at_) std::fill(std::begin(row), std::end(row), -never);
  for (auto& row : refused_at_) std::fill(std::begin(row), std::end(row), -never);
}

void Witness::executed(Connection& c, test::Request args, const test::Reply& reply, Ns t) {
  using test::Reply;
  const bool set = args[0] == "SET" && args.size() > 3;
  if (args[0] == "TIME" && reply.kind == Reply::array) {
    c.look = {world_.master(c.master).step.count, UINT64_MAX};
    c.looked = true;
  }
  if (!set && args[0] != "EVALSHA" && args[0] != "EVAL") return;
  const std::string_view script = set || args.size() <= 4 ? std::string_view() : args[1];
  if (args.size() > 10 && is(record_script, script) && !args[10].empty() && reply.number == 1) sealed(c, t);
  if (args.size() > 11 && is(record_script, script)) wrote_record(c, args, reply, t);
  if (!set && args.size() > 4 && args[3] == meta_) return look_at_record(c.master, t);
  const bool token = is(token_script, script), extend = is(extend_script, script);
  const size_t first = set ? 1 : 3, keys = set ? 1 : static_cast<size_t>(number_in(args[2]));
  unsigned resources = 0;
  for (size_t i = first; i < first + keys && i < args.size(); ++i) {
    if (const int r = index_of(args[i]); r >= 0) resources |= 1u << r;
  }
  if (resources == 0 || args.size() <= first + keys) return;  // the guard's, or a look
  const std::string_view value = args[first + keys];
  const bool fenced_set = is(acquire_script, script) && args.size() > first + keys + 3;
  const bool plain_set = set || (is(acquire_script, script) && !fenced_set);
  if (is(release_script, script)) {
    c.released = value;
  } else if (c.released == value) {
    world_.violate(t - second, 1u << c.client, "c%u asks m%u again for what it has released", c.client, c.master);
  }
  if (plain_set || fenced_set || token) {
    const bool held = fenced_set && reply.text.compare(0, 5, "held ") == 0;
    if (plain_set ? reply.kind == Reply::status : fenced_set && reply.kind == Reply::bulk && !held) {
      granted_at_[c.client][c.master] = t;
      if (world_.plan().moves) voted(c, value, t);
    }
    if (fenced_set && !held && reply.text.compare(0, 5, "hint ") != 0 && reply.kind == Reply::bulk) {
      ++attempt(c.client, value).known;
    }
    if (token && reply.number == 1 && attempt(c.client, value).known < world_.process(c.client).quorum()) {
      floors_.push_back({resources, number_in(args[first + keys + 2]), t});
    }
    for (unsigned r : each(fenced_set ? resources : 0)) counter_said(c, r, reply, t);
    const bool acked = fenced_set && reply.text.compare(0, 4, "ack ") == 0;
    if (acked || (token && reply.number == 1)) {
      const Stored stored = {number_in(args[first + keys + (acked ? 3 : 2)]), t};
      for (unsigned r : each(resources)) stored_[c.master][r] = stored;
    }
    if (plain_set ? reply.kind == Reply::nil : fenced_set ? held : reply.kind == Reply::integer && reply.number == 0) {
      refused_at_[c.client][c.master] = t;
    }
  }
  if (extend && reply.kind == Reply::integer && reply.number == 1) {
    for (unsigned r : each(resources)) extended(c, r, value, t);
    if (world_.plan().moves) voted(c, value, t);
  }
  for (unsigned r : each(resources)) {
    const auto* const entry = world_.master(c.master).redis.peek(resource_name(r), t);
    seen_[c.master][r].value = entry != nullptr ? std::string_view(entry->value) : std::string_view();
    seen_[c.master][r].when_ms = entry != nullptr ? entry->when_ms : 0;
    seen_at_[c.master][r] = t;
  }
}

// "ack N", "known N MS", "hint N MS", "held known N"
void Witness::counter_said(const Connection& c, unsigned resource, const test::Reply& reply, Ns t) {
  const size_t at = reply.text.find_first_of("0123456789");
  const Stored& stored = stored_[c.master][resource];
  if (reply.kind != test::Reply::bulk || at == std::string::npos || world_.checker().lost_since(c.master, stored.at))
    return;
  const unsigned long long number = number_in(std::string_view(reply.text).substr(at)), before = stored.number;
  if (number >= before) return;
  world_.violate(t - second, 1u << c.client, "m%u says %llu, and has stored the token %llu", c.master, number, before);
}

Witness::Attempt& Witness::attempt(unsigned client, std::string_view value) {
  for (Attempt& a : attempts_[client]) {
    if (a.value == value) return a;
  }
  Attempt& a = attempts_[client][next_attempt_[client]++ % attempts_[client].size()];
  a.value = value;
  a.known = 0;
  return a;
}

bool Witness::floored_below(unsigned resources, uint64_t token, Ns t) const {
  for (const Floor& f : floors_) {
    if ((f.resources & resources) != 0 && f.token < token && f.at >= t) return true;
  }
  return false;
}

// A master that came back with old keys since has more than was seen; and so has one whose clock steps back, where a
// key that had expired and was not found yet lives on.
void Witness::extended(const Connection& c, unsigned resource, std::string_view value, Ns t) {
  if (world_.checker().lost_since(c.master, seen_at_[c.master][resource]) || world_.plan().has(Fault::wall_step))
    return;
  const test::RedisDouble& redis = world_.master(c.master).redis;
  const auto* const entry = redis.peek(resource_name(resource), t);
  const Seen& before = seen_[c.master][resource];
  const bool was_there = before.value == value && redis.wall_ms(t) <= before.when_ms;
  if (!was_there || !entry || entry->value != value) {
    world_.violate(t - second, 1u << c.client, "an extend of c%u made a key on m%u", c.client, c.master);
  } else if (entry->when_ms < before.when_ms) {
    world_.violate(t - second, 1u << c.client, "an extend of c%u shortened the life of a key on m%u", c.client,
                   c.master);
  }
}

// Also where exclusion is not demanded: of a holder who has not looked yet at a clock that was stepped.
void Witness::sealed(const Connection& c, Ns t) const {
  const Plan& plan = world_.plan();
  if (plan.commissioned || plan.moves || plan.beyond()) return;
  if (!world_.checker().lost_since(c.master, t - plan.settings.max_ttl_ms * ms)) return;
  world_.violate(t - 2 * second, 1u << c.client, "c%u seals m%u, where locks of before may still be held", c.client,
                 c.master);
}

// A change of masters writes records, too, and so do keys that are evicted: then it is not known what was there.
void Witness::wrote_record(const Connection& c, test::Request args, const test::Reply& reply, Ns t) {
  const auto* const record = world_.master(c.master).redis.peek(args[3], t);
  const auto field = [&](const char* name) {
    const auto at = record != nullptr ? record->fields.find(name) : test::RedisDouble::Fields::const_iterator();
    return record != nullptr && at != record->fields.end() ? std::string(at->second) : std::string();
  };
  Record& before = record_[c.master];
  const Plan& plan = world_.plan();
  const bool known = before.at >= 0 && !plan.moves && !plan.has(Fault::evict) &&
                     !world_.checker().lost_since(c.master, before.at);
  const bool wrote = reply.kind == test::Reply::integer && reply.number == 1;
  if (wrote && known && (args[5] != before.desc || (args[6] != "*" && args[6] != before.q))) {
    world_.violate(t - second, 1u << c.client, "c%u writes the record of m%u over one that it has not read", c.client,
                   c.master);
  }
  if (wrote && (field("desc") != args[8] || field("q") != args[9] || field("seal") != args[10] ||
                field("names") != args[11])) {
    world_.violate(t - second, 1u << c.client, "m%u says yes to c%u, and its record is not what c%u wrote", c.master,
                   c.client, c.client);
  }
  before = {field("desc"), field("q"), t};
}

void Witness::counted(unsigned client, const User& user, const redlock_event_t& event) {
  unsigned granted = 0, refused = 0;
  for (unsigned m = 0; m < world_.plan().masters; ++m) {
    granted += granted_at_[client][m] >= user.asked_at ? 1u : 0u;
    refused += refused_at_[client][m] >= user.asked_at ? 1u : 0u;
  }
  if (event.granted > granted || event.refused > refused) {
    world_.violate(user.asked_at, 1u << client, "c%u counts %u that granted and %u that refused; there were %u and %u",
                   client, event.granted, event.refused, granted, refused);
  }
  if (event.failed != 0 && all_well(client, user.asked_at)) {
    world_.violate(user.asked_at, 1u << client, "c%u counts %u that failed, and all are well", client, event.failed);
  }
}

// What a master has for all of these until then; empty: nothing, or different values.
std::string Witness::value_on(unsigned master, unsigned resources, Ns until) const {
  const test::RedisDouble& redis = world_.master(master).redis;
  std::string value;
  for (unsigned r : each(resources)) {
    const auto* const entry = redis.peek(resource_name(r), world_.now());
    const bool there = entry != nullptr && redis.wall_ms(until) <= entry->when_ms;
    if (!there || (!value.empty() && entry->value != value)) return {};
    value = entry->value;
  }
  return value;
}

// Its value, which the client tells, must be on a quorum. A value that it has just released may still be on others.
void Witness::published(unsigned client, const User& user, Instant valid_until, Ns t) {
  const Plan& plan = world_.plan();
  const Process& process = world_.process(client);
  const Ns left = valid_until.ns() - process.machine.own(t) - process.ahead();
  if (left <= 0) return;  // it slept before it could tell
  const Ns end = t + left / (1'000'000 + plan.client_ppm[client]) * 1'000'000;
  std::string values[masters_max], best;
  for (unsigned m = 0; m < plan.masters; ++m) {
    if (process.set().place_of(m) >= 0) values[m] = value_on(m, user.resources, end);
    if (world_.checker().maker_of(values[m]) != static_cast<int>(client)) values[m].clear();
  }
  unsigned sure = 0, doubtful = 0;
  for (const std::string& value : values) {
    if (!value.empty() && value.compare(0, sizeof user.value, user.value, sizeof user.value) != 0) continue;
    unsigned have = 0, may = 0;
    for (unsigned m = 0; m < plan.masters; ++m) {
      const bool lost = world_.master(m).clock_disturbed || world_.checker().lost_since(m, user.asked_at);
      const bool has = !value.empty() && values[m] == value;
      have += has ? 1u : 0u;
      may += !has && lost && process.set().place_of(m) >= 0 ? 1u : 0u;
    }
    if (have + may < sure + doubtful || (have + may == sure + doubtful && have <= sure)) continue;
    sure = have;
    doubtful = may;
    best = value;
  }
  if (plan.moves && !best.empty()) judge_votes(client, user, best);
  if (plan.has(Fault::evict) || sure + doubtful >= process.quorum()) return;
  const char* const name = resource_name(static_cast<unsigned>(__builtin_ctz(user.resources)));
  world_.violate(user.asked_at, 1u << client,
                 "c%u holds %s for another %.3f ms, and %u masters have its keys until then", client, name,
                 static_cast<double>(left) / 1e6, sure);
}

// No master has a reason to fail: all are connected and quick, and the client has room for whatever one user asks.
bool Witness::all_well(unsigned client, Ns since) const {
  const Plan& plan = world_.plan();
  const Settings& s = plan.settings;
  const Ns settled = plan.quiet_at + 3 * second + plan.ttl_max_ms * ms;
  if (since < settled || world_.closing() || plan.guarded() || s.node_timeout < Duration::ms(50)) return false;
  if (plan.users[client] > 1 || s.in_flight < 64 || s.tx_bytes != 0 || s.debts - s.locks < 2 * plan.masters)
    return false;
  // Where a master forgot its large token, the one of another master may be too large to be believed (lock/fence).
  const bool doubts = plan.fenced && world_.has_large_tokens();
  for (unsigned m = 0; m < plan.masters; ++m) {
    if (!world_.checker().healthy_since(client, m, since)) return false;
    if (doubts && world_.checker().lost_since(m, 0)) return false;
  }
  return true;
}

}  // namespace redlock::sim
