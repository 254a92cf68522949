// SPDX-License-Identifier: MIT
//
// redlock: locks for shells and services, and the operator's view of a site.
#include <string.h>
#include <sys/prctl.h>

#include "tool/command.hpp"
#include "tool/say.hpp"

namespace redlock::tool {
namespace {

const Command* const commands[] = {
    &run_command,
    &hold_command,
    &status_command,
    &doctor_command,
    &commission_command,
    &adopt_command,
    &reconfigure_command,
    &config_command,
    &version_command,
};

void print_commands() {
  print("redlock COMMAND [OPTION]... [ARGUMENT]...");
  for (const Command* command : commands) print("  %-12s %s", command->name, command->summary);
  print("redlock COMMAND --help tells the options of a command; redlock(1) tells all.");
}

int run(int argc, char** argv) {
  if (argc < 2) fail(exit_usage, "which command? see redlock --help");
  const char* name = argv[1];
  if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
    print_commands();
    return exit_ok;
  }
  if (strcmp(name, "--version") == 0) name = "version";
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
  return redlock::tool::run(argc, argv);
}
