/* SPDX-License-Identifier: MIT
 *
 * redlock/limits.h - every limit of the library, declared once.
 *
 * Caps are fixed when the library is compiled: they size arrays and wire buffers. The other limits are defaults with a
 * range: the configuration may change a default, and the client's memory (redlock_memory_size) follows.
 * A cost is in bytes of client memory on a 32-bit gateway, unless the text says otherwise.
 */
#ifndef REDLOCK_LIMITS_H
#define REDLOCK_LIMITS_H

/* ---- caps ---------------------------------------------------------------------------------------------------- */

/* Masters in one client. Votes are bits of a 16-bit word. */
#define REDLOCK_MASTERS_MAX 15
/* Bytes of a resource name, at least 1. Any byte may stand in a name. */
#define REDLOCK_RESOURCE_MAX 64
/* Bytes of key_prefix. The key on the masters is key_prefix + resource. Cost: once per client. */
#define REDLOCK_KEY_PREFIX_MAX 32
/* Bytes of client_name. The name stands behind the random part of every value. Cost: once per client. */
#define REDLOCK_CLIENT_NAME_MAX 16
/* Bytes of a master's name in events, status and logs. */
#define REDLOCK_MASTER_NAME_MAX 32
/* Bytes of a host name, numeric address or socket path (sun_path holds 107 and a NUL). */
#define REDLOCK_HOST_MAX 107
/* Bytes of a user name and of a password. Cost: the bytes that are used, once per master. */
#define REDLOCK_USER_MAX 64
#define REDLOCK_PASSWORD_MAX 128
/* tls.ca_file, tls.cert_file and tls.key_file: bytes of a path. tls.pin: keys that a master may have. */
#define REDLOCK_TLS_PATH_MAX 128
#define REDLOCK_TLS_PINS_MAX 4
/* Random bytes in a value. The value has twice as many hex digits (Redlock page, "Correct implementation with a
 * single instance": 20 bytes from /dev/urandom). */
#define REDLOCK_VALUE_RANDOM 20
/* Bytes of a holder's name as it is told: a client name of which each byte may be escaped as \xNN. */
#define REDLOCK_HOLDER_MAX (4 * REDLOCK_CLIENT_NAME_MAX)
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
/* timing.connect_timeout_ms: how long the TCP connect may take, the look-up of a host name included, and how long the
 * greeting may take after the connect. */
#define REDLOCK_CONNECT_TIMEOUT_MS_DEFAULT 500
#define REDLOCK_CONNECT_TIMEOUT_MS_MIN 10
#define REDLOCK_CONNECT_TIMEOUT_MS_MAX 60000
/* timing.reconnect_min_ms, timing.reconnect_max_ms: the first and the longest pause between connection attempts. The
 * real pause is random, between half of that and all of it. */
#define REDLOCK_RECONNECT_MIN_MS_DEFAULT 100
#define REDLOCK_RECONNECT_MAX_MS_DEFAULT 5000
#define REDLOCK_RECONNECT_MS_MIN 10
#define REDLOCK_RECONNECT_MS_MAX 600000
/* timing.suspect_close_ms: a master that has not answered for this long is disconnected. */
#define REDLOCK_SUSPECT_CLOSE_MS_DEFAULT 2000
#define REDLOCK_SUSPECT_CLOSE_MS_MIN 50
#define REDLOCK_SUSPECT_CLOSE_MS_MAX 600000
/* timing.ping_interval_ms: an idle connection is tried this often. Keep the interval below the servers' `timeout`, or
 * the servers close idle connections. */
#define REDLOCK_PING_INTERVAL_MS_DEFAULT 5000
#define REDLOCK_PING_INTERVAL_MS_MIN 100
#define REDLOCK_PING_INTERVAL_MS_MAX 3600000
/* defaults.wait_ms: with REDLOCK_WAIT_DEFAULT an acquire waits so long for other holders, and for masters that cannot
 * be reached. */
#define REDLOCK_WAIT_MS_DEFAULT 10000
#define REDLOCK_WAIT_MS_MAX 86400000
/* timing.guard_wait_ms: with REDLOCK_WAIT_DEFAULT an acquire waits so long for masters that the guard watches. When not
 * given: two guard times (timing.max_ttl_ms and the drift). */
#define REDLOCK_GUARD_WAIT_MS_MAX 172800000
/* defaults.retry_delay_ms: a waiter's pause after a lost round is uniform in 0 .. this (full jitter). */
#define REDLOCK_RETRY_DELAY_MS_DEFAULT 100
#define REDLOCK_RETRY_DELAY_MS_MAX 5000
/* defaults.wakeups. 1: a waiter watches the masters (CLIENT TRACKING, where the server has it), and tries when the key
 * may be free. 0: a waiter tries again after each pause, as it also does where no master tells of changes. */
#define REDLOCK_WAKEUPS_DEFAULT 1
/* defaults.local_turns: how often in a row a lock goes from one acquire of a client to the next acquire that waits in
 * the same client, before other clients get the first try. */
#define REDLOCK_LOCAL_TURNS_DEFAULT 1
#define REDLOCK_LOCAL_TURNS_MAX 1000
/* A waiter's sleep is never above min(timing.max_ttl_ms, this). */
#define REDLOCK_WAIT_SLEEP_MS_MAX 5000
/* timing.drift_ppm, timing.drift_fixed_ms: drift = ttl * ppm / 1e6 + fixed. The default, ttl/100 + 2 ms, covers the
 * rate errors of holder and master together (each at most 0.5 %), and the servers' resolution of one millisecond. A
 * smaller drift is refused: two clients could hold one lock. */
#define REDLOCK_DRIFT_PPM_DEFAULT 10000
#define REDLOCK_DRIFT_PPM_MAX 200000
#define REDLOCK_DRIFT_FIXED_MS_DEFAULT 2
#define REDLOCK_DRIFT_FIXED_MS_MAX 1000

/* ---- counts and bytes: default and range ---------------------------------------------------------------------- */

/* limits.locks: acquires pending and locks held at one time. Cost: about 460 each, and 8 for each master; and what
 * limits.resource_bytes and limits.tx_bytes say. redlock_memory_size() tells the whole sum (redlock.h, section 5). */
#define REDLOCK_LOCKS_DEFAULT 32
#define REDLOCK_LOCKS_MAX 4096
/* limits.in_flight: unanswered requests per master. At least 2 * limits.locks: a held lock keeps a place for its delete
 * and needs a second place for its extend. Cost: 16 per request and master. */
#define REDLOCK_IN_FLIGHT_DEFAULT 64
#define REDLOCK_IN_FLIGHT_MIN 8
#define REDLOCK_IN_FLIGHT_MAX 16384
/* limits.debts: the capacity of the table of claims. A claim is a value that some master may still hold. Each lock has
 * a claim, held locks included, and so has each ended value whose delete is not yet answered everywhere. Do not confuse
 * the limit with the field debts of redlock_status_t, which counts the ended values alone. At least limits.locks + 1.
 * Cost: about 80 each. */
#define REDLOCK_DEBTS_DEFAULT 64
#define REDLOCK_DEBTS_MAX 16384
/* limits.resource_bytes: the names of one acquire, all together. The default holds one name of any size, or several
 * short names. Cost: these bytes, for each of limits.locks and limits.debts, and for each SET of limits.tx_bytes. */
#define REDLOCK_RESOURCE_BYTES_DEFAULT REDLOCK_RESOURCE_MAX
#define REDLOCK_RESOURCE_BYTES_MAX (REDLOCK_RESOURCES_PER_LOCK_MAX * REDLOCK_RESOURCE_MAX)
/* limits.tx_bytes: the transmit buffer that all masters share. A command for several masters stands in it once, until
 * the end of a turn of the loop. 0: as large as needed for all SETs that may be unanswered: one for each lock, but no
 * more than limits.debts - limits.locks, divided among the masters that may fail. Such a SET takes 125 + the length of
 * key_prefix + limits.resource_bytes. Smaller values are raised to what any one round needs. Where the buffer is full,
 * rounds and deletes wait for the next turn. Beside it each master has about 500 bytes for what it alone is told. When
 * a socket takes no more bytes, the commands that it was not sent are taken back: votes of that master fail with
 * NO_ROOM, and deletes wait. */
#define REDLOCK_TX_BYTES_MIN 1024
#define REDLOCK_TX_BYTES_MAX 4194304
/* limits.rx_bytes: receive buffer per master. Longer replies are read in pieces, but the longest error of a server
 * (MISCONF, about 300 bytes) must fit. */
#define REDLOCK_RX_BYTES_DEFAULT 512
#define REDLOCK_RX_BYTES_MIN 512
#define REDLOCK_RX_BYTES_MAX 65536
/* limits.stack_bytes: stack of the thread that redlock_create() starts. libuv and the library use 16 to 24 KB of the
 * stack (ARM: 24). The rest is for your callbacks, which run on this thread, and for what the C library takes from the
 * stack (glibc: the program's thread-local variables). Where the C library asks for a larger stack, the thread gets a
 * larger one: 128 KB with glibc on 64-bit ARM. Cost: address space, and memory as the stack is used, outside of
 * redlock_memory_size(). */
#define REDLOCK_STACK_BYTES_DEFAULT 65536
#define REDLOCK_STACK_BYTES_MIN 32768
#define REDLOCK_STACK_BYTES_MAX 8388608

#endif /* REDLOCK_LIMITS_H */
