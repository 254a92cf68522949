// SPDX-License-Identifier: MIT
//
// What the doctor sees of one master.
#include <stdlib.h>
#include <string.h>

#include "tool/clock.hpp"
#include "tool/doctor.hpp"

namespace redlock::tool {
namespace {

int compare_u32(const void* a, const void* b) {
  const uint32_t x = *static_cast<const uint32_t*>(a), y = *static_cast<const uint32_t*>(b);
  return x < y ? -1 : x > y;
}

}  // namespace

void Doctor::examine_master(unsigned m) {
  if (!check_reach(m)) return;
#ifdef REDLOCK_TLS
  check_tls(m);
#endif
  first_[m] = sample(m);
  if (site_.master[m].info_err != 0) {
    const char* const ids[] = {"version", "role", "replicas", "eviction", "persistence"};
    for (const char* id : ids) {
      about(id, &site_.master[m]);
      denied(site_.master[m].info_err);
    }
  } else {
    check_version(m);
    check_role(m);
    check_replicas(m);
    check_memory(m);
    check_persistence(m);
  }
  check_permissions(m);
  check_keys(m);
  if (site_.guarding != Guarding::off) {
    check_record(m);
    check_guard(m);
  }
  check_round_trip(m);
}

bool Doctor::check_reach(unsigned m) {
  about("reach", &site_.master[m]);
  const Master& it = site_.master[m];
  if (it.err == 0) {
    tell(Level::ok, Text().add("%s answers", it.facts.address));
    return true;
  }
  const ExitCode code = exit_code_of(it.err);
  const bool only_gone = code == exit_too_few;
  const char* remedy = "correct the configuration, or the server's users";
  if (only_gone) remedy = "start it, or look at the address and the network";
  if (it.err == REDLOCK_E_MISCONF) remedy = "free its disk; its log says what it cannot write";
  tell(only_gone ? unless_quorum(site_.reached()) : Level::fail,
       Text().add("%s: %s", it.facts.address, redlock_strerror(it.err)), remedy, code);
  return false;
}

#ifdef REDLOCK_TLS
// A step of the handshake is not divided: while it computes, no renewal begins.
void Doctor::check_tls(unsigned m) {
  constexpr int64_t day_s = 86'400, ahead_days = 30;
  redlock_site_tls_t tls = {};
  tls.size = sizeof tls;
  const int err = redlock_site_tls(site_.cfg, m, &tls);
  if (err == REDLOCK_E_NOTSUP) return;  // a plain master
  about("tls", &site_.master[m]);
  if (err != 0) return tell(Level::unknown, redlock_strerror(err));
  Text saw;
  saw.add("%s, %s; the longest step of a handshake took ", tls.version, tls.cipher).thousandths(tls.step_us).add(" ms");
  const int64_t days = (tls.ends_s - ns_of(CLOCK_REALTIME) / 1'000'000'000) / day_s;
  const bool ends = tls.ends_s != 0 && days < ahead_days;
  if (tls.ends_s != 0) saw.add("; its certificates are valid for %lld more day(s)", static_cast<long long>(days));
  if (ends) return tell(Level::warn, saw, "give it new certificates; clients need no restart");
  const bool slow = tls.step_us > site_.times.node_timeout_ms * 500;
  tell(slow ? Level::warn : Level::ok, saw,
       slow ? "renewals wait for such a step: raise timing.node_timeout_ms and the ttl, or use P-256 keys" : "");
}
#endif

void Doctor::check_version(unsigned m) {
  about("version", &site_.master[m]);
  const Master& it = site_.master[m];
  const long major = strtol(it.version, nullptr, 10);
  tell(major >= 6 ? Level::ok : Level::warn,
       Text().add("%s ", it.valkey ? "Valkey" : "Redis").escaped(it.version),
       major >= 6 ? "" : "older than 6.0: waiters poll, and each acquire is a script");
}

void Doctor::check_role(unsigned m) {
  about("role", &site_.master[m]);
  const Master& it = site_.master[m];
  Text saw;
  saw.escaped(it.role).add(", ").escaped(it.mode);
  if (strcmp(it.mode, "standalone") != 0) {
    tell(Level::fail, saw, "list standalone masters, no cluster nodes and no sentinels",
         exit_code_of(REDLOCK_E_MODE));
  } else if (strcmp(it.role, "master") != 0) {
    tell(Level::fail, saw, "a replica votes for nobody: list masters alone",
         exit_code_of(REDLOCK_E_ROLE));
  } else {
    tell(Level::ok, saw);
  }
}

void Doctor::check_replicas(unsigned m) {
  about("replicas", &site_.master[m]);
  const Master& it = site_.master[m];
  const bool any = it.replicas > 0 || it.backlog > 0;
  Text saw;
  saw.add("%lld replica(s), replication backlog ", static_cast<long long>(it.replicas));
  saw.add("%s", it.backlog > 0 ? "on" : "off");
  tell(any ? Level::warn : Level::ok, saw,
       any ? "a replica that is promoted is watched before it votes; with one, each acquire is a script" : "");
}

void Doctor::check_memory(unsigned m) {
  about("eviction", &site_.master[m]);
  const Master& it = site_.master[m];
  Text saw;
  saw.add("maxmemory %lld, policy ", static_cast<long long>(it.maxmemory)).escaped(it.policy);
  if (it.evicted > 0) saw.add(", %lld keys were evicted", static_cast<long long>(it.evicted));
  if (it.maxmemory < 0 || it.policy[0] == '\0') {
    tell(Level::unknown, saw);
  } else if (it.maxmemory > 0 && strcmp(it.policy, "noeviction") != 0) {
    tell(Level::fail, saw, "lock keys may be evicted: CONFIG SET maxmemory-policy noeviction",
         exit_code_of(REDLOCK_E_MAXMEMORY));
  } else if (it.maxmemory > 0 && it.used_memory > it.maxmemory / 10 * 9) {
    tell(Level::warn, saw.add(", %lld used", static_cast<long long>(it.used_memory)),
         "at maxmemory it refuses locks (OOM): give it more memory");
  } else {
    tell(Level::ok, saw);
  }
}

void Doctor::check_persistence(unsigned m) {
  about("persistence", &site_.master[m]);
  const Master& it = site_.master[m];
  if (it.aof < 0 || it.rdb_ok < 0) return tell(Level::unknown, "INFO does not say");
  if (it.rdb_ok == 0) {
    return tell(Level::fail, "the last save has failed",
                "it may refuse every write (MISCONF): look at its disk and its log");
  }
  tell(Level::ok,
       Text().add("%s; after a restart it is watched before it votes, whatever was saved",
                  it.aof != 0 ? "append-only file" : "no append-only file"));
}

void Doctor::check_record(unsigned m) {
  about("record", &site_.master[m]);
  const Master& it = site_.master[m];
  switch (it.record) {
    case Record::unread:
      return denied(it.record_err);
    case Record::none:
      return tell(Level::ok, "none yet: no client of any configuration was here");
    case Record::ours:
      return tell(Level::ok, "of this configuration");
    case Record::moving:
      return tell(Level::fail, "a change of the masters is under way, or was given up",
                  "wait for its end, or repeat the call: redlock reconfigure, redlock adopt", exit_not_admitted);
    case Record::other:
      break;
  }
  const bool same_numbers = it.their_masters == site_.masters && it.their_max_ttl_ms == site_.times.max_ttl_ms;
  Text saw;
  saw.add("of another configuration: %lu master(s), max_ttl_ms %lu; ", it.their_masters, it.their_max_ttl_ms);
  saw.add("this one: %u master(s), max_ttl_ms %u", site_.masters, site_.times.max_ttl_ms);
  tell(Level::fail, same_numbers ? saw.add(", with other names") : saw,
       "one of the two is wrong; to take the master over: redlock adopt", exit_code_of(REDLOCK_E_FINGERPRINT));
}

void Doctor::check_guard(unsigned m) {
  about("guard", &site_.master[m]);
  const Master& it = site_.master[m];
  if (it.record == Record::moving || it.record == Record::other) return;  // told already
  if (it.record == Record::unread || it.info_err != 0) {
    return denied(it.record_err != 0 ? it.record_err : it.info_err);
  }
  if (it.sealed) return tell(Level::ok, "its watch is over");
  Text saw;
  if (it.record == Record::none) {
    saw.add("not watched yet: ").thousandths(it.guard_ms).add(" s from the first client on");
  } else {
    saw.add("watched: %s", it.watched ? "" : "at most ").thousandths(it.guard_ms).add(" s to go");
  }
  tell(unless_quorum(site_.votes()), saw,
       "wait with a client running; on a new site, where nothing is held: redlock commission", exit_not_admitted);
}

void Doctor::check_round_trip(unsigned m) {
  about("round_trip", &site_.master[m]);
  Questions asked;
  for (unsigned i = 0; i < cycles; ++i) asked.command("PING");
  const int err = asked.ask(site_.cfg, m);
  if (err != 0) {
    return tell(Level::fail, redlock_strerror(err), "", exit_code_of(err));
  }
  uint32_t times[cycles];
  for (unsigned i = 0; i < cycles; ++i) times[i] = asked[i].rtt_us;
  qsort(times, cycles, sizeof times[0], compare_u32);
  const uint32_t half = times[cycles / 2], p99 = times[cycles * 99 / 100];
  const uint32_t limit_us = site_.times.node_timeout_ms * 1000;
  Text saw;
  saw.add("p50 %u us, p99 %u us of %u cycles; node_timeout_ms %u", half, p99, cycles, site_.times.node_timeout_ms);
  const Level level = half > limit_us ? Level::fail : p99 > limit_us / 2 ? Level::warn : Level::ok;
  tell(level, saw, level == Level::ok ? "" : "raise timing.node_timeout_ms, or look at the network");
}

Doctor::Sample Doctor::sample(unsigned m) const {
  Questions asked;
  for (unsigned i = 0; i < 5; ++i) asked.command("TIME");
  Sample best;
  if (asked.ask(site_.cfg, m) != 0) return best;
  for (unsigned i = 0; i < 5; ++i) {
    const char* seconds = asked.text(i, 1);
    const char* us = asked.text(i, 2);
    if (seconds == nullptr || us == nullptr || (best.server_us != 0 && best.rtt_us <= asked[i].rtt_us)) continue;
    best.server_us = strtoll(seconds, nullptr, 10) * 1'000'000 + strtoll(us, nullptr, 10);
    best.rtt_us = asked[i].rtt_us;
    best.ours_ns = asked[i].asked_ns + best.rtt_us * 500;
  }
  return best;
}

void Doctor::check_clock(unsigned m, const Sample& first, const Sample& second) {
  about("clock", &site_.master[m]);
  if (first.server_us == 0 || second.server_us == 0) return tell(Level::unknown, "no TIME");
  const int64_t ours_now_ns = ns_of(CLOCK_MONOTONIC_RAW) + ns_of(CLOCK_BOOTTIME) - ns_of(CLOCK_MONOTONIC);
  const int64_t wall_us = (ns_of(CLOCK_REALTIME) - (ours_now_ns - second.ours_ns)) / 1000;
  const int64_t offset_ms = (second.server_us - wall_us) / 1000;
  const int64_t ours_us = (second.ours_ns - first.ours_ns) / 1000;
  const int64_t error_us = (first.rtt_us + second.rtt_us) / 2 + 1000;  // of each sample, and of our clock
  const int64_t off_us = second.server_us - first.server_us - ours_us;
  const int64_t surely_us = llabs(off_us) > error_us ? llabs(off_us) - error_us : 0;
  const int64_t surely_ppm = ours_us > 0 ? surely_us * 1'000'000 / ours_us : 0;
  Text saw;
  saw.add("%lld ms beside this machine; in ", static_cast<long long>(offset_ms)).thousandths(ours_us / 1000);
  saw.add(" s it was off by ").thousandths(off_us).add(" ms (+- ").thousandths(error_us).add(" ms)");
  if (surely_ppm > site_.times.drift_ppm / 2) {
    tell(Level::fail, saw, "its clock was stepped, or runs off rate: keys end too early; slew it");
  } else if (llabs(offset_ms) > 1000) {
    tell(Level::warn, saw, "if it is corrected by a step, its keys end too early: slew it");
  } else {
    tell(Level::ok, saw);
  }
}

}  // namespace redlock::tool
