// SPDX-License-Identifier: MIT
#include "port/tls/certificate.hpp"

#include <arpa/inet.h>
#include <strings.h>

#include "base/settings.hpp"

namespace redlock::tls {

// ---- dates ------------------------------------------------------------------------------------------------------

// Years are counted from March here, so that the day which some years have more is the last.
int64_t utc_seconds(int year, int month, int day, int hour, int minute, int second) {
  const int64_t y = year - (month <= 2);
  const int64_t era_days = y * 365 + y / 4 - y / 100 + y / 400;
  const int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  constexpr int64_t days_to_1970 = 719468;
  return (((era_days + day_of_year - days_to_1970) * 24 + hour) * 60 + minute) * 60 + second;
}

int judge_dates(const Peer& peer, int64_t utc_s, TlsDate& wrong) {
  using Of = TlsDate::Of;
  for (unsigned i = 0; i < peer.certificates; ++i) {
    const Validity& validity = peer.validity[i];
    const bool expired = utc_s > validity.not_after_s;
    if (!expired && utc_s >= validity.not_before_s) continue;
    wrong.at_s = expired ? validity.not_after_s : validity.not_before_s;
    wrong.of = i == 0 ? Of::master : i + 1 < peer.certificates ? Of::intermediate : Of::authority;
    return expired ? REDLOCK_E_TLS_EXPIRED : REDLOCK_E_TLS_EARLY;
  }
  return 0;
}

int64_t earliest_end_s(const Peer& peer) {
  int64_t end = INT64_MAX;
  for (unsigned i = 0; i < peer.certificates; ++i) {
    if (peer.validity[i].not_after_s < end) end = peer.validity[i].not_after_s;
  }
  return end;
}

// ---- names ------------------------------------------------------------------------------------------------------

namespace {

Bytes without_last_dot(Bytes name) {
  if (name.size > 0 && name.data[name.size - 1] == '.') --name.size;
  return name;
}

bool same_name(Bytes a, Bytes b) {
  return a.size == b.size && a.size > 0 && strncasecmp(a.data, b.data, a.size) == 0 &&
         memchr(a.data, '\0', a.size) == nullptr;  // strncasecmp stops there
}

// From the first dot on: ".example.com". Empty where there is no dot, or nothing before it.
Bytes behind_first_label(Bytes name) {
  const char* const dot = static_cast<const char*>(memchr(name.data, '.', name.size));
  if (dot == nullptr || dot == name.data) return {};
  return {dot, name.size - static_cast<size_t>(dot - name.data)};
}

}  // namespace

ServerName::ServerName(Bytes text) : host_(without_last_dot(text)) {
  char copy[INET6_ADDRSTRLEN];
  if (text.size >= sizeof copy) return;
  memcpy(copy, text.data, text.size);
  copy[text.size] = '\0';
  if (inet_pton(AF_INET, copy, address_) == 1) address_size_ = 4;
  if (inet_pton(AF_INET6, copy, address_) == 1) address_size_ = 16;
}

bool ServerName::matches(bool entry_is_address, Bytes entry) const {
  if (entry_is_address != is_address()) return false;
  if (entry_is_address) return entry.size == address_size_ && memcmp(entry.data, address_, address_size_) == 0;
  entry = without_last_dot(entry);
  if (entry.size < 2 || entry.data[0] != '*') return same_name(host_, entry);
  const Bytes parent = behind_first_label(entry);
  const bool whole_label = parent.size + 1 == entry.size;
  const bool three_labels = parent.size > 2 && memchr(parent.data + 1, '.', parent.size - 1) != nullptr;
  return whole_label && three_labels && same_name(behind_first_label(host_), parent);
}

namespace {

struct Search {
  const ServerName& name;
  bool found;
};

bool has_name(const Link& link, Bytes server_name) {
  if (server_name.size == 0) return false;
  const ServerName name(server_name);
  Search search = {name, false};
  read_alt_names(link, {&search, [](void* self, bool is_address, Bytes entry) {
                          Search& s = *static_cast<Search*>(self);
                          if (s.name.matches(is_address, entry)) s.found = true;
                        }});
  return search.found;
}

}  // namespace

// ---- keys -------------------------------------------------------------------------------------------------------

bool has_pin(Bytes pins, const unsigned char (&key_sha256)[32]) {
  static_assert(sizeof key_sha256 == TlsSettings::pin_size);
  bool found = false;
  for (size_t at = 0; at + TlsSettings::pin_size <= pins.size; at += TlsSettings::pin_size) {
    int difference = 0;
    for (size_t i = 0; i < TlsSettings::pin_size; ++i) {
      difference |= static_cast<unsigned char>(pins.data[at + i]) ^ key_sha256[i];
    }
    found |= difference == 0;
  }
  return found;
}

int judge(const Link& link, const Demands& demands, TlsDate& wrong) {
  Peer peer;
  if (!read_peer(link, peer)) return REDLOCK_E_TLS_AUTHORITY;
  if (demands.chain) {
    const int dates = judge_dates(peer, demands.utc_s, wrong);
    if (dates != 0) return dates;
    if (!has_name(link, demands.server_name)) return REDLOCK_E_TLS_NAME;
  }
  // A client whose configuration names neither an authority nor a key trusts nobody.
  if ((demands.pins.size > 0 || !demands.chain) && !has_pin(demands.pins, peer.key_sha256)) return REDLOCK_E_TLS_PIN;
  return 0;
}

}  // namespace redlock::tls
