// SPDX-License-Identifier: MIT
//
// One command of `redlock`, such as `redlock run`. Each stands in a file of its own, and in the table of main.cpp.
#pragma once

namespace redlock::tool {

struct Command {
  const char* name;
  const char* synopsis;  // the arguments: "[-n] RES... -- COMMAND [ARG...]"
  const char* summary;   // a few words, for the list of commands
  const char* help;      // its own options, one a line, each line ended by a newline
  int (*run)(const Command& command, int argc, char** argv);  // argv[0] is the command's name; returns an ExitCode
  const char* shared_help = "";  // of options that it has like others
};

extern const Command adopt_command;
extern const Command commission_command;
extern const Command config_command;
extern const Command doctor_command;
extern const Command hold_command;
extern const Command reconfigure_command;
extern const Command run_command;
extern const Command status_command;
extern const Command version_command;

}  // namespace redlock::tool
