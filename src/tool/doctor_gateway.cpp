// SPDX-License-Identifier: MIT
//
// What the doctor sees of the machine that it runs on.
#include <string.h>

#include "tool/clock.hpp"
#include "tool/doctor.hpp"
#include "tool/file.hpp"
#include "tool/options.hpp"

namespace redlock::tool {

void Doctor::check_clock_source() {
  about("gw_clock");
  char name[64];
  if (read_file("/sys/devices/system/clocksource/clocksource0/current_clocksource", name, sizeof name) <= 0) {
    return tell(Level::unknown, "the kernel does not tell its clock source");
  }
  name[strcspn(name, "\n")] = '\0';
  const bool coarse = strstr(name, "jiffies") != nullptr;
  tell(coarse ? Level::warn : Level::ok, Text().add("clock source ").escaped(name),
       coarse ? "a coarse clock: times are off by milliseconds; use another clock source" : "");
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
  const char* const exposed = exposed_secret(site_.cfg);
  if (*exposed == '\0') return tell(Level::ok, Text().escaped(config).add(": others can read no password in it"));
  tell(Level::fail, exposed, "or put the password into a \"password_file\"", exit_config);
}

void Doctor::examine_gateway(const char* config) {
  check_clock_source();
  check_suspend();
  check_secrets(config);
}

}  // namespace redlock::tool
