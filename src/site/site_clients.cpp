// SPDX-License-Identifier: MIT
#include "site/site_clients.hpp"

#include <stdlib.h>

#include <new>

#include "config/secure.hpp"
#include "port/posix/entropy.hpp"
#include "port/posix/fork_guard.hpp"

namespace redlock {
namespace {

constexpr unsigned look_every_ms = 10;

}  // namespace

struct SiteClients::One {
  One(const Settings& settings, void* arrays, void* connections, const Driver::Owner& owner)
      : client(settings, arrays), driver(client, owner, connections) {}

  static One* make(const Settings& settings);
  static void on_event(void*, Client::Event&) {}
  static void on_closed(void* self) { static_cast<One*>(self)->open = false; }
  static bool is_foreign(void* self) { return forked_since(static_cast<One*>(self)->generation); }

  Client client;
  Driver driver;
  uint32_t generation = fork_generation();
  bool open = false;
  size_t size = 0;
};

SiteClients::One* SiteClients::One::make(const Settings& settings) {
  const size_t arrays = aligned(sizeof(One));
  const size_t connections = arrays + aligned(Client::memory_size(settings));
  const size_t size = connections + Driver::memory_size(settings.masters);
  char* memory = static_cast<char*>(malloc(size));
  if (memory == nullptr) return nullptr;
  const Driver::Owner owner = {memory, on_event, on_closed, is_foreign, nullptr, nullptr};
  One* one = new (memory) One(settings, memory + arrays, memory + connections, owner);
  one->size = size;
  return one;
}

int SiteClients::settings_of(const redlock_config_s& config, Settings& out) {
  const int err = finish(config, out);
  if (err != 0) return err;
  if (out.guard == GuardMode::off) {
    return keep_error(config, REDLOCK_E_CONFIG, "guard: with \"off\" no client sees what is written here");
  }
  lock_nothing(out);
  return 0;
}

// A change of masters counts what stood on one connection all the time: no server may end it for its silence.
void SiteClients::lock_nothing(Settings& out) {
  constexpr Duration silence = Duration::ms(5'000);
  if (silence < out.ping_interval) out.ping_interval = silence;
  out.guard = GuardMode::off;
  out.locks = 1;
  out.in_flight = REDLOCK_IN_FLIGHT_MIN;
  out.debts = 2;
}

int SiteClients::open(const Settings* settings, unsigned count) {
  REDLOCK_ASSERT(count <= most);
  for (unsigned i = 0; i < count; ++i) {
    ones_[i] = One::make(settings[i]);
    if (ones_[i] == nullptr) return REDLOCK_E_NOMEM;
#ifdef REDLOCK_TLS
    const Origin& origin = origins_[i];
    const int err = secure_masters(*origin.config, origin.first, settings[i].masters, ones_[i]->driver);
    if (err != 0) return err;
#endif
  }
  if (fill_random(&seed_, sizeof seed_) != sizeof seed_ || fork_generation() == 0) return REDLOCK_E_SYSTEM;
  int err = loop_.open();
  loops_ = err == 0;
  if (err != 0) return err;
  uv_timer_init(loop_.get(), &tick_);
  uv_timer_start(&tick_, [](uv_timer_t*) {}, look_every_ms, look_every_ms);
  for (unsigned i = 0; i < count && err == 0; ++i) {
    err = ones_[i]->driver.open(loop_.get());
    ones_[i]->open = err == 0;
  }
  return err;
}

void SiteClients::close() {
  for (One* one : ones_) {
    if (one == nullptr || !one->open) continue;
    one->client.close(Duration(), one->driver.now());
    while (one->open) uv_run(loop_.get(), UV_RUN_ONCE);
  }
  if (loops_) {
    uv_close(reinterpret_cast<uv_handle_t*>(&tick_), nullptr);
    loop_.let_go();
    loop_.close();
    loops_ = false;
  }
  for (One*& one : ones_) {
    if (one == nullptr) continue;
    if constexpr (with_tls) one->driver.free_tls();
    explicit_bzero(static_cast<void*>(one), one->size);  // it holds passwords
    free(one);
    one = nullptr;
  }
}

#ifdef REDLOCK_TLS
bool SiteClients::tls_report(unsigned i, TlsReport& out) const { return ones_[i]->driver.tls_report(0, out); }
const TlsDate& SiteClients::wrong_date(unsigned i) const { return ones_[i]->driver.wrong_date(0); }
#endif

Client& SiteClients::client(unsigned i) const { return ones_[i]->client; }

Instant SiteClients::now(unsigned i) const { return ones_[i]->driver.now(); }

uint64_t SiteClients::jumps() const {
  return ones_[0]->client.notices().counters.clock_jumps;
}

}  // namespace redlock
