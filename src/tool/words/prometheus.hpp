// SPDX-License-Identifier: MIT
//
// Metrics in the text format of Prometheus. A metric has the name of its field in redlock.h, behind "redlock_". Agents
// collect several files: a metric has the same help in all of them.
#pragma once
#include "tool/words/text.hpp"

namespace redlock::tool {

struct Metric {
  const char* name;
  const char* help;
};

inline Text family(const Metric& metric, const char* type) {
  return Text("# HELP redlock_%s %s\n# TYPE redlock_%s %s\n", metric.name, metric.help, metric.name, type);
}

// A name as Text::escaped() spells it, as the value of a label, cut where a line would get too long.
inline Text label(const char* text) {
  Text out;
  for (const char* c = text; *c != '\0' && out.size() < 1'000; ++c) {
    out.add(*c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
  }
  return out;
}

}  // namespace redlock::tool
