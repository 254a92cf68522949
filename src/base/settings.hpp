// SPDX-License-Identifier: MIT
//
// Settings: what a client is created from. config/ checks the settings and fills them in; no other room checks them
// again. The strings belong to config/, and the client copies what it keeps.
#pragma once
#include "base/key_map.hpp"
#include "base/time.hpp"
#include "base/types.hpp"

namespace redlock {

struct PasswordFile;

struct MasterSettings {
  Bytes name;      // for events, status and logs; never empty
  Bytes host;      // numeric IPv4 or IPv6 address, host name, or socket path (see unix_socket)
  Bytes user;      // empty: the default user
  Bytes password;  // empty: no authentication
  PasswordFile* file = nullptr;  // where the password stands, if in a file of its own
  uint16_t port = 6379;
  bool unix_socket = false;
};

// How one master is reached by TLS. The core knows nothing of it: config/ fills it in, port/tls copies what it keeps.
struct TlsSettings {
  bool wanted = false;   // the master's URL begins with rediss://; then ca_file or pins is not empty
  bool tls13 = false;    // TLS 1.3 or newer; else 1.2 or newer
  Bytes ca_file;         // path of PEM certificates; empty: the pins alone decide
  Bytes cert_file;       // path of our certificate and those above it, PEM; empty together with key_file
  Bytes key_file;
  Bytes server_name;     // what the certificate must be for: a name, or a numeric address; never empty
  static constexpr size_t pin_size = 32;
  Bytes pins;            // SHA-256 digests of public keys (SubjectPublicKeyInfo), one behind the other
};

// How sure must a client be that a master has kept its keys before the master may vote? weak: the record is compared,
// but not the server's identity, for services that refuse INFO.
enum class GuardMode : uint8_t { off, weak, strict };

constexpr uint32_t guard_wait_not_given = UINT32_MAX;  // an acquire waits for two guard times

// Numbers that have the same name and unit in redlock_config_t and here. The initializers are the defaults of both.
// guard_wait_ms: see above; wakeups: 0 or 1; resource_bytes: the longest names of one lock, together; tx_bytes: of the
// buffer that masters share, 0: enough for all SETs that may be unanswered; stack_bytes: of the client's own thread.
struct Numbers {
#define REDLOCK_NUMBER(section, name, min, max, initial, text) uint32_t name = initial;
  REDLOCK_KEY_MAP(REDLOCK_NO_KEY, REDLOCK_NO_KEY, REDLOCK_NUMBER, REDLOCK_NO_KEY)
#undef REDLOCK_NUMBER
};

// What holds for all masters: a client keeps this, and beside it as many MasterSettings as it has masters.
struct CommonSettings : Numbers {
  unsigned masters = 0;  // N

  Bytes client_name;
  Bytes key_prefix;

  GuardMode guard = GuardMode::off;
  static constexpr size_t boot_id_size = 36;
  char boot_id[boot_id_size];  // of this machine, so that short-lived clients of one machine watch together
  bool has_boot_id = false;    // false: each client watches alone
  Bytes meta_key;     // key of the guard's record; made by the client
  Bytes seen_key;     // key of the hash of short visits; made by the client
  Bytes fingerprint;  // what the record must say; made by the client
  Bytes names;        // of the masters, as the record tells them to a person; made by the client
  bool fence_strict = false;  // no floor: a resource whose counters are unknown gets no token
  bool any_role = false;  // of a client that locks nothing: it greets servers of any role, and sends the login alone

#define REDLOCK_DURATION(section, name, min, max, initial, text) Duration name = Duration::ms(initial);
  REDLOCK_KEY_MAP(REDLOCK_NO_KEY, REDLOCK_NO_KEY, REDLOCK_NO_KEY, REDLOCK_DURATION)
#undef REDLOCK_DURATION
};

struct Settings : CommonSettings {
  MasterSettings master[REDLOCK_MASTERS_MAX];
};

}  // namespace redlock
