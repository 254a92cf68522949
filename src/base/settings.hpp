// SPDX-License-Identifier: MIT
//
// Settings: what a client is created from, checked and in the core's own words. config/ fills it, nobody else checks it
// again. Strings belong to whoever filled it; the client copies what it keeps.
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

// How sure must a client be that a master has kept its keys before it lets it vote? weak: of the record, not of the
// server's identity, for services whose INFO is not to be had.
enum class GuardMode : uint8_t { off, weak, strict };

// The numbers that a configuration has in the same words. The initializers are the defaults of both.
struct Numbers {
  uint32_t ttl_ms = REDLOCK_TTL_MS_DEFAULT;
  uint32_t max_ttl_ms = REDLOCK_MAX_TTL_MS_DEFAULT;
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
  uint32_t resource_bytes = REDLOCK_RESOURCE_BYTES_DEFAULT;  // of the names of one lock, together
  uint32_t tx_bytes = 0;  // 0: as much as every lock needs to send its SET in one turn
  uint32_t rx_bytes = REDLOCK_RX_BYTES_DEFAULT;
  uint32_t stack_bytes = REDLOCK_STACK_BYTES_DEFAULT;  // of a thread of the client's own
};

struct Settings : Numbers {
  unsigned masters = 0;  // N
  MasterSettings master[REDLOCK_MASTERS_MAX];

  Bytes client_name;
  Bytes key_prefix;

  GuardMode guard = GuardMode::off;
  static constexpr size_t boot_id_size = 36;
  char boot_id[boot_id_size];  // of this machine, so that its short-lived clients watch together
  bool has_boot_id = false;    // false: each watches alone
  Bytes meta_key;     // the guard's record and what must stand there; made by the client
  Bytes seen_key;     // the hash of short visits; made by the client
  Bytes fingerprint;
  bool fence_strict = false;  // no floor: a resource whose counters are unknown gets no token

  Duration node_timeout = Duration::ms(REDLOCK_NODE_TIMEOUT_MS_DEFAULT);
  Duration connect_timeout = Duration::ms(REDLOCK_CONNECT_TIMEOUT_MS_DEFAULT);
  Duration suspect_close = Duration::ms(REDLOCK_SUSPECT_CLOSE_MS_DEFAULT);
  Duration ping_interval = Duration::ms(REDLOCK_PING_INTERVAL_MS_DEFAULT);
};

}  // namespace redlock
