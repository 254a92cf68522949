// SPDX-License-Identifier: MIT
#include "master/fingerprint.hpp"

#include "base/digits.hpp"
#include "base/masters.hpp"
#include "base/names.hpp"
#include "resp/writer.hpp"

namespace redlock {
namespace {

// The hash of a name, mixed so that a sum over several names depends on every bit of each.
uint64_t hash_of_name(Bytes name) {
  const uint64_t hash = fnv_of(name);
  return (hash ^ (hash >> 29)) * 0xBF58476D1CE4E5B9u;
}

// Removes the first name of a list with commas, and returns the name.
Bytes next_name(Bytes& list) {
  size_t size = 0;
  while (size < list.size && list.data[size] != ',') ++size;
  const Bytes name(list.data, size);
  const size_t gone = size < list.size ? size + 1 : size;
  list = Bytes(list.data + gone, list.size - gone);
  return name;
}

}  // namespace

Bytes write_fingerprint(const Settings& settings, unsigned quorum, char (&text)[fingerprint_max]) {
  resp::Writer out(text, sizeof text);
  uint64_t ids = 0;
  for (MasterIndex m = 0; m < settings.masters; ++m) ids += hash_of_name(settings.master[m].name);
  char hex[16];
  write_hex(static_cast<uint32_t>(ids >> 32), hex);
  write_hex(static_cast<uint32_t>(ids), hex + 8);
  char digits[20];
  out.raw("v1 n=").raw(to_decimal(settings.masters, digits));
  out.raw(" q=").raw(to_decimal(quorum, digits));
  out.raw(" max_ttl_ms=").raw(to_decimal(settings.max_ttl_ms, digits));
  out.raw(" ids=").raw(Bytes(hex, sizeof hex));
  REDLOCK_ASSERT(out.fits());
  REDLOCK_ASSERT(out.size() <= own_fingerprint_max);
  return out.written();
}

Bytes write_names(const Settings& settings, char (&text)[names_max]) {
  constexpr Bytes more = ",...";
  resp::Writer out(text, sizeof text);
  Masters left = Masters::all(settings.masters);
  while (!left.empty()) {
    MasterIndex next = *left.begin();
    for (MasterIndex m : left) {
      if (Names::less(settings.master[m].name, settings.master[next].name)) next = m;
    }
    left.remove(next);
    const Bytes name = settings.master[next].name;
    const bool first = out.size() == 0;
    if (out.size() + 1 + name.size + (left.empty() ? 0 : more.size) > sizeof text + first) {
      out.raw(more);
      break;
    }
    out.raw(first ? Bytes() : Bytes(",")).raw(name);
  }
  REDLOCK_ASSERT(out.fits());
  return out.written();
}

Bytes first_missing(Bytes list, Bytes other) {
  if (list.size == 0 || other.size == 0 || list.data[list.size - 1] == '.' || other.data[other.size - 1] == '.') {
    return Bytes();
  }
  for (Bytes name; list.size != 0;) {
    name = next_name(list);
    bool found = false;
    for (Bytes rest = other; !found && rest.size != 0;) found = next_name(rest) == name;
    if (!found) return name;
  }
  return Bytes();
}

// "v1 n=3 q=2 max_ttl_ms=30000 ids=...": the numbers behind the first and the third "=".
Fingerprint read_fingerprint(Bytes text) {
  uint32_t numbers[5] = {};
  uint32_t* number = numbers;
  if (text.size < 5 || Bytes(text.data, 5) != Bytes("v1 n=")) return {};
  for (size_t i = 4; i < text.size && number != &numbers[4]; ++i) {
    if (text.data[i] == '=') ++number;
    if (is_digit(text.data[i])) *number = *number * 10 + static_cast<uint32_t>(text.data[i] - '0');
    if (*number > REDLOCK_MAX_TTL_MS_MAX) return {};
  }
  const bool known = numbers[1] != 0 && numbers[1] <= REDLOCK_MASTERS_MAX && numbers[3] != 0;
  return known ? Fingerprint{numbers[3], numbers[1]} : Fingerprint();
}

}  // namespace redlock
