// SPDX-License-Identifier: MIT
//
// redlock reconfigure: takes the site from one set of masters to another, while clients run.
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "tool/clock.hpp"
#include "tool/say.hpp"
#include "tool/site.hpp"

namespace redlock::tool {
namespace {

constexpr Site& old_site = sites[0];
constexpr Site& new_site = sites[1];

bool has(const Site& in, const char* name) {
  for (unsigned m = 0; m < in.masters; ++m) {
    if (strcmp(in.master[m].facts.name, name) == 0) return true;
  }
  return false;
}

// About how long the call waits until every client must have seen the marks.
uint32_t wait_ms() {
  const uint32_t old_ttl = old_site.times.max_ttl_ms, new_ttl = new_site.times.max_ttl_ms;
  const uint32_t third = old_ttl / 3 > 1000 ? old_ttl / 3 : 1000;
  const uint32_t longer = old_ttl > new_ttl ? old_ttl - new_ttl : 0;
  return third + longer + (third + longer) / 100 + 2;
}

void tell_plan() {
  for (unsigned m = 0; m < old_site.masters; ++m) {
    const Master& it = old_site.master[m];
    print("%s: %s", it.name(), has(new_site, it.facts.name) ? "stays" : "leaves");
  }
  for (unsigned m = 0; m < new_site.masters; ++m) {
    const Master& it = new_site.master[m];
    if (!has(old_site, it.facts.name)) print("%s: joins", it.name());
  }
  print("max_ttl_ms %u -> %u; about %u s of waiting; then clients of the new file watch for %u s before they lock",
        old_site.times.max_ttl_ms, new_site.times.max_ttl_ms, (wait_ms() + 500) / 1000,
        (new_site.times.max_ttl_ms / 100 * 101 + 500) / 1000);
}

// ---- --dry-run ------------------------------------------------------------------------------------------------------

// Is the record neither of the two files', nor the mark of a change between them?
bool is_third(const Master& master, const Site& other) {
  const char* const theirs = other.facts().record;
  if (master.record == Record::other) return strcmp(master.desc, theirs) != 0;
  if (master.record != Record::moving) return false;
  return strstr(master.desc, theirs) == nullptr || strstr(master.desc, master.facts.record) == nullptr;
}

// May the call write to this master, and do so many of the set suffice?
ExitCode examine(Site& site, const Site& other, const char* which) {
  ExitCode code = exit_ok;
  unsigned good = 0;
  for (unsigned m = 0; m < site.masters; ++m) {
    Master& it = site.master[m];
    site.look_at(m);
    Text saw;
    bool fits = false;
    if (it.err != 0 || it.record_err != 0) {
      const int err = it.err != 0 ? it.err : it.record_err;
      saw.add("%s", redlock_strerror(err));
    } else if (is_third(it, other)) {
      saw.add("its record is of a third configuration: ").escaped(it.desc);
      code = exit_config;
    } else {
      fits = true;
      saw.add("%s", it.record == Record::none     ? "has no record yet"
                    : it.record == Record::ours   ? "has the record of this file"
                    : it.record == Record::moving ? "bears the mark of a change, which would begin anew"
                                                  : "has the record of the other file");
    }
    good += fits;
    print("%s %s: %s", which, it.name(), saw.c_str());
  }
  if (good >= site.quorum) return code;
  say("reconfigure: %u master(s) of the %s file can be written, and %u are needed", good, which, site.quorum);
  return worse_of(code, exit_too_few);
}

ExitCode dry_run() {
  const ExitCode of_old = examine(old_site, new_site, "old");
  const ExitCode code = worse_of(of_old, examine(new_site, old_site, "new"));
  if (code == exit_config) say("reconfigure: a master belongs to a third configuration: see redlock adopt");
  print("nothing was written");
  return code;
}

// ---- the change -----------------------------------------------------------------------------------------------------

struct Call {
  redlock_reconfigure_report_t report;
  int result;
  bool done;  // atomic
};

void* carry_out(void* given) {
  Call& call = *static_cast<Call*>(given);
  call.result = redlock_reconfigure(old_site.cfg, new_site.cfg, &call.report);
  __atomic_store_n(&call.done, true, __ATOMIC_RELEASE);
  return nullptr;
}

void show_waiting(const Call& call) {
  constexpr uint32_t step_ms = 100;
  for (uint32_t ms = 0; !__atomic_load_n(&call.done, __ATOMIC_ACQUIRE); ms += step_ms) {
    const int32_t left_s = (static_cast<int32_t>(wait_ms()) - static_cast<int32_t>(ms) + 999) / 1000;
    if (ms % 1000 == 0 && isatty(STDERR_FILENO) == 1) {
      show_progress("marks, waits, and enters the new masters: about %d s to go", left_s > 0 ? left_s : 0);
    } else if (ms % 10'000 == 0) {
      note("marks, waits, and enters the new masters: about %d s to go", left_s > 0 ? left_s : 0);
    }
    pause_ms(step_ms);
  }
  end_progress();
}

void tell_side(const char* which, const Site& site, unsigned masters, const int32_t* err) {
  for (unsigned m = 0; m < masters; ++m) {
    print("%s %s: %s", which, site.master[m].name(), err[m] == 0 ? "done" : redlock_strerror(err[m]));
  }
}

ExitCode explain(const Call& call) {
  if (call.report.old_masters == 0) {
    const char* sentence = redlock_config_error(new_site.cfg);
    if (*sentence == '\0') sentence = redlock_config_error(old_site.cfg);
    say("reconfigure: %s", *sentence != '\0' ? sentence : redlock_strerror(call.result));
    return exit_code_of(call.result);
  }
  tell_side("old", old_site, call.report.old_masters, call.report.old_err);
  tell_side("new", new_site, call.report.new_masters, call.report.new_err);
  if (call.result == 0) return exit_ok;
  if (call.result > 0) {
    say("reconfigure: done, but %d new master(s) could not be written: repeat it when they are back", call.result);
    return exit_too_few;
  }
  const char* const states[] = {"nothing was written", "old masters may be marked and vote for nobody",
                                "new masters may be given to the new clients", "new masters may be marked"};
  say("reconfigure: %s; %s: repeat the call, or undo it: redlock reconfigure NEW OLD", redlock_strerror(call.result),
      states[call.report.written]);
  return exit_code_of(call.result);
}

int run_reconfigure(const Command& command, int argc, char** argv) {
  enum { dry = Options::first_long };
  const Option own[] = {{"yes", 'y'}, {"dry-run", dry}};
  Options options(command, argc, argv, own);
  bool yes = false, only_looks = false;
  for (int c; (c = options.next()) != Options::end;) {
    yes = yes || c == 'y';
    only_looks = only_looks || c == dry;
  }
  if (options.rest_count() != 2) options.usage("it takes two files, OLD and NEW");
  old_site.open(open_file(options.rest()[0]));
  new_site.open(open_file(options.rest()[1]));
  tell_plan();
  if (only_looks) return dry_run();
  note("from the marks until the end of that watch nobody gets a lock; it can be interrupted and repeated");
  confirm(yes, "The site will go from the masters of OLD to those of NEW");
  static Call call;
  call.report.size = sizeof call.report;
  pthread_t thread;
  if (pthread_create(&thread, nullptr, carry_out, &call) != 0) fail(exit_system, "no thread can be started");
  show_waiting(call);
  pthread_join(thread, nullptr);
  return explain(call);
}

}  // namespace

const Command reconfigure_command = {
    "reconfigure", "OLD NEW", "take the site to other masters, or to another max_ttl_ms",
    "      --dry-run       say what would be done, and write nothing\n"
    "  -y, --yes           do not ask\n",
    run_reconfigure};

}  // namespace redlock::tool
