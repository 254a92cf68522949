// SPDX-License-Identifier: MIT
//
// What the doctor sees of one master.
#include <stdlib.h>
#include <string.h>

#include "tool/ask/doctor.hpp"
#include "tool/system/clock.hpp"

namespace redlock::tool {
namespace {

int compare_u32(const void* a, const void* b) {
  const uint32_t x = *static_cast<const uint32_t*>(a), y = *static_cast<const uint32_t*>(b);
  return x < y ? -1 : x > y;
}

Level unless_quorum(unsigned good) { return good >= site.quorum ? Level::warn : Level::fail; }

// A permission whose lack has failed a check of this master says all that there is to do.
void denied(unsigned m, int err,
            const char* todo = "let the user read it for this check (+info), or ask the operator of the server") {
  const bool follows = has_failed(m);
  tell(follows ? Level::skipped : Level::unknown, Text("not told: %s", redlock_strerror(err)), follows ? "" : todo);
}

constexpr char wants_standalone[] = "list standalone masters, no cluster nodes and no sentinels";
constexpr char read_record[] = "let the user read the record: the checks acl and acl_keys say what is missing";

#ifdef REDLOCK_TLS
constexpr char wants_tls[] = "a port for TLS only wants rediss://";
#else
constexpr char wants_tls[] = "a port for TLS only wants rediss:// and a redlock with TLS";
#endif

// The host in the url of a master, for which its certificate must be.
Text host_of(const Master& it) {
  const char* const colon = strrchr(it.facts.address, ':');
  const size_t size = colon != nullptr ? static_cast<size_t>(colon - it.facts.address) : strlen(it.facts.address);
  return Text("%.*s", static_cast<int>(size), it.facts.address);
}

// The command that shows what the certificate of a master has.
Text shown_by(const Master& it, const char* what) {
  return Text("openssl s_client -connect %s </dev/null | openssl x509 -noout %s", it.facts.address, what);
}

void check_reach(const Master& it) {
  if (it.err == 0) return tell(Level::ok, Text("%s answers", it.facts.address));
  const ExitCode code = exit_code_of(it.err);
  const Level gone = unless_quorum(site.reached());
  judge(it.unasked,
        {{it.err == REDLOCK_E_MISCONF, gone, "free its disk, or make its folder (dir) writable; its log says which",
          code},
         {it.err == REDLOCK_E_MAXCLIENTS, gone, "end clients that nobody needs, or raise its maxclients", code},
         {it.is_unnamed, gone, "mend this machine's name server (/etc/resolv.conf), or list addresses", code},
         {it.err == REDLOCK_E_RESOLVE, gone, "correct the name, or mend this machine's name server", code},
         {it.ping == PlainPing::answered, gone, "list the server itself: a proxy that does not know HELLO is no master",
          code},
         {it.ping == PlainPing::closed, gone, wants_tls, code},
         {it.err == REDLOCK_E_NO_GREETING, gone,
          "a port for TLS only wants rediss://; a proxy that does not know HELLO is no master", code},
         {it.err == REDLOCK_E_SERVER || it.err == REDLOCK_E_PROTOCOL, gone,
          "is it a Redis server, and no proxy? redis-cli HELLO 3 shows what it answers", code},
         {it.err == REDLOCK_E_MODE, Level::fail, wants_standalone, code},
         {it.err == REDLOCK_E_LOADING || it.err == REDLOCK_E_SCRIPT_BUSY, gone, "wait until it is done", code},
         {it.err == REDLOCK_E_REFUSED, gone,
          "start the server, correct address and port in the file, or look at the firewall", code},
         {it.err == REDLOCK_E_NODE_TIMEOUT || it.err == REDLOCK_E_TLS_EXPIRED || it.err == REDLOCK_E_TLS_EARLY, gone,
          it.err == REDLOCK_E_NODE_TIMEOUT  ? "it is reached, and is silent: look at the process there, and its load"
          : it.err == REDLOCK_E_TLS_EXPIRED ? "give it a new certificate, or set this machine's clock if it is wrong"
                                            : "set this machine's clock if it is wrong, or give it another certificate",
          code},
         {code == exit_too_few, gone, "look at the address and the network, or start it", code},
         {it.err == REDLOCK_E_AUTH || it.err == REDLOCK_E_AUTH_MISSING, Level::fail,
          "username and password in the file are not those of the server's ACL: correct one of the two", code},
         {it.err == REDLOCK_E_TLS_NONE, Level::fail, "write redis:// in the url, or the port that has TLS", code},
         {it.err == REDLOCK_E_TLS_NAME, Level::fail,
          Text("its subjectAltName must have %s, or tls.server_name must be a name that it has: %s",
               host_of(it).c_str(), shown_by(it, "-ext subjectAltName").c_str()), code},
         {it.err == REDLOCK_E_TLS_AUTHORITY, Level::fail,
          Text("put the authority of its certificate into the file of tls.ca_file, or give it another one: %s",
               shown_by(it, "-issuer").c_str()), code},
         {true, Level::fail, "correct the configuration, or the server", code}});
}

#ifdef REDLOCK_TLS
// A step of the handshake is not divided: while it computes, no renewal begins. What is too long may be the load of
// this moment, so the best of three counts.
void check_tls(unsigned m) {
  constexpr int64_t day_s = 86'400, ahead_days = 30;
  auto tls = sized<redlock_site_tls_t>();
  const int err = redlock_site_tls(site.cfg, m, &tls);
  if (err == REDLOCK_E_NOTSUP) return;  // a plain master
  if (err != 0) return tell(Level::unknown, redlock_strerror(late(err)));
  const uint32_t limit_us = site.times.node_timeout_ms * 500;
  for (unsigned i = 1; i < 3 && tls.step_us > limit_us; ++i) {
    auto again = sized<redlock_site_tls_t>();
    if (redlock_site_tls(site.cfg, m, &again) == 0 && again.step_us < tls.step_us) tls = again;
  }
  Text saw("%s, %s; the longest step of a handshake took ", tls.version, tls.cipher);
  saw.thousandths(tls.step_us).add(" ms");
  const int64_t days = (tls.ends_s - ns_of(CLOCK_REALTIME) / 1'000'000'000) / day_s;
  if (tls.ends_s != 0) saw.add("; its certificates are valid for %lld more day(s)", static_cast<long long>(days));
  judge(saw, {{tls.ends_s != 0 && days < ahead_days, Level::warn, "give it new certificates; clients need no restart"},
              {tls.step_us > limit_us, Level::warn,
               "renewals wait for such a step: raise timing.node_timeout_ms and the ttl, or use P-256 keys"}});
}
#endif

// Each client keeps a connection. `timeout` ends those on which nothing is said for so long, and the tracking of a
// waiter's keys with it. Where the user may not ask, the check is left out.
void check_timeout(unsigned m) {
  Questions asked;
  asked.command("CONFIG GET timeout");
  const char* const text = ask(asked, m) == 0 ? asked.text(0, 2) : nullptr;
  if (text == nullptr) return;
  const int64_t timeout_s = number_within(seconds_max, text);
  judge(Text("timeout %lld", static_cast<long long>(timeout_s)),
        {{timeout_s != 0, Level::warn,
          "it ends connections of clients that wait: CONFIG SET timeout 0, then CONFIG REWRITE"}});
}

void check_info(unsigned m) {
  const Master& it = site.master[m];
  if (it.info_err != 0) {
    for (const char* id : {"version", "role", "replicas", "eviction", "persistence"}) {
      about(id, &it);
      denied(m, it.info_err);
    }
    return;
  }
  about("version", &it);
  judge(Text("%s ", it.server).escaped(it.version),
        {{strtol(it.version, nullptr, 10) < 6, Level::warn,
          "older than 6.0: waiters poll, and each acquire is a script"}});
  about("role", &it);
  Text role = Text().escaped(it.role);
  const unsigned followed = site.find_address(it.master);
  const bool follows_ours = !it.master.empty() && followed != site.masters;
  if (!it.master.empty()) role.add(" of %s", it.master.c_str());
  if (follows_ours) role.add(" (%s)", site.master[followed].name());
  judge(role.add(", ").escaped(*it.mode != '\0' ? it.mode : "mode not told"),
        {{*it.mode != '\0' && strcmp(it.mode, "standalone") != 0, Level::fail,
          wants_standalone, exit_code_of(REDLOCK_E_MODE)},
         {strcmp(it.role, "master") != 0, Level::fail,
          follows_ours ? "a replica votes for nobody: REPLICAOF NO ONE there, and no replicaof in its redis.conf"
                       : "a replica votes for nobody: list its master; or, if it is to be a master itself, REPLICAOF "
                         "NO ONE, and no replicaof in its redis.conf", exit_code_of(REDLOCK_E_ROLE)},
         {*it.mode == '\0', Level::unknown, ""}});
  about("replicas", &it);
  const char* const backlog = it.backlog > 0 ? "on" : "off";
  judge(Text("%lld replica(s), replication backlog %s", static_cast<long long>(it.replicas), backlog),
        {{it.replicas > 0 || it.backlog > 0, Level::warn,
          "a replica that is promoted is watched before it votes; with one, each acquire is a script"}});
  about("eviction", &it);
  Text memory = Text("maxmemory %lld, policy ", static_cast<long long>(it.maxmemory)).escaped(it.policy);
  if (it.evicted > 0) memory.add(", %lld keys were evicted", static_cast<long long>(it.evicted));
  const bool is_full = it.maxmemory > 0 && it.used_memory > it.maxmemory / 10 * 9;
  if (it.is_over() && !it.evicts()) {
    memory.add(", and more is used");  // not how much: that differs from master to master
  } else if (is_full && !it.evicts()) {
    memory.add(", %lld used", static_cast<long long>(it.used_memory));
  }
  judge(memory, {{it.maxmemory < 0 || it.policy[0] == '\0', Level::unknown, ""},
                 {it.evicts(), Level::fail,
                  "lock keys may be evicted: CONFIG SET maxmemory-policy noeviction, then CONFIG REWRITE",
                  exit_code_of(REDLOCK_E_MAXMEMORY)},
                 {it.is_over(), unless_quorum(site.count([](unsigned one) { return !site.master[one].is_over(); })),
                  "it refuses locks (OOM): give it more memory, CONFIG SET maxmemory ..., then CONFIG REWRITE",
                  exit_too_few},
                 {is_full, Level::warn, "at maxmemory it refuses locks (OOM): give it more memory"}});
  about("persistence", &it);
  if (it.aof < 0 || it.rdb_ok < 0) return tell(Level::unknown, "INFO does not say");
  if (it.rdb_ok == 0) {
    return tell(Level::fail, "the last save has failed",
                "it may refuse every write (MISCONF): look at its disk and its log");
  }
  tell(Level::ok, Text("%sappend-only file; after a restart it is watched before it votes, whatever was saved",
                       it.aof != 0 ? "" : "no "));
}

// Reports a record where another file on this gateway, or on the others, is the likely cure. How to delete the record
// stands in the full report alone: who pastes lines would not look at the files first.
void tell_file(unsigned m, const char* saw, const char* cure, const char* or_else, ExitCode code) {
  if (!tells_all()) {
    const Text todo("%s; else redlock doctor -v says when the record may be deleted", cure);
    return tell(Level::fail, saw, todo, code);
  }
  tell(Level::fail, saw, Text("%s%s%s", cure, or_else, site.deletion(m).c_str()), code, site.deletion_line(m));
}

constexpr char third_file[] = "; or, where the gateways have a third file: ";

// Reports a master whose record says that a finished change has left this configuration.
void tell_left(unsigned m) {
  tell_file(m, site.left_text(m),
            "compare the files of all gateways: give this one the new file; or, if the site is to go back, redlock "
            "reconfigure NEW OLD",
            third_file, exit_left);
}

// Of a master that bears the mark of a change.
void tell_mark(unsigned m) {
  const Master& it = site.master[m];
  const Text mark = site.mark(m);
  if (!it.about_us) {
    const Text saw("was left by a change between two other configurations (%s)", mark.c_str());
    const char* const first = site.served() ? "" : "compare the files of all gateways; ";
    const Text todo("%s%s", first, site.deletion(m).c_str());
    return tell(Level::fail, saw, todo, exit_config, site.deletion_line(m));
  }
  if (site.served()) {
    const Text saw("bears the mark of a change between this configuration and another, which has ended without it or "
                   "has only begun (%s)",
                   mark.c_str());
    const Text todo("repeat or undo the change (redlock reconfigure); or, %s", site.deletion(m).c_str());
    return tell(Level::warn, saw, todo, exit_ok, site.deletion_line(m));
  }
  if (it.has_left()) return tell_left(m);
  const char* const or_else = it.ours_is_old ? "was given up, or has left this one behind" : "or was given up";
  const Text saw("a change between this configuration and another is under way, %s: nobody may be able to lock (%s)",
                 or_else, mark.c_str());
  tell_file(m, saw,
            "compare the files of all gateways; wait for its end; if none runs, repeat it or undo it: redlock "
            "reconfigure OLD NEW. Start no gateway with NEW before",
            third_file, exit_not_admitted);
}

// Does a record differ from this configuration's by max_ttl_ms alone?
bool differs_by_ttl(const Master& it) {
  const char *const theirs = strstr(it.desc, " ids="), *const ours = strstr(it.facts.record, " ids=");
  return it.their_masters == site.masters && theirs != nullptr && ours != nullptr && strcmp(theirs, ours) == 0;
}

// Reports a master with the record of another configuration.
void tell_other(unsigned m) {
  const Master& it = site.master[m];
  const bool same_numbers = it.their_masters == site.masters && it.their_max_ttl_ms == site.times.max_ttl_ms;
  const Text saw("of another configuration: %lu master(s), max_ttl_ms %lu; this one: %u master(s), max_ttl_ms %u%s",
                 it.their_masters, it.their_max_ttl_ms, site.masters, site.times.max_ttl_ms,
                 same_numbers ? ", with other names" : "");
  const ExitCode code = exit_code_of(REDLOCK_E_FINGERPRINT);
  // Where another master bears a mark that is over, this one may be of a site that runs, and its record is in use.
  const bool may_be_live = it.has_seal && site.count([](unsigned other) { return site.master[other].has_mark(); }) != 0;
  if (may_be_live) return tell(Level::fail, saw, "compare the files of all gateways; its own may be running", code);
  if (site.served()) {
    const Text todo("compare the files of all gateways; %s", site.deletion(m).c_str());
    return tell(Level::fail, saw, todo, code, site.deletion_line(m));
  }
  const Text cure = differs_by_ttl(it) ? Text("set timing.max_ttl_ms to %lu, as the other gateways have it",
                                              it.their_max_ttl_ms)
                                       : Text("compare the files of all gateways");
  tell_file(m, saw,
            Text("%s; if this file is to replace the other one: redlock reconfigure OTHER THIS", cure.c_str()),
            ". If the other file is lost: end its gateways, and then, ", code);
}

void check_record(unsigned m) {
  const Master& it = site.master[m];
  switch (it.record) {
    case Record::unread:
      return denied(m, it.record_err, read_record);
    case Record::none:
      return tell(Level::ok, "none yet: no client of any configuration was here");
    case Record::ours:
      return tell(Level::ok, "of this configuration");
    case Record::moving:
    case Record::left:
      return tell_mark(m);
    case Record::other:
      break;
  }
  if (it.has_left() && !site.served()) return tell_left(m);
  tell_other(m);
}

// A check that failed may be what keeps the guard from its end, and no wait ends that. todo: of a wait that ends it.
void check_guard(unsigned m, bool is_new_site, const char* todo) {
  const Master& it = site.master[m];
  if (it.record >= Record::moving) return;  // told already
  if (it.record == Record::unread || it.info_err != 0) {
    return it.record_err != 0 ? denied(m, it.record_err, read_record) : denied(m, it.info_err);
  }
  if (it.sealed) return tell(Level::ok, "its watch is over");
  const bool is_new = it.record == Record::none;
  Text saw("%s", is_new ? "not watched yet" : "watched");
  if (it.started_lately && !is_new_site) saw.add("%s after its server's start", is_new ? ", and empty" : "");
  saw.add(is_new || it.watched ? ": " : ": at most ").thousandths(it.guard_ms);
  saw.add(is_new ? " s from the first client on" : " s to go");
  if (has_failed(m)) return tell(Level::skipped, saw);
  tell(unless_quorum(site.votes()), saw, todo, exit_not_admitted);
}

void check_round_trip(unsigned m) {
  constexpr unsigned cycles = 50;
  Questions asked;
  for (unsigned i = 0; i < cycles; ++i) asked.command("PING");
  const int err = ask(asked, m);
  if (err != 0) return tell(Level::fail, redlock_strerror(err), "", exit_code_of(err));
  if (asked[0].err != 0) return tell(Level::unknown, Text("PING: %s", redlock_strerror(asked[0].err)));
  uint32_t times[cycles];
  for (unsigned i = 0; i < cycles; ++i) times[i] = asked[i].rtt_us;
  qsort(times, cycles, sizeof times[0], compare_u32);
  const uint32_t half = times[cycles / 2], p99 = times[cycles * 99 / 100];
  const uint32_t limit_us = site.times.node_timeout_ms * 1000;
  Text saw("p50 %u us, p99 %u us of %u cycles; node_timeout_ms %u", half, p99, cycles, site.times.node_timeout_ms);
  const char* const todo = "raise timing.node_timeout_ms, or look at the network";
  judge(saw, {{half > limit_us, Level::fail, todo}, {p99 > limit_us / 2, Level::warn, todo}});
}

}  // namespace

void examine_master(unsigned m, char** resources) {
  const Master& it = site.master[m];
  about("reach", &it);
  check_reach(it);
  if (it.err != 0) return;
#ifdef REDLOCK_TLS
  about("tls", &it);
  check_tls(m);
#endif
  begin_clock(m);
  check_permissions(m);
  check_info(m);
  about("timeout", &it);
  check_timeout(m);
  about("acl_keys", &it);
  const bool seeks_prefix = check_keys(m, resources);
  if (site.is_guarded()) {
    about("record", &it);
    check_record(m);
    about("prefix", &it);
    if (seeks_prefix) check_prefix(m);
  }
  about("round_trip", &it);
  check_round_trip(m);
}

void check_guards() {
  const bool is_new_site = site.count([](unsigned m) { return site.master[m].record > Record::none; }) == 0;
  const char* const todo =
      site.count(has_failed) != 0 ? "mend what fails above; then wait with a client running"
      : is_new_site ? "wait with a client running; on a new site, where nothing is held: redlock commission"
                    : "wait with a client running";
  for (unsigned m = 0; site.is_guarded() && m < site.masters; ++m) {
    if (site.master[m].err != 0) continue;
    about("guard", &site.master[m]);
    check_guard(m, is_new_site, todo);
  }
}

}  // namespace redlock::tool
