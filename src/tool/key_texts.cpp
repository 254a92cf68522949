// SPDX-License-Identifier: MIT
#include "tool/key_texts.hpp"

#include <string.h>

namespace redlock::tool {
namespace {

struct KeyText {
  const char* key;
  const char* text;
};

constexpr KeyText texts[] = {
    {"client_name", "The name of this gateway, which others see when it holds a lock. Default: the host name, cut."},
    {"key_prefix", "Stands before the name of each resource. All gateways of a site need the same."},
    {"username", "The user of masters that name none."},
    {"password", "The password of masters that name none. See also password_file of a master."},
    {"guard", "strict: a master votes only when every lock that it may have forgotten has ended.\n"
              "weak: the same for servers that refuse INFO, with less certainty. off: no guard."},
    {"fence", "Whether a fencing token may come from the masters' clocks (floor) or not (strict)."},
    {"defaults.ttl_ms", "The lifetime of a lock that nobody renews any more. Locks are renewed every third of it."},
    {"defaults.wait_ms", "How long a program waits for other holders if it does not say. redlock run waits for ever."},
    {"defaults.retry_delay_ms", "The longest pause of a waiter after a lost round, where masters tell no changes."},
    {"defaults.wakeups", "1: masters tell a waiter when a key changes, if they can. 0: waiters try again and again."},
    {"defaults.local_turns", "How often in a row a lock goes to the next waiter of one client, before others try."},
    {"timing.max_ttl_ms", "The longest ttl of any client. All gateways of a site need the same. A master that has\n"
                          "restarted votes after so long."},
    {"timing.guard_wait_ms", "How long a program waits for masters that are watched, if it does not say.\n"
                             "Default: two guard times (max_ttl_ms and the drift). 0: not at all."},
    {"timing.node_timeout_ms", "How long one master may take to answer before its vote counts as failed."},
    {"timing.connect_timeout_ms", "How long a connection may take, and as long again the greeting."},
    {"timing.reconnect_min_ms", "The first pause between two attempts to connect."},
    {"timing.reconnect_max_ms", "The longest pause between two attempts to connect."},
    {"timing.suspect_close_ms", "A master that has not answered for so long is disconnected."},
    {"timing.ping_interval_ms", "How often an idle connection is tried. Keep it below the servers' setting `timeout`."},
    {"timing.drift_ppm", "How far the clocks of gateways and masters may run apart, in millionths of the ttl."},
    {"timing.drift_fixed_ms", "The same, for every lock."},
    {"limits.locks", "Locks and waits of one client at the same time."},
    {"limits.in_flight", "Requests without an answer, for each master. At least 2 * locks. Default: grows with locks."},
    {"limits.debts", "Values that some master may still hold, locks included. At least locks + 1. Default: grows\n"
                     "with locks."},
    {"limits.resource_bytes", "The names of one lock, all together."},
    {"limits.tx_bytes", "The transmit buffer that all masters share. 0: as large as needed."},
    {"limits.rx_bytes", "The receive buffer of each master."},
    {"limits.stack_bytes", "The stack of the thread of redlock_create()."},
#ifdef REDLOCK_TLS
    {"tls.ca_file", "Certificates of the authorities, PEM. A master's certificate must come from one of them, be\n"
                    "valid today, and be for the server's name. A rediss:// master needs ca_file or pin."},
    {"tls.cert_file", "This gateway's certificate, PEM, where the masters ask for one. With key_file."},
    {"tls.key_file", "Its key, PEM: chmod 600."},
    {"tls.server_name", "What the masters' certificates are for. Default: the host in the master's URL."},
    {"tls.min_version", "The oldest version of TLS. Default: 1.2."},
    {"tls.pin", "SHA-256 of the masters' public keys, between commas or as an array. Without ca_file the key\n"
                "alone decides, and no date counts: for gateways without a clock. With it both must be right."},
#endif
};

#ifdef REDLOCK_TLS
constexpr KeyText examples[] = {
    {"client_name", "gw-17"},
    {"tls.ca_file", "/etc/redlock/ca.pem"},
    {"tls.cert_file", "/etc/redlock/gw-17.pem"},
    {"tls.key_file", "/etc/redlock/gw-17.key"},
    {"tls.server_name", "lock-a.plant.example"},
    {"tls.min_version", "1.2"},
    {"tls.pin", "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"},
};
#else
constexpr KeyText examples[] = {{"client_name", "gw-17"}};
#endif

}  // namespace

const char* text_of_key(const char* key) {
  for (const KeyText& one : texts) {
    if (strcmp(one.key, key) == 0) return one.text;
  }
  return nullptr;
}

const char* example_of_key(const char* key) {
  for (const KeyText& one : examples) {
    if (strcmp(one.key, key) == 0) return one.text;
  }
  return nullptr;
}

bool default_follows(const char* key) {
  constexpr const char* all[] = {"timing.guard_wait_ms", "limits.in_flight", "limits.debts"};
  for (const char* one : all) {
    if (strcmp(one, key) == 0) return true;
  }
  return false;
}

}  // namespace redlock::tool
