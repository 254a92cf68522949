// SPDX-License-Identifier: MIT
//
// redlock_reconfigure(): a call for maintenance programs. It blocks. While it runs, it has a loop, two clients and
// memory of its own. src/site/reconfiguration decides the steps.
#include <redlock/site.h>
#include <stdlib.h>

#include <new>

#include "config/config.hpp"
#include "lock/quorum.hpp"
#include "port/posix/entropy.hpp"
#include "port/posix/fork_guard.hpp"
#include "port/uv/driver.hpp"
#include "port/uv/own_loop.hpp"
#include "site/reconfiguration.hpp"

namespace redlock {
namespace {

constexpr unsigned look_every_ms = 10;

// ---- is it a change? --------------------------------------------------------------------------------------------

int check_one(const redlock_config_t& cfg, Settings& out) {
  const int err = finish(cfg, out);
  if (err != 0) return err;
  if (out.guard == GuardMode::off) {
    return keep_error(cfg, REDLOCK_E_CONFIG, "guard: with \"off\" no client sees what redlock_reconfigure() writes");
  }
  out.guard = GuardMode::off;  // the clients here lock nothing, and write the record by themselves
  out.locks = 1;
  out.in_flight = REDLOCK_IN_FLIGHT_MIN;
  out.debts = 2;
  return 0;
}

int check_pair(const Settings& before, const Settings& after, const redlock_config_t& new_cfg) {
  if (before.key_prefix != after.key_prefix) {
    return keep_error(new_cfg, REDLOCK_E_CONFIG, "key_prefix: is not that of the old configuration");
  }
  char old_text[fingerprint_max], new_text[fingerprint_max];
  if (write_fingerprint(before, quorum_of(before.masters), old_text) ==
      write_fingerprint(after, quorum_of(after.masters), new_text)) {
    return keep_error(new_cfg, REDLOCK_E_CONFIG,
                      "masters: their names and timing.max_ttl_ms are those of the old configuration");
  }
  return 0;
}

// ---- a client for each set, on one loop ---------------------------------------------------------------------------

struct Half {
  Half(const Settings& settings, void* arrays, void* connections, const Driver::Owner& owner)
      : client(settings, arrays), driver(client, owner, connections) {}

  Client client;
  Driver driver;
  uint32_t generation = fork_generation();
  bool open = false;
  size_t size = 0;
};

void on_event(void*, Client::Event&) {}
void on_closed(void* self) { static_cast<Half*>(self)->open = false; }
bool is_foreign(void* self) { return forked_since(static_cast<Half*>(self)->generation); }

Half* make_half(const Settings& settings) {
  const size_t arrays = aligned(sizeof(Half));
  const size_t connections = arrays + aligned(Client::memory_size(settings));
  const size_t size = connections + Driver::memory_size(settings.masters);
  char* memory = static_cast<char*>(malloc(size));
  if (memory == nullptr) return nullptr;
  const Driver::Owner owner = {memory, on_event, on_closed, is_foreign, nullptr, nullptr};
  Half* half = new (memory) Half(settings, memory + arrays, memory + connections, owner);
  half->size = size;
  return half;
}

void free_half(Half* half) {
  if (half == nullptr) return;
  explicit_bzero(static_cast<void*>(half), half->size);  // it holds passwords
  free(half);
}

struct Run {
  OwnLoop loop;
  uv_timer_t tick;
  Half* before = nullptr;
  Half* after = nullptr;

  void turn() { uv_run(loop.get(), UV_RUN_ONCE); }
};

int open_half(Run& run, Half* half) {
  const int err = half->driver.open(run.loop.get());
  half->open = err == 0;
  return err;
}

void close_half(Run& run, Half* half) {
  if (!half->open) return;
  half->client.close(Duration(), half->driver.now());
  while (half->open) run.turn();
}

void tell_side(const Reconfiguration::Side& side, int32_t* out) {
  for (MasterIndex m = 0; m < side.client.settings().masters; ++m) {
    const int reason = side.err[m] != 0 ? int{side.err[m]} : side.client.session(m).reason();
    out[m] = side.done.has(m) ? 0 : reason != 0 ? reason : int{REDLOCK_E_NODE_TIMEOUT};
  }
}

void tell(const Reconfiguration& change, redlock_reconfigure_report_t& out) {
  const Reconfiguration::Side& old_side = change.old_side();
  const Reconfiguration::Side& new_side = change.new_side();
  out.written = change.written();
  out.old_masters = old_side.client.settings().masters;
  out.old_needed = old_side.needed;
  out.new_masters = new_side.client.settings().masters;
  out.new_needed = new_side.needed;
  tell_side(old_side, out.old_err);
  tell_side(new_side, out.new_err);
}

uint64_t jumps(const Half& half) {
  redlock_status_t status = {};
  half.client.status(status);
  return status.clock_jumps;
}

int carry_out(Run& run, uint64_t seed, redlock_reconfigure_report_t& report) {
  Half& clock = *run.before;
  Reconfiguration change(run.before->client, run.after->client, seed, clock.driver.now());
  for (uint64_t seen = jumps(clock); !change.over();) {
    run.turn();
    const Instant now = clock.driver.now();
    if (jumps(clock) != seen) change.clock_jumped(now);
    seen = jumps(clock);
    change.step(now);
  }
  tell(change, report);
  return change.result();
}

int run_all(Run& run, redlock_reconfigure_report_t& report) {
  uint64_t seed = 0;
  if (fill_random(&seed, sizeof seed) != sizeof seed || fork_generation() == 0) return REDLOCK_E_SYSTEM;
  int err = run.loop.open();
  if (err != 0) return err;
  uv_timer_init(run.loop.get(), &run.tick);
  uv_timer_start(&run.tick, [](uv_timer_t*) {}, look_every_ms, look_every_ms);
  err = open_half(run, run.before);
  if (err == 0) err = open_half(run, run.after);
  if (err == 0) err = carry_out(run, seed, report);
  close_half(run, run.before);
  close_half(run, run.after);
  uv_close(reinterpret_cast<uv_handle_t*>(&run.tick), nullptr);
  run.loop.let_go();
  run.loop.close();
  return err;
}

int reconfigure(const redlock_config_t& old_cfg, const redlock_config_t& new_cfg,
                redlock_reconfigure_report_t& report) {
  Settings before, after;
  int err = check_one(old_cfg, before);
  if (err == 0) err = check_one(new_cfg, after);
  if (err == 0) err = check_pair(before, after, new_cfg);
  if (err != 0) return err;
  Run run;
  run.before = make_half(before);
  run.after = make_half(after);
  err = run.before != nullptr && run.after != nullptr ? run_all(run, report) : int{REDLOCK_E_NOMEM};
  free_half(run.before);
  free_half(run.after);
  return err;
}

}  // namespace
}  // namespace redlock

extern "C" int redlock_reconfigure(const redlock_config_t* old_cfg, const redlock_config_t* new_cfg,
                                   redlock_reconfigure_report_t* report) {
  // libredlock has made the configurations. This code reads their inside, which may be another in another version.
  if (redlock_version() != REDLOCK_VERSION_NUM) return REDLOCK_E_NOTSUP;
  if (old_cfg == nullptr || new_cfg == nullptr) return REDLOCK_E_INVAL;
  if (report != nullptr && report->size < sizeof *report) return REDLOCK_E_INVAL;
  redlock_reconfigure_report_t full = {};
  full.size = sizeof full;
  const int err = redlock::reconfigure(*old_cfg, *new_cfg, full);
  if (report != nullptr) *report = full;
  return err;
}
