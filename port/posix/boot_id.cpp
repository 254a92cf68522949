// SPDX-License-Identifier: MIT
#include "port/posix/boot_id.hpp"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

namespace redlock {
namespace {

// Reads the first bytes of a small file of /proc; -1: the file cannot be read.
ssize_t read_file(const char* path, char* text, size_t size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  const ssize_t n = read(fd, text, size);
  close(fd);
  return n;
}

bool is_there(const char* path) {
  struct stat status;
  return stat(path, &status) == 0;
}

// The file says "monotonic 0 0" and "boottime 0 0". A kernel without time namespaces has neither this file nor ns/time.
bool clock_is_the_machines() {
  char text[128];
  const ssize_t n = read_file("/proc/self/timens_offsets", text, sizeof text);
  if (n < 0) return !is_there("/proc/self/timens_offsets") && !is_there("/proc/self/ns/time");
  unsigned zeros = 0;
  for (ssize_t i = 0; i < n; ++i) {
    if (text[i] >= '1' && text[i] <= '9') return false;
    zeros += text[i] == '0' ? 1u : 0u;
  }
  return zeros == 4;
}

}  // namespace

bool read_boot_id(char (&id)[boot_id_size]) {
  return clock_is_the_machines() &&
         read_file("/proc/sys/kernel/random/boot_id", id, boot_id_size) == ssize_t{boot_id_size};
}

}  // namespace redlock
