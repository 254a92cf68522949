// SPDX-License-Identifier: MIT
#include "config/keys.hpp"

#include <unistd.h>

#include <new>

namespace redlock {
namespace {

constexpr Key number(const char* name, uint32_t min, uint32_t max, uint32_t Values::*place) {
  return Key{name, min, max, place};
}

constexpr Key number_or_zero(const char* name, uint32_t min, uint32_t max, uint32_t Values::*place) {
  return Key{name, min, max, place, nullptr, nullptr, true};
}

// The value is a word; its number is the word's place among `words`, counted from 0.
constexpr Key choice(const char* name, const char* words, uint32_t Values::*place) {
  return Key{name, 0, Text::max, place, nullptr, words};
}

constexpr Key text(const char* name, uint32_t max, Text Values::*place) {
  return Key{name, 0, max, nullptr, place};
}

constexpr Key plain_text(const char* name, uint32_t max, Text Values::*place) {
  return Key{name, 1, max, nullptr, place, nullptr, false, true};
}

static_assert(static_cast<int>(GuardMode::off) == 0 && static_cast<int>(GuardMode::weak) == 1 &&
              static_cast<int>(GuardMode::strict) == 2);  // the order of the words of "guard"

// Finds the place of a word in a list like "off, weak or strict".
bool find_word(const char* words, Bytes wanted, uint32_t& place) {
  for (place = 0;; ++place) {
    size_t size = 0;
    while (words[size] >= 'a') ++size;
    if (Bytes(words, size) == wanted) return true;
    words += size;
    if (*words == '\0') return false;
    words += *words == ',' ? sizeof ", " - 1 : sizeof " or " - 1;
  }
}

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

bool all_plain(Bytes text) {
  for (size_t i = 0; i < text.size; ++i) {
    if (!is_plain(text.data[i])) return false;
  }
  return true;
}

void set_client_name_to_host_name(Text& name) {
  char host[256];
  if (gethostname(host, sizeof host) != 0) host[0] = '\0';
  host[sizeof host - 1] = '\0';
  size_t size = strnlen(host, REDLOCK_CLIENT_NAME_MAX);
  for (size_t i = 0; i < size; ++i) {
    if (!is_plain(host[i])) host[i] = '-';
  }
  name.assign(size > 0 ? Bytes(host, size) : Bytes("unnamed"));
}

}  // namespace

constexpr Key keys[key_count] = {
    plain_text("client_name", REDLOCK_CLIENT_NAME_MAX, &Values::client_name),
    text("key_prefix", REDLOCK_KEY_PREFIX_MAX, &Values::key_prefix),
    text("username", REDLOCK_USER_MAX, &Values::username),
    text("password", REDLOCK_PASSWORD_MAX, &Values::password),
    choice("guard", "off, weak or strict", &Values::guard),
    choice("fence", "floor or strict", &Values::fence),
    number("defaults.ttl_ms", REDLOCK_TTL_MS_MIN, REDLOCK_MAX_TTL_MS_MAX, &Values::ttl_ms),
    number("defaults.wait_ms", 1, REDLOCK_WAIT_MS_MAX, &Values::wait_ms),
    number("defaults.retry_delay_ms", 1, REDLOCK_RETRY_DELAY_MS_MAX, &Values::retry_delay_ms),
    number("defaults.wakeups", 0, 1, &Values::wakeups),
    number("defaults.local_turns", 0, REDLOCK_LOCAL_TURNS_MAX, &Values::local_turns),
    number("timing.max_ttl_ms", REDLOCK_TTL_MS_MIN, REDLOCK_MAX_TTL_MS_MAX, &Values::max_ttl_ms),
    number("timing.guard_wait_ms", 0, REDLOCK_GUARD_WAIT_MS_MAX, &Values::guard_wait_ms),
    number("timing.node_timeout_ms", REDLOCK_NODE_TIMEOUT_MS_MIN, REDLOCK_NODE_TIMEOUT_MS_MAX,
           &Values::node_timeout_ms),
    number("timing.connect_timeout_ms", REDLOCK_CONNECT_TIMEOUT_MS_MIN, REDLOCK_CONNECT_TIMEOUT_MS_MAX,
           &Values::connect_timeout_ms),
    number("timing.reconnect_min_ms", REDLOCK_RECONNECT_MS_MIN, REDLOCK_RECONNECT_MS_MAX, &Values::reconnect_min_ms),
    number("timing.reconnect_max_ms", REDLOCK_RECONNECT_MS_MIN, REDLOCK_RECONNECT_MS_MAX, &Values::reconnect_max_ms),
    number("timing.suspect_close_ms", REDLOCK_SUSPECT_CLOSE_MS_MIN, REDLOCK_SUSPECT_CLOSE_MS_MAX,
           &Values::suspect_close_ms),
    number("timing.ping_interval_ms", REDLOCK_PING_INTERVAL_MS_MIN, REDLOCK_PING_INTERVAL_MS_MAX,
           &Values::ping_interval_ms),
    // The default drift is also the least that is safe.
    number("timing.drift_ppm", REDLOCK_DRIFT_PPM_DEFAULT, REDLOCK_DRIFT_PPM_MAX, &Values::drift_ppm),
    number("timing.drift_fixed_ms", REDLOCK_DRIFT_FIXED_MS_DEFAULT, REDLOCK_DRIFT_FIXED_MS_MAX,
           &Values::drift_fixed_ms),
    number("limits.locks", 1, REDLOCK_LOCKS_MAX, &Values::locks),
    number("limits.in_flight", REDLOCK_IN_FLIGHT_MIN, REDLOCK_IN_FLIGHT_MAX, &Values::in_flight),
    number("limits.debts", 2, REDLOCK_DEBTS_MAX, &Values::debts),
    number("limits.resource_bytes", REDLOCK_RESOURCE_MAX, REDLOCK_RESOURCE_BYTES_MAX, &Values::resource_bytes),
    number_or_zero("limits.tx_bytes", REDLOCK_TX_BYTES_MIN, REDLOCK_TX_BYTES_MAX, &Values::tx_bytes),
    number("limits.rx_bytes", REDLOCK_RX_BYTES_MIN, REDLOCK_RX_BYTES_MAX, &Values::rx_bytes),
    number("limits.stack_bytes", REDLOCK_STACK_BYTES_MIN, REDLOCK_STACK_BYTES_MAX, &Values::stack_bytes),
};

const Key* find_key(Bytes dotted_name) {
  for (const Key& key : keys) {
    if (bytes_of(key.name) == dotted_name) return &key;
  }
  return nullptr;
}

const char* no_such_key(Bytes dotted_name) {
  if (dotted_name == Bytes("commission")) {
    return ": is no setting any more: call redlock_commission(), once for a new site";
  }
  return ": no such key";
}

bool is_section(Bytes name) {
  for (const Key& key : keys) {
    const Bytes full = bytes_of(key.name);
    if (full.size > name.size && full.data[name.size] == '.' && Bytes(full.data, name.size) == name) return true;
  }
  return false;
}

void set_defaults(Values& values) {
  new (&values) Values();
  set_client_name_to_host_name(values.client_name);
}

int set_number(Values& values, const Key& key, uint32_t value, TextWriter& why) {
  const bool in_range = (value >= key.min && value <= key.max) || (key.or_zero && value == 0);
  if (!in_range) {
    why.print("%s: %u is not ", key.name, value);
    write_range(why, key);
    return REDLOCK_E_CONFIG;
  }
  values.*key.number = value;
  values.given |= key_bit(key);
  return 0;
}

int set_text(Values& values, const Key& key, Bytes value, TextWriter& why) {
  if (value.size < key.min || value.size > key.max) {
    return bad_size(why, key.name, value.size, key.min, key.max);
  }
  if (key.plain && !all_plain(value)) {
    return fail(why.print("%s: ", key.name).quoted(value), " is not of A-Z a-z 0-9 . _ -");
  }
  uint32_t place = 0;
  if (key.words != nullptr && !find_word(key.words, value, place)) {
    why.print("%s: ", key.name).quoted(value).print(" is not %s", key.words);
    return REDLOCK_E_CONFIG;
  }
  if (key.words != nullptr) {
    values.*key.number = place;
  } else {
    (values.*key.text).assign(value);
  }
  values.given |= key_bit(key);
  return 0;
}

void write_range(TextWriter& why, const Key& key) {
  why.print("%sin %u..%u", key.or_zero ? "0 or " : "", key.min, key.max);
}

int bad_size(TextWriter& why, const char* field, size_t size, uint32_t min, uint32_t max) {
  why.print("%s: ", field).number(size);
  why.print(" %s not in %u..%u", size == 1 ? "byte is" : "bytes are", min, max);
  return REDLOCK_E_CONFIG;
}

}  // namespace redlock
