// SPDX-License-Identifier: MIT
#include "tool/system/descriptors.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace redlock::tool {

// O_PATH: reads and writes fail as with a closed descriptor.
void occupy_standard_descriptors() {
  int taken = 0;
  do {
    taken = open("/", O_PATH | O_CLOEXEC);
  } while (taken >= 0 && taken <= STDERR_FILENO);
  if (taken >= 0) close(taken);
}

void let_go_of_streams() {
  const int nothing = open("/", O_PATH | O_CLOEXEC);
  if (nothing < 0) return;
  dup2(nothing, STDIN_FILENO);
  dup2(nothing, STDOUT_FILENO);
  close(nothing);
}

ssize_t read_file(const char* path, char* out, size_t size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  size_t got = 0;
  for (ssize_t n = 1; fd >= 0 && n > 0 && got + 1 < size;) {
    n = read(fd, out + got, size - 1 - got);
    if (n > 0) got += static_cast<size_t>(n);
  }
  out[got] = '\0';
  if (fd < 0) return -1;
  close(fd);
  return static_cast<ssize_t>(got);
}

}  // namespace redlock::tool
