// SPDX-License-Identifier: MIT
//
// redlock commission: the operator's statement that no lock is held, so that masters vote without a watch.
#include <poll.h>
#include <string.h>

#include "tool/ask/lookup.hpp"
#include "tool/system/clock.hpp"
#include "tool/words/denied.hpp"
#include "tool/words/say.hpp"

namespace redlock::tool {
namespace {

constexpr Site& site = sites[0];
bool chosen[REDLOCK_MASTERS_MAX];
bool unseen[REDLOCK_MASTERS_MAX];  // nobody knows whether these have been in use: the statement is not for them

// The statement counts for so long.
int64_t statement_ns() { return (2 * int64_t{site.times.connect_timeout_ms} + 100) * ns_per_ms; }

void choose(const Options& options) {
  const Common& common = options.common();
  for (unsigned m = 0; m < site.masters; ++m) chosen[m] = common.name_count == 0;
  for (unsigned i = 0; i < common.name_count; ++i) {
    const unsigned m = site.find(common.names[i]);
    if (m == site.masters) options.usage("no master is called '%s'", Text().escaped(common.names[i]).c_str());
    chosen[m] = true;
  }
}

Text statement() {
  Text out("You state that no lock of the key_prefix \"");
  out.escaped(site.facts().key_prefix, site.facts().key_prefix_size);
  out.add("\" is held, and that no client is running. Vote at once:");
  for (unsigned m = 0; m < site.masters; ++m) {
    if (chosen[m]) out.add(" %s", site.master[m].name());
  }
  return out;
}

// A master that somebody may hold a lock on: it bears the seal of this configuration, or a lock's key.
void find_use(Text& out, unsigned m) {
  const Master& it = site.master[m];
  if (it.err != 0) return;
  if (it.record == Record::ours && it.has_seal) {
    out.add("; %s has been in use", it.name());
    return;
  }
  static Text key;
  key = Text();
  const int err = scan(site, m, [](const char* name, size_t size) {
    key.escaped(name, size);
    return false;
  });
  if (err == 0 && !key.empty()) out.add("; %s has a key of %s", it.name(), key.c_str());
  if (err != 0) note("%s: whether there are keys of locks is not known: %s", it.name(), redlock_strerror(err));
}

// Looks at those that have not answered yet: a server may just start. True: one has still not answered.
bool look_at_unseen(Text& use) {
  bool are_left = false;
  site.look_at_all(unseen);
  for (unsigned m = 0; m < site.masters; ++m) {
    if (unseen[m]) find_use(use, m);
    unseen[m] = unseen[m] && site.master[m].err != 0;
    are_left = are_left || unseen[m];
  }
  return are_left;
}

// Whoever states it a second time, or of the wrong site, may end the guard's watch while somebody holds a lock. So the
// word that ends every other question is not enough here.
void ask_again(bool nobody_holds) {
  Text use;
  const int64_t end = now_ns() + statement_ns();
  for (unsigned m = 0; m < site.masters; ++m) unseen[m] = chosen[m];
  while (look_at_unseen(use) && use.empty() && !nobody_holds && now_ns() < end) pause_ms(50);
  if (use.empty() && !nobody_holds) return;
  memset(unseen, 0, sizeof unseen);
  if (use.empty()) return;
  const Text what("Somebody may be holding a lock%s. Let the guard watch them, unless every gateway is ended",
                  use.c_str());
  confirm(nobody_holds, what, "--nobody-holds");
}

// What a client says of a master: 0, or why it does not vote.
int why_not(const redlock_t* client, unsigned m) {
  if (unseen[m]) return site.master[m].err;
  auto status = sized<redlock_master_status_t>();
  if (redlock_master_status(client, m, &status) != 0) return REDLOCK_E_CLOSED;
  if (status.state == REDLOCK_MASTER_UP) return 0;
  return status.err != 0 ? status.err : REDLOCK_E_UNREAD;
}

void wait_for(redlock_t* client) {
  const int64_t end = now_ns() + statement_ns();
  int64_t next_line = now_ns();
  const auto is_missing = [=](unsigned m) { return chosen[m] && !unseen[m] && why_not(client, m) != 0; };
  for (unsigned n; (n = site.count(is_missing)) != 0 && now_ns() < end;) {
    if (now_ns() >= next_line) {
      note("asking %u master%s, %d s at most", n, n == 1 ? "" : "s", (timeout_until(end) + 999) / 1000);
      next_line += 1000 * ns_per_ms;
    }
    pollfd wanted = {redlock_fd(client), POLLIN, 0};
    poll(&wanted, 1, shorter_of(redlock_timeout_ms(client), timeout_until(earlier_of(end, next_line))));
    redlock_process(client);
  }
}

ExitCode tell(const redlock_t* client) {
  ExitCode code = exit_ok;
  bool lacks_command = false;
  for (unsigned m = 0; m < site.masters; ++m) {
    if (!chosen[m]) continue;
    const int err = why_not(client, m);
    lacks_command = lacks_command || err == REDLOCK_E_SERVER;
    const bool is_refused = err == REDLOCK_E_NOPERM || err == REDLOCK_E_SERVER;
    const Text more = is_refused ? refusal(site.cfg, m, err, nullptr, 0) : Text();
    print("%s: %s%s", site.master[m].name(), err == 0 ? "votes" : redlock_strerror(err), more.c_str());
    if (err != 0) code = worse_of(code, exit_code_of(err));
  }
  const bool can_repeat = !lacks_command && (code == exit_too_few || code == exit_not_admitted);  // else it is refused
  if (code != exit_ok) {
    say("commission: not all of them; %s",
        can_repeat ? "repeat it when nothing is held and they can be reached" : "redlock doctor says what to do");
  }
  return code;
}

int run_commission(const Command& command, int argc, char** argv) {
  bool yes = false, nobody_holds = false;
  const Options options(
      command, argc, argv,
      {{.name = "yes", .letter = 'y', .flag = &yes}, {.name = "nobody-holds", .flag = &nobody_holds}});
  if (options.rest_count() != 0) options.usage("it takes no argument");
  site.open(open_config(options.common()));
  if (!site.is_guarded()) fail(exit_config, "the guard is off: every master votes without a watch");
  choose(options);
  confirm(yes, statement().c_str());
  ask_again(nobody_holds);
  redlock_t* const client = new_client(site.cfg);
  int err = 0;
  for (unsigned m = 0; err == 0 && m < site.masters; ++m) {
    if (chosen[m] && !unseen[m]) err = redlock_commission_master(client, m);
  }
  if (err != 0) fail(exit_code_of(err), "%s", redlock_strerror(err));
  wait_for(client);
  return tell(client);
}

}  // namespace

const Command commission_command = {
    "commission", "", "state that nothing is held: masters vote at once",
    "      --master NAME   only this master of the configuration; repeatable\n"
    "  -y, --yes           do not ask\n"
    "      --nobody-holds  nor where a master has been in use, or has a lock's key\n",
    run_commission};

}  // namespace redlock::tool
