// SPDX-License-Identifier: MIT
//
// redlock run: a command that runs while a lock is held, and is gone before somebody else can hold it.
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/run/job.hpp"

namespace redlock::tool {
namespace {

constexpr long longest_wait_s = 86'400;
constexpr char help[] =
    "Runs COMMAND while the lock of all RES is held. The exit code is COMMAND's, or 128 + n for signal n.\n"
    "  -n, --nonblock          try once; the default is to wait for as long as it takes\n"
    "  -w, --wait SECS         wait for so long at most; fractions are allowed\n"
    "  -t, --ttl MS            lifetime of the lock when nothing renews it\n"
    "      --any               any one of RES is enough: $REDLOCK_RESOURCE says which is held\n"
    "      --urgent            before all that wait without it: for an alarm, a stop command\n"
    "      --max-hold SECS     renew the lock for so long at most\n"
    "      --at-least SECS     keep the lock for so long, also when COMMAND has ended\n"
    "      --fencing           with a fencing token\n"
    "  -s, --signal NAME       what COMMAND is told to end with, instead of TERM\n"
    "  -k, --kill-after SECS   KILL so long after that; no later than the lock allows\n"
    "  -E, --conflict-exit-code CODE   instead of 75, if others hold the lock\n"
    "      --metrics FILE      keep metrics for an agent there\n"
    "      --pidns             in a PID namespace: all descendants end with the lock, whatever is killed\n"
    "      --sd-notify         tell systemd when the lock is held\n"
    "      --sd-standby SOCKET  for redlock-service: tell systemd of a standby, pass on what COMMAND says\n"
    "      --ignore-hup        a HUP ends no wait\n";

struct Given {
  const char* signal_name = "TERM";
  int32_t kill_after_ms = -1;  // below 0: not given
  int32_t max_hold_ms = -1;    // the same
};

// "TERM", "SIGTERM", "term" or "15". No stop and no continue: what the command is told to end with must end something.
int signal_of(const Options& options, const char* name) {
  constexpr struct {
    const char* name;
    int number;
  } signals[] = {{"HUP", SIGHUP},   {"INT", SIGINT},   {"QUIT", SIGQUIT}, {"ABRT", SIGABRT},  {"KILL", SIGKILL},
                 {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"ALRM", SIGALRM}, {"WINCH", SIGWINCH}, {"TERM", SIGTERM}};
  if (strncasecmp(name, "SIG", 3) == 0) name += 3;
  char* end = nullptr;
  const long number = strtol(name, &end, 10);
  if (*end == '\0' && number >= SIGRTMIN && number <= SIGRTMAX) return static_cast<int>(number);
  for (const auto& one : signals) {
    if (strcasecmp(name, one.name) == 0 || (*end == '\0' && number == one.number)) return one.number;
  }
  options.usage("--signal takes HUP, INT, QUIT, ABRT, KILL, USR1, USR2, ALRM, WINCH, TERM or the number of one");
}

// RES... -- COMMAND [ARG]...
void read_rest(Options& options, Job& out) {
  char** word = options.rest();
  const unsigned most = out.wish.is_any ? unsigned{any_of::most} : REDLOCK_RESOURCES_PER_LOCK_MAX;
  bool has_dashes = false;
  for (char** at = word; *at != nullptr; ++at) has_dashes = has_dashes || strcmp(*at, "--") == 0;
  if (!has_dashes && *word != nullptr && word[1] != nullptr && *word[1] != '-') options.refuse_bare_command();
  for (; *word != nullptr && strcmp(*word, "--") != 0; ++word) {
    if (**word == '-' && !options.ended_by_dashes()) options.refuse_late_options();
    options.check_resource(*word);
    if (out.wish.count == most) options.usage("more than %u resources", most);
    out.wish.add(*word);
  }
  if (out.wish.count == 0) options.usage("which resource is to be locked?");
  if (*word == nullptr || word[1] == nullptr) options.usage("a command is missing: RES... -- COMMAND [ARG]...");
  out.words = word + 1;
}

void make_schedule(const Options& options, const redlock_config_t* cfg, const Given& given, Job& out) {
  redlock_acquire_opts_t& how = out.wish.how;
  if (how.ttl_ms == 0) how.ttl_ms = setting_of(cfg, "defaults.ttl_ms").number;
  if (how.ttl_ms < least_ttl_ms_of(how.ttl_ms)) {
    options.usage("a ttl of %u ms is too short: a command must be ended before others can hold the lock; 2400 ms are "
                  "enough", how.ttl_ms);
  }
  if (given.max_hold_ms >= 0) {
    how.max_hold_ms = static_cast<uint32_t>(given.max_hold_ms);
    if (how.max_hold_ms < how.ttl_ms) {
      options.usage("--max-hold is shorter than the ttl of %u ms, which the lock lives for without a renewal: give a "
                    "shorter --ttl as well", how.ttl_ms);
    }
    if (out.at_least_ms > given.max_hold_ms) options.usage("--at-least is longer than --max-hold");
  }
  out.schedule = Schedule(how.ttl_ms, signal_of(options, given.signal_name), given.kill_after_ms);
  how.min_validity_ms = static_cast<uint32_t>(out.schedule.grace_ms + margin_ms);
}

bool has_terminal() {
  const int terminal = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (terminal >= 0) close(terminal);
  return terminal >= 0;
}

int run_run(const Command& command, int argc, char** argv) {
  static Job job;
  Given given;
  redlock_acquire_opts_t& how = job.wish.how;
  how.wait_ms = REDLOCK_WAIT_FOREVER;
  bool tries_once = false, has_token = false, is_urgent = false;
  Options options(
      command, argc, argv,
      {{.name = "nonblock", .letter = 'n', .flag = &tries_once},
       {.name = "wait", .letter = 'w', .ms = &how.wait_ms, .max = longest_wait_s},
       {.name = "ttl", .letter = 't', .number = &how.ttl_ms, .min = REDLOCK_TTL_MS_MIN, .max = REDLOCK_MAX_TTL_MS_MAX},
       {.name = "any", .flag = &job.wish.is_any},
       {.name = "urgent", .flag = &is_urgent},
       {.name = "max-hold", .ms = &given.max_hold_ms, .max = longest_wait_s},
       {.name = "at-least", .ms = &job.at_least_ms, .max = longest_wait_s},
       {.name = "fencing", .flag = &has_token},
       {.name = "signal", .letter = 's', .text = &given.signal_name},
       {.name = "kill-after", .letter = 'k', .ms = &given.kill_after_ms, .max = longest_wait_s},
       {.name = "conflict-exit-code", .letter = 'E', .number = &job.held_code, .max = 255},
       {.name = "metrics", .text = &job.metrics},
       {.name = "pidns", .flag = &job.has_pid_namespace},
       {.name = "sd-notify", .flag = &job.tells_systemd},
       {.name = "sd-standby", .text = &job.relay},
       {.name = "ignore-hup", .flag = &job.ignores_hup}},
      Options::Order::first);
  options.exclude("--nonblock", tries_once, "--wait", how.wait_ms != REDLOCK_WAIT_FOREVER);
  options.exclude("--kill-after", given.kill_after_ms > 0, "--signal KILL",
                  signal_of(options, given.signal_name) == SIGKILL);
  options.exclude("--sd-notify", job.tells_systemd, "--sd-standby", job.relay != nullptr);
  if (tries_once) how.wait_ms = REDLOCK_TRY_ONCE;
  how.flags = (has_token ? REDLOCK_F_FENCING : 0) | (is_urgent ? REDLOCK_F_URGENT : 0);
  read_rest(options, job);
  redlock_config_t* cfg = open_config(options.common());
  make_schedule(options, cfg, given, job);
  job.has_terminal = has_terminal();
  return keep(job, cfg, options.common());
}

}  // namespace

const Command run_command = {"run", "RES... -- COMMAND [ARG]...", "run a command while a lock is held", help, run_run};

}  // namespace redlock::tool
