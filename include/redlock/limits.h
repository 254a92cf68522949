/* SPDX-License-Identifier: MIT
 *
 * redlock/limits.h - every limit of the library, declared once.
 *
 * "cap" limits are fixed when the library is compiled: they size arrays and wire buffers. The others are defaults
 * with a range: the configuration may change them, and the client's memory (redlock_memory_size) follows.
 * Cost is in bytes of client memory on a 32-bit gateway unless it says otherwise.
 */
#ifndef REDLOCK_LIMITS_H
#define REDLOCK_LIMITS_H

/* ---- caps ---------------------------------------------------------------------------------------------------- */

/* Masters in one client. Votes are bits of a 16-bit word. */
#define REDLOCK_MASTERS_MAX 15
/* Bytes of a resource name; binary-safe, at least 1. */
#define REDLOCK_RESOURCE_MAX 64
/* Bytes of key_prefix. The key on the masters is key_prefix + resource. Cost: once per client. */
#define REDLOCK_KEY_PREFIX_MAX 32
/* Bytes of client_name, which stands behind the random part of every value. Cost: once per client. */
#define REDLOCK_CLIENT_NAME_MAX 16
/* Bytes of a master's name in events, status and logs. */
#define REDLOCK_MASTER_NAME_MAX 32
/* Bytes of a host name, numeric address or socket path (sun_path holds 107 and a NUL). */
#define REDLOCK_HOST_MAX 107
/* Bytes of a user name and of a password. Cost: what is used, once per master. */
#define REDLOCK_USER_MAX 64
#define REDLOCK_PASSWORD_MAX 128
/* Random bytes in a value, written as twice as many hex digits (Redlock page, "Correct implementation with a
 * single instance": 20 bytes from /dev/urandom). */
#define REDLOCK_VALUE_RANDOM 20
/* Bytes of a value on the wire: hex digits, ':' and the client's name. */
#define REDLOCK_VALUE_MAX (2 * REDLOCK_VALUE_RANDOM + 1 + REDLOCK_CLIENT_NAME_MAX)
/* Resources of one acquire. Their names together take at most limits.resource_bytes. */
#define REDLOCK_RESOURCES_PER_LOCK_MAX 4
/* Bytes of a configuration file or text. */
#define REDLOCK_CONFIG_BYTES_MAX 65536

/* ---- times, in milliseconds: default and range ---------------------------------------------------------------- */

/* defaults.ttl_ms: lifetime of a key on the masters. At most timing.max_ttl_ms. */
#define REDLOCK_TTL_MS_DEFAULT 10000
#define REDLOCK_TTL_MS_MIN 20
/* timing.max_ttl_ms: the longest ttl that any client of these keys may use. */
#define REDLOCK_MAX_TTL_MS_DEFAULT 30000
#define REDLOCK_MAX_TTL_MS_MAX 86400000
/* timing.node_timeout_ms: how long one master may take to vote (Redlock page, step 2: 5 to 50 ms for 10 s). */
#define REDLOCK_NODE_TIMEOUT_MS_DEFAULT 50
#define REDLOCK_NODE_TIMEOUT_MS_MIN 5
#define REDLOCK_NODE_TIMEOUT_MS_MAX 10000
/* timing.connect_timeout_ms: TCP connect, the look-up of a host name included, and greeting, each. */
#define REDLOCK_CONNECT_TIMEOUT_MS_DEFAULT 500
#define REDLOCK_CONNECT_TIMEOUT_MS_MIN 10
#define REDLOCK_CONNECT_TIMEOUT_MS_MAX 60000
/* timing.reconnect_min_ms, timing.reconnect_max_ms: first and longest pause between connection attempts; each
 * pause is a random part of it, between half and all. */
#define REDLOCK_RECONNECT_MIN_MS_DEFAULT 100
#define REDLOCK_RECONNECT_MAX_MS_DEFAULT 5000
#define REDLOCK_RECONNECT_MS_MIN 10
#define REDLOCK_RECONNECT_MS_MAX 600000
/* timing.suspect_close_ms: a master that has not answered for this long is disconnected. */
#define REDLOCK_SUSPECT_CLOSE_MS_DEFAULT 2000
#define REDLOCK_SUSPECT_CLOSE_MS_MIN 50
#define REDLOCK_SUSPECT_CLOSE_MS_MAX 600000
/* timing.ping_interval_ms: an idle connection is tried this often; keep it below the servers' `timeout`. */
#define REDLOCK_PING_INTERVAL_MS_DEFAULT 5000
#define REDLOCK_PING_INTERVAL_MS_MIN 100
#define REDLOCK_PING_INTERVAL_MS_MAX 3600000
/* defaults.retry_delay_ms: a waiter's pause after a lost round is uniform in 0 .. this (full jitter). */
#define REDLOCK_RETRY_DELAY_MS_DEFAULT 100
#define REDLOCK_RETRY_DELAY_MS_MAX 5000
/* defaults.wakeups: 1: a waiter watches the masters (CLIENT TRACKING, where the server has it) and tries when the key may
 * be free; 0: it tries again after each pause, as it does where no master tells of changes. */
#define REDLOCK_WAKEUPS_DEFAULT 1
/* defaults.local_turns: how often in a row a lock goes from one acquire of a client to the next that waits in the same
 * client before other clients get the first try. */
#define REDLOCK_LOCAL_TURNS_DEFAULT 1
#define REDLOCK_LOCAL_TURNS_MAX 1000
/* A waiter's sleep is never above min(timing.max_ttl_ms, this). */
#define REDLOCK_WAIT_SLEEP_MS_MAX 5000
/* timing.drift_ppm, timing.drift_fixed_ms: drift = ttl * ppm / 1e6 + fixed. The default, ttl/100 + 2 ms, covers the
 * sum of holder's and master's rate errors (each at most 0.5 %) and the servers' millisecond; less is an error. */
#define REDLOCK_DRIFT_PPM_DEFAULT 10000
#define REDLOCK_DRIFT_PPM_MAX 200000
#define REDLOCK_DRIFT_FIXED_MS_DEFAULT 2
#define REDLOCK_DRIFT_FIXED_MS_MAX 1000

/* ---- counts and bytes: default and range ---------------------------------------------------------------------- */

/* limits.locks: acquires pending and locks held at one time. Cost: about 200 each. */
#define REDLOCK_LOCKS_DEFAULT 32
#define REDLOCK_LOCKS_MAX 4096
/* limits.in_flight: unanswered requests per master. At least 2 * limits.locks: a held lock keeps a place for its delete
 * and needs one for its extend. Cost: 16 per request and master. */
#define REDLOCK_IN_FLIGHT_DEFAULT 64
#define REDLOCK_IN_FLIGHT_MIN 8
#define REDLOCK_IN_FLIGHT_MAX 16384
/* limits.debts: values that some master may still hold (claims): one for each lock, and one for each ended lock
 * whose delete is not yet answered everywhere. At least limits.locks + 1. Cost: about 140 each. */
#define REDLOCK_DEBTS_DEFAULT 64
#define REDLOCK_DEBTS_MAX 16384
/* limits.resource_bytes: the names of one acquire, all together. The default holds one name of any size, or several short
 * ones. Cost: its bytes, for each of limits.locks and limits.debts, and once per lock and master. */
#define REDLOCK_RESOURCE_BYTES_DEFAULT REDLOCK_RESOURCE_MAX
#define REDLOCK_RESOURCE_BYTES_MAX (REDLOCK_RESOURCES_PER_LOCK_MAX * REDLOCK_RESOURCE_MAX)
/* limits.tx_bytes: transmit buffer per master; 0 = so that every lock can send its SET in one turn. */
#define REDLOCK_TX_BYTES_MIN 1024
#define REDLOCK_TX_BYTES_MAX 4194304
/* limits.rx_bytes: receive buffer per master; longer replies are read in pieces, but the longest error of a
 * server (MISCONF, about 300 bytes) must fit. */
#define REDLOCK_RX_BYTES_DEFAULT 1024
#define REDLOCK_RX_BYTES_MIN 512
#define REDLOCK_RX_BYTES_MAX 65536
/* limits.stack_bytes: stack of the thread that redlock_create() starts. libuv and the library use 16 to 24 KB of it (ARM: 24);
 * the rest is for your callbacks, which run on it, and for what the C library takes from it (glibc: the program's
 * thread-local variables). Where the C library asks for more it gets more: 128 KB with glibc on 64-bit ARM. Cost: address
 * space; memory as it is used, outside of redlock_memory_size(). */
#define REDLOCK_STACK_BYTES_DEFAULT 65536
#define REDLOCK_STACK_BYTES_MIN 32768
#define REDLOCK_STACK_BYTES_MAX 8388608

#endif /* REDLOCK_LIMITS_H */
