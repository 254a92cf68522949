// SPDX-License-Identifier: MIT
//
// redlock_site_facts(): what a configuration says, for maintenance programs.
#include <redlock/site.h>

#include "config/config.hpp"
#include "config/text.hpp"
#include "config/tls.hpp"
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

// A word of a shell's command.
void write_word(TextWriter& out, Bytes word) {
  bool is_plain = word.size != 0;
  for (size_t i = 0; i < word.size; ++i) {
    const char c = word.data[i];
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    is_plain = is_plain && (letter || (c != '\0' && strchr("._/:@%+=,-", c) != nullptr));
  }
  if (is_plain) return void(out.raw(word));
  out.raw("'");
  for (size_t i = 0; i < word.size; ++i) {
    out.raw(word.data[i] == '\'' ? Bytes("'\\''") : Bytes(word.data + i, 1));
  }
  out.raw("'");
}

void write_option(TextWriter& out, const char* before, Bytes value) {
  if (value.size == 0) return;
  out.raw(bytes_of(before));
  write_word(out, value);
}

void write_redis_cli(TextWriter& out, const redlock_config_s& cfg, const MasterSettings& master, uint32_t m) {
  write_option(out, master.unix_socket ? "-s " : "-h ", master.host);
  if (!master.unix_socket) out.raw(" -p ").number(master.port);
#ifdef REDLOCK_TLS
  TlsSettings tls;
  tls_settings(cfg.values, m, tls);
  if (tls.wanted) {
    out.raw(tls.ca_file.size != 0 ? Bytes(" --tls") : Bytes(" --tls --insecure"));  // there are pins alone
    write_option(out, " --cacert ", tls.ca_file);
    write_option(out, " --cert ", tls.cert_file);
    write_option(out, " --key ", tls.key_file);
  }
#else
  (void)cfg, (void)m;
#endif
  write_option(out, " --user ", master.user);
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
  out.warning = "";
  TextWriter options(out.redis_cli, sizeof out.redis_cli);
  write_redis_cli(options, cfg, settings.master[master], master);
  if (!options.fits()) *out.redis_cli = '\0';
  out.has_password = settings.master[master].password.size != 0;
}

}  // namespace
}  // namespace redlock

extern "C" int redlock_site_facts(const redlock_config_t* cfg, uint32_t master, redlock_site_facts_t* facts) {
  const bool fits = redlock::clear_output(facts, sizeof *facts, sizeof *facts);
  if (!redlock::is_build_of_library()) return REDLOCK_E_NOTSUP;
  if (cfg == nullptr || !fits) return REDLOCK_E_INVAL;
  redlock::Settings settings;
  const int err = redlock::finish(*cfg, settings);
  if (err != 0) return err;
  if (master >= settings.masters) return REDLOCK_E_INVAL;
  redlock::fill(*cfg, settings, master, *facts);
  return 0;
}
