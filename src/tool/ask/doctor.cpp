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
} levels[] = {{"ok", "\033[32m"}, {"warn", "\033[33m"}, {"fail", "\033[31m"}, {"unknown", "\033[33m"}, {"skipped", ""}};

const char* id = "";
const char* of = nullptr;  // which master
bool* of_failed = nullptr;  // a check of it; null: this one is about the site as a whole
bool failed_of[REDLOCK_MASTERS_MAX];
bool as_json = false, in_full = false;
Json json;
ExitCode worst = exit_ok;
unsigned told[5];  // of each level
bool no_resource = false;

// A finding. Rows with one cause are printed as one line, so printing waits for the last check.
struct Row {
  const char* id;
  const char* of;
  Level level;
  const char *saw, *todo, *line;
  bool printed;
};
Row rows[32 * REDLOCK_MASTERS_MAX];
unsigned row_count = 0;

const char* kept(const char* text) {
  const char* const copy = strdup(text);
  if (copy == nullptr) fail(exit_system, "no memory");
  return copy;
}

bool are_same(const char* a, const char* b) { return strcmp(a, b) == 0; }

}  // namespace

// ---- what is told -------------------------------------------------------------------------------------------------

void about(const char* check, const Master* master) {
  id = check;
  of = master != nullptr ? master->name() : nullptr;
  of_failed = master != nullptr ? &failed_of[master - site.master] : nullptr;
}

bool has_failed(unsigned m) { return failed_of[m]; }
bool tells_all() { return in_full || as_json; }

namespace {

void print_level(Level level) {
  const auto& as = levels[static_cast<int>(level)];
  static const bool colored = has_colors(1);
  put(Text("%s%-7s%s ", colored ? as.color : "", as.name, colored ? "\033[m" : ""));
}

void print_row(Level level, const char* checks, const Text& masters, const char* saw) {
  print_level(level);
  print("%-11s %s%s%s", checks, masters.c_str(), masters.empty() ? "" : ": ", saw);
}

Text todo_with(const char* todo, const char* line) {
  return *line != '\0' ? Text("%s: %s", todo, line) : Text("%s", todo);
}

void print_todo(const char* todo) {
  if (*todo != '\0') print("        %-11s -> %s", "", todo);
}

}  // namespace

void tell(Level level, const char* saw, const char* todo, ExitCode code, const char* line) {
  const auto& as = levels[static_cast<int>(level)];
  ++told[static_cast<int>(level)];
  if (level == Level::fail) worst = worse_of(worst, code);
  if (level == Level::fail && of_failed != nullptr) *of_failed = true;
  if (as_json) {
    json.open("{").text("id", id).text("master", of).text("level", as.name);
    json.text("saw", saw).text("do", *todo != '\0' ? todo_with(todo, line).c_str() : nullptr).close("}");
    return;
  }
  if (level == Level::ok && is_quiet) return;
  if (in_full) {
    print_row(level, id, of != nullptr ? Text("%s", of) : Text(), saw);
    return print_todo(todo_with(todo, line));
  }
  if (row_count == sizeof rows / sizeof *rows) abort();
  rows[row_count++] = {id, of, level, kept(saw), kept(todo), kept(line), false};
}

void no_resource_was_named() { no_resource = true; }

void judge(const Text& saw, std::initializer_list<Finding> findings) {
  for (const Finding& one : findings) {
    if (one.holds) return tell(one.level, saw, one.todo, one.code);
  }
  tell(Level::ok, saw);
}

namespace {

// True if both rows report one cause, whichever checks and masters they are about.
bool are_one(const Row& a, const Row& b) {
  return a.level == b.level && are_same(a.saw, b.saw) && are_same(a.todo, b.todo);
}

// The masters for which the row's check reports this cause: "m0, m1".
Text masters_like(const Row& row) {
  Text out;
  for (unsigned i = 0; i < row_count; ++i) {
    const Row& other = rows[i];
    if (other.of == nullptr || !are_same(other.id, row.id) || !are_one(other, row)) continue;
    out.add("%s%s", out.empty() ? "" : ", ", other.of);
  }
  return out;
}

const Row& first_like(const Row& row) {
  const Row* first = rows;
  while (!are_same(first->id, row.id) || !are_one(*first, row)) ++first;
  return *first;
}

// Prints one line for the row, the rows of its check about other masters, and the rows of other checks that report the
// same cause for exactly these masters.
void print_cause(const Row& row) {
  const Text masters = masters_like(row);
  Text checks("%s", row.id);
  for (unsigned i = 0; i < row_count; ++i) {
    Row& other = rows[i];
    if (other.printed || !are_one(other, row)) continue;
    const Row& first = first_like(other);
    if (&first != &row && !are_same(masters_like(first), masters)) continue;
    if (&first == &other && &other != &row) checks.add(", %s", other.id);
    other.printed = true;
  }
  print_row(row.level, checks, masters, row.saw);
}

bool has_same_todo(const Row& a, const Row& b) {
  return a.level == b.level && are_same(a.id, b.id) && are_same(a.todo, b.todo);
}

// Prints the rows of a level. A hint that several rows of a check share follows the last of them.
void print_problems(Level level) {
  for (unsigned i = 0; i < row_count; ++i) {
    const Row& row = rows[i];
    if (row.level != level || row.printed) continue;
    unsigned lines = 0;
    for (unsigned k = i; k < row_count; ++k) {
      if (!has_same_todo(rows[k], row)) continue;
      if (!rows[k].printed) print_cause(rows[k]);
      lines += *rows[k].line != '\0';
    }
    print_todo(lines == 1 ? todo_with(row.todo, row.line) : Text("%s%s", row.todo, lines != 0 ? ":" : ""));
    for (unsigned k = i; lines > 1 && k < row_count; ++k) {
      if (has_same_todo(rows[k], row)) print("        %-11s    %s: %s", "", rows[k].of, rows[k].line);
    }
  }
}

// Does a row of this check about the site as a whole have another level? Then it is about all masters.
bool is_overruled(const Row& row) {
  for (unsigned i = 0; i < row_count; ++i) {
    if (rows[i].of == nullptr && rows[i].level != row.level && are_same(rows[i].id, row.id)) return true;
  }
  return false;
}

// Prints the names of the checks with this level, with their masters where others have another level.
void print_list(Level level) {
  constexpr size_t width = 100;
  Text line;
  for (unsigned i = 0; i < row_count; ++i) {
    if (rows[i].level != level || rows[i].printed || is_overruled(rows[i])) continue;
    Text masters;
    bool is_everywhere = true;
    for (unsigned k = 0; k < row_count; ++k) {
      Row& other = rows[k];
      if (!are_same(other.id, rows[i].id)) continue;
      is_everywhere = is_everywhere && other.level == level;
      if (other.level != level) continue;
      other.printed = true;
      if (other.of != nullptr) masters.add("%s%s", masters.empty() ? "" : ", ", other.of);
    }
    Text item("%s", rows[i].id);
    if (!is_everywhere && !masters.empty()) item.add(" (%s)", masters.c_str());
    if (!line.empty() && line.size() + item.size() + 2 > width) {
      print_level(level);
      print("%s", line.c_str());
      line = Text();
    }
    line.add("%s%s", line.empty() ? "" : ", ", item.c_str());
  }
  if (line.empty()) return;
  print_level(level);
  print("%s", line.c_str());
  if (level == Level::skipped) print_todo("mend what is above: these follow from it");
}

ExitCode end() {
  for (const Level level : {Level::fail, Level::warn, Level::unknown}) print_problems(level);
  for (const Level level : {Level::skipped, Level::ok}) print_list(level);
  const auto [ok, warned, failed, unknown, skipped] = told;
  if (as_json) {
    json.close("]").boolean("fit", failed == 0).number("failed", failed).number("warned", warned);
    json.number("unknown", unknown).number("exit", worst).close("}").end();
  } else if (!is_quiet) {
    site.print_table();
    print("%s: %u failed, %u warned, %u unknown, %u ok", failed == 0 ? "fit for locks" : "not fit for locks", failed,
          warned, unknown, ok);
    if (no_resource) print("(keys of resources were not tried: redlock doctor RES...)");
  }
  if (worst != exit_ok) say("doctor: %u check(s) failed", failed);
  return worst;
}

// ---- the site as a whole --------------------------------------------------------------------------------------------

void examine_site(uint32_t ttl_ms) {
  const Times& times = site.times;
  const uint32_t drift = drift_ms(ttl_ms, times.drift_ppm, times.drift_fixed_ms);
  const Text saw("ttl %u ms, max_ttl %u ms, node timeout %u ms, drift %u ms", ttl_ms, times.max_ttl_ms,
                 times.node_timeout_ms, drift);
  about("ttl");
  judge(saw, {{ttl_ms > times.max_ttl_ms, Level::fail,
               "the ttl is above timing.max_ttl_ms: raise it, or take a shorter ttl", exit_config},
              {ttl_ms < 3 * times.node_timeout_ms + drift, Level::warn,
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
    const bool follows = site.count([](unsigned m) { return site.master[m].err != 0 || has_failed(m); }) != 0;
    tell(follows ? Level::skipped : Level::unknown, Text("%u of %u run ids are known", known, site.masters));
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
  in_full = options.common().verbose != 0;
  if (as_json) json.open("{").text("schema", "redlock.doctor/1").open("[", "checks");
  site.open(open_config(options.common()));
  site.asks_what_user_lacks = true;
  examine_site(ttl_ms != 0 ? ttl_ms : site.times.ttl_ms);
  begin_addresses();
  site.look_at_all();
  for (unsigned m = 0; m < site.masters; ++m) examine_master(m, options.rest());
  compare_masters();
  check_guards();
  check_clocks();
  check_addresses();
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
