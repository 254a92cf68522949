// SPDX-License-Identifier: MIT
#include "port/tls/file.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/file_rule.hpp"

namespace redlock::tls {
namespace {

FileStamp stamp_of(const struct stat& status) {
  return {status.st_mtim, status.st_ctim, status.st_size, status.st_ino, status.st_dev};
}

bool same_time(const timespec& a, const timespec& b) { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; }

using Fault = TlsFile::Fault;

Fault why_closed(int error) {
  return error == ENOENT || error == ENOTDIR ? Fault::missing : error == EACCES ? Fault::denied : Fault::unreadable;
}

// What is wrong with a file before its text is read?
Fault judge(const struct stat& status, bool secret) {
  if (S_ISDIR(status.st_mode)) return Fault::folder;
  if (!S_ISREG(status.st_mode)) return Fault::no_file;
  if (is_strangers(status)) return Fault::strangers;
  if (others_write(status)) return Fault::others_write;
  if (secret && (status.st_mode & 04) != 0) return Fault::others_read;
  if (status.st_size == 0) return Fault::empty;
  return status.st_size > static_cast<off_t>(FileText::size_max) ? Fault::too_large : Fault::none;
}

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

Fault FileText::read(const char* path, bool secret, FileStamp& stamp) {
  stamp = FileStamp();
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return why_closed(errno);
  struct stat status;
  Fault fault = fstat(fd, &status) != 0 ? Fault::unreadable : judge(status, secret);
  if (fault == Fault::none) {
    stamp = stamp_of(status);
    const size_t size = static_cast<size_t>(status.st_size);
    data_ = static_cast<char*>(malloc(size));
    size_ = data_ != nullptr ? size : 0;
    if (!fill(fd, data_, size_)) fault = Fault::unreadable;
  }
  close(fd);
  return fault;
}

}  // namespace redlock::tls
