// SPDX-License-Identifier: MIT
#include "tool/doctor.hpp"

#include <stdlib.h>
#include <string.h>

#include "tool/clock.hpp"
#include "tool/say.hpp"

namespace redlock::tool {
namespace {

const char* name_of(Level level) {
  const char* const names[] = {"ok", "warn", "fail", "unknown"};
  return names[static_cast<int>(level)];
}

const char* color_of(Level level) {
  const char* const colors[] = {"\033[32m", "\033[33m", "\033[31m", "\033[33m"};
  return colors[static_cast<int>(level)];
}

}  // namespace

// ---- what is told -------------------------------------------------------------------------------------------------

void Doctor::begin() {
  if (json_) out_.open('{').text("schema", "redlock.doctor/1").open('[', "checks");
}

void Doctor::tell(Level level, const char* saw, const char* todo, ExitCode code) {
  ++told_[static_cast<int>(level)];
  if (level == Level::fail) code_ = worse_of(code_, code);
  if (json_) {
    out_.open('{').text("id", id_).text("master", master_).text("level", name_of(level));
    out_.text("saw", saw).text("do", *todo != '\0' ? todo : nullptr).close('}');
    return;
  }
  static const bool colored = has_colors(1);
  print("%s%-7s%s %-11s %s%s%s", colored ? color_of(level) : "", name_of(level), colored ? "\033[m" : "", id_,
        master_ != nullptr ? master_ : "", master_ != nullptr ? ": " : "", saw);
  if (*todo != '\0') print("        %-11s -> %s", "", todo);
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
  } else {
    print("%s: %u failed, %u to know, %u unknown, %u ok", failed == 0 ? "fit for locks" : "not fit for locks", failed,
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
  if (ttl_ms_ > times.max_ttl_ms) {
    tell(Level::fail, saw, "the ttl is above timing.max_ttl_ms: raise it, or take a shorter ttl",
         exit_config);
  } else if (ttl_ms_ < 3 * times.node_timeout_ms + drift_ms) {
    tell(Level::warn, saw, "a renewal that one slow master delays has little time: longer ttl");
  } else {
    tell(Level::ok, saw);
  }
  Text count;
  count.add("%u master(s), %u needed", site_.masters, site_.quorum);
  const char* const todo = site_.masters == 1       ? "without this master there are no locks: 3 survive the loss of 1"
                           : site_.masters % 2 == 0 ? "an even number costs a master and buys nothing"
                                                    : "";
  about("masters");
  tell(*todo != '\0' ? Level::warn : Level::ok, count, todo);
  if (site_.guarding != Guarding::strict) {
    const char* const mode = site_.guarding == Guarding::off ? "off" : "weak";
    about("guard_mode");
    tell(Level::warn, Text().add("guard: %s", mode),
         "\"strict\" notices every restart; without it two holders are possible");
  }
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

// ---- the command ----------------------------------------------------------------------------------------------------

namespace {

int run_doctor(const Command& command, int argc, char** argv) {
  enum { json = Options::first_long };
  const Option own[] = {{"json", json}, {"ttl", 't', true}};
  Options options(command, argc, argv, own);
  bool as_json = false;
  uint32_t ttl_ms = 0;
  for (int c; (c = options.next()) != Options::end;) {
    as_json = as_json || c == json;
    if (c != 't') continue;
    ttl_ms = static_cast<uint32_t>(options.number(REDLOCK_TTL_MS_MIN, REDLOCK_MAX_TTL_MS_MAX));
  }
  const unsigned count = static_cast<unsigned>(options.rest_count());
  if (count > Doctor::resources_max) options.usage("more than %u resources", Doctor::resources_max);
  for (unsigned i = 0; i < count; ++i) {
    if (strlen(options.rest()[i]) <= REDLOCK_RESOURCE_MAX) continue;
    options.usage("the name of a resource has more than %d bytes", REDLOCK_RESOURCE_MAX);
  }
  Site& site = sites[0];
  site.open(open_exposed_config(options.common()));
  Doctor doctor(site, ttl_ms != 0 ? ttl_ms : site.times.ttl_ms, as_json, options.rest(), count);
  doctor.begin();
  doctor.examine_site();
  site.look();
  for (unsigned m = 0; m < site.masters; ++m) doctor.examine_master(m);
  doctor.compare_masters();
  doctor.examine_gateway(config_path(options.common()));
  return doctor.end();
}

}  // namespace

const Command doctor_command = {
    "doctor", "[RES]...", "is this site fit for locks?",
    "  -t, --ttl MS        judge for locks of this ttl; else defaults.ttl_ms\n"
    "      --json          one JSON object\n",
    run_doctor};

}  // namespace redlock::tool
