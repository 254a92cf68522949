// SPDX-License-Identifier: MIT
//
// The life of a client: which thread may call, events, memory, and the mode on the caller's loop.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <new>

#include "base/password_file.hpp"
#include "config/file.hpp"
#include "config/report.hpp"
#include "config/secure.hpp"
#include "config/tls.hpp"
#include "port/posix/boot_id.hpp"
#include "port/posix/fork_guard.hpp"
#include "run/detail.hpp"
#include "run/instance.hpp"

namespace redlock {

// ---- which thread may call --------------------------------------------------------------------------------------

uintptr_t thread_id(pthread_t thread) { return reinterpret_cast<uintptr_t>(reinterpret_cast<void*>(thread)); }

uintptr_t this_thread() { return thread_id(pthread_self()); }

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
void Entry::leave() {
  if (err != 0) return;
  err = REDLOCK_E_CLOSED;
  redlock_t* rl = const_cast<redlock_t*>(rl_);
  if (purpose_ == For::asking) rl->wake(rl);
  if (rl->mode == Mode::thread) rl->gate.leave();
}

namespace {


// ---- what the driver calls ------------------------------------------------------------------------------------

bool is_forked(void* self) {
  redlock_t* rl = static_cast<redlock_t*>(self);
  if (forked(rl)) return true;
  if (!on_own_thread(rl)) __atomic_store_n(&rl->thread, this_thread(), __ATOMIC_RELAXED);
  return false;
}

void tell(redlock_t* rl, const Client::Event& event) {
  if (event.callback != nullptr) {
    event.callback(rl, &event.event, event.user);
  } else if (rl->event != nullptr) {
    rl->event(rl, &event.event, rl->event_user);
  }
}

// Writes a line outside the gate, as events are delivered: the log callback may wait for a mutex whose owner calls the
// client.
void write(redlock_t* rl, Story::Level level, const char* line) {
  const bool gated = rl->mode == Mode::thread;
  if (level == Story::none || rl->silent) return;
  if (gated) rl->gate.leave();
  rl->log.write(level, line);
  if (gated) rl->gate.enter();
}

Story::Acquire acquire_of(const redlock_t* rl, uint16_t slot) {
  const Lock& lock = rl->client.lock(slot);
  return {lock.names, whole_seconds(waited(lock, rl->client.now()).ns()), lock.wait.last_cause};
}

// A file of the TLS settings is read again when a connection begins.
void narrate_file(redlock_t* rl, MasterIndex m) {
  if constexpr (with_tls) {
    if (!rl->driver.file_error_changed(m)) return;
    const TlsFile& file = rl->driver.file_error(m);
    const bool well = file.fault == TlsFile::Fault::none;
    char text[Story::line_max];
    TextWriter line(text, sizeof text);
    line.raw("master ").quoted(rl->client.session(m).master().name);
    if (well) {
      line.raw(": the TLS files are well again");
    } else {
      write_tls_file(line.raw(": "), file);
      line.raw(": what was read before is used");
    }
    write(rl, well ? Story::notice : Story::warning, text);
  }
}

// A password file is read again when the master has refused the password, and the file has changed.
void narrate_password(redlock_t* rl, MasterIndex m) {
  const MasterSettings& master = rl->client.session(m).master();
  PasswordFile* const file = master.file;
  if (file == nullptr || file->told) return;
  file->told = true;
  const bool well = file->fault == FileFault::none;
  char text[Story::line_max];
  TextWriter line(text, sizeof text);
  line.raw("master ").quoted(master.name).raw(": password_file: ");
  if (well) {
    line.raw("has changed, and is used");
  } else {
    write_file_fault(line, bytes_of(file->path), file->fault);
    line.raw(": what was read before is used");
  }
  write(rl, well ? Story::notice : Story::warning, text);
}

// Called inside the gate. False: the event is not for the owner. noinline: keeps the lines off the stack while events
// without a line are delivered.
[[gnu::noinline]] bool narrate(redlock_t* rl, const Client::Event& event) {
  const redlock_event_t& e = event.event;
  const bool of_master = e.type == REDLOCK_EV_MASTER;
  REDLOCK_ASSERT(of_master == (event.slot == no_slot));
  if (rl->log.fn != nullptr) {
    if (of_master) narrate_file(rl, e.master);
    if (of_master) narrate_password(rl, e.master);
    char text[Story::line_max];
    TextWriter pause(text, sizeof text);
    const uint32_t jumps = static_cast<uint32_t>(rl->client.notices().counters.clock_jumps);
    write(rl, rl->story.paused(jumps, rl->driver.take_late(), pause), text);
    TextWriter line(text, sizeof text);
    const uint32_t now = whole_seconds(rl->client.now().ns());
    const Story::Level level = of_master ? rl->story.master_changed(e, now, line)
                                         : rl->story.lock_told(e, acquire_of(rl, event.slot), now, line);
    write(rl, level, text);
  }
  return !of_master || rl->story.is_event(e);
}

bool is_narrated(const redlock_t* rl, int type) {
  REDLOCK_ASSERT(type > 0);
  REDLOCK_ASSERT(type < 32);  // a bit of a word
  return (rl->narrated >> type & 1) != 0;
}

// Which certificate of a master is out of its dates?
void fill_date(const redlock_t* rl, const Client::Event& event, Detail& out) {
  if constexpr (with_tls) {
    const bool of_master = event.slot == no_slot;
    const int err = of_master ? event.event.err : event.event.master_err;
    if (err != REDLOCK_E_TLS_EXPIRED && err != REDLOCK_E_TLS_EARLY) return;
    const MasterIndex m = of_master ? event.event.master : rl->client.notices().detail(event, rl->client.now()).master;
    TextWriter denied(out.denied, sizeof out.denied);
    write_tls_date(denied, err, rl->driver.wrong_date(m));
  }
}

void prepare(const redlock_t* rl, Client::Event& event, Detail& detail) {
  if (!Notices::is_detailed(event.event.type)) return;
  fill_detail(rl->client, event, detail);
  fill_date(rl, event, detail);
}

void on_event(void* self, Client::Event& event) {
  redlock_t* rl = static_cast<redlock_t*>(self);
  Detail detail;
  prepare(rl, event, detail);
  if (!is_narrated(rl, event.event.type) || narrate(rl, event)) tell(rl, event);
}

void on_event_of_thread(void* self, Client::Event& event) {
  redlock_t* rl = static_cast<redlock_t*>(self);
  Detail detail;
  prepare(rl, event, detail);
  if (event.slot != no_slot) rl->blocked.mark(event.event, rl->client.extend_open(event.slot));
  const bool for_owner = !is_narrated(rl, event.event.type) || narrate(rl, event);
  if (for_owner && !rl->silent) {
    rl->gate.leave();
    tell(rl, event);
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

constexpr uint32_t logged_events = 1u << REDLOCK_EV_ACQUIRED | 1u << REDLOCK_EV_FAILED | 1u << REDLOCK_EV_AT_RISK |
                                   1u << REDLOCK_EV_LOST | 1u << REDLOCK_EV_MASTER;

size_t size_of(const Settings& settings) {
  return aligned(sizeof(redlock_s)) + aligned(mode_bytes) + aligned(Client::memory_size(settings)) +
         aligned(settings.masters * sizeof(Story::Told)) + Driver::memory_size(settings.masters);
}

redlock_t* construct(void* memory, const redlock_config_t& cfg, const Settings& settings, Mode mode,
                     void (*closed)(void* self)) {
  REDLOCK_ASSERT(reinterpret_cast<uintptr_t>(memory) % alignment == 0);
  char* own = static_cast<char*>(memory) + aligned(sizeof(redlock_s));
  char* arrays = own + aligned(mode_bytes);
  char* told = arrays + aligned(Client::memory_size(settings));
  char* connections = told + aligned(settings.masters * sizeof(Story::Told));
  Driver::Owner owner = {memory, on_event, closed, is_forked, nullptr, nullptr};
  if (mode == Mode::thread) owner = {memory, on_event_of_thread, closed, is_forked, enter, leave};
  Story::Told* masters = new (told) Story::Told[settings.masters];
  redlock_t* rl = new (memory) redlock_s(settings, arrays, masters, connections, owner);
  rl->event = cfg.event;
  rl->event_user = cfg.event_user;
  rl->log = {cfg.log, cfg.log_user, cfg.log_level};
  rl->narrated = cfg.log != nullptr ? logged_events : 1u << REDLOCK_EV_MASTER;
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
  REDLOCK_ASSERT(settings.masters >= 1);
  REDLOCK_ASSERT(settings.masters <= REDLOCK_MASTERS_MAX);
  settings.has_boot_id = read_boot_id(settings.boot_id);
  if (place.given && place.size < size_of(settings)) return REDLOCK_E_TOOSMALL;
  if (fork_generation() == 0) return REDLOCK_E_SYSTEM;
  void* memory = place.given ? place.at : malloc(size_of(settings));
  if (memory == nullptr) return REDLOCK_E_NOMEM;
  rl = construct(memory, *cfg, settings, mode, closed);
  rl->owns_memory = !place.given;
  const int unsecured = secure_masters(*cfg, 0, settings.masters, rl->driver);
  if (unsecured != 0) {
    give_back(rl);
    return unsecured;
  }
  if constexpr (with_tls) {
    char line[error_text_max];
    TextWriter text(line, sizeof line);
    if (shows_password(cfg->values, text)) rl->log.write(Story::warning, line);
  }
  return 0;
}

void tell_closed(redlock_t* rl) {
  REDLOCK_ASSERT(rl->client.is_closed());
  Client::Event event = {};
  event.event.size = sizeof event.event;
  event.event.type = REDLOCK_EV_CLOSED;
  event.event.failed = rl->client.claims().debts();
  char text[Story::line_max];
  TextWriter line(text, sizeof text);
  rl->log.write(Story::closed(event.event, line), text);
  tell(rl, event);
}

void give_back(redlock_t* rl) {
  REDLOCK_ASSERT(rl->size >= sizeof *rl);
  const bool owns_memory = rl->owns_memory;
  if constexpr (with_tls) rl->driver.free_tls();
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
