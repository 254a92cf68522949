// SPDX-License-Identifier: MIT
#include "base/file_rule.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace redlock {
namespace {

// A FIFO would make open() wait.
constexpr int read_flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
constexpr auto proc_magic = 0x9fa0;  // PROC_SUPER_MAGIC: musl comes without the kernel's headers
constexpr unsigned links_max = 8;
constexpr size_t path_max = 512;  // of what links lead to

bool is_ours(const struct stat& status) { return status.st_uid == 0 || status.st_uid == geteuid(); }

FileFault why_closed(int error) {
  if (error == ENOENT || error == ENOTDIR) return FileFault::missing;
  return error == EACCES ? FileFault::denied : FileFault::unreadable;
}

FileFault fault_of(const struct stat& status, bool secret) {
  if (S_ISDIR(status.st_mode)) return FileFault::folder;
  if (!S_ISREG(status.st_mode)) return FileFault::no_file;
  if (!is_ours(status)) return FileFault::strangers;
  if ((status.st_mode & 022) != 0) return FileFault::others_write;
  return secret && others_read(status) ? FileFault::others_read : FileFault::none;
}

// The target that stands in the link at `path`, into `at`, of which `path` may be the beginning. A relative one counts
// from the link's folder.
bool read_target(int link, const char* path, char (&at)[path_max]) {
  size_t folder = strlen(path);
  while (folder > 0 && path[folder - 1] != '/') --folder;
  if (folder >= sizeof at) return false;
  memmove(at, path, folder);
  const ssize_t size = readlinkat(link, "", at + folder, sizeof at - folder);
  if (size <= 0 || folder + static_cast<size_t>(size) == sizeof at) return false;
  at[folder + static_cast<size_t>(size)] = '\0';
  if (at[folder] == '/') memmove(at, at + folder, static_cast<size_t>(size) + 1);
  return true;
}

// Of the link itself, which the descriptor holds fast: /proc/self/fd/0 leads to what no path may name.
bool is_of_proc(int link) {
  struct statfs about;
  return fstatfs(link, &about) == 0 && about.f_type == proc_magic;
}

// One link further. -1 with fault none: `at` is the next path. Else as open_by_rule().
int follow(const char* path, char (&at)[path_max], FileFault& fault) {
  const int link = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  struct stat status;
  int fd = -1;
  fault = FileFault::unreadable;
  if (link < 0 || fstat(link, &status) != 0 || !S_ISLNK(status.st_mode)) {
    if (link < 0) return -1;
  } else if (!is_ours(status)) {
    fault = FileFault::strangers_link;
  } else if (is_of_proc(link)) {
    fd = open(path, read_flags);
    fault = fd < 0 ? why_closed(errno) : FileFault::none;
  } else if (read_target(link, path, at)) {
    fault = FileFault::none;
  }
  close(link);
  return fd;
}

int open_through_links(const char* path, FileFault& fault) {
  char at[path_max];
  fault = FileFault::none;
  for (unsigned links = 0; fault == FileFault::none; path = at, ++links) {
    int fd = open(path, read_flags | O_NOFOLLOW);
    if (fd >= 0) return fd;
    fault = why_closed(errno);
    if (errno != ELOOP || links == links_max) return -1;
    fd = follow(path, at, fault);
    if (fd >= 0) return fd;
  }
  return -1;
}

bool same_time(const timespec& a, const timespec& b) { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; }

}  // namespace

bool FileStamp::operator==(const FileStamp& other) const {
  return same_time(written, other.written) && same_time(changed, other.changed) && size == other.size &&
         inode == other.inode && device == other.device;
}

FileStamp stamp_of(const struct stat& status) {
  return {status.st_mtim, status.st_ctim, status.st_size, status.st_ino, status.st_dev};
}

FileStamp look_at(const char* path) {
  struct stat status;
  return stat(path, &status) == 0 ? stamp_of(status) : FileStamp();
}

int open_by_rule(const char* path, bool secret, struct stat& status, FileFault& fault) {
  const int fd = open_through_links(path, fault);
  if (fd < 0) return -1;
  fault = fstat(fd, &status) != 0 ? FileFault::unreadable : fault_of(status, secret);
  if (fault == FileFault::none) return fd;
  close(fd);
  return -1;
}

bool read_from(int fd, char* buffer, size_t capacity, size_t& size) {
  size = 0;
  while (size < capacity) {
    const ssize_t got = read(fd, buffer + size, capacity - size);
    if (got == 0) return true;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    size += static_cast<size_t>(got);
  }
  return true;
}

}  // namespace redlock
