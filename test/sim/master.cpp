// SPDX-License-Identifier: MIT
#include "master.hpp"

#include "support/lua_scripts.hpp"
#include "world.hpp"

namespace redlock::sim {

using test::RedisDouble;
using test::Reply;

Master::Master(World& world, unsigned index, uint64_t seed, int64_t rate_ppm)
    : redis(seed, test::WallClock(1'700'000'000'000 + static_cast<int64_t>(seed % 1009))),
      world_(world),
      index_(index) {
  redis.wall.set_rate_ppm(rate_ppm, 0);
  test::register_scripts(redis);
  redis.observer = [this](int number, test::Request args, const Reply& reply, test::TrueTime now) {
    Connection& c = world_.network()[connections_[number]];
    world_.witness().executed(c, args, reply, now);
    if (world_.proof_run() != nullptr) world_.proof_run()->executed(c, args, reply, now);
  };
}

void Master::serve(Connection& c) {
  if (!c.accepted || c.master_gone) return;
  if (down) return c.waiting.clear();
  if (frozen) return;
  Story& story = world_.story();
  if (c.redis == 0) {
    c.redis = redis.open(world_.now());
    connections_[c.redis] = c.id;
  }
  if (!c.waiting.empty()) {
    if (story.telling()) {
      story.tell(world_.now(), static_cast<int>(c.client), static_cast<int>(index_), "%s> %s (#%u)",
                 c.gone ? "late " : "", readable(c.waiting).c_str(), c.id);
    }
    if (c.gone) world_.checker().late_bytes(c, world_.now());
    redis.receive(c.redis, c.waiting, world_.now());
    c.nonsense = std::max(c.nonsense, redis.garbage(c.redis));
    c.waiting.clear();
  }
  answer(c);
  if (redis.closed_by_server(c.redis)) {
    kill(c);
  } else if (c.peer_ended) {
    redis.close(c.redis);
    c.master_gone = true;
  }
}

void Master::tell_pushed() {
  for (const int number : redis.take_pushed()) {
    Connection& c = world_.network()[connections_[number]];
    if (!c.master_gone && !frozen) answer(c);
  }
}

void Master::answer(Connection& c) {
  Story& story = world_.story();
  std::string& out = redis.out(c.redis);
  if (!out.empty()) {
    if (story.telling()) {
      story.tell(world_.now(), static_cast<int>(c.client), static_cast<int>(index_), "< %s (#%u)",
                 readable(out).c_str(), c.id);
    }
    story.mark(out.size(), c.id);
    if (out.find("Protocol error") != std::string::npos || out.find("unknown command") != std::string::npos) {
      world_.violate(world_.now() - second, 1u << c.client, "m%u does not understand c%u", index_, c.client);
    }
    world_.network().reply(c, out);
  }
}

void Master::kill(Connection& c) {
  if (c.redis != 0) redis.close(c.redis);
  c.master_gone = true;
  world_.network().end_down(c, false);
}

void Master::freeze() { frozen = true; }

void Master::thaw() {
  if (!frozen) return;
  frozen = false;
  world_.tell_master(index_, "goes on");
  // Connections are served in no particular order: here, the newest first, so that old bytes come late.
  std::deque<Connection>& all = world_.network().all();
  for (size_t i = all.size(); i-- > 0;) {
    if (all[i].master == index_ && all[i].accepted) serve(all[i]);
  }
}

void Master::crash(RedisDouble::Keep keep, bool silently) {
  redis.crash(keep, world_.now());
  down = true;
  frozen = false;
  silent = silently;
  for (Connection& c : world_.network().all()) {
    if (c.master != index_ || !c.accepted || c.master_gone) continue;
    if (c.redis != 0) redis.close(c.redis);
    c.master_gone = true;
    c.waiting.clear();
    if (!silent) world_.network().end_down(c, true);
  }
}

void Master::restart() {
  if (!down) return;
  down = false;
  world_.tell_master(index_, "is back");
  if (!silent) return;
  for (Connection& c : world_.network().all()) {  // its kernel knows none of them any more
    if (c.master == index_ && c.accepted && !c.gone) world_.network().end_down(c, true);
  }
}

// Its replica was promoted while it went on serving, and now it takes over that one's data: all of them, or what
// changed. A partial resynchronization is told to nobody; it needs a replica that was there for as long as a reading of
// the guard may be old. Its clock is not its replica's: the keys that lie there live for as long as they would have
// lived here.
void Master::resync(bool back_at_once) {
  const Ns longest_reading = std::max<Ns>(second, world_.plan().settings.max_ttl_ms * ms / 3) * 1010 / 1000 + 50 * ms;
  const bool partly = replica_at != never && world_.now() > replica_at + longest_reading;
  redis.take_over_snapshot(partly ? RedisDouble::Resync::partial : RedisDouble::Resync::full);
  world_.tell_master(index_, partly ? "takes over its replica's data, partly" : "takes over its replica's data");
  if (back_at_once) redis.become_master();
}

void Master::mend() {
  RedisDouble::Knobs& knobs = redis.knobs;
  knobs.loading = knobs.oom = knobs.misconf = knobs.noreplicas = knobs.busy = knobs.max_clients = knobs.denied = false;
  knobs.masterdown = false;
  const Plan& plan = world_.plan();
  knobs.noperm.clear();
  if (plan.nameless >> index_ & 1) knobs.noperm.insert("INFO");
  knobs.no_tracking = plan.untracked >> index_ & 1;
  redis.no_more_failures();
  if (knobs.replica) redis.become_master();
}

void Master::remember(bool always) {
  const Ns now = world_.now();
  if (!always && !past_.empty()) {
    const auto before = past_.back().keys.find("redlock::meta");
    const auto* const record = redis.peek("redlock::meta", now);
    const bool there = before != past_.back().keys.end();
    if (there == (record != nullptr) && (!there || before->second.fields == record->fields)) return;
  }
  past_.push_back({now, redis.saved(now)});
}

Ns Master::some_instant(Stream& random, std::string_view record) const {
  if (past_.empty()) return 0;
  const size_t any = random.index_below(past_.size());
  for (size_t i = any + 1; i-- > 0 && !record.empty();) {
    const auto meta = past_[i].keys.find("redlock::meta");
    if (meta == past_[i].keys.end()) continue;
    const auto desc = meta->second.fields.find("desc");
    if (desc != meta->second.fields.end() && desc->second == record) return past_[i].at;
  }
  return past_[any].at;
}

void Master::recall(Ns then) {
  size_t i = past_.size();
  while (i > 0 && past_[i - 1].at > then) --i;
  redis.put_snapshot(i > 0 ? past_[i - 1].keys : RedisDouble::Data());
}

// A clone of a client's machine has the machine's name, and a clock of its own.
void Master::leave_visit(const std::string& machine, int64_t boot_ms) {
  const auto* const record = redis.peek("redlock::meta", world_.now());
  const auto q = record != nullptr ? record->fields.find("q") : test::RedisDouble::Fields::const_iterator();
  if (record == nullptr || q == record->fields.end()) return;
  const std::string state = redis.replid().substr(0, 16) + ":" + q->second;
  const std::string time = std::to_string(redis.wall.ms(world_.now()));
  redis.put_fields("redlock::seen", {{machine, state + " " + std::to_string(boot_ms) + " " + time}});
  if (ProofRun* const proof = world_.proof_run()) proof->visited(index_, world_.now());
}

}  // namespace redlock::sim
