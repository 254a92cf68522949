// SPDX-License-Identifier: MIT
//
// Any text: it is taken or refused with a printable sentence; what was refused changed nothing; what was taken can be
// checked as a whole.
#include "config/config.hpp"

#include <stddef.h>
#include <stdint.h>

#include <cstdlib>
#include <cstring>
#include <memory>

namespace {

void require(bool condition) {
  if (!condition) abort();
}

void require_printable(const char* sentence) {
  require(strlen(sentence) < redlock::error_text_max);
  for (; *sentence != '\0'; ++sentence) {
    const unsigned char c = static_cast<unsigned char>(*sentence);
    require(c >= 0x20 && c != 0x7F);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  redlock_config_t* cfg = nullptr;
  require(redlock_config_new(&cfg) == 0);
  const auto before = std::make_unique<redlock::Values>(cfg->values);
  const char* json = size > 0 ? reinterpret_cast<const char*>(data) : "";  // no input may come as a null pointer
  const int result = redlock_config_load_json(cfg, json, size);
  require(result == 0 || result == REDLOCK_E_CONFIG || result == REDLOCK_E_NOTSUP || result == REDLOCK_E_SYSTEM);
  require((result == 0) == (redlock_config_error(cfg)[0] == '\0'));
  if (result != 0) require(memcmp(before.get(), &cfg->values, sizeof cfg->values) == 0);
  redlock::Settings settings;
  if (redlock::finish(*cfg, settings) == 0) {
    require(settings.masters >= 1 && settings.masters <= REDLOCK_MASTERS_MAX);
    require(settings.in_flight >= 2 * settings.locks);
    require(settings.debts > settings.locks && settings.ttl_ms <= settings.max_ttl_ms);
  }
  require_printable(redlock_config_error(cfg));
  redlock_config_free(cfg);
  return 0;
}
