/* SPDX-License-Identifier: MIT
 *
 * redlock/redlock.h - the whole C API: distributed locks through N independent Redis or Valkey masters, for gateways
 * that share one piece of hardware. C99 and C++11; includes neither uv.h nor cJSON.h.
 *
 * What a lock promises. While clocks run at nearly the same rate (each within 0.5 %) and no master's wall clock is
 * stepped forward, two clients never hold one resource at the same time (redlock_sim, test/spec/safety.cpp,
 * test/model/lock.pml).
 *  - The validity counts from before the first byte was sent (test/spec/safety.cpp), and neither a suspend nor a pause
 *    makes it longer (test/unit/test_clock.cpp, test/scenario/clock.txt). A holder that is paused past its end must not
 *    touch the device any more: call redlock_check() before each device transaction, with the longest time that the
 *    transaction takes. It is the authority; events are only hints and may come late.
 *  - A master that may have forgotten keys - it restarted, was flushed, changed its role, or is another server now -
 *    takes part in no quorum until every lock granted before has ended: that is the guard, on unless the configuration
 *    says otherwise (test/integration/test_guard.cpp, test_roles.cpp, test/model/guard.pml). One server under two names
 *    has one vote (test_guard.cpp). A lock's master has no replica: if it has, its replication id may change without a
 *    loss, and the master is watched then as if it had lost something (REPLID).
 *  - A master whose wall clock is stepped or runs off rate has no vote for a guard time from the next look at it on,
 *    and a held lock that needed it is LOST (test/integration/test_server_clock.cpp).
 *  - No key is left behind, also on masters that were silent (test/scenario/debts.txt,
 *    test/integration/test_lock_faults.cpp). Where the client may not end its own old connections (CLIENT KILL), knows no
 *    run id ("guard": "off"), or meets another process at the address while the old one lives on, a key that nobody
 *    owns may stay for its ttl: its SET came later than a ttl behind the next connection (test_strays.cpp).
 * What it cannot promise.
 *  - A pause between redlock_check() and the device: use a fencing token, or what examples/deadline_guard.c does.
 *  - A wall clock stepped forward between two looks at it, which are max(timing.max_ttl_ms / 6, 500 ms) apart (Redis
 *    expires keys by the wall clock).
 *  - Keys that are deleted by hand, SWAPDB, and keys evicted before a changed policy was noticed.
 *  - Data replaced inside a running server (DEBUG RELOAD NOSAVE, DEBUG LOADAOF). A server or a gateway restored from a
 *    snapshot of its machine; a gateway in a guest that its hypervisor stops; guests cloned or restored with the same
 *    boot id.
 *  - A role cycle of a master without replicas between two looks at it: a replica attaches, is promoted, passes its
 *    data on by a partial resynchronization, and the master is promoted again.
 *  - A proxy that changes servers behind a connection.
 *  - With "guard": "weak", where a server refuses INFO, a restart from an old snapshot, a role cycle whose new data are
 *    a copy, and one server listed twice; with "off" all that the guard is for.
 * What a fencing token promises, and what not, stands in section 9. README.md has the same claims, with more of their
 * tests, and says what the guard costs.
 *
 * Conventions
 *  1. Functions return 0 or a positive result when all is well, else one of the frozen negative REDLOCK_E_* numbers.
 *  2. Times are milliseconds, in fixed-width integers, unless the name ends in _ns. Validity is rounded down, waits up.
 *  3. A redlock_lock_t is a value, not a pointer: copy it, keep it, forget it. It names one acquire of its client for
 *     ever; when that acquire has ended the handle is stale, which is an error and never somebody else's lock. Another
 *     client, also one created later, has handles of its own with the same numbers: never hand it this one.
 *  4. Structs that you fill or receive start with their size. Use the initializers; new fields are only ever appended,
 *     and 0 means default. Inputs (configuration, names, options) are copied before the call returns.
 *  5. Threads: every function says [own], [any], [block] or [setup].
 *       [own]   in loop and polled mode only on the client's thread: the one that runs the loop or calls
 *               redlock_process(), and before that the one that created the client; elsewhere REDLOCK_E_THREAD. In
 *               thread mode any thread, which may then wait for a turn of the client's thread, never for the network
 *               or for a callback. In every mode also inside callbacks.
 *       [any]   any thread in every mode, also inside callbacks, without a lock or a wait.
 *       [block] thread mode only, any thread but the client's own; waits for an event.
 *       [setup] works on its arguments only; one thread at a time per object.
 *     Not after CLOSED, and not once redlock_destroy() has returned: the client is gone then.
 *     In a forked child every call on a client returns REDLOCK_E_FORKED and sends nothing; do not run the client's
 *     loop there either: what comes for the parent would keep it spinning. A child of _Fork() or of a bare clone() is
 *     noticed too, on Linux 4.14 and later. One that shares the parent's memory (vfork(), CLONE_VM) never is: let it
 *     call nothing here.
 *  6. Event callbacks run in uv_run(), in redlock_process() or on the client's own thread, according to the mode; after
 *     the library's state is final, without a lock held, and never from inside the call that started something. The
 *     clock is read before each: a lock that expired while another callback ran is never told ACQUIRED or RENEWED.
 *     (Loop mode: they run in the prepare phase; with UV_RUN_ONCE the loop still waits for its next event after them;
 *     uv_stop() in the callback prevents that.)
 *  7. After create nothing is allocated, except by the system's resolver for masters given by host name.
 *  8. The library never prints, aborts, raises SIGPIPE or installs a signal handler, and blocks only in calls marked
 *     [block]. Secrets appear in no event, status, error or log.
 *
 * Ways to run a client
 *   loop mode    redlock_create_on_loop   on your libuv loop; no thread, no lock
 *   polled mode  redlock_create_polled    one descriptor for poll, epoll, uloop, sd-event, GLib; no thread, no lock
 *   thread mode  redlock_create           a thread of its own; blocking calls, and asynchronous ones from any thread
 *
 * Which call may be made where: "yes", or the error that it returns (REDLOCK_E_...).
 *
 *                            loop mode          polled mode        thread   inside a callback, by mode
 *  function                  own      other     own      other     any      loop      polled    thread
 *  ------------------------  -------- --------  -------- --------  -------- --------  --------  --------
 *  redlock_acquire           DEADLOCK THREAD    DEADLOCK THREAD    yes      DEADLOCK  DEADLOCK  DEADLOCK
 *  redlock_extend            DEADLOCK THREAD    DEADLOCK THREAD    yes      DEADLOCK  DEADLOCK  DEADLOCK
 *  redlock_release           DEADLOCK THREAD    DEADLOCK THREAD    yes      DEADLOCK  DEADLOCK  DEADLOCK
 *  redlock_destroy           DEADLOCK THREAD    DEADLOCK THREAD    yes      DEADLOCK  DEADLOCK  DEADLOCK
 *  redlock_acquire_async     yes      THREAD    yes      THREAD    yes      yes       yes       yes
 *  redlock_cancel            yes      THREAD    yes      THREAD    yes      yes       yes       yes
 *  redlock_extend_async      yes      THREAD    yes      THREAD    yes      yes       yes       yes
 *  redlock_release_async     yes      THREAD    yes      THREAD    yes      yes       yes       yes
 *  redlock_fence_init        yes      THREAD    yes      THREAD    yes      yes       yes       yes
 *  redlock_suspended         yes      THREAD    yes      THREAD    yes      yes       yes       yes
 *  redlock_commission        yes      THREAD    yes      THREAD    yes      yes       yes       yes
 *  redlock_commission_master yes      THREAD    yes      THREAD    yes      yes       yes       yes
 *  redlock_status            yes      THREAD    yes      THREAD    yes      yes       yes       yes
 *  redlock_master_status     yes      THREAD    yes      THREAD    yes      yes       yes       yes
 *  redlock_status_json       yes      THREAD    yes      THREAD    yes      yes       yes       yes
 *  redlock_close_async       yes      THREAD    yes      THREAD    NOTSUP   yes       yes       NOTSUP
 *  redlock_process           NOTSUP   NOTSUP    yes      THREAD    NOTSUP   NOTSUP    DEADLOCK  NOTSUP
 *  redlock_timeout_ms        NOTSUP   NOTSUP    yes      THREAD    NOTSUP   NOTSUP    yes       NOTSUP
 *  redlock_fd                NOTSUP   NOTSUP    yes      yes       NOTSUP   NOTSUP    yes       NOTSUP
 *  redlock_check             yes      yes       yes      yes       yes      yes       yes       yes
 *  redlock_validity_ms       yes      yes       yes      yes       yes      yes       yes       yes
 *  redlock_deadline_ns       yes      yes       yes      yes       yes      yes       yes       yes
 *  redlock_fencing_token     yes      yes       yes      yes       yes      yes       yes       yes
 *
 *  redlock_create*: any thread; in loop mode the one that owns the loop; inside a callback of another client too.
 *  redlock_config_*, redlock_memory_size: one thread at a time per configuration.
 *  redlock_strerror, redlock_err_name, redlock_version*, redlock_fence_check: everywhere.
 */
#ifndef REDLOCK_REDLOCK_H
#define REDLOCK_REDLOCK_H

#include <redlock/limits.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define REDLOCK_API __attribute__((visibility("default")))
#define REDLOCK_NODISCARD __attribute__((warn_unused_result))
#else
#define REDLOCK_API
#define REDLOCK_NODISCARD
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define REDLOCK_VERSION_MAJOR 0
#define REDLOCK_VERSION_MINOR 1
#define REDLOCK_VERSION_PATCH 0
#define REDLOCK_VERSION_NUM ((REDLOCK_VERSION_MAJOR << 16) | (REDLOCK_VERSION_MINOR << 8) | REDLOCK_VERSION_PATCH)

/* ---- 1. Types ------------------------------------------------------------------------------------------------- */

typedef struct redlock_s redlock_t;               /* client: N masters, many locks         */
typedef struct redlock_config_s redlock_config_t; /* what a client is created from */
struct uv_loop_s;                                 /* uv_loop_t; its header is not needed here */

/* One acquire and, once ACQUIRED, one held lock. 0 is never valid. */
typedef struct redlock_lock_s {
  uint64_t id;
} redlock_lock_t;

/* The name of what is locked: 1 .. REDLOCK_RESOURCE_MAX bytes, any bytes. Its key on the masters is key_prefix and the
 * name. Keys that begin with redlock:{key_prefix}: are the library's own, and such names are refused with RESERVED. */
typedef struct redlock_resource_s {
  const void *data;
  uint32_t size; /* bytes */
} redlock_resource_t;

/* A resource from a NUL-terminated name, which must outlive only the call it is passed to. */
static inline redlock_resource_t redlock_resource(const char *name) {
  redlock_resource_t resource;
  resource.data = name;
  resource.size = 0;
  while (name[resource.size] != '\0' && resource.size <= REDLOCK_RESOURCE_MAX) ++resource.size;
  return resource;
}

/* ---- 2. Errors: name, number, text. Numbers are frozen. ------------------------------------------------------- */

#define REDLOCK_ERROR_MAP(X)                                                                        \
  /* how an acquire, an extend, a lock or a change of masters ended */                              \
  X(LOCKED, -1, "held by somebody else on too many masters")                                        \
  X(NO_QUORUM, -2, "too few masters gave a usable answer")                                          \
  X(TOO_SLOW, -3, "won, but too little of the validity was left")                                   \
  X(TIMEOUT, -4, "the wait budget was over before a round finished")                                \
  X(CANCELED, -5, "canceled, released or closed before it was acquired")                            \
  X(LOST, -6, "the validity is over or can no longer be relied on")                                 \
  X(GUARD, -7, "too few masters are admitted yet")                                                  \
  X(FENCE_UNKNOWN, -8, "too few masters know this resource's token, and fence is strict")           \
  X(FENCE_RANGE, -9, "no larger fencing token is left")                                             \
  X(FENCED, -10, "a larger fencing token was seen: somebody else has held the lock since")          \
  X(CHANGING, -11, "another change of the masters is under way, or was given up")                   \
  X(RECORD_LOST, -12, "too few masters have kept what the change wrote")                            \
  /* what the caller did */                                                                         \
  X(INVAL, -20, "an argument is out of range")                                                      \
  X(CONFIG, -21, "the configuration is not valid; redlock_config_error() says where")               \
  X(STALE, -22, "this handle's acquire has ended, or it was never issued")                          \
  X(TABLE_FULL, -23, "limits.locks acquires and locks are open already")                            \
  X(DEADLOCK, -24, "a blocking call from a callback or from the loop's thread")                     \
  X(THREAD, -25, "called from a thread that does not own the client")                               \
  X(FORKED, -26, "the client belongs to the parent process")                                        \
  X(NOTSUP, -27, "not supported by this version")                                                   \
  X(NOMEM, -28, "no memory")                                                                        \
  X(BUSY, -29, "an extend round of this lock is open already")                                      \
  X(HOLD_LIMIT, -30, "max_hold_ms allows no later validity")                                        \
  X(TOOSMALL, -31, "the buffer is too small; the needed size was stored")                           \
  X(CLOSED, -32, "the client is closing")                                                           \
  X(CLOCK, -33, "the system's clocks cannot be read closely enough together")                       \
  X(SYSTEM, -34, "the system refused a descriptor, a timer or random bytes")                        \
  X(NOT_HELD, -35, "the acquire has not been decided yet")                                          \
  X(RESERVED, -36, "makes a key of the library's own: redlock:{key_prefix}:...")                     \
  /* one master: why it gave no vote, or is not up */                                               \
  X(RESOLVE, -50, "the host name cannot be resolved")                                               \
  X(CONNECT, -51, "the connection was refused or timed out")                                        \
  X(DISCONNECTED, -52, "the connection broke")                                                      \
  X(NODE_TIMEOUT, -53, "no answer within node_timeout_ms")                                          \
  X(SUSPECT, -54, "has not answered older requests yet")                                            \
  X(NO_ROOM, -55, "too much is unanswered already")                                                 \
  X(AUTH, -56, "user name or password was refused, or is missing")                                  \
  X(NOPERM, -57, "the user lacks a permission")                                                     \
  X(PROTOCOL, -58, "the bytes received are not RESP, or answer nothing that was asked")             \
  X(ROLE, -59, "is a replica, not a master")                                                        \
  X(MODE, -60, "is a cluster node or a sentinel, not a standalone master")                          \
  X(DUPLICATE, -61, "is the same server as another master in the list")                             \
  X(READONLY, -62, "turned into a replica")                                                         \
  X(LOADING, -63, "is loading its data")                                                            \
  X(OOM, -64, "is at maxmemory")                                                                    \
  X(SCRIPT_BUSY, -65, "is blocked by somebody's long script")                                       \
  X(MISCONF, -66, "refuses writes: it cannot persist them")                                         \
  X(NOREPLICAS, -67, "refuses writes: too few replicas are connected")                              \
  X(CLUSTER, -68, "answers as a cluster node")                                                      \
  X(WRONGTYPE, -69, "the key exists and is not a string")                                           \
  X(NOSCRIPT, -70, "does not know the script")                                                      \
  X(MAXCLIENTS, -71, "has too many clients")                                                        \
  X(DENIED, -72, "runs in protected mode")                                                          \
  X(SERVER, -73, "answered an error of another kind")                                               \
  X(TLS, -74, "TLS is not supported by this version")                                               \
  X(GONE, -75, "the key is gone or foreign")                                                        \
  /* one master: why the guard does not let it vote */                                              \
  X(UNREAD, -80, "its guard record has not been read, or may have changed since")                   \
  X(UNWATCHED, -81, "may have forgotten keys: not yet watched for the guard time")                  \
  X(FINGERPRINT, -82, "is used by clients of another configuration: masters, max_ttl_ms")           \
  X(IDENTITY, -83, "does not tell its run id and replication id")                                   \
  X(MAXMEMORY, -84, "may evict keys: maxmemory is set and its policy is not noeviction")            \
  X(WALL_CLOCK, -85, "its clock was stepped, runs off rate, or keys were evicted")                    \
  X(SEAL, -86, "is not in the state in which the guard admitted it")                                \
  X(REPLID, -90, "its replication id has changed, as for a backup or a first replica: watched again")   \
  X(NO_GREETING, -91, "closed the connection before its first answer: does this port speak TLS only?")

#define REDLOCK_ERROR_ENUM(name, number, text) REDLOCK_E_##name = number,
enum redlock_err { REDLOCK_OK = 0, REDLOCK_ERROR_MAP(REDLOCK_ERROR_ENUM) REDLOCK_E_LAST_ = -99 };

/* [any] An English sentence for a result code; a static string, also for numbers that are none. */
REDLOCK_API const char *redlock_strerror(int err);
/* [any] "REDLOCK_E_LOCKED"; stable, for logs and JSON; "REDLOCK_OK" for 0; "REDLOCK_E_UNKNOWN" for any other. */
REDLOCK_API const char *redlock_err_name(int err);
/* [any] REDLOCK_VERSION_NUM of the library that runs, and the same as "0.1.0". */
REDLOCK_API uint32_t redlock_version(void);
REDLOCK_API const char *redlock_version_string(void);

/* ---- 3. Events ------------------------------------------------------------------------------------------------ */

enum redlock_event_type {
  /* Of an acquire, exactly one of the two: */
  REDLOCK_EV_ACQUIRED = 1, /* validity_ms is left */
  REDLOCK_EV_FAILED = 2,   /* terminal; err: LOCKED, NO_QUORUM, GUARD, TOO_SLOW, TIMEOUT, CANCELED, LOST (expired, or the
                              clock jumped, before this event), FENCE_UNKNOWN, FENCE_RANGE (at once,
                              whatever wait_ms says) */
  /* Of a held lock: */
  REDLOCK_EV_RENEWED = 3,  /* an extend round was won; validity_ms is left */
  REDLOCK_EV_AT_RISK = 4,  /* an extend round was lost (err says why); the lock is as valid as it was: validity_ms */
  REDLOCK_EV_LOST = 5,     /* terminal; the validity is over, the clock jumped, or so many masters have lost the key
                            * that no quorum is left: told as soon as they say so, at the latest after a third of the ttl.
                            * check() has failed since; keys that are left are deleted when the validity would have ended */
  REDLOCK_EV_RELEASED = 6, /* terminal; the deletes are queued to every master that was sent anything */
  /* Of the client: */
  REDLOCK_EV_MASTER = 7,   /* master, state, err: a master changed its state */
  REDLOCK_EV_CLOSED = 8    /* the last event; failed counts the deletes that were not answered (unpaid debts) */
};

#define REDLOCK_GUARD_UNKNOWN (-1)

enum redlock_master_state {
  REDLOCK_MASTER_DOWN = 1,       /* not connected; err says why; a new attempt follows by itself */
  REDLOCK_MASTER_CONNECTING = 2, /* resolving or connecting */
  REDLOCK_MASTER_GREETING = 3,   /* connected; HELLO, AUTH, scripts are being exchanged */
  REDLOCK_MASTER_UP = 4,         /* votes */
  REDLOCK_MASTER_SUSPECT = 5,    /* has an unanswered request older than node_timeout_ms: gets no new ones */
  REDLOCK_MASTER_GUARDED = 6     /* connected, but the guard does not let it vote; err says why */
};

typedef struct redlock_event_s {
  uint32_t size;        /* sizeof in the library that calls */
  int32_t type;         /* enum redlock_event_type */
  int32_t err;          /* 0 or enum redlock_err */
  int32_t master_err;   /* the first cause given by a master in the round that decided; 0: none */
  redlock_lock_t lock;  /* id 0 for MASTER and CLOSED */
  int64_t validity_ms;  /* what is left of the validity when the callback begins; 0 when the lock is not held */
  uint32_t granted;     /* votes of the round that decided */
  uint32_t refused;
  uint32_t failed;
  uint32_t master;      /* MASTER: index in the order of the configuration */
  int32_t state;        /* MASTER: enum redlock_master_state */
  uint32_t rounds;      /* acquire rounds so far */
  int64_t guard_ms;     /* FAILED(GUARD): until the guard will have admitted a quorum; MASTER: until it admits this one;
                           REDLOCK_GUARD_UNKNOWN: no watch is under way that would end it; else 0 */
  uint64_t token;       /* ACQUIRED, RENEWED, AT_RISK: the fencing token; 0: acquired without REDLOCK_F_FENCING */
  uint32_t flags;       /* REDLOCK_EV_F_* */
  uint32_t reserved;    /* 0 */
} redlock_event_t;

#define REDLOCK_EV_F_FLOORED (1u << 0) /* the token leans on the masters' wall clocks (section 9) */

/* user: from the options of the acquire, or from redlock_config_set_event(). The event is valid during the call. FAILED,
 * LOST and RELEASED: the slot is free and the handle stale as soon as the callback returns. */
typedef void (*redlock_event_fn)(redlock_t *rl, const redlock_event_t *event, void *user);

/* level: as in syslog, 3 error .. 7 debug. msg: one line without a newline, valid during the call. May not call the
 * client. */
typedef void (*redlock_log_fn)(int level, const char *msg, void *user);

/* ---- 4. Configuration ----------------------------------------------------------------------------------------- */

/* [setup] A configuration with every default and no master. NOMEM. Free it with redlock_config_free(), which accepts
 * NULL; a client does not need it after create. */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_new(redlock_config_t **out);
REDLOCK_API void redlock_config_free(redlock_config_t *cfg);

/* [setup] Add what a JSON object says (UTF-8, at most REDLOCK_CONFIG_BYTES_MAX bytes; keys below). Unknown and
 * duplicate keys are errors. On any error the configuration is left as it was.
 * CONFIG: not JSON, or a field is not valid: redlock_config_error() names it, its value and its range.
 * NOTSUP: a field asks for TLS. SYSTEM: the file cannot be read. NOMEM. */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_load_json(redlock_config_t *cfg, const char *json, size_t size);
REDLOCK_API REDLOCK_NODISCARD int redlock_config_load_file(redlock_config_t *cfg, const char *path);

/* [setup] What was wrong in the last call on cfg that failed, e.g. "masters[2].port: 70000 is not in 1..65535"; ""
 * when nothing failed. Owned by cfg, valid until the next call on it. Holds no secret. */
REDLOCK_API const char *redlock_config_error(const redlock_config_t *cfg);

/* [setup] One more master: redis://[user[:password]@]host[:port] with a numeric IPv4 address, an IPv6 address
 * without a zone in brackets, or a host name, whose addresses are tried by turns; or unix:///path/of/socket. Port 6379
 * when none is given. %XX escapes are understood in user and password. A client has 1 .. REDLOCK_MASTERS_MAX;
 * recommended are 3, 5 or 7, or 1 where its failure may stop the work. An even number costs a master and buys nothing.
 * CONFIG: not such a URL, a part too long, more than REDLOCK_MASTERS_MAX, or the same address twice. NOTSUP: rediss://. */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_add_master(redlock_config_t *cfg, const char *url);

/* [setup] The same settings as in JSON, by dotted key, e.g. "timing.node_timeout_ms". CONFIG: no such key, or the value
 * is out of range.
 *
 *   client_name                 str  1..16 bytes of A-Z a-z 0-9 . _ -   default: host name, cut
 *   key_prefix                  str  0..32 bytes                        ""
 *   username, password          str  for masters that name none         ""
 *   guard                       str  off, weak or strict                strict
 *                                    strict: a master votes only when nothing it may have forgotten can still be held;
 *                                    weak: the same where INFO is not to be had, blind there to a restart from an old
 *                                    snapshot, a role cycle with a copy of the data, and a server listed twice
 *   fence                       str  floor or strict (section 9)        floor
 *   defaults.ttl_ms             u32  20 .. timing.max_ttl_ms            10000
 *   defaults.retry_delay_ms     u32  1 .. 5000                          100
 *   defaults.wakeups            u32  0 .. 1                             1
 *   defaults.local_turns        u32  0 .. 1000                          1
 *   timing.max_ttl_ms           u32  20 .. 86400000                     30000
 *   timing.node_timeout_ms      u32  5 .. 10000                         50     (below defaults.ttl_ms)
 *   timing.connect_timeout_ms   u32  10 .. 60000                        500
 *   timing.reconnect_min_ms     u32  10 .. 600000                       100
 *   timing.reconnect_max_ms     u32  timing.reconnect_min_ms .. 600000  5000
 *   timing.suspect_close_ms     u32  50 .. 600000                       2000   (at least node_timeout_ms)
 *   timing.ping_interval_ms     u32  100 .. 3600000                     5000
 *   timing.drift_ppm            u32  10000 .. 200000                    10000
 *   timing.drift_fixed_ms       u32  2 .. 1000                          2
 *   limits.locks                u32  1 .. 4096                          32
 *   limits.in_flight            u32  2 * limits.locks .. 16384 (min. 8) 64; 4 * limits.locks, if locks is above 32
 *   limits.debts                u32  limits.locks + 1 .. 16384          64; 2 * limits.locks, if locks is above 32
 *   limits.resource_bytes       u32  64 .. 256                          64     (the names of one acquire, together)
 *   limits.tx_bytes             u32  0 or 1024 .. 4194304               0
 *   limits.rx_bytes             u32  512 .. 65536                       1024
 *   limits.stack_bytes          u32  32768 .. 8388608                   65536  (redlock_create only)
 *
 * JSON nests at the dots: { "client_name": "gw-17", "timing": { "node_timeout_ms": 50 }, "masters": [ ... ] }, where a
 * master is a URL or { "url": ..., "name": ..., "username": ..., "password": ..., "password_file": ... }. */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_u32(redlock_config_t *cfg, const char *key, uint32_t value);
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_str(redlock_config_t *cfg, const char *key, const char *value);

/* [setup] The callback for events that have none of their own, and for MASTER and CLOSED. NULL: none. */
REDLOCK_API void redlock_config_set_event(redlock_config_t *cfg, redlock_event_fn fn, void *user);
/* [setup] Where log lines up to this level go; they come on the client's thread. NULL: nowhere. */
REDLOCK_API void redlock_config_set_log(redlock_config_t *cfg, redlock_log_fn fn, void *user, int level);

/* ---- 5. Life -------------------------------------------------------------------------------------------------- */

/* [setup] Bytes that a client of this configuration needs, all of them, in whichever mode; 0 when the configuration is
 * not valid (redlock_config_error() says why). Thread mode has a stack besides: limits.stack_bytes. */
REDLOCK_API size_t redlock_memory_size(const redlock_config_t *cfg);

/* The six ways to create a client. Each sets *out, to NULL on error. The client then connects, and connects again, by
 * itself. Those that end in _in take the client's memory from the caller: at least redlock_memory_size() bytes, aligned as
 * malloc aligns, left alone until the client is gone: the callback of CLOSED has returned (loop mode),
 * redlock_process() has returned CLOSED (polled mode), redlock_destroy() has returned 0 (thread mode). The others
 * allocate and free it.
 * CONFIG: not valid, e.g. no master. CLOCK. SYSTEM. NOMEM. INVAL: a pointer is NULL, or mem is not aligned. TOOSMALL: too
 * few bytes. */

/* Thread mode: the client runs on a thread of its own, named "redlock", with a stack of limits.stack_bytes and all
 * signals blocked. Callbacks run on it. SYSTEM also: the thread cannot be started, e.g. as the stack is too small for
 * the program's thread-local variables. End it with redlock_destroy(). */
REDLOCK_API REDLOCK_NODISCARD int redlock_create(redlock_t **out, const redlock_config_t *cfg);
REDLOCK_API REDLOCK_NODISCARD int redlock_create_in(void *mem, size_t size, redlock_t **out,
                                                    const redlock_config_t *cfg);

/* Polled mode: watch redlock_fd() for input in any loop, and call redlock_process() when it is readable. End it with
 * redlock_close_async(). */
REDLOCK_API REDLOCK_NODISCARD int redlock_create_polled(redlock_t **out, const redlock_config_t *cfg);
REDLOCK_API REDLOCK_NODISCARD int redlock_create_polled_in(void *mem, size_t size, redlock_t **out,
                                                           const redlock_config_t *cfg);

/* Loop mode: the client lives on the caller's libuv loop, for as long as that runs. End it with redlock_close_async(). */
REDLOCK_API REDLOCK_NODISCARD int redlock_create_on_loop(redlock_t **out, const redlock_config_t *cfg,
                                                         struct uv_loop_s *loop);
REDLOCK_API REDLOCK_NODISCARD int redlock_create_on_loop_in(void *mem, size_t size, redlock_t **out,
                                                            const redlock_config_t *cfg, struct uv_loop_s *loop);

/* [any] Polled mode: the descriptor to watch for input (POLLIN; level-triggered). It is readable whenever there is
 * something to do: bytes, a deadline, also after a suspend, or a call of this API. The same one for the client's life;
 * it belongs to the client: do not read or close it. NOTSUP: another mode. FORKED. */
REDLOCK_API int redlock_fd(const redlock_t *rl);
/* [own] Polled mode: what poll() takes. 0: there is something to do; -1: wait for the descriptor, however long. The
 * descriptor alone is enough; this spares a wait that would end at once. NOTSUP: another mode. THREAD. FORKED. (None
 * of the three is -1.) */
REDLOCK_API int redlock_timeout_ms(const redlock_t *rl);
/* [own] Polled mode: do what is to be done, without waiting: all input is handled and events are delivered here, and
 * nowhere else. The thread that calls it first is the client's thread from then on. 0. CLOSED: CLOSED was delivered and
 * the client is gone. DEADLOCK: inside a callback. NOTSUP: another mode. THREAD. FORKED. */
REDLOCK_API int redlock_process(redlock_t *rl);

/* [own] Loop and polled mode: the end. Every pending acquire gets FAILED(CANCELED), every held lock RELEASED, deletes
 * are given at most grace_ms (0 .. 60000) to be answered, then connections are closed and CLOSED is delivered, behind a
 * name look-up under way; after it the client is gone.
 * INVAL: grace_ms out of range. CLOSED: a second call. NOTSUP: thread mode. THREAD. FORKED. */
REDLOCK_API int redlock_close_async(redlock_t *rl, uint32_t grace_ms);

/* [block] Thread mode: the same end, waited for; threads that are blocked in a call return with CANCELED, or with LOST
 * where their acquire or extend had just been won. When it returns 0, CLOSED was delivered, the thread is joined and the
 * client is gone; at most grace_ms (0 .. 60000) and 2 s later, also when masters are silent. No other call may begin
 * once this one has.
 * TIMEOUT: the thread cannot end yet, because a callback does not return or the system's resolver is looking up a
 * master's host name. It ends by itself when they let it, and frees the memory; no other callback begins, not even
 * that of CLOSED. In memory of the caller's (_in) this call waits for them instead. CLOSED: another thread is destroying it. INVAL: grace_ms.
 * DEADLOCK: inside a callback; or, not in thread mode, on the client's thread. THREAD: not in thread mode. FORKED: the
 * child's copy of the client stays where it is. */
REDLOCK_API int redlock_destroy(redlock_t *rl, uint32_t grace_ms);

/* ---- 6. Locking ----------------------------------------------------------------------------------------------- */

#define REDLOCK_WAIT_NONE 0       /* one round */
#define REDLOCK_WAIT_FOREVER (-1) /* until it is acquired or canceled */

#define REDLOCK_F_NO_RENEW (1u << 0) /* do not extend automatically; the masters are still asked every third of the ttl whether
                                      * they have the key */
#define REDLOCK_F_FENCING (1u << 1)  /* with a fencing token (section 9) */

typedef struct redlock_acquire_opts_s {
  uint32_t size;            /* sizeof, set by REDLOCK_ACQUIRE_OPTS_INIT */
  uint32_t flags;           /* REDLOCK_F_* */
  uint32_t ttl_ms;          /* 20 .. timing.max_ttl_ms; 0: defaults.ttl_ms */
  int32_t wait_ms;          /* REDLOCK_WAIT_NONE, REDLOCK_WAIT_FOREVER or a budget */
  uint32_t min_validity_ms; /* less than this at the decision is TOO_SLOW; 0: any */
  uint32_t max_hold_ms;     /* no extend carries the validity past this, counted from the start of the won round;
                               0: no limit */
  uint32_t retry_delay_ms;  /* 1 .. 5000; 0: defaults.retry_delay_ms */
  uint32_t reserved;        /* 0 */
  redlock_event_fn callback; /* NULL: the one of the configuration */
  void *user;
} redlock_acquire_opts_t;

#if defined(__cplusplus)
#define REDLOCK_ACQUIRE_OPTS_INIT redlock_acquire_opts_t{sizeof(redlock_acquire_opts_t), 0, 0, 0, 0, 0, 0, 0, nullptr, nullptr}
#else
#define REDLOCK_ACQUIRE_OPTS_INIT {sizeof(redlock_acquire_opts_t), 0, 0, 0, 0, 0, 0, 0, NULL, NULL}
#endif

/* [own] Ask for a resource (Redlock page, "The Redlock algorithm"), or for up to REDLOCK_RESOURCES_PER_LOCK_MAX at once, in any
 * order: all of them or none, with one handle and one validity. A master grants all names in one step or none of them, so two
 * that ask for the same names in another order never wait for each other; one that waits holds none. The SETs leave together
 * in the next turn of the loop.
 * ACQUIRED or FAILED follows, never from inside this call. Until a first connection attempt to each master has ended or
 * a quorum is up, an acquire waits for that, at most timing.connect_timeout_ms twice or its wait budget.
 * opts may be NULL: all defaults. *lock is the handle, 0 on error.
 * INVAL: a resource, count, an option or the size is out of range; a resource stands there twice; the names together take
 * more than limits.resource_bytes. RESERVED: one of the names makes a key of the library's own. TABLE_FULL. CLOSED.
 * THREAD. FORKED. */
REDLOCK_API REDLOCK_NODISCARD int redlock_acquire_async(redlock_t *rl, const redlock_resource_t *resources,
                                                        uint32_t count, const redlock_acquire_opts_t *opts,
                                                        redlock_lock_t *lock);

/* [own] Give up an acquire that has not been reported ACQUIRED: it gets FAILED(CANCELED), its keys are deleted.
 * 0 also when its acquire has ended. BUSY: already acquired; release it. STALE: never issued. THREAD. FORKED. */
REDLOCK_API int redlock_cancel(redlock_t *rl, redlock_lock_t lock);

/* [own] Extend a held lock: ttl_ms from now (20 .. timing.max_ttl_ms; 0: the ttl of the acquire). RENEWED or AT_RISK
 * follows (or LOST, RELEASED, if the lock ends first). The validity never gets shorter, a key that is gone is never made
 * again. (Redlock page, "Making the algorithm more reliable: Extending the lock".)
 * INVAL: ttl_ms. STALE. NOT_HELD: not acquired yet. LOST: expired, or a redlock_check() on some thread has found it
 * over. BUSY: an extend round is open. HOLD_LIMIT. CLOSED. THREAD. FORKED. */
REDLOCK_API REDLOCK_NODISCARD int redlock_extend_async(redlock_t *rl, redlock_lock_t lock, uint32_t ttl_ms);

/* [own] Let go: from now on the lock is not held; the compare-and-delete goes to every master that was sent anything
 * (Redlock page, "Releasing the lock"), again on a later connection where one breaks; RELEASED follows in the next
 * turn of the loop. Before ACQUIRED it cancels. 0 also when the lock has ended. STALE: never issued. THREAD. FORKED. */
REDLOCK_API int redlock_release_async(redlock_t *rl, redlock_lock_t lock);

/* The same three, waited for: thread mode, from any thread but the client's own. Events are delivered as always; when a
 * call returns, the callback of the event that it waited for has returned. CANCELED: released, canceled or destroyed
 * meanwhile. DEADLOCK: inside a callback; or, not in thread mode, on the client's thread. THREAD: not in thread mode.
 * SYSTEM: no condition variable. */

/* [block] Until the resource is acquired, or wait_ms is over as redlock_acquire_async() counts it. 0: *lock is held; on
 * any error *lock is 0 and nothing is held. The errors of redlock_acquire_async() and of FAILED: LOCKED, NO_QUORUM, TOO_SLOW,
 * TIMEOUT, CANCELED, LOST. LOST also: it was ACQUIRED, and its callback, which comes first, took longer than the
 * validity or let it go; LOST or RELEASED is delivered besides. TIMEOUT also: a callback has kept the client's thread
 * for 2 s beyond the budget; the acquire was given up, and its FAILED is delivered when the callback returns. */
REDLOCK_API REDLOCK_NODISCARD int redlock_acquire(redlock_t *rl, const redlock_resource_t *resources, uint32_t count,
                                                  const redlock_acquire_opts_t *opts, redlock_lock_t *lock);
/* [block] 0: RENEWED. On an error the lock is as valid as it was: the errors of redlock_extend_async() and of AT_RISK.
 * LOST: the lock ended before this call could return. TIMEOUT: as above; the extend may still be won. */
REDLOCK_API REDLOCK_NODISCARD int redlock_extend(redlock_t *rl, redlock_lock_t lock, uint32_t ttl_ms);
/* [block] 0: the lock is not held and the deletes are on their way; does not wait for the masters' answers. STALE: never
 * issued. TIMEOUT: let go, but a callback keeps the client's thread from sending the deletes. */
REDLOCK_API int redlock_release(redlock_t *rl, redlock_lock_t lock);

/* ---- 7. Holding: any thread, no I/O, no lock, two to four clock reads ------------------------------------------- */

/* [any] May the device be touched for the next need_ms? 0: yes, at least need_ms of validity are left. LOST: no; once a
 * check has found the validity over, or the clock to have jumped, every later one on this handle fails. TOO_SLOW: held,
 * but less than need_ms is left. NOT_HELD: not acquired yet. STALE. FORKED. */
REDLOCK_API REDLOCK_NODISCARD int redlock_check(const redlock_t *rl, redlock_lock_t lock, uint32_t need_ms);
/* [any] Milliseconds of validity left, rounded down; 0: held no more; negative: NOT_HELD, STALE, FORKED. */
REDLOCK_API int64_t redlock_validity_ms(const redlock_t *rl, redlock_lock_t lock);
/* [any] The end of the validity as an absolute CLOCK_BOOTTIME time in ns, for timerfd or timer_create with
 * TIMER_ABSTIME (examples/deadline_guard.c); computed anew at each call so that slewing of the system clock cannot make it late: ask again after
 * RENEWED. Errors as redlock_validity_ms; 0: held no more. */
REDLOCK_API int64_t redlock_deadline_ns(const redlock_t *rl, redlock_lock_t lock);

/* [own] For a power manager on machines whose kernel does not count suspend in CLOCK_BOOTTIME: the machine was
 * suspended; every lock held is LOST, every open round starts anew. 0, CLOSED, THREAD, FORKED. */
REDLOCK_API int redlock_suspended(redlock_t *rl);

/* [own] For a new site, or after an outage: the operator states that no lock of these keys is held and no other client
 * is running. Each master that is reached, and whose state is read, within twice timing.connect_timeout_ms from now is
 * admitted at once instead of being watched for a guard time (timing.max_ttl_ms and a percent). A master that is reached
 * later is watched: the statement does not vouch for what happened to that master meanwhile. Once per master: what it
 * loses afterwards is watched again. Wrongly used, the call makes two holders possible. There is no setting for it, since
 * a setting would state the same at each start. 0, CLOSED, THREAD, FORKED; without effect when the guard is off. */
REDLOCK_API int redlock_commission(redlock_t *rl);
/* [own] The same for one master, by its index in the configuration. INVAL: there is no such master. */
REDLOCK_API int redlock_commission_master(redlock_t *rl, uint32_t master);

/* ---- 8. Seeing ------------------------------------------------------------------------------------------------ */

typedef struct redlock_status_s {
  uint32_t size;
  uint32_t masters;       /* N */
  uint32_t masters_up;    /* that vote now */
  uint32_t quorum;        /* Q = N/2 + 1 of the configured masters */
  uint32_t locks_held;
  uint32_t locks_pending; /* acquires not decided */
  uint32_t locks_max;     /* limits.locks */
  uint32_t debts;         /* ended values with an unanswered delete */
  uint32_t debts_max;     /* limits.debts */
  uint32_t even;          /* 1: N is even, which costs a master and buys nothing */
  uint64_t acquired;      /* events since create */
  uint64_t failed_locked;
  uint64_t failed_no_quorum;
  uint64_t failed_other;
  uint64_t rounds;        /* acquire rounds begun */
  uint64_t renewed;
  uint64_t renew_failed;
  uint64_t released;
  uint64_t lost;
  uint64_t clock_jumps;   /* suspends and clock misreadings noticed */
  uint64_t clock_steps;   /* of masters' wall clocks: steps, or rates beyond the allowance */
  int64_t guard_ms;       /* until the guard will have admitted a quorum; 0: it has, or is off; REDLOCK_GUARD_UNKNOWN */
} redlock_status_t;

typedef struct redlock_master_status_s {
  uint32_t size;
  uint32_t index;
  int32_t state;          /* enum redlock_master_state */
  int32_t err;            /* why it is not up; else NOPERM while it refuses deletes, or the last error that it
                             answered on this connection (NOSCRIPT apart); 0: none */
  uint32_t in_flight;     /* unanswered requests */
  uint32_t owed;          /* deletes not answered yet */
  uint32_t connects;      /* connections made */
  uint32_t resp3;         /* 1: the connection speaks RESP3 */
  uint32_t tracked;       /* 1: the server tells when a key that was read there changes */
  uint64_t replies;
  uint64_t errors;        /* error replies */
  char name[REDLOCK_MASTER_NAME_MAX + 1];
  char address[REDLOCK_HOST_MAX + 8]; /* "10.0.0.11:6379", "[fd00::1]:6379", "/run/redis.sock" */
  int64_t guard_ms;       /* until the guard admits it; 0: it votes, or the guard is off; REDLOCK_GUARD_UNKNOWN */
} redlock_master_status_t;

/* [own] Fill *status up to the size it starts with. INVAL: size too small for the first fields, or index out of
 * range. THREAD. FORKED. */
REDLOCK_API int redlock_status(const redlock_t *rl, redlock_status_t *status);
REDLOCK_API int redlock_master_status(const redlock_t *rl, uint32_t index, redlock_master_status_t *status);
/* [own] All of it as one JSON object, schema "redlock.status/1", NUL-terminated; counters as strings, guard_ms as a
 * number, or null for REDLOCK_GUARD_UNKNOWN. *size: in, the bytes of buf; out, the bytes needed with the NUL. TOOSMALL: buf holds an empty string. INVAL. THREAD. FORKED. */
REDLOCK_API int redlock_status_json(const redlock_t *rl, char *buf, size_t *size);

/* ---- 9. Fencing tokens ---------------------------------------------------------------------------------------- */

/* A lock cannot stop a holder that was paused after its check and wakes up when somebody else holds the lock. A device
 * that compares a number can. With REDLOCK_F_FENCING an acquire comes with a token; hand it to the device with each
 * write, and let the device refuse what is smaller than the largest it has seen.
 *
 * Claimed, for the tokens of one resource under one key_prefix:
 *  1. A token is given once, and is larger than every token that was given before its acquire began, whatever clocks,
 *     pauses and the network do, while fewer than a quorum of masters have lost their counters since those were last
 *     written; any number of such losses one after the other, with the guard on. (test/model/token.pml; redlock_sim, also
 *     in the runs where exclusion is off; test/integration/test_fence_scripts.cpp.)
 *  2. When too few masters that know the counter answer, the token is taken from their wall clocks and flagged
 *     REDLOCK_EV_F_FLOORED: it is larger than all before if those clocks agree and were not set back. Later ones are larger
 *     than it, and lean on the clocks as much when compared with those before it; that an attempt which failed has taken
 *     a floor is told to nobody. With "fence": "strict" there is no such token: FENCE_UNKNOWN. (test/unit/test_fence.cpp,
 *     test/scenario/fencing.txt.)
 *  3. A token is never handed on: the next local waiter of the same client gets its own. (test/scenario/fencing.txt.)
 *  4. A device that compares refuses the write of a holder that was frozen between its check and its write.
 *     (test/integration/test_examples.cpp, which runs examples/demo.sh.)
 *  5. The token of several resources is one number, larger than every token given before for any of them. With "fence": "strict"
 *     a new one among them wants redlock_fence_init() for each. (test/scenario/several.txt.)
 * Not claimed: that the lock excludes (the token is for when it does not); an order between acquires that overlap in time;
 * tokens without gaps; an order between resources or prefixes; anything against somebody who deletes or writes the counters
 * (the hash redlock:{prefix}:fence) and keeps the guard's record.
 * One round trip when this client's guess is right, else two. Tokens are 1 .. 2^63 - 1; in floor mode they are of the size of
 * milliseconds since 1970, so a device needs 64 bits. */

/* [any] The token of a lock acquired with REDLOCK_F_FENCING, from ACQUIRED until the handle is stale, also when the validity
 * is over: the device decides. 0, which redlock_fence_check() refuses: none, not acquired yet, a stale handle, a forked
 * child, or NULL. */
REDLOCK_API uint64_t redlock_fencing_token(const redlock_t *rl, redlock_lock_t lock);

/* [own] "fence": "strict" only: this resource is new, or whoever checks its tokens was reset; the next acquire of it by
 * this client may take a token from the masters' clocks, once. 0. INVAL: the resource. RESERVED: it makes a key of the
 * library's own. TABLE_FULL: too many such permissions wait to be used. CLOSED. THREAD. FORKED. */
REDLOCK_API REDLOCK_NODISCARD int redlock_fence_init(redlock_t *rl, const redlock_resource_t *resource);

/* [any] For firmware that owns the device; needs nothing but this header. *high_water is the largest token seen: 0 at
 * power-up, kept as long as the device keeps what the lock protects; one thread at a time. 0: take the write, *high_water is
 * now the token (an equal one is the same holder's next write). FENCED: refuse it, it is older. INVAL: 0 is no token. */
static inline int redlock_fence_check(uint64_t *high_water, uint64_t token) {
  if (token == 0) return REDLOCK_E_INVAL;
  if (token < *high_water) return REDLOCK_E_FENCED;
  *high_water = token;
  return 0;
}

#ifdef __cplusplus
}
#endif
#endif /* REDLOCK_REDLOCK_H */
