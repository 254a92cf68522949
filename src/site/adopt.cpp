// SPDX-License-Identifier: MIT
//
// redlock_adopt(): a call for maintenance programs. It blocks. src/site/adoption decides the steps.
#include <redlock/site.h>

#include "config/config.hpp"
#include "config/version.hpp"
#include "site/adoption.hpp"
#include "site/site_clients.hpp"

namespace redlock {
namespace {

// The step is another one, or another second of a wait has begun.
bool is_news(const redlock_adopt_report_t& last, const redlock_adopt_report_t& now) {
  return last.step != now.step || last.adopted != now.adopted || last.to_go_ms / 1'000 != now.to_go_ms / 1'000;
}

int adopt(const redlock_config_t& cfg, uint32_t flags, redlock_adopt_fn progress, void* user,
          redlock_adopt_report_t& report) {
  Settings settings;
  int err = SiteClients::settings_of(cfg, settings);
  SiteClients clients;
  clients.secure(0, cfg);
  if (err == 0) err = clients.open(&settings, 1);
  if (err != 0) return err;
  Adoption adoption(clients.client(0), (flags & REDLOCK_ADOPT_REST_IS_GONE) != 0, clients.seed(), clients.now());
  clients.carry_out(adoption, [&](Instant now) {
    const redlock_adopt_report_t last = report;
    adoption.tell(report, now);
    if (progress != nullptr && is_news(last, report)) progress(user, &report);
  });
  return adoption.result();
}

}  // namespace
}  // namespace redlock

extern "C" int redlock_adopt(const redlock_config_t* cfg, uint32_t flags, redlock_adopt_fn progress, void* user,
                             redlock_adopt_report_t* report) {
  if (!redlock::is_build_of_library()) return REDLOCK_E_NOTSUP;
  if (cfg == nullptr || (flags & ~REDLOCK_ADOPT_REST_IS_GONE) != 0) return REDLOCK_E_INVAL;
  if (report != nullptr && report->size < sizeof *report) return REDLOCK_E_INVAL;
  redlock_adopt_report_t full = {};
  full.size = sizeof full;
  const int err = redlock::adopt(*cfg, flags, progress, user, full);
  if (report != nullptr) *report = full;
  return err;
}
