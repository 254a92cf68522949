// SPDX-License-Identifier: MIT
//
// redlock_site_facts(): what a configuration says, for maintenance programs.
#include <redlock/site.h>

#include "config/config.hpp"
#include "config/text.hpp"
#include "config/url.hpp"
#include "config/version.hpp"
#include "lock/quorum.hpp"
#include "master/guard.hpp"

namespace redlock {
namespace {

static_assert(fingerprint_max < sizeof redlock_site_facts_t{}.record);

void put(char* out, Bytes text) {
  memcpy(out, text.data, text.size);
  out[text.size] = '\0';
}

void fill(const redlock_config_s& cfg, const Settings& settings, uint32_t master, redlock_site_facts_t& out) {
  out.masters = settings.masters;
  out.quorum = quorum_of(settings.masters);
  out.key_prefix_size = static_cast<uint32_t>(settings.key_prefix.size);
  put(out.key_prefix, settings.key_prefix);
  char text[fingerprint_max];
  put(out.record, write_fingerprint(settings, out.quorum, text));
  put(out.name, settings.master[master].name);
  TextWriter address(out.address, sizeof out.address);
  write_address(address, cfg.values.master[master]);
  out.warning = cfg.warning;
}

}  // namespace
}  // namespace redlock

extern "C" int redlock_site_facts(const redlock_config_t* cfg, uint32_t master, redlock_site_facts_t* facts) {
  if (!redlock::is_build_of_library()) return REDLOCK_E_NOTSUP;
  if (cfg == nullptr || facts == nullptr || facts->size < sizeof *facts) return REDLOCK_E_INVAL;
  redlock::Settings settings;
  const int err = redlock::finish(*cfg, settings);
  if (err != 0) return err;
  if (master >= settings.masters) return REDLOCK_E_INVAL;
  redlock::fill(*cfg, settings, master, *facts);
  return 0;
}
