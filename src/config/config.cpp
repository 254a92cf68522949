// SPDX-License-Identifier: MIT
#include "config/config.hpp"

#include "base/password_file.hpp"
#include "base/quotient.hpp"
#include "config/keys.hpp"
#include "config/tls.hpp"
#include "config/url.hpp"

#include <stdlib.h>

namespace redlock {
namespace {

void write_master(TextWriter& why, unsigned index) { why.print("masters[%u]", index); }

// An operator recognizes an address best. An address that is too long for a name is replaced by a number.
void name_after_address(Master& master, unsigned index) {
  char name[REDLOCK_MASTER_NAME_MAX + 1];
  TextWriter address(name, sizeof name);
  write_address(address, master);
  if (address.fits()) {
    master.name.assign(Bytes(name, address.needed() - 1));
    return;
  }
  TextWriter number(name, sizeof name);
  number.print("master-%u", index);
  master.name.assign(Bytes(name, number.needed() - 1));
}

// The index of a master for which `same` holds; values.masters if there is none.
template <typename Same>
unsigned find_other(const Values& values, Same same) {
  unsigned i = 0;
  while (i < values.masters && !same(values.master[i])) ++i;
  return i;
}

bool is_given(const Values& values, uint32_t Values::*place) {
  for (const Key& key : keys) {
    if (key.number == place) return values.given[place_of(key)];
  }
  return false;
}

// limits.debts and limits.in_flight grow with limits.locks unless they were set.
uint32_t following(const Values& values, uint32_t Values::*place, uint32_t per_lock, uint32_t cap) {
  if (is_given(values, place) || values.locks <= REDLOCK_LOCKS_DEFAULT) return values.*place;
  const uint32_t wanted = per_lock * values.locks;
  return wanted < cap ? wanted : cap;
}

static_assert(REDLOCK_IN_FLIGHT_DEFAULT >= 2 * REDLOCK_LOCKS_DEFAULT && REDLOCK_IN_FLIGHT_MAX >= 2 * REDLOCK_LOCKS_MAX);
static_assert(REDLOCK_DEBTS_DEFAULT > REDLOCK_LOCKS_DEFAULT && REDLOCK_DEBTS_MAX > REDLOCK_LOCKS_MAX);

struct Relation {
  const char* name;
  uint32_t value;
  uint32_t min;
  uint32_t max;
  const char* because;
};

int check_relations(const Values& v, const Settings& s, TextWriter& why) {
  const Relation relations[] = {
      {"masters", v.masters, 1, REDLOCK_MASTERS_MAX, ""},
      {"defaults.ttl_ms", s.ttl_ms, REDLOCK_TTL_MS_MIN, v.max_ttl_ms, " (timing.max_ttl_ms)"},
      {"timing.node_timeout_ms", v.node_timeout_ms, REDLOCK_NODE_TIMEOUT_MS_MIN, s.ttl_ms - 1,
       " (defaults.ttl_ms - 1)"},
      {"timing.suspect_close_ms", v.suspect_close_ms, v.node_timeout_ms, REDLOCK_SUSPECT_CLOSE_MS_MAX,
       " (timing.node_timeout_ms)"},
      {"timing.reconnect_max_ms", v.reconnect_max_ms, v.reconnect_min_ms, REDLOCK_RECONNECT_MS_MAX,
       " (timing.reconnect_min_ms)"},
      // Each held lock reserves one place for its delete, and its extend takes a second one.
      {"limits.in_flight", s.in_flight, 2 * v.locks, REDLOCK_IN_FLIGHT_MAX, " (2 * limits.locks)"},
      {"limits.debts", s.debts, v.locks + 1, REDLOCK_DEBTS_MAX, " (limits.locks + 1)"},
  };
  for (const Relation& r : relations) {
    if (r.value >= r.min && r.value <= r.max) continue;
    why.print("%s: %u is not in %u..%u%s", r.name, r.value, r.min, r.max, r.because);
    return REDLOCK_E_CONFIG;
  }
  return 0;
}

// With too much drift even an acquire that takes no time leaves no validity.
int check_validity(const Settings& s, TextWriter& why) {
  constexpr uint64_t million = 1'000'000;
  const uint64_t drift = uint64_t{s.ttl_ms} * s.drift_ppm + uint64_t{s.drift_fixed_ms} * million;  // in ns
  if (drift < uint64_t{s.ttl_ms} * million) return 0;
  why.print("defaults.ttl_ms: %u leaves no validity after a drift of ", s.ttl_ms);
  why.number(quotient(drift + million - 1, million));
  return fail(why, " ms (timing.drift_ppm, timing.drift_fixed_ms)");
}

int fill_masters(const Values& values, Settings& out, TextWriter& why) {
  out.masters = values.masters;
  for (unsigned i = 0; i < values.masters; ++i) {
    const Master& from = values.master[i];
    MasterSettings& to = out.master[i];
    to.name = from.name.bytes();
    to.host = from.host.bytes();
    to.port = from.port;
    to.unix_socket = from.unix_socket;
    to.user = from.user.empty() ? values.username.bytes() : from.user.bytes();
    to.password = from.password.empty() ? values.password.bytes() : from.password.bytes();
    to.file = from.file;
    if (from.file != nullptr) to.password = Bytes(from.file->room, from.file->size);
    if (from.file != nullptr && from.file->size > values.password_bytes) {
      write_master(why, i);
      why.print(".password_file: %u bytes are more than %u (limits.password_bytes)", from.file->size,
                values.password_bytes);
      return REDLOCK_E_CONFIG;
    }
    if (to.user.size > 0 && to.password.size == 0) {
      write_master(why, i);
      return fail(why, ".username: given without a password");
    }
  }
  return 0;
}

}  // namespace

Master* next_master(Values& values, TextWriter& why) {
  if (values.masters == REDLOCK_MASTERS_MAX) {
    why.print("masters: %u is not in 1..%u", REDLOCK_MASTERS_MAX + 1, REDLOCK_MASTERS_MAX);
    return nullptr;
  }
  Master& master = values.master[values.masters];
  explicit_bzero(&master, sizeof master);
  write_master(why, values.masters);
  return &master;
}

void forget_files(Values& values, unsigned first) {
  for (unsigned i = first; i <= values.masters && i < REDLOCK_MASTERS_MAX; ++i) {
    PasswordFile*& file = values.master[i].file;
    if (file != nullptr) explicit_bzero(file->room, file->size);
    free(file);
    file = nullptr;
  }
}

int take_master(Values& values, TextWriter& why) {
  Master& master = values.master[values.masters];
  const unsigned same = find_other(values, [&](const Master& other) { return same_address(master, other); });
  if (same < values.masters) {
    why.raw(".url: ");
    write_address(why, master);
    why.raw(" is the address of ");
    write_master(why, same);
    return REDLOCK_E_CONFIG;
  }
  if (master.name.empty()) name_after_address(master, values.masters);
  const unsigned namesake =
      find_other(values, [&](const Master& other) { return master.name.bytes() == other.name.bytes(); });
  if (namesake < values.masters) {
    why.raw(".name: ").quoted(master.name.bytes()).raw(" is the name of ");
    write_master(why, namesake);
    return REDLOCK_E_CONFIG;
  }
  ++values.masters;
  return 0;
}

int finish(const Values& values, Settings& out, TextWriter& why) {
  static_cast<Numbers&>(out) = values;
  if (!is_given(values, &Values::ttl_ms) && values.max_ttl_ms < values.ttl_ms) out.ttl_ms = values.max_ttl_ms;
  out.in_flight = following(values, &Values::in_flight, 4, REDLOCK_IN_FLIGHT_MAX);
  out.debts = following(values, &Values::debts, 2, REDLOCK_DEBTS_MAX);
#define REDLOCK_TIME(section, name, min, max, initial, text) out.name = Duration::ms(values.name##_ms);
  REDLOCK_KEY_MAP(REDLOCK_NO_KEY, REDLOCK_NO_KEY, REDLOCK_NO_KEY, REDLOCK_TIME)
#undef REDLOCK_TIME
  out.client_name = values.client_name.bytes();
  out.key_prefix = values.key_prefix.bytes();
  out.guard = static_cast<GuardMode>(values.guard);
  out.fence_strict = values.fence != 0;
  int result = check_relations(values, out, why);
  if (result == 0) result = check_validity(out, why);
  if (result == 0) result = fill_masters(values, out, why);
  if (result == 0) result = check_tls(values, why);
  return result;
}

int finish(const redlock_config_s& config, Settings& out) {
  char sentence[error_text_max];
  TextWriter why(sentence, sizeof sentence);
  return keep_error(config, finish(config.values, out, why), sentence);
}

int keep_error(const redlock_config_s& config, int result, const char* sentence) {
  if (result != 0) TextWriter(config.error, sizeof config.error).raw(sentence);
  return result;
}

}  // namespace redlock
