// SPDX-License-Identifier: MIT
#pragma once
#include <stddef.h>

namespace redlock::tool {

// What /proc/PID/stat says of a process that runs.
class ProcessStat {
 public:
  explicit ProcessStat(long pid);
  // The number in the field that proc(5) counts so, from the fourth on; 0: the process has ended, or never was.
  unsigned long long number(int field) const;

 private:
  char text_[1024];
  const char* behind_name_ = nullptr;  // "S 1 ..."; a name may hold blanks
};

}  // namespace redlock::tool
