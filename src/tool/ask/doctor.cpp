// SPDX-License-Identifier: MIT
#include "tool/ask/doctor.hpp"

#include <string.h>

#include "tool/system/clock.hpp"
#include "tool/system/descriptors.hpp"
#include "tool/words/say.hpp"

namespace redlock::tool {
namespace {

constexpr struct {
  const char* name;
  const char* color;
} levels[] = {{"ok", "\033[32m"}, {"warn", "\033[33m"}, {"fail", "\033[31m"}, {"unknown", "\033[33m"}};

const char* id = "";
const char* of = nullptr;  // which master
bool as_json = false;
Json json;
ExitCode worst = exit_ok;
unsigned told[4];  // of each level

}  // namespace

// ---- what is told -------------------------------------------------------------------------------------------------

void about(const char* check, const Master* master) {
  id = check;
  of = master != nullptr ? master->name() : nullptr;
}

void tell(Level level, const char* saw, const char* todo, ExitCode code) {
  const auto& as = levels[static_cast<int>(level)];
  ++told[static_cast<int>(level)];
  if (level == Level::fail) worst = worse_of(worst, code);
  if (as_json) {
    json.open("{").text("id", id).text("master", of).text("level", as.name);
    json.text("saw", saw).text("do", *todo != '\0' ? todo : nullptr).close("}");
    return;
  }
  if (level == Level::ok && is_quiet) return;
  static const bool colored = has_colors(1);
  put(Text("%s%-7s%s ", colored ? as.color : "", as.name, colored ? "\033[m" : ""));
  print("%-11s %s%s%s", id, of != nullptr ? of : "", of != nullptr ? ": " : "", saw);
  if (*todo != '\0') print("        %-11s -> %s", "", todo);
}

void judge(const Text& saw, std::initializer_list<Finding> findings) {
  for (const Finding& one : findings) {
    if (one.holds) return tell(one.level, saw, one.todo, one.code);
  }
  tell(Level::ok, saw);
}

namespace {

ExitCode end() {
  const auto [ok, warned, failed, unknown] = told;
  if (as_json) {
    json.close("]").boolean("fit", failed == 0).number("failed", failed).number("warned", warned);
    json.number("unknown", unknown).number("exit", worst).close("}").end();
  } else if (!is_quiet) {
    site.print_table();
    print("%s: %u failed, %u warned, %u unknown, %u ok", failed == 0 ? "fit for locks" : "not fit for locks", failed,
          warned, unknown, ok);
  }
  if (worst != exit_ok) say("doctor: %u check(s) failed", failed);
  return worst;
}

// ---- the site as a whole --------------------------------------------------------------------------------------------

void examine_site(uint32_t ttl_ms) {
  const Times& times = site.times;
  const uint32_t drift_ms =
      static_cast<uint32_t>(uint64_t{ttl_ms} * times.drift_ppm / 1'000'000) + times.drift_fixed_ms;
  const Text saw("ttl %u ms, max_ttl %u ms, node timeout %u ms, drift %u ms", ttl_ms, times.max_ttl_ms,
                 times.node_timeout_ms, drift_ms);
  about("ttl");
  judge(saw, {{ttl_ms > times.max_ttl_ms, Level::fail,
               "the ttl is above timing.max_ttl_ms: raise it, or take a shorter ttl", exit_config},
              {ttl_ms < 3 * times.node_timeout_ms + drift_ms, Level::warn,
               "a renewal that one slow master delays has little time: longer ttl"}});
  const Text count("%u master(s), %u needed", site.masters, site.quorum);
  about("masters");
  judge(count, {{site.masters == 1, Level::warn, "without this master there are no locks: 3 survive the loss of 1"},
                {site.masters % 2 == 0, Level::warn, "an even number costs a master and buys nothing"}});
  if (strcmp(site.guard, "strict") == 0) return;
  about("guard_mode");
  tell(Level::warn, Text("guard: %s", site.guard),
       "\"strict\" notices every restart; without it two holders are possible");
}

void compare_masters() {
  bool same = false;
  unsigned known = 0;
  for (unsigned a = 0; a < site.masters; ++a) {
    const Master& one = site.master[a];
    known += one.run_id[0] != '\0';
    for (unsigned b = 0; b < a; ++b) {
      if (one.run_id[0] == '\0' || strcmp(one.run_id, site.master[b].run_id) != 0) continue;
      same = true;
      about("duplicate", &one);
      tell(Level::fail, Text("is the same server as %s", site.master[b].name()),
           "two entries of one server have two votes: remove one", exit_config);
    }
  }
  about("duplicate");
  if (known < site.masters) {
    tell(Level::unknown, Text("%u of %u run ids are known", known, site.masters));
  } else if (!same) {
    tell(Level::ok, Text("%u different servers", site.masters));
  }
}

// ---- the gateway ----------------------------------------------------------------------------------------------------

void check_clock_source() {
  about("gw_clock");
  char name[64];
  if (read_file("/sys/devices/system/clocksource/clocksource0/current_clocksource", name, sizeof name) <= 0) {
    return tell(Level::unknown, "the kernel does not tell its clock source");
  }
  name[strcspn(name, "\n")] = '\0';
  judge(Text("clock source ").escaped(name),
        {{strstr(name, "jiffies") != nullptr, Level::warn,
          "a coarse clock: times are off by milliseconds; use another clock source"}});
}

void check_suspend() {
  about("gw_suspend");
  const int64_t boot = ns_of(CLOCK_BOOTTIME), mono = ns_of(CLOCK_MONOTONIC);
  if (boot < 0 || mono < 0) {
    return tell(Level::fail, "no CLOCK_BOOTTIME", "no client can run here", exit_system);
  }
  char states[128];
  const ssize_t size = read_file("/sys/power/state", states, sizeof states);
  if (size < 0) return tell(Level::unknown, "the kernel does not tell whether it suspends");
  const bool suspends = strstr(states, "mem") != nullptr || strstr(states, "standby") != nullptr;
  const int64_t slept_ms = (boot - mono) / 1'000'000;
  Text saw("%s; ", suspends ? "can suspend" : "does not suspend");
  tell(Level::ok, saw.thousandths(slept_ms).add(" s of suspend since boot were counted"));
}

void check_secrets(const char* config) {
  about("gw_secrets");
  if (config == nullptr) return;
  tell(Level::ok, Text().escaped(config).add(": others can read no password in it"));
}

// ---- the command ----------------------------------------------------------------------------------------------------

int run_doctor(const Command& command, int argc, char** argv) {
  uint32_t ttl_ms = 0;
  const Options options(
      command, argc, argv,
      {{.name = "json", .flag = &as_json},
       {.name = "ttl", .letter = 't', .number = &ttl_ms, .min = REDLOCK_TTL_MS_MIN, .max = REDLOCK_MAX_TTL_MS_MAX}});
  if (options.rest_count() > resources_max) options.usage("more than %d resources", resources_max);
  for (int i = 0; i < options.rest_count(); ++i) options.check_resource(options.rest()[i]);
  if (as_json) json.open("{").text("schema", "redlock.doctor/1").open("[", "checks");
  site.open(open_config(options.common()));
  examine_site(ttl_ms != 0 ? ttl_ms : site.times.ttl_ms);
  site.look_at_all();
  for (unsigned m = 0; m < site.masters; ++m) examine_master(m, options.rest());
  compare_masters();
  check_clocks();
  check_clock_source();
  check_suspend();
  check_secrets(config_path(options.common()));
  return end();
}

}  // namespace

const Command doctor_command = {
    "doctor", "[RES]...", "is this site fit for locks?",
    "  -t, --ttl MS        judge for locks of this ttl; else defaults.ttl_ms\n"
    "      --json          one JSON object\n",
    run_doctor};

}  // namespace redlock::tool
