// SPDX-License-Identifier: MIT
#include "port/tls/file.hpp"

#include <stdlib.h>
#include <unistd.h>

namespace redlock::tls {

FileText::~FileText() {
  if (data_ != nullptr) explicit_bzero(data_, size_);
  free(data_);
}

FileFault FileText::read(const char* path, bool secret, FileStamp& stamp) {
  stamp = FileStamp();
  struct stat status;
  FileFault fault = FileFault::none;
  const int fd = open_by_rule(path, secret, status, fault);
  if (fd < 0) return fault;
  if (status.st_size == 0) fault = FileFault::empty;
  if (status.st_size > static_cast<off_t>(size_max)) fault = FileFault::too_large;
  if (fault == FileFault::none) {
    stamp = stamp_of(status);
    const size_t size = static_cast<size_t>(status.st_size);
    data_ = static_cast<char*>(malloc(size));
    size_ = data_ != nullptr ? size : 0;
    size_t got = 0;
    if (!read_from(fd, data_, size_, got) || got < size_) fault = FileFault::unreadable;  // it is shorter now
  }
  close(fd);
  return fault;
}

}  // namespace redlock::tls
