/* SPDX-License-Identifier: MIT
 *
 * redlock/redlock.h - the C API: locks through N independent Redis or Valkey masters, for gateways that share one
 * device. C99 and C++11. API.md says what a lock promises, and which call may be made in which mode.
 *
 * I want to ...                         call
 *   take a lock, and wait for it        redlock_acquire_async() or redlock_acquire()
 *   try once                            the same with wait_ms = REDLOCK_TRY_ONCE
 *   know what a wait is for             REDLOCK_F_TELL_WAITING, event WAITING; redlock_describe()
 *   know why a blocking call failed     opts.report
 *   see log lines on stderr             redlock_log_stderr()
 *   check before I touch the device     redlock_check()
 *   know until when the lock is valid   redlock_validity_ms(), redlock_deadline_ns()
 *   renew by hand                       REDLOCK_F_NO_RENEW; redlock_extend_async() or redlock_extend()
 *   let go                              redlock_release_async() or redlock_release(); redlock_cancel()
 *   lock several resources at once      the same with count above 1
 *   let the device refuse a late write  REDLOCK_F_FENCING; redlock_fencing_token(), redlock_fence_check()
 *   have a timer take the device away   redlock_deadline_ns(); examples/deadline_guard.c
 *   run on my libuv loop                redlock_create_on_loop()
 *   run in any other loop               redlock_create_polled(), redlock_fd(), redlock_process()
 *   run in a thread, and block          redlock_create()
 *   configure from JSON                 redlock_config_load_file(), redlock_config_load_json()
 *   see the state of the masters        redlock_master_status(), redlock_status_json(); event MASTER
 *   begin a new site                    redlock_commission()
 *   get another set of masters          redlock_reconfigure(), once for the whole site             redlock/site.h
 *
 * Conventions
 *  1. Functions return 0 or more when all is well, else a negative REDLOCK_E_*, which comments name without REDLOCK_E_.
 *     A NULL pointer is INVAL, unless allowed. Times are milliseconds, unless the name ends in _ns, _us or _s. Validity
 *     is rounded down, waits up.
 *  2. A redlock_lock_t names one acquire of one client for ever. After the end it is stale.
 *  3. Structs begin with their size: use the initializers. 0 means default. Inputs are copied before a call returns.
 *     Outputs are zeroed first, so that an error leaves none: a handle, a pointer, a text, a needed size, the fields of
 *     a struct behind its size.
 *  4. Every function says where it may be called:
 *       [own]   loop and polled mode: on the client's thread (it runs the loop or redlock_process(); before that, it
 *               created the client), else THREAD. Thread mode: any thread. In callbacks. Never waits for the network
 *       [any]   any thread, every mode, in callbacks; takes no lock and does not wait
 *       [block] thread mode, any thread but the client's own; waits for an event. Other modes: NO_BLOCKING. In
 *               callbacks: DEADLOCK
 *       [setup] works on its arguments only; one thread at a time per object
 *     Call nothing after CLOSED, nor after redlock_destroy() has returned. In a forked child every call on a client
 *     returns FORKED, redlock_fencing_token() 0; a child of vfork() must call nothing.
 *  5. Callbacks run in uv_run(), in redlock_process() or on the client's own thread, never from inside the call that
 *     started something. With UV_RUN_ONCE uv_run() returns behind a callback that calls uv_stop().
 *  6. After create nothing is allocated, except by the resolver and a TLS library that connects. A host name is looked
 *     up in a thread, with all signals blocked, that ends when the system's resolver returns. Close, destroy and exit
 *     do not wait for it. So dlclose() unloads no libredlock.so (-z nodelete); link a plugin that has libredlock.a in
 *     it in the same way. The library never
 *     prints, aborts, raises SIGPIPE or installs signal handlers. No text has a secret in it.
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
#define REDLOCK_VERSION_MINOR 3
#define REDLOCK_VERSION_PATCH 0
#define REDLOCK_VERSION_NUM ((REDLOCK_VERSION_MAJOR << 16) | (REDLOCK_VERSION_MINOR << 8) | REDLOCK_VERSION_PATCH)

/* ---- 1. Types ------------------------------------------------------------------------------------------------- */

typedef struct redlock_s redlock_t;               /* client: N masters, many locks         */
typedef struct redlock_config_s redlock_config_t; /* what a client is created from */
struct uv_loop_s;                                 /* uv_loop_t */

/* An acquire, then the held lock. 0 is never valid. */
typedef struct redlock_lock_s {
  uint64_t id;
} redlock_lock_t;

/* What is locked: 1 .. REDLOCK_RESOURCE_MAX bytes, any bytes. Its key is key_prefix and the name. Keys that begin with
 * redlock:{key_prefix}: are RESERVED. */
typedef struct redlock_resource_s {
  const void *data;
  uint32_t size; /* bytes */
} redlock_resource_t;

/* A resource from a NUL-terminated name. */
static inline redlock_resource_t redlock_resource(const char *name) {
  redlock_resource_t resource;
  resource.data = name;
  resource.size = 0;
  while (name[resource.size] != '\0' && resource.size <= REDLOCK_RESOURCE_MAX) ++resource.size;
  return resource;
}

/* ---- 2. Errors: frozen numbers, and what redlock_strerror() says of them ---------------------------------------- */

enum redlock_err {
  REDLOCK_OK = 0,
  /* how an acquire, an extend, a lock or a change of masters ended */
  REDLOCK_E_LOCKED = -1, /**< held by somebody else on too many masters */
  REDLOCK_E_NO_QUORUM = -2, /**< too few masters gave a usable answer */
  REDLOCK_E_TOO_SLOW = -3, /**< too little of the validity is left */
  REDLOCK_E_TIMEOUT = -4, /**< the wait was over before a round finished */
  REDLOCK_E_CANCELED = -5, /**< canceled, released or closed before it was acquired */
  REDLOCK_E_LOST = -6, /**< the validity is over, or cannot be relied on */
  REDLOCK_E_GUARD = -7, /**< too few masters vote yet */
  REDLOCK_E_FENCE_UNKNOWN = -8, /**< too few masters know this resource's token, and fence is strict */
  REDLOCK_E_FENCE_RANGE = -9, /**< no larger fencing token is left */
  REDLOCK_E_FENCED = -10, /**< a larger fencing token was seen: somebody else has held the lock since */
  REDLOCK_E_CHANGING = -11, /**< another change of masters is under way, or was given up */
  REDLOCK_E_RECORD_LOST = -12, /**< too few masters have kept what the change wrote */
  /* what the caller did */
  REDLOCK_E_INVAL = -20, /**< an argument is out of range */
  REDLOCK_E_CONFIG = -21, /**< the configuration is not valid */
  REDLOCK_E_STALE = -22, /**< this handle's acquire has ended, or it was never issued */
  REDLOCK_E_TABLE_FULL = -23, /**< limits.locks acquires and locks are open */
  REDLOCK_E_DEADLOCK = -24, /**< a blocking call from a callback */
  REDLOCK_E_THREAD = -25, /**< called from a thread that does not own the client */
  REDLOCK_E_FORKED = -26, /**< the client belongs to the parent process */
  REDLOCK_E_NOTSUP = -27, /**< not supported here */
  REDLOCK_E_NOMEM = -28, /**< no memory */
  REDLOCK_E_BUSY = -29, /**< an extend round of this lock is open already */
  REDLOCK_E_HOLD_LIMIT = -30, /**< max_hold_ms allows no later validity */
  REDLOCK_E_TOOSMALL = -31, /**< the buffer is too small; the needed size was stored */
  REDLOCK_E_CLOSED = -32, /**< the client is closing */
  REDLOCK_E_CLOCK = -33, /**< the clocks cannot be read closely enough together */
  REDLOCK_E_SYSTEM = -34, /**< the system gave no file, descriptor, timer or random bytes */
  REDLOCK_E_NOT_HELD = -35, /**< the acquire has not been decided yet */
  REDLOCK_E_RESERVED = -36, /**< makes a key of the library's own: redlock:{key_prefix}:... */
  REDLOCK_E_NO_BLOCKING = -37, /**< this mode has no blocking calls */
  /* one master: why it gave no vote, or is not up */
  REDLOCK_E_RESOLVE = -50, /**< the host name cannot be resolved */
  REDLOCK_E_CONNECT = -51, /**< cannot be connected to */
  REDLOCK_E_DISCONNECTED = -52, /**< the connection broke */
  REDLOCK_E_NODE_TIMEOUT = -53, /**< no answer within node_timeout_ms */
  REDLOCK_E_SUSPECT = -54, /**< has not answered older requests yet */
  REDLOCK_E_NO_ROOM = -55, /**< too much is unanswered already */
  REDLOCK_E_AUTH = -56, /**< user name or password was refused */
  REDLOCK_E_NOPERM = -57, /**< the user lacks a permission */
  REDLOCK_E_PROTOCOL = -58, /**< is no Redis server, or breaks the protocol */
  REDLOCK_E_ROLE = -59, /**< is a replica, not a master */
  REDLOCK_E_MODE = -60, /**< is a cluster node or a sentinel, not a standalone master */
  REDLOCK_E_DUPLICATE = -61, /**< is the same server as another master */
  REDLOCK_E_READONLY = -62, /**< turned into a replica */
  REDLOCK_E_LOADING = -63, /**< is loading its data */
  REDLOCK_E_OOM = -64, /**< is at maxmemory */
  REDLOCK_E_SCRIPT_BUSY = -65, /**< is blocked by somebody's long script */
  REDLOCK_E_MISCONF = -66, /**< refuses writes: it cannot persist them */
  REDLOCK_E_NOREPLICAS = -67, /**< refuses writes: too few replicas are connected */
  REDLOCK_E_CLUSTER = -68, /**< answers as a cluster node */
  REDLOCK_E_WRONGTYPE = -69, /**< the key exists and is not a string */
  REDLOCK_E_NOSCRIPT = -70, /**< does not know the script */
  REDLOCK_E_MAXCLIENTS = -71, /**< has too many clients */
  REDLOCK_E_DENIED = -72, /**< runs in protected mode */
  REDLOCK_E_SERVER = -73, /**< answered an error */
  REDLOCK_E_TLS = -74, /**< this build has no TLS */
  REDLOCK_E_GONE = -75, /**< the key is gone or foreign */
  REDLOCK_E_REFUSED = -76, /**< the connection was refused: nothing listens there, or a firewall rejects it */
  REDLOCK_E_CONNECT_TIMEOUT = -77, /**< the connection timed out */
  REDLOCK_E_UNREACHABLE = -78, /**< the host or its network cannot be reached */
  REDLOCK_E_AUTH_MISSING = -79, /**< wants a password, and none is configured */
  /* one master: why the guard does not let it vote */
  REDLOCK_E_UNREAD = -80, /**< its guard record has not been read, or may have changed since */
  REDLOCK_E_UNWATCHED = -81, /**< may have forgotten keys: not yet watched for the guard time */
  REDLOCK_E_FINGERPRINT = -82, /**< is used by clients of another configuration: masters, max_ttl_ms */
  REDLOCK_E_IDENTITY = -83, /**< does not tell its run id and replication id */
  REDLOCK_E_MAXMEMORY = -84, /**< may evict keys: maxmemory is set without noeviction */
  REDLOCK_E_WALL_CLOCK = -85, /**< its clock was stepped, or runs off rate */
  REDLOCK_E_SEAL = -86, /**< is not in the state that the guard admitted */
  REDLOCK_E_REPLID = -90, /**< its replication id has changed, as for a backup or a first replica: watched again */
  REDLOCK_E_NO_GREETING = -91, /**< closed the connection before its first answer: for TLS only, or a proxy? */
  REDLOCK_E_LEFT = -92, /**< the site was changed: copy its redlock.json here */
  REDLOCK_E_EVICTED = -93, /**< has evicted keys */
  REDLOCK_E_TWO_SERVERS = -94, /**< its name leads to two servers in turn */
  /* one master over TLS; a library without TLS has neither their names nor their texts */
  REDLOCK_E_TLS_NONE = -100, /**< speaks no TLS: is redis:// meant, or another port? */
  REDLOCK_E_TLS_ONLY = -101, /**< speaks TLS only: is rediss:// meant, or another port? */
  REDLOCK_E_TLS_AUTHORITY = -102, /**< its certificate is of no authority in tls.ca_file */
  REDLOCK_E_TLS_EXPIRED = -103, /**< a certificate of its chain has expired */
  REDLOCK_E_TLS_EARLY = -104, /**< a certificate of its chain is not valid yet: is this machine's clock set? */
  REDLOCK_E_TLS_NAME = -105, /**< its certificate is for another name */
  REDLOCK_E_TLS_PIN = -106, /**< its key is none of tls.pin */
  REDLOCK_E_TLS_CLIENT_CERT = -107, /**< wants a client certificate, and the configuration has none */
  REDLOCK_E_TLS_CLIENT_REFUSED = -108, /**< refused the client certificate */
  REDLOCK_E_TLS_COMMON = -109, /**< has no TLS version or no cipher in common with this client */
  REDLOCK_E_TLS_BROKEN = -110, /**< broke the rules of TLS */
  REDLOCK_E_TLS_FILE = -111, /**< a file of the TLS settings cannot be used */
  REDLOCK_E_TLS_CHAIN = -112, /**< sent more than 4 certificates */
  REDLOCK_E_TLS_MESSAGE = -113, /**< sent certificates of more than 16384 bytes */
  REDLOCK_E_TLS_MODULUS = -114, /**< sent an RSA key of more than 4096 bits */
  REDLOCK_E_TLS_EXPONENT = -115, /**< sent an RSA exponent of more than 32 bits */
  REDLOCK_E_TLS_KEY = -116, /**< sent a key that is neither RSA nor P-256, P-384, P-521 or Ed25519 */
  REDLOCK_E_TLS_WEAK = -117, /**< sent a weak certificate: RSA below 2048 bits, or signed with SHA-1 */
  REDLOCK_E_TLS_USE = -118, /**< a certificate is not for servers, not for this name, or not for so long a chain */
  REDLOCK_E_TLS_FLOOD = -119, /**< sent too many TLS records without text */
  REDLOCK_E_TLS_CURVES = -120, /**< sent more than two authorities of P-256 or P-384, or one of P-521 and another */
  REDLOCK_E_LAST_ = -199
};

/* [any] An English sentence for a result code, or for any other number: a static string. */
REDLOCK_API const char *redlock_strerror(int err);
/* [any] The name of a result code, which never changes: "REDLOCK_E_LOCKED". No code: "REDLOCK_E_UNKNOWN". */
REDLOCK_API const char *redlock_err_name(int err);
/* [any] REDLOCK_VERSION_NUM of the library that runs. As text "-dev.COMMIT" follows where the source was not the
 * release, and with TLS "+openssl" or "+mbedtls". */
REDLOCK_API uint32_t redlock_version(void);
REDLOCK_API const char *redlock_version_string(void);

/* ---- 3. Events ------------------------------------------------------------------------------------------------ */

/* Ignore a type that you do not know. */
enum redlock_event_type {
  /* Each acquire gets exactly one of these two: */
  REDLOCK_EV_ACQUIRED = 1, /**< validity_ms is left */
  REDLOCK_EV_FAILED = 2,   /**< terminal; err: LOCKED, NO_QUORUM, GUARD, TOO_SLOW, TIMEOUT, CANCELED, LOST (before this
                            * event), FENCE_UNKNOWN, FENCE_RANGE */
  /* Of a held lock: */
  REDLOCK_EV_RENEWED = 3,  /**< an extend round was won; validity_ms is left */
  REDLOCK_EV_AT_RISK = 4,  /**< an extend round was lost, err: why; the lock is as valid as before */
  REDLOCK_EV_LOST = 5,     /**< terminal; the validity is over, the clock jumped, or no quorum has the key */
  REDLOCK_EV_RELEASED = 6, /**< terminal; the deletes are queued */
  /* Of the client: */
  REDLOCK_EV_MASTER = 7,   /**< master, state, err: a change of its state, or of the reason for GUARDED */
  REDLOCK_EV_CLOSED = 8,   /**< the last event; failed counts the deletes that no master has answered */
  /* Of an acquire with REDLOCK_F_TELL_WAITING, while it waits: */
  REDLOCK_EV_WAITING = 9   /**< cause says what for: once it is known, at each change, and every 5 s */
};

/* What an acquire waits for, or waited for when it failed. */
enum redlock_cause {
  REDLOCK_CAUSE_NONE = 0,
  REDLOCK_CAUSE_HELD = 1,    /**< somebody holds the resource, or another acquire of this client comes first */
  REDLOCK_CAUSE_GUARD = 2,   /**< voting and watched masters together would be a quorum */
  REDLOCK_CAUSE_TOO_FEW = 3, /**< too few masters can be reached, or can vote */
  REDLOCK_CAUSE_CHANGE = 4,  /**< a change of the masters is under way, was given up, or has left this client behind */
  REDLOCK_CAUSE_NEVER = 5    /**< FAILED only: waiting does not help; master_err is the reason of one master */
};

#define REDLOCK_GUARD_UNKNOWN (-1)

enum redlock_master_state {
  REDLOCK_MASTER_DOWN = 1,       /**< not connected, err: why; the client tries again by itself */
  REDLOCK_MASTER_CONNECTING = 2, /**< resolving or connecting */
  REDLOCK_MASTER_GREETING = 3,   /**< connected; logging in */
  REDLOCK_MASTER_UP = 4,         /**< votes */
  REDLOCK_MASTER_SUSPECT = 5,    /**< has not answered for node_timeout_ms: gets deletes only */
  REDLOCK_MASTER_GUARDED = 6     /**< connected, but the guard does not let it vote; err: why */
};

/* For a person. Valid during the callback. */
typedef struct redlock_detail_s {
  uint32_t size;             /* sizeof(redlock_detail_t) in the library that calls */
  uint32_t masters;          /* N */
  uint32_t quorum;           /* Q */
  uint32_t voting;           /* masters that vote now */
  uint32_t watched;          /* masters that the guard watches now */
  uint32_t max_ttl_ms;       /* timing.max_ttl_ms of this client */
  uint32_t their_masters;    /* FINGERPRINT: N and timing.max_ttl_ms of the other configuration; 0: not known */
  uint32_t their_max_ttl_ms;
  int64_t to_go_ms;          /* WAITING, FAILED: until a quorum will vote, or the key be gone if nobody renews it;
                              * or REDLOCK_GUARD_UNKNOWN */
  const char *name;          /* of the master that the event, or master_err, is about; "": none */
  const char *address;       /* its address; "": none */
  const char *holder;        /* held: the client_name in the value, escaped as \xNN; "a foreign value"; "": not known or
                              * not asked for (REDLOCK_F_TELL_WAITING, a report) */
  const char *their_name;    /* FINGERPRINT: a master of theirs that is none of ours; "": not known */
  const char *our_name;      /* then one of ours that is none of theirs */
  const char *denied;        /* NOPERM: the first key of the lock. TLS_EXPIRED, TLS_EARLY: whose certificate, date */
} redlock_detail_t;

typedef struct redlock_event_s {
  uint32_t size;        /* sizeof(redlock_event_t) in the library that calls */
  int32_t type;         /* enum redlock_event_type */
  int32_t err;          /* 0 or enum redlock_err */
  int32_t master_err;   /* the cause given by a master that tells most; 0: none */
  redlock_lock_t lock;  /* id 0 for MASTER and CLOSED */
  int64_t validity_ms;  /* left when the callback begins; 0: not held */
  uint32_t granted;     /* votes of the round that decided */
  uint32_t refused;     /* LOST because keys are gone: the masters without the key */
  uint32_t failed;
  uint32_t master;      /* MASTER: index in the order of the configuration */
  int32_t state;        /* MASTER: enum redlock_master_state */
  uint32_t rounds;      /* acquire rounds so far */
  int64_t guard_ms;     /* FAILED(GUARD), WAITING: until a quorum will vote. MASTER: until this one will.
                         * REDLOCK_GUARD_UNKNOWN: no watch is under way. Else 0 */
  uint64_t token;       /* ACQUIRED, RENEWED, AT_RISK: the fencing token; 0: no REDLOCK_F_FENCING */
  uint32_t flags;       /* REDLOCK_EV_F_* */
  int32_t cause;        /* WAITING, FAILED: enum redlock_cause; else 0 */
  const redlock_detail_t *detail; /* WAITING, FAILED, LOST, AT_RISK, MASTER; else NULL */
} redlock_event_t;

#define REDLOCK_EV_F_FLOORED (1u << 0) /* the token depends on the masters' wall clocks (section 9) */

/* user: of the acquire, or of redlock_config_set_event(). The event is valid during the call. After the callback of
 * FAILED, LOST or RELEASED the handle is stale. */
typedef void (*redlock_event_fn)(redlock_t *rl, const redlock_event_t *event, void *user);

/* [any] One English sentence without a full stop: what happened, or what an acquire waits for:
 * "3 of 3 masters are new and watched: 27.3 s to go". Call it during the callback. At most size bytes with the NUL are
 * written; a cut sentence ends with "...". buf may be NULL if size is 0.
 * Returns the length of the whole sentence. REDLOCK_TEXT_MAX + 1 bytes are enough. */
#define REDLOCK_TEXT_MAX 255
REDLOCK_API size_t redlock_describe(const redlock_event_t *event, char *buf, size_t size);

/* One line without a newline, valid during the call. level, as in syslog: 3 LOST, a hopeless acquire, a bad argument; 4
 * AT_RISK, other acquires that failed or waited for 5 s, a master without a vote, a clock jump; 5 guard, masters that
 * are back, floored tokens, unanswered deletes; 6 connections, the end; 7 all else. Runs on the client's thread, for a
 * bad argument on the caller's. It may take a mutex, and must not call the client. */
typedef void (*redlock_log_fn)(int level, const char *msg, void *user);
/* [any] A redlock_log_fn: "redlock: ", the line and a newline to stderr, in one write(2). */
REDLOCK_API void redlock_log_stderr(int level, const char *msg, void *user);

/* ---- 4. Configuration ----------------------------------------------------------------------------------------- */

/* [setup] A configuration with every default and no master. Free it with redlock_config_free(), also after create; NULL
 * is allowed.
 * Returns 0. NOMEM. */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_new(redlock_config_t **out);
REDLOCK_API void redlock_config_free(redlock_config_t *cfg);

/* [setup] Add what a JSON object says: redlock.json(5). At most REDLOCK_CONFIG_BYTES_MAX bytes. On any error the
 * configuration is left as it was. A file must be a regular one of root or geteuid(), writable by nobody else,
 * and with a password in it not readable by others; so a password_file.
 * Returns 0. CONFIG: redlock_config_error() says what. NOTSUP: TLS, which this build has not. SYSTEM: the file cannot
 * be read. NOMEM. */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_load_json(redlock_config_t *cfg, const char *json, size_t size);
REDLOCK_API REDLOCK_NODISCARD int redlock_config_load_file(redlock_config_t *cfg, const char *path);

/* [setup] What was wrong in the last failed call on cfg: "masters[2].port: 70000 is not in 1..65535"; "": nothing.
 * Valid until the next call on cfg. */
REDLOCK_API const char *redlock_config_error(const redlock_config_t *cfg);

/* [setup] One more master: redlock.json(5) has the forms of a URL. 1 .. REDLOCK_MASTERS_MAX in all.
 * Returns 0. CONFIG: no such URL, a part too long, too many, or the same address twice. NOTSUP: rediss://, in a build
 * without TLS. */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_add_master(redlock_config_t *cfg, const char *url);

/* [setup] The settings of JSON by dotted key: "timing.node_timeout_ms".
 * Returns 0. CONFIG: no such key, or the value is out of range. NOTSUP: tls.*, in a build without TLS. */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_u32(redlock_config_t *cfg, const char *key, uint32_t value);
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_str(redlock_config_t *cfg, const char *key, const char *value);

/* [setup] The callback of acquires without one, and of MASTER and CLOSED. NULL: none. */
REDLOCK_API void redlock_config_set_event(redlock_config_t *cfg, redlock_event_fn fn, void *user);
/* [setup] For log lines up to this level, e.g. redlock_log_stderr with level 5. NULL: no lines. */
REDLOCK_API void redlock_config_set_log(redlock_config_t *cfg, redlock_log_fn fn, void *user, int level);

/* ---- 5. Life -------------------------------------------------------------------------------------------------- */

/* [setup] The bytes that a client of cfg needs, without a thread's stack (limits.stack_bytes) and what a TLS library
 * allocates; 0: cfg is not valid. */
REDLOCK_API size_t redlock_memory_size(const redlock_config_t *cfg);

/* The six ways to create a client, which then connects, and connects again, by itself. _in: the client lives in mem,
 * which has redlock_memory_size() bytes, aligned as malloc aligns, until the callback of CLOSED has returned (loop
 * mode), redlock_process() has returned CLOSED (polled), redlock_destroy() has returned 0 (thread). */

/* [setup] Thread mode: a thread of its own, "redlock", with limits.stack_bytes and all signals blocked, runs the client
 * and its callbacks. End it with redlock_destroy().
 * Returns 0. CONFIG, TLS_FILE: redlock_config_error() says why. NOTSUP: no TLS 1.3, which tls.min_version asks for.
 * CLOCK. SYSTEM: also if the thread cannot be started, e.g. its stack is too small, or fewer than 8 descriptors are
 * left: the client takes up to 8, and one for each master. NOMEM. INVAL: mem is not aligned. TOOSMALL: mem is too
 * small. */
REDLOCK_API REDLOCK_NODISCARD int redlock_create(redlock_t **out, const redlock_config_t *cfg);
REDLOCK_API REDLOCK_NODISCARD int redlock_create_in(void *mem, size_t size, redlock_t **out,
                                                    const redlock_config_t *cfg);

/* [setup] Polled mode: watch redlock_fd() for input, and call redlock_process() when it is readable. End the client
 * with redlock_close_async(). Returns as redlock_create(). */
REDLOCK_API REDLOCK_NODISCARD int redlock_create_polled(redlock_t **out, const redlock_config_t *cfg);
REDLOCK_API REDLOCK_NODISCARD int redlock_create_polled_in(void *mem, size_t size, redlock_t **out,
                                                           const redlock_config_t *cfg);

/* [setup] Loop mode: on the caller's libuv loop, by its thread. End and results as in polled mode. */
REDLOCK_API REDLOCK_NODISCARD int redlock_create_on_loop(redlock_t **out, const redlock_config_t *cfg,
                                                         struct uv_loop_s *loop);
REDLOCK_API REDLOCK_NODISCARD int redlock_create_on_loop_in(void *mem, size_t size, redlock_t **out,
                                                            const redlock_config_t *cfg, struct uv_loop_s *loop);

/* [any] Polled mode: the descriptor to watch (POLLIN, level-triggered). It stays the same, and belongs to the client.
 * Returns the descriptor. NOTSUP: another mode. FORKED. */
REDLOCK_API int redlock_fd(const redlock_t *rl);
/* [own] Polled mode: the timeout for poll(); 0: something is to be done; -1: none. The descriptor alone is enough.
 * NOTSUP: another mode. THREAD. FORKED. */
REDLOCK_API int redlock_timeout_ms(const redlock_t *rl);
/* [own] Polled mode: handle all input and deliver events, without waiting. The first caller's thread is the client's.
 * Returns 0. CLOSED: CLOSED was delivered, and the client is gone. DEADLOCK: inside a callback. NOTSUP: another mode.
 * THREAD. FORKED. */
REDLOCK_API int redlock_process(redlock_t *rl);

/* [own] Loop and polled mode: end the client. Pending acquires get FAILED(CANCELED), held locks RELEASED; keys of LOST
 * locks go, too: rely on no earlier check. Masters have grace_ms (0 .. 60000) to answer the deletes; CLOSED comes last.
 * Returns 0. INVAL: grace_ms. CLOSED: a second call. NOTSUP: thread mode. THREAD. FORKED. */
REDLOCK_API int redlock_close_async(redlock_t *rl, uint32_t grace_ms);

/* [block] Thread mode: the same, and wait for the end: at most grace_ms (0 .. 60000) and 2 s. Blocked calls of other
 * threads return CANCELED or LOST. No other call may begin once this one has.
 * Returns 0: the client is gone. TIMEOUT: a callback does not return; the thread ends later, and calls nothing back
 * (_in: this call waits instead). CLOSED: another thread destroys the client. INVAL: grace_ms. FORKED. */
REDLOCK_API int redlock_destroy(redlock_t *rl, uint32_t grace_ms);

/* ---- 6. Locking ----------------------------------------------------------------------------------------------- */

#define REDLOCK_TRY_ONCE 0        /* one round: waits neither for other holders nor for the guard */
#define REDLOCK_WAIT_NONE REDLOCK_TRY_ONCE /* the former name */
#define REDLOCK_WAIT_FOREVER (-1) /* until the lock is acquired or the acquire is canceled */
#define REDLOCK_WAIT_DEFAULT (-2) /* defaults.wait_ms, and for the guard timing.guard_wait_ms */

#define REDLOCK_F_NO_RENEW (1u << 0) /* do not extend automatically */
#define REDLOCK_F_FENCING (1u << 1)  /* with a fencing token (section 9) */
#define REDLOCK_F_TELL_WAITING (1u << 2) /* event WAITING while the acquire waits */
#define REDLOCK_F_URGENT (1u << 3)       /* before those that wait without this flag: an alarm, a stop command. Usually
                                          * next: no holder is interrupted. Only if this client left the resource
                                          * alone for four holds, and four times more: in a loop they wait behind
                                          * the others, which get every eighth turn or more */

/* How a blocking acquire ended. The caller owns the struct. */
typedef struct redlock_report_s {
  uint32_t size;       /* sizeof(redlock_report_t) */
  int32_t err;         /* the result of the call */
  int32_t cause;       /* enum redlock_cause: what the acquire waited for last */
  int32_t master_err;  /* as in redlock_event_t */
  uint32_t granted;    /* votes of the last round */
  uint32_t refused;
  uint32_t failed;
  uint32_t rounds;     /* acquire rounds */
  int64_t guard_ms;
  char holder[REDLOCK_HOLDER_MAX + 1]; /* as in redlock_detail_t */
  char text[REDLOCK_TEXT_MAX + 1];     /* the sentence of redlock_describe(), or which argument is out of range */
} redlock_report_t;
#define REDLOCK_REPORT_INIT {sizeof(redlock_report_t), 0, 0, 0, 0, 0, 0, 0, 0, "", ""}

typedef struct redlock_acquire_opts_s {
  uint32_t size;            /* sizeof, set by REDLOCK_ACQUIRE_OPTS_INIT */
  uint32_t flags;           /* REDLOCK_F_* */
  uint32_t ttl_ms;          /* 20 .. timing.max_ttl_ms; 0: defaults.ttl_ms */
  int32_t wait_ms;          /* above 0: a bound of the whole call; or REDLOCK_WAIT_DEFAULT, _TRY_ONCE, _WAIT_FOREVER */
  uint32_t min_validity_ms; /* a round won with less left is TOO_SLOW; 0: any */
  uint32_t max_hold_ms;     /* no extend carries the validity past this time since the won round began; 0: no limit */
  uint32_t retry_delay_ms;  /* 1 .. 5000; 0: defaults.retry_delay_ms */
  uint32_t reserved;        /* 0 */
  redlock_event_fn callback; /* NULL: the callback of the configuration */
  void *user;
  redlock_report_t *report;  /* redlock_acquire() only: NULL, or where to write how the call ended */
} redlock_acquire_opts_t;

#if defined(__cplusplus)
#define REDLOCK_ACQUIRE_OPTS_INIT \
  redlock_acquire_opts_t{sizeof(redlock_acquire_opts_t), 0, 0, REDLOCK_WAIT_DEFAULT, 0, 0, 0, 0, nullptr, nullptr, \
                         nullptr}
#else
#define REDLOCK_ACQUIRE_OPTS_INIT \
  {sizeof(redlock_acquire_opts_t), 0, 0, REDLOCK_WAIT_DEFAULT, 0, 0, 0, 0, NULL, NULL, NULL}
#endif

/* How long an acquire waits: on a new client at most twice timing.connect_timeout_ms for the first connections. It
 * fails at once, with REDLOCK_CAUSE_NEVER, where FINGERPRINT, LEFT, MODE, MAXMEMORY or IDENTITY leave no quorum. Where
 * a missing permission, password or certificate leaves none, it fails after one round, unless REDLOCK_WAIT_FOREVER.
 * While no quorum votes, as behind a pause (SUSPECT), REDLOCK_TRY_ONCE fails at once: asked again in the callback of
 * FAILED, it spins. An acquire that waits pauses between its rounds. */

/* [own] Ask for 1 .. REDLOCK_RESOURCES_PER_LOCK_MAX resources: all or none, in any order without a deadlock. ACQUIRED
 * or FAILED follows. opts NULL: all defaults. *lock is the handle. A held lock is renewed by itself until it is
 * released.
 * Returns 0. INVAL: out of range, or a resource named twice; the log says which. RESERVED. TABLE_FULL. CLOSED. THREAD.
 * FORKED. */
REDLOCK_API REDLOCK_NODISCARD int redlock_acquire_async(redlock_t *rl, const redlock_resource_t *resources,
                                                        uint32_t count, const redlock_acquire_opts_t *opts,
                                                        redlock_lock_t *lock);

/* [own] Give up an acquire before ACQUIRED: it gets FAILED(CANCELED), and its keys are deleted.
 * Returns 0: given up, or ended before. BUSY: already acquired; release it. STALE: never issued. THREAD. FORKED. */
REDLOCK_API int redlock_cancel(redlock_t *rl, redlock_lock_t lock);

/* [own] Extend a held lock: ttl_ms from now (20 .. timing.max_ttl_ms; 0: the acquire's ttl). RENEWED or AT_RISK
 * follows, or the lock ends first. The validity never gets shorter.
 * Returns 0. INVAL: ttl_ms. STALE. NOT_HELD: not acquired yet. LOST: its validity is over. BUSY: an extend round is
 * open. HOLD_LIMIT. CLOSED. THREAD. FORKED. */
REDLOCK_API REDLOCK_NODISCARD int redlock_extend_async(redlock_t *rl, redlock_lock_t lock, uint32_t ttl_ms);

/* [own] Let go: from now on the lock is not held. Deletes go out, again where a connection breaks. RELEASED follows; in
 * loop and polled mode the deletes leave behind its callback, in one write with what that asks for: it must not exit().
 * Before ACQUIRED this cancels the acquire. No holder hears that others wait: to let them in, release and acquire every
 * n seconds. Usually the first or second time does. The keys of a LOST lock stay until its validity would have ended:
 * another thread may rely on a check.
 * Returns 0, also when the lock has ended. STALE: never issued. THREAD. FORKED. */
REDLOCK_API int redlock_release_async(redlock_t *rl, redlock_lock_t lock);

/* Calls that block: each returns after the callback of the event that it waits for has returned. All may return
 * DEADLOCK, NO_BLOCKING, SYSTEM, the first two CANCELED (released, canceled or destroyed meanwhile). */

/* [block] Ask as redlock_acquire_async(), and wait. On any error nothing is held; opts.report says why.
 * Returns 0: *lock is held. Else the err of FAILED. TIMEOUT: also 2 s after the wait, if a callback keeps
 * the client's thread. LOST: also if the callback of ACQUIRED took longer than the validity. INVAL, RESERVED,
 * TABLE_FULL, CLOSED, FORKED. */
REDLOCK_API REDLOCK_NODISCARD int redlock_acquire(redlock_t *rl, const redlock_resource_t *resources, uint32_t count,
                                                  const redlock_acquire_opts_t *opts, redlock_lock_t *lock);
/* [block] Extend, and wait for RENEWED. On an error the lock is as valid as before.
 * Returns 0. The errors of redlock_extend_async() and of AT_RISK. LOST: the lock ended first. TIMEOUT: a callback keeps
 * the client's thread; the extend may still be won. */
REDLOCK_API REDLOCK_NODISCARD int redlock_extend(redlock_t *rl, redlock_lock_t lock, uint32_t ttl_ms);
/* [block] Let go, and wait until the deletes are on their way, not for the answers.
 * Returns 0: the lock is not held. STALE: never issued. TIMEOUT: let go, but a callback keeps the client's thread from
 * sending the deletes. FORKED. */
REDLOCK_API int redlock_release(redlock_t *rl, redlock_lock_t lock);

/* ---- 7. Holding: no I/O, two to four clock reads ------------------------------------------------------------- */

/* [any] May the device be touched for the next need_ms? Call it before each transaction, with the time that it takes,
 * and nothing between the check and the write.
 * Returns 0: yes, at least need_ms are left. LOST: no, and never again for this handle. TOO_SLOW: held, but less than
 * need_ms is left. NOT_HELD: not acquired yet. STALE. FORKED. */
REDLOCK_API REDLOCK_NODISCARD int redlock_check(const redlock_t *rl, redlock_lock_t lock, uint32_t need_ms);
/* [any] The validity that is left.
 * Returns milliseconds, rounded down; 0: no longer held. NOT_HELD. STALE. FORKED. */
REDLOCK_API int64_t redlock_validity_ms(const redlock_t *rl, redlock_lock_t lock);
/* [any] The end of the validity for timerfd (TIMER_ABSTIME), earlier by 0.5 % of what is left: that clock may be
 * slewed. Ask again after RENEWED.
 * Returns an absolute CLOCK_BOOTTIME time in ns; 0: no longer held. NOT_HELD. STALE. FORKED. */
REDLOCK_API int64_t redlock_deadline_ns(const redlock_t *rl, redlock_lock_t lock);

/* [own] Where CLOCK_BOOTTIME does not count suspend: tell the client of a suspend. Held locks are LOST.
 * Returns 0. CLOSED. THREAD. FORKED. */
REDLOCK_API int redlock_suspended(redlock_t *rl);

/* [own] For a new site, or after an outage: you state that no lock of these keys is held and no other client runs. If
 * that is wrong, two holders become possible. One person says so, once, on one gateway, never a program at each start.
 * Masters whose record is read within twice timing.connect_timeout_ms vote at once. Others stay GUARDED, as where
 * many clients start together: start the rest when these masters are UP, or say it again while it is true.
 * Returns 0. CLOSED. THREAD. FORKED. */
REDLOCK_API int redlock_commission(redlock_t *rl);
/* [own] redlock_commission() for one master, by its index in the configuration.
 * Returns as that. INVAL: no such master. */
REDLOCK_API int redlock_commission_master(redlock_t *rl, uint32_t master);

/* ---- 8. Seeing ------------------------------------------------------------------------------------------------ */

/* How long something took, since create. */
typedef struct redlock_times_s {
  uint64_t count;
  uint64_t sum_ms;
  uint64_t max_ms;
  uint32_t buckets[8];    /* how many took at most 10 ms, then up to 100 ms, and so on; the last: above 10^7 ms */
} redlock_times_t;

typedef struct redlock_status_s {
  uint32_t size;
  uint32_t masters;       /* N */
  uint32_t masters_up;    /* masters that vote now */
  uint32_t quorum;        /* Q = N/2 + 1 of the configured masters */
  uint32_t locks_held;
  uint32_t locks_pending; /* acquires not decided */
  uint32_t locks_max;     /* limits.locks */
  uint32_t debts;         /* ended values with an unanswered delete */
  uint32_t debts_max;     /* limits.debts; held locks count, too */
  uint32_t even;          /* 1: N is even */
  uint64_t acquired;      /* events since create */
  uint64_t failed_locked;
  uint64_t failed_no_quorum;
  uint64_t failed_other;
  uint64_t rounds;        /* acquire rounds begun */
  uint64_t renewed;
  uint64_t renew_failed;
  uint64_t released;
  uint64_t lost;
  uint64_t clock_jumps;   /* suspends and clock misreadings of this machine */
  uint64_t clock_steps;   /* steps of masters' wall clocks, and wrong rates */
  int64_t guard_ms;       /* until a quorum will vote, or REDLOCK_GUARD_UNKNOWN; 0: one does, or the guard is off */
  redlock_times_t wait;   /* of acquires, until ACQUIRED or FAILED */
  redlock_times_t hold;   /* of locks, from ACQUIRED until RELEASED or LOST */
} redlock_status_t;

typedef struct redlock_master_status_s {
  uint32_t size;
  uint32_t index;
  int32_t state;          /* enum redlock_master_state */
  int32_t err;            /* why it is not up. Up: NOPERM while it refuses deletes, else its last error reply */
  uint32_t in_flight;     /* unanswered requests */
  uint32_t owed;          /* deletes not answered yet */
  uint32_t connects;      /* connections made */
  uint32_t resp3;         /* 1: speaks RESP3 */
  uint32_t tracked;       /* 1: the server tells when a key changes */
  uint64_t replies;
  uint64_t errors;        /* error replies */
  char name[REDLOCK_MASTER_NAME_MAX + 1];
  char address[REDLOCK_HOST_MAX + 8]; /* "10.0.0.11:6379", "/run/redis.sock" */
  int64_t guard_ms;       /* the same of this master */
} redlock_master_status_t;

/* [own] Fill *status, up to the size in its first field.
 * Returns 0. INVAL: the size is too small for the first fields, or index is out of range. THREAD. FORKED. */
REDLOCK_API int redlock_status(const redlock_t *rl, redlock_status_t *status);
REDLOCK_API int redlock_master_status(const redlock_t *rl, uint32_t index, redlock_master_status_t *status);
/* [own] Both as one JSON object, NUL-terminated. *size: in, the bytes of buf; out, the bytes needed with the NUL.
 * Its fields, as in the structs; ignore unknown ones:
 *   schema, version, quorum, even, masters_up, guard_ms
 *   masters           an array; of each:
 *     name, address, state, err, guard_ms, in_flight, owed, connects, resp3, tracked, replies, errors
 *   locks
 *     held, pending, max
 *   debts
 *     open, max
 *   counters
 *     acquired, failed_locked, failed_no_quorum, failed_other
 *     rounds, renewed, renew_failed, released, lost
 *     clock_jumps, clock_steps
 *   wait
 *     count, sum_ms, max_ms, buckets
 *   hold
 *     count, sum_ms, max_ms, buckets
 * schema is "redlock.status/1". An unknown guard_ms and an err of 0 are null; other errors are names. Counters, times,
 * replies and errors are strings of digits, buckets are numbers.
 * Returns 0. TOOSMALL: buf holds an empty string. INVAL. THREAD. FORKED. */
REDLOCK_API int redlock_status_json(const redlock_t *rl, char *buf, size_t *size);

/* ---- 9. Fencing tokens ---------------------------------------------------------------------------------------- */

/* Hand the device the token with each write, and let it refuse one smaller than the largest that it has seen: that
 * stops a holder that was paused between check and write. Tokens are 1 .. 2^63 - 1. */

/* [any] The token of a lock acquired with REDLOCK_F_FENCING, from ACQUIRED until the handle is stale.
 * Returns the token. 0, which redlock_fence_check() refuses: there is none. */
REDLOCK_API uint64_t redlock_fencing_token(const redlock_t *rl, redlock_lock_t lock);

/* [own] With "fence": "strict", for a new resource or a device that was reset: this client's next acquire of it may
 * take a token from the masters' clocks.
 * Returns 0. INVAL: the resource. RESERVED. TABLE_FULL: too many permissions wait. CLOSED. THREAD. FORKED. */
REDLOCK_API REDLOCK_NODISCARD int redlock_fence_init(redlock_t *rl, const redlock_resource_t *resource);

/* [any] For firmware of the device; needs this header alone. *high_water is the largest token seen: 0 at power-up, kept
 * as long as the device keeps what the lock protects.
 * Returns 0: take the write; *high_water is now the token. FENCED: refuse it, its token is older. INVAL: 0 is none. */
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
