// SPDX-License-Identifier: MIT
//
// Doctor: is a site fit for locks? Each check has an id, says what it saw and what to do. What was denied is unknown,
// never ok, and what follows from a check that failed is skipped. One cause is one line, with the names of the masters;
// -v prints each check of each master, at once.
#pragma once
#include <initializer_list>

#include "tool/ask/site.hpp"
#include "tool/words/exit_code.hpp"

namespace redlock::tool {

enum class Level { ok, warn, fail, unknown, skipped };

inline constexpr Site& site = sites[0];
constexpr int resources_max = 32;

// What the next tell() is about.
void about(const char* id, const Master* master = nullptr);
// `line`: a command for this master, which ends the hint `todo`.
void tell(Level level, const char* saw, const char* todo = "", ExitCode code = exit_internal, const char* line = "");
// The first of these that holds; if none does, all is well.
struct Finding {
  bool holds;
  Level level;
  const char* todo;
  ExitCode code = exit_internal;
};
void judge(const Text& saw, std::initializer_list<Finding> findings);

// The error of a master that has answered before. One that spoke TLS then, and is silent now, is late: no other port
// is meant.
inline int late(int err) { return err == REDLOCK_E_TLS_NONE ? REDLOCK_E_CONNECT_TIMEOUT : err; }
inline int ask(Questions& asked, unsigned m) { return late(asked.ask(site.cfg, m, site.master[m].at)); }
bool has_failed(unsigned m);  // a check of this master
bool tells_all();             // -v or --json
// `resources`: with a null at the end.
void examine_master(unsigned m, char** resources);
void no_resource_was_named();  // the end of the report says that no resource's key was tried
void check_guards();  // when each master was examined
void check_permissions(unsigned m);
bool check_keys(unsigned m, char** resources);  // false: its report names another prefix with a record here
void check_prefix(unsigned m);
Text usable_prefix(unsigned m);  // in quotes: another one with a record here, which this user may read; "": none
void begin_addresses();
void check_addresses();
void begin_clock(unsigned m);
void check_clocks();  // when each master was examined

}  // namespace redlock::tool
