// SPDX-License-Identifier: MIT
//
// The life of a client: which thread may call, events, memory, and the mode on the caller's loop.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <new>

#include "config/report.hpp"
#include "port/posix/boot_id.hpp"
#include "port/posix/fork_guard.hpp"
#include "run/detail.hpp"
#include "run/instance.hpp"

namespace redlock {

// ---- which thread may call --------------------------------------------------------------------------------------

uintptr_t this_thread() { return reinterpret_cast<uintptr_t>(reinterpret_cast<void*>(pthread_self())); }

bool forked(const redlock_t* rl) { return forked_since(rl->fork_generation); }

bool on_own_thread(const redlock_t* rl) { return __atomic_load_n(&rl->thread, __ATOMIC_RELAXED) == this_thread(); }

Entry::Entry(const redlock_t* rl, For purpose) : err(0), rl_(rl), purpose_(purpose) {
  if (rl == nullptr) {
    err = REDLOCK_E_INVAL;
  } else if (forked(rl)) {
    err = REDLOCK_E_FORKED;
  } else if (rl->mode == Mode::thread) {
    const_cast<redlock_t*>(rl)->gate.enter();
  } else if (!on_own_thread(rl)) {
    err = REDLOCK_E_THREAD;
  }
}

// Wakes the loop before leaving the gate: after that another thread may destroy the client.
Entry::~Entry() {
  if (err != 0) return;
  redlock_t* rl = const_cast<redlock_t*>(rl_);
  if (purpose_ == For::asking) rl->wake(rl);
  if (rl->mode == Mode::thread) rl->gate.leave();
}

namespace {


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
  static constexpr const char* states[] = {"", "down", "connecting", "greeting", "up", "suspect", "guarded"};
  char text[160];
  TextWriter out(text, sizeof text);
  out.raw("master ").raw(rl->client.settings().master[event.master].name).raw(": ");
  out.raw(bytes_of(states[event.state]));
  if (event.err != 0) out.raw(": ").raw(bytes_of(redlock_strerror(event.err)));
  rl->log(level, text, rl->log_user);
}

void tell(redlock_t* rl, const redlock_event_t& event, redlock_event_fn callback, void* user) {
  if (event.type == REDLOCK_EV_MASTER) log_master(rl, event);
  if (callback != nullptr) {
    callback(rl, &event, user);
  } else if (rl->event != nullptr) {
    rl->event(rl, &event, rl->event_user);
  }
}

void on_event(void* self, Client::Event& event) {
  redlock_t* rl = static_cast<redlock_t*>(self);
  Detail detail;
  if (Client::is_detailed(event.event.type)) fill_detail(rl->client, event, detail);
  tell(rl, event.event, event.callback, event.user);
}

void on_event_of_thread(void* self, Client::Event& event) {
  redlock_t* rl = static_cast<redlock_t*>(self);
  Detail detail;
  if (Client::is_detailed(event.event.type)) fill_detail(rl->client, event, detail);
  if (event.slot != no_slot) rl->blocked.mark(event.event, rl->client.extend_open(event.slot));
  if (!rl->silent) {
    rl->gate.leave();
    tell(rl, event.event, event.callback, event.user);
    rl->gate.enter();
  }
  if (event.slot != no_slot) rl->blocked.wake(event.event);
}

void on_closed(void* self) {
  redlock_t* rl = static_cast<redlock_t*>(self);
  tell_closed(rl);
  give_back(rl);
}

void wake_loop(redlock_t* rl) { rl->driver.wake(); }

void enter(void* self) { static_cast<redlock_t*>(self)->gate.enter(); }
void leave(void* self) { static_cast<redlock_t*>(self)->gate.leave(); }

// ---- memory ---------------------------------------------------------------------------------------------------

size_t size_of(const Settings& settings) {
  return aligned(sizeof(redlock_s)) + aligned(mode_bytes) + aligned(Client::memory_size(settings)) +
         Driver::memory_size(settings.masters);
}

redlock_t* construct(void* memory, const redlock_config_t& cfg, const Settings& settings, Mode mode,
                     void (*closed)(void* self)) {
  char* own = static_cast<char*>(memory) + aligned(sizeof(redlock_s));
  char* arrays = own + aligned(mode_bytes);
  char* connections = arrays + aligned(Client::memory_size(settings));
  Driver::Owner owner = {memory, on_event, closed, is_foreign, nullptr, nullptr};
  if (mode == Mode::thread) owner = {memory, on_event_of_thread, closed, is_foreign, enter, leave};
  redlock_t* rl = new (memory) redlock_s(settings, arrays, connections, owner);
  rl->event = cfg.event;
  rl->event_user = cfg.event_user;
  rl->log = cfg.log;
  rl->log_user = cfg.log_user;
  rl->log_level = cfg.log_level;
  rl->fork_generation = fork_generation();
  rl->thread = this_thread();
  rl->size = size_of(settings);
  rl->own = own;
  rl->wake = wake_loop;
  rl->mode = mode;
  return rl;
}

}  // namespace

int make(redlock_t*& rl, const redlock_config_t* cfg, const Place& place, Mode mode, void (*closed)(void* self)) {
  if (cfg == nullptr) return REDLOCK_E_INVAL;
  if (place.given && (place.at == nullptr || reinterpret_cast<uintptr_t>(place.at) % alignment != 0)) {
    return REDLOCK_E_INVAL;
  }
  Settings settings;
  const int err = finish(*cfg, settings);
  if (err != 0) return err;
  settings.has_boot_id = read_boot_id(settings.boot_id);
  if (place.given && place.size < size_of(settings)) return REDLOCK_E_TOOSMALL;
  if (fork_generation() == 0) return REDLOCK_E_SYSTEM;
  void* memory = place.given ? place.at : malloc(size_of(settings));
  if (memory == nullptr) return REDLOCK_E_NOMEM;
  rl = construct(memory, *cfg, settings, mode, closed);
  rl->owns_memory = !place.given;
  return 0;
}

void tell_closed(redlock_t* rl) {
  if (rl->event == nullptr) return;
  redlock_event_t event = {};
  event.size = sizeof event;
  event.type = REDLOCK_EV_CLOSED;
  event.failed = rl->client.claims().debts();
  tell(rl, event, nullptr, nullptr);
}

void give_back(redlock_t* rl) {
  const bool owns_memory = rl->owns_memory;
  explicit_bzero(static_cast<void*>(rl), rl->size);
  if (owns_memory) free(rl);
}

// ---- on the caller's loop ---------------------------------------------------------------------------------------

namespace {

int create_on_loop(redlock_t** out, const redlock_config_t* cfg, const Place& place, uv_loop_s* loop) {
  if (out == nullptr) return REDLOCK_E_INVAL;
  *out = nullptr;
  if (loop == nullptr) return REDLOCK_E_INVAL;
  redlock_t* rl = nullptr;
  int err = make(rl, cfg, place, Mode::loop, on_closed);
  if (err != 0) return err;
  err = rl->driver.open(loop);
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
  return create_on_loop(out, cfg, Place{}, loop);
}

int redlock_create_on_loop_in(void* mem, size_t size, redlock_t** out, const redlock_config_t* cfg, uv_loop_s* loop) {
  return create_on_loop(out, cfg, Place{true, mem, size}, loop);
}

int redlock_close_async(redlock_t* rl, uint32_t grace_ms) {
  const Entry entry(rl, Entry::For::asking);
  if (entry.err != 0) return entry.err;
  if (rl->mode == Mode::thread) return REDLOCK_E_NOTSUP;
  if (grace_ms > grace_ms_max) return REDLOCK_E_INVAL;
  return rl->client.close(Duration::ms(grace_ms), rl->driver.now());
}

}  // extern "C"
