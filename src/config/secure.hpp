// SPDX-License-Identifier: MIT
//
// Tells a driver which masters of its client are reached by TLS, and how.
#pragma once
#include "config/tls.hpp"

namespace redlock {

// The client's master m is the configuration's master first + m. driver: see port/uv/driver. 0; NOMEM; or, with a
// sentence for redlock_config_error(), TLS_FILE or NOTSUP.
template <class Driver>
int secure_masters(const redlock_config_s& config, unsigned first, unsigned masters, Driver& driver) {
#ifdef REDLOCK_TLS
  for (unsigned m = 0; m < masters; ++m) {
    TlsSettings settings;
    tls_settings(config.values, first + m, settings);
    const int err = settings.wanted ? driver.secure(static_cast<MasterIndex>(m), settings) : 0;
    if (err == 0) continue;
    char sentence[error_text_max];
    TextWriter why(sentence, sizeof sentence);
    why.print("masters[%u]", first + m);
    if (err == REDLOCK_E_NOTSUP) why.raw(".tls.min_version: the TLS library of this build is too old for it");
    if (err == REDLOCK_E_TLS_FILE) {
      write_tls_file(why.raw(": "), driver.file_error(static_cast<MasterIndex>(m)));
    }
    return err == REDLOCK_E_NOMEM ? err : keep_error(config, err, sentence);
  }
#else
  static_cast<void>(config), static_cast<void>(first), static_cast<void>(masters), static_cast<void>(driver);
#endif
  return 0;
}

}  // namespace redlock
