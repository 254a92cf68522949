// SPDX-License-Identifier: MIT
//
// redlock commission: the operator's statement that no lock is held, so that masters vote without a watch.
#include <poll.h>
#include <string.h>

#include "tool/clock.hpp"
#include "tool/say.hpp"
#include "tool/site.hpp"

namespace redlock::tool {
namespace {

constexpr Site& site = sites[0];
bool chosen[REDLOCK_MASTERS_MAX];

void choose(const Options& options) {
  const Common& common = options.common();
  for (unsigned m = 0; m < site.masters; ++m) chosen[m] = common.name_count == 0;
  for (unsigned i = 0; i < common.name_count; ++i) {
    unsigned m = 0;
    while (m < site.masters && strcmp(site.master[m].facts.name, common.names[i]) != 0) ++m;
    if (m == site.masters) options.usage("no master is called '%s'", common.names[i]);
    chosen[m] = true;
  }
}

Text statement() {
  Text out, prefix;
  prefix.escaped(site.facts().key_prefix, site.facts().key_prefix_size);
  out.add("You state that no lock of the key_prefix \"%s\" is held, and that no client is running. Vote at once:",
          prefix.c_str());
  for (unsigned m = 0; m < site.masters; ++m) {
    if (chosen[m]) out.add(" %s", site.master[m].name());
  }
  return out;
}

// What a client says of a master: 0, or why it does not vote.
int why_not(const redlock_t* client, unsigned m) {
  redlock_master_status_t status = {};
  status.size = sizeof status;
  if (redlock_master_status(client, m, &status) != 0) return REDLOCK_E_CLOSED;
  if (status.state == REDLOCK_MASTER_UP) return 0;
  return status.err != 0 ? status.err : REDLOCK_E_UNREAD;
}

unsigned missing(const redlock_t* client) {
  unsigned n = 0;
  for (unsigned m = 0; m < site.masters; ++m) n += chosen[m] && why_not(client, m) != 0;
  return n;
}

// Until `end` at most; false: the client has ended.
bool process_until(redlock_t* client, int64_t end) {
  pollfd wanted = {redlock_fd(client), POLLIN, 0};
  poll(&wanted, 1, shorter_of(redlock_timeout_ms(client), timeout_until(end)));
  return redlock_process(client) != REDLOCK_E_CLOSED;
}

// The statement counts for so long.
void wait_for(redlock_t* client) {
  const int64_t end = now_ns() + (2 * int64_t{site.times.connect_timeout_ms} + 100) * ns_per_ms;
  int64_t next_line = now_ns();
  for (unsigned n; (n = missing(client)) != 0 && now_ns() < end;) {
    if (now_ns() >= next_line) {
      note("%u master(s) to go, %d s at most", n, timeout_until(end) / 1000);
      next_line += 1000 * ns_per_ms;
    }
    process_until(client, earlier_of(end, next_line));
  }
}

ExitCode tell(const redlock_t* client) {
  ExitCode code = exit_ok;
  for (unsigned m = 0; m < site.masters; ++m) {
    if (!chosen[m]) continue;
    const int err = why_not(client, m);
    print("%s: %s", site.master[m].name(), err == 0 ? "votes" : redlock_strerror(err));
    if (err != 0) code = worse_of(code, exit_code_of(err));
  }
  if (code != exit_ok) say("commission: not all of them; repeat it when nothing is held and they can be reached");
  return code;
}

int run_commission(const Command& command, int argc, char** argv) {
  const Option own[] = {{"yes", 'y'}};
  Options options(command, argc, argv, own);
  bool yes = false;
  while (options.next() != Options::end) yes = true;
  if (options.rest_count() != 0) options.usage("it takes no argument");
  redlock_config_t* cfg = open_config(options.common());
  site.open(cfg);
  if (site.guarding == Guarding::off) fail(exit_config, "the guard is off: every master votes without a watch");
  choose(options);
  confirm(yes, statement().c_str());
  redlock_t* client = nullptr;
  int err = redlock_create_polled(&client, cfg);
  for (unsigned m = 0; err == 0 && m < site.masters; ++m) {
    if (chosen[m]) err = redlock_commission_master(client, m);
  }
  if (err != 0) fail(exit_code_of(err), "%s", redlock_strerror(err));
  wait_for(client);
  const ExitCode code = tell(client);
  redlock_close_async(client, 0);
  while (process_until(client, never)) continue;
  redlock_config_free(cfg);
  return code;
}

}  // namespace

const Command commission_command = {
    "commission", "", "state that nothing is held: masters vote at once",
    "      --master NAME   only this master of the configuration; repeatable\n"
    "  -y, --yes           do not ask\n",
    run_commission};

}  // namespace redlock::tool
