// SPDX-License-Identifier: MIT
#include "config/keys.hpp"

#include <unistd.h>

namespace redlock {
namespace {

constexpr Key number(const char* name, uint32_t min, uint32_t max, uint32_t initial, uint32_t Values::*place) {
  return Key{name, min, max, initial, place, nullptr};
}

constexpr Key number_or_zero(const char* name, uint32_t min, uint32_t max, uint32_t Values::*place) {
  return Key{name, min, max, 0, place, nullptr, true};
}

constexpr Key text(const char* name, uint32_t max, Text Values::*place) {
  return Key{name, 0, max, 0, nullptr, place};
}

constexpr Key plain_text(const char* name, uint32_t max, Text Values::*place) {
  return Key{name, 1, max, 0, nullptr, place, false, true};
}

constexpr Key choice(const char* name, const char* first, const char* second, Text Values::*place) {
  return Key{name, 1, Text::max, 0, nullptr, place, false, false, false, first, second};
}

bool is_mode(Bytes text) { return text == Bytes("strict") || text == Bytes("weak") || text == Bytes("off"); }

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
    Key{"guard", 0, Text::max, 0, nullptr, &Values::guard, false, false, true},
    choice("fence", "floor", "strict", &Values::fence),
    number("defaults.ttl_ms", REDLOCK_TTL_MS_MIN, REDLOCK_MAX_TTL_MS_MAX, REDLOCK_TTL_MS_DEFAULT, &Values::ttl_ms),
    number("defaults.retry_delay_ms", 1, REDLOCK_RETRY_DELAY_MS_MAX, REDLOCK_RETRY_DELAY_MS_DEFAULT,
           &Values::retry_delay_ms),
    number("defaults.wakeups", 0, 1, REDLOCK_WAKEUPS_DEFAULT, &Values::wakeups),
    number("defaults.local_turns", 0, REDLOCK_LOCAL_TURNS_MAX, REDLOCK_LOCAL_TURNS_DEFAULT, &Values::local_turns),
    number("timing.max_ttl_ms", REDLOCK_TTL_MS_MIN, REDLOCK_MAX_TTL_MS_MAX, REDLOCK_MAX_TTL_MS_DEFAULT,
           &Values::max_ttl_ms),
    number("timing.node_timeout_ms", REDLOCK_NODE_TIMEOUT_MS_MIN, REDLOCK_NODE_TIMEOUT_MS_MAX,
           REDLOCK_NODE_TIMEOUT_MS_DEFAULT, &Values::node_timeout_ms),
    number("timing.connect_timeout_ms", REDLOCK_CONNECT_TIMEOUT_MS_MIN, REDLOCK_CONNECT_TIMEOUT_MS_MAX,
           REDLOCK_CONNECT_TIMEOUT_MS_DEFAULT, &Values::connect_timeout_ms),
    number("timing.reconnect_min_ms", REDLOCK_RECONNECT_MS_MIN, REDLOCK_RECONNECT_MS_MAX,
           REDLOCK_RECONNECT_MIN_MS_DEFAULT, &Values::reconnect_min_ms),
    number("timing.reconnect_max_ms", REDLOCK_RECONNECT_MS_MIN, REDLOCK_RECONNECT_MS_MAX,
           REDLOCK_RECONNECT_MAX_MS_DEFAULT, &Values::reconnect_max_ms),
    number("timing.suspect_close_ms", REDLOCK_SUSPECT_CLOSE_MS_MIN, REDLOCK_SUSPECT_CLOSE_MS_MAX,
           REDLOCK_SUSPECT_CLOSE_MS_DEFAULT, &Values::suspect_close_ms),
    number("timing.ping_interval_ms", REDLOCK_PING_INTERVAL_MS_MIN, REDLOCK_PING_INTERVAL_MS_MAX,
           REDLOCK_PING_INTERVAL_MS_DEFAULT, &Values::ping_interval_ms),
    // The default drift is also the least that is safe.
    number("timing.drift_ppm", REDLOCK_DRIFT_PPM_DEFAULT, REDLOCK_DRIFT_PPM_MAX, REDLOCK_DRIFT_PPM_DEFAULT,
           &Values::drift_ppm),
    number("timing.drift_fixed_ms", REDLOCK_DRIFT_FIXED_MS_DEFAULT, REDLOCK_DRIFT_FIXED_MS_MAX,
           REDLOCK_DRIFT_FIXED_MS_DEFAULT, &Values::drift_fixed_ms),
    number("limits.locks", 1, REDLOCK_LOCKS_MAX, REDLOCK_LOCKS_DEFAULT, &Values::locks),
    number("limits.in_flight", REDLOCK_IN_FLIGHT_MIN, REDLOCK_IN_FLIGHT_MAX, REDLOCK_IN_FLIGHT_DEFAULT,
           &Values::in_flight),
    number("limits.debts", 2, REDLOCK_DEBTS_MAX, REDLOCK_DEBTS_DEFAULT, &Values::debts),
    number("limits.resource_bytes", REDLOCK_RESOURCE_MAX, REDLOCK_RESOURCE_BYTES_MAX, REDLOCK_RESOURCE_BYTES_DEFAULT,
           &Values::resource_bytes),
    number_or_zero("limits.tx_bytes", REDLOCK_TX_BYTES_MIN, REDLOCK_TX_BYTES_MAX, &Values::tx_bytes),
    number("limits.rx_bytes", REDLOCK_RX_BYTES_MIN, REDLOCK_RX_BYTES_MAX, REDLOCK_RX_BYTES_DEFAULT,
           &Values::rx_bytes),
    number("limits.stack_bytes", REDLOCK_STACK_BYTES_MIN, REDLOCK_STACK_BYTES_MAX, REDLOCK_STACK_BYTES_DEFAULT,
           &Values::stack_bytes),
};

const Key* find_key(Bytes dotted_name) {
  for (const Key& key : keys) {
    if (bytes_of(key.name) == dotted_name) return &key;
  }
  return nullptr;
}

Bytes no_such_key(Bytes dotted_name) {
  if (dotted_name == Bytes("commission")) return ": is no setting any more: call redlock_commission(), once for a new site";
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
  memset(&values, 0, sizeof values);
  for (const Key& key : keys) {
    if (key.number != nullptr) values.*key.number = key.initial;
    if (key.first_word != nullptr) (values.*key.text).assign(bytes_of(key.first_word));
  }
  set_client_name_to_host_name(values.client_name);
  values.guard.assign("strict");
}

int set_number(Values& values, const Key& key, uint32_t value, TextWriter& why) {
  const bool in_range = (value >= key.min && value <= key.max) || (key.or_zero && value == 0);
  if (!in_range) {
    why.raw(bytes_of(key.name)).raw(": ").number(value).raw(" is not ");
    write_range(why, key);
    return REDLOCK_E_CONFIG;
  }
  values.*key.number = value;
  values.given |= key_bit(key);
  return 0;
}

int set_text(Values& values, const Key& key, Bytes value, TextWriter& why) {
  if (value.size < key.min || value.size > key.max) {
    why.raw(bytes_of(key.name)).raw(": ");
    write_bad_size(why, value.size, key.min, key.max);
    return REDLOCK_E_CONFIG;
  }
  if (key.plain && !all_plain(value)) {
    why.raw(bytes_of(key.name)).raw(": ").quoted(value).raw(" is not of A-Z a-z 0-9 . _ -");
    return REDLOCK_E_CONFIG;
  }
  if (key.mode && !is_mode(value)) {
    why.raw(bytes_of(key.name)).raw(": ").quoted(value).raw(" is not strict, weak or off");
    return REDLOCK_E_CONFIG;
  }
  if (key.first_word != nullptr && value != bytes_of(key.first_word) && value != bytes_of(key.second_word)) {
    why.raw(bytes_of(key.name)).raw(": ").quoted(value).raw(" is not ").raw(bytes_of(key.first_word));
    why.raw(" or ").raw(bytes_of(key.second_word));
    return REDLOCK_E_CONFIG;
  }
  (values.*key.text).assign(value);
  values.given |= key_bit(key);
  return 0;
}

void write_range(TextWriter& why, const Key& key) {
  if (key.or_zero) why.raw("0 or ");
  why.raw("in ").number(key.min).raw("..").number(key.max);
}

void write_bad_size(TextWriter& why, size_t size, size_t min, size_t max) {
  why.number(size).raw(size == 1 ? Bytes(" byte is not in ") : Bytes(" bytes are not in "));
  why.number(min).raw("..").number(max);
}

}  // namespace redlock
