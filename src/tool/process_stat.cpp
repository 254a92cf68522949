// SPDX-License-Identifier: MIT
#include "tool/process_stat.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace redlock::tool {

ProcessStat::ProcessStat(long pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%ld/stat", pid);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  const ssize_t size = read(file, text_, sizeof text_ - 1);
  close(file);
  text_[size > 0 ? size : 0] = '\0';
  const char* end_of_name = strrchr(text_, ')');  // "12 (any name) S 1 ..."
  if (end_of_name != nullptr && strncmp(end_of_name, ") Z", 3) != 0) behind_name_ = end_of_name + 1;
}

unsigned long long ProcessStat::number(int field) const {
  const char* word = behind_name_;
  for (int i = 3; i < field && word != nullptr; ++i) word = strchr(word + 1, ' ');
  return word == nullptr ? 0 : strtoull(word, nullptr, 10);
}

}  // namespace redlock::tool
