/* SPDX-License-Identifier: MIT
 *
 * redlock/limits.h - every limit. Caps are fixed when the library is compiled. The others are defaults
 * with a range: redlock.json(5) says what each key means. Costs are bytes of client memory on a 32-bit gateway;
 * redlock_memory_size() tells the sum.
 */
#ifndef REDLOCK_LIMITS_H
#define REDLOCK_LIMITS_H

/* ---- caps ---------------------------------------------------------------------------------------------------- */

/* Masters of one client. */
#define REDLOCK_MASTERS_MAX 15
/* Bytes of a resource name, of key_prefix, of client_name, and of a master's name. */
#define REDLOCK_RESOURCE_MAX 64
#define REDLOCK_KEY_PREFIX_MAX 32
#define REDLOCK_CLIENT_NAME_MAX 16
#define REDLOCK_MASTER_NAME_MAX 32
/* Bytes of a host name, numeric address or socket path. */
#define REDLOCK_HOST_MAX 107
/* Bytes of a user name and of a password; limits.password_bytes may allow a longer one in a password_file. Cost: the
 * bytes that are used, once per master. */
#define REDLOCK_USER_MAX 64
#define REDLOCK_PASSWORD_MAX 128
/* Bytes of a path of tls.*_file; keys in tls.pin. */
#define REDLOCK_TLS_PATH_MAX 128
#define REDLOCK_TLS_PINS_MAX 4
/* Random bytes in a value, which has twice as many hex digits. */
#define REDLOCK_VALUE_RANDOM 20
/* Bytes of a holder's name as it is told, each byte perhaps escaped as \xNN. */
#define REDLOCK_HOLDER_MAX (4 * REDLOCK_CLIENT_NAME_MAX)
/* Bytes of a value on the wire: hex digits, ':' and the client's name. */
#define REDLOCK_VALUE_MAX (2 * REDLOCK_VALUE_RANDOM + 1 + REDLOCK_CLIENT_NAME_MAX)
/* Addresses of a host name that are tried. Cost: 4 each, per master. */
#define REDLOCK_ADDRESSES_MAX 4
/* Look-ups of host names that are under way in one process. Cost of each, while it lasts: a thread with 256 KB of
 * address space for its stack, and what the C library's resolver takes. */
#define REDLOCK_LOOKUPS_MAX 64
/* Resources of one acquire. */
#define REDLOCK_RESOURCES_PER_LOCK_MAX 4
/* Bytes of a configuration file or text. */
#define REDLOCK_CONFIG_BYTES_MAX 65536

/* ---- times, in milliseconds: default and range ---------------------------------------------------------------- */

/* defaults.ttl_ms, at most timing.max_ttl_ms, which is the default where it is shorter. */
#define REDLOCK_TTL_MS_DEFAULT 10000
#define REDLOCK_TTL_MS_MIN 20
#define REDLOCK_MAX_TTL_MS_DEFAULT 30000
#define REDLOCK_MAX_TTL_MS_MAX 86400000
/* timing.node_timeout_ms */
#define REDLOCK_NODE_TIMEOUT_MS_DEFAULT 50
#define REDLOCK_NODE_TIMEOUT_MS_MIN 5
#define REDLOCK_NODE_TIMEOUT_MS_MAX 10000
/* timing.connect_timeout_ms: for the look-up and the connect, and again for the greeting. */
#define REDLOCK_CONNECT_TIMEOUT_MS_DEFAULT 500
#define REDLOCK_CONNECT_TIMEOUT_MS_MIN 10
#define REDLOCK_CONNECT_TIMEOUT_MS_MAX 60000
/* timing.reconnect_min_ms, timing.reconnect_max_ms: each pause is random, from half of its length to all of it. */
#define REDLOCK_RECONNECT_MIN_MS_DEFAULT 100
#define REDLOCK_RECONNECT_MAX_MS_DEFAULT 5000
#define REDLOCK_RECONNECT_MS_MIN 10
#define REDLOCK_RECONNECT_MS_MAX 600000
/* timing.suspect_close_ms */
#define REDLOCK_SUSPECT_CLOSE_MS_DEFAULT 2000
#define REDLOCK_SUSPECT_CLOSE_MS_MIN 50
#define REDLOCK_SUSPECT_CLOSE_MS_MAX 600000
/* timing.ping_interval_ms: below the servers' `timeout`, or these close idle connections. While a lock is held or
   wanted, a silent connection is tried after 5 s at most. */
#define REDLOCK_PING_INTERVAL_MS_DEFAULT 60000
#define REDLOCK_PING_INTERVAL_MS_MIN 100
#define REDLOCK_PING_INTERVAL_MS_MAX 3600000
/* defaults.wait_ms; timing.guard_wait_ms, two guard times when not given. */
#define REDLOCK_WAIT_MS_DEFAULT 10000
#define REDLOCK_WAIT_MS_MAX 86400000
#define REDLOCK_GUARD_WAIT_MS_MAX 172800000
/* defaults.retry_delay_ms: the pause is uniform in 0 .. this. */
#define REDLOCK_RETRY_DELAY_MS_DEFAULT 100
#define REDLOCK_RETRY_DELAY_MS_MAX 5000
/* defaults.wakeups, 0 or 1 */
#define REDLOCK_WAKEUPS_DEFAULT 1
/* defaults.local_turns, from 0. An urgent acquire of another client waits for so many holds more. */
#define REDLOCK_LOCAL_TURNS_DEFAULT 1
#define REDLOCK_LOCAL_TURNS_MAX 1000
/* A waiter's longest sleep. */
#define REDLOCK_WAIT_SLEEP_MS_MAX 5000
/* timing.drift_ppm, timing.drift_fixed_ms: drift = ttl * ppm / 1e6 + fixed. The defaults are the least: the clocks of
 * holder and master each run at most 0.5 % wrong. */
#define REDLOCK_DRIFT_PPM_DEFAULT 10000
#define REDLOCK_DRIFT_PPM_MAX 200000
#define REDLOCK_DRIFT_FIXED_MS_DEFAULT 2
#define REDLOCK_DRIFT_FIXED_MS_MAX 1000

/* ---- counts and bytes: default and range ---------------------------------------------------------------------- */

/* limits.locks: acquires and held locks at one time. Cost: about 460 each, and 8 for each master. */
#define REDLOCK_LOCKS_DEFAULT 32
#define REDLOCK_LOCKS_MAX 4096
/* limits.in_flight: at least 2 * limits.locks, for a held lock's extend and its delete. Cost: 16 each, per master. */
#define REDLOCK_IN_FLIGHT_DEFAULT 64
#define REDLOCK_IN_FLIGHT_MIN 8
#define REDLOCK_IN_FLIGHT_MAX 16384
/* limits.debts: values that some master may still hold, those of held locks included; at least limits.locks + 1. Cost:
 * about 80 each. */
#define REDLOCK_DEBTS_DEFAULT 64
#define REDLOCK_DEBTS_MAX 16384
/* limits.resource_bytes: the names of one acquire together. Cost: these bytes, for each of limits.locks and
 * limits.debts. */
#define REDLOCK_RESOURCE_BYTES_DEFAULT REDLOCK_RESOURCE_MAX
#define REDLOCK_RESOURCE_BYTES_MAX (REDLOCK_RESOURCES_PER_LOCK_MAX * REDLOCK_RESOURCE_MAX)
/* limits.tx_bytes: the buffer for what all masters are told; 0: room for a SET of each lock. Where it is full, rounds
 * and deletes wait. */
#define REDLOCK_TX_BYTES_MIN 1024
#define REDLOCK_TX_BYTES_MAX 4194304
/* limits.rx_bytes, per master. Longer replies are read in pieces, but a server's longest error must fit. */
#define REDLOCK_RX_BYTES_DEFAULT 512
#define REDLOCK_RX_BYTES_MIN 512
#define REDLOCK_RX_BYTES_MAX 65536
/* limits.stack_bytes, of thread mode: libuv and the library use 16 to 24 KB, the rest is for your callbacks and
 * thread-local variables. */
#define REDLOCK_STACK_BYTES_DEFAULT 65536
#define REDLOCK_STACK_BYTES_MIN 32768
#define REDLOCK_STACK_BYTES_MAX 8388608
/* limits.password_bytes, from REDLOCK_PASSWORD_MAX, the default. Cost: twice these bytes and about 90, for each master
 * with a password_file. */
#define REDLOCK_PASSWORD_BYTES_MAX 2048

#endif /* REDLOCK_LIMITS_H */
