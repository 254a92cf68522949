// SPDX-License-Identifier: MIT
#include "port/tls/file.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

namespace redlock::tls {
namespace {

FileStamp stamp_of(const struct stat& status) {
  return {status.st_mtim, status.st_ctim, status.st_size, status.st_ino, status.st_dev};
}

bool same_time(const timespec& a, const timespec& b) { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; }

// Fills what there is room for. False: the file is shorter now, or cannot be read.
bool fill(int fd, char* at, size_t size) {
  while (size > 0) {
    const ssize_t got = ::read(fd, at, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

}  // namespace

bool FileStamp::operator==(const FileStamp& other) const {
  return same_time(written, other.written) && same_time(changed, other.changed) && size == other.size &&
         inode == other.inode && device == other.device;
}

FileStamp look_at(const char* path) {
  struct stat status;
  return stat(path, &status) == 0 ? stamp_of(status) : FileStamp();
}

FileText::~FileText() {
  if (data_ != nullptr) explicit_bzero(data_, size_);
  free(data_);
}

int FileText::read(const char* path, bool secret, FileStamp& stamp) {
  stamp = FileStamp();
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return REDLOCK_E_TLS_FILE;
  struct stat status;
  int result = REDLOCK_E_TLS_FILE;
  if (fstat(fd, &status) != 0) status = {};
  const bool exposed = secret && (status.st_mode & 07) != 0;
  if (!exposed && status.st_size > 0 && status.st_size <= static_cast<off_t>(size_max)) {
    stamp = stamp_of(status);
    const size_t size = static_cast<size_t>(status.st_size);
    data_ = static_cast<char*>(malloc(size));
    size_ = data_ != nullptr ? size : 0;
    result = data_ == nullptr ? REDLOCK_E_NOMEM : fill(fd, data_, size) ? 0 : REDLOCK_E_TLS_FILE;
  }
  close(fd);
  return result;
}

}  // namespace redlock::tls
