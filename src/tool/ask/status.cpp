// SPDX-License-Identifier: MIT
//
// redlock status: what the masters say, and who has a resource. A snapshot of keys that anybody may have written.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <initializer_list>

#include "tool/ask/lookup.hpp"
#include "tool/system/clock.hpp"
#include "tool/system/replaced_file.hpp"
#include "tool/words/prometheus.hpp"
#include "tool/words/say.hpp"

namespace redlock::tool {
namespace {

constexpr unsigned resources_max = 256;
constexpr int look_step_ms = 500;  // of --wait: each look opens two connections to every master
constexpr long longest_wait_s = 86'400;
constexpr char snapshot[] = "a snapshot, no promise; names are what the writer of a key claims to be";

struct Names {
  redlock_resource_t list[resources_max];
  char bytes[resources_max][REDLOCK_RESOURCE_MAX];
  unsigned count;
  bool cut;  // there are more

  void add(const char* data, size_t size) {
    for (unsigned i = 0; i < count; ++i) {
      if (list[i].size == size && memcmp(list[i].data, data, size) == 0) return;
    }
    cut = cut || count == resources_max;
    if (cut || size == 0 || size > REDLOCK_RESOURCE_MAX) return;
    memcpy(bytes[count], data, size);
    list[count] = {bytes[count], static_cast<uint32_t>(size)};
    ++count;
  }
};

constexpr Site& site = sites[0];
Names names;
Lookup* lookups;  // of all names

// ---- scan -------------------------------------------------------------------------------------------------------

void scan_all() {
  for (unsigned m = 0; m < site.masters; ++m) {
    if (site.master[m].err != 0) continue;
    const int err = scan(site, m, [](const char* name, size_t size) {
      names.add(name, size);
      return !names.cut;
    });
    if (err == 0) continue;
    const char* const help = err == REDLOCK_E_NOPERM ? "; --scan needs the permission +scan" : "";
    fail(exit_code_of(err), "%s: %s%s", site.master[m].name(), redlock_strerror(err), help);
  }
  if (names.cut) note("there are more than %u keys; the others are left out", resources_max);
}

// Keys that somebody else writes under the same prefix are no locks.
bool is_lock(const Lookup& one) {
  return site.count([&one](unsigned m) { return one.has_value(m) && !one.key[m].foreign; }) != 0;
}

// ---- the three forms ----------------------------------------------------------------------------------------------

void print_text() {
  Text summary("%u of %u masters vote%s, %u are needed", site.votes(), site.masters, site.votes() == 1 ? "s" : "",
               site.quorum);
  if (site.lockable() < site.votes()) {
    summary.add("; this user can lock on %u: redlock doctor says why", site.lockable());
  }
  print("%s", summary.c_str());
  site.print_table();
  for (unsigned i = 0; i < names.count; ++i) {
    print("%s: %s", lookups[i].name().c_str(), lookups[i].sentence(site).c_str());
  }
  const redlock_setting_t own = setting_of(site.cfg, "client_name");
  for (unsigned i = 0; i < names.count; ++i) {
    if (lookups[i].verdict != Verdict::held || strcmp(lookups[i].holder(lookups[i].first), own.value) != 0) continue;
    print("(%s is this gateway's own name: another run has the lock, and renews it; or was killed, and the key ends)",
          own.value);
    break;
  }
  print("(%s)", snapshot);
}

void print_json_resource(Json& json, const Lookup& one) {
  json.open("{").text("resource", one.name().c_str()).text("state", name_of(one.verdict));
  json.text("holder", one.verdict == Verdict::held ? one.holder(one.first).c_str() : nullptr);
  json.number("on", one.on).number("answered", one.answered);
  if (one.verdict == Verdict::held) json.number("ends_min_ms", one.ends_min_ms).number("ends_max_ms", one.ends_max_ms);
  json.open("[", "keys");
  for (unsigned m = 0; m < site.masters; ++m) {
    const Lookup::Key& key = one.key[m];
    json.open("{").text("master", site.master[m].name());
    json.text("err", key.err != 0 ? redlock_err_name(key.err) : nullptr);
    json.text("holder", one.has_value(m) ? one.holder(m).c_str() : nullptr);
    if (one.has_value(m)) json.number("ends_ms", key.ends_ms);
    json.close("}");
  }
  json.close("]").close("}");
}

void print_json() {
  Json json;
  json.open("{").text("schema", "redlock.site-status/1").text("note", snapshot);
  json.number("masters_up", site.votes()).number("quorum", site.quorum).open("[", "masters");
  for (unsigned m = 0; m < site.masters; ++m) {
    const Master& it = site.master[m];
    json.open("{").text("name", it.name()).text("address", it.facts.address).boolean("up", site.votes(m));
    json.text("err", it.err != 0 ? redlock_err_name(it.err) : nullptr).text("text", site.why(m).c_str()).close("}");
  }
  json.close("]").open("[", "resources");
  for (unsigned i = 0; i < names.count; ++i) print_json_resource(json, lookups[i]);
  json.close("]").close("}").end();
}

void print_family(const Metric& metric) { put(family(metric, "gauge").c_str()); }

void print_of_masters(const Metric& metric, bool (*is_so)(unsigned m)) {
  print_family(metric);
  for (unsigned m = 0; m < site.masters; ++m) {
    put(Text("redlock_%s{master=\"%s\"} %d\n", metric.name, label(site.master[m].name()).c_str(), is_so(m)));
  }
}

void print_prometheus() {
  print_of_masters({"master_answers", "1: the master answers."}, [](unsigned m) { return site.master[m].err == 0; });
  print_of_masters({"master_up", "1: the master may vote."}, [](unsigned m) { return site.votes(m); });
  print_family({"masters_up", "Masters that vote now."});
  put(Text("redlock_masters_up %u\n", site.votes()));
  print_family({"quorum", "Masters that a lock needs."});
  put(Text("redlock_quorum %u\n", site.quorum));
  if (names.count != 0) print_family({"resource_held", "1: held, 0: free, -1: not clear."});
  for (unsigned i = 0; i < names.count; ++i) {
    const Lookup& one = lookups[i];
    put(Text("redlock_resource_held{resource=\"%s\"} %d\n", label(one.name().c_str()).c_str(),
             one.verdict == Verdict::held ? 1 : one.verdict == Verdict::free ? 0 : -1));
  }
  if (names.count != 0) print_family({"resource_masters", "Masters with the key of this holder."});
  for (unsigned i = 0; i < names.count; ++i) {
    const Lookup& one = lookups[i];
    if (one.on == 0) continue;
    put(Text("redlock_resource_masters{resource=\"%s\",holder=\"%s\"} %u\n", label(one.name().c_str()).c_str(),
             label(one.holder(one.first).c_str()).c_str(), one.on));
  }
}

// stdout is the file that is made, so that it is written as any output is.
void write_prometheus(const char* path) {
  const auto write = [](void*, int file) {
    if (dup2(file, STDOUT_FILENO) < 0) return false;
    print_prometheus();
    return flush();
  };
  if (!replace_file(path, true, write, nullptr)) {
    fail(exit_output, "--output: %s cannot be written: %s", path, strerror(errno));
  }
}

// ---- the command ----------------------------------------------------------------------------------------------------

// Says what the output does not tell: why something is not known.
ExitCode result() {
  ExitCode code = exit_ok;
  const unsigned reached = site.reached();
  if (reached < site.quorum) {
    const Master* to_blame = nullptr;  // with the cause that tells most
    for (unsigned m = 0; m < site.masters; ++m) {
      const Master& it = site.master[m];
      if (it.err == 0 || (to_blame != nullptr && worse_of(code, exit_code_of(it.err)) == code)) continue;
      code = exit_code_of(it.err);
      to_blame = &it;
    }
    say("%u of %u master%s can be asked, and %u %s needed; %s: %s", reached, site.masters,
        site.masters == 1 ? "" : "s", site.quorum, site.quorum == 1 ? "is" : "are", to_blame->name(),
        to_blame->unasked.c_str());
    return code;
  }
  if (names.count == 0 && site.votes() < site.quorum) {
    code = exit_too_few;
    for (unsigned m = 0; m < site.masters; ++m) {
      for (const int err : {site.master[m].record_err, site.master[m].info_err}) {
        if (err != 0) code = worse_of(code, exit_code_of(err));
      }
    }
  }
  for (unsigned i = 0; i < names.count; ++i) {
    const Lookup& one = lookups[i];
    if (one.verdict == Verdict::held || one.verdict == Verdict::unclear) code = worse_of(code, exit_held);
    if (one.verdict != Verdict::unknown) continue;
    ExitCode worst = exit_too_few;
    const char* why = "too few masters vote; redlock doctor says why";
    for (unsigned m = 0; m < site.masters; ++m) {
      const int err = one.key[m].err;
      if (err == 0 || worse_of(worst, exit_code_of(err)) != exit_code_of(err)) continue;
      worst = exit_code_of(err);
      why = redlock_strerror(err);
    }
    code = worse_of(code, worst);
    say("%s is not known: %s", one.name().c_str(), why);
  }
  return code;
}

// `given`: so many names come from the command line; the others are keys that were found.
void look_up_all(unsigned given) {
  look_up(site, names.list, names.count, lookups);
  unsigned kept = given;
  for (unsigned i = given; i < names.count; ++i) {
    if (is_lock(lookups[i])) lookups[kept++] = lookups[i];
  }
  names.count = kept;
}

// ---- --wait ---------------------------------------------------------------------------------------------------------

// A lock that is held has its key on every master, with one value. A free name may have a key that a lost round left.
bool is_whole(const Lookup& one) {
  return one.verdict == Verdict::free || (one.verdict == Verdict::held && one.on == site.masters);
}

// What keeps the site from being whole, in one line; empty: nothing.
Text missing() {
  Text out;
  for (unsigned m = 0; m < site.masters; ++m) {
    if (!site.votes(m)) out.add("%s%s: %s", out.empty() ? "" : "; ", site.master[m].name(), site.why(m).c_str());
  }
  for (unsigned i = 0; i < names.count; ++i) {
    if (is_whole(lookups[i])) continue;
    out.add("%s%s: %s", out.empty() ? "" : "; ", lookups[i].name().c_str(), lookups[i].sentence(site).c_str());
  }
  return out;
}

// Looks until nothing is missing. A master that cannot be asked makes the last look longer, by its timeouts.
Text wait_until_whole(int32_t wait_ms) {
  const int64_t end = now_ns() + wait_ms * ns_per_ms;
  for (;;) {
    site.look_at_all();
    look_up(site, names.list, names.count, lookups);
    const Text what = missing();
    const int left_ms = timeout_until(end);
    if (what.empty() || left_ms == 0) {
      end_progress();
      return what;
    }
    if (isatty(STDERR_FILENO) == 1) show_progress("%d s to go: %s", (left_ms + 999) / 1000, what.c_str());
    pause_ms(shorter_of(left_ms, look_step_ms));
  }
}

// ---- --watch --------------------------------------------------------------------------------------------------------

// What a line says without the times, which change with each look.
Text without_times(const Text& line) {
  const char* const text = line.c_str();
  const char* end = text + line.size();
  constexpr const char* begins[] = {", ends in ", "; "};
  for (const char* times : begins) {
    const char* const found = strstr(text, times);
    if (found != nullptr && found < end) end = found;
  }
  return Text("%.*s", static_cast<int>(end - text), text);
}

// A line for each master and name of which this look shows another state than the last one did.
template <typename Take>
void find_changes(Take take) {
  static char* last[REDLOCK_MASTERS_MAX + resources_max];
  char hour[16] = "";
  const time_t now = time(nullptr);
  tm parts{};
  if (localtime_r(&now, &parts) != nullptr) strftime(hour, sizeof hour, "%T", &parts);
  for (unsigned i = 0; i < site.masters + names.count; ++i) {
    const bool is_master = i < site.masters;
    const Text name = is_master ? site.master[i].label : lookups[i - site.masters].name();
    const Text state = without_times(is_master ? site.why(i) : lookups[i - site.masters].sentence(site));
    if (last[i] != nullptr && strcmp(last[i], state) == 0) continue;
    take(Text("%s %s: %s\n", hour, name.c_str(), state.c_str()));
    free(last[i]);
    last[i] = strdup(state);
  }
}

// Until a signal, or until nobody reads. On a terminal the last look stands above the changes, the newest first.
int watch() {
  Text recent;
  const bool on_terminal = isatty(STDOUT_FILENO) == 1;
  for (;; pause_ms(look_step_ms)) {
    site.look_at_all();
    look_up(site, names.list, names.count, lookups);
    find_changes([&](const Text& line) {
      on_terminal ? void(recent = Text("%s%s", line.c_str(), recent.c_str())) : put(line);
    });
    if (on_terminal) {
      put("\033[H\033[J");
      print_text();
      put(recent);
    }
    if (!flush()) return exit_ok;
  }
}

int run_status(const Command& command, int argc, char** argv) {
  bool json = false, prometheus = false, scans = false, watches = false;
  const char* output = nullptr;
  int32_t wait_ms = -1;  // below 0: not given
  const Options options(command, argc, argv,
                        {{.name = "json", .flag = &json},
                         {.name = "prometheus", .flag = &prometheus},
                         {.name = "output", .letter = 'o', .text = &output},
                         {.name = "scan", .flag = &scans},
                         {.name = "watch", .flag = &watches},
                         {.name = "wait", .letter = 'w', .ms = &wait_ms, .max = longest_wait_s}});
  for (char** name = options.rest(); *name != nullptr; ++name) {
    options.check_resource(*name);
    names.add(*name, strlen(*name));
  }
  if (names.cut) options.usage("more than %u resources", resources_max);
  options.exclude("--json", json, "--prometheus", prometheus);
  options.exclude("--wait", wait_ms >= 0, "--scan", scans);
  if (output != nullptr && !prometheus) options.usage("--output is for --prometheus");
  if (output != nullptr) check_is_ours("--output", output);
  const bool has_another_form = json || prometheus || scans || wait_ms >= 0;
  options.exclude("--watch", watches, "--json, --prometheus, --scan, --wait", has_another_form);
  const unsigned given = names.count;
  site.open(open_config(options.common()));
  site.asks_what_user_lacks = true;
  lookups = static_cast<Lookup*>(calloc(resources_max, sizeof *lookups));
  if (lookups == nullptr) fail(exit_system, "no memory");
  if (watches) return watch();
  const Text what = wait_ms >= 0 ? wait_until_whole(wait_ms) : Text();
  if (wait_ms < 0) {
    site.look_at_all();
    if (scans) scan_all();
    look_up_all(given);
  }
  output != nullptr ? write_prometheus(output) : json ? print_json() : prometheus ? print_prometheus() : print_text();
  if (wait_ms >= 0) {
    if (!what.empty()) say("missing after %s s: %s", Text().thousandths(wait_ms).c_str(), what.c_str());
    return what.empty() ? exit_ok : exit_too_few;
  }
  return prometheus || scans ? exit_ok : result();
}

}  // namespace

const Command status_command = {
    "status", "[RES]...", "what the masters say, and who has a resource",
    "      --json          one JSON object\n"
    "      --prometheus    metrics, for a file that an agent collects\n"
    "  -o, --output FILE   replaces FILE by them as a whole\n"
    "      --watch         until it is ended: on a terminal all that is known, else a line for each change\n"
    "      --scan          all locks; needs the permission +scan\n"
    "  -w, --wait SECS     until all masters vote, and each RES that is held has its key on all of them\n",
    run_status};

}  // namespace redlock::tool
