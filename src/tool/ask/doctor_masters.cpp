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

}  // namespace

void Doctor::examine_master(unsigned m) {
  enum Needs { nothing, info, a_guard };
  static constexpr struct {
    const char* id;
    Needs needs;
    void (Doctor::*look)(unsigned m, const Master& it);
  } checks[] = {{"version", info, &Doctor::check_version},
                {"role", info, &Doctor::check_role},
                {"replicas", info, &Doctor::check_replicas},
                {"eviction", info, &Doctor::check_memory},
                {"persistence", info, &Doctor::check_persistence},
                {"acl", nothing, &Doctor::check_permissions},
                {"acl_keys", nothing, &Doctor::check_keys},
                {"record", a_guard, &Doctor::check_record},
                {"guard", a_guard, &Doctor::check_guard},
                {"prefix", a_guard, &Doctor::check_prefix},
                {"round_trip", nothing, &Doctor::check_round_trip}};
  const Master& it = site_.master[m];
  about("reach", &it);
  if (!check_reach(m, it)) return;
#ifdef REDLOCK_TLS
  about("tls", &it);
  check_tls(m, it);
#endif
  first_[m] = sample(m);
  for (const auto& one : checks) {
    if (one.needs == a_guard && !site_.is_guarded()) continue;
    about(one.id, &it);
    one.needs == info && it.info_err != 0 ? denied(it.info_err) : (this->*one.look)(m, it);
  }
}

bool Doctor::check_reach(unsigned, const Master& it) {
  if (it.err == 0) {
    tell(Level::ok, Text().add("%s answers", it.facts.address));
    return true;
  }
  const ExitCode code = exit_code_of(it.err);
  const Level gone = unless_quorum(site_.reached());
  judge(Text().add("%s: %s", it.facts.address, it.unasked.c_str()),
        {{it.err == REDLOCK_E_MISCONF, gone, "free its disk; its log says what it cannot write", code},
         {code == exit_too_few, gone, "start it, or look at the address and the network", code},
         {true, Level::fail, "correct the configuration, or the server's users", code}});
  return false;
}

#ifdef REDLOCK_TLS
// A step of the handshake is not divided: while it computes, no renewal begins.
void Doctor::check_tls(unsigned m, const Master&) {
  constexpr int64_t day_s = 86'400, ahead_days = 30;
  auto tls = sized<redlock_site_tls_t>();
  const int err = redlock_site_tls(site_.cfg, m, &tls);
  if (err == REDLOCK_E_NOTSUP) return;  // a plain master
  if (err != 0) return tell(Level::unknown, redlock_strerror(err));
  Text saw;
  saw.add("%s, %s; the longest step of a handshake took ", tls.version, tls.cipher).thousandths(tls.step_us).add(" ms");
  const int64_t days = (tls.ends_s - ns_of(CLOCK_REALTIME) / 1'000'000'000) / day_s;
  if (tls.ends_s != 0) saw.add("; its certificates are valid for %lld more day(s)", static_cast<long long>(days));
  judge(saw, {{tls.ends_s != 0 && days < ahead_days, Level::warn, "give it new certificates; clients need no restart"},
              {tls.step_us > site_.times.node_timeout_ms * 500, Level::warn,
               "renewals wait for such a step: raise timing.node_timeout_ms and the ttl, or use P-256 keys"}});
}
#endif

void Doctor::check_version(unsigned, const Master& it) {
  judge(Text().add("%s ", it.valkey ? "Valkey" : "Redis").escaped(it.version),
        {{strtol(it.version, nullptr, 10) < 6, Level::warn,
          "older than 6.0: waiters poll, and each acquire is a script"}});
}

void Doctor::check_role(unsigned, const Master& it) {
  judge(Text().escaped(it.role).add(", ").escaped(it.mode),
        {{strcmp(it.mode, "standalone") != 0, Level::fail,
          "list standalone masters, no cluster nodes and no sentinels", exit_code_of(REDLOCK_E_MODE)},
         {strcmp(it.role, "master") != 0, Level::fail,
          "a replica votes for nobody: list masters alone", exit_code_of(REDLOCK_E_ROLE)}});
}

void Doctor::check_replicas(unsigned, const Master& it) {
  Text saw;
  saw.add("%lld replica(s), replication backlog ", static_cast<long long>(it.replicas));
  saw.add("%s", it.backlog > 0 ? "on" : "off");
  judge(saw, {{it.replicas > 0 || it.backlog > 0, Level::warn,
               "a replica that is promoted is watched before it votes; with one, each acquire is a script"}});
}

void Doctor::check_memory(unsigned, const Master& it) {
  Text saw;
  saw.add("maxmemory %lld, policy ", static_cast<long long>(it.maxmemory)).escaped(it.policy);
  if (it.evicted > 0) saw.add(", %lld keys were evicted", static_cast<long long>(it.evicted));
  const bool evicts = it.maxmemory > 0 && strcmp(it.policy, "noeviction") != 0;
  const bool is_full = it.maxmemory > 0 && it.used_memory > it.maxmemory / 10 * 9;
  if (is_full && !evicts) saw.add(", %lld used", static_cast<long long>(it.used_memory));
  judge(saw, {{it.maxmemory < 0 || it.policy[0] == '\0', Level::unknown, ""},
              {evicts, Level::fail, "lock keys may be evicted: CONFIG SET maxmemory-policy noeviction",
               exit_code_of(REDLOCK_E_MAXMEMORY)},
              {is_full, Level::warn, "at maxmemory it refuses locks (OOM): give it more memory"}});
}

void Doctor::check_persistence(unsigned, const Master& it) {
  if (it.aof < 0 || it.rdb_ok < 0) return tell(Level::unknown, "INFO does not say");
  if (it.rdb_ok == 0) {
    return tell(Level::fail, "the last save has failed",
                "it may refuse every write (MISCONF): look at its disk and its log");
  }
  tell(Level::ok,
       Text().add("%s; after a restart it is watched before it votes, whatever was saved",
                  it.aof != 0 ? "append-only file" : "no append-only file"));
}

void Doctor::check_record(unsigned m, const Master& it) {
  switch (it.record) {
    case Record::unread:
      return denied(it.record_err);
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
  const bool same_numbers = it.their_masters == site_.masters && it.their_max_ttl_ms == site_.times.max_ttl_ms;
  Text saw;
  saw.add("of another configuration: %lu master(s), max_ttl_ms %lu; ", it.their_masters, it.their_max_ttl_ms);
  saw.add("this one: %u master(s), max_ttl_ms %u", site_.masters, site_.times.max_ttl_ms);
  Text todo;
  todo.add("compare the files of all gateways; ");
  if (!site_.served()) {
    todo.add("if this file is to replace the other one: redlock reconfigure OTHER THIS. If the other file is lost: end "
             "its gateways, and then, ");
  }
  if (same_numbers) saw.add(", with other names");
  todo.add("%s", site_.deletion(m).c_str());
  tell(Level::fail, saw, todo.c_str(), exit_code_of(REDLOCK_E_FINGERPRINT));
}

// Of a master that bears the mark of a change.
void Doctor::tell_mark(unsigned m) {
  const Master& it = site_.master[m];
  const Text mark = site_.mark(m);
  Text saw, todo;
  if (!it.about_us) {
    saw.add("was left by a change between two other configurations (%s)", mark.c_str());
    if (!site_.served()) todo.add("compare the files of all gateways; ");
    todo.add("%s", site_.deletion(m).c_str());
    return tell(Level::fail, saw, todo.c_str(), exit_config);
  }
  if (site_.served()) {
    saw.add("bears the mark of a change between this configuration and another, which has ended without it or has only "
            "begun (%s)",
            mark.c_str());
    todo.add("repeat or undo the change (redlock reconfigure); or, %s", site_.deletion(m).c_str());
    return tell(Level::warn, saw, todo.c_str());
  }
  if (it.record == Record::left && it.ours_is_old) {
    saw.add("%s (%s)", redlock_strerror(REDLOCK_E_LEFT), mark.c_str());
    todo.add("compare the files of all gateways: give this one the new file; or, if the site is to go back, redlock "
             "reconfigure NEW OLD; or, where the gateways have a third file: %s",
             site_.deletion(m).c_str());
    return tell(Level::fail, saw, todo.c_str(), exit_left);
  }
  saw.add("a change between this configuration and another is under way, %s: nobody may be able to lock ",
          it.ours_is_old ? "was given up, or has left this one behind" : "or was given up");
  todo.add("compare the files of all gateways; wait for its end; if none runs, repeat it or undo it: redlock "
           "reconfigure OLD NEW. Start no gateway with NEW before; or, where the gateways have a third file: %s",
           site_.deletion(m).c_str());
  tell(Level::fail, saw.add("(%s)", mark.c_str()), todo.c_str(), exit_not_admitted);
}

void Doctor::check_guard(unsigned, const Master& it) {
  if (it.record >= Record::moving) return;  // told already
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

void Doctor::check_round_trip(unsigned m, const Master&) {
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
  const char* const todo = "raise timing.node_timeout_ms, or look at the network";
  judge(saw, {{half > limit_us, Level::fail, todo}, {p99 > limit_us / 2, Level::warn, todo}});
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
  judge(saw, {{surely_ppm > site_.times.drift_ppm / 2, Level::fail,
               "its clock was stepped, or runs off rate: keys end too early; mend its time service"},
              {llabs(offset_ms) > 1000, Level::warn,
               site_.masters < 3 ? "chronyc makestep there, while nobody holds a lock"
                                 : "chronyc makestep there; then it has no vote for a guard time"}});
}

}  // namespace redlock::tool
