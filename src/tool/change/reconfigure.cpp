// SPDX-License-Identifier: MIT
//
// redlock reconfigure: takes the site from one set of masters to another, while clients run.
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "tool/ask/site.hpp"
#include "tool/system/clock.hpp"
#include "tool/system/signals.hpp"
#include "tool/words/denied.hpp"
#include "tool/words/say.hpp"

namespace redlock::tool {
namespace {

constexpr Site& old_site = sites[0];
constexpr Site& new_site = sites[1];
const char* old_file;
const char* new_file;

uint32_t longer_of(uint32_t a, uint32_t b) { return a > b ? a : b; }

// About how long the call waits until every client must have seen the marks.
uint32_t wait_ms() {
  const uint32_t old_ttl = old_site.times.max_ttl_ms, new_ttl = new_site.times.max_ttl_ms;
  const uint32_t third = old_ttl / 3 > 1000 ? old_ttl / 3 : 1000;
  const uint32_t longer = old_ttl > new_ttl ? old_ttl - new_ttl : 0;
  const uint32_t ppm = longer_of(old_site.times.drift_ppm, new_site.times.drift_ppm);
  const uint32_t fixed_ms = longer_of(old_site.times.drift_fixed_ms, new_site.times.drift_fixed_ms);
  return third + longer + drift_ms(third + longer, ppm, fixed_ms);
}

uint32_t guard_ms() {
  const Times& times = new_site.times;
  return times.max_ttl_ms + drift_ms(times.max_ttl_ms, times.drift_ppm, times.drift_fixed_ms);
}

void tell_plan() {
  for (unsigned m = 0; m < old_site.masters; ++m) {
    const Master& it = old_site.master[m];
    print("%s: %s", it.name(), new_site.has(it.facts.name) ? "stays" : "leaves");
  }
  for (unsigned m = 0; m < new_site.masters; ++m) {
    const Master& it = new_site.master[m];
    if (!old_site.has(it.facts.name)) print("%s: joins", it.name());
  }
  print("max_ttl_ms %u -> %u; about %u s of waiting; then clients of the new file watch for %u s before they lock",
        old_site.times.max_ttl_ms, new_site.times.max_ttl_ms, (wait_ms() + 500) / 1000,
        (guard_ms() + 500) / 1000);
}

// The command for the change from one file to the other, as a shell takes it.
Text command_line(const char* from, const char* to) {
  return Text("redlock reconfigure ").word(from).add(" ").word(to);
}

// ---- what is refused before anything is written -------------------------------------------------------------------

// Files that make no change. The library refuses them, too.
void refuse_files() {
  const redlock_site_facts_t &before = old_site.facts(), &after = new_site.facts();
  const bool one_prefix = before.key_prefix_size == after.key_prefix_size &&
                          memcmp(before.key_prefix, after.key_prefix, before.key_prefix_size) == 0;
  if (!one_prefix) fail(exit_config, "reconfigure: key_prefix: is not that of the old configuration");
  if (strcmp(before.record, after.record) == 0) {
    fail(exit_config, "reconfigure: masters: their names and timing.max_ttl_ms are those of the old configuration");
  }
  if (!old_site.is_guarded() || !new_site.is_guarded()) {
    fail(exit_config, "reconfigure: guard: with \"off\" no client sees what is written here");
  }
}

// Is the record neither of the two files', nor the mark of a change between them?
bool is_third(const Master& master, const Site& other) {
  const char *const ours = master.facts.record, *const theirs = other.facts().record;
  if (master.record == Record::other) return strcmp(master.desc, theirs) != 0;
  if (!master.has_mark()) return false;
  const char* const behind = strchr(master.desc, ' ') + 1;
  return strcmp(behind, Text("%s > %s", ours, theirs)) != 0 && strcmp(behind, Text("%s > %s", theirs, ours)) != 0;
}

// Whose mark it is, if the master bears one.
void add_mark(Text& saw, const Site& site, unsigned m) {
  if (site.master[m].has_mark()) saw.add(" (%s)", site.mark(m).c_str());
}

struct Verdict {
  ExitCode code = exit_ok;
  bool tells_third = false;  // a master of others is in the way
};

// Why the master would refuse the call's writes, or 0. Nothing is written: HSET has wrong arguments, which a server
// finds only behind what would make it refuse the call, and there is no field and no key of these names.
int refuses_writes(const Site& site, unsigned m) {
  const Key nothing = site.own_key(":doctor");
  Questions asked;
  asked.command("EVAL return 1 @", site.record_key);
  asked.command("HSET @ f v g", site.record_key).command("HSET @ f v g", site.seen_key);
  asked.command("HDEL @ f", site.record_key).command("TIME").command("DEL @", nothing);
  const int err = asked.ask(site.cfg, m);
  for (unsigned i = 0; err == 0 && i < asked.count(); ++i) {
    const bool is_last = i + 1 == asked.count();  // whose key may be denied, as the call does not use it
    if (is_last && asked[i].err != 0 && is_key_denied(asked[i])) continue;
    if (asked[i].err != 0 && asked[i].err != REDLOCK_E_SERVER) return asked[i].err;
  }
  return err;
}

// May the call write to this master, and do so many of the set suffice? tells: also of masters that are well.
void examine(Site& site, const Site& other, const char* which, bool tells, Verdict& out) {
  ExitCode too_few = exit_too_few;
  unsigned good = 0;
  site.look_at_all();
  for (unsigned m = 0; m < site.masters; ++m) {
    const Master& it = site.master[m];
    Text saw;
    int err = it.err != 0 ? it.err : it.record_err;
    const bool third = err == 0 && is_third(it, other);
    if (err == 0 && !third) err = refuses_writes(site, m);
    const bool fits = err == 0 && !third;
    if (third) {
      saw.add("bears the record of neither file: ").escaped(it.desc, strlen(it.desc), sizeof it.desc);
      out.code = exit_config;
      out.tells_third = true;
    } else if (err != 0) {
      saw.add("%s", it.err != 0 ? it.unasked.c_str() : redlock_strerror(err));
      too_few = worse_of(too_few, exit_code_of(err));
    } else {
      saw.add("%s", it.record == Record::none   ? "has no record yet"
                    : it.record == Record::ours ? "has the record of this file"
                    : it.record == Record::other ? "has the record of the other file"
                                                 : "bears the mark of a change, which would begin anew");
    }
    add_mark(saw, site, m);
    good += fits;
    if (tells || !fits) print("%s %s: %s", which, it.name(), saw.c_str());
  }
  if (good >= site.quorum) return;
  say("reconfigure: %u master(s) of the %s file can be written, and %u are needed", good, which, site.quorum);
  out.code = worse_of(out.code, too_few);
}

// Some masters are of others: names each, and the line that ends its record.
void tell_third() {
  say("reconfigure: nothing was written. Are these the right files?");
  for (Site* const site : {&old_site, &new_site}) {
    const Site& other = site == &old_site ? new_site : old_site;
    for (unsigned m = 0; m < site->masters; ++m) {
      if (site->master[m].err != 0 || site->master[m].record_err != 0 || !is_third(site->master[m], other)) continue;
      say("%s: was retired, or belonged to others: %s: %s", site->master[m].name(), site->deletion(m).c_str(),
          site->deletion_line(m).c_str());
    }
  }
}

ExitCode refuse_masters(bool tells) {
  Verdict verdict;
  examine(old_site, new_site, "old", tells, verdict);
  examine(new_site, old_site, "new", tells, verdict);
  if (verdict.tells_third) {
    tell_third();
  } else if (verdict.code != exit_ok) {
    say("reconfigure: nothing was written: the old gateways go on. Repeat the call");
  }
  return verdict.code;
}

// ---- the change -----------------------------------------------------------------------------------------------------

struct Call {
  redlock_reconfigure_report_t report;
  int result;

  uint32_t written() const { return __atomic_load_n(&report.written, __ATOMIC_ACQUIRE); }
};

void* carry_out(void* given) {
  Call& call = *static_cast<Call*>(given);
  call.result = redlock_reconfigure(old_site.cfg, new_site.cfg, &call.report);
  return nullptr;
}

// What holds after a call that is not done, and what to type.
void tell_state(const char* why, uint32_t written) {
  const char* state = "the old gateways go on. Repeat the call";
  if (written == REDLOCK_WRITTEN_OLD) {
    state = "the site may be without a lock until you repeat the call, or undo it. Start no gateway with NEW";
  } else if (written == REDLOCK_WRITTEN_BOTH) {
    state = "the change is not done, although new masters may have the new record. Start no gateway with NEW. Repeat "
            "the call, or undo it";
  }
  say("reconfigure: %s: %s", why, state);
  say("repeat: %s", command_line(old_file, new_file).c_str());
  if (written == REDLOCK_WRITTEN_OLD || written == REDLOCK_WRITTEN_BOTH) {
    say("undo:   %s", command_line(new_file, old_file).c_str());
  }
}

// Until the call has ended. A signal ends the program, wherever the call is.
void watch(const Call& call, pthread_t thread, Signals& signals) {
  constexpr uint32_t step_ms = 100;
  const bool on_terminal = isatty(STDERR_FILENO) == 1;
  for (uint32_t ms = 0; pthread_tryjoin_np(thread, nullptr) != 0; ms += step_ms) {
    if (const int number = signals.next()) {
      end_progress();
      tell_state("interrupted", call.written());
      _exit(exit_signal + number);
    }
    const int32_t left_s = (static_cast<int32_t>(wait_ms()) - static_cast<int32_t>(ms) + 999) / 1000;
    if (ms % (on_terminal ? 1'000 : 10'000) == 0) {
      const auto tell = on_terminal ? show_progress : note;
      tell("marks, waits, and enters the new masters: about %d s to go", left_s > 0 ? left_s : 0);
    }
    pause_ms(step_ms);
  }
  end_progress();
}

// Of each master, or of those at fault alone.
void tell_side(const char* which, Site& site, unsigned masters, const int32_t* err, bool all) {
  for (unsigned m = 0; m < masters; ++m) {
    if (err[m] == 0 && !all) continue;
    Text saw("%s", err[m] == 0 ? "done" : redlock_strerror(err[m]));
    if (err[m] == REDLOCK_E_CHANGING || err[m] == REDLOCK_E_FINGERPRINT) {
      site.look_at(m);
      add_mark(saw, site, m);
    }
    print("%s %s: %s", which, site.master[m].name(), saw.c_str());
  }
}

ExitCode explain(const Call& call) {
  if (call.report.old_masters == 0) {
    const char* sentence = redlock_config_error(new_site.cfg);
    if (*sentence == '\0') sentence = redlock_config_error(old_site.cfg);
    say("reconfigure: %s", *sentence != '\0' ? sentence : redlock_strerror(call.result));
    return exit_code_of(call.result);
  }
  tell_side("old", old_site, call.report.old_masters, call.report.old_err, call.result >= 0);
  tell_side("new", new_site, call.report.new_masters, call.report.new_err, call.result >= 0);
  if (call.result == REDLOCK_E_FINGERPRINT) {  // of a master that could not be examined before
    tell_third();
    return exit_config;
  }
  if (call.result < 0) {
    tell_state(redlock_strerror(call.result), call.written());
    return exit_code_of(call.result);
  }
  print("done: give every gateway the new file. Until the last one with the old file has ended, restart and replace no "
        "old master. If gateways of both files ran before this call, that holds for the masters of both files");
  if (call.result == 0) return exit_ok;
  say("%d new master(s) could not be written; the gateways lock without them. When they are back, redlock doctor -C "
      "%s says what to do",
      call.result, Text().word(new_file).c_str());
  return exit_too_few;
}

// No gateway was ever at these masters, as far as they know. With the wrong file both sites would live.
void confirm_blank(bool old_is_new, bool asks) {
  const unsigned blank = old_site.with_record(Record::none);
  if (blank < old_site.quorum) return;
  const Text what("%u of %u masters of OLD have no record: no gateway was ever there. If the gateways have another "
                  "file, two of them may hold one lock from now on",
                  blank, old_site.masters);
  confirm(old_is_new, what, "--old-is-new", asks);
}

int run_reconfigure(const Command& command, int argc, char** argv) {
  bool yes = false, only_looks = false, old_is_new = false;
  const Options options(command, argc, argv,
                        {{.name = "yes", .letter = 'y', .flag = &yes},
                         {.name = "dry-run", .flag = &only_looks},
                         {.name = "old-is-new", .flag = &old_is_new}});
  if (options.rest_count() != 2) options.usage("it takes two files, OLD and NEW");
  old_file = options.rest()[0];
  new_file = options.rest()[1];
  old_site.open(open_config({.config = old_file}));
  new_site.open(open_config({.config = new_file}));
  refuse_files();
  tell_plan();
  const ExitCode refused = refuse_masters(only_looks);
  if (only_looks) print("nothing was written");
  if (refused != exit_ok) return refused;
  if (only_looks) {
    confirm_blank(old_is_new, false);
    return exit_ok;
  }
  const uint32_t without_s = (wait_ms() + guard_ms() + 999) / 1000;
  note("from the marks until the end of that watch nobody gets a lock, about %u s, each time that it is called",
       without_s);
  note("from its last look until the last gateway with OLD has ended, restart and replace no master of OLD. If "
       "gateways of both files run now, restart and replace no master of either file until those with OLD have ended");
  confirm(yes, "The site will go from the masters of OLD to those of NEW");
  confirm_blank(old_is_new, true);
  Signals signals;
  signals.take({SIGINT, SIGTERM, SIGHUP});
  static Call call;
  call.report.size = sizeof call.report;
  pthread_t thread;
  if (pthread_create(&thread, nullptr, carry_out, &call) != 0) fail(exit_system, "no thread can be started");
  watch(call, thread, signals);
  return explain(call);
}

}  // namespace

const Command reconfigure_command = {
    "reconfigure", "OLD NEW", "take the site to other masters, or to another max_ttl_ms",
    "      --dry-run       say what would be done, and write nothing\n"
    "  -y, --yes           do not ask\n"
    "      --old-is-new    the masters of OLD have no record because no gateway was ever there\n",
    run_reconfigure, false};

}  // namespace redlock::tool
