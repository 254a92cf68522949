// SPDX-License-Identifier: MIT
#include <redlock/redlock.h>

#include "tool/options.hpp"
#include "tool/say.hpp"

namespace redlock::tool {
namespace {

int run_version(const Command& command, int argc, char** argv) {
  Options options(command, argc, argv);
  while (options.next() != Options::end) continue;
  if (options.rest_count() != 0) options.usage("it takes no argument");
  print("redlock %s", redlock_version_string());
  return exit_ok;
}

}  // namespace

const Command version_command = {"version", "", "print the version", "", run_version};

}  // namespace redlock::tool
