// SPDX-License-Identifier: MIT
//
// The map of the settings: each key of a configuration once. The members of Numbers and Values, the parser's table,
// `redlock config template`, redlock.json(5) and the tables of the tests are made from it. The end of a name is the
// unit: _ms, _ppm, _bytes; any other number is a count.
//
//   NUMBER(section, name, min, max, default, text)   a default of 0 below min is allowed as a value, too
//   TIME(section, name, min, max, default, text)     the key is name_ms; Settings have it as a Duration
//   CHOICE(name, words, default, text)               one of the words; its number is its place, counted from 0
//   STRING(name, min, max, form, text)               min and max in bytes; the form says which bytes
//
// The text is for a person, in lines of at most 92 bytes. It says "Default:" where the default is no fixed value.
// A row stays where it is, as the order is that of redlock_site_setting().
#pragma once
#include <redlock/limits.h>

#define REDLOCK_KEY_MAP(STRING, CHOICE, NUMBER, TIME)                                                                 \
  STRING(client_name, 1, REDLOCK_CLIENT_NAME_MAX, plain,                                                              \
         "The name of this gateway, which others see when it holds a lock. Default: the host name's end.")            \
  STRING(key_prefix, 0, REDLOCK_KEY_PREFIX_MAX, any,                                                                  \
         "Stands before the name of each resource. All gateways of a site need the same.")                            \
  STRING(username, 0, REDLOCK_USER_MAX, any, "The user of masters that name none.")                                   \
  STRING(password, 0, REDLOCK_PASSWORD_MAX, any,                                                                      \
         "The password of masters that name none. See also password_file of a master.")                               \
  CHOICE(guard, "off, weak or strict", 2,                                                                             \
         "strict: a master votes only when every lock that it may have forgotten has ended.\n"                        \
         "weak: the same for servers that refuse INFO, with less certainty. off: no guard.")                          \
  CHOICE(fence, "floor or strict", 0,                                                                                 \
         "Whether a fencing token may come from the masters' clocks (floor) or not (strict).")                        \
  NUMBER(defaults, ttl_ms, REDLOCK_TTL_MS_MIN, REDLOCK_MAX_TTL_MS_MAX, REDLOCK_TTL_MS_DEFAULT,                        \
         "The lifetime of a lock that nobody renews any more. Locks are renewed every third of it.\n"                 \
         "Where timing.max_ttl_ms is shorter, that is the default.")                                                  \
  NUMBER(defaults, wait_ms, 1, REDLOCK_WAIT_MS_MAX, REDLOCK_WAIT_MS_DEFAULT,                                          \
         "How long a program waits for other holders if it does not say. redlock run waits for ever.")                \
  NUMBER(defaults, retry_delay_ms, 1, REDLOCK_RETRY_DELAY_MS_MAX, REDLOCK_RETRY_DELAY_MS_DEFAULT,                     \
         "The longest pause of a waiter after a lost round, where masters tell no changes.")                          \
  NUMBER(defaults, wakeups, 0, 1, REDLOCK_WAKEUPS_DEFAULT,                                                            \
         "1: masters tell a waiter when a key changes, if they can. 0: waiters try again and again.")                 \
  NUMBER(defaults, local_turns, 0, REDLOCK_LOCAL_TURNS_MAX, REDLOCK_LOCAL_TURNS_DEFAULT,                              \
         "How often in a row a lock goes to the next waiter of one client, before others try.")                       \
  NUMBER(timing, max_ttl_ms, REDLOCK_TTL_MS_MIN, REDLOCK_MAX_TTL_MS_MAX, REDLOCK_MAX_TTL_MS_DEFAULT,                  \
         "The longest ttl of any client. All gateways of a site need the same. A master that has\n"                   \
         "restarted votes after so long.")                                                                            \
  NUMBER(timing, guard_wait_ms, 0, REDLOCK_GUARD_WAIT_MS_MAX, guard_wait_not_given,                                   \
         "How long a program waits for masters that are watched, if it does not say.\n"                               \
         "Default: two guard times (max_ttl_ms and the drift). 0: not at all.")                                       \
  TIME(timing, node_timeout, REDLOCK_NODE_TIMEOUT_MS_MIN, REDLOCK_NODE_TIMEOUT_MS_MAX,                                \
       REDLOCK_NODE_TIMEOUT_MS_DEFAULT, "How long one master may take to answer before its vote counts as failed.")   \
  TIME(timing, connect_timeout, REDLOCK_CONNECT_TIMEOUT_MS_MIN, REDLOCK_CONNECT_TIMEOUT_MS_MAX,                       \
       REDLOCK_CONNECT_TIMEOUT_MS_DEFAULT, "How long a connection may take, and as long again the greeting.")         \
  NUMBER(timing, reconnect_min_ms, REDLOCK_RECONNECT_MS_MIN, REDLOCK_RECONNECT_MS_MAX,                                \
         REDLOCK_RECONNECT_MIN_MS_DEFAULT, "The first pause between two attempts to connect.")                        \
  NUMBER(timing, reconnect_max_ms, REDLOCK_RECONNECT_MS_MIN, REDLOCK_RECONNECT_MS_MAX,                                \
         REDLOCK_RECONNECT_MAX_MS_DEFAULT, "The longest pause between two attempts to connect.")                      \
  TIME(timing, suspect_close, REDLOCK_SUSPECT_CLOSE_MS_MIN, REDLOCK_SUSPECT_CLOSE_MS_MAX,                             \
       REDLOCK_SUSPECT_CLOSE_MS_DEFAULT, "A master that has not answered for so long is disconnected.")               \
  TIME(timing, ping_interval, REDLOCK_PING_INTERVAL_MS_MIN, REDLOCK_PING_INTERVAL_MS_MAX,                             \
       REDLOCK_PING_INTERVAL_MS_DEFAULT,                                                                              \
       "How often an idle connection is tried, and a master's record read. Keep it below the servers'\n"              \
       "setting `timeout`, and below what proxies and mobile networks allow. While a lock is held or\n"               \
       "wanted: 5000 at most.")                                                                                       \
  /* The default drift is also the least that is safe. */                                                             \
  NUMBER(timing, drift_ppm, REDLOCK_DRIFT_PPM_DEFAULT, REDLOCK_DRIFT_PPM_MAX, REDLOCK_DRIFT_PPM_DEFAULT,              \
         "How far the clocks of gateways and masters may run apart, in millionths of the ttl.")                       \
  NUMBER(timing, drift_fixed_ms, REDLOCK_DRIFT_FIXED_MS_DEFAULT, REDLOCK_DRIFT_FIXED_MS_MAX,                          \
         REDLOCK_DRIFT_FIXED_MS_DEFAULT, "The same, for every lock.")                                                 \
  NUMBER(limits, locks, 1, REDLOCK_LOCKS_MAX, REDLOCK_LOCKS_DEFAULT,                                                  \
         "Locks and waits of one client at the same time.")                                                           \
  NUMBER(limits, in_flight, REDLOCK_IN_FLIGHT_MIN, REDLOCK_IN_FLIGHT_MAX, REDLOCK_IN_FLIGHT_DEFAULT,                  \
         "Requests without an answer, for each master. At least 2 * locks. Default: grows with locks.")               \
  NUMBER(limits, debts, 2, REDLOCK_DEBTS_MAX, REDLOCK_DEBTS_DEFAULT,                                                  \
         "Values that some master may still hold, locks included. At least locks + 1. Default: grows\n"               \
         "with locks.")                                                                                               \
  NUMBER(limits, resource_bytes, REDLOCK_RESOURCE_MAX, REDLOCK_RESOURCE_BYTES_MAX, REDLOCK_RESOURCE_BYTES_DEFAULT,    \
         "The names of one lock, all together.")                                                                      \
  NUMBER(limits, tx_bytes, REDLOCK_TX_BYTES_MIN, REDLOCK_TX_BYTES_MAX, 0,                                             \
         "The transmit buffer that all masters share. 0: as large as needed.")                                        \
  NUMBER(limits, rx_bytes, REDLOCK_RX_BYTES_MIN, REDLOCK_RX_BYTES_MAX, REDLOCK_RX_BYTES_DEFAULT,                      \
         "The receive buffer of each master.")                                                                        \
  NUMBER(limits, stack_bytes, REDLOCK_STACK_BYTES_MIN, REDLOCK_STACK_BYTES_MAX, REDLOCK_STACK_BYTES_DEFAULT,          \
         "The stack of the thread that a client may have of its own.")                                                \
  NUMBER(limits, password_bytes, REDLOCK_PASSWORD_MAX, REDLOCK_PASSWORD_BYTES_MAX, REDLOCK_PASSWORD_MAX,              \
         "The longest password that may stand in a password_file.")

// Keys of the section "tls", which a build without TLS does not know. None has a fixed value as its default.
//   TEXT(name, max, range, example, text)   OTHER(name, range, example, text): tls.cpp reads what the range tells
#define REDLOCK_TLS_KEY_MAP(TEXT, OTHER)                                                                              \
  TEXT(ca_file, REDLOCK_TLS_PATH_MAX, "1..128 bytes", "/etc/redlock/ca.pem",                                          \
       "Certificates of the authorities, PEM. A master's certificate must come from one of them, be\n"                \
       "valid today, and be for the server's name. A rediss:// master needs ca_file or pin.")                         \
  TEXT(cert_file, REDLOCK_TLS_PATH_MAX, "1..128 bytes", "/etc/redlock/gw-17.pem",                                     \
       "This gateway's certificate, PEM, where the masters ask for one. With key_file.")                              \
  TEXT(key_file, REDLOCK_TLS_PATH_MAX, "1..128 bytes", "/etc/redlock/gw-17.key",                                      \
       "Its key, PEM. Others may not read it: chmod 640.")                                                            \
  TEXT(server_name, REDLOCK_HOST_MAX, "a host name or a numeric address", "lock-a.plant.example",                     \
       "What the masters' certificates are for. Default: the host in the master's URL.")                              \
  OTHER(min_version, "1.2 or 1.3", "1.2", "The oldest version of TLS. Default: 1.2.")                                 \
  OTHER(pin, "1..4 of sha256: and 64 hexadecimal digits",                                                             \
        "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",                                    \
        "SHA-256 of the masters' public keys, between commas or as an array. Without ca_file the key\n"               \
        "alone decides, and no date counts: for gateways without a clock. With it both must be right.")

#define REDLOCK_NO_KEY(...)
