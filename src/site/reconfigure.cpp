// SPDX-License-Identifier: MIT
//
// redlock_reconfigure(): a call for maintenance programs. It blocks. src/site/reconfiguration decides the steps.
#include <redlock/site.h>

#include "config/config.hpp"
#include "config/version.hpp"
#include "lock/quorum.hpp"
#include "site/reconfiguration.hpp"
#include "site/site_clients.hpp"

namespace redlock {
namespace {

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

void tell_side(const Reconfiguration::Side& side, uint32_t& masters, uint32_t& needed, int32_t* err) {
  masters = side.client.settings().masters;
  needed = side.needed;
  for (MasterIndex m = 0; m < masters; ++m) err[m] = side.why_not(m);
}

// How far the call came, for other threads too.
void tell_progress(const Reconfiguration& change, redlock_reconfigure_report_t& out) {
  __atomic_store_n(&out.written, change.written(), __ATOMIC_RELEASE);
}

int reconfigure(const redlock_config_t& old_cfg, const redlock_config_t& new_cfg, redlock_reconfigure_report_t& out) {
  Settings settings[2];
  int err = SiteClients::settings_of(old_cfg, settings[0]);
  if (err == 0) err = SiteClients::settings_of(new_cfg, settings[1]);
  if (err == 0) err = check_pair(settings[0], settings[1], new_cfg);
  SiteClients clients;
  clients.secure(0, old_cfg);
  clients.secure(1, new_cfg);
  if (err == 0) err = clients.open(settings, 2);
  if (err != 0) return err;
  Reconfiguration change(clients.client(0), clients.client(1), clients.seed(), clients.now());
  clients.carry_out(change, [&](Instant now) {
    change.step(now, clients.now(1));
    tell_progress(change, out);
  });
  tell_side(change.old_side(), out.old_masters, out.old_needed, out.old_err);
  tell_side(change.new_side(), out.new_masters, out.new_needed, out.new_err);
  clients.close();  // before what hears their answers is gone
  return change.result();
}

}  // namespace
}  // namespace redlock

extern "C" int redlock_reconfigure(const redlock_config_t* old_cfg, const redlock_config_t* new_cfg,
                                   redlock_reconfigure_report_t* report) {
  redlock_reconfigure_report_t own = {};
  const bool fits = report == nullptr || redlock::clear_output(report, sizeof *report, sizeof *report);
  redlock_reconfigure_report_t& out = report != nullptr ? *report : own;
  if (!redlock::is_build_of_library()) return REDLOCK_E_NOTSUP;
  if (old_cfg == nullptr || new_cfg == nullptr || !fits) return REDLOCK_E_INVAL;
  out.size = sizeof out;
  return redlock::reconfigure(*old_cfg, *new_cfg, out);
}
