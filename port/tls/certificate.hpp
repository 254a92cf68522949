// SPDX-License-Identifier: MIT
//
// Certificate: is the peer the one that the settings ask for? The engine has checked signatures; dates, names and pins
// are judged here, alike for both engines.
//
// With authorities (ca_file): the dates of each certificate of the chain, and the name; with pins: the peer's key as
// well. With pins alone: the key, and nothing else, for gateways that do not know the time.
#pragma once
#include "base/tls_faults.hpp"
#include "port/tls/engine.hpp"

namespace redlock::tls {

struct Demands {
  bool chain;         // dates and name
  Bytes server_name;  // a host name or a numeric address
  Bytes pins;         // of 32 bytes each; empty: none
  int64_t utc_s;      // the time of day
};

// 0, or TLS_AUTHORITY (there is no certificate), TLS_EXPIRED, TLS_EARLY, TLS_NAME or TLS_PIN. `wrong` is written with
// TLS_EXPIRED and TLS_EARLY.
int judge(const Link& link, const Demands& demands, TlsDate& wrong);

// ---- the parts

// The chain's certificates, the peer's first. The last is the authority that the settings name.
int judge_dates(const Peer& peer, int64_t utc_s, TlsDate& wrong);
// The earliest end in the chain.
int64_t earliest_end_s(const Peer& peer);

// Takes constant time for one number of pins.
bool has_pin(Bytes pins, const unsigned char (&key_sha256)[32]);

// What a certificate's names are compared with. A numeric address is compared as bytes, with addresses alone: a DNS
// name that reads like one is none. A host name is compared with DNS names alone, in any case and without the dot at
// the end; "*" stands for the whole left-most label of a name with three labels or more.
class ServerName {
 public:
  explicit ServerName(Bytes text);
  bool is_address() const { return address_size_ > 0; }
  Bytes host() const { return is_address() ? Bytes() : host_; }  // without the dot at the end
  bool matches(bool is_address, Bytes entry) const;

 private:
  Bytes host_;
  unsigned char address_[16];
  uint8_t address_size_ = 0;  // 0, 4 or 16
};

// Seconds from 1970 to a date of the Gregorian calendar, UTC. The C library's would end in 2038 where time_t is short.
int64_t utc_seconds(int year, int month, int day, int hour, int minute, int second);

}  // namespace redlock::tls
