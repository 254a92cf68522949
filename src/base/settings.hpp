// SPDX-License-Identifier: MIT
//
// Settings: what a client is created from. config/ checks the settings and fills them in; no other room checks them
// again. The strings belong to config/, and the client copies what it keeps.
#pragma once
#include "base/time.hpp"
#include "base/types.hpp"

namespace redlock {

struct MasterSettings {
  Bytes name;      // for events, status and logs; never empty
  Bytes host;      // numeric IPv4 or IPv6 address, host name, or socket path (see unix_socket)
  Bytes user;      // empty: the default user
  Bytes password;  // empty: no authentication
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

struct Listener;  // master/record

constexpr uint32_t guard_wait_not_given = UINT32_MAX;  // an acquire waits for two guard times

// Numbers that have the same name and unit in redlock_config_t and here. The initializers are the defaults of both.
struct Numbers {
  uint32_t ttl_ms = REDLOCK_TTL_MS_DEFAULT;
  uint32_t max_ttl_ms = REDLOCK_MAX_TTL_MS_DEFAULT;
  uint32_t wait_ms = REDLOCK_WAIT_MS_DEFAULT;
  uint32_t guard_wait_ms = guard_wait_not_given;
  uint32_t retry_delay_ms = REDLOCK_RETRY_DELAY_MS_DEFAULT;
  uint32_t wakeups = REDLOCK_WAKEUPS_DEFAULT;  // 0 or 1
  uint32_t local_turns = REDLOCK_LOCAL_TURNS_DEFAULT;
  uint32_t reconnect_min_ms = REDLOCK_RECONNECT_MIN_MS_DEFAULT;
  uint32_t reconnect_max_ms = REDLOCK_RECONNECT_MAX_MS_DEFAULT;
  uint32_t drift_ppm = REDLOCK_DRIFT_PPM_DEFAULT;
  uint32_t drift_fixed_ms = REDLOCK_DRIFT_FIXED_MS_DEFAULT;

  uint32_t locks = REDLOCK_LOCKS_DEFAULT;
  uint32_t in_flight = REDLOCK_IN_FLIGHT_DEFAULT;
  uint32_t debts = REDLOCK_DEBTS_DEFAULT;
  uint32_t resource_bytes = REDLOCK_RESOURCE_BYTES_DEFAULT;  // the longest names of one lock, together
  uint32_t tx_bytes = 0;  // of the buffer that masters share; 0: enough for all SETs that may be unanswered
  uint32_t rx_bytes = REDLOCK_RX_BYTES_DEFAULT;
  uint32_t stack_bytes = REDLOCK_STACK_BYTES_DEFAULT;  // stack of the client's own thread
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
  bool fence_strict = false;  // no floor: a resource whose counters are unknown gets no token
  Listener* listener = nullptr;  // of a client that locks nothing, and only asks: it greets servers of any role

  Duration node_timeout = Duration::ms(REDLOCK_NODE_TIMEOUT_MS_DEFAULT);
  Duration connect_timeout = Duration::ms(REDLOCK_CONNECT_TIMEOUT_MS_DEFAULT);
  Duration suspect_close = Duration::ms(REDLOCK_SUSPECT_CLOSE_MS_DEFAULT);
  Duration ping_interval = Duration::ms(REDLOCK_PING_INTERVAL_MS_DEFAULT);
};

struct Settings : CommonSettings {
  MasterSettings master[REDLOCK_MASTERS_MAX];
};

}  // namespace redlock
