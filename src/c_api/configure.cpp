// SPDX-License-Identifier: MIT
//
// The public functions that fill a configuration value by value. Those that read JSON are in load.cpp.
#include "config/config.hpp"
#include "config/keys.hpp"
#include "config/tls.hpp"
#include "config/url.hpp"

#include <stdlib.h>

using namespace redlock;

namespace {

// Longest part of an unknown key quoted in an error message.
constexpr size_t shown_key_bytes = 64;

bool is_of_tls(Bytes key) { return key.size > 4 && memcmp(key.data, "tls.", 4) == 0; }

// The key that takes a text, or a number. Null: there is none; the reason is in `result` and `why`.
const Key* find_settable(const char* name, bool is_text, int& result, TextWriter& why) {
  const Bytes wanted = bytes_of(name);
  const Key* key = find_key(wanted);
  if (key != nullptr && key->is_text() == is_text) return key;
  why.escaped(wanted, shown_key_bytes);
  result = REDLOCK_E_CONFIG;
  if (is_of_tls(wanted)) {
#ifdef REDLOCK_TLS
    why.raw(": takes a string");
#else
    result = no_tls(why);
#endif
  } else if (key == nullptr) {
    why.raw(no_such_key(wanted));
  } else {
    why.raw(is_text ? ": takes a number" : ": takes a string");
  }
  return nullptr;
}

int null_argument(const redlock_config_t* cfg) {
  return cfg == nullptr ? REDLOCK_E_INVAL : keep_error(*cfg, REDLOCK_E_INVAL, "an argument is NULL");
}

}  // namespace

extern "C" int redlock_config_new(redlock_config_t** out) {
  if (out == nullptr) return REDLOCK_E_INVAL;
  *out = static_cast<redlock_config_t*>(malloc(sizeof(redlock_config_t)));
  if (*out == nullptr) return REDLOCK_E_NOMEM;
  memset(static_cast<void*>(*out), 0, sizeof **out);
  set_defaults((*out)->values);
  return 0;
}

extern "C" void redlock_config_free(redlock_config_t* cfg) {
  if (cfg == nullptr) return;
  forget_files(cfg->values, 0);
  explicit_bzero(cfg, sizeof *cfg);
  free(cfg);
}

extern "C" const char* redlock_config_error(const redlock_config_t* cfg) { return cfg == nullptr ? "" : cfg->error; }

extern "C" int redlock_config_add_master(redlock_config_t* cfg, const char* url) {
  if (cfg == nullptr || url == nullptr) return null_argument(cfg);
  char sentence[error_text_max];
  TextWriter why(sentence, sizeof sentence);
  Master* master = next_master(cfg->values, why);
  if (master == nullptr) return keep_error(*cfg, REDLOCK_E_CONFIG, sentence);
  int result = parse_url(bytes_of(url), *master, why);
  if (result == 0) result = take_master(cfg->values, why);
  if (result != 0) explicit_bzero(master, sizeof *master);
  return keep_error(*cfg, result, sentence);
}

extern "C" int redlock_config_set_u32(redlock_config_t* cfg, const char* key, uint32_t value) {
  if (cfg == nullptr || key == nullptr) return null_argument(cfg);
  char sentence[error_text_max];
  TextWriter why(sentence, sizeof sentence);
  int result = 0;
  const Key* found = find_settable(key, false, result, why);
  if (found != nullptr) result = set_number(cfg->values, *found, value, why);
  return keep_error(*cfg, result, sentence);
}

extern "C" int redlock_config_set_str(redlock_config_t* cfg, const char* key, const char* value) {
  if (cfg == nullptr || key == nullptr || value == nullptr) return null_argument(cfg);
  char sentence[error_text_max];
  TextWriter why(sentence, sizeof sentence);
  int result = 0;
#ifdef REDLOCK_TLS
  const Bytes name = bytes_of(key);
  if (is_of_tls(name)) {
    result = set_tls(cfg->values.tls, Bytes(key + 4, name.size - 4), bytes_of(value), why.raw("tls"));
    return keep_error(*cfg, result, sentence);
  }
#endif
  const Key* found = find_settable(key, true, result, why);
  if (found != nullptr) result = set_text(cfg->values, *found, bytes_of(value), why);
  return keep_error(*cfg, result, sentence);
}

extern "C" void redlock_config_set_event(redlock_config_t* cfg, redlock_event_fn fn, void* user) {
  if (cfg == nullptr) return;
  cfg->event = fn;
  cfg->event_user = user;
}

extern "C" void redlock_config_set_log(redlock_config_t* cfg, redlock_log_fn fn, void* user, int level) {
  if (cfg == nullptr) return;
  cfg->log = fn;
  cfg->log_user = user;
  cfg->log_level = level;
}
