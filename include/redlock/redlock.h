/* SPDX-License-Identifier: MIT
 *
 * redlock/redlock.h - the whole C API: distributed locks through N independent Redis or Valkey masters, for gateways
 * that share one piece of hardware. C99 and C++11. Includes neither uv.h nor cJSON.h.
 *
 * I want to ...                         call                                                             section
 *   take a lock, and wait for it        redlock_acquire_async() or redlock_acquire()                           6
 *   try once                            the same with wait_ms = REDLOCK_TRY_ONCE                               6
 *   know what a wait is for             REDLOCK_F_TELL_WAITING, event WAITING; redlock_describe()           6, 3
 *   know why a blocking call failed     opts.report                                                            6
 *   see log lines on stderr             redlock_log_stderr()                                                   3
 *   check before I touch the device     redlock_check()                                                        7
 *   know until when the lock is valid   redlock_validity_ms(), redlock_deadline_ns()                           7
 *   renew by hand                       REDLOCK_F_NO_RENEW; redlock_extend_async() or redlock_extend()         6
 *   let go                              redlock_release_async() or redlock_release(); redlock_cancel()         6
 *   lock several resources at once      redlock_acquire_async() or redlock_acquire(), with count above 1       6
 *   let the device refuse a late write  REDLOCK_F_FENCING; redlock_fencing_token(), redlock_fence_check()      9
 *   have a timer take the device away   redlock_deadline_ns(); examples/deadline_guard.c                       7
 *   run on my libuv loop                redlock_create_on_loop()                                               5
 *   run in any other loop               redlock_create_polled(), redlock_fd(), redlock_process()               5
 *   run in a thread, and block          redlock_create()                                                       5
 *   configure from JSON                 redlock_config_load_file(), redlock_config_load_json()                 4
 *   see the state of the masters        redlock_master_status(), redlock_status_json(); event MASTER        8, 3
 *   begin a new site                    redlock_commission()                                                   7
 *   get another set of masters          redlock_reconfigure(), once for the whole site             redlock/site.h
 *
 * What a lock promises. Two clients never hold one resource at the same time, while clocks run at nearly the same rate
 * (each within 0.5 %) and no master's wall clock is stepped forward (redlock_sim, test/spec/safety.cpp,
 * test/model/lock.pml).
 *  - The validity counts from before the first byte was sent (test/spec/safety.cpp). Neither a pause nor a suspend that
 *    the kernel counts makes the validity longer (test/unit/test_clock.cpp, test/scenario/clock.txt,
 *    test/machine/run.py). A holder that is paused past the end of the validity must not touch the device any more. So
 *    call redlock_check() before each device transaction, with the longest time that the transaction takes.
 *    Events are hints and may be late: redlock_check() decides.
 *  - A master that may have forgotten keys takes part in no quorum until every lock granted before has ended. A master
 *    may have forgotten keys when it restarted, was flushed, changed its role, or is another server now. This rule is
 *    the guard, which is on unless the configuration says otherwise (test/integration/test_guard.cpp, test_roles.cpp,
 *    test/model/guard.pml).
 *  - One server under two names has one vote (test_guard.cpp).
 *  - A lock's master should have no replica. With a replica, the master's replication id may change without a loss.
 *    The guard cannot tell this from a loss, and watches the master again (REPLID).
 *  - A master whose wall clock is stepped or runs off rate has no vote for a guard time, from the next look at the
 *    clock on. A held lock that needed the vote is LOST (test/integration/test_server_clock.cpp).
 *  - No key is left behind, also on masters that were silent (test/scenario/debts.txt,
 *    test/integration/test_lock_faults.cpp). There are three exceptions: the client may not end its own old connections
 *    (CLIENT KILL); the client knows no run id ("guard": "off"); or another process answers at the address while the
 *    old one lives on. There a SET may be executed more than a ttl after the next connection was up. The key of that
 *    SET belongs to nobody, and stays for its ttl (test_strays.cpp).
 * What a lock cannot promise. Exclusion ends with:
 *  - A pause between redlock_check() and the device. Use a fencing token, or what examples/deadline_guard.c does.
 *  - A suspend of less than a second, where the kernel measures suspends by a real-time clock in whole seconds, as on
 *    PCs: such a suspend may count as nothing, and no clock tells of it. Release the locks before the machine suspends
 *    (test/machine/README.md).
 *  - A master's wall clock that is stepped forward between two looks at it, since Redis expires keys by the wall clock.
 *    The looks are max(timing.max_ttl_ms / 6, 500 ms) apart.
 *  - Keys that are deleted by hand; SWAPDB; keys that were evicted before a changed policy was noticed.
 *  - Data that are replaced inside a running server (DEBUG RELOAD NOSAVE, DEBUG LOADAOF).
 *  - A server or a gateway that is restored from a snapshot of its machine; a gateway in a guest that its hypervisor
 *    stops; guests that are cloned or restored with the same boot id.
 *  - A role cycle of a master without replicas between two looks at the master: a replica attaches, is promoted, passes
 *    its data on by a partial resynchronization, and the master is promoted again.
 *  - A proxy that changes servers behind a connection.
 *  - A master that lies: with any odd number of masters one that grants a key twice makes two holders
 *    (test/spec/liars.cpp).
 *  - "guard": "weak", where a server refuses INFO: a restart from an old snapshot, a role cycle whose new data are a
 *    copy, and one server listed twice. "guard": "off": everything that the guard is for.
 * Section 9 says what a fencing token promises, and what not. test/CLAIMS.md lists all claims with their tests.
 * examples/site/README.md says what the guard costs.
 *
 * Conventions
 *  1. Functions return 0 or a positive result when all is well, else one of the frozen negative REDLOCK_E_* numbers.
 *  2. Times are milliseconds, in fixed-width integers, unless the name ends in _ns. Validity is rounded down. Waits are
 *     rounded up.
 *  3. A redlock_lock_t is a value, not a pointer: copy the handle, keep the handle, forget the handle. A handle names
 *     one acquire of its client for ever. When that acquire has ended, the handle is stale, which is an error. A stale
 *     handle never reaches somebody else's lock. Another client, also one created later, has handles of its own with
 *     the same numbers. So never hand a client the handle of another client: the handle may name a different lock
 *     there.
 *  4. Structs that you fill or receive start with their size. Use the initializers. New fields are only ever appended,
 *     and 0 means default. Inputs (configuration, names, options) are copied before the call returns.
 *  5. Threads: every function says [own], [any], [block] or [setup].
 *       [own]   Loop and polled mode: only on the client's thread, which is the one that runs the loop or calls
 *               redlock_process(), and before that the one that created the client. Elsewhere REDLOCK_E_THREAD.
 *               Thread mode: any thread. The call may wait for a turn of the client's thread, but never for the network
 *               or for a callback. In every mode also inside callbacks.
 *       [any]   Any thread in every mode, also inside callbacks. The call takes no lock and does not wait.
 *       [block] Thread mode only, any thread but the client's own. The call waits for an event. In loop and polled mode
 *               REDLOCK_E_NO_BLOCKING.
 *       [setup] Works on its arguments only. One thread at a time per object.
 *     Call nothing after CLOSED, and nothing once redlock_destroy() has returned: the client is gone then.
 *     In a forked child every call on a client returns REDLOCK_E_FORKED and sends nothing. Do not run the client's loop
 *     in the child either: input for the parent would keep the child spinning. On Linux 4.14 and later the library also
 *     notices a child of _Fork() or of a bare clone(). The library never notices a child that shares the parent's
 *     memory (vfork(), CLONE_VM): let such a child call nothing here.
 *  6. Event callbacks run in uv_run(), in redlock_process() or on the client's own thread, according to the mode. They
 *     run after the library's state is final, without a lock held, and never from inside the call that started
 *     something. The clock is read before each callback: a lock that expired while another callback ran is never told
 *     ACQUIRED or RENEWED. In loop mode callbacks run in the prepare phase. With UV_RUN_ONCE the loop still waits for
 *     its next event after them, unless the callback calls uv_stop().
 *  7. After create nothing is allocated, except by the system's resolver for masters given by host name, and by the TLS
 *     library while it connects.
 *  8. The library never prints, aborts, raises SIGPIPE or installs a signal handler. Only calls marked [block] block.
 *     Secrets appear in no event, status, error or log.
 *
 * Ways to run a client
 *   loop mode    redlock_create_on_loop   on your libuv loop; no thread, no lock
 *   polled mode  redlock_create_polled    one descriptor for poll, epoll, uloop, sd-event, GLib; no thread, no lock
 *   thread mode  redlock_create           a thread of its own; blocking calls, and asynchronous ones from any thread
 *
 * Which call may be made where: "yes", or the error that it returns (REDLOCK_E_...).
 *
 *                            loop mode               polled mode             thread  inside a callback, by mode
 *  function                  own         other       own         other       any     loop        polled      thread
 *  ------------------------- ----------- ----------- ----------- ----------- ------- ----------- ----------- --------
 *  redlock_acquire           NO_BLOCKING NO_BLOCKING NO_BLOCKING NO_BLOCKING yes     NO_BLOCKING NO_BLOCKING DEADLOCK
 *  redlock_extend            NO_BLOCKING NO_BLOCKING NO_BLOCKING NO_BLOCKING yes     NO_BLOCKING NO_BLOCKING DEADLOCK
 *  redlock_release           NO_BLOCKING NO_BLOCKING NO_BLOCKING NO_BLOCKING yes     NO_BLOCKING NO_BLOCKING DEADLOCK
 *  redlock_destroy           NO_BLOCKING NO_BLOCKING NO_BLOCKING NO_BLOCKING yes     NO_BLOCKING NO_BLOCKING DEADLOCK
 *  redlock_acquire_async     yes         THREAD      yes         THREAD      yes     yes         yes         yes
 *  redlock_cancel            yes         THREAD      yes         THREAD      yes     yes         yes         yes
 *  redlock_extend_async      yes         THREAD      yes         THREAD      yes     yes         yes         yes
 *  redlock_release_async     yes         THREAD      yes         THREAD      yes     yes         yes         yes
 *  redlock_fence_init        yes         THREAD      yes         THREAD      yes     yes         yes         yes
 *  redlock_suspended         yes         THREAD      yes         THREAD      yes     yes         yes         yes
 *  redlock_commission        yes         THREAD      yes         THREAD      yes     yes         yes         yes
 *  redlock_commission_master yes         THREAD      yes         THREAD      yes     yes         yes         yes
 *  redlock_status            yes         THREAD      yes         THREAD      yes     yes         yes         yes
 *  redlock_master_status     yes         THREAD      yes         THREAD      yes     yes         yes         yes
 *  redlock_status_json       yes         THREAD      yes         THREAD      yes     yes         yes         yes
 *  redlock_close_async       yes         THREAD      yes         THREAD      NOTSUP  yes         yes         NOTSUP
 *  redlock_process           NOTSUP      NOTSUP      yes         THREAD      NOTSUP  NOTSUP      DEADLOCK    NOTSUP
 *  redlock_timeout_ms        NOTSUP      NOTSUP      yes         THREAD      NOTSUP  NOTSUP      yes         NOTSUP
 *  redlock_fd                NOTSUP      NOTSUP      yes         yes         NOTSUP  NOTSUP      yes         NOTSUP
 *  redlock_check             yes         yes         yes         yes         yes     yes         yes         yes
 *  redlock_validity_ms       yes         yes         yes         yes         yes     yes         yes         yes
 *  redlock_deadline_ns       yes         yes         yes         yes         yes     yes         yes         yes
 *  redlock_fencing_token     yes         yes         yes         yes         yes     yes         yes         yes
 *
 *  redlock_create*: any thread; in loop mode the thread that owns the loop; also inside a callback of another client.
 *  redlock_config_* and redlock_memory_size: one thread at a time for each configuration.
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
#define REDLOCK_VERSION_MINOR 2
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

/* The name of what is locked: 1 .. REDLOCK_RESOURCE_MAX bytes, any bytes. The resource's key on the masters is
 * key_prefix and the name. Keys that begin with redlock:{key_prefix}: are the library's own: a name that makes such a
 * key is refused with RESERVED. */
typedef struct redlock_resource_s {
  const void *data;
  uint32_t size; /* bytes */
} redlock_resource_t;

/* A resource from a NUL-terminated name. The name must outlive only the call that the resource is passed to. */
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
  X(DEADLOCK, -24, "a blocking call from a callback")                                               \
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
  X(NO_BLOCKING, -37, "this mode has no blocking calls: create the client with redlock_create()")   \
  /* one master: why it gave no vote, or is not up */                                               \
  X(RESOLVE, -50, "the host name cannot be resolved")                                               \
  X(CONNECT, -51, "cannot be connected to")                                                         \
  X(DISCONNECTED, -52, "the connection broke")                                                      \
  X(NODE_TIMEOUT, -53, "no answer within node_timeout_ms")                                          \
  X(SUSPECT, -54, "has not answered older requests yet")                                            \
  X(NO_ROOM, -55, "too much is unanswered already")                                                 \
  X(AUTH, -56, "user name or password was refused")                                                 \
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
  X(REFUSED, -76, "the connection was refused: nothing listens there, or a firewall rejects it")    \
  X(CONNECT_TIMEOUT, -77, "the connection timed out")                                               \
  X(UNREACHABLE, -78, "the host or its network cannot be reached")                                  \
  X(AUTH_MISSING, -79, "wants a password, and the configuration has none")                          \
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

/* One master over TLS. A library without TLS returns none of these, and has neither their names nor their texts. */
#define REDLOCK_TLS_ERROR_MAP(X)                                                                    \
  X(TLS_NONE, -100, "speaks no TLS: is redis:// meant, or another port?")                           \
  X(TLS_ONLY, -101, "speaks TLS only: is rediss:// meant, or another port?")                        \
  X(TLS_AUTHORITY, -102, "its certificate is of no authority in tls.ca_file")                       \
  X(TLS_EXPIRED, -103, "its certificate has expired")                                               \
  X(TLS_EARLY, -104, "its certificate is not valid yet: is this machine's clock set?")              \
  X(TLS_NAME, -105, "its certificate is for another name")                                          \
  X(TLS_PIN, -106, "its key is none of tls.pin")                                                    \
  X(TLS_CLIENT_CERT, -107, "wants a client certificate, and the configuration has none")            \
  X(TLS_CLIENT_REFUSED, -108, "refused the client certificate")                                     \
  X(TLS_COMMON, -109, "has no TLS version or no cipher in common with this client")                 \
  X(TLS_BROKEN, -110, "broke the rules of TLS")                                                     \
  X(TLS_FILE, -111, "a file of the TLS settings cannot be read, is no PEM or fits no other, or others can read the key")

#define REDLOCK_ERROR_ENUM(name, number, text) REDLOCK_E_##name = number,
enum redlock_err {
  REDLOCK_OK = 0,
  REDLOCK_ERROR_MAP(REDLOCK_ERROR_ENUM) REDLOCK_TLS_ERROR_MAP(REDLOCK_ERROR_ENUM) REDLOCK_E_LAST_ = -199
};

/* [any] An English sentence for a result code: a static string, also for a number that is no code. */
REDLOCK_API const char *redlock_strerror(int err);
/* [any] The name of a result code for logs and JSON, e.g. "REDLOCK_E_LOCKED". Names never change. 0: "REDLOCK_OK". A
 * number that is no code: "REDLOCK_E_UNKNOWN". */
REDLOCK_API const char *redlock_err_name(int err);
/* [any] REDLOCK_VERSION_NUM of the library that runs, and the same version as "0.2.0". With TLS its library follows:
 * "0.2.0+openssl", "0.2.0+mbedtls". */
REDLOCK_API uint32_t redlock_version(void);
REDLOCK_API const char *redlock_version_string(void);

/* ---- 3. Events ------------------------------------------------------------------------------------------------ */

enum redlock_event_type {
  /* Each acquire gets exactly one of these two: */
  REDLOCK_EV_ACQUIRED = 1, /* validity_ms is left */
  REDLOCK_EV_FAILED = 2,   /* terminal; err: LOCKED, NO_QUORUM, GUARD, TOO_SLOW, TIMEOUT, CANCELED, LOST (the lock
                            * expired, or the clock jumped, before this event), FENCE_UNKNOWN, FENCE_RANGE (no
                            * larger number is left: at once, whatever wait_ms says; or a master that is needed told a
                            * number above 2^48 that no other master confirms) */
  /* Of a held lock: */
  REDLOCK_EV_RENEWED = 3,  /* an extend round was won; validity_ms is left */
  REDLOCK_EV_AT_RISK = 4,  /* an extend round was lost, err says why; the lock is as valid as before: validity_ms */
  REDLOCK_EV_LOST = 5,     /* terminal; the validity is over, the clock jumped, or so many masters have lost the key
                            * that no quorum is left. The event comes as soon as those masters say so, at the latest
                            * after a third of the ttl. redlock_check() has failed since. Keys that are left are deleted
                            * when the validity would have ended */
  REDLOCK_EV_RELEASED = 6, /* terminal; the deletes are queued to every master that was sent anything */
  /* Of the client: */
  REDLOCK_EV_MASTER = 7,   /* master, state, err: UP; GUARDED, also with another reason; SUSPECT; DOWN, once for each
                            * outage. Other states are passed through within milliseconds: only redlock_master_status()
                            * and the log show them, and each new reason of a master that stays down */
  REDLOCK_EV_CLOSED = 8,   /* the last event; failed counts the deletes that were not answered (unpaid debts) */
  /* Of an acquire with REDLOCK_F_TELL_WAITING, while it waits: */
  REDLOCK_EV_WAITING = 9   /* cause says what for. Comes as soon as the cause is known, at each change of the cause and
                            * every 5 s, and never after ACQUIRED or FAILED. The cause is known when enough masters are
                            * watched, when each master was tried once, or when a round was lost to others */
};
/* Later versions may add types: ignore a type that you do not know. */

/* What an acquire waits for, or waited for when it failed. */
enum redlock_cause {
  REDLOCK_CAUSE_NONE = 0,
  REDLOCK_CAUSE_HELD = 1,    /* somebody else holds the resource, or another acquire of this client comes first */
  REDLOCK_CAUSE_GUARD = 2,   /* the masters that vote are no quorum, but are one together with those that are watched */
  REDLOCK_CAUSE_TOO_FEW = 3, /* too few masters can be reached, or can vote */
  REDLOCK_CAUSE_CHANGE = 4,  /* a change of the masters is under way (redlock/site.h) */
  REDLOCK_CAUSE_NEVER = 5    /* FAILED only: masters that cannot be admitted as things stand leave no quorum of others.
                              * master_err is the reason of one of them */
};

#define REDLOCK_GUARD_UNKNOWN (-1)

enum redlock_master_state {
  REDLOCK_MASTER_DOWN = 1,       /* not connected, err says why; the client tries again by itself */
  REDLOCK_MASTER_CONNECTING = 2, /* resolving or connecting */
  REDLOCK_MASTER_GREETING = 3,   /* connected; HELLO, AUTH and scripts are being exchanged */
  REDLOCK_MASTER_UP = 4,         /* votes */
  REDLOCK_MASTER_SUSPECT = 5,    /* has an unanswered request older than node_timeout_ms: gets deletes only */
  REDLOCK_MASTER_GUARDED = 6     /* connected, but the guard does not let it vote; err says why */
};

/* What a person needs beside the numbers of an event. Valid during the callback. */
typedef struct redlock_detail_s {
  uint32_t size;             /* sizeof(redlock_detail_t) in the library that calls */
  uint32_t masters;          /* N */
  uint32_t quorum;           /* Q */
  uint32_t voting;           /* masters that vote now */
  uint32_t watched;          /* masters that the guard watches now */
  uint32_t max_ttl_ms;       /* timing.max_ttl_ms of this client */
  uint32_t their_masters;    /* N and timing.max_ttl_ms of the configuration that the record at `address` names, if */
  uint32_t their_max_ttl_ms; /* the error of the master is FINGERPRINT; else 0. 0 also: the record says neither */
  int64_t to_go_ms;          /* WAITING, FAILED: until the guard will have admitted a quorum, or until the key is gone
                              * on so many masters if nobody renews it. REDLOCK_GUARD_UNKNOWN: not known */
  const char *name;          /* of the master that the event, or master_err, is about; "": none */
  const char *address;       /* its address, as in redlock_master_status_t; "": none */
  const char *holder;        /* held: the client_name in the value, which is the writer's claim, escaped as \xNN; or "a
                              * foreign value", one that no client of this library wrote. "": not known, or not asked
                              * for (REDLOCK_F_TELL_WAITING, or a report) */
} redlock_detail_t;

typedef struct redlock_event_s {
  uint32_t size;        /* sizeof(redlock_event_t) in the library that calls */
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
  int64_t guard_ms;     /* FAILED(GUARD), WAITING for the guard: until the guard will have admitted a quorum. MASTER:
                         * until the guard admits this master. REDLOCK_GUARD_UNKNOWN: no watch is under way that would
                         * end the time. Else 0 */
  uint64_t token;       /* ACQUIRED, RENEWED, AT_RISK: the fencing token; 0: acquired without REDLOCK_F_FENCING */
  uint32_t flags;       /* REDLOCK_EV_F_* */
  int32_t cause;        /* WAITING, FAILED: enum redlock_cause; else 0 */
  const redlock_detail_t *detail; /* WAITING, FAILED, LOST, AT_RISK, MASTER; else NULL */
} redlock_event_t;

#define REDLOCK_EV_F_FLOORED (1u << 0) /* the token depends on the masters' wall clocks (section 9) */

/* user: from the options of the acquire, or from redlock_config_set_event(). The event is valid during the call. After
 * the callback of FAILED, LOST or RELEASED has returned, the lock's slot is free and the handle is stale. */
typedef void (*redlock_event_fn)(redlock_t *rl, const redlock_event_t *event, void *user);

/* [any] One English sentence, without a full stop, for a person: what happened, or what an acquire waits for, with the
 * numbers, masters and names of the event. E.g. "3 of 3 masters are new and watched: 27.3 s to go;
 * redlock_commission() skips it". At most size bytes with the NUL are written, and a cut sentence ends with "...".
 * Returns the length of the whole sentence, without the NUL. REDLOCK_TEXT_MAX + 1 bytes are always enough. Call it
 * during the event's callback: later the detail is gone. buf may be NULL if size is 0. */
#define REDLOCK_TEXT_MAX 255
REDLOCK_API size_t redlock_describe(const redlock_event_t *event, char *buf, size_t size);

/* One line about a change, with the name of the master or of the resource. Lines that come too fast are counted: " (12
 * more like this)". msg has no newline and is valid during the call. The callback must not call the client.
 * level: as in syslog.
 *   3 error    LOST. An acquire that cannot be granted as things stand. A call with an argument that is out of range
 *   4 warning  AT_RISK. Another acquire that failed (not at once for LOCKED) or waited for 5 s or more, with what
 *              for. A master that is down, silent or has no vote, with the reason. A jump of the clock. A password that
 *              others can read in a file; in a library with TLS also one that leaves this machine in the clear
 *   5 notice   the guard watches a master, with the time to go, and admits it; a master is up again; a fencing token
 *              was floored; deletes that were not answered until the end
 *   6 info     a master is up for the first time; the client is closed
 *   7 debug    every other change of a master's state
 * The callback runs on the client's thread. For a call with an argument out of range it runs on the thread that calls,
 * inside the call: in thread mode two threads may be in the callback at the same time. The library holds no lock
 * meanwhile, so the callback may take a mutex. */
typedef void (*redlock_log_fn)(int level, const char *msg, void *user);
/* [any] A ready-made redlock_log_fn: writes "redlock: ", the line and a newline to stderr, in one write(2). user: not
 * used. */
REDLOCK_API void redlock_log_stderr(int level, const char *msg, void *user);

/* ---- 4. Configuration ----------------------------------------------------------------------------------------- */

/* [setup] A configuration with every default and no master. NOMEM. Free the configuration with redlock_config_free(),
 * which accepts NULL. A client does not need its configuration after create. */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_new(redlock_config_t **out);
REDLOCK_API void redlock_config_free(redlock_config_t *cfg);

/* [setup] Add what a JSON object says (UTF-8, at most REDLOCK_CONFIG_BYTES_MAX bytes; keys below). Unknown and
 * duplicate keys are errors. A line that begins with // is a comment. On any error the configuration is left as it was.
 * CONFIG: not JSON, or a field is not valid: redlock_config_error() names the field, its value and its range.
 * NOTSUP: a field asks for TLS, which this build has not. SYSTEM: the file cannot be read. NOMEM.
 * A file must be a regular one, belong to root or to this user (geteuid), and be writable by neither group nor others,
 * else CONFIG. A link is followed, and its target is judged. A password in a file that others can read is a warning in
 * the client's log. */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_load_json(redlock_config_t *cfg, const char *json, size_t size);
REDLOCK_API REDLOCK_NODISCARD int redlock_config_load_file(redlock_config_t *cfg, const char *path);

/* [setup] What was wrong in the last call on cfg that failed, e.g. "masters[2].port: 70000 is not in 1..65535"; ""
 * when no call failed. The text is owned by cfg, is valid until the next call on cfg, and holds no secret. */
REDLOCK_API const char *redlock_config_error(const redlock_config_t *cfg);

/* [setup] One more master: redis://[user[:password]@]host[:port], or unix:///path/of/socket; rediss:// in the place of
 * redis:// is TLS. The host is a numeric IPv4 address, an IPv6 address without a zone in brackets, or a host name,
 * whose addresses are tried by turns. Port 6379 when none is given. %XX escapes are understood in user and password.
 * A client has 1 .. REDLOCK_MASTERS_MAX masters.
 * Recommended are 3, 5 or 7, or 1 where the failure of that master may stop the work. An even number costs a master and
 * buys nothing.
 * CONFIG: not such a URL, a part too long, more than REDLOCK_MASTERS_MAX, or the same address twice, with TLS or
 * without. NOTSUP: rediss://, in a build without TLS. */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_add_master(redlock_config_t *cfg, const char *url);

/* [setup] The same settings as in JSON, by dotted key, e.g. "timing.node_timeout_ms". CONFIG: no such key, or the value
 * is out of range. NOTSUP: tls.*, in a build without TLS.
 *
 *   key                         type range                              default
 *   client_name                 str  1..16 bytes of A-Z a-z 0-9 . _ -   the host name, cut
 *   key_prefix                  str  0..32 bytes                        ""
 *   username, password          str  for masters that name none         ""
 *   guard                       str  off, weak or strict                strict
 *                                    strict: a master votes only when every lock that it may have forgotten has ended;
 *                                    weak: the same, also for a server that refuses INFO. On such a server the guard
 *                                    does not see a restart from an old snapshot, a role cycle with a copy of the
 *                                    data, and a server that is listed twice
 *   fence                       str  floor or strict (section 9)        floor
 *   defaults.ttl_ms             u32  20 .. timing.max_ttl_ms            10000
 *   defaults.wait_ms            u32  1 .. 86400000                      10000
 *   defaults.retry_delay_ms     u32  1 .. 5000                          100
 *   defaults.wakeups            u32  0 .. 1                             1
 *   defaults.local_turns        u32  0 .. 1000                          1
 *   timing.max_ttl_ms           u32  20 .. 86400000                     30000
 *   timing.guard_wait_ms        u32  0 .. 172800000                     two guard times; 0: not at all
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
 *                                    the capacity of the table of claims: a place for each lock, held locks included,
 *                                    and one for each ended value with an unanswered delete. (The field debts of
 *                                    redlock_status_t counts the ended values alone.)
 *   limits.resource_bytes       u32  64 .. 256                          64     (the names of one acquire, together)
 *   limits.tx_bytes             u32  0 or 1024 .. 4194304               0
 *   limits.rx_bytes             u32  512 .. 65536                       512
 *   limits.stack_bytes          u32  32768 .. 8388608                   65536  (redlock_create only)
 *   tls.ca_file                 str  1..128 bytes                       none   (this and all below: with TLS only)
 *   tls.cert_file, tls.key_file str  1..128 bytes, both or neither      none
 *   tls.server_name             str  a host name or a numeric address   the host in the master's URL
 *   tls.min_version             str  1.2 or 1.3                         1.2
 *   tls.pin                     str  1..4 pins between commas, each     none
 *                                    "sha256:" and 64 hex digits
 * redlock/limits.h says what each key means and costs.
 *
 * JSON nests at the dots: { "client_name": "gw-17", "timing": { "node_timeout_ms": 50 }, "masters": [ ... ] }, where a
 * master is a URL or { "url": ..., "name": ..., "username": ..., "password": ..., "password_file": ..., "tls": ... }.
 *
 * TLS. A rediss:// master needs tls.ca_file or tls.pin, else the configuration is not valid: there is no store of
 * authorities by default, and nothing turns the check of a certificate off.
 *  - ca_file: PEM certificates of authorities. The master's certificate must lead to one of them. It and those between
 *    must be valid today (UTC), and its subjectAltName must hold server_name: a name as a DNS entry, whose first label
 *    may be *; a numeric address as an address entry. The common name does not count.
 *  - pin: SHA-256 of the master's public key (SubjectPublicKeyInfo, DER). Without ca_file the key alone decides, and
 *    neither dates nor names count: for gateways without a clock. With ca_file both must be right. In JSON also an
 *    array of strings.
 *  - cert_file, key_file: the client's own certificate, with those between it and its authority, and its key, PEM. They
 *    are given together.
 * The object "tls" of a master has the same names, and replaces value by value (cert_file and key_file together) what
 * stands in the common one. It is an error at a master whose URL does not begin with rediss://.
 * The files are read at create, and again when a connection begins and a file has changed, so they may be replaced
 * while clients run. A file that is broken then is reported, and what was read before stays in use. A relative path
 * begins at the working directory of each of these moments.
 * Masters keep their identity: rediss:// changes neither their names nor the record on them. */
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_u32(redlock_config_t *cfg, const char *key, uint32_t value);
REDLOCK_API REDLOCK_NODISCARD int redlock_config_set_str(redlock_config_t *cfg, const char *key, const char *value);

/* [setup] The callback for events of acquires that have no callback of their own, and for MASTER and CLOSED. NULL:
 * none. */
REDLOCK_API void redlock_config_set_event(redlock_config_t *cfg, redlock_event_fn fn, void *user);
/* [setup] The callback for log lines up to this level (section 3), e.g. redlock_log_stderr with level 5. NULL: no
 * lines. */
REDLOCK_API void redlock_config_set_log(redlock_config_t *cfg, redlock_log_fn fn, void *user, int level);

/* ---- 5. Life -------------------------------------------------------------------------------------------------- */

/* [setup] All the bytes that a client of this configuration needs, in whichever mode. 0: the configuration is not
 * valid, redlock_config_error() says why. In thread mode the thread's stack comes on top: limits.stack_bytes.
 * The sum, on 32-bit ARM. N masters; L, D, F, R, TX, RX: limits.locks, .debts, .in_flight, .resource_bytes, .tx_bytes,
 * .rx_bytes; P: the length of key_prefix.
 *   the client and its mode        2100
 *   what all masters are told      TX; if limits.tx_bytes is 0, 138 + S * (125 + P + R), where S is the lesser of L and
 *                                  (D - L) / (N - Q); at least 800 + 12 * P + 2 * R
 *   each master                    N * (960 + 16 * (F + 12) + RX), and the texts that name it and log it in
 *     and for what it alone is told 503 + 4 * P, or 407 + 6 * P + R, whichever is more
 *   each lock                      L * (440 + 8 * N + R)
 *   each claim                     D * (80 + R)
 *   random bytes                   1.25 * (20 * L + 8 * (N + 1)), at least 20 to spare
 *   the guard's and other texts    100 + 3 * P, and the client's name
 * On 64-bit processors the parts with pointers are up to twice as large.
 * In a build with TLS each master takes 240 bytes more. What the TLS library allocates is not in the sum: the files of
 * the settings from create on, and the records and keys of each connection. */
REDLOCK_API size_t redlock_memory_size(const redlock_config_t *cfg);

/* The six ways to create a client. Each sets *out, to NULL on error. The client then connects, and after a failure
 * connects again, by itself.
 * The calls whose names end in _in take the client's memory from the caller: at least redlock_memory_size() bytes,
 * aligned as malloc aligns. Leave the memory alone until the client is gone. The client is gone when the callback of
 * CLOSED has returned (loop mode), redlock_process() has returned CLOSED (polled mode), or redlock_destroy() has
 * returned 0 (thread mode). The other calls allocate and free the memory.
 * CONFIG: not valid, e.g. no master. CLOCK. SYSTEM. NOMEM. INVAL: a pointer is NULL, or mem is not aligned. TOOSMALL:
 * too few bytes. TLS_FILE: a file of the TLS settings cannot be used, redlock_config_error() says which. NOTSUP: the
 * TLS library has no TLS 1.3, which tls.min_version asks for. */

/* Thread mode: the client runs on a thread of its own, named "redlock", with a stack of limits.stack_bytes and all
 * signals blocked. Callbacks run on that thread. SYSTEM also: the thread cannot be started, e.g. because the stack is
 * too small for the program's thread-local variables. End the client with redlock_destroy(). */
REDLOCK_API REDLOCK_NODISCARD int redlock_create(redlock_t **out, const redlock_config_t *cfg);
REDLOCK_API REDLOCK_NODISCARD int redlock_create_in(void *mem, size_t size, redlock_t **out,
                                                    const redlock_config_t *cfg);

/* Polled mode: watch redlock_fd() for input in any loop, and call redlock_process() when the descriptor is readable.
 * End the client with redlock_close_async(). */
REDLOCK_API REDLOCK_NODISCARD int redlock_create_polled(redlock_t **out, const redlock_config_t *cfg);
REDLOCK_API REDLOCK_NODISCARD int redlock_create_polled_in(void *mem, size_t size, redlock_t **out,
                                                           const redlock_config_t *cfg);

/* Loop mode: the client lives on the caller's libuv loop, for as long as the loop runs. End the client with
 * redlock_close_async(). */
REDLOCK_API REDLOCK_NODISCARD int redlock_create_on_loop(redlock_t **out, const redlock_config_t *cfg,
                                                         struct uv_loop_s *loop);
REDLOCK_API REDLOCK_NODISCARD int redlock_create_on_loop_in(void *mem, size_t size, redlock_t **out,
                                                            const redlock_config_t *cfg, struct uv_loop_s *loop);

/* [any] Polled mode: the descriptor to watch for input (POLLIN; level-triggered). The descriptor is readable whenever
 * there is something to do: bytes, a deadline, also after a suspend, or a call of this API. It is the same one for the
 * client's life, and belongs to the client: do not read or close the descriptor. NOTSUP: another mode. FORKED. */
REDLOCK_API int redlock_fd(const redlock_t *rl);
/* [own] Polled mode: the timeout for poll(). 0: there is something to do. -1: wait for the descriptor, however long.
 * The descriptor alone is enough; the timeout only spares a wait that would end at once. NOTSUP: another mode. THREAD.
 * FORKED. (None of these three errors is -1.) */
REDLOCK_API int redlock_timeout_ms(const redlock_t *rl);
/* [own] Polled mode: do what is to be done, without waiting. All input is handled in this call, and events are
 * delivered in this call only. The thread that makes the first call is the client's thread from then on. 0. CLOSED: the
 * event CLOSED was delivered, and the client is gone. DEADLOCK: inside a callback. NOTSUP: another mode. THREAD.
 * FORKED. */
REDLOCK_API int redlock_process(redlock_t *rl);

/* [own] Loop and polled mode: end the client. Every pending acquire gets FAILED(CANCELED), and every held lock
 * RELEASED. The masters are given at most grace_ms (0 .. 60000) to answer the deletes. Then the connections are closed,
 * a name look-up that is under way is waited for, and CLOSED is delivered. After CLOSED the client is gone.
 * INVAL: grace_ms out of range. CLOSED: a second call. NOTSUP: thread mode. THREAD. FORKED. */
REDLOCK_API int redlock_close_async(redlock_t *rl, uint32_t grace_ms);

/* [block] Thread mode: end the client in the same way, and wait for the end. Threads that are blocked in a call return
 * with CANCELED, or with LOST where their acquire or extend had just been won. No other call may begin once this one
 * has. 0: CLOSED was delivered, the thread is joined, and the client is gone. This takes at most grace_ms (0 .. 60000)
 * and 2 s, also when masters are silent.
 * TIMEOUT: the thread cannot end yet, because a callback does not return or the system's resolver is looking up a
 * master's host name. When that is over, the thread ends by itself and frees the memory. No other callback begins, not
 * even that of CLOSED. If the client lies in memory of the caller's (_in), this call waits for the callback and the
 * resolver instead.
 * CLOSED: another thread is destroying the client. INVAL: grace_ms. DEADLOCK: inside a callback. NO_BLOCKING: not in
 * thread mode. FORKED: the child's copy of the client stays where it is. */
REDLOCK_API int redlock_destroy(redlock_t *rl, uint32_t grace_ms);

/* ---- 6. Locking ----------------------------------------------------------------------------------------------- */

#define REDLOCK_TRY_ONCE 0        /* one round: waits neither for other holders nor for the guard */
#define REDLOCK_WAIT_NONE REDLOCK_TRY_ONCE /* the former name */
#define REDLOCK_WAIT_FOREVER (-1) /* until the lock is acquired or the acquire is canceled */
#define REDLOCK_WAIT_DEFAULT (-2) /* defaults.wait_ms, and for the guard timing.guard_wait_ms */

#define REDLOCK_F_NO_RENEW (1u << 0) /* do not extend automatically; the masters are still asked every third of the ttl
                                      * whether they have the key */
#define REDLOCK_F_FENCING (1u << 1)  /* with a fencing token (section 9) */
#define REDLOCK_F_TELL_WAITING (1u << 2) /* event WAITING while the acquire waits */

/* How a blocking acquire ended, for programs without events. The caller owns the struct and sets size before the call.
 * The library writes the struct before the call returns, and never afterwards. */
typedef struct redlock_report_s {
  uint32_t size;       /* sizeof(redlock_report_t), set by the caller */
  int32_t err;         /* the result of the call */
  int32_t cause;       /* enum redlock_cause: what the acquire waited for last */
  int32_t master_err;  /* the first cause given by a master in the last round; 0: none */
  uint32_t granted;    /* votes of the last round */
  uint32_t refused;
  uint32_t failed;
  uint32_t rounds;     /* acquire rounds */
  int64_t guard_ms;    /* as in redlock_event_t */
  char holder[REDLOCK_HOLDER_MAX + 1]; /* as in redlock_detail_t */
  char text[REDLOCK_TEXT_MAX + 1];     /* the sentence of redlock_describe(). Of an argument that is out of range: which
                                        * one, e.g. "ttl_ms 40000 is above timing.max_ttl_ms 30000" */
} redlock_report_t;
#define REDLOCK_REPORT_INIT {sizeof(redlock_report_t), 0, 0, 0, 0, 0, 0, 0, 0, "", ""}

typedef struct redlock_acquire_opts_s {
  uint32_t size;            /* sizeof, set by REDLOCK_ACQUIRE_OPTS_INIT */
  uint32_t flags;           /* REDLOCK_F_* */
  uint32_t ttl_ms;          /* 20 .. timing.max_ttl_ms; 0: defaults.ttl_ms */
  int32_t wait_ms;          /* REDLOCK_WAIT_DEFAULT, REDLOCK_TRY_ONCE, REDLOCK_WAIT_FOREVER, or a budget for the whole
                             * call */
  uint32_t min_validity_ms; /* a round that is won with less than this left is TOO_SLOW; 0: any */
  uint32_t max_hold_ms;     /* no extend carries the validity past this time, counted from the start of the won round;
                             * 0: no limit */
  uint32_t retry_delay_ms;  /* 1 .. 5000; 0: defaults.retry_delay_ms */
  uint32_t reserved;        /* 0 */
  redlock_event_fn callback; /* NULL: the callback of the configuration */
  void *user;
  redlock_report_t *report;  /* redlock_acquire() only: NULL, or where to write how the call ended. Ignored by
                              * redlock_acquire_async() */
} redlock_acquire_opts_t;

#if defined(__cplusplus)
#define REDLOCK_ACQUIRE_OPTS_INIT \
  redlock_acquire_opts_t{sizeof(redlock_acquire_opts_t), 0, 0, REDLOCK_WAIT_DEFAULT, 0, 0, 0, 0, nullptr, nullptr, \
                         nullptr}
#else
#define REDLOCK_ACQUIRE_OPTS_INIT \
  {sizeof(redlock_acquire_opts_t), 0, 0, REDLOCK_WAIT_DEFAULT, 0, 0, 0, 0, NULL, NULL, NULL}
#endif

/* How long an acquire waits.
 *   REDLOCK_WAIT_DEFAULT  defaults.wait_ms for other holders, and for masters that cannot be reached (FAILED(LOCKED),
 *                         FAILED(NO_QUORUM)). While the voting masters are no quorum, but are one together with those
 *                         that the guard watches, the time counts against timing.guard_wait_ms instead, in all
 *                         (FAILED(GUARD)).
 *   REDLOCK_TRY_ONCE      one round. On a new client the round begins when each master's first connection attempt and
 *                         first reading have ended: at most twice timing.connect_timeout_ms.
 *   REDLOCK_WAIT_FOREVER  no bound.
 *   more than 0           a bound of the whole call, whatever the cause.
 * No acquire waits while masters that cannot be admitted as things stand leave no quorum of others: FAILED at once,
 * with cause REDLOCK_CAUSE_NEVER. Such a master belongs to another configuration, and no change of masters is under way
 * (FINGERPRINT), is no standalone master (MODE), may evict keys (MAXMEMORY), does not tell its identity (IDENTITY), or
 * denies a permission that the guard needs (NOPERM). */

/* [own] Ask for a resource (Redlock page, "The Redlock algorithm"), or for up to REDLOCK_RESOURCES_PER_LOCK_MAX at
 * once, in any order: all of them or none, with one handle and one validity. A master grants all names in one step or
 * none of them, and an acquire that waits holds none of its names. So two acquires that name the same resources in
 * another order never wait for each other. The SETs leave together in the next turn of the loop.
 * ACQUIRED or FAILED follows, never from inside this call. On a new client an acquire first waits until a quorum is up
 * or a first connection attempt to each master has ended: at most twice timing.connect_timeout_ms, or its wait budget.
 * opts may be NULL: all defaults. *lock is the handle, 0 on error.
 * INVAL: a resource, count, an option or the size is out of range; a resource is named twice; the names together take
 * more than limits.resource_bytes. The log says which. RESERVED: one of the names makes a key of the library's own.
 * TABLE_FULL. CLOSED. THREAD. FORKED. */
REDLOCK_API REDLOCK_NODISCARD int redlock_acquire_async(redlock_t *rl, const redlock_resource_t *resources,
                                                        uint32_t count, const redlock_acquire_opts_t *opts,
                                                        redlock_lock_t *lock);

/* [own] Give up an acquire before its ACQUIRED is delivered: the acquire gets FAILED(CANCELED), and its keys are
 * deleted. 0: given up, or the acquire has ended before. BUSY: already acquired; release the lock instead. STALE:
 * never issued. THREAD. FORKED. */
REDLOCK_API int redlock_cancel(redlock_t *rl, redlock_lock_t lock);

/* [own] Extend a held lock: ttl_ms from now (20 .. timing.max_ttl_ms; 0: the ttl of the acquire). RENEWED or AT_RISK
 * follows; LOST or RELEASED, if the lock ends first. The validity never gets shorter. An extend never makes a key again
 * that is gone. (Redlock page, "Making the algorithm more reliable: Extending the lock".)
 * INVAL: ttl_ms. STALE. NOT_HELD: not acquired yet. LOST: the lock has expired, or a redlock_check() on some thread has
 * found its validity over. BUSY: an extend round is open. HOLD_LIMIT. CLOSED. THREAD. FORKED. */
REDLOCK_API REDLOCK_NODISCARD int redlock_extend_async(redlock_t *rl, redlock_lock_t lock, uint32_t ttl_ms);

/* [own] Let go. From now on the lock is not held. The compare-and-delete goes to every master that was sent anything
 * (Redlock page, "Releasing the lock"). Where a connection breaks, the next connection sends the delete again. RELEASED
 * follows in the next turn of the loop. Before ACQUIRED this call cancels the acquire. 0 also when the lock has ended.
 * STALE: never issued. THREAD. FORKED. */
REDLOCK_API int redlock_release_async(redlock_t *rl, redlock_lock_t lock);

/* The next three calls block: thread mode, from any thread but the client's own. Events are delivered as always. When a
 * call returns, the callback of the event that the call waited for has returned. All three may return:
 * CANCELED: released, canceled or destroyed meanwhile. DEADLOCK: inside a callback. NO_BLOCKING: not in thread mode.
 * SYSTEM: no condition variable. */

/* [block] Wait until the resource is acquired, or until wait_ms is over as redlock_acquire_async() counts it. 0: *lock
 * is held. On any error *lock is 0 and nothing is held. The errors are those of redlock_acquire_async() and of FAILED:
 * LOCKED, NO_QUORUM, GUARD, TOO_SLOW, TIMEOUT, CANCELED, LOST, FENCE_UNKNOWN, FENCE_RANGE.
 * LOST also: the lock was ACQUIRED, but the callback of that event, which comes first, took longer than the validity or
 * let the lock go. LOST or RELEASED is delivered besides.
 * TIMEOUT also: a callback has kept the client's thread for 2 s beyond the budget. The acquire was given up, and its
 * FAILED is delivered when the callback returns. */
REDLOCK_API REDLOCK_NODISCARD int redlock_acquire(redlock_t *rl, const redlock_resource_t *resources, uint32_t count,
                                                  const redlock_acquire_opts_t *opts, redlock_lock_t *lock);
/* [block] 0: RENEWED. On an error the lock is as valid as before. The errors are those of redlock_extend_async() and of
 * AT_RISK. LOST: the lock ended before this call could return. TIMEOUT: a callback has kept the client's thread, as
 * above; the extend may still be won. */
REDLOCK_API REDLOCK_NODISCARD int redlock_extend(redlock_t *rl, redlock_lock_t lock, uint32_t ttl_ms);
/* [block] 0: the lock is not held, and the deletes are on their way. The call does not wait for the masters' answers.
 * STALE: never issued. TIMEOUT: the lock is let go, but a callback keeps the client's thread from sending the
 * deletes. */
REDLOCK_API int redlock_release(redlock_t *rl, redlock_lock_t lock);

/* ---- 7. Holding: any thread, no I/O, no lock, two to four clock reads ------------------------------------------- */

/* [any] May the device be touched for the next need_ms? 0: yes, at least need_ms of validity are left. LOST: no, the
 * validity is over or the clock has jumped. After one LOST every later check on this handle fails. TOO_SLOW: the lock
 * is held, but less than need_ms is left. NOT_HELD: not acquired yet. STALE. FORKED. */
REDLOCK_API REDLOCK_NODISCARD int redlock_check(const redlock_t *rl, redlock_lock_t lock, uint32_t need_ms);
/* [any] Milliseconds of validity left, rounded down. 0: no longer held. Negative: NOT_HELD, STALE, FORKED. */
REDLOCK_API int64_t redlock_validity_ms(const redlock_t *rl, redlock_lock_t lock);
/* [any] The end of the validity as an absolute CLOCK_BOOTTIME time in ns, for timerfd or timer_create with
 * TIMER_ABSTIME (examples/deadline_guard.c). The time is computed anew at each call, so that slewing of the system
 * clock cannot make it late. Ask again after RENEWED: otherwise the timer fires at the end of the old validity. 0: no
 * longer held. Errors as redlock_validity_ms(). */
REDLOCK_API int64_t redlock_deadline_ns(const redlock_t *rl, redlock_lock_t lock);

/* [own] For a power manager on a machine whose kernel does not count suspend in CLOCK_BOOTTIME: tells the client that
 * the machine was suspended. Every held lock is LOST, and every open round starts anew. 0, CLOSED, THREAD, FORKED. */
REDLOCK_API int redlock_suspended(redlock_t *rl);

/* [own] For a new site, or after an outage. With this call the operator states that no lock of these keys is held and
 * that no other client is running. If the statement is wrong, two holders become possible.
 * A master is admitted at once, instead of being watched for a guard time (timing.max_ttl_ms and a percent), if the
 * master is reached and its state is read within twice timing.connect_timeout_ms from now. A master that is reached
 * later is watched: the statement does not vouch for what happened to that master meanwhile. The statement counts once
 * per master: a master that loses something afterwards is watched again. No configuration key does the same, since a
 * key would repeat the statement at each start.
 * 0, CLOSED, THREAD, FORKED. The call has no effect when the guard is off. */
REDLOCK_API int redlock_commission(redlock_t *rl);
/* [own] redlock_commission() for one master, by its index in the configuration. INVAL: there is no such master. */
REDLOCK_API int redlock_commission_master(redlock_t *rl, uint32_t master);

/* ---- 8. Seeing ------------------------------------------------------------------------------------------------ */

typedef struct redlock_status_s {
  uint32_t size;
  uint32_t masters;       /* N */
  uint32_t masters_up;    /* masters that vote now */
  uint32_t quorum;        /* Q = N/2 + 1 of the configured masters */
  uint32_t locks_held;
  uint32_t locks_pending; /* acquires not decided */
  uint32_t locks_max;     /* limits.locks */
  uint32_t debts;         /* ended values with an unanswered delete; held locks are not among them */
  uint32_t debts_max;     /* limits.debts, the capacity of the table of claims: held locks take places there too */
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
  uint64_t clock_jumps;   /* suspends and clock misreadings noticed, on this machine */
  uint64_t clock_steps;   /* steps of masters' wall clocks, and rates beyond the allowance */
  int64_t guard_ms;       /* until the guard will have admitted a quorum; 0: a quorum is admitted, or the guard is off;
                           * REDLOCK_GUARD_UNKNOWN: no watch is under way that would end the time */
} redlock_status_t;

typedef struct redlock_master_status_s {
  uint32_t size;
  uint32_t index;
  int32_t state;          /* enum redlock_master_state */
  int32_t err;            /* why the master is not up. If it is up: NOPERM while it refuses deletes, else the last error
                           * that it answered on this connection (NOSCRIPT apart); 0: none */
  uint32_t in_flight;     /* unanswered requests */
  uint32_t owed;          /* deletes of ended values that this master has not answered yet */
  uint32_t connects;      /* connections made */
  uint32_t resp3;         /* 1: the connection speaks RESP3 */
  uint32_t tracked;       /* 1: the server tells when a key that was read on this connection changes */
  uint64_t replies;
  uint64_t errors;        /* error replies */
  char name[REDLOCK_MASTER_NAME_MAX + 1];
  char address[REDLOCK_HOST_MAX + 8]; /* "10.0.0.11:6379", "[fd00::1]:6379", "/run/redis.sock" */
  int64_t guard_ms;       /* until the guard admits this master; 0: the master votes, or the guard is off;
                           * REDLOCK_GUARD_UNKNOWN: no watch is under way that would end the time */
} redlock_master_status_t;

/* [own] Fill *status, up to the size in its first field. INVAL: the size is too small for the first fields, or index is
 * out of range. THREAD. FORKED. */
REDLOCK_API int redlock_status(const redlock_t *rl, redlock_status_t *status);
REDLOCK_API int redlock_master_status(const redlock_t *rl, uint32_t index, redlock_master_status_t *status);
/* [own] The status of the client and of all masters as one JSON object, NUL-terminated. *size: in, the bytes of buf;
 * out, the bytes needed with the NUL. TOOSMALL: buf holds an empty string. INVAL. THREAD. FORKED.
 * Later versions may add fields. The fields, in the order in which they are written:
 *   schema            string   "redlock.status/1"
 *   version           string   redlock_version_string()
 *   quorum            number   masters that a lock needs
 *   even              boolean  the number of masters is even, which costs a master and buys nothing
 *   masters_up        number   masters that vote now
 *   guard_ms          number   milliseconds until the guard will have admitted a quorum; 0: it has, or is off; null: no
 *                              watch is under way that would end the time
 *   masters           array    one object for each master, in the order of the configuration:
 *     name            string
 *     address         string   "10.0.0.11:6379", "[fd00::1]:6379", "/run/redis.sock"
 *     state           string   down, connecting, greeting, up, suspect or guarded (enum redlock_master_state)
 *     err             string   as err in redlock_master_status_t, by its name, e.g. "REDLOCK_E_REFUSED"; null: none
 *     guard_ms        number   milliseconds until the guard admits this master; 0: it votes, is not connected, or the
 *                              guard is off; null: no watch is under way that would end the time
 *     in_flight       number   requests without an answer
 *     owed            number   deletes of ended values without an answer
 *     connects        number   connections made since create
 *     resp3           boolean  the connection speaks RESP3
 *     tracked         boolean  the server tells when a key that was read on this connection changes
 *     replies         string   replies since create, in decimal digits
 *     errors          string   error replies since create, in decimal digits
 *   locks             object
 *     held            number   locks held now
 *     pending         number   acquires not decided yet
 *     max             number   limits.locks: locks and acquires at most
 *   debts             object
 *     open            number   ended values with an unanswered delete
 *     max             number   limits.debts: values at most, those of held locks included
 *   counters          object   events since create, each a string of decimal digits:
 *     acquired, failed_locked, failed_no_quorum, failed_other    acquires, by how they ended
 *     rounds                                                     acquire rounds begun
 *     renewed, renew_failed                                      extend rounds won and lost
 *     released, lost                                             locks, by how they ended
 *     clock_jumps                                                suspends and jumps of this machine's clocks
 *     clock_steps                                                steps of masters' clocks, and rates too far off
 * A counter is a string because many JSON readers keep only 53 bits of a number. */
REDLOCK_API int redlock_status_json(const redlock_t *rl, char *buf, size_t *size);

/* ---- 9. Fencing tokens ---------------------------------------------------------------------------------------- */

/* A lock cannot stop a holder that is paused after its check and wakes up when somebody else holds the lock. A device
 * that compares a number can. With REDLOCK_F_FENCING each acquire gets a token. Hand the token to the device with each
 * write, and let the device refuse a token that is smaller than the largest one that the device has seen.
 *
 * Claimed, for the tokens of one resource under one key_prefix:
 *  1. A token is given once. It is larger than every token that was given before its acquire began, whatever clocks,
 *     pauses and the network do, while fewer than a quorum of masters have lost their counters since those were last
 *     written. With the guard on there may be any number of such losses, one after the other. (test/model/token.pml;
 *     redlock_sim, also in the runs where exclusion is off; test/integration/test_fence_scripts.cpp.)
 *  2. When too few masters that know the counter answer, the token is taken from the masters' wall clocks and flagged
 *     REDLOCK_EV_F_FLOORED. A floored token is larger than all tokens before it if those clocks agree and were not set
 *     back. Later tokens are larger than the floored one, but compared with the tokens before it they depend on the
 *     clocks just as much. An attempt that took a floor and then failed is reported to nobody. With "fence": "strict"
 *     the acquire fails with FENCE_UNKNOWN instead, unless redlock_fence_init() has allowed one floored token.
 *     (test/unit/test_fence.cpp, test/scenario/fencing.txt.)
 *  3. A token is never handed on: the next local waiter of the same client gets its own. (test/scenario/fencing.txt.)
 *  4. A device that compares refuses the write of a holder that was frozen between its check and its write.
 *     (test/integration/test_examples.cpp, which runs examples/demo.sh.)
 *  5. The token of several resources is one number, larger than every token given before for any of them. With
 *     "fence": "strict" each new resource among them needs redlock_fence_init(). (test/scenario/several.txt.)
 * Not claimed: that the lock excludes (the token is for when the lock does not); an order between acquires that overlap
 * in time; tokens without gaps; an order between resources or prefixes; anything against somebody who deletes or writes
 * the counters (the hash redlock:{prefix}:fence) and keeps the guard's record.
 * An acquire with a token takes one round trip when this client's guess of the counter is right, else two. Tokens are
 * 1 .. 2^63 - 1. A number above 2^48 must be confirmed by one master more than may lie (N - Q), to within 2^24. Else
 * the vote of its master has failed, and where that vote was needed the acquire fails with FENCE_RANGE. So one lying
 * master cannot use up the numbers (test/spec/liars.cpp). In floor mode tokens are of the size of milliseconds since
 * 1970, so a device needs 64 bits. */

/* [any] The token of a lock acquired with REDLOCK_F_FENCING, from ACQUIRED until the handle is stale. The token is
 * returned also when the validity is over: the device decides. 0, which redlock_fence_check() refuses: the lock has no
 * token, is not acquired yet, the handle is stale, the process is a forked child, or rl is NULL. */
REDLOCK_API uint64_t redlock_fencing_token(const redlock_t *rl, redlock_lock_t lock);

/* [own] "fence": "strict" only. Call this when the resource is new, or when the device that checks the resource's
 * tokens was reset: the next acquire of the resource by this client may take a token from the masters' clocks, once. 0.
 * INVAL: the resource. RESERVED: the resource makes a key of the library's own. TABLE_FULL: too many such permissions
 * wait to be used. CLOSED. THREAD. FORKED. */
REDLOCK_API REDLOCK_NODISCARD int redlock_fence_init(redlock_t *rl, const redlock_resource_t *resource);

/* [any] For firmware that owns the device; needs nothing but this header. *high_water is the largest token seen: 0 at
 * power-up, kept as long as the device keeps what the lock protects. One thread at a time. 0: take the write;
 * *high_water is now the token. (An equal token belongs to the same holder's next write.) FENCED: refuse the write, its
 * token is older. INVAL: 0 is no token. */
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
