// SPDX-License-Identifier: MIT
//
// redlock: locks for shells and services, and the operator's view of a site.
#include <string.h>
#include <sys/prctl.h>

#include "tool/system/descriptors.hpp"
#include "tool/system/signals.hpp"
#include "tool/words/options.hpp"
#include "tool/words/say.hpp"

namespace redlock::tool {
namespace {

int run_version(const Command& command, int argc, char** argv) {
  const Options options(command, argc, argv);
  if (options.rest_count() != 0) options.usage("it takes no argument");
  print("redlock %s", redlock_version_string());
  return exit_ok;
}

constexpr Command version_command = {"version", "", "print the version", "", run_version};
const Command* const commands[] = {
    &run_command,
    &status_command,
    &doctor_command,
    &commission_command,
    &reconfigure_command,
    &config_command,
    &version_command,
};

int print_commands() {
  print("redlock COMMAND [OPTION]... [ARGUMENT]...");
  for (const Command* command : commands) print("  %-12s %s", command->name, command->summary);
  print("redlock COMMAND --help tells the options of a command; redlock(1) tells all.");
  return exit_ok;
}

int run(int argc, char** argv) {
  if (argc < 2) fail(exit_usage, "which command? see redlock --help");
  const char* name = argv[1];
  static char help[] = "--help";
  if (strcmp(name, "help") == 0 && argc > 2) {  // redlock help run: as redlock run --help
    name = argv[2];
    argv[2] = help;
    argc = 3;
  }
  if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) return print_commands();
  if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) name = "version";
  for (const Command* command : commands) {
    if (strcmp(name, command->name) == 0) return command->run(*command, argc - 1, argv + 1);
  }
  fail(exit_usage, "there is no command '%s'; see redlock --help", name);
}

}  // namespace
}  // namespace redlock::tool

int main(int argc, char** argv) {
  // Passwords get into no core file, and no other program of this user reads them here. It holds for the processes that
  // we fork. What these execute is as readable as without us: execve() decides anew.
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  redlock::tool::occupy_standard_descriptors();
  redlock::tool::ignore_broken_pipes();
  return redlock::tool::end_of_output(redlock::tool::run(argc, argv));
}
