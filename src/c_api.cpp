// SPDX-License-Identifier: MIT
//
// The C API over a client and its driver: check, forward, convert. Nothing is decided here.
//
// A redlock_s stands at the front of one block of memory, with everything it ever needs behind it; the block is the
// library's or the caller's, and is wiped when the client is gone.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <new>

#include "client.hpp"
#include "config/config.hpp"
#include "config/report.hpp"
#include "lock/validity.hpp"
#include "port/posix/fork_guard.hpp"
#include "port/uv/driver.hpp"

using redlock::Bytes;
using redlock::Client;
using redlock::Driver;
using redlock::Duration;
using redlock::Instant;
using redlock::Settings;
using redlock::ValidityCell;

struct redlock_s {
  redlock_s(const Settings& settings, void* arrays, void* connections, const Driver::Owner& owner)
      : client(settings, arrays), driver(client, owner, connections) {}

  Client client;
  Driver driver;
  redlock_event_fn event = nullptr;
  void* event_user = nullptr;
  redlock_log_fn log = nullptr;
  void* log_user = nullptr;
  int log_level = 0;
  uint32_t fork_generation = 0;
  uintptr_t thread = 0;  // of the loop; read by others only to be told that they are others
  size_t size = 0;
  bool owns_memory = false;
};

namespace {

constexpr uint32_t grace_ms_max = 60000;
constexpr size_t alignment = alignof(max_align_t);

constexpr size_t aligned(size_t size) { return (size + alignment - 1) & ~(alignment - 1); }

uintptr_t this_thread() { return reinterpret_cast<uintptr_t>(reinterpret_cast<void*>(pthread_self())); }

bool forked(const redlock_t* rl) { return rl->fork_generation != redlock::fork_generation(); }

// 0 when the caller is the loop's thread, in the process that created the client.
int check_caller(const redlock_t* rl) {
  if (rl == nullptr) return REDLOCK_E_INVAL;
  if (forked(rl)) return REDLOCK_E_FORKED;
  return __atomic_load_n(&rl->thread, __ATOMIC_RELAXED) == this_thread() ? 0 : REDLOCK_E_THREAD;
}

// ---- what the driver calls ------------------------------------------------------------------------------------

bool is_foreign(void* self) {
  redlock_t* rl = static_cast<redlock_t*>(self);
  if (forked(rl)) return true;
  if (rl->thread != this_thread()) __atomic_store_n(&rl->thread, this_thread(), __ATOMIC_RELAXED);
  return false;
}

void log_master(const redlock_t* rl, const redlock_event_t& event) {
  const int level = event.err != 0 ? 4 : 6;
  if (rl->log == nullptr || level > rl->log_level) return;
  static constexpr const char* states[] = {"", "down", "connecting", "greeting", "up", "suspect"};
  char text[160];
  redlock::TextWriter out(text, sizeof text);
  out.raw("master ").raw(rl->client.settings().master[event.master].name).raw(": ");
  out.raw(redlock::bytes_of(states[event.state]));
  if (event.err != 0) out.raw(": ").raw(redlock::bytes_of(redlock_strerror(event.err)));
  rl->log(level, text, rl->log_user);
}

void on_event(void* self, const Client::Event& event) {
  redlock_t* rl = static_cast<redlock_t*>(self);
  redlock_event_t copy = event.event;
  copy.size = sizeof copy;
  if (copy.type == REDLOCK_EV_MASTER) log_master(rl, copy);
  if (event.callback != nullptr) {
    event.callback(rl, &copy, event.user);
  } else if (rl->event != nullptr) {
    rl->event(rl, &copy, rl->event_user);
  }
}

// The memory holds passwords and values.
void give_back(redlock_t* rl) {
  const bool owns_memory = rl->owns_memory;
  explicit_bzero(static_cast<void*>(rl), rl->size);
  if (owns_memory) free(rl);
}

void on_closed(void* self) {
  redlock_t* rl = static_cast<redlock_t*>(self);
  if (rl->event != nullptr) {
    redlock_event_t event = {};
    event.size = sizeof event;
    event.type = REDLOCK_EV_CLOSED;
    event.failed = rl->client.claims().debts();
    rl->event(rl, &event, rl->event_user);
  }
  give_back(rl);
}

// ---- conversions ----------------------------------------------------------------------------------------------

int to_options(const redlock_t* rl, const redlock_acquire_opts_t* given, redlock_acquire_opts_t& opts,
               redlock::Options& out) {
  opts = REDLOCK_ACQUIRE_OPTS_INIT;
  if (given != nullptr) {
    if (given->size < sizeof given->size || given->size > 4096) return REDLOCK_E_INVAL;
    memcpy(&opts, given, given->size < sizeof opts ? given->size : sizeof opts);
  }
  const Settings& settings = rl->client.settings();
  if (opts.flags & REDLOCK_F_FENCING) return REDLOCK_E_NOTSUP;
  if ((opts.flags & ~REDLOCK_F_NO_RENEW) != 0 || opts.reserved != 0) return REDLOCK_E_INVAL;
  out.ttl_ms = opts.ttl_ms != 0 ? opts.ttl_ms : settings.ttl_ms;
  out.wait_ms = opts.wait_ms;
  out.min_validity_ms = opts.min_validity_ms;
  out.max_hold_ms = opts.max_hold_ms;
  out.retry_delay_ms = opts.retry_delay_ms != 0 ? opts.retry_delay_ms : settings.retry_delay_ms;
  out.renew = (opts.flags & REDLOCK_F_NO_RENEW) == 0;
  if (out.ttl_ms < REDLOCK_TTL_MS_MIN || out.ttl_ms > settings.max_ttl_ms) return REDLOCK_E_INVAL;
  if (out.wait_ms < REDLOCK_WAIT_FOREVER || out.min_validity_ms >= out.ttl_ms) return REDLOCK_E_INVAL;
  return out.retry_delay_ms > REDLOCK_RETRY_DELAY_MS_MAX ? REDLOCK_E_INVAL : 0;
}

template <class Status>
int copy_out(const Status& full, Status* out) {
  const uint32_t size = out->size;
  memcpy(out, &full, size < sizeof full ? size : sizeof full);
  out->size = size < sizeof full ? size : static_cast<uint32_t>(sizeof full);
  return 0;
}

void fill_master_status(const redlock_t* rl, uint32_t index, redlock_master_status_t& out) {
  out = {};
  out.size = sizeof out;
  rl->client.master_status(index, out);
  const redlock::MasterSettings& master = rl->client.settings().master[index];
  redlock::TextWriter(out.name, sizeof out.name).raw(master.name);
  redlock::TextWriter address(out.address, sizeof out.address);
  const bool v6 = !master.unix_socket && memchr(master.host.data, ':', master.host.size) != nullptr;
  if (v6) address.raw("[");
  address.raw(master.host);
  if (v6) address.raw("]");
  if (!master.unix_socket) address.raw(":").number(master.port);
}

size_t size_of(const Settings& settings) {
  return aligned(sizeof(redlock_s)) + aligned(Client::memory_size(settings)) + Driver::memory_size(settings.masters);
}

int create(void* memory, bool owns_memory, redlock_t** out, const redlock_config_t& cfg, const Settings& settings,
           uv_loop_t* loop) {
  char* at = static_cast<char*>(memory);
  char* arrays = at + aligned(sizeof(redlock_s));
  char* connections = arrays + aligned(Client::memory_size(settings));
  const Driver::Owner owner = {memory, on_event, on_closed, is_foreign};
  redlock_t* rl = new (memory) redlock_s(settings, arrays, connections, owner);
  rl->event = cfg.event;
  rl->event_user = cfg.event_user;
  rl->log = cfg.log;
  rl->log_user = cfg.log_user;
  rl->log_level = cfg.log_level;
  rl->fork_generation = redlock::fork_generation();
  rl->thread = this_thread();
  rl->size = size_of(settings);
  rl->owns_memory = owns_memory;
  const int err = rl->fork_generation != 0 ? rl->driver.open(loop) : REDLOCK_E_SYSTEM;
  if (err != 0) {
    give_back(rl);
  } else {
    *out = rl;
  }
  return err;
}

// The validity of a handle, for any thread: a clock read of this thread's own, then what the cell says. 0 when at least
// need_ms are left.
int read_validity(const redlock_t* rl, redlock_lock_t lock, uint32_t need_ms, Instant& now, Instant& until) {
  if (rl == nullptr) return REDLOCK_E_INVAL;
  if (forked(rl)) return REDLOCK_E_FORKED;
  const ValidityCell* cell = rl->client.cell(lock.id);
  if (cell == nullptr) return REDLOCK_E_STALE;
  const bool agrees = rl->driver.clock().check(now);
  const redlock::Verdict verdict =
      redlock::judge(*cell, redlock::Table::generation(lock.id), agrees, now, Duration::ms(need_ms));
  until = verdict.valid_until;
  switch (verdict.held) {
    case redlock::Held::held:
      return 0;
    case redlock::Held::too_little:
      return REDLOCK_E_TOO_SLOW;
    case redlock::Held::not_held:
      return REDLOCK_E_NOT_HELD;
    case redlock::Held::lost:
      return REDLOCK_E_LOST;
    case redlock::Held::stale:
      return REDLOCK_E_STALE;
  }
  return REDLOCK_E_STALE;
}

}  // namespace

extern "C" {

// ---- life -----------------------------------------------------------------------------------------------------

size_t redlock_memory_size(const redlock_config_t* cfg) {
  Settings settings;
  return cfg != nullptr && redlock::finish(*cfg, settings) == 0 ? size_of(settings) : 0;
}

int redlock_create_on_loop(redlock_t** out, const redlock_config_t* cfg, uv_loop_s* loop) {
  if (out == nullptr || cfg == nullptr || loop == nullptr) return REDLOCK_E_INVAL;
  *out = nullptr;
  Settings settings;
  const int err = redlock::finish(*cfg, settings);
  if (err != 0) return err;
  void* memory = malloc(size_of(settings));
  if (memory == nullptr) return REDLOCK_E_NOMEM;
  return create(memory, true, out, *cfg, settings, loop);
}

int redlock_create_on_loop_in(void* mem, size_t size, redlock_t** out, const redlock_config_t* cfg, uv_loop_s* loop) {
  if (out == nullptr || cfg == nullptr || loop == nullptr) return REDLOCK_E_INVAL;
  *out = nullptr;
  if (mem == nullptr || reinterpret_cast<uintptr_t>(mem) % alignment != 0) return REDLOCK_E_INVAL;
  Settings settings;
  const int err = redlock::finish(*cfg, settings);
  if (err != 0) return err;
  if (size < size_of(settings)) return REDLOCK_E_TOOSMALL;
  return create(mem, false, out, *cfg, settings, loop);
}

int redlock_close_async(redlock_t* rl, uint32_t grace_ms) {
  const int err = check_caller(rl);
  if (err != 0) return err;
  if (grace_ms > grace_ms_max) return REDLOCK_E_INVAL;
  return rl->client.close(Duration::ms(grace_ms), rl->driver.now());
}

// ---- locking --------------------------------------------------------------------------------------------------

int redlock_acquire_async(redlock_t* rl, const redlock_resource_t* resources, uint32_t count,
                          const redlock_acquire_opts_t* opts, redlock_lock_t* lock) {
  if (lock == nullptr) return REDLOCK_E_INVAL;
  lock->id = 0;
  int err = check_caller(rl);
  if (err != 0) return err;
  if (resources == nullptr || count == 0) return REDLOCK_E_INVAL;
  if (count > 1) return REDLOCK_E_NOTSUP;
  const Bytes resource(static_cast<const char*>(resources->data), resources->size);
  if (resource.data == nullptr || resource.size == 0 || resource.size > REDLOCK_RESOURCE_MAX) return REDLOCK_E_INVAL;
  redlock_acquire_opts_t full;
  redlock::Options options;
  err = to_options(rl, opts, full, options);
  if (err != 0) return err;
  return rl->client.acquire(resource, options, full.callback, full.user, lock->id);
}

int redlock_cancel(redlock_t* rl, redlock_lock_t lock) {
  const int err = check_caller(rl);
  return err != 0 ? err : rl->client.cancel(lock.id);
}

int redlock_extend_async(redlock_t* rl, redlock_lock_t lock, uint32_t ttl_ms) {
  const int err = check_caller(rl);
  if (err != 0) return err;
  if (ttl_ms != 0 && (ttl_ms < REDLOCK_TTL_MS_MIN || ttl_ms > rl->client.settings().max_ttl_ms)) return REDLOCK_E_INVAL;
  return rl->client.extend(lock.id, ttl_ms);
}

int redlock_release_async(redlock_t* rl, redlock_lock_t lock) {
  const int err = check_caller(rl);
  return err != 0 ? err : rl->client.release(lock.id);
}

int redlock_suspended(redlock_t* rl) {
  const int err = check_caller(rl);
  return err != 0 ? err : rl->client.suspended(rl->driver.now());
}

// ---- holding --------------------------------------------------------------------------------------------------

int redlock_check(const redlock_t* rl, redlock_lock_t lock, uint32_t need_ms) {
  Instant now, until;
  return read_validity(rl, lock, need_ms, now, until);
}

int64_t redlock_validity_ms(const redlock_t* rl, redlock_lock_t lock) {
  Instant now, until;
  const int err = read_validity(rl, lock, 0, now, until);
  if (err != 0) return err == REDLOCK_E_LOST ? 0 : err;
  return redlock::remaining_ms(until, now);
}

int64_t redlock_deadline_ns(const redlock_t* rl, redlock_lock_t lock) {
  Instant now, until;
  const int err = read_validity(rl, lock, 0, now, until);
  if (err != 0) return err == REDLOCK_E_LOST ? 0 : err;
  return rl->driver.clock().boottime_ns(until);
}

// ---- seeing ---------------------------------------------------------------------------------------------------

int redlock_status(const redlock_t* rl, redlock_status_t* status) {
  const int err = check_caller(rl);
  if (err != 0) return err;
  if (status == nullptr || status->size < offsetof(redlock_status_t, masters)) return REDLOCK_E_INVAL;
  redlock_status_t full = {};
  rl->client.status(full);
  return copy_out(full, status);
}

int redlock_master_status(const redlock_t* rl, uint32_t index, redlock_master_status_t* status) {
  const int err = check_caller(rl);
  if (err != 0) return err;
  if (status == nullptr || status->size < offsetof(redlock_master_status_t, state)) return REDLOCK_E_INVAL;
  if (index >= rl->client.settings().masters) return REDLOCK_E_INVAL;
  redlock_master_status_t full;
  fill_master_status(rl, index, full);
  return copy_out(full, status);
}

int redlock_status_json(const redlock_t* rl, char* buf, size_t* size) {
  const int err = check_caller(rl);
  if (err != 0) return err;
  if (size == nullptr || (buf == nullptr && *size != 0)) return REDLOCK_E_INVAL;
  redlock_status_t status = {};
  rl->client.status(status);
  redlock_master_status_t masters[REDLOCK_MASTERS_MAX];
  for (uint32_t m = 0; m < status.masters; ++m) fill_master_status(rl, m, masters[m]);
  const size_t capacity = *size;
  *size = redlock::write_status_json(buf, capacity, status, masters, status.masters);
  return *size <= capacity ? 0 : REDLOCK_E_TOOSMALL;
}

}  // extern "C"
