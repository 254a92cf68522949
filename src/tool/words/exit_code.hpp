// SPDX-License-Identifier: MIT
//
// The exit codes of `redlock`, which scripts rely on. They never change, and 1 is not among them: a program that
// `redlock run` runs may well end with 1. With each of these codes stands a line "redlock: ..." on stderr, but for what
// `redlock status` prints anyway.
#pragma once

namespace redlock::tool {

enum ExitCode : int {
  exit_ok = 0,
  exit_usage = 64,
  exit_too_few = 69,       // too few masters can be reached, or can vote
  exit_internal = 70,
  exit_system = 71,        // the system refused something, or the warden was killed
  exit_output = 74,        // what is to be told cannot be written
  exit_held = 75,          // held by others; `run -E` replaces this code
  exit_not_admitted = 76,  // masters are still watched for the guard time: waiting alone helps
  exit_permission = 77,    // a password, a permission or a certificate is missing or wrong; only of a bounded wait
  exit_config = 78,
  exit_lost = 79,          // the lock was lost, whatever the command returned
  exit_left = 80,          // the site was changed
  exit_not_executable = 126,
  exit_not_found = 127,
  exit_signal = 128        // and the number of the signal
};

// The exit code for an error of the library, also of a single master.
ExitCode exit_code_of(int err);
// Of several causes the one that tells most: 80, 78, 77, 69, 76, 75.
ExitCode worse_of(ExitCode a, ExitCode b);

}  // namespace redlock::tool
