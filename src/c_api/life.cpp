// SPDX-License-Identifier: MIT
//
// The life of a client: its memory, the events that it tells, its end.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <new>

#include "c_api/common.hpp"
#include "config/report.hpp"
#include "port/posix/fork_guard.hpp"

namespace redlock {

uintptr_t this_thread() { return reinterpret_cast<uintptr_t>(reinterpret_cast<void*>(pthread_self())); }

bool forked(const redlock_t* rl) { return rl->fork_generation != fork_generation(); }

int check_caller(const redlock_t* rl) {
  if (rl == nullptr) return REDLOCK_E_INVAL;
  if (forked(rl)) return REDLOCK_E_FORKED;
  return __atomic_load_n(&rl->thread, __ATOMIC_RELAXED) == this_thread() ? 0 : REDLOCK_E_THREAD;
}

namespace {

constexpr uint32_t grace_ms_max = 60000;
constexpr size_t alignment = alignof(max_align_t);

constexpr size_t aligned(size_t size) { return (size + alignment - 1) & ~(alignment - 1); }

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
  TextWriter out(text, sizeof text);
  out.raw("master ").raw(rl->client.settings().master[event.master].name).raw(": ");
  out.raw(bytes_of(states[event.state]));
  if (event.err != 0) out.raw(": ").raw(bytes_of(redlock_strerror(event.err)));
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

// ---- memory ---------------------------------------------------------------------------------------------------

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
  rl->fork_generation = fork_generation();
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

}  // namespace
}  // namespace redlock

using namespace redlock;

extern "C" {

size_t redlock_memory_size(const redlock_config_t* cfg) {
  Settings settings;
  return cfg != nullptr && finish(*cfg, settings) == 0 ? size_of(settings) : 0;
}

int redlock_create_on_loop(redlock_t** out, const redlock_config_t* cfg, uv_loop_s* loop) {
  if (out == nullptr || cfg == nullptr || loop == nullptr) return REDLOCK_E_INVAL;
  *out = nullptr;
  Settings settings;
  const int err = finish(*cfg, settings);
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
  const int err = finish(*cfg, settings);
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

}  // extern "C"
