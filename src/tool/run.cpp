// SPDX-License-Identifier: MIT
//
// redlock run: a command that runs while a lock is held, and is gone before somebody else can hold it.
#include <errno.h>
#include <fcntl.h>
#include <redlock/site.h>
#include <string.h>
#include <unistd.h>

#include "tool/keeper.hpp"
#include "tool/lock_options.hpp"
#include "tool/say.hpp"

namespace redlock::tool {
namespace {

constexpr char help[] =
    "Runs COMMAND while the lock of all RES is held. The exit code is COMMAND's, or 128 + n for signal n.\n"
    "  -c, --command STRING    run a shell with STRING, instead of -- COMMAND\n"
    "      --pidns             in a PID namespace: all descendants end with the lock, whatever is killed\n"
    "      --sd-notify         tell systemd when the lock is held\n";

constexpr int sd_notify_option = Options::first_long;
constexpr int pidns_option = Options::first_long + 1;
constexpr char shell[] = "/bin/sh";

struct Arguments {
  Wish wish;
  KeeperOptions keeper;
  LockOptions lock;
  bool pidns = false;
  char* shell_words[4] = {};
  char** words = nullptr;
};

void read_options(Options& options, Arguments& out) {
  static char dash_c[] = "-c";
  for (int c; (c = options.next()) != Options::end;) {
    switch (c) {
      case 'c':
        out.shell_words[0] = const_cast<char*>(shell);
        out.shell_words[1] = dash_c;
        out.shell_words[2] = const_cast<char*>(options.value());
        out.words = out.shell_words;
        break;
      case 'E':
        out.keeper.held_code = static_cast<ExitCode>(options.number(0, 255));
        break;
      case pidns_option:
        out.pidns = true;
        break;
      case sd_notify_option:
        out.keeper.sd_notify = true;
        break;
      default:
        take_lock_option(options, c, out.lock);
    }
  }
}

// RES... -- COMMAND [ARG...], or RES... alone after -c.
void read_rest(const Options& options, Arguments& out) {
  char** word = options.rest();
  for (; *word != nullptr && strcmp(*word, "--") != 0; ++word) add_resource(options, *word, out.wish);
  if (out.wish.count == 0) options.usage("which resource is to be locked?");
  if (*word != nullptr && out.words != nullptr) options.usage("-c and a command");
  if (*word != nullptr) out.words = word + 1;
  if (out.words == nullptr || *out.words == nullptr) options.usage("a command is missing: RES... -- COMMAND [ARG]...");
}

// Descriptors 0 to 2 that are closed stay closed for the command, but none of ours may take their places.
void occupy_standard_descriptors() {
  int taken = 0;
  do {
    taken = open("/dev/null", O_RDWR | O_CLOEXEC);
  } while (taken >= 0 && taken <= STDERR_FILENO);
  if (taken >= 0) close(taken);
}

int run_run(const Command& command, int argc, char** argv) {
  occupy_standard_descriptors();
  static const Option own[] = {LOCK_OPTIONS,
                               {"command", 'c', true},
                               {"conflict-exit-code", 'E', true},
                               {"pidns", pidns_option},
                               {"sd-notify", sd_notify_option}};
  Arguments arguments;
  Options options(command, argc, argv, own, Options::Order::first);
  read_options(options, arguments);
  read_rest(options, arguments);
  redlock_config_t* cfg = open_config(options.common());
  static Job job;
  apply_lock_options(options, arguments.lock, cfg, arguments.wish, job.schedule);
  job.words = arguments.words;
  job.resources = arguments.wish.names;
  job.ttl_ms = arguments.wish.ttl_ms;
  job.has_pid_namespace = arguments.pidns;
  job.hides_notify_socket = arguments.keeper.sd_notify;
  job.gets_terminal = isatty(STDIN_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) == getpgrp();
  arguments.keeper.verbose = options.common().verbose;
  static Keeper keeper(job, arguments.wish, arguments.keeper);
  return keeper.run(cfg, options.common());
}

}  // namespace

const Command run_command = {"run", "RES... -- COMMAND [ARG]...", "run a command while a lock is held", help, run_run,
                             lock_help};

}  // namespace redlock::tool
