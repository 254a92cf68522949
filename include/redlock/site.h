/* SPDX-License-Identifier: MIT
 *
 * redlock/site.h - changes the set of masters, or timing.max_ttl_ms, while clients run (redlock_reconfigure), takes
 * over masters that belong to another configuration (redlock_adopt), and asks a master anything (redlock_site_ask). The
 * header is for maintenance programs, which an operator runs: the program `redlock`, examples/reconfigure.c and
 * examples/adopt.c. No gateway needs the header.
 *
 * Link with libredlock_site.a and libredlock: redlock::site in CMake, redlock-site for pkg-config. Both must be of one
 * version, as redlock_version_string() tells it, with or without TLS. The conventions are those of redlock.h.
 */
#ifndef REDLOCK_SITE_H
#define REDLOCK_SITE_H

#include <redlock/redlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Another set of masters ----------------------------------------------------------------------------------- */

/* How far a call came. */
#define REDLOCK_WRITTEN_NOTHING 0
#define REDLOCK_WRITTEN_OLD 1  /* old masters were to be marked: those marked vote for nobody */
#define REDLOCK_WRITTEN_BOTH 2 /* new masters were to be given to the clients of new_cfg */
#define REDLOCK_WRITTEN_NEW 3  /* masters that are in new_cfg alone were to be marked */

typedef struct redlock_reconfigure_report_s {
  uint32_t size;        /* sizeof(redlock_reconfigure_report_t) */
  uint32_t written;     /* REDLOCK_WRITTEN_* */
  uint32_t old_masters; /* N of old_cfg */
  uint32_t old_needed;  /* Q of old_cfg: each step needs so many masters of old_cfg */
  uint32_t new_masters; /* N of new_cfg */
  uint32_t new_needed;  /* Q of new_cfg */
  /* One number per master, in the order of its configuration. 0: the master did what it was last asked to do. Where
   * nothing was written, 0 says that the master could have been written. Any other number says why not: RESOLVE,
   * CONNECT, AUTH, NODE_TIMEOUT, NOPERM, ROLE ...; FINGERPRINT: the master's record is of a third configuration;
   * CHANGING: the master bears the mark of another call; RECORD_LOST: the master has lost what this call wrote. */
  int32_t old_err[REDLOCK_MASTERS_MAX];
  int32_t new_err[REDLOCK_MASTERS_MAX];
} redlock_reconfigure_report_t;

/* [setup] Takes the site from the masters of old_cfg to those of new_cfg. The call blocks: make it on a thread that may
 * be blocked. It needs no client, runs none of your callbacks, and frees all the memory that it allocates.
 *
 * What it promises: no lock of a client of old_cfg overlaps with a lock of a client of new_cfg. Clients of old_cfg may
 * go on running. They keep a held lock until its validity ends, renew no lock (AT_RISK, then LOST), and get no lock any
 * more (GUARD; their masters say FINGERPRINT). Clients of new_cfg get their first lock a guard time after the call.
 *
 * What it does, in this order:
 *   1. connects to all masters of both configurations and reads their records;
 *   2. marks the masters that are in new_cfg alone: a marked master votes for nobody;
 *   3. marks the masters of old_cfg; a master of both sets counts for both. From here on nobody can lock;
 *   4. waits until every client must have seen the marks: a third of the old max_ttl_ms (1 s at least) and the drift.
 *      If the old max_ttl_ms is longer than the new one, the wait is longer by the difference;
 *   5. reads the marks again;
 *   6. gives the masters of new_cfg to the clients of new_cfg;
 *   7. reads which masters have taken step 6.
 * Each step but the wait takes at most timing.suspect_close_ms and twice timing.connect_timeout_ms, of the slower
 * configuration. At the end the call waits for a name look-up that is under way.
 *
 * Results
 * 0: done.
 * Above 0: done, but this number of masters of new_cfg could not be written. The clients of new_cfg have a quorum
 *   without those masters. Repeat the call when those masters are back.
 * On an error no locks overlap either.
 * NO_QUORUM: too few old or new masters answered. CHANGING: another call has marked a master since this one read it.
 *   RECORD_LOST: too few masters have kept their marks. The report says for all three which masters are at fault, and
 *   how far the call came:
 *     WRITTEN_NOTHING  nothing has changed; only step 1 ends so;
 *     WRITTEN_NEW      nothing has changed for the clients of old_cfg;
 *     WRITTEN_OLD      nobody can lock, if the old masters without a mark are no quorum;
 *     WRITTEN_BOTH     too few masters are known to be written for a quorum of new_cfg.
 *   Repeat the call, as often as necessary. Or undo the change: redlock_reconfigure(new_cfg, old_cfg, ...).
 *   A call that finds new_needed masters of new_cfg given to its clients already completes the others, and does not
 *   disturb clients that lock. Any other call begins anew.
 * FINGERPRINT: a master's record is of a third configuration. Either old_cfg is not what its clients use, or another
 *   change was begun there and neither ended nor undone. Nothing was written.
 * CONFIG: a configuration is not valid, its guard is off (its clients would not notice the change), key_prefix differs,
 *   or names and timing.max_ttl_ms are the same. redlock_config_error() of that configuration, or of new_cfg, says
 *   which.
 * INVAL: a configuration is NULL, or the size of the report is too small. NOTSUP: libredlock.so is of another version
 *   than libredlock_site.a. NOMEM. CLOCK. SYSTEM.
 * *report, which may be NULL, is filled in every case but INVAL and NOTSUP.
 *
 * One change at a time. A call that begins while another call is under way, anywhere, takes the site over. The earlier
 * call ends with CHANGING, unless it was done first. Two calls that begin at the same moment may both end with
 * CHANGING. If these two are opposite changes, they may leave a site on which nobody can lock. Then one operator alone
 * repeats the call whose new_cfg the gateways are to have. Two calls from one old_cfg to two different new_cfg, both
 * given up, may leave marks at which every call ends with FINGERPRINT. Then end all gateways, delete the key
 * redlock:{key_prefix}:meta on all masters, and start the gateways of one set.
 *
 * Start clients of new_cfg only when the call has returned. Until the call marks the masters that are in new_cfg alone,
 * those masters let clients of new_cfg in, if they are a quorum. From the marks until the end of the call they do not.
 *
 * Masters are compared by name. A new address or server under the same name is no change for this call: switch the old
 * server off first. The guard then treats the new server as one that has restarted.
 *
 * Leave no client of old_cfg behind. An old master that loses its data after the call has read its marks again lets
 * clients of old_cfg begin anew there.
 *
 * Fencing tokens go on: the next token of each resource is floored (redlock.h, section 9). With "fence": "strict" each
 * resource needs redlock_fence_init() once. */
REDLOCK_API REDLOCK_NODISCARD int redlock_reconfigure(const redlock_config_t *old_cfg, const redlock_config_t *new_cfg,
                                                      redlock_reconfigure_report_t *report);

/* ---- Masters of another configuration ------------------------------------------------------------------------- */

/* Flags of redlock_adopt(). REST_IS_GONE is the operator's statement about each other configuration of which too few
 * masters are given: the rest of its masters is gone for good, and no client will ever lock with them again. The call
 * cannot check that. If it is not true, those clients go on with what they have left, beside the clients of cfg. */
#define REDLOCK_ADOPT_REST_IS_GONE (1u << 0)

/* How far a call is, or came. */
#define REDLOCK_ADOPT_READ 0  /* reads the records; of the other configuration at hand nothing was written yet */
#define REDLOCK_ADOPT_MARK 1  /* marks masters: a marked master votes for nobody */
#define REDLOCK_ADOPT_WAIT 2  /* waits, and then reads the marks again */
#define REDLOCK_ADOPT_ENTER 3 /* gives the masters to the clients of cfg */
#define REDLOCK_ADOPT_DONE 4

typedef struct redlock_adopt_report_s {
  uint32_t size;              /* sizeof(redlock_adopt_report_t) */
  uint32_t step;              /* REDLOCK_ADOPT_* */
  uint32_t to_go_ms;          /* WAIT: milliseconds until the wait is over; else 0 */
  uint32_t masters;           /* N of cfg */
  uint32_t adopted;           /* masters that this call has given to the clients of cfg so far */
  /* The other configuration that is taken over, or could not be; 0 where no record names one: */
  uint32_t their_masters;     /* its N */
  uint32_t their_needed;      /* its Q */
  uint32_t their_max_ttl_ms;  /* its timing.max_ttl_ms */
  uint32_t their_found;       /* so many of its masters are among those of cfg, each a server of its own */
  /* One number per master, in the order of cfg. 0: the master belongs to cfg, or has no record, or did what it was last
   * asked to do. FINGERPRINT: the master's record is of another configuration, and the call has not taken the master
   * over. DUPLICATE: another master of cfg is the same server, or a copy of it, or neither tells its run id. CHANGING:
   * the master bears the mark of another call. RECORD_LOST: the master has lost what this call wrote. Any other number
   * says why the master could not be read or written: RESOLVE, CONNECT, AUTH, NODE_TIMEOUT, NOPERM, ROLE ... */
  int32_t err[REDLOCK_MASTERS_MAX];
} redlock_adopt_report_t;

/* Tells the progress of a call, on the thread that made the call: at each step, and about once a second of a wait. The
 * report is good until the callback returns. The masters are not served meanwhile, so return soon: a second is much. */
typedef void (*redlock_adopt_fn)(void *user, const redlock_adopt_report_t *report);

/* [setup] Takes into cfg those of its masters that carry the record of another configuration, for example the single
 * server of a test program. Clients of cfg refuse such a master (FINGERPRINT). The call blocks: make it on a thread
 * that may be blocked. It needs no client, runs no callback but `progress` (which may be NULL, and gets `user`), and
 * frees all the memory that it allocates. flags: 0 or REDLOCK_ADOPT_REST_IS_GONE. Where you have both configurations,
 * and want one to replace the other, call redlock_reconfigure().
 *
 * What it promises: when an adopted master votes for clients of cfg for the first time, every lock of the other
 * configuration's clients has ended, and these clients get no lock any more. They may go on running: they keep a held
 * lock until its validity ends, renew no lock (AT_RISK, then LOST), and their masters say FINGERPRINT. Clients of cfg
 * watch the adopted masters for a guard time, as after a restart: do not commission them (redlock_commission) before.
 * What it cannot promise: masters that belong to cfg, or have no record, may be a quorum of cfg by themselves. Then
 * clients of cfg lock with these before and during the call, beside the clients of the other configuration.
 *
 * A record holds no addresses. It names the other configuration's N, Q and timing.max_ttl_ms, and a hash of its
 * masters' names. So at least Q of that configuration's masters must be masters of cfg: different servers, each with
 * that record. Otherwise its clients might go on with the rest, and the call refuses, unless
 * REDLOCK_ADOPT_REST_IS_GONE is set.
 *
 * What it does, in this order:
 *   1. connects to all masters of cfg and reads their records. Masters that belong to cfg, and those without a record,
 *      are not written;
 *   2. marks the masters of the other configuration: from here on its clients get no lock;
 *   3. waits until each of its clients must have seen the marks: a third of its max_ttl_ms (1 s at least), and the
 *      largest drift that a configuration may have (REDLOCK_DRIFT_PPM_MAX, REDLOCK_DRIFT_FIXED_MS_MAX). With a
 *      max_ttl_ms of 30000 that is 13 s. If its max_ttl_ms is longer than that of cfg, the wait is longer by the
 *      difference;
 *   4. reads the marks again;
 *   5. gives the masters to the clients of cfg, and reads which have taken that.
 * If the masters name several other configurations, all are judged in step 1, and steps 2 to 5 follow for one after the
 * other. Each step but the wait takes at most timing.suspect_close_ms and twice timing.connect_timeout_ms. At the end
 * the call waits for a name look-up that is under way.
 *
 * Results
 * 0: no master of cfg belongs to another configuration (any more). There may have been nothing to do.
 * Above 0: the same, but for this number of masters, which could not be read or written, or are DUPLICATE. Repeat the
 *   call when those are back.
 * On an error:
 * NO_QUORUM: fewer than their_needed masters of the other configuration were found, or answered a later step; or no
 *   master of cfg could be read at all. CHANGING: another call of redlock_adopt() or redlock_reconfigure() has marked a
 *   master: that call is under way, or was given up. RECORD_LOST: too few masters have kept their marks. FINGERPRINT: a
 *   record is none that this version understands, or has become that of another configuration since it was read.
 *   The report says which masters are at fault, and how far the call came with the configuration that it names:
 *     READ        nothing has changed for that configuration;
 *     MARK, WAIT  nobody can lock with the masters that are marked;
 *     ENTER       too few masters are known to be given to the clients of cfg.
 *   Configurations that were taken over before stay taken over. Repeat the call, as often as necessary: it begins anew
 *   with marks of an earlier call of redlock_adopt() with the same cfg, and waits the whole time again. There is no
 *   undoing: to give a master back, take it over first, and then adopt it into its former configuration. What a
 *   redlock_reconfigure() to cfg has left is a matter for that call: its marks end this one, and masters that it has
 *   given to cfg already do not count as found.
 * CONFIG: cfg is not valid, or its guard is off; redlock_config_error(cfg) says which.
 * INVAL: cfg is NULL, flags has an unknown bit, or the size of the report is too small. NOTSUP: libredlock.so is of
 *   another version than libredlock_site.a. NOMEM. CLOCK. SYSTEM.
 * *report, which may be NULL, is filled in every case but INVAL and NOTSUP.
 *
 * One change at a time, as with redlock_reconfigure(): a call that begins while another call is under way takes the
 * masters over, and the earlier call ends with CHANGING, unless it was done first. Two calls that begin at the same
 * moment may both end with CHANGING; then one operator alone repeats one.
 *
 * Leave no client of the other configuration behind. An adopted master that loses its data lets these clients begin
 * anew there, if they come first. The keys of their last locks stay on the master until they expire. Fencing tokens go
 * on as after redlock_reconfigure(). */
REDLOCK_API REDLOCK_NODISCARD int redlock_adopt(const redlock_config_t *cfg, uint32_t flags, redlock_adopt_fn progress,
                                                void *user, redlock_adopt_report_t *report);

/* ---- What a configuration says -------------------------------------------------------------------------------- */

typedef struct redlock_setting_s {
  uint32_t size;    /* sizeof(redlock_setting_t) */
  uint32_t given;   /* 1: it was set; 0: the default */
  uint32_t is_text; /* 1: the key takes a string; 0: a number */
  uint32_t number;  /* of a key that takes a number: the value that a client uses */
  const char *key;  /* "timing.node_timeout_ms"; a static string */
  char range[64];   /* "5..10000"; of a string its words, or its size: "off, weak or strict", "0..32 bytes" */
  char value[REDLOCK_TEXT_MAX + 1]; /* the same as text: "50", "strict", "gw-17", escaped as in JSON; "(hidden)": a
                                     * password */
} redlock_setting_t;

/* [setup] Fills *setting with the key at this place of the table of redlock_config_set_u32(), counted from 0, and with
 * its value in cfg. Masters are no keys. 0. INVAL: no key has this place, a pointer is NULL, or the size of *setting is
 * too small. CONFIG: cfg is not valid. NOTSUP: libredlock.so is of another version than libredlock_site.a. */
REDLOCK_API REDLOCK_NODISCARD int redlock_site_setting(const redlock_config_t *cfg, uint32_t index,
                                                       redlock_setting_t *setting);

typedef struct redlock_site_facts_s {
  uint32_t size;            /* sizeof(redlock_site_facts_t) */
  uint32_t masters;         /* N */
  uint32_t quorum;          /* Q */
  uint32_t key_prefix_size; /* bytes of key_prefix, which may hold any */
  char key_prefix[REDLOCK_KEY_PREFIX_MAX + 1];
  char record[128];         /* the field desc of the hash redlock:{key_prefix}:meta on masters of this configuration */
  char name[REDLOCK_MASTER_NAME_MAX + 1];
  char address[REDLOCK_HOST_MAX + 8]; /* as in redlock_master_status_t */
  const char *warning;      /* what clients of cfg log when they are created: others can read a password in a file that
                             * was loaded; "": nothing. Owned by cfg, valid until the next call that changes cfg */
} redlock_site_facts_t;

/* [setup] Fills *facts with what programs need that ask the masters about their clients' keys; name and address are
 * those of the master with this index. 0. CONFIG: cfg is not valid. INVAL: a pointer is NULL, the size of *facts is too
 * small, or there is no such master. NOTSUP: libredlock.so is of another version than libredlock_site.a. */
REDLOCK_API REDLOCK_NODISCARD int redlock_site_facts(const redlock_config_t *cfg, uint32_t master,
                                                     redlock_site_facts_t *facts);

/* ---- Asking a master ------------------------------------------------------------------------------------------- */

enum redlock_item_type {
  REDLOCK_ITEM_NULL = 0,
  REDLOCK_ITEM_INTEGER = 1, /* number; a boolean is 0 or 1 */
  REDLOCK_ITEM_TEXT = 2,    /* number bytes at text, any bytes; a NUL follows them. Also a number with a point */
  REDLOCK_ITEM_ERROR = 3,   /* the same; e.g. "NOPERM this user has no permissions ..." */
  REDLOCK_ITEM_LIST = 4     /* number items follow at depth + 1, and what these contain. A map is a list of its keys and
                             * values in turn */
};

typedef struct redlock_item_s {
  uint32_t type;    /* enum redlock_item_type */
  uint32_t depth;   /* 0: the reply itself */
  int64_t number;
  const char *text; /* TEXT, ERROR: in the caller's buf; else "" */
} redlock_item_t;

/* One command, and its reply. The caller sets the first two fields, the call sets the others. */
typedef struct redlock_question_s {
  const redlock_resource_t *word; /* the command and its arguments: any bytes */
  uint32_t words;                 /* 1 or more */
  int32_t err;                    /* 0, or why there is no reply, or what the reply says if it is an error */
  const redlock_item_t *item;     /* the reply: one item, or a list and all that it contains. NULL: none */
  uint32_t items;
  uint32_t rtt_us;                /* microseconds from the command to the end of its reply; 0: none */
  int64_t asked_ns;               /* when the command was sent: CLOCK_MONOTONIC_RAW and all time spent in suspend */
} redlock_question_t;

/* [setup] Asks the master with this index in cfg `count` commands, 1 or more, on one connection: the next one is sent
 * when the reply to the one before is there. Nothing is sent twice. The call uses the addresses, the login and the
 * times of cfg. It also asks servers that could not vote: replicas, cluster nodes, servers of another configuration,
 * users who may do little. It locks nothing, and writes only what the commands write. The call blocks. It needs no
 * client, runs no callback, and frees all the memory that it allocates. The replies are written into the `size` bytes
 * at buf, which belong to the caller and may not be aligned.
 *
 * It takes at most twice timing.connect_timeout_ms to connect and log in, and then timing.suspect_close_ms for each
 * reply. At the end the call waits for a name look-up that is under way.
 *
 * Results
 * 0: each command has its reply. A reply may be an error: then err of its question is NOPERM, WRONGTYPE, SERVER (an
 *   error of another kind) ... and its item the error's text. TOOSMALL as err of a question: its reply did not fit into
 *   what the replies before have left of buf, and was dropped. The other questions are not touched.
 * RESOLVE, CONNECT, REFUSED, UNREACHABLE, CONNECT_TIMEOUT, NO_GREETING, AUTH, AUTH_MISSING, DENIED, MAXCLIENTS,
 *   LOADING, those of TLS ...: the master could not be asked. DISCONNECTED, NODE_TIMEOUT: the connection broke, or a
 *   reply did not come in time; that command may have been executed, or may be later. PROTOCOL: the bytes received are
 *   not RESP, or a reply has a list of more than 1024 items, a text of more than 512 KB, an error longer than
 *   limits.rx_bytes, or lists more than 8 deep. With all of these, err of each question without a reply is the same,
 *   and the replies before are good.
 * CONFIG: cfg is not valid; redlock_config_error(cfg) says why. INVAL: a pointer is NULL, count or the words of a
 *   question are 0, a command is longer than 4 MB, or cfg has no such master. NOTSUP: libredlock.so is of another
 *   version than libredlock_site.a. NOMEM. CLOCK. SYSTEM. With these six no command was sent. */
REDLOCK_API REDLOCK_NODISCARD int redlock_site_ask(const redlock_config_t *cfg, uint32_t master,
                                                   redlock_question_t *questions, uint32_t count, void *buf,
                                                   size_t size);

/* What a connection by TLS has shown. */
typedef struct redlock_site_tls_s {
  uint32_t size;      /* sizeof(redlock_site_tls_t), set by the caller */
  uint32_t step_us;   /* the longest step of the handshake: nothing else of a client's runs meanwhile */
  int64_t ends_s;     /* the earliest end among the server's certificates, in seconds since 1970, UTC; 0: without
                       * tls.ca_file no date counts */
  char version[16];   /* "TLSv1.3" */
  char cipher[64];    /* as the TLS library names it */
} redlock_site_tls_t;

/* [setup] Connects to a master by TLS, logs in and sends a PING. The call blocks as redlock_site_ask() does, and has
 * its results. NOTSUP: also where the master's URL does not begin with rediss://. INVAL: also where tls->size is too
 * small. A libredlock_site.a that was built without TLS has no such function. */
REDLOCK_API REDLOCK_NODISCARD int redlock_site_tls(const redlock_config_t *cfg, uint32_t master,
                                                   redlock_site_tls_t *tls);

#ifdef __cplusplus
}
#endif

#endif
