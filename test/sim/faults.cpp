// SPDX-License-Identifier: MIT
//
// What goes wrong, and when: at random moments, and where it hurts most, right after a grant.
#include "world.hpp"

namespace redlock::sim {
namespace {

constexpr Fault at_clients[] = {Fault::stall,   Fault::reset, Fault::partition, Fault::pause,
                                Fault::suspend, Fault::crash, Fault::slew};
constexpr unsigned aimed_permille = 300;

bool is_passive(Fault fault) {
  switch (fault) {
    case Fault::tail:
    case Fault::split:
    case Fault::late:
    case Fault::partial_write:
    case Fault::slow_callback:
    case Fault::preempt:
      return true;
    default:
      return false;
  }
}

bool is_at_client(Fault fault) {
  return std::find(std::begin(at_clients), std::end(at_clients), fault) != std::end(at_clients);
}

}  // namespace

void World::next_fault() {
  if (quiet_) return;
  heap_.push(now_ + static_cast<Ns>(random_.below(static_cast<uint64_t>(2 * plan_.fault_gap))), Kind::fault);
  cause_one(static_cast<unsigned>(random_.below(plan_.clients + plan_.movers)));
}

void World::granted(unsigned client, Ns t) {
  if (quiet_ || !random_.chance(aimed_permille)) return;
  heap_.push(t + random_.spread(10 * us, plan_.ttl_max_ms * ms), Kind::aimed_fault, client);
}

// A connection that breaks while something is on its way is worth more than an idle one; most of all shortly before the
// quiet phase, in which the ghosts are looked for.
void World::sent(const Connection& c, Ns t) {
  if (c.client >= plan_.clients && !quiet_ && random_.chance(40)) {
    heap_.push(t + random_.spread(10 * us, 4 * plan_.delay), Kind::aimed_fault,
               plan_.clients + (c.client - plan_.clients) / 2);
  }
  if (!on(Fault::reset)) return;
  const bool soon_quiet = t > plan_.quiet_at - 1 * second;
  if (random_.chance(soon_quiet ? 80 : 4)) heap_.push(t + random_.spread(10 * us, 2 * plan_.delay), Kind::reset, c.id);
}

void World::reset(Connection& c) {
  if (c.gone || !c.answered || c.refused) return;
  count(Fault::reset);
  if (story_.telling())
    story_.tell(now_, static_cast<int>(c.client), static_cast<int>(c.master), "FAULT reset (#%u)", c.id);
  c.error = true;
  processes_[c.client]->wake(now_);
}

void World::aimed_fault(unsigned client) {
  if (quiet_) return;
  cause_one(client);
  if (random_.coin()) cause_one(client);
}

void World::cause_one(unsigned client) {
  Fault choice[fault_count];
  unsigned n = 0;
  for (unsigned i = 0; i < fault_count; ++i) {
    if (plan_.has(Fault(i)) && !is_passive(Fault(i))) choice[n++] = Fault(i);
  }
  if (n == 0) return;
  Fault fault = choice[random_.below(n)];
  if (plan_.clocks && random_.chance(300)) fault = Fault::wall_step;
  if (!plan_.clocks && on(Fault::resync) && random_.chance(200)) fault = Fault::resync;
  if (on(Fault::come_back) && random_.chance(100)) fault = Fault::come_back;
  const unsigned master = static_cast<unsigned>(random_.below(plan_.masters));
  if (is_at_client(fault)) return at_client(fault, client, master);
  at_master(fault, master);
  if (plan_.moves) witness_->look_at_record(master, now_);
  // Several at once: a switch, a rack, a power line.
  for (unsigned m = 0; m < plan_.masters; ++m) {
    if (m == master || !random_.chance(150)) continue;
    at_master(fault, m);
    if (plan_.moves) witness_->look_at_record(m, now_);
  }
}

void World::slew(unsigned client, int64_t ppm) {
  Process& process = *processes_[client];
  if (now_ < process.held_until()) return heap_.push(process.held_until(), Kind::slew, client);
  process.machine.slew(now_, ppm);
  process.wake(now_);
}

void World::at_client(Fault fault, unsigned client, unsigned master) {
  const Ns length = clip(now_, random_.spread(1 * ms, 2 * plan_.ttl_max_ms * ms));
  if (client >= plan_.clients) return at_mover(fault, client - plan_.clients, master, length);
  Process& process = *processes_[client];
  const bool busy = now_ < process.held_until();
  const bool connection = fault == Fault::stall || fault == Fault::reset || fault == Fault::partition;
  if (!process.running() || (busy && !connection && fault != Fault::pause)) return;
  if (story_.telling()) {
    story_.tell(now_, static_cast<int>(client), connection ? static_cast<int>(master) : -1, "FAULT %s (%.3f ms)",
                fault_text(fault), static_cast<double>(length) / 1e6);
  }
  if (fault != Fault::reset) count(fault);
  switch (fault) {
    case Fault::stall:
    case Fault::reset:
      return at_connection(fault, client, master, length);
    case Fault::partition: {
      const uint64_t way = random_.below(3);
      return network_->partition(client, master, way != 1, way != 0, now_ + length);
    }
    case Fault::pause:
      return process.pause(now_ + length);
    case Fault::suspend:
      return process.suspend(length);
    case Fault::slew:
      heap_.push(now_ + length, Kind::slew, client);
      return slew(client, random_.coin() ? random_.between(-500, 500) : random_.between(-83'000, 83'000));
    case Fault::crash:
      process.die(random_.coin());
      return heap_.push(now_ + length, Kind::client_restart, client);
    default:
      return;
  }
}

void World::at_connection(Fault fault, unsigned client, unsigned master, Ns length) {
  std::deque<Connection>& all = network_->all();
  for (size_t i = all.size(); i-- > 0;) {
    Connection& c = all[i];
    if (c.client != client || c.master != master || c.gone) continue;
    if (fault == Fault::stall) {
      c.stalled_until = now_ + length;
    } else {
      reset(c);
    }
    return;
  }
}

void World::at_master(Fault fault, unsigned m) {
  if (plan_.clocks && fault == Fault::wall_step) return step_clock(m);
  if (fault >= Fault::forget && fault <= Fault::resync && !may_forget(m)) return;
  Master& master = *masters_[m];
  if (fault == Fault::come_back) return come_back(m, master.some_instant(random_));
  const Ns length = clip(now_, random_.spread(1 * ms, plan_.ttl_max_ms * ms * 3 / 2));
  if (story_.telling())
    story_.tell(now_, -1, static_cast<int>(m), "FAULT %s (%.3f ms)", fault_text(fault),
                static_cast<double>(length) / 1e6);
  count(fault);
  master.clock_disturbed |= fault == Fault::wall_freeze || fault == Fault::wall_step || fault == Fault::wall_slew;
  switch (fault) {
    case Fault::freeze:
      master.freeze();
      return heap_.push(now_ + length, Kind::thaw, m);
    case Fault::restart:
    case Fault::forget: {
      if (master.down) return;
      using Keep = test::RedisDouble::Keep;
      const bool old_keys = random_.coin() && !(plan_.nameless >> m & 1);
      const Keep keep = fault == Fault::restart ? Keep::all : old_keys ? Keep::snapshot : Keep::none;
      if (keep != Keep::all) checker_->master_forgot(m, now_);
      if (keep == Keep::snapshot) checker_->old_keys_come_back(m, now_);
      master.crash(keep, random_.coin());
      if (plan_.has(Fault::loading) && random_.coin()) {
        const Ns loaded = now_ + length + random_.spread(1 * ms, 500 * ms);
        master.redis.knobs.loading = true;
        master.troubled_until = std::max(master.troubled_until, loaded);
        heap_.push(loaded, Kind::mend, m);
      }
      return heap_.push(now_ + length, Kind::master_restart, m);
    }
    case Fault::script_flush:
      return master.redis.script_flush();
    case Fault::flushall:
      checker_->master_forgot(m, now_);
      return master.redis.flush_all();
    case Fault::resync:
      if (master.down || master.redis.knobs.replica || plan_.nameless >> m & 1) return;
      checker_->master_forgot(m, now_);
      checker_->old_keys_come_back(m, now_);
      master.resync(random_.coin());
      return heap_.push(now_ + length, Kind::mend, m);
    case Fault::evict:
      return master.redis.evict("r0");
    case Fault::overflow:
      return master.redis.overflow_trackers();
    case Fault::clone: {
      const Process& process = *processes_[static_cast<size_t>(random_.below(plan_.clients))];
      const int64_t boot_ms = process.machine.at(now_).boot / ms, apart = random_.spread(1, 3'600'000);
      const int64_t earlier = std::max<int64_t>(0, boot_ms - apart);
      return master.leave_visit(process.boot_id(), random_.coin() ? boot_ms + apart : earlier);
    }
    case Fault::kill:
      return kill_some(m);
    case Fault::wall_freeze:
      if (master.redis.wall.frozen()) {
        master.redis.wall.thaw(now_);
      } else {
        master.redis.wall.freeze(now_);
      }
      return;
    case Fault::wall_step:
      return master.redis.wall.step_ms(random_.coin() ? random_.spread(1, 3000) : -random_.spread(1, 300), now_);
    case Fault::wall_slew:
      return master.redis.wall.set_rate_ppm(random_.between(-83'000, 83'000), now_);
    default:
      master.troubled_until = std::max(master.troubled_until, now_ + length);
      heap_.push(now_ + length, Kind::mend, m);
      return refuse(fault, m);
  }
}

void World::freeze_later(unsigned master, Ns at, Ns until) {
  heap_.push(at, Kind::freeze, master, static_cast<uint32_t>((until - at) / us));
}

void World::freeze(unsigned master, Ns length) {
  tell_master(master, "FAULT a master stands still, as old bytes come");
  count(Fault::freeze);
  masters_[master]->freeze();
  heap_.push(now_ + length, Kind::thaw, master);
}

void World::refuse(Fault fault, unsigned m) {
  static constexpr const char* errors[] = {"ERR something else",
                                           "READONLY You can't write against a read only replica.",
                                           "NOSCRIPT No matching script.",
                                           "OOM command not allowed",
                                           "LOADING now",
                                           "BUSY now",
                                           "NOPERM no",
                                           "MASTERDOWN link",
                                           "CLUSTERDOWN hash slot"};
  static constexpr const char* nonsense[] = {"$5\r\nhello\r\n", ":7\r\n",        "*1\r\n+OK\r\n",
                                             "+QUEUED\r\n",     "gibberish\r\n", "+O",
                                             "?OK\r\n",         "~OK\r\n"};
  static constexpr const char* commands[] = {"", "SET", "EVALSHA", "PING", "HELLO"};
  test::RedisDouble::Knobs& knobs = masters_[m]->redis.knobs;
  if (fault == Fault::garbage) return masters_[m]->redis.garbage_next(random_.pick(nonsense));
  static constexpr const char* permissions[] = {"INFO", "TIME", "CLIENT|KILL", "HLEN", "EXISTS"};
  if (fault == Fault::acl && random_.coin()) knobs.no_tracking = !knobs.no_tracking;
  // Where the guard is weak, a master that refuses INFO hides that its data went back. That is no claim of ours. So
  // such masters are drawn once (Plan::nameless), and their data never go back.
  const size_t taken = fault == Fault::acl ? random_.index_below(std::size(permissions)) : 0;
  const bool hides = taken == 0 && plan_.settings.guard == GuardMode::weak;
  if (fault == Fault::acl) knobs.noperm.insert(permissions[hides ? 1 : taken]);
  if (fault == Fault::loading) knobs.loading = true;
  if (fault == Fault::role) {
    if (plan_.has(Fault::flushall) && may_forget(m) && random_.coin()) {  // it takes over its master's data
      checker_->master_forgot(m, now_);
      masters_[m]->redis.flush_all();
    }
    masters_[m]->redis.become_replica();
  }
  if (fault == Fault::max_clients) (random_.coin() ? knobs.max_clients : knobs.denied) = true;
  if (fault != Fault::errors) return;
  switch (random_.below(6)) {
    case 0:
      knobs.oom = true;
      break;
    case 1:
      knobs.misconf = true;
      break;
    case 2:
      knobs.noreplicas = true;
      break;
    case 3:
      knobs.busy = true;
      break;
    default: {
      const char* const error = random_.pick(errors);
      masters_[m]->redis.fail_next(error, random_.pick(commands));
      break;
    }
  }
}

void World::kill_some(unsigned m) {
  for (Connection& c : network_->all()) {
    if (c.master == m && c.accepted && c.redis != 0 && !c.master_gone && !c.gone && random_.coin())
      masters_[m]->kill(c);
  }
}

}  // namespace redlock::sim
