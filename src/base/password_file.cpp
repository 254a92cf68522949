// SPDX-License-Identifier: MIT
#include "base/password_file.hpp"

#include <errno.h>
#include <unistd.h>

namespace redlock {

FileFault read_password(const char* path, char* buffer, size_t max, size_t& size, FileStamp& stamp) {
  struct stat status;
  FileFault fault = FileFault::none;
  const int fd = open_by_rule(path, true, status, fault);
  if (fd < 0) return fault;
  stamp = stamp_of(status);
  const bool well = read_from(fd, buffer, max + password_rest, size);
  const int error = errno;
  close(fd);
  errno = error;
  if (!well) return FileFault::unreadable;
  if (size > 0 && buffer[size - 1] == '\n') --size;
  if (size > 0 && buffer[size - 1] == '\r') --size;
  if (size == 0) return FileFault::empty;
  if (size > max) return FileFault::too_long;
  if (memchr(buffer, '\0', size) != nullptr) return FileFault::holds_nul;
  return memchr(buffer, '\n', size) != nullptr ? FileFault::several_lines : FileFault::none;
}

// What is no good changes nothing, and is not read again before it has changed once more.
bool read_again(PasswordFile& file) {
  const FileStamp now = look_at(file.path);
  if (now == file.stamp) return false;
  file.stamp = now;
  file.told = false;
  size_t size = 0;
  file.fault = read_password(file.path, file.spare, file.size, size, file.stamp);
  const bool well = file.fault == FileFault::none;
  if (well) {
    char* const old = file.room;
    file.room = file.spare;
    file.spare = old;
    *file.password = Bytes(file.room, size);
  }
  explicit_bzero(file.spare, file.size + password_rest);
  return well;
}

}  // namespace redlock
