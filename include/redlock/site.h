/* SPDX-License-Identifier: MIT
 *
 * redlock/site.h - another set of masters, or timing.max_ttl_ms, while clients run; questions to a master. For programs
 * of an operator.
 *
 * Link with libredlock_site.a and libredlock, both of one version (else calls return NOTSUP) and with the same TLS. In
 * CMake: find_package(redlock COMPONENTS site), target redlock::site; for pkg-config: redlock-site. The conventions are
 * those of redlock.h.
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
  uint32_t written;     /* REDLOCK_WRITTEN_*; kept up to date while the call runs, for another thread to read */
  uint32_t old_masters; /* N of old_cfg */
  uint32_t old_needed;  /* Q of old_cfg: each step needs so many masters of old_cfg */
  uint32_t new_masters; /* N of new_cfg */
  uint32_t new_needed;  /* Q of new_cfg */
  /* One number per master, in the order of its configuration: why it did not do what it was last asked to, CONNECT,
   * NOPERM, FINGERPRINT, CHANGING, RECORD_LOST ...; 0: it did, could have, or had no time to answer. */
  int32_t old_err[REDLOCK_MASTERS_MAX];
  int32_t new_err[REDLOCK_MASTERS_MAX];
} redlock_reconfigure_report_t;

/* [setup] Takes the site from the masters of old_cfg to those of new_cfg: no lock of a client of the one overlaps with
 * a lock of a client of the other, whatever the result. Blocks; needs no client. *report may be NULL. "Another set of
 * masters" in the guide has the operator's rules: when clients of new_cfg may start, and which masters must not
 * restart.
 *
 * Clients of old_cfg keep a held lock until its validity ends, renew none, and get none (GUARD, then LEFT: see
 * redlock_site_left()). Clients of new_cfg get their first lock a guard time after the call. It marks the masters of
 * both, waits for a third of the old max_ttl_ms (1 s at least), the drift, and the difference where the old max_ttl_ms
 * is longer, looks again, gives the masters of new_cfg to its clients, and looks a third time. Each step but the wait
 * takes at most timing.suspect_close_ms and twice timing.connect_timeout_ms. Masters are compared by name. Tokens go
 * on, floored; with "fence": "strict" each resource needs redlock_fence_init() once.
 *
 * Returns 0: done. Above 0: done, but for so many masters of new_cfg; see `redlock doctor` when they are back.
 * NO_QUORUM: too few masters answered. CHANGING: another call's mark. RECORD_LOST: masters have lost what this call
 * wrote, or another call has ended. For these three: repeat the call, or undo it with old_cfg and new_cfg exchanged.
 * report->written says what holds: NOTHING, NEW: nothing changed for clients of old_cfg; OLD: nobody can lock, unless
 * unmarked old masters are a quorum; BOTH: not done, although new masters may serve clients of new_cfg.
 * FINGERPRINT: a record is of a third configuration; nothing was written: see `redlock doctor`.
 * CONFIG: redlock_config_error() of the one at fault, or of new_cfg, says why.
 * INVAL. NOTSUP. NOMEM. CLOCK. SYSTEM. */
REDLOCK_API REDLOCK_NODISCARD int redlock_reconfigure(const redlock_config_t *old_cfg, const redlock_config_t *new_cfg,
                                                      redlock_reconfigure_report_t *report);

/* What the masters of a configuration say about a change that has left its clients behind. */
typedef struct redlock_site_left_s {
  uint32_t size;        /* sizeof(redlock_site_left_t) */
  uint32_t old_masters; /* N of old_cfg */
  uint32_t needed;      /* Q of old_cfg */
  uint32_t say;         /* masters of old_cfg that say so; no more are asked than it takes to know the result */
  uint32_t masters;     /* N and timing.max_ttl_ms of the configuration that the site was changed to; 0: not known */
  uint32_t max_ttl_ms;
  int64_t done_s;       /* when the change was done, in s since 1970 by a master's clock; 0: not known */
} redlock_site_left_t;

/* [setup] Has a change of masters led from old_cfg to new_cfg, and is it done? Only then may a client of old_cfg that
 * has failed with LEFT be replaced by one of new_cfg while other clients run: a file alone may have been copied too
 * early. NULL for new_cfg: whatever the change has led to. *left may be NULL. Blocks as redlock_site_ask() does, for
 * one master after the other.
 * Returns 1: a quorum of the masters of old_cfg say so. 0: they do not, or too few of them answer.
 * CONFIG: a configuration is not valid. INVAL: the size. NOTSUP. */
REDLOCK_API REDLOCK_NODISCARD int redlock_site_left(const redlock_config_t *old_cfg, const redlock_config_t *new_cfg,
                                                    redlock_site_left_t *left);

/* ---- What a configuration says -------------------------------------------------------------------------------- */

typedef struct redlock_setting_s {
  uint32_t size;    /* sizeof(redlock_setting_t) */
  uint32_t given;   /* 1: it was set; 0: the default */
  uint32_t is_text; /* 1: a string; 0: a number */
  uint32_t number;  /* of a number: what a client uses */
  const char *key;  /* "timing.node_timeout_ms"; a static string */
  char range[64];   /* "5..10000"; of a string its words, or its size: "off, weak or strict", "0..32 bytes" */
  char value[REDLOCK_TEXT_MAX + 1]; /* the same as text: "50", "strict", "gw-17", escaped as in JSON; "(hidden)": a
                                     * password */
} redlock_setting_t;

/* [setup] Fills *setting with the key at this place among all keys, from 0, and its value in cfg.
 * Returns 0. INVAL: no such place, or the size. CONFIG: cfg is not valid. NOTSUP. */
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
  const char *warning;      /* "": a password that others can read is an error of redlock_config_load_file() */
  char redis_cli[1024];     /* options with which redis-cli reaches this master, quoted for a shell, without password */
  uint32_t has_password;    /* 1: this master wants one */
} redlock_site_facts_t;

/* [setup] Fills *facts: what it takes to ask a master about its clients' keys.
 * Returns 0. CONFIG: cfg is not valid. INVAL: the size, or no such master. NOTSUP. */
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
  int64_t asked_ns;               /* when it was sent: CLOCK_MONOTONIC_RAW and all time spent in suspend */
} redlock_question_t;

/* [setup] Asks the master with this index `count` commands on one connection, each when the reply before is there;
 * nothing is sent twice. Blocks for at most twice timing.connect_timeout_ms, and timing.suspect_close_ms for each
 * reply. Needs no client. Several threads may ask at one time. The replies go into the `size` bytes at buf.
 *
 * Returns 0: each command has its reply, which may be an error (err of its question), or too long for the rest of buf
 * (TOOSMALL; dropped).
 * RESOLVE, CONNECT, AUTH, LOADING ...: the master could not be asked. DISCONNECTED, NODE_TIMEOUT: that command may have
 * been executed, or may be later. PROTOCOL: no RESP, more than 1024 items, 8 levels or 512 KB of text. Questions
 * without a reply have the same err.
 * No command was sent: CONFIG. INVAL: count or words of 0, a command longer than 4 MB, no such master.
 * NOTSUP. NOMEM. CLOCK. SYSTEM. */
REDLOCK_API REDLOCK_NODISCARD int redlock_site_ask(const redlock_config_t *cfg, uint32_t master,
                                                   redlock_question_t *questions, uint32_t count, void *buf,
                                                   size_t size);

/* One address of a host name, in digits. */
typedef struct redlock_site_address_s {
  char text[48];
} redlock_site_address_t;

/* [setup] The addresses of the master's host name, `most` at most, in the order in which clients try them. Blocks for
 * at most timing.connect_timeout_ms.
 * Returns how many there are; 0: the master is given by a path or in digits. RESOLVE. INVAL. CONFIG. NOTSUP. SYSTEM. */
REDLOCK_API REDLOCK_NODISCARD int redlock_site_addresses(const redlock_config_t *cfg, uint32_t master,
                                                         redlock_site_address_t *addresses, uint32_t most);

/* [setup] As redlock_site_ask(), at this address of the master's host name. NULL: the one that answers first. INVAL:
 * also if it is no address in digits. */
REDLOCK_API REDLOCK_NODISCARD int redlock_site_ask_at(const redlock_config_t *cfg, uint32_t master,
                                                      const char *address, redlock_question_t *questions,
                                                      uint32_t count, void *buf, size_t size);

/* What a connection by TLS has shown. */
typedef struct redlock_site_tls_s {
  uint32_t size;      /* sizeof(redlock_site_tls_t), set by the caller */
  uint32_t step_us;   /* the longest step of the handshake */
  int64_t ends_s;     /* the earliest end among the server's certificates, in seconds since 1970, UTC; 0: without
                       * tls.ca_file no date counts */
  char version[16];   /* "TLSv1.3" */
  char cipher[64];    /* as the TLS library names it */
  char denied[64];    /* TLS_EXPIRED, TLS_EARLY: whose certificate, and its date */
} redlock_site_tls_t;

/* [setup] Connects by TLS and sends a PING; blocks and returns as redlock_site_ask(). NOTSUP: also if the URL is not
 * rediss://. A libredlock_site.a without TLS has no such function. */
REDLOCK_API REDLOCK_NODISCARD int redlock_site_tls(const redlock_config_t *cfg, uint32_t master,
                                                   redlock_site_tls_t *tls);

#ifdef __cplusplus
}
#endif

#endif
