// SPDX-License-Identifier: MIT
#include "tool/run/nesting.hpp"

#include <stdlib.h>
#include <string.h>

#include "tool/system/descriptors.hpp"
#include "tool/words/text.hpp"

namespace redlock::tool {
namespace {

constexpr char variable[] = "REDLOCK_KEEPERS";
constexpr unsigned ancestors_max = 256;

// Process ids are those of /proc, which may be of another PID namespace than getpid().
struct Process {
  pid_t pid = 0;  // 0: no such process, or /proc hides it
  pid_t parent = 0;
  unsigned long long start = 0;  // clock ticks since the machine's boot

  explicit Process(const char* path) {
    char text[512];
    if (read_file(path, text, sizeof text) < 0) return;
    char* at = strrchr(text, ')');  // "12 (any name) S 1 12 12 ..."
    if (at == nullptr || strlen(at) < 4) return;
    pid = static_cast<pid_t>(strtol(text, nullptr, 10));
    parent = static_cast<pid_t>(strtol(at + 3, &at, 10));
    constexpr unsigned fields_between = 17;  // proc(5): the parent is field 4, the start 22
    for (unsigned i = 0; i < fields_between; ++i) strtoll(at, &at, 10);
    start = strtoull(at, nullptr, 10);
  }
};

Text keeper, site;

// A line of REDLOCK_KEEPERS, between newlines.
Text line_of(const char* who, const redlock_resource_t& name) {
  Text out("\n%s\t%s\t", who, site.c_str());
  return out.escaped(static_cast<const char*>(name.data), name.size, REDLOCK_RESOURCE_MAX).add("\n");
}

Text keeper_of(const Process& process) { return Text("%d %llu", process.pid, process.start); }

pid_t keeper_above(const redlock_resource_t& name, const char* lines) {
  Process process("/proc/self/stat");
  for (unsigned i = 0; i < ancestors_max && process.parent > 0; ++i) {
    process = Process(Text("/proc/%d/stat", process.parent));
    if (process.pid != 0 && strstr(lines, line_of(keeper_of(process), name)) != nullptr) return process.pid;
  }
  return 0;
}

}  // namespace

void remember_keeper(const redlock_config_t* cfg) {
  auto facts = sized<redlock_site_facts_t>();
  if (redlock_site_facts(cfg, 0, &facts) != 0) return;
  keeper = keeper_of(Process("/proc/self/stat"));
  site = Text("%s\t", facts.record).escaped(facts.key_prefix, facts.key_prefix_size, REDLOCK_KEY_PREFIX_MAX);
}

Above held_above(const Wish& wish) {
  const char* const lines = getenv(variable);
  Above out;
  if (lines == nullptr || *lines == '\0') return out;
  for (uint32_t i = 0; i < wish.count; ++i) {
    const pid_t above = keeper_above(wish.resources[i], lines);
    if (above != 0) out = {static_cast<const char*>(wish.resources[i].data), above};
    if ((above != 0) != wish.is_any) return above != 0 ? out : Above();
  }
  return out;
}

void pass_on(const Wish& wish, uint32_t which) {
  static char lines[16'384];
  const char* const before = getenv(variable);
  size_t size = format_text(lines, sizeof lines, "%s", before != nullptr ? before : "");
  for (uint32_t i = 0; i < wish.count; ++i) {
    if (wish.is_any && i != which) continue;
    const Text line = line_of(keeper, wish.resources[i]);
    if (size + line.size() >= sizeof lines) size = 0;  // ancestors are forgotten, and a nested run waits
    size += format_text(lines + size, sizeof lines - size, "%s", line.c_str());
  }
  setenv(variable, lines, 1);
}

}  // namespace redlock::tool
