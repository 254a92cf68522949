// SPDX-License-Identifier: MIT
//
// redlock_site_setting(): what a configuration says, key by key, in the order of the parser's own table.
#include <redlock/site.h>

#include "config/config.hpp"
#include "config/keys.hpp"
#include "config/tls.hpp"
#include "config/version.hpp"

namespace redlock {
namespace {

// Keys whose default follows from others.
uint32_t number_of(const Key& key, const Values& values, const Settings& settings) {
  if (key.number == static_cast<uint32_t Values::*>(&Values::ttl_ms)) return settings.ttl_ms;
  if (key.number == static_cast<uint32_t Values::*>(&Values::in_flight)) return settings.in_flight;
  if (key.number == static_cast<uint32_t Values::*>(&Values::debts)) return settings.debts;
  if (key.number != static_cast<uint32_t Values::*>(&Values::guard_wait_ms)) return values.*key.number;
  if (settings.guard_wait_ms != guard_wait_not_given) return settings.guard_wait_ms;
  const uint64_t drift_us = uint64_t{settings.max_ttl_ms} * settings.drift_ppm / 1'000;
  return static_cast<uint32_t>(2 * (settings.max_ttl_ms + (drift_us + 999) / 1'000 + settings.drift_fixed_ms));
}

// The word of a list like "off, weak or strict".
Bytes word_at(const char* words, uint32_t place) {
  for (; place > 0; --place) {
    words += strcspn(words, ", ");
    words += strspn(words, ", ");
    if (strncmp(words, "or ", 3) == 0) words += 3;
  }
  return Bytes(words, strcspn(words, ", "));
}

void write_values(const Key& key, redlock_setting_t& out) {
  TextWriter range(out.range, sizeof out.range);
  if (key.words != nullptr) {
    range.raw(bytes_of(key.words));
    return;
  }
  if (key.or_zero) range.raw("0 or ");
  range.number(key.min).raw("..").number(key.max);
  if (key.text != nullptr) range.raw(key.plain ? Bytes(" bytes of A-Z a-z 0-9 . _ -") : Bytes(" bytes"));
}

void fill(const Key& key, const Values& values, const Settings& settings, redlock_setting_t& out) {
  TextWriter text(out.value, sizeof out.value);
  out.key = key.name;
  out.is_text = key.is_text();
  write_values(key, out);
  out.given = values.given[place_of(key)];
  if (key.words != nullptr) {
    text.raw(word_at(key.words, values.*key.number));
  } else if (key.text == &Values::password) {
    text.raw((values.*key.text).empty() ? Bytes("") : Bytes("(hidden)"));
  } else if (key.text != nullptr) {
    text.escaped((values.*key.text).bytes());
  } else {
    out.number = number_of(key, values, settings);
    text.number(out.number);
  }
}

#ifdef REDLOCK_TLS
constexpr unsigned setting_count = key_count + tls_key_count;

void fill(const TlsKey& key, const TlsValues& values, redlock_setting_t& out) {
  TextWriter text(out.value, sizeof out.value);
  TextWriter(out.range, sizeof out.range).raw(key.range);
  out.key = key.name;
  out.is_text = 1;
  out.given = write_tls(text, key, values);
}
#else
constexpr unsigned setting_count = key_count;
#endif

}  // namespace
}  // namespace redlock

extern "C" int redlock_site_setting(const redlock_config_t* cfg, uint32_t index, redlock_setting_t* setting) {
  const bool fits = redlock::clear_output(setting, sizeof *setting, sizeof *setting);
  if (!redlock::is_build_of_library()) return REDLOCK_E_NOTSUP;
  if (cfg == nullptr || !fits) return REDLOCK_E_INVAL;
  if (index >= redlock::setting_count) return REDLOCK_E_INVAL;
  redlock::Settings settings;
  const int err = redlock::finish(*cfg, settings);
  if (err != 0) return err;
  setting->size = sizeof *setting;
#ifdef REDLOCK_TLS
  if (index >= redlock::key_count) {
    redlock::fill(redlock::tls_keys[index - redlock::key_count], cfg->values.tls, *setting);
    return 0;
  }
#endif
  redlock::fill(redlock::keys[index], cfg->values, settings, *setting);
  return 0;
}
