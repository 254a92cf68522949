// SPDX-License-Identifier: MIT
#include "master.hpp"

#include <cstdlib>

#include "master/scripts.hpp"
#include "support/fence_scripts.hpp"
#include "support/guard_scripts.hpp"
#include "world.hpp"

namespace redlock::sim {
namespace {

using test::RedisDouble;
using test::Reply;
using test::ScriptCall;

// What scripts/release.lua and scripts/extend.lua say.
bool is_ours(ScriptCall& call) {
  const Reply value = call.call({"GET", call.keys[0]});
  return value.kind == Reply::bulk && value.text == call.argv[0];
}

Reply run_release(ScriptCall& call) {
  return is_ours(call) ? call.call({"DEL", call.keys[0]}) : Reply::make_integer(0);
}

Reply run_extend(ScriptCall& call) {
  if (!is_ours(call)) return Reply::make_integer(0);
  const Reply left = call.call({"PTTL", call.keys[0]});
  if (left.number < std::atoll(call.argv[1].c_str())) {
    call.call({"PEXPIRE", call.keys[0], call.argv[1]});
    call.call({"PTTL", call.keys[0]});
  }
  return Reply::make_integer(1);
}

std::string text_of(const Script& script) { return std::string(script.body.data, script.body.size); }

}  // namespace

Master::Master(World& world, unsigned index, uint64_t seed, int64_t rate_ppm)
    : redis(seed, test::WallClock(1'700'000'000'000 + static_cast<int64_t>(seed % 1009))),
      world_(world),
      index_(index) {
  redis.wall.set_rate_ppm(rate_ppm, 0);
  redis.register_script(text_of(release_script), run_release);
  redis.register_script(text_of(extend_script), run_extend);
  test::register_guard_scripts(redis);
  test::register_fence_scripts(redis);
  redis.observer = [this](int number, test::Request args, const Reply& reply, test::TrueTime now) {
    world_.witness().executed(world_.network()[connections_[number]], args, reply, now);
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
    if (c.gone) world_.checker().late_bytes(c, world_.now(), false);
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

void Master::mend() {
  RedisDouble::Knobs& knobs = redis.knobs;
  knobs.loading = knobs.oom = knobs.misconf = knobs.noreplicas = knobs.busy = knobs.max_clients = knobs.denied = false;
  knobs.masterdown = false;
  redis.no_more_failures();
  if (knobs.replica) redis.become_master();
}

}  // namespace redlock::sim
