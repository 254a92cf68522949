// SPDX-License-Identifier: MIT
//
// redlock adopt: takes masters of another configuration into this one.
#include <unistd.h>

#include "tool/say.hpp"
#include "tool/site.hpp"

namespace redlock::tool {
namespace {

constexpr Site& site = sites[0];

// Tells which masters are of another configuration, and how many those are.
unsigned tell_plan() {
  unsigned others = 0;
  for (unsigned m = 0; m < site.masters; ++m) {
    const Master& it = site.master[m];
    const bool other = it.err == 0 && (it.record == Record::other || it.record == Record::moving);
    others += other;
    print("%s: %s", it.name(), other || it.err != 0 ? site.why(m).c_str() : "ours, or new: stays as it is");
  }
  return others;
}

void tell_progress(void*, const redlock_adopt_report_t* now) {
  const char* const steps[] = {"reads the records", "marks them", "waits until the other clients have noticed",
                               "gives them to our clients", "done"};
  if (now->step == REDLOCK_ADOPT_READ || now->step == REDLOCK_ADOPT_DONE) return;
  Text line;
  line.add("%u master(s) of a configuration of %u: %s", now->their_found, now->their_masters, steps[now->step]);
  if (now->to_go_ms != 0) line.add(", %u s to go", (now->to_go_ms + 999) / 1000);
  if (isatty(STDERR_FILENO) == 1) return show_progress("%s", line.c_str());
  const uint32_t seconds = now->to_go_ms / 1000;
  if (seconds % 10 == 0 || now->to_go_ms == 0) note("%s", line.c_str());
}

ExitCode explain(int result, const redlock_adopt_report_t& report) {
  end_progress();
  for (unsigned m = 0; m < report.masters; ++m) {
    print("%s: %s", site.master[m].name(), report.err[m] == 0 ? "ours, or new" : redlock_strerror(report.err[m]));
  }
  print("%u adopted", report.adopted);
  if (result == 0) return exit_ok;
  if (result > 0) {
    say("adopt: %d master(s) could not be had: repeat the call when they are back", result);
    return exit_too_few;
  }
  const bool too_few_found = report.step == REDLOCK_ADOPT_READ && report.their_found < report.their_needed;
  if (too_few_found) {
    say("adopt: %u of the other configuration's %u masters are here, and %u are needed: its clients could go on with "
        "the rest. List more of them, or switch the rest off for good and say --rest-is-gone",
        report.their_found, report.their_masters, report.their_needed);
  } else if (result == REDLOCK_E_CHANGING) {
    say("adopt: another call is under way, or was given up: see to it that none runs, and repeat this one");
  } else {
    say("adopt: %s%s", redlock_strerror(result),
        report.step == REDLOCK_ADOPT_READ ? "" : "; masters may be marked and vote for nobody: repeat the call");
  }
  return exit_code_of(result);
}

int run_adopt(const Command& command, int argc, char** argv) {
  enum { gone = Options::first_long };
  const Option own[] = {{"yes", 'y'}, {"rest-is-gone", gone}};
  Options options(command, argc, argv, own);
  bool yes = false;
  uint32_t flags = 0;
  for (int c; (c = options.next()) != Options::end;) {
    if (c == 'y') yes = true;
    if (c == gone) flags = REDLOCK_ADOPT_REST_IS_GONE;
  }
  if (options.rest_count() != 0) options.usage("it takes no argument");
  redlock_config_t* cfg = open_config(options.common());
  site.open(cfg);
  if (site.guarding == Guarding::off) fail(exit_config, "the guard is off: no client would notice");
  site.look();
  if (tell_plan() != 0) {
    note("clients of the other configuration keep a held lock until its validity ends, and get no more; it can be "
         "interrupted and repeated");
    if (flags != 0) note("you state that the rest of the other configuration's masters is gone for good");
    confirm(yes, "Those masters will serve the clients of this configuration alone");
  }
  redlock_adopt_report_t report = {};
  report.size = sizeof report;
  const int result = redlock_adopt(cfg, flags, tell_progress, nullptr, &report);
  if (report.masters == 0) fail(exit_code_of(result), "adopt: %s", redlock_strerror(result));
  const ExitCode code = explain(result, report);
  redlock_config_free(cfg);
  return code;
}

}  // namespace

const Command adopt_command = {
    "adopt", "", "take masters that belong to another configuration",
    "      --rest-is-gone  you state: the other configuration has no masters left but these\n"
    "  -y, --yes           do not ask\n",
    run_adopt};

}  // namespace redlock::tool
