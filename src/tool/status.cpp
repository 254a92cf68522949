// SPDX-License-Identifier: MIT
//
// redlock status: what the masters say, and who has a resource. A snapshot of keys that anybody may have written.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/clock.hpp"
#include "tool/lookup.hpp"
#include "tool/say.hpp"

namespace redlock::tool {
namespace {

constexpr unsigned resources_max = 256;
constexpr char snapshot[] = "a snapshot, no promise; names are what the writer of a key claims to be";

enum class Form { text, json, prometheus };

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

const char* verdict_name(Verdict verdict) {
  const char* const texts[] = {"free", "held", "unclear", "unknown"};
  return texts[static_cast<int>(verdict)];
}

// ---- scan -------------------------------------------------------------------------------------------------------

// A pattern of SCAN for keys that begin with the prefix.
Text pattern() {
  Text out;
  const redlock_site_facts_t& facts = site.facts();
  for (size_t i = 0; i < facts.key_prefix_size; ++i) {
    if (strchr("*?[]\\^-", facts.key_prefix[i]) != nullptr) out.add("\\");
    out.add("%c", facts.key_prefix[i]);
  }
  return out.add("*");
}

// All string keys of a master that begin with the prefix. Whose they are is seen when they are looked up.
int scan(unsigned m) {
  const size_t before = site.facts().key_prefix_size;
  const Text keys = pattern();
  char cursor[24] = "0";
  do {
    Questions asked;
    asked.command("SCAN @ COUNT 500 MATCH", cursor, strlen(cursor)).word(keys.c_str(), keys.size());
    const int err = asked.ask(site.cfg, m);
    if (err != 0 || asked[0].err != 0) return err != 0 ? err : asked[0].err;
    const char* next = asked.text(0, 1);
    if (next == nullptr || strlen(next) >= sizeof cursor) return REDLOCK_E_PROTOCOL;
    strcpy(cursor, next);
    for (unsigned n = 3; n < asked[0].items; ++n) {
      const redlock_item_t& key = *asked.item(0, n);
      const size_t size = static_cast<size_t>(key.number);
      const bool own = size >= 8 && memcmp(key.text, "redlock:", 8) == 0;
      if (key.depth == 2 && size > before && !own) names.add(key.text + before, size - before);
    }
  } while (strcmp(cursor, "0") != 0 && !names.cut);
  return 0;
}

void scan_all() {
  for (unsigned m = 0; m < site.masters; ++m) {
    if (site.master[m].err != 0) continue;
    const int err = scan(m);
    if (err == 0) continue;
    const char* const help = err == REDLOCK_E_NOPERM ? "; --scan needs the permission +scan" : "";
    fail(exit_code_of(err), "%s: %s%s", site.master[m].name(), redlock_strerror(err), help);
  }
  if (names.cut) note("there are more than %u keys; the others are left out", resources_max);
}

// Keys that somebody else writes under the same prefix are no locks.
bool is_lock(const Lookup& one) {
  for (unsigned m = 0; m < site.masters; ++m) {
    if (one.key[m].err == 0 && one.key[m].is_there && !one.key[m].foreign) return true;
  }
  return false;
}

// ---- the three forms ----------------------------------------------------------------------------------------------

void print_text() {
  print("%u of %u masters vote, %u are needed", site.votes(), site.masters, site.quorum);
  for (unsigned m = 0; m < site.masters; ++m) {
    const bool named = strcmp(site.master[m].facts.name, site.master[m].facts.address) != 0;
    print("  %s%s%s: %s", site.master[m].name(), named ? " " : "", named ? site.master[m].facts.address : "",
          site.why(m).c_str());
  }
  for (unsigned i = 0; i < names.count; ++i) {
    print("%s: %s", lookups[i].name().c_str(), lookups[i].sentence(site).c_str());
  }
  print("(%s)", snapshot);
}

void print_json_resource(Json& json, const Lookup& one) {
  json.open('{').text("resource", one.name().c_str()).text("state", verdict_name(one.verdict));
  json.text("holder", one.verdict == Verdict::held ? one.holder(one.first).c_str() : nullptr);
  json.number("on", one.on).number("answered", one.answered);
  if (one.verdict == Verdict::held) json.number("ends_min_ms", one.ends_min_ms).number("ends_max_ms", one.ends_max_ms);
  json.open('[', "keys");
  for (unsigned m = 0; m < site.masters; ++m) {
    const Lookup::Key& key = one.key[m];
    json.open('{').text("master", site.master[m].name());
    json.text("err", key.err != 0 ? redlock_err_name(key.err) : nullptr);
    json.text("holder", key.err == 0 && key.is_there ? one.holder(m).c_str() : nullptr);
    if (key.err == 0 && key.is_there) json.number("ends_ms", key.ends_ms);
    json.close('}');
  }
  json.close(']').close('}');
}

void print_json() {
  Json json;
  json.open('{').text("schema", "redlock.site-status/1").text("note", snapshot);
  json.number("masters_voting", site.votes()).number("quorum", site.quorum).open('[', "masters");
  for (unsigned m = 0; m < site.masters; ++m) {
    const Master& it = site.master[m];
    json.open('{').text("name", it.name()).text("address", it.facts.address).boolean("votes", site.votes(m));
    json.text("err", it.err != 0 ? redlock_err_name(it.err) : nullptr).text("text", site.why(m).c_str()).close('}');
  }
  json.close(']').open('[', "resources");
  for (unsigned i = 0; i < names.count; ++i) print_json_resource(json, lookups[i]);
  json.close(']').close('}').end();
}

// A value of a label: escaped as the format of Prometheus wants it.
Text label(const char* text) {
  Text out;
  for (const char* c = text; *c != '\0'; ++c) out.add(*c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
  return out;
}

void print_family(const char* name, const char* help) {
  putf("# HELP redlock_%s %s\n# TYPE redlock_%s gauge\n", name, help, name);
}

void print_of_masters(const char* name, const char* help, bool (*is_so)(unsigned m)) {
  print_family(name, help);
  for (unsigned m = 0; m < site.masters; ++m) {
    putf("redlock_%s{master=\"%s\"} %d\n", name, label(site.master[m].name()).c_str(), is_so(m));
  }
}

void print_prometheus() {
  print_of_masters("master_up", "1: the master answers.", [](unsigned m) { return site.master[m].err == 0; });
  print_of_masters("master_votes", "1: the master may vote.", [](unsigned m) { return site.votes(m); });
  print_family("quorum", "Masters that a lock needs.");
  putf("redlock_quorum %u\n", site.quorum);
  if (names.count != 0) print_family("resource_held", "1: held, 0: free, -1: not clear.");
  for (unsigned i = 0; i < names.count; ++i) {
    const Lookup& one = lookups[i];
    putf("redlock_resource_held{resource=\"%s\"} %d\n", label(one.name().c_str()).c_str(),
         one.verdict == Verdict::held ? 1 : one.verdict == Verdict::free ? 0 : -1);
  }
  if (names.count != 0) print_family("resource_masters", "Masters with the key of this holder.");
  for (unsigned i = 0; i < names.count; ++i) {
    const Lookup& one = lookups[i];
    if (one.on == 0) continue;
    putf("redlock_resource_masters{resource=\"%s\",holder=\"%s\"} %u\n", label(one.name().c_str()).c_str(),
         label(one.holder(one.first).c_str()).c_str(), one.on);
  }
  flush();
}

// ---- the command ----------------------------------------------------------------------------------------------------

// One line for each code.
ExitCode result() {
  ExitCode code = exit_ok;
  const unsigned reached = site.reached();
  if (reached < site.quorum) {
    for (unsigned m = 0; m < site.masters; ++m) {
      if (site.master[m].err != 0) code = worse_of(code, exit_code_of(site.master[m].err));
    }
    say("%u of %u masters can be asked, and %u are needed", reached, site.masters, site.quorum);
    return code;
  }
  for (unsigned i = 0; i < names.count; ++i) {
    if (lookups[i].verdict == Verdict::free) continue;
    const bool unknown = lookups[i].verdict == Verdict::unknown;
    ExitCode of_this = unknown ? exit_too_few : exit_held;
    for (unsigned m = 0; unknown && m < site.masters; ++m) {
      if (lookups[i].key[m].err != 0) of_this = worse_of(of_this, exit_code_of(lookups[i].key[m].err));
    }
    code = worse_of(code, of_this);
    say("%s is not free: %s", lookups[i].name().c_str(), verdict_name(lookups[i].verdict));
  }
  return code;
}

void show(Form form, bool scans, unsigned given) {
  site.look();
  names.count = given;
  names.cut = false;
  if (scans) scan_all();
  look_up(site, names.list, names.count, lookups);
  for (unsigned i = given; i < names.count;) {
    if (is_lock(lookups[i])) {
      ++i;
      continue;
    }
    --names.count;
    memmove(lookups + i, lookups + i + 1, (names.count - i) * sizeof *lookups);
  }
  switch (form) {
    case Form::text:
      return print_text();
    case Form::json:
      return print_json();
    case Form::prometheus:
      return print_prometheus();
  }
}

int run_status(const Command& command, int argc, char** argv) {
  enum { json = Options::first_long, prometheus, scan_option, watch };
  const Option own[] = {{"json", json}, {"prometheus", prometheus}, {"scan", scan_option}, {"watch", watch}};
  Options options(command, argc, argv, own);
  Form form = Form::text;
  bool scans = false, watches = false;
  for (int c; (c = options.next()) != Options::end;) {
    if (c == json) form = Form::json;
    if (c == prometheus) form = Form::prometheus;
    scans = scans || c == scan_option;
    watches = watches || c == watch;
  }
  for (char** name = options.rest(); *name != nullptr; ++name) {
    const size_t size = strlen(*name);
    if (size == 0 || size > REDLOCK_RESOURCE_MAX) options.usage("a resource has 1 to %d bytes", REDLOCK_RESOURCE_MAX);
    names.add(*name, size);
  }
  if (names.cut) options.usage("more than %u resources", resources_max);
  const unsigned given = names.count;
  site.open(open_config(options.common()));
  lookups = static_cast<Lookup*>(calloc(resources_max, sizeof *lookups));
  if (lookups == nullptr) fail(exit_system, "no memory");
  const bool clears = watches && form == Form::text && isatty(STDOUT_FILENO) == 1;
  do {
    if (clears) put("\033[H\033[J");
    show(form, scans, given);
    if (watches) pause_ms(1000);
  } while (watches && flush());
  if (form == Form::prometheus || scans) return exit_ok;
  return result();
}

}  // namespace

const Command status_command = {
    "status", "[RES]...", "what the masters say, and who has a resource",
    "      --json          one JSON object\n"
    "      --prometheus    metrics, for a file that an agent collects\n"
    "      --scan          all locks; needs the permission +scan\n"
    "      --watch         again each second, until it is interrupted\n",
    run_status};

}  // namespace redlock::tool
