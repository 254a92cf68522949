// SPDX-License-Identifier: MIT
//
// SiteClients: what a call for maintenance programs blocks on. It has a loop, clients and memory of its own for as long
// as the call lasts. Its clients have no guard and lock nothing: the call writes the guard's records by itself.
#pragma once
#include "base/settings.hpp"
#include "client/client.hpp"
#include "port/uv/driver.hpp"
#include "port/uv/own_loop.hpp"

struct redlock_config_s;

namespace redlock {

class SiteClients {
 public:
  static constexpr unsigned most = 2;

  SiteClients() = default;
  ~SiteClients() { close(); }
  SiteClients(const SiteClients&) = delete;
  SiteClients& operator=(const SiteClients&) = delete;

  // The settings of the client that a call makes of a configuration. 0, or CONFIG: the configuration is not valid, or
  // its guard is off.
  static int settings_of(const redlock_config_s& config, Settings& out);
  // Makes the settings those of a client that locks nothing.
  static void lock_nothing(Settings& out);

  // Before open(): client i reaches its masters as the configuration says, whose master `first` is the client's first.
#ifdef REDLOCK_TLS
  void secure(unsigned i, const redlock_config_s& config, unsigned first = 0) { origins_[i] = {&config, first}; }
  bool tls_report(unsigned i, TlsReport& out) const;  // of the client's first master
  const TlsDate& wrong_date(unsigned i) const;        // the same
#else
  void secure(unsigned, const redlock_config_s&, unsigned = 0) {}
#endif
  // A client for each of the settings, which begin to connect. 0, or NOMEM, CLOCK, SYSTEM, TLS_FILE or NOTSUP. The
  // clients refer to the settings.
  int open(const Settings* settings, unsigned count);
  void close();
  Client& client(unsigned i) const;
  Instant now(unsigned i = 0) const;  // by the clock of client i
  uint64_t seed() const { return seed_; }

  // Until the change is over: step(now) takes its next step, by the clock of the first client.
  template <class Change, class Step>
  void carry_out(Change& change, const Step& step) {
    for (uint64_t seen = jumps(); !change.over();) {
      uv_run(loop_.get(), UV_RUN_ONCE);
      const Instant t = now();
      if (jumps() != seen) change.clock_jumped(t);
      seen = jumps();
      step(t);
    }
  }

 private:
  struct One;

  uint64_t jumps() const;

  OwnLoop loop_;
  uv_timer_t tick_;
  One* ones_[most] = {};
  uint64_t seed_ = 0;
  bool loops_ = false;
#ifdef REDLOCK_TLS
  struct Origin {
    const redlock_config_s* config;
    unsigned first;
  };
  Origin origins_[most] = {};
#endif
};

}  // namespace redlock
