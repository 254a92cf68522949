// SPDX-License-Identifier: MIT
#include "tool/ask/doctor.hpp"

#include <stdlib.h>
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

}  // namespace

// ---- what is told -------------------------------------------------------------------------------------------------

void Doctor::tell(Level level, const char* saw, const char* todo, ExitCode code) {
  const auto& as = levels[static_cast<int>(level)];
  ++told_[static_cast<int>(level)];
  if (level == Level::fail) code_ = worse_of(code_, code);
  if (json_) {
    out_.open('{').text("id", id_).text("master", master_).text("level", as.name);
    out_.text("saw", saw).text("do", *todo != '\0' ? todo : nullptr).close('}');
    return;
  }
  if (level == Level::ok && is_quiet) return;
  static const bool colored = has_colors(1);
  putf("%s%-7s%s ", colored ? as.color : "", as.name, colored ? "\033[m" : "");
  print("%-11s %s%s%s", id_, master_ != nullptr ? master_ : "", master_ != nullptr ? ": " : "", saw);
  if (*todo != '\0') print("        %-11s -> %s", "", todo);
}

void Doctor::judge(const Text& saw, std::initializer_list<Finding> findings) {
  for (const Finding& one : findings) {
    if (one.holds) return tell(one.level, saw, one.todo, one.code);
  }
  tell(Level::ok, saw);
}

void Doctor::denied(int err) {
  tell(Level::unknown, Text().add("not told: %s", redlock_strerror(err)),
       "let the user read it for this check (+info), or ask the operator of the server");
}

ExitCode Doctor::end() {
  const unsigned failed = told_[static_cast<int>(Level::fail)];
  const unsigned warned = told_[static_cast<int>(Level::warn)];
  const unsigned unknown = told_[static_cast<int>(Level::unknown)];
  if (json_) {
    out_.close(']').boolean("fit", failed == 0).number("failed", failed).number("warned", warned);
    out_.number("unknown", unknown).number("exit", code_).close('}').end();
  } else if (!is_quiet) {
    site_.print_table();
    print("%s: %u failed, %u warned, %u unknown, %u ok", failed == 0 ? "fit for locks" : "not fit for locks", failed,
          warned, unknown, told_[static_cast<int>(Level::ok)]);
  }
  if (code_ != exit_ok) say("doctor: %u check(s) failed", failed);
  return code_;
}

// ---- the site as a whole --------------------------------------------------------------------------------------------

void Doctor::examine_site() {
  const Times& times = site_.times;
  const uint32_t drift_ms =
      static_cast<uint32_t>(uint64_t{ttl_ms_} * times.drift_ppm / 1'000'000) + times.drift_fixed_ms;
  Text saw;
  saw.add("ttl %u ms, max_ttl %u ms, node timeout %u ms, drift %u ms", ttl_ms_, times.max_ttl_ms,
          times.node_timeout_ms, drift_ms);
  about("ttl");
  judge(saw, {{ttl_ms_ > times.max_ttl_ms, Level::fail,
               "the ttl is above timing.max_ttl_ms: raise it, or take a shorter ttl", exit_config},
              {ttl_ms_ < 3 * times.node_timeout_ms + drift_ms, Level::warn,
               "a renewal that one slow master delays has little time: longer ttl"}});
  Text count;
  count.add("%u master(s), %u needed", site_.masters, site_.quorum);
  about("masters");
  judge(count, {{site_.masters == 1, Level::warn, "without this master there are no locks: 3 survive the loss of 1"},
                {site_.masters % 2 == 0, Level::warn, "an even number costs a master and buys nothing"}});
  if (strcmp(site_.guard, "strict") == 0) return;
  about("guard_mode");
  tell(Level::warn, Text().add("guard: %s", site_.guard),
       "\"strict\" notices every restart; without it two holders are possible");
}

void Doctor::compare_masters() {
  bool same = false;
  unsigned known = 0;
  for (unsigned a = 0; a < site_.masters; ++a) {
    const Master& one = site_.master[a];
    known += one.run_id[0] != '\0';
    for (unsigned b = 0; b < a; ++b) {
      if (one.run_id[0] == '\0' || strcmp(one.run_id, site_.master[b].run_id) != 0) continue;
      same = true;
      about("duplicate", &one);
      tell(Level::fail,
           Text().add("is the same server as %s", site_.master[b].name()),
           "two entries of one server have two votes: remove one", exit_config);
    }
  }
  about("duplicate");
  if (known < site_.masters) {
    tell(Level::unknown, Text().add("%u of %u run ids are known", known, site_.masters));
  } else if (!same) {
    tell(Level::ok, Text().add("%u different servers", site_.masters));
  }
  // A second after its first sample, a clock that runs off rate shows.
  pause_ms(1000);
  for (unsigned m = 0; m < site_.masters; ++m) {
    if (site_.master[m].err == 0) check_clock(m, first_[m], sample(m));
  }
}

// ---- the gateway ----------------------------------------------------------------------------------------------------

void Doctor::check_clock_source() {
  about("gw_clock");
  char name[64];
  if (read_file("/sys/devices/system/clocksource/clocksource0/current_clocksource", name, sizeof name) <= 0) {
    return tell(Level::unknown, "the kernel does not tell its clock source");
  }
  name[strcspn(name, "\n")] = '\0';
  judge(Text().add("clock source ").escaped(name),
        {{strstr(name, "jiffies") != nullptr, Level::warn,
          "a coarse clock: times are off by milliseconds; use another clock source"}});
}

void Doctor::check_suspend() {
  about("gw_suspend");
  const int64_t boot = ns_of(CLOCK_BOOTTIME), mono = ns_of(CLOCK_MONOTONIC);
  if (boot < 0 || mono < 0) {
    return tell(Level::fail, "no CLOCK_BOOTTIME", "no client can run here",
                exit_system);
  }
  char states[128];
  const ssize_t size = read_file("/sys/power/state", states, sizeof states);
  if (size < 0) {
    return tell(Level::unknown, "the kernel does not tell whether it suspends");
  }
  const bool suspends = strstr(states, "mem") != nullptr || strstr(states, "standby") != nullptr;
  const int64_t slept_ms = (boot - mono) / 1'000'000;
  tell(Level::ok,
       Text().add("%s; ", suspends ? "can suspend" : "does not suspend").thousandths(slept_ms)
           .add(" s of suspend since boot were counted"));
}

void Doctor::check_secrets(const char* config) {
  about("gw_secrets");
  if (config == nullptr) return;
  const char* const exposed = site_.facts().warning;
  if (*exposed == '\0') return tell(Level::ok, Text().escaped(config).add(": others can read no password in it"));
  tell(Level::fail, exposed, "or put the password into a \"password_file\"", exit_config);
}

// ---- the command ----------------------------------------------------------------------------------------------------

namespace {

int run_doctor(const Command& command, int argc, char** argv) {
  bool as_json = false;
  uint32_t ttl_ms = 0;
  const Options options(
      command, argc, argv,
      {{.name = "json", .flag = &as_json},
       {.name = "ttl", .letter = 't', .number = &ttl_ms, .min = REDLOCK_TTL_MS_MIN, .max = REDLOCK_MAX_TTL_MS_MAX}});
  const unsigned count = static_cast<unsigned>(options.rest_count());
  if (count > Doctor::resources_max) options.usage("more than %u resources", Doctor::resources_max);
  for (unsigned i = 0; i < count; ++i) options.check_resource(options.rest()[i]);
  Site& site = sites[0];
  site.open(open_config(options.common(), true));
  Doctor doctor(site, ttl_ms != 0 ? ttl_ms : site.times.ttl_ms, as_json, options.rest(), count);
  doctor.examine_site();
  for (unsigned m = 0; m < site.masters; ++m) site.look_at(m);
  for (unsigned m = 0; m < site.masters; ++m) doctor.examine_master(m);
  doctor.compare_masters();
  doctor.check_clock_source();
  doctor.check_suspend();
  doctor.check_secrets(config_path(options.common()));
  return doctor.end();
}

}  // namespace

const Command doctor_command = {
    "doctor", "[RES]...", "is this site fit for locks?",
    "  -t, --ttl MS        judge for locks of this ttl; else defaults.ttl_ms\n"
    "      --json          one JSON object\n",
    run_doctor};

}  // namespace redlock::tool
