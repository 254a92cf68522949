// SPDX-License-Identifier: MIT
#include "tool/file.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace redlock::tool {

ssize_t read_file(const char* path, char* out, size_t size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  size_t got = 0;
  for (ssize_t n = 1; n > 0 && got + 1 < size;) {
    n = read(fd, out + got, size - 1 - got);
    if (n > 0) got += static_cast<size_t>(n);
  }
  close(fd);
  out[got] = '\0';
  return static_cast<ssize_t>(got);
}

}  // namespace redlock::tool
