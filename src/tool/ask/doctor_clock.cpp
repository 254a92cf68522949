// SPDX-License-Identifier: MIT
//
// Clocks: two samples of each server's tell whether it was stepped, or runs off rate. Where most masters agree with
// each other and differ from this machine, it is this machine's clock that is wrong: one cause, one line.
#include <stdlib.h>

#include "tool/ask/doctor.hpp"
#include "tool/system/clock.hpp"

namespace redlock::tool {
namespace {

constexpr int64_t second_ms = 1000;
constexpr int64_t tolerated_ms = second_ms;  // between two wall clocks

struct Sample {
  int64_t ours_ns = 0;    // in the time of redlock_question_t
  int64_t server_us = 0;  // 0: unknown
  int64_t rtt_us = 0;
};

struct Clock {
  Sample first, second;
  int64_t offset_ms;  // of its wall clock from ours
  int64_t ours_us;    // between the samples
  int64_t off_us;     // how much further its clock went between them
  int64_t error_us;

  bool is_known() const { return first.server_us != 0 && second.server_us != 0; }
  int64_t ppm(int64_t us) const {
    constexpr int64_t max_us = 1'000'000'000'000;
    // The samples are a second or more apart, so what is cut off here is far beyond any limit.
    return ours_us > 0 ? (us < -max_us ? -max_us : us < max_us ? us : max_us) * 1'000'000 / ours_us : 0;
  }
};
Clock clocks[REDLOCK_MASTERS_MAX];

// The value on which most masters agree, if at least two do and it differs from this machine's; else 0.
struct Agreed {
  int64_t value = 0;
  unsigned count = 0;
};
template <typename Get>
Agreed agreed_of(int64_t tolerance, Get get) {
  int64_t values[REDLOCK_MASTERS_MAX];
  unsigned known = 0;
  for (unsigned m = 0; m < site.masters; ++m) {
    if (clocks[m].is_known()) values[known++] = get(clocks[m]);
  }
  Agreed best;
  for (unsigned i = 0; i < known; ++i) {
    unsigned alike = 0;
    for (unsigned k = 0; k < known; ++k) alike += llabs(values[k] - values[i]) <= tolerance;
    if (alike > best.count) best = {values[i], alike};
  }
  return best.count >= 2 && 2 * best.count > known && llabs(best.value) > tolerance ? best : Agreed{};
}

// "59 min 58 s"
Text span(int64_t ms) {
  const long long s = (llabs(ms) + 500) / second_ms;
  if (s < 60) return Text().thousandths(llabs(ms)).add(" s");
  if (s < 3600) return Text("%lld min %lld s", s / 60, s % 60);
  if (s < 2 * 86'400) return Text("%lld h %lld min", s / 3600, s % 3600 / 60);
  return Text("%lld days", s / 86'400);
}
const char* side(int64_t offset_ms) { return offset_ms > 0 ? "ahead of" : "behind"; }

Sample sample(unsigned m) {
  Questions asked;
  for (unsigned i = 0; i < 5; ++i) asked.command("TIME");
  Sample best;
  if (asked.ask(site.cfg, m, site.master[m].at) != 0) return best;
  for (unsigned i = 0; i < 5; ++i) {
    const char* seconds = asked.text(i, 1);
    const char* us = asked.text(i, 2);
    if (seconds == nullptr || us == nullptr || (best.server_us != 0 && best.rtt_us <= asked[i].rtt_us)) continue;
    best.server_us = number_within(seconds_max, seconds) * 1'000'000 + number_within(1'000'000, us);
    best.rtt_us = asked[i].rtt_us;
    best.ours_ns = asked[i].asked_ns + best.rtt_us * 500;
  }
  return best;
}

void end_clock(unsigned m) {
  Clock& it = clocks[m];
  it.second = sample(m);
  const int64_t ours_now_ns = ns_of(CLOCK_MONOTONIC_RAW) + ns_of(CLOCK_BOOTTIME) - ns_of(CLOCK_MONOTONIC);
  const int64_t wall_us = (ns_of(CLOCK_REALTIME) - (ours_now_ns - it.second.ours_ns)) / 1000;
  it.offset_ms = (it.second.server_us - wall_us) / 1000;
  it.ours_us = (it.second.ours_ns - it.first.ours_ns) / 1000;
  it.error_us = (it.first.rtt_us + it.second.rtt_us) / 2 + 1000;  // of each sample, and of our clock
  it.off_us = it.second.server_us - it.first.server_us - it.ours_us;
}

// True if the rate is beyond what the drift allows for, even if the samples are off by their whole error.
bool runs_off(const Clock& it, int64_t off_ppm) {
  return llabs(off_ppm) - it.ppm(it.error_us) > site.times.drift_ppm / 2;
}

void check_clock(unsigned m, const Agreed& wall, const Agreed& rate) {
  const Clock& it = clocks[m];
  about("clock", &site.master[m]);
  if (!it.is_known()) return tell(has_failed(m) ? Level::skipped : Level::unknown, "no TIME");
  const int64_t offset_ms = it.offset_ms - wall.value;
  const char* const beside = wall.count != 0 ? "most masters" : "this machine";
  Text saw = llabs(offset_ms) > tolerated_ms
                 ? Text("%s %s %s", span(offset_ms).c_str(), side(offset_ms), beside)
                 : Text("%lld ms beside %s", static_cast<long long>(offset_ms), beside);
  const bool is_off = runs_off(it, it.ppm(it.off_us) - rate.value);
  saw.add(is_off ? "; in " : "; its rate is right: in ").thousandths(it.ours_us / 1000).add(" s it was off by ");
  saw.thousandths(it.off_us).add(" ms (+- ").thousandths(it.error_us).add(" ms)");
  const bool is_alone = site.count([](unsigned other) { return clocks[other].is_known(); }) == 1;
  judge(saw, {{is_off, Level::fail,
               "its clock was stepped, or runs off rate: keys end too early; mend its time service"},
              {llabs(offset_ms) > tolerated_ms, Level::warn,
               is_alone ? "compare both with a third clock: chronyc makestep where it is wrong; there while nobody "
                          "holds a lock"
               : site.masters < 3 ? "chronyc makestep there, while nobody holds a lock"
                                  : Text("chronyc makestep there; then it has no vote for ")
                                        .thousandths(site.guard_time_ms()).add(" s").c_str()}});
}

// Reports this machine's clock instead of the clocks of masters that agree with each other.
void check_own_clock(const Agreed& wall, const Agreed& rate) {
  about("clock");
  if (rate.count != 0) {
    tell(Level::fail, Text("this machine's clock runs off the rate of %u masters, which agree", rate.count),
         "mend this machine's timer or its time service: what it holds may be over for the masters");
  }
  if (wall.count == 0) return;
  const char* const all = wall.count == site.masters ? "all " : "";
  tell(Level::warn, Text("this machine's clock is %s %s %s%u masters, which agree", span(wall.value).c_str(),
                         side(-wall.value), all, wall.count),
       "chronyc makestep here, on this machine");
}

}  // namespace

void begin_clock(unsigned m) { clocks[m].first = sample(m); }

// The second samples are taken a second after the first ones, when a wrong rate shows.
void check_clocks() {
  if (site.reached() == 0) return;
  pause_ms(second_ms);
  int64_t error_ppm = 0;
  for (unsigned m = 0; m < site.masters; ++m) {
    if (clocks[m].first.server_us == 0) continue;
    end_clock(m);
    const int64_t one = clocks[m].ppm(clocks[m].error_us);
    if (one > error_ppm) error_ppm = one;
  }
  const Agreed wall = agreed_of(tolerated_ms, [](const Clock& it) { return it.offset_ms; });
  Agreed rate = agreed_of(2 * error_ppm, [](const Clock& it) { return it.ppm(it.off_us); });
  if (llabs(rate.value) - error_ppm <= site.times.drift_ppm / 2) rate = Agreed{};
  check_own_clock(wall, rate);
  for (unsigned m = 0; m < site.masters; ++m) {
    if (site.master[m].err == 0) check_clock(m, wall, rate);
  }
}

}  // namespace redlock::tool
