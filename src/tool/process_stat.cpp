// SPDX-License-Identifier: MIT
#include "tool/process_stat.hpp"

#include <stdlib.h>
#include <string.h>

#include "tool/file.hpp"
#include "tool/format.hpp"

namespace redlock::tool {

ProcessStat::ProcessStat(long pid) {
  char path[64];
  format_text(path, sizeof path, "/proc/%ld/stat", pid);
  if (read_file(path, text_, sizeof text_) < 0) return;
  const char* end_of_name = strrchr(text_, ')');  // "12 (any name) S 1 ..."
  if (end_of_name != nullptr && strncmp(end_of_name, ") Z", 3) != 0) behind_name_ = end_of_name + 1;
}

unsigned long long ProcessStat::number(int field) const {
  const char* word = behind_name_;
  for (int i = 3; i < field && word != nullptr; ++i) word = strchr(word + 1, ' ');
  return word == nullptr ? 0 : strtoull(word, nullptr, 10);
}

}  // namespace redlock::tool
