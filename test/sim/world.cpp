// SPDX-License-Identifier: MIT
#include "world.hpp"

#include <cstdarg>

namespace redlock::sim {
namespace {

constexpr Ns sample_gap = 50 * ms;
constexpr uint64_t events_max = 3'000'000;  // of one seed: work is bounded

}  // namespace

void Totals::add(const Totals& more) {
  seeds += more.seeds;
  events += more.events;
  grants += more.grants;
  lost_early += more.lost_early;
  simulated_ms += more.simulated_ms;
  exclusive += more.exclusive;
  moves += more.moves;
  follows += more.follows;
  proof_runs += more.proof_runs;
  for (unsigned i = 0; i < proof_steps; ++i) taken[i] += more.taken[i];
  for (unsigned i = 0; i < fault_count; ++i) faults[i] += more.faults[i];
  debts_max = std::max(debts_max, more.debts_max);
  claims_max = std::max(claims_max, more.claims_max);
  rounds_max = std::max(rounds_max, more.rounds_max);
  gap_max_ms = std::max(gap_max_ms, more.gap_max_ms);
  orphan_max_ms = std::max(orphan_max_ms, more.orphan_max_ms);
  in_flight_max = std::max(in_flight_max, more.in_flight_max);
}

World::World(uint64_t seed, Worlds worlds, Story& story, Judge judge)
    : seed_(seed),
      plan_(draw_plan(seed, worlds)),
      story_(story),
      random_(seed, Purpose::faults),
      saves_(seed, Purpose::saves) {
  network_ = std::make_unique<Network>(*this);
  for (unsigned m = 0; m < plan_.masters; ++m) {
    masters_.push_back(std::make_unique<Master>(*this, m, seed * list_max + m, plan_.master_ppm[m]));
    masters_[m]->redis.knobs.no_tracking = plan_.untracked >> m & 1;
    if (plan_.replicated >> m & 1) {
      masters_[m]->redis.attach_replica();
      if (plan_.detached >> m & 1) masters_[m]->redis.detach_replica();
      masters_[m]->replica_at = 0;
    }
    masters_[m]->mend();
  }
  for (unsigned c = 0; c < plan_.clients; ++c) processes_.push_back(std::make_unique<Process>(*this, c));
  for (unsigned i = 0; i < plan_.movers; ++i) {
    const unsigned first = plan_.clients + 2 * i;
    processes_.push_back(std::make_unique<Process>(*this, first));
    processes_.push_back(std::make_unique<Process>(*this, first + 1, processes_[first].get()));
    movers_[i] = std::make_unique<Mover>(*this, i, *processes_[first], *processes_[first + 1]);
  }
  operator_ = std::make_unique<Operator>(*this);
  checker_ = std::make_unique<Checker>(*this);
  witness_ = std::make_unique<Witness>(*this);
  if (judge == Judge::proof_too && ProofRun::speaks_of(plan_)) proof_run_ = std::make_unique<ProofRun>(*this);
  if (plan_.guarded() && plan_.sealed) seal_all();
  for (const auto& master : masters_) {
    if (!plan_.guarded() && has_large_tokens()) put_tokens(master->redis, "");
  }
}

// The site has been in use before: a seal stands on every master, and tokens may have passed what a double can count.
void World::put_tokens(test::RedisDouble& redis, const std::string& seal) {
  const std::string beyond_doubles = "9007199254740993 " + seal;
  redis.put_fields("redlock::fence", {{"r0", beyond_doubles}, {"r1", beyond_doubles}, {"r2", beyond_doubles}});
}

void World::seal_all() {
  const Settings settings = settings_of(plan_, 0);
  char key[meta_key_max], desc[fingerprint_max];
  const Bytes k = write_meta_key(settings, key);
  const Bytes d = write_fingerprint(settings, settings.masters / 2 + 1, desc);
  for (unsigned m = 0; m < plan_.masters; ++m) {
    if (plan_.moves && plan_.sets[0].place_of(m) < 0) continue;
    test::RedisDouble& redis = masters_[m]->redis;
    const std::string q = redis.replid().substr(20, 16);
    const bool nameless = plan_.nameless >> m & 1;
    const std::string server = redis.run_id().substr(0, 16) + ":" + redis.replid().substr(0, 16);
    const std::string seal = (nameless ? "0000000000000000:0000000000000000" : server) + ":" + q;
    redis.put_fields(std::string(k.data, k.size), {{"desc", std::string(d.data, d.size)}, {"q", q}, {"seal", seal}});
    if (has_large_tokens()) put_tokens(redis, seal);
  }
}

void World::run() {
  if (story_.telling()) {
    story_.tell(0, -1, -1, "%u masters, %u clients, %u resources, ttl %u and %u ms, quiet from %.3f s, close at %.3f s",
                plan_.masters, plan_.clients, plan_.resources, plan_.ttl_ms[0], plan_.ttl_ms[1],
                static_cast<double>(plan_.quiet_at) / 1e9, static_cast<double>(plan_.close_at) / 1e9);
    for (unsigned i = 0; i < fault_count; ++i) {
      if (plan_.has(Fault(i))) story_.tell(0, -1, -1, "fault class: %s", fault_text(Fault(i)));
    }
  }
  if (plan_.moves) start_moves();
  for (unsigned c = 0; c < plan_.clients; ++c) {
    if (plan_.set_of[c] == 0) processes_[c]->start();
  }
  heap_.push(random_.spread(1 * ms, plan_.fault_gap), Kind::fault);
  heap_.push(sample_gap, Kind::sample);
  heap_.push(plan_.quiet_at, Kind::quiet);
  if (!plan_.moves) heap_.push(plan_.close_at, Kind::close);
  while (!violation_.found && !all_closed()) {
    const Event event = heap_.pop();
    now_ = event.at;
    ++totals.events;
    story_.mark(static_cast<uint64_t>(event.at), static_cast<uint64_t>(event.kind) << 32 | event.a);
    handle(event);
    for (const auto& master : masters_) {
      if (master->redis.has_pushed()) master->tell_pushed();
    }
    if (totals.events > events_max)
      violate(now_ - 10 * ms, ~0u, "more than %llu events", static_cast<unsigned long long>(events_max));
  }
  totals.seeds = 1;
  totals.simulated_ms = static_cast<uint64_t>(now_ / ms);
  totals.exclusive = plan_.beyond() ? 0 : 1;
  totals.lost_early = checker_->marks.lost_early;
  totals.debts_max = checker_->marks.debts;
  totals.claims_max = checker_->marks.claims;
  totals.rounds_max = checker_->marks.rounds;
  totals.gap_max_ms = static_cast<uint64_t>(checker_->marks.gap / ms);
  totals.orphan_max_ms = static_cast<uint64_t>(checker_->marks.orphan / ms);
  totals.in_flight_max = network_->in_flight_max;
  if (proof_run_ == nullptr) return;
  totals.proof_runs = 1;
  std::copy(proof_run_->steps.begin(), proof_run_->steps.end(), totals.taken);
}

void World::handle(const Event& event) {
  switch (event.kind) {
    case Kind::loop:
      processes_[event.a]->loop();
      if (event.a >= plan_.clients) mover_of(event.a).looped((event.a - plan_.clients) % 2);
      return;
    case Kind::syn:
      return network_->on_syn((*network_)[event.a]);
    case Kind::connect_done:
      return network_->on_connect_done((*network_)[event.a]);
    case Kind::up:
      return network_->on_up((*network_)[event.a]);
    case Kind::down:
      return network_->on_down((*network_)[event.a]);
    case Kind::belief:
      return checker_->compare(event.a);
    case Kind::fault:
      return next_fault();
    case Kind::reset:
      return reset((*network_)[event.a]);
    case Kind::aimed_fault:
      return aimed_fault(event.a);
    case Kind::client_restart:
      if (event.a >= plan_.clients) return mover_of(event.a).start((event.a - plan_.clients) % 2);
      if (!processes_[event.a]->running() && may_run(event.a)) processes_[event.a]->start();
      return;
    case Kind::master_restart:
      return masters_[event.a]->restart();
    case Kind::freeze:
      if (!quiet_) freeze(event.a, clip(now_, event.b * us));
      return;
    case Kind::thaw:
      return masters_[event.a]->thaw();
    case Kind::mend:
      if (!quiet_) tell_master(event.a, "is well again");
      return masters_[event.a]->mend();
    case Kind::slew:
      return slew(event.a, 0);
    case Kind::sample:
      checker_->sample();
      expire_actively();
      save_some();
      return heap_.push(now_ + sample_gap, Kind::sample);
    case Kind::quiet:
      return become_quiet();
    case Kind::close:
      return close_all();
    case Kind::move:
      return begin_move(event.a);
    case Kind::retire:
      return operator_->retire(event.a, event.b);
    case Kind::follow:
      return follow(event.a);
    case Kind::come_back:
      return operator_->come_back(event.a, event.b * ms);
  }
}

// Some masters find expired keys quickly; others hold so many that they come across ours only when it is touched.
void World::expire_actively() {
  for (unsigned m = 0; m < plan_.masters; ++m) {
    Master& master = *masters_[m];
    if (plan_.expires_actively >> m & 1 && !master.down && !master.frozen) master.redis.tick(now_);
  }
}

// Masters write their keys to a disk from time to time, and may come back with them much later.
void World::save_some() {
  if (!on(Fault::forget) && !on(Fault::resync)) return;
  for (const auto& master : masters_) {
    if (!saves_.chance(50) || master->down || master->frozen) continue;
    master->redis.snapshot(now_);
    if (plan_.operated) master->remember(true);
  }
}

void World::become_quiet() {
  if (story_.telling()) story_.tell(now_, -1, -1, "---- quiet ----");
  quiet_ = true;
  network_->calm();
  for (unsigned m = 0; m < plan_.masters; ++m) {
    Master& master = *masters_[m];
    master.restart();
    master.thaw();
    master.mend();
    if (master.redis.wall.frozen()) master.redis.wall.thaw(now_);
    master.redis.wall.set_rate_ppm(plan_.master_ppm[m], now_);
  }
  for (unsigned c = 0; c < plan_.clients; ++c) {
    if (!processes_[c]->running() && !never_started(c)) heap_.push(now_, Kind::client_restart, c);
    heap_.push(now_, Kind::slew, c);
  }
}

void World::close_all() {
  closing_ = true;
  if (story_.telling()) story_.tell(now_, -1, -1, "---- close ----");
  for (unsigned c = 0; c < plan_.clients; ++c) processes_[c]->close_client();
}

bool World::all_closed() {
  if (!closing_) return false;
  uint32_t open = 0;
  for (unsigned c = 0; c < plan_.clients; ++c) {
    if (!processes_[c]->closed() && !never_started(c) && may_run(c)) open |= 1u << c;
  }
  if (open != 0 && now_ > plan_.give_up_at) violate(plan_.close_at - 10 * ms, open, "a client does not close");
  return open == 0;
}

void World::violate(Ns since, uint32_t clients, const char* format, ...) {
  if (violation_.found) return;
  char text[320];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  violation_ = {true, now_, since, clients, text};
  if (story_.telling()) story_.tell(now_, -1, -1, "VIOLATION: %s", text);
}

void World::tell_master(unsigned m, const char* text) {
  if (story_.telling()) story_.tell(now_, -1, static_cast<int>(m), "%s", text);
}

}  // namespace redlock::sim
